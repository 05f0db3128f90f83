package golden

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir/eval"
	"tpuc/ir/tensor"
)

// upper gives in.txt in capitals, and fails on "fail".
var upper = Family{
	Headers: []string{"seed"}, Inputs: []string{"in.txt"}, Wants: []string{"want.txt", "want.len"},
	Run: func(g *Group) (map[string]string, error) {
		in := g.Sections["in.txt"]
		if strings.HasPrefix(in, "fail") {
			return nil, errors.New("refused")
		}
		out := map[string]string{"want.txt": strings.ToUpper(in)}
		if g.Header["seed"] == "2" {
			out["want.len"] = "two"
		}
		return out, nil
	},
}

func TestCases(t *testing.T) {
	for _, c := range []struct{ name, src, err, updated string }{
		{"equal", "Prose.\n-- in.txt --\na\n-- want.txt --\nA\n", "", ""},
		{"different", "Prose.\n-- in.txt --\na\n-- want.txt --\nB\n", "want.txt differs", "Prose.\n-- in.txt --\na\n-- want.txt --\nA\n"},
		{"missing", "Prose.\n-- in.txt --\na\n", "no section want.txt", "Prose.\n-- in.txt --\na\n-- want.txt --\nA\n"},
		{"orphan", "Prose.\n-- in.txt --\na\n-- want.txt --\nA\n-- want.len --\n1\n", "want.len is an orphan", "Prose.\n-- in.txt --\na\n-- want.txt --\nA\n"},
		{"header", "Prose.\n#seed: 2\n-- in.txt --\na\n", "no section want.len", "Prose.\n#seed: 2\n-- in.txt --\na\n-- want.txt --\nA\n-- want.len --\ntwo\n"},
		{"groups", "Prose.\n-- x/in.txt --\na\n-- y/in.txt --\nb\n-- y/want.txt --\nB\n", "x: no section want.txt",
			"Prose.\n-- x/in.txt --\na\n-- x/want.txt --\nA\n-- y/in.txt --\nb\n-- y/want.txt --\nB\n"},
		{"refused", "Prose.\n-- in.txt --\na\n-- x/in.txt --\nfail\n-- x/want.txt --\nB\n", "no section want.txt", "refused"},
		{"unknown section", "Prose.\n-- in.tpu --\n", "unknown section \"in.tpu\"", ""},
		{"unknown header", "Prose.\n#sed: 2\n-- in.txt --\n", "header line \"#sed: 2\"", ""},
		{"no prose", "#seed: 2\n-- in.txt --\n", "no prose", ""},
		{"twice", "Prose.\n-- in.txt --\n-- in.txt --\n", "stands twice", ""},
		{"empty", "Prose.\n", "no sections", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "case.txtar")
			require.NoError(t, os.WriteFile(file, []byte(c.src), 0o666))
			k, err := Load(file, upper)
			if err == nil {
				err = k.Run(upper, false)
			}
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.err)
			}
			if k == nil {
				return
			}
			err = k.Run(upper, true)
			got, _ := os.ReadFile(file)
			switch c.updated {
			case "refused":
				require.ErrorContains(t, err, "refused")
				require.Equal(t, c.src, string(got), "nothing is written")
			case "":
				require.NoError(t, err)
				require.Equal(t, c.src, string(got))
			default:
				require.NoError(t, err)
				require.Equal(t, c.updated, string(got))
			}
		})
	}
}

func TestRandomDependsOnSeedAndName(t *testing.T) {
	typ := tensor.Make(tensor.F32, 64)
	require.Equal(t, Random(typ, 1, "a"), Random(typ, 1, "a"))
	require.NotEqual(t, Random(typ, 1, "a"), Random(typ, 2, "a"))
	require.NotEqual(t, Random(typ, 1, "a"), Random(typ, 1, "b"))
	for _, d := range tensor.DTypes() {
		x := Random(tensor.Make(d, 100), 1, "x")
		if d.IsFloat() && d != tensor.F8E5M2 {
			require.Equal(t, x.Floats(), Random(tensor.Make(tensor.F64, 100), 1, "x").Floats(), "the values are exact in %s", d)
		}
	}
}

func TestEquivalent(t *testing.T) {
	run := func(d tensor.DType, v ...float64) *eval.Result {
		return &eval.Result{Outputs: []*tensor.Tensor{tensor.FromFloats(tensor.Make(d, int64(len(v))), v)}}
	}
	nan := 0.0
	nan /= nan
	require.NoError(t, Equivalent(run(tensor.F32, 1, nan, 1/(nan-nan+1)), run(tensor.F32, 1.00001, nan, 1/(nan-nan+1))))
	require.NoError(t, Equivalent(run(tensor.BF16, 1, 100), run(tensor.BF16, 1.01, 100)))
	for _, c := range [][2]*eval.Result{
		{run(tensor.F32, 1), run(tensor.F32, 1.001)},
		{run(tensor.F32, 1, 1000), run(tensor.F32, 1.1, 1000)},
		{run(tensor.F32, nan), run(tensor.F32, 0)},
		{run(tensor.I32, 1), run(tensor.I32, 2)},
		{run(tensor.F32, 1), run(tensor.F64, 1)},
		{run(tensor.F32, 1), {}},
	} {
		require.Error(t, Equivalent(c[0], c[1]))
	}
}

func TestSameValues(t *testing.T) {
	require.True(t, SameValues("f32[2] [1, 2]\n@s = bf16[] 1\n", "f32[2] [1.00001, 2]\n@s = bf16[] 1.01\n"))
	require.False(t, SameValues("f32[2] [1, 2]\n", "f32[2] [1.1, 2]\n"))
	require.False(t, SameValues("i32[2] [1, 2]\n", "i32[2] [1, 3]\n"))
	require.False(t, SameValues("f32[2] [1, 2]\n", "f32[1,2] [[1, 2]]\n"))
	require.False(t, SameValues("f32[2] [1, 2]\n", "f32[2] [1, 2, 3]\n"))
	require.False(t, SameValues("f32[] 1\n", ""))
	require.True(t, SameValues("f32[2] [nan, +Inf]", "f32[2] [nan, +Inf]"))
	require.False(t, SameValues("@a = f32[] 1", "@b = f32[] 1"))
}
