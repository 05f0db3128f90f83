package compare

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir/tensor"
)

func f32(v ...float64) *tensor.Tensor {
	return tensor.FromFloats(tensor.Make(tensor.F32, int64(len(v))), v)
}

func TestFloats(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		name      string
		got, want *tensor.Tensor
		tol       Tolerance
		ok        bool
		worst     int64
		failed    int64
	}{
		{"equal", f32(1, 2), f32(1, 2), Tolerance{}, true, 0, 0},
		{"relative to the maximum", f32(0.5, 100), f32(0, 100), Tolerance{RelToMax: 0.005}, true, 0, 0}, // 0.505
		{"beyond the maximum's", f32(0.6, 100), f32(0, 100), Tolerance{RelToMax: 0.005}, false, 0, 1},
		{"one at least", f32(0.004), f32(0), Tolerance{RelToMax: 0.005}, true, 0, 0},
		{"elementwise", f32(0.5, 100), f32(0, 100), Tolerance{Elementwise: true, Rtol: 0.005}, false, 0, 1},
		{"atol", f32(0.5, 101), f32(0, 100), Tolerance{Elementwise: true, Rtol: 0.01, Atol: 0.5}, true, 0, 0},
		{"exact", f32(1, 2.5, 2), f32(1, 2, 3), Tolerance{}, false, 2, 2},
		{"the same pattern", f32(inf, nan, -inf), f32(inf, nan, -inf), Tolerance{}, true, 0, 0},
		{"NaN for a number", f32(1, nan), f32(1, 2), Tolerance{RelToMax: 10}, false, 1, 1},
		{"a number for NaN", f32(1, 2), f32(1, nan), Tolerance{RelToMax: 10}, false, 1, 1},
		{"infinities of two signs", f32(inf), f32(-inf), Tolerance{RelToMax: 10}, false, 0, 1},
		{"an infinite reference is no maximum", f32(inf, 1), f32(inf, 0), Tolerance{RelToMax: 0.5}, false, 1, 1},
		{"infinite limit", f32(1), f32(inf), Tolerance{Elementwise: true, Rtol: 1}, false, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Compare(c.got, c.want, c.tol)
			require.Equal(t, c.ok, r.OK, "%+v", r)
			require.Equal(t, []int64{c.worst}, r.Worst)
			require.Equal(t, c.failed, r.Failed)
			for _, x := range []float64{r.MaxAbs, r.RelL2, r.Limit} {
				require.False(t, math.IsNaN(x) || math.IsInf(x, 0), "%+v", r)
			}
		})
	}
}

func TestFigures(t *testing.T) {
	r := Compare(tensor.FromFloats(tensor.Make(tensor.F32, 2, 2), []float64{3, 4, 0, 1}),
		tensor.FromFloats(tensor.Make(tensor.F32, 2, 2), []float64{3, 4, 0, 0}), Tolerance{})
	require.Equal(t, Result{Worst: []int64{1, 1}, Got: "1", Want: "0", MaxAbs: 1, RelL2: 0.2, Failed: 1}, r)
	r = Compare(f32(2), f32(0), Tolerance{})
	require.Equal(t, 2.0, r.RelL2, "absolute without a reference")
	r = Compare(tensor.FromFloats(tensor.Make(tensor.F64, 2), []float64{1e300, 1e300}),
		tensor.FromFloats(tensor.Make(tensor.F64, 2), []float64{1e300, 2e300}), Tolerance{})
	require.InDelta(t, 0.4472, r.RelL2, 1e-4)
}

func TestExact(t *testing.T) {
	i64 := func(v ...int64) *tensor.Tensor { return tensor.FromInts(tensor.Make(tensor.I64, int64(len(v))), v) }
	r := Compare(i64(1<<62+1, 5), i64(1<<62, 9), Tolerance{RelToMax: 1})
	require.Equal(t, Result{Worst: []int64{1}, Got: "5", Want: "9", MaxAbs: 4, Failed: 2, RelL2: r.RelL2}, r)
	r = Compare(tensor.FromInts(tensor.Make(tensor.U64, 1), []int64{-1}), tensor.FromInts(tensor.Make(tensor.U64, 1), []int64{0}), Tolerance{})
	require.Equal(t, "18446744073709551615", r.Got)
	require.InEpsilon(t, 1.8e19, r.MaxAbs, 0.1)
	b := func(v int64) *tensor.Tensor { return tensor.ScalarInt(tensor.Bool, v) }
	require.True(t, Compare(b(1), b(1), Tolerance{}).OK)
	r = Compare(b(1), b(0), Tolerance{RelToMax: 5})
	require.Equal(t, []string{"true", "false"}, []string{r.Got, r.Want})
	require.Equal(t, []int64{}, r.Worst, "a scalar's index")
}

func TestComplex(t *testing.T) {
	c := func(v ...complex128) *tensor.Tensor {
		return tensor.FromComplexes(tensor.Make(tensor.C128, int64(len(v))), v)
	}
	require.True(t, Compare(c(3+4i), c(3+4i), Tolerance{}).OK)
	require.True(t, Compare(c(3+4.5i), c(3+4i), Tolerance{RelToMax: 0.1}).OK)
	require.False(t, Compare(c(3+4.7i), c(3+4i), Tolerance{RelToMax: 0.1}).OK)
	nan := math.NaN()
	require.True(t, Compare(c(complex(nan, 1)), c(complex(nan, 1)), Tolerance{}).OK)
	require.False(t, Compare(c(complex(nan, 1)), c(complex(1, nan)), Tolerance{RelToMax: 9}).OK)
	require.True(t, Compare(c(complex(math.Inf(1), 1.05)), c(complex(math.Inf(1), 1)), Tolerance{RelToMax: 0.1}).OK)
}

func TestTypes(t *testing.T) {
	require.Equal(t, "it is f32[1], wanted f32[2]", Compare(f32(1), f32(1, 2), Tolerance{}).Problem)
	r := Compare(f32(1), tensor.FromInts(tensor.Make(tensor.I64, 1), []int64{1}), Tolerance{})
	require.False(t, r.OK)
	require.Equal(t, "it is f32[1], wanted i64[1]", r.Problem)
	empty := tensor.Zeros(tensor.Make(tensor.F32, 0, 3))
	r = Compare(empty, empty, Tolerance{})
	require.True(t, r.OK)
	require.Nil(t, r.Worst)
}

func TestDefault(t *testing.T) {
	for _, d := range tensor.DTypes() {
		require.Equal(t, d.IsFloat() || d.IsComplex(), Default(d).RelToMax > 0, d)
	}
}
