package op_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

var (
	inf    = math.Inf(1)
	nan    = math.NaN()
	minus0 = math.Copysign(0, -1)
)

// sameFloats compares with NaN equal to NaN and the sign of zeros.
func sameFloats(t *testing.T, want, got []float64) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		same := math.Float64bits(want[i]) == math.Float64bits(got[i]) || math.IsNaN(want[i]) && math.IsNaN(got[i])
		require.True(t, same, "element %d is %v, wanted %v", i, got[i], want[i])
	}
}

func TestFloatCorners(t *testing.T) {
	for _, c := range []struct {
		op   *ir.Op
		x, y []float64
		want []float64
	}{
		{op.Maximum.Op, []float64{nan, inf, 1, -inf}, []float64{inf, nan, 2, 3}, []float64{nan, nan, 2, 3}},
		{op.Minimum.Op, []float64{nan, -inf, 1, inf}, []float64{-inf, nan, 2, 3}, []float64{nan, nan, 1, 3}},
		{op.Div.Op, []float64{1, -1, 0, 1}, []float64{0, 0, 0, inf}, []float64{inf, -inf, nan, 0}},
		{op.Rem.Op, []float64{-5.5, 5.5, 1, 3}, []float64{2, -2, 0, inf}, []float64{-1.5, 1.5, nan, 3}},
		{op.Pow.Op, []float64{-2, 0, nan, -2, 4}, []float64{3, 0, 0, 0.5, 0.5}, []float64{-8, 1, 1, nan, 2}},
		{op.Round.Op, []float64{0.5, 1.5, 2.5, -0.5, -1.5}, nil, []float64{0, 2, 2, minus0, -2}},
		{op.Sign.Op, []float64{-3, 3, minus0, nan, -inf}, nil, []float64{-1, 1, minus0, nan, -1}},
		{op.Abs.Op, []float64{-3, minus0, -inf}, nil, []float64{3, 0, inf}},
		{op.Sigmoid.Op, []float64{-1000, 1000, 0, nan}, nil, []float64{0, 1, 0.5, nan}},
		{op.Rsqrt.Op, []float64{4, 0, -1, inf}, nil, []float64{0.5, inf, nan, 0}},
		{op.Expm1.Op, []float64{0, -inf, inf}, nil, []float64{0, -1, inf}},
		{op.Log1p.Op, []float64{0, -1, -2}, nil, []float64{0, -inf, nan}},
	} {
		t.Run(c.op.Name, func(t *testing.T) {
			ty := tensor.Make(tensor.F64, int64(len(c.x)))
			args := []*tensor.Tensor{tensor.FromFloats(ty, c.x)}
			if c.y != nil {
				args = append(args, tensor.FromFloats(ty, c.y))
			}
			sameFloats(t, c.want, run(t, c.op, nil, args...)[0].Floats())
		})
	}
}

func TestIntCorners(t *testing.T) {
	const least = math.MinInt64
	for _, c := range []struct {
		op   *ir.Op
		typ  string
		x, y []int64
		want []int64
	}{
		{op.Add.Op, "i8[2]", []int64{127, -128}, []int64{1, -1}, []int64{-128, 127}},
		{op.Add.Op, "bool[2]", []int64{1, 0}, []int64{1, 0}, []int64{1, 0}},
		{op.Mul.Op, "bool[2]", []int64{1, 1}, []int64{1, 0}, []int64{1, 0}},
		{op.Mul.Op, "u8[1]", []int64{16}, []int64{17}, []int64{16}},
		{op.Div.Op, "i32[4]", []int64{-7, 7, 5, math.MinInt32}, []int64{2, -2, 0, -1}, []int64{-3, -3, -1, math.MinInt32}},
		{op.Div.Op, "i64[1]", []int64{least}, []int64{-1}, []int64{least}},
		{op.Div.Op, "u64[3]", []int64{-1, -1, 6}, []int64{2, 0, -1}, []int64{math.MaxInt64, -1, 0}},
		{op.Rem.Op, "i32[4]", []int64{-7, 7, 5, math.MinInt32}, []int64{2, -2, 0, -1}, []int64{-1, 1, 5, 0}},
		{op.Rem.Op, "u64[2]", []int64{-1, 3}, []int64{10, 0}, []int64{5, 3}},
		{op.Pow.Op, "i32[6]", []int64{2, -1, -1, 1, 3, -2}, []int64{5, -3, -2, -9, -1, 3}, []int64{32, -1, 1, 1, 0, -8}},
		{op.Pow.Op, "u8[1]", []int64{2}, []int64{200}, []int64{0}},
		{op.Maximum.Op, "u64[1]", []int64{-1}, []int64{1}, []int64{-1}},
		{op.Minimum.Op, "i64[1]", []int64{-1}, []int64{1}, []int64{-1}},
		{op.ShiftLeft.Op, "i8[5]", []int64{1, 1, 1, 1, 3}, []int64{7, 8, 100, -1, 6}, []int64{-128, 0, 0, 0, -64}},
		{op.ShiftRight.Op, "i8[4]", []int64{-128, -128, 64, -1}, []int64{7, 100, -1, 1}, []int64{-1, -1, 0, -1}},
		{op.ShiftRight.Op, "u8[3]", []int64{255, 255, 255}, []int64{7, 8, 0}, []int64{1, 0, 255}},
		{op.ShiftRight.Op, "u64[1]", []int64{-1}, []int64{63}, []int64{1}},
		{op.And.Op, "i8[1]", []int64{-2}, []int64{7}, []int64{6}},
		{op.Or.Op, "u8[1]", []int64{128}, []int64{1}, []int64{129}},
		{op.Xor.Op, "bool[2]", []int64{1, 1}, []int64{1, 0}, []int64{0, 1}},
		{op.Not.Op, "bool[2]", []int64{1, 0}, nil, []int64{0, 1}},
		{op.Not.Op, "u8[2]", []int64{0, 254}, nil, []int64{255, 1}},
		{op.Not.Op, "i4[1]", []int64{7}, nil, []int64{-8}},
		{op.Abs.Op, "i8[2]", []int64{-128, -3}, nil, []int64{-128, 3}},
		{op.Abs.Op, "u64[1]", []int64{-1}, nil, []int64{-1}},
		{op.Neg.Op, "u8[1]", []int64{1}, nil, []int64{255}},
		{op.Sign.Op, "u64[2]", []int64{-1, 0}, nil, []int64{1, 0}},
		{op.Sign.Op, "i8[3]", []int64{-5, 0, 5}, nil, []int64{-1, 0, 1}},
	} {
		t.Run(c.op.Name+" "+c.typ, func(t *testing.T) {
			args := []*tensor.Tensor{in(c.typ, c.x...)}
			if c.y != nil {
				args = append(args, in(c.typ, c.y...))
			}
			require.Equal(t, c.want, run(t, c.op, nil, args...)[0].Ints())
		})
	}
}

func TestComplex(t *testing.T) {
	x := tensor.FromComplexes(typ("c64[2]"), []complex128{1 + 2i, -1})
	y := tensor.FromComplexes(typ("c64[2]"), []complex128{3 - 1i, 1i})
	require.Equal(t, []complex128{5 + 5i, -1i}, run(t, op.Mul.Op, nil, x, y)[0].Complexes())
	require.Equal(t, []complex128{0.1 + 0.7i, 1i}, roundTo(run(t, op.Div.Op, nil, x, y)[0].Complexes()))
	require.Equal(t, []complex128{-1 - 2i, 1}, run(t, op.Neg.Op, nil, x)[0].Complexes())
	require.Equal(t, int64(0), run(t, op.Compare.Op, op.CompareAttr{Dir: op.EQ}, x, y)[0].Ints()[0])
	require.EqualError(t, infer(op.Compare.Op, op.CompareAttr{Dir: op.LT}, "c64[2]", "c64[2]"),
		"compare: lt of c64, wanted eq or ne for complex numbers [compare/3]")
}

// roundTo drops what f32 does not hold.
func roundTo(v []complex128) []complex128 {
	for i, c := range v {
		v[i] = complex(math.Round(real(c)*1e6)/1e6, math.Round(imag(c)*1e6)/1e6)
	}
	return v
}

func TestCompare(t *testing.T) {
	x, y := fl("f32[4]", 1, nan, minus0, 2), fl("f32[4]", 2, nan, 0, 1)
	for dir, want := range map[op.CompareDir][]int64{
		op.EQ: {0, 0, 1, 0}, op.NE: {1, 1, 0, 1}, op.LT: {1, 0, 0, 0}, op.LE: {1, 0, 1, 0}, op.GT: {0, 0, 0, 1}, op.GE: {0, 0, 1, 1},
	} {
		require.Equal(t, want, run(t, op.Compare.Op, op.CompareAttr{Dir: dir}, x, y)[0].Ints(), "%s", dir)
	}
	lt := op.CompareAttr{Dir: op.LT}
	require.Equal(t, []int64{0}, run(t, op.Compare.Op, lt, in("u64[1]", -1), in("u64[1]", 1))[0].Ints())
	require.Equal(t, []int64{1}, run(t, op.Compare.Op, lt, in("i64[1]", -1), in("i64[1]", 1))[0].Ints())
	require.Equal(t, []int64{1}, run(t, op.Compare.Op, lt, in("bool[1]", 0), in("bool[1]", 1))[0].Ints())
	// Beyond 2^53 integers are not compared as floats.
	require.Equal(t, []int64{1}, run(t, op.Compare.Op, lt, in("i64[1]", 1<<53), in("i64[1]", 1<<53+1))[0].Ints())
}

func TestConvert(t *testing.T) {
	for _, c := range []struct {
		x    *tensor.Tensor
		to   tensor.DType
		want *tensor.Tensor
	}{
		{fl("f32[5]", 1.9, -1.9, 300, -inf, nan), tensor.I8, in("i8[5]", 1, -1, 127, -128, 0)},
		{fl("f64[2]", 1e19, -1), tensor.U64, in("u64[2]", -8446744073709551616, 0)},
		{fl("f32[4]", 0, minus0, 1e-30, nan), tensor.Bool, in("bool[4]", 0, 0, 1, 1)},
		{in("bool[2]", 0, 1), tensor.BF16, fl("bf16[2]", 0, 1)},
		{in("bool[2]", 0, 1), tensor.I64, in("i64[2]", 0, 1)},
		{in("i64[2]", 1<<40, 0), tensor.Bool, in("bool[2]", 1, 0)},
		{in("i32[2]", 200, -1), tensor.U8, in("u8[2]", 200, 255)},
		{in("u8[1]", 200), tensor.I8, in("i8[1]", -56)},
		{in("u64[1]", -1), tensor.I64, in("i64[1]", -1)},
		{in("u64[2]", -1, -1<<63+1<<39), tensor.F32, fl("f32[2]", 0x1p64, 0x1p63)},
		{in("u64[1]", -1<<63+1<<39+1), tensor.F32, fl("f32[1]", 0x1p63+0x1p40)},
		{in("u64[1]", -1), tensor.F64, fl("f64[1]", 0x1p64)},
		{in("i64[1]", 1<<62+1<<38+1), tensor.F32, fl("f32[1]", 0x1p62+0x1p39)},
		{fl("f64[1]", 1+0x1p-8+0x1p-40), tensor.BF16, fl("bf16[1]", 1+0x1p-7)},
		{tensor.FromComplexes(typ("c64[2]"), []complex128{1.5 + 9i, 2i}), tensor.F32, fl("f32[2]", 1.5, 0)},
		{tensor.FromComplexes(typ("c64[2]"), []complex128{2i, 0}), tensor.Bool, in("bool[2]", 1, 0)},
		{fl("f32[1]", 3), tensor.C64, tensor.FromComplexes(typ("c64[1]"), []complex128{3})},
		{in("i32[1]", -3), tensor.C128, tensor.FromComplexes(typ("c128[1]"), []complex128{-3})},
	} {
		got := run(t, op.Convert.Op, op.ConvertAttr{To: c.to}, c.x)[0]
		require.Equal(t, c.want, got, "%s to %s", c.x.Type, c.to)
	}
}

func TestSelectAndIsFinite(t *testing.T) {
	got := run(t, op.Select.Op, nil, in("bool[3]", 1, 0, 1), fl("f32[3]", 1, 2, nan), fl("f32[3]", 4, nan, 6))[0]
	sameFloats(t, []float64{1, nan, nan}, got.Floats())
	require.Equal(t, []int64{1, 0, 0}, run(t, op.IsFinite.Op, nil, fl("f16[3]", 65504, 1e9, nan))[0].Ints())
	require.ErrorContains(t, infer(op.Select.Op, nil, "bool[2]", "f32[3]", "f32[3]"), "[select/2]")
	require.ErrorContains(t, infer(op.Select.Op, nil, "bool[3]", "f32[3]", "f16[3]"), "[select/1]")
}

// Floats are computed wide and rounded once: in bf16, 256 + 1 is the tie 257, which goes to the even 256, and 256 + 1.5 goes up.
func TestOneRounding(t *testing.T) {
	require.Equal(t, []float64{256, 258}, run(t, op.Add.Op, nil, fl("bf16[2]", 256, 256), fl("bf16[2]", 1, 1.5))[0].Floats())
	sum := run(t, op.Reduce.Op, op.ReduceAttr{Kind: op.Sum, Axes: []int64{0}}, fl("bf16[5]", 256, 1, 1, 1, 1))[0]
	require.Equal(t, []float64{260}, sum.Floats())
}

func TestElementwiseRules(t *testing.T) {
	require.EqualError(t, infer(op.Add.Op, nil, "f32[2]", "f32[3]"), "add: argument 1 is f32[3], wanted f32[2] as argument 0 [add/1]")
	require.EqualError(t, infer(op.Floor.Op, nil, "i32[2]"), "floor: dtype i32, wanted float [floor/2]")
	require.EqualError(t, infer(op.Rem.Op, nil, "c64[]", "c64[]"), "rem: dtype c64, wanted integer or float [rem/2]")
	require.EqualError(t, infer(op.Add.Op, nil, "f32[2]"), "add: 1 arguments, wanted x y [add/0]")
	require.ErrorContains(t, infer(op.Compare.Op, op.CompareAttr{Dir: "less"}, "f32[]", "f32[]"), "[compare/1]")
	require.ErrorContains(t, infer(op.Convert.Op, op.ConvertAttr{}, "f32[]"), "[convert/1]")
}
