package bytecode

import (
	"encoding/binary"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"tpuc/internal/seeds"
)

var update = flag.Bool("update", false, "write the texts of testdata anew")

// files are the modules of testdata, which tools/cases/bytecode.py wrote: what JAX does not write.
func files(t testing.TB) map[string][]byte {
	names, err := filepath.Glob(filepath.Join("testdata", "*.mlirbc"))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	out := make(map[string][]byte)
	for _, name := range names {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		out[name] = data
	}
	return out
}

// TestText compares the texts of modules with those beside them, which are the same for artifacts of all versions. MLIR's own reader and printer agree with
// them up to names of values and the spelling of floats and resources.
func TestText(t *testing.T) {
	for name, data := range files(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			m, err := Decode(data)
			require.NoError(t, err)
			text := m.Text
			for key, l := range m.Literals {
				text = strings.ReplaceAll(text, "dense_resource<"+key+">", l.Text())
			}
			module, form, _ := strings.Cut(strings.TrimSuffix(name, ".mlirbc"), ".")
			if form != "builtin" {
				form = "artifact"
			}
			want := module + "." + form + ".mlir"
			if *update {
				require.NoError(t, os.WriteFile(want, []byte(text), 0o644))
			}
			golden, err := os.ReadFile(want)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(string(golden), text))
		})
	}
}

// TestVersions reads what the head says.
func TestVersions(t *testing.T) {
	for file, want := range map[string]int{"operations.0.9.0": 0, "literals.0.12.0": 3, "operations.0.14.0": 4, "operations.1.17.0": 6} {
		data := files(t)[filepath.Join("testdata", file+".mlirbc")]
		d := newDecoder(data)
		d.file(data)
		require.Equal(t, want, d.version)
		require.Equal(t, "StableHLO_v"+file[strings.Index(file, ".")+1:], d.producer)
	}
}

func TestVarint(t *testing.T) {
	for _, tc := range []struct {
		data []byte
		want uint64
	}{
		{[]byte{0x01}, 0},
		{[]byte{0xFF}, 127},
		{[]byte{0x02, 0x02}, 128},
		{[]byte{0x04, 0, 0xFF}, 0xFF0000 >> 3},
		{append([]byte{0}, binary.LittleEndian.AppendUint64(nil, 1<<63)...), 1 << 63},
		{[]byte{0x80, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, 1<<56 - 1},
	} {
		r := &reader{data: tc.data, end: len(tc.data)}
		require.Equal(t, tc.want, r.varint(), "%x", tc.data)
		require.Zero(t, r.left())
	}
	r := &reader{data: varints(2, 3, 4, 7, 6), end: 5}
	require.Equal(t, []int64{-2, 2}, r.signeds())
	v, flag := r.flagged()
	require.True(t, flag)
	require.Equal(t, uint64(3), v)
}

// TestTypes reads types that no module of testdata has, with i8 and f32 as types 0 and 1, and the string "q" as attribute 0.
func TestTypes(t *testing.T) {
	for name, tc := range map[string]struct {
		data []byte
		read func(d *decoder, r *reader) *typ
		want string
	}{
		"quantised":           {append(append(varints(vhloQuantized, 1, 0, 1, 0), varints(0, 0)...), varints(0)...), vhloType, "!quant.uniform<i8:f32>"},
		"quantised per axis":  {varints(vhloQuantizedPerAxis, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0), vhloType, "!quant.uniform<i8:f32>"},
		"unranked":            {varints(vhloUnrankedTensor, 1), vhloType, "tensor<*xf32>"},
		"buffer":              {varints(vhloRankedBuffer, 2, 4, 6, 1), vhloType, "memref<2x3xf32>"},
		"future":              {varints(vhloFuture, 2, 0, 1), vhloType, "!stablehlo.future<i8, f32>"},
		"token":               {varints(22), vhloType, "!stablehlo.token"},
		"unknown":             {varints(99), vhloType, "type 99 of VHLO, wanted one up to 42"},
		"future of StableHLO": {varints(1, 1, 1), stablehloType, "!stablehlo.future<f32>"},
		"vector":              {varints(builtinVector, 1, 4, 1), builtinType, "vector<2xf32>"},
		"encoded":             {varints(builtinRankedTensorEncoded, 0, 1, 4, 1), builtinType, "tensor<2xf32, q>"},
		"open":                {append(append(varints(builtinRankedTensor, 1), 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF), varints(1)...), builtinType, "tensor<?xf32>"},
		"no integer":          {varints(builtinIntegerType, 0), builtinType, "an integer of 0 bits"},
		"scalable":            {varints(20), builtinType, "type 20 of dialect builtin, wanted one that StableHLO uses"},
		"rank":                {append(varints(builtinRankedTensor, 65), make([]byte, 65*9)...), builtinType, "a tensor of rank 65, wanted at most 64"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &decoder{limit: 1000, left: 1000, types: []entry{{typ: scalar("i8")}, {typ: scalar("f32")}}, attrs: []entry{{attr: textAttr("q")}}}
			d.at = &reader{}
			defer func() {
				if r := recover(); r != nil {
					require.Contains(t, r.(*Error).Msg, tc.want)
				}
			}()
			r := &reader{data: tc.data, end: len(tc.data)}
			require.Equal(t, tc.want, tc.read(d, r).text)
			require.Zero(t, r.left())
		})
	}
}

// file makes a file of sections.
func file(version byte, sections ...[]byte) []byte {
	out := append([]byte(Magic), version<<1|1)
	out = append(out, "test\x00"...)
	for _, s := range sections {
		out = append(out, s...)
	}
	return out
}

// section makes a section of up to 127 bytes.
func section(id byte, data ...byte) []byte {
	return append([]byte{id, byte(len(data))<<1 | 1}, data...)
}

// varints are numbers up to 127.
func varints(v ...byte) []byte {
	for i := range v {
		v[i] = v[i]<<1 | 1
	}
	return v
}

// TestErrors says what was seen and wanted, and where.
func TestErrors(t *testing.T) {
	str := section(stringSection, append(varints(2, 8, 2), "a\x00builtin\x00"...)...)
	dialect := section(dialectSection, varints(1, 1<<1, 0)...)
	types := section(attrTypeSection)
	offsets := section(attrTypeOffsetSection, varints(0, 0)...)
	ir := section(irSection, varints(0)...)
	attr := func(data ...byte) [][]byte { // a module with one attribute of builtin, which an operation has as its location
		return [][]byte{str, section(dialectSection, varints(1, 1<<1, 1, 0, 1, 0<<1)...), section(attrTypeSection, data...),
			section(attrTypeOffsetSection, append(varints(1, 0, 0, 1), byte(len(data))<<2|3)...), section(irSection, append(varints(1<<1, 0), 0, 1)...)}
	}
	for name, tc := range map[string]struct {
		data []byte
		want string
	}{
		"other":           {[]byte("PK"), `other bytes, wanted "ML\xefR", at byte 0 of the file`},
		"nothing":         {[]byte(Magic), "the end, wanted a byte, at byte 4 of the file"},
		"newer":           {file(7), "bytecode of version 7, wanted one up to 6: write the artifact for an older version, at byte 5 of the file"},
		"no sections":     {file(6), "no section String, wanted one, at byte 10 of the file"},
		"twice":           {file(6, str, str), "a second section String, wanted one, at byte 40 of the file"},
		"unknown section": {file(6, []byte{9}), "section 9, wanted one of 9, at byte 10 of the file"},
		"long section":    {file(6, []byte{stringSection, 41, 0}), "20 bytes where 1 bytes are left, wanted no more, at byte 12 of the file"},
		"alignment":       {file(6, []byte{0x80, 1, 7}), "an alignment of 3, wanted a power of two up to 1073741824, at byte 13 of the file"},
		"padding":         {file(6, []byte{0x80, 1, 0x20 | 1, 0}), "byte 0x00 as padding, wanted 0xCB, at byte 13 of the file"},
		"strings":         {file(6, section(stringSection, varints(9)...), dialect, types, offsets, ir), "9 strings where 0 bytes are left, wanted no more, at byte 1 of section String"},
		"string":          {file(6, section(stringSection, varints(1, 9)...), dialect, types, offsets, ir), "a string of 9 bytes where 0 are left, wanted 1 or more and no more than that, at byte 2 of section String"},
		"string's end":    {file(6, section(stringSection, append(varints(1, 1), 0, 0)...), dialect, types, offsets, ir), "1 bytes between the sizes of strings and their bytes, wanted none, at byte 2 of section String"},
		"dialect":         {file(6, str, section(dialectSection, varints(1, 5<<1)...), types, offsets, ir), "string 5, wanted one of 2, at byte 2 of section Dialect"},
		"entries":         {file(6, str, dialect, types, section(attrTypeOffsetSection, varints(2, 0, 0, 1, 0)...), ir), "the end, wanted a byte, at byte 5 of section AttrTypeOffset"},
		"entries' size":   {file(6, str, dialect, types, section(attrTypeOffsetSection, varints(1, 0, 0, 1, 6)...), ir), "3 bytes where 0 bytes are left, wanted no more, at byte 0 of section AttrType"},
		"operation":       {file(6, str, dialect, types, offsets, section(irSection, varints(1<<1, 4)...)), "operation 4, wanted one of 0, at byte 2 of section IR"},
		"operations":      {file(6, str, dialect, types, offsets, section(irSection, varints(9<<1)...)), "9 operations where 0 bytes are left, wanted no more, at byte 1 of section IR"},
		"more operations": {file(6, str, dialect, types, offsets, section(irSection, append(varints(0), 0)...)), "1 bytes behind the last operation, wanted none, at byte 1 of section IR"},
		"attribute":       {file(6, attr(varints(99)...)...), "attribute 99 of dialect builtin, wanted one that StableHLO uses, at byte 1 of section AttrType"},
		"no location":     {file(6, attr(varints(builtinUnit)...)...), "an attribute that is no location, wanted one, at byte 4 of section IR"},
		"itself":          {file(6, attr(varints(builtinArray, 1, 0)...)...), "an attribute or type that contains itself, wanted an end, at byte 0 of section AttrType"},
		"trailing":        {file(6, attr(varints(builtinUnknownLoc, 0)...)...), "1 bytes behind an attribute or a type, wanted none, at byte 1 of section AttrType"},
		"no operations":   {file(6, attr(varints(builtinUnknownLoc)...)[:4]...), "no section IR, wanted one"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode(tc.data)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// TestDamaged changes every byte of modules, and cuts them at every place. Each gives an error with a place, or another module, in time
// and memory in proportion to the file.
func TestDamaged(t *testing.T) {
	for name, data := range files(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			try := func(data []byte) {
				m, err := Decode(data)
				if err != nil {
					e, ok := err.(*Error)
					require.True(t, ok)
					require.NotEmpty(t, e.Section)
					require.LessOrEqual(t, e.Offset, len(data))
					require.GreaterOrEqual(t, e.Offset, 0)
					return
				}
				require.Less(t, len(m.Text), 1<<20+growth*len(data))
			}
			for at := range data {
				changes := []func(b byte) byte{func(byte) byte { return 0 }, func(byte) byte { return 0xFF }, func(b byte) byte { return b ^ 1 }, func(b byte) byte { return b + 2 }}
				bad := slices.Clone(data)
				bad[at] = changes[at%len(changes)](bad[at])
				try(bad)
				try(data[:at])
			}
		})
	}
}

// TestBombs holds files whose text would be long to an error, and regions and attributes that are nested to a depth.
func TestBombs(t *testing.T) {
	str := section(stringSection, append(varints(3, 2, 8, 2), "a\x00builtin\x00b\x00"...)...)
	// Attribute 0 is a location; each of the others is a list of the one before, twice. The last stands as a dictionary's value in the last one.
	build := func(n int, twice byte) []byte {
		var attrs, sizes []byte
		put := func(data ...byte) {
			attrs = append(attrs, data...)
			sizes = append(sizes, byte(len(data))<<2|3)
		}
		put(varints(builtinUnknownLoc)...)
		put(varints(builtinString, 0)...)
		for i := 1; i < n; i++ {
			v := varints(builtinArray, twice)
			for range twice {
				v = append(v, byte(i)<<1|1)
			}
			put(v...)
		}
		put(append(varints(builtinDictionary, 1, 1), byte(n)<<1|1)...)
		long := func(id byte, data []byte) []byte { // with a size of two bytes
			return append([]byte{id, byte(len(data))<<2 | 2, byte(len(data) >> 6)}, data...)
		}
		ops := append(varints(1<<1, 0), hasAttrs)
		ops = append(ops, varints(0, byte(n+1))...)
		return file(6, str, section(dialectSection, varints(1, 1<<1, 1, 0, 1, 2<<1)...), long(attrTypeSection, attrs),
			long(attrTypeOffsetSection, append(varints(byte(n+2), 0, 0, byte(n+2)), sizes...)), section(irSection, ops...))
	}
	m, err := Decode(build(3, 2))
	require.NoError(t, err)
	require.Equal(t, "\"builtin.b\"() {a = [[\"a\", \"a\"], [\"a\", \"a\"]]} : () -> ()\n", m.Text)
	start := time.Now()
	_, err = Decode(build(60, 2))
	require.ErrorContains(t, err, "bytes where they are written out, wanted at most that")
	_, err = Decode(build(100, 1))
	require.ErrorContains(t, err, "nested more than 64 deep")
	require.Less(t, time.Since(start), 10*time.Second)
}

// TestJAX decodes the modules of JAX, without more memory than files of their size may take.
func TestJAX(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	size := 0
	for _, m := range seeds.Bytecode(t) {
		if m.Form == "export" {
			continue
		}
		size += len(m.Data)
		_, err := Decode(m.Data)
		require.NoError(t, err, "%s %s", m.Form, m.Name)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, int(after.TotalAlloc-before.TotalAlloc), 400*size)
}

// FuzzDecode demands of any bytes an error with a place or a text in proportion to them.
func FuzzDecode(f *testing.F) {
	for _, data := range files(f) {
		f.Add(data)
	}
	for i, m := range seeds.Bytecode(f) {
		if i%29 == 0 {
			f.Add(m.Data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Decode(data)
		if err != nil {
			require.IsType(t, &Error{}, err)
			require.NotEmpty(t, err.Error())
			return
		}
		require.LessOrEqual(t, len(m.Text), 1<<20+growth*len(data))
		again, err := Decode(data)
		require.NoError(t, err)
		require.Equal(t, m.Text, again.Text)
	})
}
