package pt2_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/frontend/pt2"
	"tpuc/frontend/weights"
	"tpuc/ir"
	"tpuc/ir/tensor"
	"tpuc/ir/text"
)

// unlocated is the module's text without the files and lines of locations, which a reduced archive leaves out.
func unlocated(m *ir.Module) string {
	for _, f := range m.Functions() {
		for _, n := range f.Body {
			if n.Loc != nil {
				loc := *n.Loc
				loc.File, loc.Line, loc.Source = "", 0, ""
				n.Loc = &loc
			}
		}
	}
	return text.Print(m)
}

// An import of the reduced archive is the same module, whatever the layout of the archive, and holds no weight.
func TestReduced(t *testing.T) {
	dir := casesDir(t)
	var paths []string
	for _, pattern := range []string{
		dir + "/first/*/model.pt2", dir + "/first/*/decomposed.pt2", dir + "/first/versions/*.pt2", dir + "/zoo/*static_decode*/model.pt2.gz",
		dir + "/zoo/*dyn_b*/model.pt2.gz", dir + "/headline/llama*_2layer.pt2.gz", filepath.Join("..", "..", "testdata", "archives", "*.pt2.gz"),
	} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		paths = append(paths, found...)
	}
	compared := 0
	for _, path := range paths {
		p, err := pt2.Open(t.Context(), path)
		if err != nil {
			continue // other tests say which archives can be opened
		}
		t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) {
			defer p.Close()
			bound, _, err := p.BindOrExample(nil)
			require.NoError(t, err)
			im, err := p.Import(t.Context(), bound)
			if err != nil {
				t.Skip("it is not supported")
			}
			compared++
			data, err := p.Reduce(nil)
			require.NoError(t, err)
			again, err := p.Reduce(nil)
			require.NoError(t, err)
			require.True(t, bytes.Equal(data, again))
			require.NotContains(t, string(data), "stack_trace")

			// Constants may be elsewhere.
			constants := make(map[string]*tensor.Tensor)
			external, err := p.Reduce(func(string) bool { return true })
			require.NoError(t, err)
			for _, name := range p.Weights().Names() {
				if sum, err := p.Weights().Digest(name); err == nil {
					constants[sum], err = p.Weights().Load(name)
					require.NoError(t, err)
				}
			}
			find := func(sum string, typ tensor.Type) (*tensor.Tensor, error) {
				x := constants[sum]
				if x == nil {
					return nil, fmt.Errorf("no constant %s", sum)
				}
				return tensor.New(typ, x.Data)
			}
			for _, reduced := range [][]byte{data, external} {
				q, err := pt2.OpenReduced(t.Context(), "graph", reduced, find)
				require.NoError(t, err)
				require.Equal(t, p.Symbols, q.Symbols)
				require.Equal(t, p.Weights().Identity(), q.Weights().Identity())
				got, err := q.Import(t.Context(), bound)
				require.NoError(t, err)
				for i, w := range im.Module.Weights {
					v := got.Module.Weights[i]
					require.Equal(t, w.Source, v.Source)
					require.Equal(t, w.Names, v.Names)
					require.Equal(t, w.Data, v.Data)
					if w.Class == ir.Parameter {
						_, err := q.Weights().Load(w.Names[0])
						require.ErrorIs(t, err, weights.ErrAbsent)
					}
				}
				require.True(t, unlocated(im.Module) == unlocated(got.Module), "the modules differ")
			}
		})
	}
	require.Greater(t, compared, 40)
}

// What a user's own operators compute goes with the graph.
func TestReducedCustomOps(t *testing.T) {
	p, err := pt2.Open(t.Context(), filepath.Join("..", "..", "testdata", "custom", "mixed", "model.pt2.gz"))
	require.NoError(t, err)
	defer p.Close()
	p.SetCustomOps(&pt2.CustomOps{Text: "func @a::b() {}\n"})
	data, err := p.Reduce(nil)
	require.NoError(t, err)
	q, err := pt2.OpenReduced(t.Context(), "graph", data, nil)
	require.NoError(t, err)
	ops, err := q.Weights().CustomOps()
	require.NoError(t, err)
	require.Equal(t, "func @a::b() {}\n", string(ops))
}
