package op_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// upTo is 0 .. n-1 of a type.
func upTo(t string) *tensor.Tensor {
	ty := typ(t)
	v := make([]int64, ty.Elements())
	for i := range v {
		v[i] = int64(i)
	}
	return tensor.FromInts(ty, v)
}

func TestBroadcast(t *testing.T) {
	got := run(t, op.Broadcast.Op, op.BroadcastAttr{Shape: []int64{2, 3, 2}, Dims: []int64{0, 2}}, in("i8[1,2]", 5, 6))[0]
	require.Equal(t, in("i8[2,3,2]", 5, 6, 5, 6, 5, 6, 5, 6, 5, 6, 5, 6), got)
	require.Equal(t, in("i8[0,2]"), run(t, op.Broadcast.Op, op.BroadcastAttr{Shape: []int64{0, 2}}, in("i8[]", 1))[0])
	require.ErrorContains(t, infer(op.Broadcast.Op, op.BroadcastAttr{Shape: []int64{2}, Dims: nil}, "f32[2]"), "[broadcast/1]")
	require.ErrorContains(t, infer(op.Broadcast.Op, op.BroadcastAttr{Shape: []int64{2, 2}, Dims: []int64{1, 0}}, "f32[2,2]"), "[broadcast/2]")
	require.ErrorContains(t, infer(op.Broadcast.Op, op.BroadcastAttr{Shape: []int64{4}, Dims: []int64{0}}, "f32[2]"), "[broadcast/3]")
}

func TestReshape(t *testing.T) {
	require.Equal(t, upTo("i8[3,2]"), run(t, op.Reshape.Op, op.ReshapeAttr{Shape: []int64{3, 2}}, upTo("i8[2,3]"))[0])
	require.Equal(t, upTo("i8[]"), run(t, op.Reshape.Op, op.ReshapeAttr{}, upTo("i8[1,1]"))[0])
	require.ErrorContains(t, infer(op.Reshape.Op, op.ReshapeAttr{Shape: []int64{4}}, "f32[2,3]"), "[reshape/1]")
	require.ErrorContains(t, infer(op.Reshape.Op, op.ReshapeAttr{Shape: []int64{-2, -3}}, "f32[2,3]"), "[reshape/2]")
	require.ErrorContains(t, infer(op.Reshape.Op, op.ReshapeAttr{Shape: []int64{math.MaxInt64, 2, 0}}, "f32[0]"), "[reshape/2]")
}

func TestTranspose(t *testing.T) {
	got := run(t, op.Transpose.Op, op.TransposeAttr{Perm: []int64{2, 0, 1}}, upTo("i16[2,1,3]"))[0]
	require.Equal(t, in("i16[3,2,1]", 0, 3, 1, 4, 2, 5), got)
	for _, p := range [][]int64{{0}, {0, 0}, {0, 2}, {-1, 0}} {
		require.ErrorContains(t, infer(op.Transpose.Op, op.TransposeAttr{Perm: p}, "f32[2,3]"), "[transpose/1]")
	}
}

func TestSlice(t *testing.T) {
	at := func(start, limit, stride []int64) op.SliceAttr {
		return op.SliceAttr{Start: start, Limit: limit, Stride: stride}
	}
	got := run(t, op.Slice.Op, at([]int64{1, 0}, []int64{3, 4}, []int64{1, 3}), upTo("i8[3,4]"))[0]
	require.Equal(t, in("i8[2,2]", 4, 7, 8, 11), got)
	require.Equal(t, in("i8[0,4]"), run(t, op.Slice.Op, at([]int64{3, 0}, []int64{3, 4}, []int64{5, 1}), upTo("i8[3,4]"))[0])
	require.Equal(t, []int64{7}, run(t, op.Slice.Op, at(nil, nil, nil), in("i8[]", 7))[0].Ints())
	require.ErrorContains(t, infer(op.Slice.Op, at([]int64{0}, []int64{1}, nil), "f32[2]"), "[slice/1]")
	require.ErrorContains(t, infer(op.Slice.Op, at([]int64{0}, []int64{3}, []int64{1}), "f32[2]"), "[slice/2]")
	require.ErrorContains(t, infer(op.Slice.Op, at([]int64{2}, []int64{1}, []int64{1}), "f32[2]"), "[slice/2]")
	require.ErrorContains(t, infer(op.Slice.Op, at([]int64{0}, []int64{2}, []int64{0}), "f32[2]"), "[slice/3]")
}

func TestConcat(t *testing.T) {
	got := run(t, op.Concat.Op, op.ConcatAttr{Axis: 1}, in("i8[2,1]", 1, 2), in("i8[2,0]"), in("i8[2,2]", 3, 4, 5, 6))[0]
	require.Equal(t, in("i8[2,3]", 1, 3, 4, 2, 5, 6), got)
	require.Equal(t, in("i8[0,3]"), run(t, op.Concat.Op, op.ConcatAttr{Axis: 1}, in("i8[0,1]"), in("i8[0,2]"))[0])
	require.ErrorContains(t, infer(op.Concat.Op, op.ConcatAttr{}), "[concat/1]")
	require.ErrorContains(t, infer(op.Concat.Op, op.ConcatAttr{}, "f32[]"), "[concat/2]")
	require.ErrorContains(t, infer(op.Concat.Op, op.ConcatAttr{}, "f32[2]", "f16[2]"), "[concat/3]")
	require.ErrorContains(t, infer(op.Concat.Op, op.ConcatAttr{}, "f32[2,3]", "f32[2,4]"), "[concat/4]")
}

func TestPad(t *testing.T) {
	one := func(low, high, interior int64) op.PadAttr {
		return op.PadAttr{Low: []int64{low}, High: []int64{high}, Interior: []int64{interior}}
	}
	x, v := in("i8[3]", 1, 2, 3), in("i8[]", 9)
	for _, c := range []struct {
		a    op.PadAttr
		want *tensor.Tensor
	}{
		{one(1, 2, 0), in("i8[6]", 9, 1, 2, 3, 9, 9)},
		{one(0, 0, 2), in("i8[7]", 1, 9, 9, 2, 9, 9, 3)},
		{one(-1, 0, 1), in("i8[4]", 9, 2, 9, 3)},
		{one(-2, 1, 0), in("i8[2]", 3, 9)},
		{one(-1, -2, 0), in("i8[0]")},
		{one(-3, 2, 0), in("i8[2]", 9, 9)},
	} {
		require.Equal(t, c.want, run(t, op.Pad.Op, c.a, x, v)[0], "%v", c.a)
	}
	require.Equal(t, in("i8[2]", 9, 9), run(t, op.Pad.Op, one(1, 1, 5), in("i8[0]"), v)[0])
	two := op.PadAttr{Low: []int64{1, 0}, High: []int64{0, -1}, Interior: []int64{0, 1}}
	require.Equal(t, in("i8[3,2]", 9, 9, 1, 9, 3, 9), run(t, op.Pad.Op, two, in("i8[2,2]", 1, 2, 3, 4), v)[0])

	require.ErrorContains(t, infer(op.Pad.Op, one(0, 0, 0), "f32[1]", "f32[1]"), "[pad/1]")
	require.ErrorContains(t, infer(op.Pad.Op, one(0, 0, 0), "f32[1,1]", "f32[]"), "[pad/2]")
	require.ErrorContains(t, infer(op.Pad.Op, one(0, 0, -1), "f32[1]", "f32[]"), "[pad/3]")
	require.ErrorContains(t, infer(op.Pad.Op, one(-1, -1, 0), "f32[1]", "f32[]"), "[pad/4]")
	require.ErrorContains(t, infer(op.Pad.Op, one(math.MaxInt64, 1, 0), "f32[1]", "f32[]"), "[pad/5]")
	require.ErrorContains(t, infer(op.Pad.Op, one(math.MinInt64, 1, 0), "f32[1]", "f32[]"), "[pad/5]")
}

func TestReverseAndIota(t *testing.T) {
	require.Equal(t, in("i8[2,3]", 5, 4, 3, 2, 1, 0), run(t, op.Reverse.Op, op.ReverseAttr{Axes: []int64{0, 1}}, upTo("i8[2,3]"))[0])
	require.Equal(t, in("i8[2,3]", 2, 1, 0, 5, 4, 3), run(t, op.Reverse.Op, op.ReverseAttr{Axes: []int64{1}}, upTo("i8[2,3]"))[0])
	require.Equal(t, in("i8[0,3]"), run(t, op.Reverse.Op, op.ReverseAttr{Axes: []int64{0, 1}}, in("i8[0,3]"))[0])
	require.ErrorContains(t, infer(op.Reverse.Op, op.ReverseAttr{Axes: []int64{1, 0}}, "f32[2,3]"), "[reverse/1]")

	require.Equal(t, fl("bf16[2,3]", 0, 1, 2, 0, 1, 2), run(t, op.Iota.Op, op.IotaAttr{Type: typ("bf16[2,3]"), Axis: 1})[0])
	require.Equal(t, in("u8[2,2]", 0, 0, 1, 1), run(t, op.Iota.Op, op.IotaAttr{Type: typ("u8[2,2]")})[0])
	require.ErrorContains(t, infer(op.Iota.Op, op.IotaAttr{Type: typ("bool[2]")}), "[iota/1]")
	require.ErrorContains(t, infer(op.Iota.Op, op.IotaAttr{}), "[iota/1]")
	require.ErrorContains(t, infer(op.Iota.Op, op.IotaAttr{Type: typ("f32[]")}), "[iota/2]")
}

func TestReduce(t *testing.T) {
	for _, c := range []struct {
		kind op.Reducer
		axes []int64
		x    *tensor.Tensor
		want *tensor.Tensor
	}{
		{op.Sum, []int64{1}, upTo("i8[2,3]"), in("i8[2]", 3, 12)},
		{op.Sum, []int64{0, 2}, upTo("f32[2,2,2]"), fl("f32[2]", 10, 18)},
		{op.Prod, []int64{0}, in("i8[3]", 2, 8, 16), in("i8[]", 0)},
		{op.Max, []int64{0}, fl("f32[3]", 1, nan, inf), fl("f32[]", nan)},
		{op.Max, []int64{0}, fl("f8e4m3fn[2]", -3, -2), fl("f8e4m3fn[]", -2)},
		{op.Min, []int64{0}, fl("f8e4m3fn[2]", 3, 2), fl("f8e4m3fn[]", 2)},
		{op.Max, []int64{0}, in("u64[2]", -1, 1), in("u64[]", -1)},
		{op.Min, []int64{0}, in("u64[2]", -1, 1), in("u64[]", 1)},
		{op.Max, []int64{0}, in("i32[0]"), in("i32[]", math.MinInt32)},
		{op.Min, []int64{0}, in("u64[0]"), in("u64[]", -1)},
		{op.Min, []int64{1}, fl("f32[2,0]"), fl("f32[2]", inf, inf)},
		{op.Sum, []int64{0}, fl("f32[0,2]"), fl("f32[2]", 0, 0)},
		{op.Sum, nil, fl("f32[2]", 1, 2), fl("f32[2]", 1, 2)},
		{op.AllTrue, []int64{0}, in("bool[2]", 1, 0), in("bool[]", 0)},
		{op.AllTrue, []int64{0}, in("bool[0]"), in("bool[]", 1)},
		{op.AnyTrue, []int64{0}, in("bool[2]", 1, 0), in("bool[]", 1)},
		{op.Sum, []int64{0}, tensor.FromComplexes(typ("c64[2]"), []complex128{1i, 2}), tensor.FromComplexes(typ("c64[]"), []complex128{2 + 1i})},
	} {
		require.Equal(t, c.want, run(t, op.Reduce.Op, op.ReduceAttr{Kind: c.kind, Axes: c.axes}, c.x)[0], "%s %s", c.kind, c.x.Type)
	}
	require.ErrorContains(t, infer(op.Reduce.Op, op.ReduceAttr{Kind: "mean"}, "f32[2]"), "[reduce/1]")
	require.ErrorContains(t, infer(op.Reduce.Op, op.ReduceAttr{Kind: op.AnyTrue}, "f32[2]"), "[reduce/2]")
	require.ErrorContains(t, infer(op.Reduce.Op, op.ReduceAttr{Kind: op.Set}, "f32[2]"), "[reduce/1]")
	require.ErrorContains(t, infer(op.Reduce.Op, op.ReduceAttr{Kind: op.Sum, Axes: []int64{1, 0}}, "f32[2,2]"), "[reduce/3]")
}

func TestSort(t *testing.T) {
	a := op.SortAttr{Stable: true}
	x, at := fl("f32[5]", 2, nan, -inf, minus0, 0), upTo("i32[5]")
	got := run(t, op.Sort.Op, a, x, at)
	sameFloats(t, []float64{-inf, minus0, 0, 2, nan}, got[0].Floats())
	require.Equal(t, []int64{2, 3, 4, 0, 1}, got[1].Ints(), "zeros of both signs are equal and keep their order")
	a.Descending = true
	got = run(t, op.Sort.Op, a, x, at)
	sameFloats(t, []float64{nan, 2, minus0, 0, -inf}, got[0].Floats())
	require.Equal(t, []int64{1, 0, 3, 4, 2}, got[1].Ints())

	got = run(t, op.Sort.Op, op.SortAttr{Axis: 0, Keys: 2}, in("bool[4,1]", 1, 0, 1, 0), in("u64[4,1]", -1, 7, 1, 3))
	require.Equal(t, []int64{0, 0, 1, 1}, got[0].Ints())
	require.Equal(t, []int64{3, 7, 1, -1}, got[1].Ints())
	got = run(t, op.Sort.Op, op.SortAttr{Axis: 1}, in("i8[2,3]", 3, 1, 2, 6, 5, 4))
	require.Equal(t, []int64{1, 2, 3, 4, 5, 6}, got[0].Ints())
	require.Empty(t, run(t, op.Sort.Op, op.SortAttr{}, in("i8[0]"))[0].Data)

	require.ErrorContains(t, infer(op.Sort.Op, op.SortAttr{}), "[sort/1]")
	require.ErrorContains(t, infer(op.Sort.Op, op.SortAttr{}, "f32[]"), "[sort/2]")
	require.ErrorContains(t, infer(op.Sort.Op, op.SortAttr{Keys: 2}, "f32[1]"), "[sort/3]")
	require.ErrorContains(t, infer(op.Sort.Op, op.SortAttr{}, "f32[1]", "f32[2]"), "[sort/4]")
	require.ErrorContains(t, infer(op.Sort.Op, op.SortAttr{}, "c64[1]"), "[sort/5]")
}

func TestDot(t *testing.T) {
	// Batch 1 of each side, contracted axes in another order, checked against sums by hand.
	r := rand.New(rand.NewPCG(3, 4))
	x, y := random(r, typ("f64[3,2,4,5]")), random(r, typ("f64[5,4,2,6]"))
	got := run(t, op.Dot.Op, op.DotAttr{Batch: [][]int64{{1}, {2}}, Contract: [][]int64{{2, 3}, {1, 0}}}, x, y)[0]
	require.Equal(t, "f64[2,3,6]", got.String())
	xv, yv, want := x.Floats(), y.Floats(), make([]float64, 36)
	for b := range 2 {
		for i := range 3 {
			for j := range 6 {
				for p := range 4 {
					for q := range 5 {
						want[(b*3+i)*6+j] += xv[((i*2+b)*4+p)*5+q] * yv[((q*4+p)*2+b)*6+j]
					}
				}
			}
		}
	}
	require.InDeltaSlice(t, want, got.Floats(), 1e-12)

	require.Equal(t, in("i32[]", 30000), run(t, op.Dot.Op, op.DotAttr{Contract: [][]int64{{0}, {0}}, Out: tensor.I32}, in("i8[3]", 100, 100, 100), in("i8[3]", 100, 100, 100))[0])
	require.Equal(t, fl("f32[2,1]", 0, 0), run(t, op.Dot.Op, op.DotAttr{Contract: [][]int64{{1}, {0}}}, fl("f32[2,0]"), fl("f32[0,1]"))[0])
	require.Equal(t, fl("f32[2,2]", 3, 4, 6, 8), run(t, op.Dot.Op, op.DotAttr{}, fl("f32[2]", 1, 2), fl("f32[2]", 3, 4))[0])

	c := func(l, r int64) op.DotAttr { return op.DotAttr{Contract: [][]int64{{l}, {r}}} }
	require.ErrorContains(t, infer(op.Dot.Op, c(0, 0), "f32[2]", "f16[2]"), "[dot/1]")
	require.ErrorContains(t, infer(op.Dot.Op, c(0, 0), "f32[2]", "f32[3]"), "[dot/2]")
	require.ErrorContains(t, infer(op.Dot.Op, op.DotAttr{Contract: [][]int64{{0}, {}}}, "f32[2]", "f32[2]"), "[dot/3]")
	require.ErrorContains(t, infer(op.Dot.Op, c(0, 1), "f32[2]", "f32[2]"), "[dot/4]")
	require.ErrorContains(t, infer(op.Dot.Op, op.DotAttr{Batch: [][]int64{{0}, {0}}}, "f32[2]", "f32[3]"), "[dot/5]")
	require.ErrorContains(t, infer(op.Dot.Op, c(0, 0), "bool[2]", "bool[2]"), "[dot/6]")
	require.ErrorContains(t, infer(op.Dot.Op, op.DotAttr{Out: tensor.I32}, "f32[2]", "f32[2]"), "[dot/7]")
}
