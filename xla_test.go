package tpuc_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"tpuc/frontend/stablehlo"
	"tpuc/tpu/plugin"
)

// Modules that torch_xla and torchax wrote of models of torch, and JAX of programs with what surrounds computations, with what the exporter's own programs
// give: testdata/xla/cases.zip, from tools/cases/xla_export.py.

func unpackXLA(t *testing.T) (string, []string) {
	t.Helper()
	dir, names := unpackCases(t, filepath.Join("testdata", "xla", "cases.zip"))
	count := make(map[string]int)
	for _, name := range names {
		for _, exporter := range []string{"jax_", "torchax_", "torch_xla_"} {
			if strings.HasPrefix(name, exporter) {
				count[exporter]++
			}
		}
	}
	require.Equal(t, map[string]int{"jax_": 22, "torchax_": 57, "torch_xla_": 55}, count)
	return dir, names
}

// TestXLAOnEvaluator demands the exporters' outputs of every case but those that are listed.
func TestXLAOnEvaluator(t *testing.T) {
	dir, names := unpackXLA(t)
	evaluateCases(t, dir, len(names), opaqueXLA)
}

// TestXLAOnCPU compiles all cases and compares every output with the exporter's.
func TestXLAOnCPU(t *testing.T) {
	needPlugin(t, plugin.CPU)
	dir, names := unpackXLA(t)
	runJAXOnCPU(t, dir, "model.mlir", names)
}

// opaqueXLA are the cases with operations that the IR has no word for, which compile but are not evaluated.
var opaqueXLA = []string{
	"jax_program_eigh", "jax_program_fft_3d", "jax_program_key_rbg", "jax_program_key_unsafe_rbg", "jax_program_qr", "jax_program_special", "jax_program_svd",
	"torch_xla_lazy_determinant", "torch_xla_lazy_random", "torch_xla_lazy_train",
}

// TestXLARefused demands of texts that cannot be compiled that the error says what to do.
func TestXLARefused(t *testing.T) {
	const fixed, oneDevice, pure = "sizes are fixed where the text is made", "export without shard_map", "export without jax.debug, pure_callback and io_callback"
	want := map[string]string{
		"torch_xla/dynamic.mlir": fixed, "torch_xla/dynamic_reshape.mlir": fixed, "jax/symbolic.mlir": fixed, "jax/symbolic_constraint.mlir": fixed,
		"torch_xla/quantised.mlir":       "not quantised: store integers and scales apart",
		"torch_xla/custom_operator.mlir": "leave the operator out of custom_ops_allowed_in_graph",
		"jax/shard_map.mlir":             oneDevice,
		"jax/callback.mlir":              pure, "jax/print.mlir": pure, "jax/print_ordered.mlir": "side effects in an order are not supported",
		"jax/lapack.mlir": `lowering_platforms=("tpu",)`,
	}
	a, err := txtar.ParseFile(filepath.Join("testdata", "xla", "refused.txtar"))
	require.NoError(t, err)
	require.Len(t, a.Files, len(want))
	for _, f := range a.Files {
		_, err := stablehlo.Import(f.Name, f.Data)
		require.ErrorContains(t, err, want[f.Name], f.Name)
		require.Equal(t, 1, strings.Count(err.Error(), "wanted"), "one mistake is one error: %v", err)
	}
}
