package weights

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir/diag"
	"tpuc/ir/tensor"
)

// entry is a member of a zip made for a test.
type entry struct {
	name     string
	data     []byte
	deflated bool
	mode     fs.FileMode
}

func zipBytes(t testing.TB, entries []entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Store}
		if e.deflated {
			h.Method = zip.Deflate
		}
		if e.mode != 0 {
			h.SetMode(e.mode)
		}
		w, err := z.CreateHeader(h)
		require.NoError(t, err)
		_, err = w.Write(e.data)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return b.Bytes()
}

func writeFile(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, data, 0o644))
	return path
}

// ints is the text of a list of SymInts.
func ints(v []int64) string {
	var parts []string
	for _, n := range v {
		parts = append(parts, fmt.Sprintf(`{"as_int": %d}`, n))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// meta is an entry of an index: dtype, layout and the view.
func meta(path string, dtype int, dims, strides []int64, offset int64) string {
	return fmt.Sprintf(`{"path_name": %q, "is_param": true, "use_pickle": false, "tensor_meta": {"dtype": %d, "sizes": %s, "requires_grad": false,
		"device": {"type": "cpu", "index": null}, "strides": %s, "storage_offset": {"as_int": %d}, "layout": 7}}`, path, dtype, ints(dims), ints(strides), offset)
}

// archiveOf is a minimal archive: a graph that nobody reads, the index of weights and the storages.
func archiveOf(config string, storages ...entry) []entry {
	out := []entry{{name: "r/models/model.json", data: []byte("{}")}, {name: "r/archive_format", data: []byte("pt2")}, {name: "r/byteorder", data: []byte("little")}}
	for _, s := range storages {
		s.name = "r/data/weights/" + s.name
		out = append(out, s)
	}
	return append(out, entry{name: "r/data/weights/model_weights_config.json", data: []byte(`{"config": {` + config + `}}`)})
}

func openArchive(t testing.TB, entries []entry) *Archive {
	t.Helper()
	a, err := OpenArchive(writeFile(t, "a.pt2", zipBytes(t, entries)))
	require.NoError(t, err)
	t.Cleanup(func() { a.Close() })
	return a
}

// f32s is the storage 0, 1, 2, ... in f32.
func f32s(n int) []byte {
	v := make([]float64, n)
	for i := range v {
		v[i] = float64(i)
	}
	return tensor.FromFloats(tensor.Make(tensor.F32, int64(n)), v).Data
}

// Views give the numbers that torch gives: element i of a dense storage holds i, so the value read is the place read.
func TestViews(t *testing.T) {
	for _, tc := range []struct {
		name          string
		dims, strides []int64
		offset        int64
		aliases       bool
	}{
		{"contiguous", []int64{3, 4}, []int64{4, 1}, 0, true},
		{"offset", []int64{3, 4}, []int64{4, 1}, 10, true},
		{"transposed", []int64{4, 8}, []int64{1, 4}, 0, false},
		{"channels last", []int64{2, 3, 3, 3}, []int64{27, 1, 9, 3}, 5, false},
		{"sliced columns", []int64{5, 3}, []int64{10, 1}, 2, false},
		{"sliced rows with a step", []int64{3, 10}, []int64{20, 1}, 10, false},
		{"expanded", []int64{4, 5}, []int64{0, 1}, 3, false},
		{"expanded scalar", []int64{2, 2}, []int64{0, 0}, 7, false},
		{"scalar", nil, nil, 9, true},
		{"extent one with any stride", []int64{1, 4}, []int64{99, 1}, 0, true},
		{"empty", []int64{0, 4}, []int64{7, 9}, 3, true},
		{"every second", []int64{6}, []int64{2}, 1, false},
		{"overlapping windows", []int64{4, 3}, []int64{1, 1}, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := openArchive(t, archiveOf(`"w": `+meta("weight_0", 7, tc.dims, tc.strides, tc.offset), entry{name: "weight_0", data: f32s(100)}))
			x, err := a.Load("w")
			require.NoError(t, err)
			var want []float64
			index := make([]int64, len(tc.dims))
			for range x.Elements() {
				at := tc.offset
				for i, n := range index {
					at += n * tc.strides[i]
				}
				want = append(want, float64(at))
				for i := len(index) - 1; i >= 0; i-- {
					if index[i]++; index[i] < tc.dims[i] {
						break
					}
					index[i] = 0
				}
			}
			require.Equal(t, append([]float64{}, want...), x.Floats())
			if tc.aliases && len(x.Data) > 0 {
				storage, err := a.Entry("data/weights/weight_0")
				require.NoError(t, err)
				require.Same(t, &storage[4*tc.offset], &x.Data[0], "a dense view is the mapping itself")
			}
		})
	}
}

func TestViewOfOtherSizes(t *testing.T) {
	data := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	a := openArchive(t, archiveOf(`"b": `+meta("s", 1, []int64{2, 2}, []int64{1, 2}, 0)+`, "h": `+meta("s", 13, []int64{2, 2}, []int64{1, 2}, 0)+
		`, "c": `+meta("s", 10, []int64{2}, []int64{1}, 0), entry{name: "s", data: data}))
	x, err := a.Load("b")
	require.NoError(t, err)
	require.Equal(t, []byte{1, 3, 2, 4}, x.Data)
	x, err = a.Load("h")
	require.NoError(t, err)
	require.Equal(t, []byte{1, 2, 5, 6, 3, 4, 7, 8}, x.Data)
	require.Equal(t, tensor.BF16, x.DType)
	x, err = a.Load("c")
	require.NoError(t, err)
	require.Equal(t, data, x.Data)
}

// hostileViews are views of a storage of 100 floats that are refused.
var hostileViews = []struct {
	name          string
	dims, strides []int64
	offset        int64
	want          string
}{
	{"too long", []int64{101}, []int64{1}, 0, "reads element 100, wanted below 100"},
	{"offset past the end", []int64{1}, []int64{1}, 100, "reads element 100"},
	{"far offset", []int64{0}, []int64{1}, 101, "storage offset 101, wanted between 0 and 100"},
	{"negative offset", []int64{1}, []int64{1}, -1, "storage offset -1"},
	{"negative stride", []int64{2}, []int64{-1}, 5, "stride -1 of dimension 0"},
	{"negative extent", []int64{-2}, []int64{1}, 0, "dimension 0 is -2"},
	{"overflow of the stride", []int64{3}, []int64{math.MaxInt64}, 0, "overflows"},
	{"overflow of the sum", []int64{2, 2}, []int64{math.MaxInt64, math.MaxInt64}, 0, "overflows"},
	{"overflow of the offset", []int64{2}, []int64{math.MaxInt64 - 1}, 5, "overflows"},
	{"overflow of the shape", []int64{1 << 40, 1 << 40}, []int64{0, 0}, 0, "more bytes than an int64 holds"},
	{"expanded without end", []int64{1 << 40}, []int64{0}, 0, "repeats a storage of 400 bytes"},
	{"ranks differ", []int64{1, 1}, []int64{1}, 0, "not all numbers of one rank"},
}

// Views that reach outside of their storage, or would need absurd memory, are refused when the archive is opened; the others stay readable.
func TestHostileViews(t *testing.T) {
	for _, tc := range hostileViews {
		t.Run(tc.name, func(t *testing.T) {
			a := openArchive(t, archiveOf(`"bad": `+meta("s", 7, tc.dims, tc.strides, tc.offset)+`, "good": `+meta("s", 7, []int64{2}, []int64{1}, 0), entry{name: "s", data: f32s(100)}))
			_, err := a.Load("bad")
			require.ErrorContains(t, err, `tensor "bad": `)
			require.ErrorContains(t, err, tc.want)
			_, err = a.Load("good")
			require.NoError(t, err)
		})
	}
}

func TestUnsupportedTensors(t *testing.T) {
	for _, tc := range []struct{ name, config, want string }{
		{"pickled", `"w": {"path_name": "s", "is_param": true, "use_pickle": true, "tensor_meta": null}`, "pickled Python object"},
		{"sparse", strings.Replace(`"w": `+meta("s", 7, []int64{2}, []int64{1}, 0), `"layout": 7`, `"layout": 1`, 1), "layout sparse_coo (1), wanted strided"},
		{"mkldnn", strings.Replace(`"w": `+meta("s", 7, []int64{2}, []int64{1}, 0), `"layout": 7`, `"layout": 6`, 1), "layout mkldnn (6)"},
		{"complex32", `"w": ` + meta("s", 9, []int64{2}, []int64{1}, 0), "complex32 is not supported"},
		{"unknown dtype", `"w": ` + meta("s", 77, []int64{2}, []int64{1}, 0), "number 77 is unknown"},
		{"symbolic size", strings.Replace(`"w": `+meta("s", 7, []int64{2}, []int64{1}, 0), `"as_int": 2`, `"as_expr": {"expr_str": "s0"}`, 1), "not all numbers"},
		{"no storage", `"w": ` + meta("gone", 7, []int64{2}, []int64{1}, 0), `entry "data/weights/gone", is not in the archive`},
		{"a path", `"w": ` + meta("../weights/s", 7, []int64{2}, []int64{1}, 0), "is not in the archive"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := openArchive(t, archiveOf(tc.config, entry{name: "s", data: f32s(4)}))
			_, err := a.Load("w")
			require.ErrorContains(t, err, `tensor "w": `)
			require.ErrorContains(t, err, tc.want)
			var d *diag.Error
			require.ErrorAs(t, err, &d)
			require.NotEmpty(t, d.Code)
		})
	}
	t.Run("compressed storage", func(t *testing.T) {
		a := openArchive(t, archiveOf(`"w": `+meta("s", 7, []int64{2}, []int64{1}, 0), entry{name: "s", data: f32s(4), deflated: true}))
		_, err := a.Load("w")
		require.ErrorContains(t, err, "is compressed")
	})
	t.Run("unknown name", func(t *testing.T) {
		a := openArchive(t, archiveOf(``))
		_, err := a.Load("w")
		require.ErrorIs(t, err, ErrNoTensor)
	})
}

// A model saved without weights has empty storages, which all tensors share: they are absent, and not tied.
func TestAbsent(t *testing.T) {
	a := openArchive(t, archiveOf(`"a": `+meta("s", 7, []int64{4096, 4096}, []int64{4096, 1}, 0)+`, "b": `+meta("s", 7, []int64{2}, []int64{1}, 0)+
		`, "empty": `+meta("s", 7, []int64{0}, []int64{1}, 0), entry{name: "s"}))
	for _, s := range a.Tensors()[:2] {
		require.True(t, s.Absent)
		require.Empty(t, s.View())
		_, err := a.Load(s.Name)
		require.ErrorIs(t, err, ErrAbsent)
	}
	typ, err := a.Type("a")
	require.NoError(t, err)
	require.Equal(t, "f32[4096,4096]", typ.String())
	x, err := a.Load("empty")
	require.NoError(t, err)
	require.Empty(t, x.Data)
}

// Tied weights are one view under two names, and have one digest.
func TestTied(t *testing.T) {
	a := openArchive(t, archiveOf(`"lm_head.weight": `+meta("s", 7, []int64{4}, []int64{1}, 0)+`, "embed.weight": `+meta("s", 7, []int64{4}, []int64{1}, 0)+
		`, "part": `+meta("s", 7, []int64{4}, []int64{1}, 4), entry{name: "s", data: f32s(8)}))
	ts := a.Tensors()
	require.Equal(t, []string{"lm_head.weight", "embed.weight", "part"}, a.Names(), "in the index's order")
	require.Equal(t, ts[0].View(), ts[1].View())
	require.NotEqual(t, ts[0].View(), ts[2].View())
	require.Equal(t, ts[0].Storage, ts[2].Storage)
	d0, err := a.Digest("lm_head.weight")
	require.NoError(t, err)
	d1, err := a.Digest("embed.weight")
	require.NoError(t, err)
	require.Equal(t, d0, d1)
	require.Len(t, d0, 64)
	d2, err := a.Digest("part")
	require.NoError(t, err)
	require.NotEqual(t, d0, d2)
}

// containerFaults are archives that are refused.
func containerFaults() []containerFault {
	good := archiveOf(`"w": `+meta("s", 7, []int64{2}, []int64{1}, 0), entry{name: "s", data: f32s(4)})
	rooted := func(names ...string) []entry {
		var out []entry
		for _, n := range names {
			out = append(out, entry{name: n, data: []byte("x")})
		}
		return out
	}
	return []containerFault{
		{"entry twice", slices.Concat(good, []entry{{name: "r/data/weights/s", data: f32s(4)}}), `"r/data/weights/s" is there twice`},
		{"two folders", slices.Concat(good, []entry{{name: "q/x"}}), `"q/x" is outside of the folder "r"`},
		{"name twice", archiveOf(`"w": `+meta("s", 7, []int64{2}, []int64{1}, 0)+`,"w": `+meta("s", 7, []int64{1}, []int64{1}, 0), entry{name: "s", data: f32s(4)}), `["w"] are there twice`},
		{"bad index", archiveOf(`"w": 3`), `tensor "w"`},
		{"index cut short", archiveOf(`"w": {`), "model_weights_config.json"},
		{"torch 2.7 with bad weights", rooted("serialized_exported_program.json", "serialized_state_dict.pt"), `entry "serialized_state_dict.pt": zip`},
		{"torch 2.8 with bad weights", rooted("r/models/model.json", "r/data/weights/model.pt"), "wanted a file of torch.save"},
		{"a way out", slices.Concat(good, []entry{{name: "r/../../etc/passwd"}}), "leads out of the archive"},
		{"an absolute name", slices.Concat(good, []entry{{name: "/r/x"}}), "leads out of the archive"},
		{"a Windows name", slices.Concat(good, []entry{{name: `r\x`}}), "leads out of the archive"},
		{"a link", slices.Concat(good, []entry{{name: "r/data/weights/l", data: []byte("/etc/passwd"), mode: fs.ModeSymlink | 0o777}}), "is a symbolic link"},
		{"a bomb", []entry{{name: "r/models/model.json", data: make([]byte, 64<<20), deflated: true}, {name: "r/byteorder", data: make([]byte, 64<<20), deflated: true}}, "inflates from"},
		{"inductor", rooted("r/data/aotinductor/model/x.so"), "AOTInductor package"},
		{"torch.save", rooted("archive/data.pkl", "archive/data/0"), "torch.save or TorchScript"},
		{"some zip", rooted("a/b.txt"), "wanted a torch.export archive"},
		{"two models", rooted("r/models/a.json", "r/models/b.json"), "2 models (a, b)"},
		{"big endian", []entry{{name: "r/models/model.json"}, {name: "r/byteorder", data: []byte("big")}}, `byteorder is "big", wanted "little"`},
		{"later version", []entry{{name: "r/models/model.json"}, {name: "r/archive_version", data: []byte("1")}}, `archive_version is "1", wanted "0"`},
		{"no entries", nil, "without entries"},
	}
}

type containerFault struct {
	name    string
	entries []entry
	want    string
}

func TestContainerFaults(t *testing.T) {
	good := archiveOf(`"w": `+meta("s", 7, []int64{2}, []int64{1}, 0), entry{name: "s", data: f32s(4)})
	for _, tc := range containerFaults() {
		t.Run(tc.name, func(t *testing.T) {
			path := writeFile(t, "a.pt2", zipBytes(t, tc.entries))
			_, err := OpenArchive(path)
			require.ErrorContains(t, err, tc.want)
			require.ErrorContains(t, err, path)
		})
	}
	for _, data := range [][]byte{nil, []byte("x"), []byte("PK\x03\x04"), zipBytes(t, good)[:200]} {
		_, err := OpenArchive(writeFile(t, "a.pt2", data))
		require.ErrorContains(t, err, "wanted a torch.export archive")
	}
	_, err := OpenArchive(t.TempDir())
	require.ErrorContains(t, err, "wanted a regular file")
	_, err = OpenArchive(filepath.Join(t.TempDir(), "none.pt2"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestEntry(t *testing.T) {
	entries := archiveOf("")
	entries = append(entries, entry{name: "r/extra/big.txt", data: bytes.Repeat([]byte("abc"), 1000), deflated: true})
	data := zipBytes(t, entries)
	a := openArchive(t, entries)
	require.Equal(t, "r", a.Root())
	require.Equal(t, "model", a.Model())
	got, err := a.Entry("models/model.json")
	require.NoError(t, err)
	require.Equal(t, "{}", string(got))
	got, err = a.Entry("extra/big.txt")
	require.NoError(t, err)
	require.Len(t, got, 3000)
	_, err = a.Entry("none")
	require.ErrorContains(t, err, `no entry "none"`)

	i := bytes.Index(data, []byte("{}"))
	data[i] = '['
	bad, err := OpenArchive(writeFile(t, "bad.pt2", data))
	require.NoError(t, err)
	defer bad.Close()
	_, err = bad.Entry("models/model.json")
	require.ErrorContains(t, err, `models/model.json" is damaged: CRC-32`)
}

func TestGzip(t *testing.T) {
	data := zipBytes(t, archiveOf(`"w": `+meta("s", 7, []int64{2, 2}, []int64{2, 1}, 0), entry{name: "s", data: f32s(4)}))
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(data)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	a, err := OpenArchive(writeFile(t, "a.pt2.gz", b.Bytes()))
	require.NoError(t, err)
	defer a.Close()
	x, err := a.Load("w")
	require.NoError(t, err)
	require.Equal(t, []float64{0, 1, 2, 3}, x.Floats())

	_, err = OpenArchive(writeFile(t, "cut.pt2.gz", b.Bytes()[:b.Len()/2]))
	require.ErrorContains(t, err, "gzip: after ")
}

// cases is the folder of test cases, or skips.
func cases(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("TPUC_CASES")
	if dir == "" {
		t.Skip("TPUC_CASES is not set")
	}
	_, err := os.Stat(dir)
	require.NoError(t, err, "TPUC_CASES")
	return dir
}

// Archives that torch made: all tensors of every version can be loaded, weight-free ones say so.
func TestCases(t *testing.T) {
	dir := cases(t)
	paths, err := filepath.Glob(filepath.Join(dir, "first", "*", "*.pt2"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, p := range paths {
		a, err := OpenArchive(p)
		require.NoError(t, err, p)
		require.True(t, a.HasEntry(a.Graph()), p)
		for _, s := range a.Tensors() {
			x, err := a.LoadStored(s)
			require.NoError(t, err, p)
			require.Equal(t, s.Type.Bytes(), int64(len(x.Data)))
		}
		require.NoError(t, a.Close())
	}
	a, err := OpenArchive(filepath.Join(dir, "headline", "llama31_8b_decode_b8_kv4096_2layer.pt2.gz"))
	require.NoError(t, err)
	defer a.Close()
	s, err := a.Find(a.Names()[0])
	require.NoError(t, err)
	require.True(t, s.Absent)
}

// A storage that was changed is found by its checksum, by all that look at it.
func TestCheck(t *testing.T) {
	contents := []byte("the storage!")
	data := zipBytes(t, archiveOf(`"w": `+meta("weight_0", 7, []int64{3}, []int64{1}, 0), entry{name: "weight_0", data: contents}))
	a, err := ReadArchive("whole.pt2", data)
	require.NoError(t, err)
	require.NoError(t, a.Check(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, a.Check(ctx), context.Canceled)

	data[bytes.Index(data, contents)+5] ^= 1
	a, err = ReadArchive("flipped.pt2", data)
	require.NoError(t, err)
	require.ErrorContains(t, a.Check(t.Context()), `flipped.pt2: entry "r/data/weights/weight_0" is damaged: CRC-32 is`)
	_, err = a.Load("w")
	require.ErrorContains(t, err, `entry "r/data/weights/weight_0" is damaged`)
}
