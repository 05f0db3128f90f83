package tpuc_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc"
	"tpuc/ir"
	"tpuc/ir/tensor"
	"tpuc/tpu/plugin"
)

// Rows of public fault reports that need an archive made for them; docs/testing.md lists where each row is tested.

// edited writes an archive of testdata/cases with replacements in its JSON and other contents for the entries whose names end so.
func edited(t *testing.T, name string, json *strings.Replacer, contents map[string][]byte) string {
	t.Helper()
	entries := unzip(t, uncompressed(t, filepath.Join("testdata", "cases", name, "model.pt2.gz")))
	for i, e := range entries {
		if strings.HasSuffix(e.name, ".json") {
			entries[i].data = []byte(json.Replace(string(e.data)))
		}
		for suffix, data := range contents {
			if strings.HasSuffix(e.name, suffix) {
				entries[i].data = data
			}
		}
	}
	path := filepath.Join(t.TempDir(), name+".pt2")
	require.NoError(t, os.WriteFile(path, zipOf(t, entries, 64), 0o600))
	return path
}

// K1: a table of 64 MB that forward makes is an argument of the program, whose text stays small, and is computed with.
func TestLargeConstant(t *testing.T) {
	const n = 16 << 20
	numbers := make([]float64, n)
	for i := range numbers {
		numbers[i] = float64(i % 1000)
	}
	table := tensor.FromFloats(tensor.Make(tensor.F32, n), numbers)
	x := tensor.FromFloats(tensor.Make(tensor.F32, 1, n), numbers)
	path := edited(t, "T5", strings.NewReplacer(`{"as_int": 2}`, `{"as_int": `+strconv.Itoa(n)+`}`), map[string][]byte{"constants/tensor_0": table.Data})
	var text bytes.Buffer
	r, err := tpuc.Compile(t.Context(), path, tpuc.CompileOptions{To: tpuc.PhaseLower, Text: &text, CrashDir: t.TempDir()})
	require.NoError(t, err)
	require.Less(t, text.Len(), 1<<20)
	require.Equal(t, tpuc.Tensors{Count: 1, Bytes: 4 * n}, r.Constants)

	lib := needPlugin(t, plugin.CPU)
	m, err := tpuc.Open(t.Context(), path, tpuc.OpenOptions{Plugin: plugin.Options{Library: lib.Path}, CrashDir: t.TempDir()})
	require.NoError(t, err)
	defer m.Close()
	s, err := m.Session(t.Context())
	require.NoError(t, err)
	defer s.Close()
	out, err := s.Call(t.Context(), []*tensor.Tensor{x})
	require.NoError(t, err)
	for i, v := range out[0].Floats() {
		if v != 2*numbers[i] {
			t.Fatalf("element %d is %v, wanted %v", i, v, 2*numbers[i])
		}
	}
}

// T13: an extreme over no elements is an error, as it is in torch; a sum is 0 (in the case itself).
func TestExtremeOverNothing(t *testing.T) {
	for _, op := range []string{"amax.default", "amin.default"} {
		path := edited(t, "T13", strings.NewReplacer("torch.ops.aten.prod.dim_int", "torch.ops.aten."+op), nil)
		_, err := tpuc.Load(t.Context(), path, tpuc.Shapes{})
		require.ErrorContains(t, err, "over no elements of f32[0,4]")
		require.ErrorContains(t, err, "defs.py:155")
	}
	m, err := tpuc.Load(t.Context(), edited(t, "T13", strings.NewReplacer(), nil), tpuc.Shapes{})
	require.NoError(t, err)
	require.NoError(t, ir.Verify(m.Module))
	require.NoError(t, m.Close())
}
