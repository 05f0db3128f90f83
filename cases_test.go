package tpuc_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc"
	"tpuc/internal/compare"
	"tpuc/tpu/artifact"
	"tpuc/tpu/chip"
	"tpuc/tpu/plugin"
)

// modelCase is a model with inputs and torch's outputs, in a folder as the shared cases describe them.
type modelCase struct {
	name, model, dir string
}

// firstCases are the models that everything rests on, raw and decomposed.
func firstCases(root string) []modelCase {
	var out []modelCase
	for _, n := range []string{"mlp", "mlp_dynamic", "llama_prefill", "llama_prefill_dynamic", "qwen3_decode", "bert", "vit",
		"autoencoderkl_decoder", "qwen3_moe_prefill_batched_mm"} {
		dir := filepath.Join(root, "first", n)
		out = append(out, modelCase{n + "/raw", filepath.Join(dir, "model.pt2"), dir}, modelCase{n + "/decomposed", filepath.Join(dir, "decomposed.pt2"), dir})
	}
	dir := filepath.Join(root, "zoo", "gemma2__static_decode")
	return append(out, modelCase{"gemma2__static_decode", filepath.Join(dir, "model.pt2.gz"), dir})
}

// calls are the case's files, a call each, compared at the case's tolerance.
func (c modelCase) calls(t *testing.T) tpuc.CallOptions {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(c.dir, "case.json"))
	require.NoError(t, err)
	var about struct {
		Tolerance struct {
			RelToMax float64 `json:"rel_to_max"`
		} `json:"tolerance"`
	}
	require.NoError(t, json.Unmarshal(data, &about))
	require.Positive(t, about.Tolerance.RelToMax)
	o := tpuc.CallOptions{Tolerance: &compare.Tolerance{RelToMax: about.Tolerance.RelToMax}}
	for i := 1; ; i++ {
		suffix := ""
		if i > 1 {
			suffix = fmt.Sprintf("_%d", i)
		}
		file := func(kind string) string { return filepath.Join(c.dir, kind+suffix+".safetensors") }
		if _, err := os.Stat(file("inputs")); errors.Is(err, os.ErrNotExist) {
			break
		}
		o.Inputs = append(o.Inputs, file("inputs"))
		o.Expected = append(o.Expected, file("outputs"))
		for _, kind := range []string{"buffers_after", "inputs_after"} {
			if _, err := os.Stat(file(kind)); err == nil {
				o.ExpectedState = append(o.ExpectedState, file(kind))
			}
		}
	}
	require.NotEmpty(t, o.Inputs)
	return o
}

// equal demands that every output and piece of state of the caller's calls equals torch's.
func (c modelCase) equal(t *testing.T, caller tpuc.Caller, calls *tpuc.Calls) {
	t.Helper()
	r, err := calls.Run(t.Context(), caller)
	if r != nil && err != nil {
		_ = r.Write(os.Stderr)
	}
	require.NoError(t, err)
	for _, call := range r.Calls {
		require.NotEmpty(t, call.Compared)
		require.Empty(t, call.NotCompared)
	}
}

// TestCasesOnCPU compiles the models for the CPU and compares their calls with torch's.
func TestCasesOnCPU(t *testing.T) {
	root := needCases(t)
	needPlugin(t, plugin.CPU)
	for _, c := range firstCases(root) {
		t.Run(c.name, func(t *testing.T) {
			calls, err := tpuc.OpenCalls(c.calls(t))
			require.NoError(t, err)
			defer calls.Close()
			m, err := tpuc.Open(t.Context(), c.model, tpuc.OpenOptions{Shapes: calls.Shapes(nil), CrashDir: t.TempDir()})
			require.NoError(t, err)
			defer m.Close()
			s, err := m.Session(t.Context())
			require.NoError(t, err)
			c.equal(t, s, calls)
		})
	}
}

// TestCasesOnEvaluator compares the reference evaluator with torch, on the models that it runs in a few seconds.
func TestCasesOnEvaluator(t *testing.T) {
	root := needCases(t)
	for _, c := range firstCases(root) {
		t.Run(c.name, func(t *testing.T) {
			calls, err := tpuc.OpenCalls(c.calls(t))
			require.NoError(t, err)
			defer calls.Close()
			m, err := tpuc.Load(t.Context(), c.model, calls.Shapes(nil))
			require.NoError(t, err)
			e, err := tpuc.NewEvaluator(m, "")
			require.NoError(t, err)
			defer e.Close()
			c.equal(t, e, calls)
		})
	}
}

// TestCasesForTPU compiles the models for one v6e chip, twice: the artifacts are equal byte for byte.
func TestCasesForTPU(t *testing.T) {
	root := needCases(t)
	needPlugin(t, plugin.TPU)
	target, err := chip.Parse("v6e:1x1")
	require.NoError(t, err)
	for _, c := range firstCases(root) {
		t.Run(c.name, func(t *testing.T) {
			calls, err := tpuc.OpenCalls(c.calls(t))
			require.NoError(t, err)
			defer calls.Close()
			var first []byte
			for i := range 2 {
				file := filepath.Join(t.TempDir(), "model.tpuc")
				_, err := tpuc.Compile(t.Context(), c.model, tpuc.CompileOptions{Target: target, Shapes: calls.Shapes(nil), Output: file, CrashDir: t.TempDir()})
				require.NoError(t, err)
				a, err := artifact.Open(file)
				require.NoError(t, err)
				require.NoError(t, a.Close())
				data, err := os.ReadFile(file)
				require.NoError(t, err)
				if i == 0 {
					first = data
				}
				require.True(t, string(first) == string(data), "two compiles of one model differ")
			}
		})
	}
}
