package op

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// CumSumAttr is the attribute struct of CumSum.
type CumSumAttr struct {
	Axis    int64 `ir:"axis"`
	Reverse bool  `ir:"reverse"` // sums from the end
}

// CumSum is the sum of every element and all before it along Axis (aten::cumsum). Any numeric dtype; floats below f32 accumulate in f32,
// integers wrap.
var CumSum = define(Def[CumSumAttr]{
	Name: "cumsum", Doc: "Sums up to every element along an axis.", Args: "x",
	Infer: func(in []tensor.Type, a CumSumAttr) ([]tensor.Type, error) {
		switch x := in[0]; {
		case !numbers.has(x.DType):
			return nil, fail(1, "dtype %s, wanted %s", x.DType, numbers)
		case a.Axis < 0 || a.Axis >= int64(x.Rank()):
			return nil, fail(2, "axis %d, wanted one of rank %d", a.Axis, x.Rank())
		}
		return one(in[0])
	},
	Decompose: decomposeCumSum, Eval: evalCumSum,
})

// decomposeCumSum adds x to itself moved by 1, 2, 4, ... places: log2(extent) steps of vector work without a loop.
func decomposeCumSum(b *ir.Builder, n *ir.Node, a CumSumAttr) []*ir.Value {
	x, t := widen(b, n.Args[0]), n.Outs[0].Type
	zero := Constant.Make(b, ConstantAttr{Value: tensor.Scalar(x.Type.DType, 0)})
	for by := int64(1); by < t.Dims[a.Axis]; by *= 2 {
		move := PadAttr{Low: make([]int64, t.Rank()), High: make([]int64, t.Rank()), Interior: make([]int64, t.Rank())}
		move.Low[a.Axis], move.High[a.Axis] = by, -by
		if a.Reverse {
			move.Low[a.Axis], move.High[a.Axis] = -by, by
		}
		x = Add.Make(b, x, Pad.Make(b, move, x, zero))
	}
	return []*ir.Value{Cast(b, x, t.DType)}
}

// evalCumSum walks every line once; in reverse it walks the steps backwards.
func evalCumSum(in []*tensor.Tensor, a CumSumAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
	x, t := in[0], out[0]
	axis := []int64{a.Axis}
	rows, steps := offsets(x.Dims, free(x.Rank(), axis)), offsets(x.Dims, axis)
	if a.Reverse {
		slices.Reverse(steps)
	}
	switch {
	case t.DType.IsFloat():
		return result(tensor.FromFloats(t, runningSum(x.Floats(), rows, steps)))
	case t.DType.IsComplex():
		return result(tensor.FromComplexes(t, runningSum(x.Complexes(), rows, steps)))
	}
	return result(tensor.FromInts(t, runningSum(x.Ints(), rows, steps)))
}

// runningSum sums in place from each of rows along steps.
func runningSum[T int64 | float64 | complex128](x []T, rows, steps []int64) []T {
	for _, r := range rows {
		var sum T
		for _, s := range steps {
			sum += x[r+s]
			x[r+s] = sum
		}
	}
	return x
}
