package weights

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/internal/mmap"
	"tpuc/ir/diag"
)

// unzip reads the entries of a stored archive, so that a test may change one.
func unzip(t testing.TB, data []byte) []entry {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	var out []entry
	for _, f := range z.File {
		r, err := f.Open()
		require.NoError(t, err)
		b, err := io.ReadAll(r)
		require.NoError(t, err)
		out = append(out, entry{name: f.Name, data: b})
	}
	return out
}

// pickledArchive is the bytes of an archive under testdata/archives, all of one small module.
func pickledArchive(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "archives", name+".pt2.gz"))
	require.NoError(t, err)
	m, err := inflate(data)
	require.NoError(t, err)
	defer m.Close()
	return slices.Clone(m.Data)
}

// The three containers of pickled weights hold the same module: storages shared between names, a transposed view, four dtypes.
func TestPickled(t *testing.T) {
	want := map[string]string{"fc1.weight": "f32[16,8]", "fc1.bias": "f32[16]", "fc2.weight": "f32[4,16]", "fc2.bias": "f32[4]",
		"count": "i64[]", "bf": "bf16[4]", "np_buf": "f32[4]", "c": "f32[4]"}
	var sums []map[string]string
	for _, name := range []string{"old_2.5.1", "old_2.7.1.decomp", "old_2.8.0"} {
		t.Run(name, func(t *testing.T) {
			a, err := OpenArchive(writeFile(t, "a.pt2", pickledArchive(t, name)))
			require.NoError(t, err)
			defer a.Close()
			digests := make(map[string]string)
			for fqn, typ := range want {
				s, err := a.Find(fqn)
				require.NoError(t, err)
				require.NoError(t, s.Err)
				require.Equal(t, typ, s.Type.String(), fqn)
				require.Equal(t, strings.HasPrefix(fqn, "fc"), s.IsParam, fqn)
				require.Equal(t, fqn == "np_buf" || fqn == "c", s.Section == "constants", fqn)
				digests[fqn], err = a.Digest(fqn)
				require.NoError(t, err)
			}
			sums = append(sums, digests)
			s, err := a.Find("fc2.weight")
			require.NoError(t, err)
			require.Equal(t, []int64{1, 4}, s.Strides)
			require.False(t, s.Contiguous())
			if tied, err := a.Find("tied"); err == nil {
				fc1, err := a.Find("fc1.weight")
				require.NoError(t, err)
				require.Equal(t, fc1.View(), tied.View())
			}
			graph, err := a.Entry(a.Graph())
			require.NoError(t, err)
			require.Contains(t, string(graph), "schema_version")
		})
	}
	for _, s := range sums {
		require.Equal(t, sums[0], s)
	}
	_, first := openPickled(t, pickledArchive(t, "old_2.5.1"))
	_, second := openPickled(t, pickledArchive(t, "old_2.7.1.decomp"))
	require.NotEqual(t, first, second, "another checkpoint has another identity")
}

func openPickled(t testing.TB, data []byte) (*Archive, string) {
	a, err := readArchive("a.pt2", &mmap.File{Data: data})
	require.NoError(t, err)
	return a, a.Identity()
}

const state = "serialized_state_dict.pt"

// changePickled rewrites the entry of the weights of an archive of torch 2.5 by f.
func changePickled(t testing.TB, f func(inner []entry) []entry) []byte {
	outer := unzip(t, pickledArchive(t, "old_2.5.1"))
	i := slices.IndexFunc(outer, func(e entry) bool { return e.name == state })
	outer[i].data = zipBytes(t, f(unzip(t, outer[i].data)))
	return zipBytes(t, outer)
}

func edit(name string, f func(data []byte) []byte) func([]entry) []entry {
	return func(list []entry) []entry {
		for i := range list {
			if list[i].name == "archive/"+name {
				list[i].data = f(list[i].data)
			}
		}
		return list
	}
}

func replace(old, by string) func([]entry) []entry {
	return edit("data.pkl", func(b []byte) []byte { return bytes.Replace(b, []byte(old), []byte(by), 1) })
}

func without(name string) func([]entry) []entry {
	return func(list []entry) []entry {
		return slices.DeleteFunc(list, func(e entry) bool { return e.name == "archive/"+name })
	}
}

// pickledFaults are changes of the file of torch.save in an archive.
var pickledFaults = []struct {
	name   string
	change func([]entry) []entry
	tensor string // the tensor that is at fault; empty: the whole archive
	want   string
}{
	{"a call", replace("collections\nOrderedDict", "os\nsystem"), "", `global "os.system"`},
	{"pickle cut", edit("data.pkl", func(b []byte) []byte { return b[:len(b)/2] }), "", "does not end"},
	{"no pickle", without("data.pkl"), "", `no entry "data.pkl"`},
	{"big endian", edit("byteorder", func([]byte) []byte { return []byte("big") }), "", `is "big", wanted "little"`},
	{"two folders", func(l []entry) []entry { return append(l, entry{name: "x/y"}) }, "", "is outside of the folder"},
	{"no storage", without("data/2"), "fc1.weight", `"data/2" of entry "serialized_state_dict.pt", is not in the archive`},
	{"short storage", edit("data/2", func(b []byte) []byte { return b[:100] }), "fc1.weight", "has 100 bytes, wanted 128 elements"},
	{"empty storage", edit("data/2", func(b []byte) []byte { return nil }), "fc1.weight", "has 0 bytes"},
	{"key with a path", replace("X\x01\x00\x00\x002", "X\x09\x00\x00\x00../data/2"), "fc1.weight", "is not in the archive"},
	{"size", replace("K\x10K\x08\x86", "K\xffK\x08\x86"), "fc1.weight", "reads element"},
	{"negative size", replace("K\x10K\x08\x86", "J\xff\xff\xff\xffK\x08\x86"), "fc1.weight", "is -1"},
	{"rank", replace("K\x08K\x01\x86", "K\x01\x85"), "fc1.weight", "2 sizes with 1 strides"},
}

// Faults of the inner zip file and of the views in it are errors of the archive or of the tensor.
func TestPickledFaults(t *testing.T) {
	for _, c := range pickledFaults {
		t.Run(c.name, func(t *testing.T) {
			a, err := readArchive("a.pt2", &mmap.File{Data: changePickled(t, c.change)})
			if c.tensor == "" {
				require.ErrorContains(t, err, c.want)
				require.ErrorContains(t, err, "a.pt2")
				require.ErrorContains(t, err, state)
				return
			}
			require.NoError(t, err)
			_, err = a.Load(c.tensor)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, c.tensor)
			_, err = a.Load("fc2.bias")
			require.NoError(t, err, "the other tensors stay readable")
		})
	}
	t.Run("what to do", func(t *testing.T) {
		_, err := readArchive("a.pt2", &mmap.File{Data: changePickled(t, replace("torch._utils\n_rebuild_parameter", "torch._utils\n_rebuild_wrapper_subclass"))})
		var d *diag.Error
		require.ErrorAs(t, err, &d)
		require.Equal(t, "pt2/pickle", d.Code)
		require.Contains(t, d.Msg, "a tensor subclass: replace it by a plain tensor")
		require.NotEmpty(t, d.Notes)
	})
	t.Run("compressed weights", func(t *testing.T) {
		outer := unzip(t, pickledArchive(t, "old_2.5.1"))
		for i := range outer {
			outer[i].deflated = outer[i].name == state
		}
		_, err := readArchive("a.pt2", &mmap.File{Data: zipBytes(t, outer)})
		require.ErrorContains(t, err, "zip the archive again without compression")
	})
	t.Run("no weights", func(t *testing.T) {
		outer := unzip(t, pickledArchive(t, "old_2.5.1"))
		for i := range outer {
			if outer[i].name == state {
				outer[i].data = nil
			}
		}
		a, err := readArchive("a.pt2", &mmap.File{Data: zipBytes(t, outer)})
		require.NoError(t, err)
		require.Equal(t, []string{"c", "np_buf"}, a.Names())
	})
}
