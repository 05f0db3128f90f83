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
	Decompose: func(b *ir.Builder, n *ir.Node, a CumSumAttr) []*ir.Value {
		x := widen(b, n.Args[0])
		y := cumulate(b, a.Axis, a.Reverse, []*ir.Value{x}, []*tensor.Tensor{tensor.Scalar(x.Type.DType, 0)},
			func(earlier, later []*ir.Value) []*ir.Value { return []*ir.Value{Add.Make(b, later[0], earlier[0])} })
		return []*ir.Value{Cast(b, y[0], n.Outs[0].Type.DType)}
	},
	Eval: func(in []*tensor.Tensor, a CumSumAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
		return evalCumulative(in[0], a.Axis, a.Reverse, out[0], &addFn)
	},
})

// cumulate combines values of one shape, together, with all before them along axis, or all after them: log2(extent) steps, each with what
// lies 1, 2, 4, ... places before, without a loop. What lies before the start is neutral. combine is associative.
func cumulate(b *ir.Builder, axis int64, reverse bool, xs []*ir.Value, neutral []*tensor.Tensor, combine func(earlier, later []*ir.Value) []*ir.Value) []*ir.Value {
	t := xs[0].Type
	fill := make([]*ir.Value, len(xs))
	for i, v := range neutral {
		fill[i] = Constant.Make(b, ConstantAttr{Value: v})
	}
	for by := int64(1); by < t.Dims[axis]; by *= 2 {
		move := PadAttr{Low: make([]int64, t.Rank()), High: make([]int64, t.Rank()), Interior: make([]int64, t.Rank())}
		move.Low[axis], move.High[axis] = by, -by
		if reverse {
			move.Low[axis], move.High[axis] = -by, by
		}
		earlier := make([]*ir.Value, len(xs))
		for i, x := range xs {
			earlier[i] = Pad.Make(b, move, x, fill[i])
		}
		xs = combine(earlier, xs)
	}
	return xs
}

// runningMax is the maximum up to every element of a vector of integers.
func runningMax(b *ir.Builder, x *ir.Value) *ir.Value {
	return cumulate(b, 0, false, []*ir.Value{x}, []*tensor.Tensor{bound(x.Type.DType, false)}, func(earlier, later []*ir.Value) []*ir.Value {
		return []*ir.Value{Maximum.Make(b, later[0], earlier[0])}
	})[0]
}

// evalCumulative walks every line once; in reverse it walks the steps backwards. Floats are combined in float64 and rounded once.
func evalCumulative(x *tensor.Tensor, axis int64, reverse bool, t tensor.Type, fn *scalar2) ([]*tensor.Tensor, error) {
	along := []int64{axis}
	rows, steps := offsets(x.Dims, free(x.Rank(), along)), offsets(x.Dims, along)
	if reverse {
		slices.Reverse(steps)
	}
	switch {
	case t.DType.IsFloat():
		return result(tensor.FromFloats(t, running(x.Floats(), rows, steps, fn.f)))
	case t.DType.IsComplex():
		return result(tensor.FromComplexes(t, running(x.Complexes(), rows, steps, fn.c)))
	}
	return result(tensor.FromInts(t, running(x.Ints(), rows, steps, fn.i)))
}

// running combines in place from each of rows along steps.
func running[T any](x []T, rows, steps []int64, f func(a, b T) T) []T {
	for _, r := range rows {
		for i := 1; i < len(steps); i++ {
			x[r+steps[i]] = f(x[r+steps[i-1]], x[r+steps[i]])
		}
	}
	return x
}
