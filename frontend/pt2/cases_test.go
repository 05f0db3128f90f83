package pt2_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	Expect string `json:"expect"`
}

// open finds model in a case folder, plain or gzipped.
func open(t testing.TB, dir, model string) *pt2.Program {
	path := filepath.Join(dir, model)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		path += ".gz"
	}
	p, err := pt2.Open(context.Background(), path)
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

// tensors reads a safetensors file of a case; nil if it does not exist.
func tensors(t testing.TB, dir, name string) map[string]*tensor.Tensor {
	path := filepath.Join(dir, name)
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

// runCase imports a case's model, runs all its calls in the evaluator with the state carried over, and compares outputs and state.
func runCase(t *testing.T, dir, model string) {
	data, err := os.ReadFile(filepath.Join(dir, "case.json"))
	require.NoError(t, err)
	var info caseInfo
	require.NoError(t, json.Unmarshal(data, &info))
	p := open(t, dir, model)
	state := make(map[string]*tensor.Tensor) // by weight symbol
	var last *pt2.Imported
	for call := 1; call <= max(info.Calls, 1); call++ {
		suffix := ""
		if call > 1 {
			suffix = fmt.Sprintf("_%d", call)
		}
		in := tensors(t, dir, "inputs"+suffix+".safetensors")
		require.NotNil(t, in, "inputs of call %d", call)
		var inputs []*tensor.Tensor
		var shapes [][]int64
		for _, leaf := range p.Inputs {
			if leaf.Kind == pt2.Tensor {
				x := in[fmt.Sprintf("input_%d", leaf.Ordinal)]
				require.NotNil(t, x, "input_%d (%s)", leaf.Ordinal, leaf.Name)
				inputs = append(inputs, x)
				shapes = append(shapes, x.Dims)
			}
		}
		bound, err := p.BindShapes(shapes)
		require.NoError(t, err)
		if last == nil || fmt.Sprint(last.Binding) != fmt.Sprint(bound) {
			last, err = p.Import(context.Background(), bound)
			require.NoError(t, err)
			require.NoError(t, ir.Verify(last.Module))
		}
		got, err := eval.Run(last.Module, inputs, eval.Options{Weights: func(w *ir.Weight) (*tensor.Tensor, error) {
			if x, ok := state[w.Sym]; ok {
				return x, nil
			}
			return p.Weights().Load(w.Names[0])
		}})
		require.NoError(t, err)
		checkOutputs(t, dir, suffix, last, got.Outputs, compare.Tolerance{RelToMax: info.Tolerance.RelToMax})
		checkState(t, dir, suffix, last, got.Updates, compare.Tolerance{RelToMax: info.Tolerance.RelToMax}, state)
	}
}

func checkOutputs(t *testing.T, dir, suffix string, m *pt2.Imported, got []*tensor.Tensor, tol compare.Tolerance) {
	want := tensors(t, dir, "outputs"+suffix+".safetensors")
	n := 0
	for _, leaf := range m.Outputs {
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
		r := compare.Compare(got[leaf.Index], w, tol)
		require.True(t, r.OK, "call%s %s (%s): %s", suffix, name, leaf.Path, show(r))
	}
	require.Equal(t, len(want), n, "outputs of the model")
}

// checkState compares updates with buffers_after and inputs_after, and carries buffers over to the next call.
func checkState(t *testing.T, dir, suffix string, m *pt2.Imported, updates []*tensor.Tensor, tol compare.Tolerance, state map[string]*tensor.Tensor) {
	buffers, ins := tensors(t, dir, "buffers_after"+suffix+".safetensors"), tensors(t, dir, "inputs_after"+suffix+".safetensors")
	seen := make(map[string]bool)
	for i, u := range m.Module.Func.Updates {
		if w := u.Target.Weight; w != nil {
			state[w.Sym] = updates[i]
			for _, name := range w.Names {
				if want := find(buffers, name); want != nil {
					seen[name] = true
					r := compare.Compare(updates[i], want, tol)
					require.True(t, r.OK, "call%s state %s: %s", suffix, name, show(r))
				}
			}
			continue
		}
		for _, leaf := range m.Inputs {
			if leaf.Name == u.Target.Name {
				if want := ins[fmt.Sprintf("input_%d", leaf.Ordinal)]; want != nil {
					r := compare.Compare(updates[i], want, tol)
					require.True(t, r.OK, "call%s input %s afterwards: %s", suffix, leaf.Name, show(r))
				}
			}
		}
	}
	if buffers != nil {
		require.NotEmpty(t, seen, "state of the model is checked")
	}
}

// find looks a buffer up; a wrapper may add a prefix to the names in the archive.
func find(buffers map[string]*tensor.Tensor, name string) *tensor.Tensor {
	if x := buffers[name]; x != nil {
		return x
	}
	keys := make([]string, 0, len(buffers))
	for k := range buffers {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
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
			t.Run(name+"/"+model, func(t *testing.T) { runCase(t, filepath.Join(dir, "first", name), model) })
		}
	}
	t.Run("gemma2__static_decode", func(t *testing.T) { runCase(t, filepath.Join(dir, "zoo", "gemma2__static_decode"), "model.pt2") })
}

// show is a comparison for a failure's message.
func show(r compare.Result) string {
	data, err := json.Marshal(r)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
