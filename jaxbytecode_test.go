package tpuc_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"tpuc"
	"tpuc/frontend/stablehlo"
	"tpuc/internal/seeds"
	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/text"
	"tpuc/passes"
	"tpuc/tpu/plugin"
)

// The same modules as MLIR bytecode: testdata/jax/bytecode.tar.gz, from tools/cases/jax_bytecode.py.

// jaxBytecode gives the modules by form and by name of the case.
func jaxBytecode(t *testing.T) map[string]map[string][]byte {
	t.Helper()
	out := make(map[string]map[string][]byte)
	for _, m := range seeds.Bytecode(t) {
		if out[m.Form] == nil {
			out[m.Form] = make(map[string][]byte)
		}
		out[m.Form][m.Name] = m.Data
	}
	return out
}

// TestJAXBytecode demands of every form of a module what its text gives: to the letter where the bytecode holds the operations of the text, and after the
// passes where a portable artifact was made of them, which moves constants.
func TestJAXBytecode(t *testing.T) {
	dir, names := unpackJAX(t)
	forms := jaxBytecode(t)
	for _, form := range []string{"artifact", "builtin"} {
		require.Len(t, forms[form], len(names), form)
	}
	require.Greater(t, len(forms["0.9.0"]), 400)
	var differ []string
	for form, modules := range forms {
		for name, data := range modules {
			want, err := tpuc.Load(t.Context(), filepath.Join(dir, name, "model.mlir"), tpuc.Shapes{})
			require.NoError(t, err)
			got, err := stablehlo.Import("model.mlirbc", data)
			require.NoError(t, err, "%s %s", form, name)
			for i, p := range want.Inputs {
				require.Equal(t, p.Name, got.Inputs[i], "%s %s", form, name)
			}
			a, b := printed(t, want.Module, form), printed(t, got.Module, form)
			switch {
			case a == b:
			case form == "builtin":
				require.Empty(t, cmp.Diff(a, b), "%s %s", form, name)
			default:
				differ = append(differ, name)
			}
		}
	}
	slices.Sort(differ)
	require.Equal(t, rewrittenJAX, slices.Compact(differ), "cases whose artifacts are not what their texts are")
}

// printed is a module without what depends on the form alone: places in the file, and the text of operations that travel opaquely.
func printed(t *testing.T, m *ir.Module, form string) string {
	for _, f := range m.Functions() {
		for _, n := range f.Body {
			constant := op.Constant.Is(n) && form != "builtin" // equal ones become one
			if n.Loc != nil && (strings.HasPrefix(n.Loc.File, "model.mlir") || constant) {
				n.Loc = nil
			}
			if a, ok := n.Attr.(op.OpaqueAttr); ok {
				a.Text = a.Name
				n.Attr = a
			}
		}
	}
	if form != "builtin" {
		_, err := passes.Run(t.Context(), m, passes.Options{})
		require.NoError(t, err)
	}
	return text.Print(m)
}

// unpackJAXBytecode gives a folder of the cases whose models have a form, in that form.
func unpackJAXBytecode(t *testing.T, form string) string {
	dir, names := unpackJAX(t)
	modules := jaxBytecode(t)[form]
	for _, name := range names {
		if modules[name] == nil {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, name)))
			continue
		}
		require.NoError(t, os.Remove(filepath.Join(dir, name, "model.mlir")))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "model.mlirbc"), modules[name], 0o644))
	}
	return dir
}

// TestJAXBytecodeOnEvaluator demands JAX's outputs of portable artifacts, the newest and the oldest, but those with operations that travel opaquely: fewer
// than of the texts, because an artifact holds what operations of CHLO are made of.
func TestJAXBytecodeOnEvaluator(t *testing.T) {
	for form, n := range map[string]int{"artifact": 442, "0.9.0": 429} {
		t.Run(form, func(t *testing.T) {
			evaluateCases(t, unpackJAXBytecode(t, form), n, opaqueArtifacts)
		})
	}
}

// TestJAXBytecodeOnCPU compiles the artifacts with opaque operations, whose text the decoder has written.
func TestJAXBytecodeOnCPU(t *testing.T) {
	needPlugin(t, plugin.CPU)
	runJAXOnCPU(t, unpackJAXBytecode(t, "artifact"), "model.mlirbc", opaqueArtifacts)
}

// TestJAXBytecodeFiles takes bytecode by what is in the file, whatever its name.
func TestJAXBytecodeFiles(t *testing.T) {
	forms := jaxBytecode(t)
	require.Len(t, forms["export"], 5)
	for form, modules := range map[string]map[string][]byte{"artifact": forms["artifact"], "export": forms["export"]} {
		for name := range forms["export"] {
			file := filepath.Join(t.TempDir(), "anyname")
			require.NoError(t, os.WriteFile(file, modules[name], 0o644))
			m, err := tpuc.Load(t.Context(), file, tpuc.Shapes{})
			require.NoError(t, err, "%s %s", form, name)
			require.Equal(t, "stablehlo", m.Kind)
			s, err := tpuc.Inspect(t.Context(), file, tpuc.InspectOptions{})
			require.NoError(t, err)
			require.Equal(t, tpuc.KindStableHLO, s.Kind)
			r, err := tpuc.CheckModel(t.Context(), file, tpuc.CheckOptions{})
			require.NoError(t, err)
			require.Empty(t, r.Problems)
		}
	}
	for _, name := range []string{"net.mlirbc", "net.bytecode", "net.mlir"} {
		require.Equal(t, "net", tpuc.ModelName(name))
	}
	file := filepath.Join(t.TempDir(), "cut.mlirbc")
	require.NoError(t, os.WriteFile(file, []byte("ML\xefR\x0dStableHLO_v1.15.0\x00"), 0o644))
	_, err := tpuc.Load(t.Context(), file, tpuc.Shapes{})
	require.ErrorContains(t, err, fmt.Sprintf("%s: no section String, wanted one, at byte 23 of the file", file))
}

// opaqueArtifacts are the cases of opaqueJAX that are opaque as portable artifacts too.
var opaqueArtifacts = []string{
	"convert_bitcast_f32_u8", "elementwise_complex_parts", "index_scatter_apply", "linear_cholesky", "linear_conv_batch_groups", "linear_triangular_solve",
	"random_philox", "random_rng_bit_generator", "reduce_cumlogsumexp", "reduce_cumlogsumexp_reverse", "reduce_max_pool_grad",
	"reduce_max_pool_overlapping_grad",
}

// rewrittenJAX are the cases of whose artifacts one has other operations than the text: StableHLO writes out operations of CHLO, and those that an older
// version does not have.
var rewrittenJAX = []string{
	"control_custom_jvp", "elementwise_acos_f32", "elementwise_acosh_f32", "elementwise_asin_f32", "elementwise_asinh_f32", "elementwise_atanh_f32",
	"elementwise_complex_exp", "elementwise_erf_inv_f32", "elementwise_erfc_f32", "elementwise_lgamma_f32", "elementwise_nextafter_f32",
	"elementwise_sinh_f32", "elementwise_tan_f32", "index_gather_batched", "index_scatter_batched", "index_take_along", "model_cross_entropy_grad",
	"random_normal",
}
