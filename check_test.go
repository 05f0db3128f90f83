package tpuc_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc"
	"tpuc/tpu/chip"
)

// E1: everything in one list, each with operator, types, layer, file and line, source text, and what to do.
func TestCheckListsEverything(t *testing.T) {
	r, err := tpuc.CheckModel(t.Context(), filepath.Join("testdata", "custom", "mixed", "model.pt2.gz"), tpuc.CheckOptions{})
	require.NoError(t, err)
	require.Len(t, r.Problems, 5)
	require.EqualError(t, r.Err(), "5 problems keep the model from compiling")
	for _, p := range r.Problems {
		require.Equal(t, "pt2/unsupported", p.Code)
		require.Contains(t, p.Message, "torch.ops.mylib.")
		require.Equal(t, "custom_ops.py", p.File)
		require.Contains(t, p.Source, "torch.ops.mylib.")
		require.Contains(t, strings.Join(p.Notes, "\n"), "arguments (")
		require.Contains(t, p.Do, "--custom-ops")
	}
	require.Equal(t, "wide", r.Problems[0].Layer)
	require.Equal(t, 73, r.Problems[0].Line)

	ops, err := tpuc.LoadCustomOps(filepath.Join("testdata", "custom", "mixed", "ops.tpu"))
	require.NoError(t, err)
	r, err = tpuc.CheckModel(t.Context(), filepath.Join("testdata", "custom", "mixed", "model.pt2.gz"), tpuc.CheckOptions{Custom: ops})
	require.NoError(t, err)
	require.NoError(t, r.Err())
	require.Empty(t, r.Notes)
}

// Symbolic dimensions need no size; sizes that cannot be are in the list, and do not hide the rest.
func TestCheckDimensions(t *testing.T) {
	dynamic := filepath.Join("testdata", "models", "mlp_dynamic", "model.pt2")
	for name, c := range map[string]struct {
		dims  map[string]int64
		size  int64
		given bool
		want  []string
	}{
		"open":     {nil, 3, false, nil},
		"given":    {map[string]int64{"x.0": 8}, 8, true, nil},
		"range":    {map[string]int64{"x.0": 900}, 3, false, []string{"dimension x.0 (s77) is 900, wanted 2..64"}},
		"fixed":    {map[string]int64{"x.1": 5}, 3, false, []string{"dimension x.1 is set to 5, but the export fixed it to 16"}},
		"two":      {map[string]int64{"x.1": 5, "none": 1}, 3, false, []string{"dimension x.1", `there is no symbolic dimension "none"`}},
		"multiple": {map[string]int64{"y.0": 7}, 3, false, []string{"dimension y.0 is 7, which 2*s77 cannot be"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := tpuc.CheckModel(t.Context(), dynamic, tpuc.CheckOptions{Dims: c.dims})
			require.NoError(t, err)
			require.Len(t, r.Dims, 1)
			require.Equal(t, c.size, r.Dims[0].Size)
			require.Equal(t, c.given, r.Dims[0].Given)
			require.Equal(t, "2..64", r.Dims[0].Allowed)
			require.Len(t, r.Problems, len(c.want))
			for i, w := range c.want {
				require.Contains(t, r.Problems[i].Message, w)
			}
		})
	}
}

// What libtpu alone refuses is a problem of that target.
func TestCheckTarget(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m.tpu")
	const src = "func @main(%x: c128[7], %y: f64[7]) {\n  %0 = fft %x {kind=fft, length=[7]} : c128[7]\n" +
		"  %1 = reduce_precision %y {exponent=8, mantissa=7} : f64[7]\n  return %0, %1\n}\n"
	require.NoError(t, os.WriteFile(file, []byte(src), 0o600))
	r, err := tpuc.CheckModel(t.Context(), file, tpuc.CheckOptions{})
	require.NoError(t, err)
	require.NoError(t, r.Err())
	target, err := chip.Parse("v6e:1x1")
	require.NoError(t, err)
	r, err = tpuc.CheckModel(t.Context(), file, tpuc.CheckOptions{Target: target})
	require.NoError(t, err)
	require.Len(t, r.Problems, 2)
	for i, message := range []string{"c128", "rounding of f64"} {
		require.Equal(t, "check/target", r.Problems[i].Code)
		require.Contains(t, r.Problems[i].Message, message)
		require.NotEmpty(t, r.Problems[i].Do)
	}

	_, err = tpuc.CheckModel(t.Context(), filepath.Join(t.TempDir(), "none.pt2"), tpuc.CheckOptions{})
	require.ErrorIs(t, err, os.ErrNotExist)
}
