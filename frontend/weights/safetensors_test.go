package weights

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir/diag"
	"tpuc/ir/tensor"
	"tpuc/ir/weight"
)

// rawSafetensors is a file with the header as given and size bytes of data.
func rawSafetensors(header string, size int) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(out, header...), make([]byte, size)...)
}

func sampleTensors() []Named {
	return []Named{
		{"b", tensor.FromFloats(tensor.Make(tensor.BF16, 3), []float64{1, 2, 3})},
		{"a <&> \"quoted\" ü", tensor.FromInts(tensor.Make(tensor.I64), []int64{-5})},
		{"empty", tensor.Zeros(tensor.Make(tensor.F32, 0, 7))},
		{"mask", tensor.FromInts(tensor.Make(tensor.Bool, 2, 2), []int64{1, 0, 0, 1})},
		{"f8", tensor.FromFloats(tensor.Make(tensor.F8E4M3FN, 2), []float64{0.5, -2})},
		{"c", tensor.FromComplexes(tensor.Make(tensor.C64, 1), []complex128{1 + 2i})},
	}
}

func TestSafetensorsRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.safetensors")
	in := sampleTensors()
	require.NoError(t, WriteSafetensors(path, in))
	s, err := OpenSafetensors(path)
	require.NoError(t, err)
	defer s.Close()
	require.Len(t, s.Names(), len(in))
	for i, n := range in {
		require.Equal(t, n.Name, s.Names()[i], "in the order given")
		x, err := s.Load(n.Name)
		require.NoError(t, err)
		require.True(t, x.Type.Equal(n.Type), "%s", x.Type)
		require.Equal(t, append([]byte{}, n.Data...), append([]byte{}, x.Data...))
	}
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Zero(t, (8+binary.LittleEndian.Uint64(data))%dataAlign, "the data is aligned for use in place")
	again := filepath.Join(t.TempDir(), "b.safetensors")
	require.NoError(t, WriteSafetensors(again, in))
	other, err := os.ReadFile(again)
	require.NoError(t, err)
	require.Equal(t, data, other)
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1, "no temporary file stays")
	_, err = s.Load("none")
	require.ErrorIs(t, err, ErrNoTensor)
}

func TestSafetensorsWriteRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.safetensors")
	x := tensor.Zeros(tensor.Make(tensor.F32))
	for want, in := range map[string][]Named{
		`"x" is given twice`:           {{"x", x}, {"x", x}},
		"no dtype for i4":              {{"x", tensor.Zeros(tensor.Make(tensor.I4, 2))}},
		"no dtype for c128":            {{"x", tensor.Zeros(tensor.Make(tensor.C128))}},
		"the format reserves":          {{"__metadata__", x}},
		"no such file or directory":    nil,
		`a.safetensors: tensor "x": s`: {{"x", tensor.Zeros(tensor.Make(tensor.U4))}},
	} {
		p := path
		if in == nil {
			p = filepath.Join(path, "folder", "a.safetensors")
		}
		require.ErrorContains(t, WriteSafetensors(p, in), want)
		_, err := os.Stat(p)
		require.Error(t, err)
	}
}

// safetensorsFaults are headers that are refused, with a size of the data behind them.
var safetensorsFaults = []struct {
	name, header string
	size         int
	want         []string // all of them, in one error
}{
	{"one name twice", `{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}`, 4,
		[]string{`tensor "a" is in the header twice`}},
	{"all faults at once", `{"fwd":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"over":{"dtype":"U8","shape":[4],"data_offsets":[2,6]},
		"back":{"dtype":"U8","shape":[2],"data_offsets":[6,4]},"far":{"dtype":"U8","shape":[4],"data_offsets":[6,99]},
		"short":{"dtype":"F32","shape":[3],"data_offsets":[0,4]},"odd":{"dtype":"F99","shape":[1],"data_offsets":[0,1]}}`, 8,
		[]string{`tensor "over" at bytes 2 to 6 overlaps tensor "fwd"`, `tensor "back": data_offsets [6 4] go backwards`,
			`tensor "far": data_offsets [6 99], wanted within the 8 bytes`, `tensor "short": shape [3] of F32 does not have the 4 bytes`,
			`tensor "odd": dtype "F99", wanted one of BF16, BOOL, C64`}},
	{"overflowing offset", `{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,18446744073709551615]}}`, 1, []string{`tensor "a": data_offsets [0 18446744073709551615]`}},
	{"offset beyond 64 bits", `{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,18446744073709551616]}}`, 1, []string{`tensor "a"`}},
	{"negative offset", `{"a":{"dtype":"U8","shape":[1],"data_offsets":[-1,0]}}`, 1, []string{`tensor "a"`}},
	{"overflowing shape", `{"a":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0, []string{`tensor "a"`, "more bytes than an int64"}},
	{"shape that overflows with the dtype", `{"a":{"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]}}`, 0, []string{"does not have the 0 bytes"}},
	{"negative extent", `{"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,0]}}`, 0, []string{"dimension 0 is -1"}},
	{"gap", `{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`, 3, []string{`tensor "b" begins at byte 2, wanted 1`}},
	{"gap at the start", `{"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`, 3, []string{`tensor "b" begins at byte 2, wanted 0`}},
	{"data after the last", `{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 2, []string{"end at byte 1, wanted 2"}},
	{"unknown field", `{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}}`, 1, []string{`field "x"`}},
	{"field twice", `{"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}}`, 1, []string{`field "dtype" is there twice`}},
	{"no offsets", `{"a":{"dtype":"U8","shape":[1]}}`, 1, []string{"0 data_offsets"}},
	{"not an object", `[1]`, 0, []string{"wanted an object"}},
	{"cut JSON", `{"a":{"dtype":"U8"`, 0, []string{"JSON is cut short"}},
	{"JSON and more", `{} {}`, 0, []string{"goes on after its object"}},
	{"deep", strings.Repeat(`{"a":`, 20000), 0, []string{"header: "}},
	{"metadata", `{"__metadata__":{"a":1}}`, 0, []string{"__metadata__ is no object of strings"}},
}

func TestSafetensorsFaults(t *testing.T) {
	for _, tc := range safetensorsFaults {
		t.Run(tc.name, func(t *testing.T) {
			_, err := OpenSafetensors(writeFile(t, "a.safetensors", rawSafetensors(tc.header, tc.size)))
			var list diag.List
			require.ErrorAs(t, err, &list)
			for _, want := range tc.want {
				require.ErrorContains(t, err, want)
			}
			require.Len(t, list, max(1, len(tc.want)-strings.Count(strings.Join(tc.want, ""), "more bytes")), "%v", err)
		})
	}
}

// Both sizes are named where the header does not fit.
func TestSafetensorsHeaderSize(t *testing.T) {
	file := binary.LittleEndian.AppendUint64(nil, 1000)
	file = append(file, "{}"...)
	_, err := OpenSafetensors(writeFile(t, "a.safetensors", file))
	require.ErrorContains(t, err, "header length is 1000 bytes, wanted at most 2: the file has 10 bytes")
	_, err = OpenSafetensors(writeFile(t, "a.safetensors", []byte("hello, world and others")))
	require.ErrorContains(t, err, "wanted at most 100000000: this may be no safetensors file")
	_, err = OpenSafetensors(writeFile(t, "a.safetensors", nil))
	require.ErrorContains(t, err, "0 bytes, wanted a safetensors file")
}

// A dtype that the format has and tpuc has not spoils only its own tensor.
func TestSafetensorsOtherDType(t *testing.T) {
	header := `{"a":{"dtype":"F8_E8M0","shape":[3],"data_offsets":[0,3]},"q":{"dtype":"F4","shape":[4],"data_offsets":[3,5]},"b":{"dtype":"U8","shape":[1],"data_offsets":[5,6]}}  `
	s, err := OpenSafetensors(writeFile(t, "a.safetensors", rawSafetensors(header, 6)))
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Load("a")
	require.ErrorContains(t, err, `tensor "a": dtype F8_E8M0 is not supported`)
	_, err = s.Load("b")
	require.NoError(t, err)
}

func writeCheckpoint(t *testing.T, index string, shards map[string][]Named) string {
	t.Helper()
	dir := t.TempDir()
	for name, tensors := range shards {
		require.NoError(t, WriteSafetensors(filepath.Join(dir, name), tensors))
	}
	if index != "" {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "model.safetensors.index.json"), []byte(index), 0o644))
	}
	return dir
}

func TestDir(t *testing.T) {
	x, y := tensor.ScalarInt(tensor.I32, 1), tensor.ScalarInt(tensor.I32, 2)
	shards := map[string][]Named{"m-1.safetensors": {{"a", x}}, "m-2.safetensors": {{"b", y}}}
	for name, dir := range map[string]string{
		"index":     writeCheckpoint(t, `{"metadata":{"total_size":8},"weight_map":{"b":"m-2.safetensors","a":"m-1.safetensors"}}`, shards),
		"no index":  writeCheckpoint(t, "", shards),
		"one file":  writeCheckpoint(t, "", map[string][]Named{"model.safetensors": {{"a", x}, {"b", y}}, "other.safetensors": {{"a", y}}}),
		"diffusers": writeCheckpoint(t, "", map[string][]Named{"diffusion_pytorch_model.safetensors": {{"a", x}, {"b", y}}}),
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Open(dir)
			require.NoError(t, err)
			defer d.Close()
			require.Equal(t, []string{"a", "b"}, d.Names())
			v, err := d.Load("b")
			require.NoError(t, err)
			require.Equal(t, []int64{2}, v.Ints())
			_, err = d.Load("c")
			require.ErrorIs(t, err, ErrNoTensor)
		})
	}
}

func TestDirFaults(t *testing.T) {
	x := tensor.ScalarInt(tensor.I32, 1)
	shards := map[string][]Named{"m-1.safetensors": {{"a", x}, {"stray", x}}}
	// A missing shard, a tensor that its shard lacks and a tensor that no index lists: three messages, one run.
	dir := writeCheckpoint(t, `{"weight_map":{"a":"m-1.safetensors","lost":"m-1.safetensors","b":"m-2.safetensors","c":"m-2.safetensors"}}`, shards)
	_, err := OpenDir(dir)
	var list diag.List
	require.ErrorAs(t, err, &list)
	require.Len(t, list, 3)
	require.ErrorContains(t, err, "shard m-2.safetensors is missing, the index lists 2 tensors in it")
	require.ErrorContains(t, err, `shard m-1.safetensors has no tensor "lost"`)
	require.ErrorContains(t, err, `tensor "stray" is not listed by the index`)

	for want, dir := range map[string]string{
		"wanted a file beside the index": writeCheckpoint(t, `{"weight_map":{"a":"../m.safetensors"}}`, shards),
		`tensor "a" is listed twice`:     writeCheckpoint(t, `{"weight_map":{"a":"m-1.safetensors","a":"m-2.safetensors"}}`, shards),
		"no weight_map":                  writeCheckpoint(t, `{}`, shards),
		"weight_map is empty":            writeCheckpoint(t, `{"weight_map":{}}`, shards),
		"JSON is cut short":              writeCheckpoint(t, `{"weight_map":`, shards),
		"no safetensors file":            t.TempDir(),
		`tensor "a" is also in`:          writeCheckpoint(t, "", map[string][]Named{"1.safetensors": {{"a", x}}, "2.safetensors": {{"a", x}}}),
	} {
		_, err := OpenDir(dir)
		require.ErrorContains(t, err, want)
	}
	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pytorch_model.bin"), nil, 0o644))
	_, err = OpenDir(dir)
	require.ErrorContains(t, err, "only pickled weights (pytorch_model.bin)")
}

// Everything that does not fit is in one list; a tied weight is found under any of its names.
func TestBind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.safetensors")
	require.NoError(t, WriteSafetensors(path, []Named{
		{"embed.weight", tensor.FromFloats(tensor.Make(tensor.F32, 2), []float64{1, 2})},
		{"half", tensor.Zeros(tensor.Make(tensor.F16, 2))}, {"long", tensor.Zeros(tensor.Make(tensor.F32, 3))}, {"both", tensor.Zeros(tensor.Make(tensor.F16, 3))}}))
	src, err := Open(path)
	require.NoError(t, err)
	defer src.Close()
	f32 := tensor.Make(tensor.F32, 2)
	want := func(name string, names ...string) Want {
		return Want{Names: names, Expr: weight.Tensor{Name: name, T: f32}}
	}

	found, err := Bind(src, []Want{want("embed.weight"), want("lm_head.weight", "lm_head.weight", "embed.weight")})
	require.NoError(t, err)
	require.Equal(t, "embed.weight", found[1].Name)
	x, err := found[1].Load()
	require.NoError(t, err)
	require.Equal(t, []float64{1, 2}, x.Floats())

	_, err = Bind(src, []Want{want("embed.weight"), want("half"), want("long"), want("both"), want("gone", "gone.too"), {Expr: weight.Const{Digest: "d", T: f32}}})
	var list diag.List
	require.ErrorAs(t, err, &list)
	require.Len(t, list, 5)
	for _, text := range []string{`tensor "half" has dtype f16, wanted f32`, `tensor "long" has shape [3], wanted [2]`, `tensor "both" is f16[3], wanted f32[2]`,
		`no tensor "gone", wanted f32[2]`, `["gone.too"] are not there either`, `const("d") is no tensor of a checkpoint`} {
		require.ErrorContains(t, err, text)
	}
	_, err = Lookup(src, weight.Tensor{Name: "embed.weight", T: f32})
	require.NoError(t, err)
}

// The files that torch's own safetensors wrote.
func TestSafetensorsCases(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(cases(t), "first", "*", "*.safetensors"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, p := range paths {
		s, err := OpenSafetensors(p)
		require.NoError(t, err)
		for _, n := range s.Names() {
			_, err := s.Load(n)
			require.NoError(t, err)
		}
		require.NoError(t, s.Close())
	}
}
