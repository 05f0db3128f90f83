package tpuc_test

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc"
	"tpuc/tpu/artifact"
	"tpuc/tpu/chip"
	"tpuc/tpu/plugin"
)

// mustEqual are the cases of first that everything rests on. The others may be refused, but never differ or fail.
var mustEqual = regexp.MustCompile(`^first/(mlp|mlp_dynamic|llama_prefill|llama_prefill_dynamic|qwen3_decode|bert|vit|autoencoderkl_decoder|gemma3_prefill|` +
	`gemma4_prefill|hfgen_\w+|qwen3_moe_prefill_batched_mm|qwenimage_transformer|svd_unsupported|versions)/|^gemma2__static_decode/`)

// firstCases are all of first, and one decode step of the zoo with its state.
func firstCases(t *testing.T) []tpuc.Case {
	t.Helper()
	root := needCases(t)
	cases, err := tpuc.FindCases([]string{filepath.Join(root, "first"), filepath.Join(root, "zoo", "gemma2__static_decode")})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(cases), 48)
	return cases
}

// equalTorch runs the cases and demands that every output and piece of state of those in mustEqual equals torch's.
func equalTorch(t *testing.T, o tpuc.SuiteOptions) {
	t.Helper()
	o.Jobs, o.CrashDir = runtime.NumCPU(), t.TempDir()
	r, err := tpuc.RunCases(t.Context(), firstCases(t), o)
	require.NoError(t, err)
	for _, c := range r.Cases {
		t.Run(c.ID(), func(t *testing.T) {
			if c.Status == tpuc.StatusRefused && !mustEqual.MatchString(c.ID()) {
				t.Skip(c.Message)
			}
			require.Equal(t, tpuc.StatusOK, c.Status, c.Message)
			require.Equal(t, c.Expected, len(c.Calls) == 0)
			for _, call := range c.Calls {
				require.NotEmpty(t, call.Compared)
				require.Empty(t, call.NotCompared)
			}
		})
	}
}

// TestCasesOnCPU compiles the models for the CPU and compares their calls with torch's.
func TestCasesOnCPU(t *testing.T) {
	needCases(t)
	needPlugin(t, plugin.CPU)
	equalTorch(t, tpuc.SuiteOptions{})
}

// TestCasesOnEvaluator compares the reference evaluator with torch.
func TestCasesOnEvaluator(t *testing.T) {
	needCases(t)
	equalTorch(t, tpuc.SuiteOptions{Evaluate: true})
}

// TestSweep compares the reference evaluator with torch over all shared models and samples of operators: what is refused is refused for what it is, and
// nothing differs, fails or panics.
func TestSweep(t *testing.T) {
	root := needCases(t)
	for _, sweep := range []struct {
		folder string
		least  float64 // share of the cases that are equal
	}{{"zoo", 0.98}, {"ops", 0.99}} {
		t.Run(sweep.folder, func(t *testing.T) {
			cases, err := tpuc.FindCases([]string{filepath.Join(root, sweep.folder)})
			require.NoError(t, err)
			r, err := tpuc.RunCases(t.Context(), cases, tpuc.SuiteOptions{Evaluate: true, Jobs: runtime.NumCPU(), CrashDir: t.TempDir()})
			require.NoError(t, err)
			for _, c := range r.Cases {
				if c.Status != tpuc.StatusOK && c.Status != tpuc.StatusRefused {
					t.Errorf("%s: %s: %s", c.ID(), c.Status, c.Message)
				}
			}
			t.Logf("%d of %d ok", r.Counts[tpuc.StatusOK], len(cases))
			require.GreaterOrEqual(t, float64(r.Counts[tpuc.StatusOK]), sweep.least*float64(len(cases)))
		})
	}
}

// TestCasesForTPU compiles the models for one v6e chip, twice: the artifacts are equal byte for byte.
func TestCasesForTPU(t *testing.T) {
	needCases(t)
	needPlugin(t, plugin.TPU)
	target, err := chip.Parse("v6e:1x1")
	require.NoError(t, err)
	twice := []string{"mlp", "mlp_dynamic", "llama_prefill", "llama_prefill_dynamic", "qwen3_decode", "bert", "vit", "autoencoderkl_decoder", "qwen3_moe_prefill_batched_mm", "gemma2__static_decode"}
	for _, c := range firstCases(t) {
		if !slices.Contains(twice, filepath.Base(c.Name)) {
			continue
		}
		t.Run(c.ID(), func(t *testing.T) {
			calls, err := tpuc.OpenCalls(tpuc.CallOptions{Inputs: []string{c.Calls[0].Inputs}})
			require.NoError(t, err)
			defer calls.Close()
			var first []byte
			for i := range 2 {
				file := filepath.Join(t.TempDir(), "model.tpuc")
				_, err := tpuc.Compile(t.Context(), c.Model, tpuc.CompileOptions{Target: target, Shapes: calls.Shapes(nil), Output: file, CrashDir: t.TempDir()})
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
