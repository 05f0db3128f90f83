package pt2_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/frontend/pt2"
	"tpuc/ir"
	"tpuc/ir/diag"
	"tpuc/ir/op"
	"tpuc/ir/weight"
)

// The archives in testdata/cases are made by tools/cases/defs.py, which says what each is about.
// Those named ops_ are samples of torch's own op database (torch.testing._internal.opinfo), exported without stack traces.
const testdata = "../../testdata"

// TestModels runs the small real models of the repository.
func TestModels(t *testing.T) {
	for _, name := range []string{"mlp", "mlp_dynamic", "llama_prefill", "qwen3_decode"} {
		for _, model := range archives(t, filepath.Join(testdata, "models", name)) {
			t.Run(name+"/"+model, func(t *testing.T) {
				require.NoError(t, caseRun(t, filepath.Join(testdata, "models", name), model).do(t))
			})
		}
	}
}

// TestRows runs every made case but the ones that must be refused, raw and decomposed.
func TestRows(t *testing.T) {
	dirs, err := os.ReadDir(filepath.Join(testdata, "cases"))
	require.NoError(t, err)
	n := 0
	for _, d := range dirs {
		if d.Name() == "E1" || d.Name() == "E2" || d.Name() == "E3" {
			continue
		}
		for _, model := range archives(t, filepath.Join(testdata, "cases", d.Name())) {
			n++
			t.Run(d.Name()+"/"+model, func(t *testing.T) {
				require.NoError(t, caseRun(t, filepath.Join(testdata, "cases", d.Name()), model).do(t))
			})
		}
	}
	require.GreaterOrEqual(t, n, 20)
}

// archives lists the archives of a case folder, without .gz.
func archives(t *testing.T, dir string) []string {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		if name := strings.TrimSuffix(e.Name(), ".gz"); strings.HasSuffix(name, ".pt2") {
			out = append(out, name)
		}
	}
	return out
}

// load opens a made case.
func load(t *testing.T, name string) *pt2.Program { return loadForm(t, name, "model.pt2") }

// loadForm opens one of a case's archives.
func loadForm(t *testing.T, name, model string) *pt2.Program {
	p, err := pt2.Open(context.Background(), filepath.Join(testdata, "cases", name, model+".gz"))
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

// imported imports a made case without symbols.
func imported(t *testing.T, name string) *pt2.Imported {
	m, err := load(t, name).Import(context.Background(), nil)
	require.NoError(t, err)
	return m
}

// eachForm runs a check on a made case without symbols, raw and decomposed.
func eachForm(t *testing.T, name string, check func(t *testing.T, m *pt2.Imported)) {
	for _, model := range []string{"model.pt2", "decomposed.pt2"} {
		t.Run(model, func(t *testing.T) {
			m, err := loadForm(t, name, model).Import(context.Background(), nil)
			require.NoError(t, err)
			check(t, m)
		})
	}
}

// T1: a matrix under two names is one weight.
func TestTied(t *testing.T) {
	eachForm(t, "T1", func(t *testing.T, m *pt2.Imported) {
		require.Len(t, m.Module.Weights, 1)
		require.ElementsMatch(t, []string{"embed.weight", "lm_head.weight"}, m.Module.Weights[0].Names)
		require.Equal(t, ir.Parameter, m.Module.Weights[0].Class)
		require.Equal(t, m.Module.Weights[0].Names[0], m.Module.Weights[0].Source.(weight.Tensor).Name)
	})
}

// T5: a small constant of forward is a literal, and no weight.
func TestLifted(t *testing.T) {
	eachForm(t, "T5", func(t *testing.T, m *pt2.Imported) {
		require.Empty(t, m.Module.Weights)
		require.True(t, slices.ContainsFunc(m.Module.Func.Body, func(n *ir.Node) bool {
			return op.Constant.Is(n) && slices.Equal(op.Constant.Attr(n).Value.Floats(), []float64{1, 2})
		}))
	})
}

// T6: inputs keep their order and names; one that is not used is an input all the same.
func TestOrder(t *testing.T) {
	eachForm(t, "T6", func(t *testing.T, m *pt2.Imported) {
		var names, paths []string
		for i, leaf := range m.Inputs {
			names, paths = append(names, leaf.Name), append(paths, leaf.Path)
			require.Equal(t, i, leaf.Ordinal)
			require.Equal(t, i, leaf.Index)
			require.Equal(t, leaf.Name, m.Module.Func.Params[i].Name)
		}
		require.Equal(t, []string{"a", "b", "shift", "unused", "scale"}, names)
		require.Equal(t, []string{"[0][0]", "[0][1]", "[1]['shift']", "[1]['unused']", "[1]['scale']"}, paths)
	})
}

// T8: a written buffer is state with an update; a written input is updated too, and is not an output by itself.
func TestState(t *testing.T) {
	eachForm(t, "T8_cache", func(t *testing.T, m *pt2.Imported) {
		var targets []string
		for _, u := range m.Module.Func.Updates {
			if w := u.Target.Weight; w != nil {
				require.True(t, w.Mutable)
				targets = append(targets, w.Class.String()+" "+w.Names[0])
			} else {
				targets = append(targets, "input "+u.Target.Name)
			}
		}
		require.ElementsMatch(t, []string{"constant k", "buffer v", "input mine"}, targets)
		require.Len(t, m.Module.Func.Results, 3)
		for _, leaf := range m.Inputs {
			require.Equal(t, leaf.Name == "mine", leaf.Updated >= 0, leaf.Name)
		}
	})
}

// R4: inputs that share a symbol must agree; the error names both dimensions.
func TestSharedSymbol(t *testing.T) {
	p := load(t, "R4")
	require.Len(t, p.Symbols, 1)
	sym := p.Symbols[0]
	require.Equal(t, []string{"x.0", "y.0"}, sym.Where)

	_, err := p.BindShapes([][]int64{{4, 3}, {5, 3}, {8, 3}})
	require.ErrorContains(t, err, "dimension y.0 is 5, wanted "+sym.Name+" = 4")
	require.ErrorContains(t, err, "4 by x.0")

	_, err = p.BindShapes([][]int64{{4, 3}, {4, 3}, {9, 3}})
	require.ErrorContains(t, err, "dimension z.0 is 9, wanted 2*"+sym.Name+" = 8")

	_, err = p.BindShapes([][]int64{{4, 3}, {4, 3}})
	require.ErrorContains(t, err, "2 input tensors, wanted 3")

	_, err = p.BindShapes([][]int64{{4}, {4, 3}, {8, 3}})
	require.ErrorContains(t, err, "input x has rank 1, wanted 2")

	b, err := p.BindShapes([][]int64{{7, 3}, {7, 3}, {14, 3}})
	require.NoError(t, err)
	require.Equal(t, pt2.Binding{sym.Name: 7}, b)
}

// R5: ranges and fixed dimensions.
func TestRange(t *testing.T) {
	p := load(t, "R4")
	sym := p.Symbols[0].Name
	require.Equal(t, "2 or more", p.Symbols[0].Range())

	_, err := p.Bind(map[string]int64{sym: 1})
	require.ErrorContains(t, err, "is 1, wanted 2 or more")

	_, err = p.Bind(map[string]int64{"x.0": 1})
	require.ErrorContains(t, err, "dimension x.0 ("+sym+") is 1, wanted 2 or more")

	_, err = p.Bind(map[string]int64{"x.0": 4, "x.1": 5})
	require.ErrorContains(t, err, "dimension x.1 is set to 5, but the export fixed it to 3")

	_, err = p.BindShapes([][]int64{{4, 5}, {4, 3}, {8, 3}})
	require.ErrorContains(t, err, "input x dimension 1 is 5, wanted 3: the export fixed it")

	_, err = p.Bind(map[string]int64{"batch": 4})
	require.ErrorContains(t, err, `no symbolic dimension "batch"`)
	require.ErrorContains(t, err, sym+" (x.0, y.0) may be 2 or more")

	_, err = p.Bind(nil)
	require.ErrorContains(t, err, "--dim "+sym+"=4")

	_, err = p.Bind(map[string]int64{"z.0": 9})
	require.ErrorContains(t, err, "which 2*"+sym+" cannot be")

	for _, dims := range []map[string]int64{{sym: 5}, {"x.0": 5}, {"z.0": 10}, {"x.0": 5, "x.1": 3}} {
		b, err := p.Bind(dims)
		require.NoError(t, err, "%v", dims)
		require.Equal(t, pt2.Binding{sym: 5}, b)
	}
	b, err := p.Hints()
	require.NoError(t, err)
	require.Equal(t, pt2.Binding{sym: 4}, b)
}

// E1: all unsupported operators come in one list, with layer, line, source text, types and counts.
func TestUnsupported(t *testing.T) {
	_, err := load(t, "E1").Import(context.Background(), nil)
	require.True(t, pt2.IsUnsupported(err), "%v", err)
	var list diag.List
	require.ErrorAs(t, err, &list)
	text := err.Error()
	for _, want := range []string{
		"operator torch.ops.aten.linalg_eig.default is not supported",
		"operator torch.ops.aten.linalg_svd.default is not supported",
		"operator torch.ops.aten.linalg_ldl_factor.default is not supported",
		"defs.py:185: third.inner.inner.0: ", "\n    y = self.fn(x)\n",
		"note: arguments (self: f32[3,3]",
	} {
		require.Contains(t, text, want)
	}
	for _, e := range list {
		require.NotEmpty(t, e.Loc.Layer)
		require.Positive(t, e.Loc.Line)
	}
	require.NotRegexp(t, `/(srv|opt)/`, text) // no path of the machine that exported it
}

// E2: what depends on how many elements the data chooses is refused where that shows, with what to write instead.
func TestSizesByData(t *testing.T) {
	_, err := load(t, "E2").Import(context.Background(), nil)
	require.True(t, pt2.IsUnsupported(err), "%v", err)
	text := err.Error()
	for _, want := range []string{
		"sizes.py:101: operator torch.ops.aten.index.Tensor is not supported: the shape of an output of the model depends on the data",
		"operator torch.ops.aten.sort.default is not supported: it reads elements whose number depends on the data",
		"operator torch.ops.aten.matmul.default is not supported: it reads elements whose number depends on the data",
		"operator torch.ops.aten.repeat_interleave.self_Tensor is not supported: its result's shape depends on the data of argument repeats",
		"keep all elements and choose with torch.where(mask, a, b)", "give output_size as a number",
	} {
		require.Contains(t, text, want)
	}
}

// E3: random numbers are refused where a result depends on them; operators_unread holds such that nothing reads.
func TestRandomNumbers(t *testing.T) {
	_, err := load(t, "E3").Import(context.Background(), nil)
	require.True(t, pt2.IsUnsupported(err), "%v", err)
	for _, want := range []string{
		"operator torch.ops.aten.rand_like.default is not supported: it draws random numbers",
		"operator torch.ops.aten.normal_.default is not supported: it draws random numbers", "make them an input",
	} {
		require.Contains(t, err.Error(), want)
	}
}

// Every node of a real model knows its layer and line.
func TestLocations(t *testing.T) {
	p, err := pt2.Open(context.Background(), filepath.Join(testdata, "models", "llama_prefill", "model.pt2"))
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	m, err := p.Import(context.Background(), nil)
	require.NoError(t, err)
	found := false
	for _, n := range m.Module.Func.Body {
		if op.Constant.Is(n) && n.Loc == nil {
			continue // a lifted constant comes from no line
		}
		require.NotNil(t, n.Loc)
		if n.Loc.Source == "down_proj = self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))" && op.Linear.Is(n) {
			found = found || n.Loc.File == "transformers/models/llama/modeling_llama.py" && strings.HasSuffix(n.Loc.Layer, "layers.0.mlp.down_proj")
		}
	}
	require.True(t, found, "the projection of layer 0 at its line in the model's source")
}

// What is no archive of torch 2.9 or later is refused with a reason.
func TestNotAnArchive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.pt2")
	for _, data := range []string{"", "PK", "hello", strings.Repeat("\x00", 4096)} {
		require.NoError(t, os.WriteFile(path, []byte(data), 0o600))
		_, err := pt2.Open(context.Background(), path)
		require.Error(t, err)
	}
	_, err := pt2.Open(context.Background(), filepath.Join(t.TempDir(), "missing.pt2"))
	require.True(t, errors.Is(err, os.ErrNotExist), "%v", err)
}
