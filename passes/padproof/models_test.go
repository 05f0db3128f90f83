package padproof

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/frontend/pt2"
	"tpuc/frontend/weights"
	"tpuc/ir"
	"tpuc/ir/eval"
	"tpuc/ir/tensor"
)

// TestModels looks for proofs over all archives with symbolic dimensions of the shared cases, and holds every one to the evaluator: inputs
// filled up with NaN and with 1e30 must give the small program's outputs to the bit.
func TestModels(t *testing.T) {
	dir := os.Getenv("TPUC_CASES")
	if dir == "" {
		t.Skip("TPUC_CASES names no folder of cases")
	}
	paths, err := filepath.Glob(filepath.Join(dir, "first", "*", "model.pt2"))
	require.NoError(t, err)
	zoo, err := filepath.Glob(filepath.Join(dir, "zoo", "*", "model.pt2.gz"))
	require.NoError(t, err)
	proofs, refusals := 0, 0
	for _, path := range append(paths, zoo...) {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			p := openProgram(t, path)
			defer p.Close()
			for _, s := range p.Symbols {
				small, err := p.Hints()
				if err != nil {
					t.Skipf("no example sizes: %v", err)
				}
				large := make(pt2.Binding)
				for k, v := range small {
					large[k] = v
				}
				large[s.Name] = min(small[s.Name]+3, s.Max)
				l, err := p.Import(t.Context(), large)
				if err != nil {
					t.Logf("%s=%d: %v", s.Name, large[s.Name], err)
					continue
				}
				m, err := p.Import(t.Context(), small)
				require.NoError(t, err)
				if err := Prove(l.Module, m.Module); err != nil {
					refusals++
					t.Logf("%s (%s): refused: %v", s.Name, strings.Join(s.Where, ", "), err)
					continue
				}
				proofs++
				t.Logf("%s (%s): proved from %d to %d", s.Name, strings.Join(s.Where, ", "), small[s.Name], large[s.Name])
				hold(t, l.Module, m.Module, p.Weights())
			}
		})
	}
	require.Positive(t, proofs)
	require.Positive(t, refusals)
	t.Logf("%d proofs, %d refusals", proofs, refusals)
}

// openProgram opens an archive, gzipped or not.
func openProgram(t *testing.T, path string) *pt2.Program {
	t.Helper()
	if strings.HasSuffix(path, ".gz") {
		f, err := os.Open(path)
		require.NoError(t, err)
		defer f.Close()
		z, err := gzip.NewReader(f)
		require.NoError(t, err)
		path = filepath.Join(t.TempDir(), "model.pt2")
		out, err := os.Create(path)
		require.NoError(t, err)
		_, err = io.Copy(out, z)
		require.NoError(t, err)
		require.NoError(t, out.Close())
	}
	p, err := pt2.Open(t.Context(), path)
	require.NoError(t, err)
	return p
}

// hold evaluates both programs.
func hold(t *testing.T, large, small *ir.Module, archive *weights.Archive) {
	t.Helper()
	o := eval.Options{Weights: func(w *ir.Weight) (*tensor.Tensor, error) {
		if w.Data != nil {
			return w.Data, nil
		}
		return weights.Lookup(archive, w.Source)
	}}
	require.NoError(t, compare(large, small, 1, o))
}
