package pt2_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/frontend/pt2"
	"tpuc/frontend/weights"
	"tpuc/internal/compare"
	"tpuc/ir"
	"tpuc/ir/eval"
	"tpuc/ir/tensor"
)

// casesDir is the folder of test cases that TPUC_CASES names.
func casesDir(t testing.TB) string {
	dir := os.Getenv("TPUC_CASES")
	if dir == "" {
		t.Skip("TPUC_CASES is not set: it names the folder of test cases")
	}
	_, err := os.Stat(filepath.Join(dir, "INDEX.tsv"))
	require.NoError(t, err, "TPUC_CASES is set, but holds no cases")
	return dir
}

// caseInfo is what a test reads of case.json.
type caseInfo struct {
	Calls     int `json:"calls"`
	Tolerance struct {
		RelToMax float64 `json:"rel_to_max"`
	} `json:"tolerance"`
}

// tensors reads a safetensors file of a case; nil if it does not exist.
func tensors(t testing.TB, path string) map[string]*tensor.Tensor {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	f, err := weights.OpenSafetensors(path)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	out := make(map[string]*tensor.Tensor)
	for _, n := range f.Names() {
		out[n], err = f.Load(n)
		require.NoError(t, err)
	}
	return out
}

// run is one archive with its calls.
type run struct {
	path   string                   // of the archive, without .gz
	file   func(kind string) string // of "inputs", "outputs_2", ...
	calls  int
	tol    compare.Tolerance
	state  map[string]*tensor.Tensor // by weight symbol, after the calls so far
	module *pt2.Imported
}

// caseRun is the run of a case folder.
func caseRun(t *testing.T, dir, model string) *run {
	data, err := os.ReadFile(filepath.Join(dir, "case.json"))
	require.NoError(t, err)
	data = regexp.MustCompile(`: (-?Infinity|NaN)`).ReplaceAll(data, []byte(": null")) // as Python writes them
	var info caseInfo
	require.NoError(t, json.Unmarshal(data, &info))
	return &run{path: filepath.Join(dir, model), calls: max(info.Calls, 1), tol: compare.Tolerance{RelToMax: info.Tolerance.RelToMax},
		file: func(kind string) string { return filepath.Join(dir, kind+".safetensors") }}
}

// do opens and imports the archive, runs all its calls in the evaluator with the state carried over, and compares outputs, state
// and changed inputs. The error is that of opening or importing; differences fail the test.
func (r *run) do(t *testing.T) error {
	path := r.path
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		path += ".gz"
	}
	p, err := pt2.Open(context.Background(), path)
	if err != nil {
		return err
	}
	t.Cleanup(func() { p.Close() })
	r.state = make(map[string]*tensor.Tensor)
	for call := 1; call <= r.calls; call++ {
		suffix := ""
		if call > 1 {
			suffix = fmt.Sprintf("_%d", call)
		}
		inputs, shapes := r.inputs(t, p, suffix)
		bound, err := p.BindShapes(shapes)
		if err != nil {
			return err
		}
		if r.module == nil || fmt.Sprint(r.module.Binding) != fmt.Sprint(bound) {
			if r.module, err = p.Import(context.Background(), bound); err != nil {
				return err
			}
			require.NoError(t, ir.Verify(r.module.Module))
		}
		got, err := eval.Run(r.module.Module, inputs, eval.Options{Weights: func(w *ir.Weight) (*tensor.Tensor, error) {
			if x, ok := r.state[w.Sym]; ok {
				return x, nil
			}
			return p.Weights().Load(w.Names[0])
		}})
		require.NoError(t, err)
		r.checkOutputs(t, suffix, got.Outputs)
		r.checkUpdates(t, suffix, got.Updates)
	}
	return nil
}

// inputs are the tensor inputs of a call with their shapes.
func (r *run) inputs(t *testing.T, p *pt2.Program, suffix string) (inputs []*tensor.Tensor, shapes [][]int64) {
	in := tensors(t, r.file("inputs"+suffix))
	for _, leaf := range p.Inputs {
		if leaf.Kind == pt2.Tensor {
			x := in[fmt.Sprintf("input_%d", leaf.Ordinal)]
			require.NotNil(t, x, "call%s has no input_%d (%s)", suffix, leaf.Ordinal, leaf.Name)
			inputs, shapes = append(inputs, x), append(shapes, x.Dims)
		}
	}
	return inputs, shapes
}

func (r *run) checkOutputs(t *testing.T, suffix string, got []*tensor.Tensor) {
	want := tensors(t, r.file("outputs"+suffix))
	n := 0
	for _, leaf := range r.module.Outputs {
		name := fmt.Sprintf("output_%d", leaf.Ordinal)
		w, ok := want[name]
		if !ok {
			continue
		}
		n++
		if leaf.Kind == pt2.Number { // a size, saved as a 0-d integer
			require.Equal(t, fmt.Sprint(w.Ints()[0]), leaf.Value, "%s", name)
			continue
		}
		require.GreaterOrEqual(t, leaf.Index, 0, "%s is no tensor", name)
		c := compare.Compare(got[leaf.Index], w, r.tol)
		require.True(t, c.OK, "call%s %s (%s): %s", suffix, name, leaf.Path, show(c))
	}
	require.Equal(t, len(want), n, "outputs of the model")
}

// checkUpdates compares updates with buffers_after and inputs_after, and carries buffers over to the next call.
func (r *run) checkUpdates(t *testing.T, suffix string, updates []*tensor.Tensor) {
	buffers, ins := tensors(t, r.file("buffers_after"+suffix)), tensors(t, r.file("inputs_after"+suffix))
	checked := 0
	for i, u := range r.module.Module.Func.Updates {
		if w := u.Target.Weight; w != nil {
			r.state[w.Sym] = updates[i]
			for _, name := range w.Names {
				if want := find(buffers, name); want != nil {
					checked++
					c := compare.Compare(updates[i], want, r.tol)
					require.True(t, c.OK, "call%s state %s: %s", suffix, name, show(c))
				}
			}
			continue
		}
		for _, leaf := range r.module.Inputs {
			want := ins[fmt.Sprintf("input_%d", leaf.Ordinal)]
			if leaf.Name == u.Target.Name && want != nil {
				c := compare.Compare(updates[i], want, r.tol)
				require.True(t, c.OK, "call%s input %s afterwards: %s", suffix, leaf.Name, show(c))
			}
		}
	}
	if len(buffers) > 0 {
		require.Positive(t, checked, "state of the model is checked")
	}
}

// find looks a buffer up; a wrapper may add a prefix to the names in the archive.
func find(buffers map[string]*tensor.Tensor, name string) *tensor.Tensor {
	if x := buffers[name]; x != nil {
		return x
	}
	for _, k := range slices.Sorted(maps.Keys(buffers)) {
		if strings.HasSuffix(name, "."+k) {
			return buffers[k]
		}
	}
	return nil
}

func TestFirstCases(t *testing.T) {
	dir := casesDir(t)
	for _, name := range []string{"mlp", "mlp_dynamic", "llama_prefill", "llama_prefill_dynamic", "qwen3_decode", "bert", "vit",
		"autoencoderkl_decoder", "qwen3_moe_prefill_batched_mm"} {
		for _, model := range []string{"model.pt2", "decomposed.pt2"} {
			t.Run(name+"/"+model, func(t *testing.T) {
				require.NoError(t, caseRun(t, filepath.Join(dir, "first", name), model).do(t))
			})
		}
	}
	t.Run("gemma2__static_decode", func(t *testing.T) {
		require.NoError(t, caseRun(t, filepath.Join(dir, "zoo", "gemma2__static_decode"), "model.pt2").do(t))
	})
}

// TestVersions reads one module as six versions of torch saved it, in three containers and two major versions of the schema.
func TestVersions(t *testing.T) {
	dir := filepath.Join(casesDir(t), "first", "versions")
	files, err := filepath.Glob(filepath.Join(dir, "*.pt2"))
	require.NoError(t, err)
	require.Len(t, files, 11)
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			require.NoError(t, caseRun(t, dir, filepath.Base(f)).do(t))
		})
	}
}

// TestOldArchives reads that module as torch 2.5, 2.7 and 2.8 saved it.
func TestOldArchives(t *testing.T) {
	dir := filepath.Join("..", "..", "testdata", "archives")
	for _, name := range []string{"old_2.5.1", "old_2.7.1.decomp", "old_2.8.0"} {
		t.Run(name, func(t *testing.T) {
			r := &run{path: filepath.Join(dir, name+".pt2"), calls: 1, tol: compare.Tolerance{RelToMax: 2e-5},
				file: func(kind string) string { return filepath.Join(dir, kind+".safetensors") }}
			require.NoError(t, r.do(t))
		})
	}
}

// show is a comparison for a failure's message.
func show(r compare.Result) string {
	data, err := json.Marshal(r)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
