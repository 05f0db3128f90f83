package op

import (
	"cmp"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// CumMaxAttr is the attribute struct of CumMax.
type CumMaxAttr struct {
	Axis     int64 `ir:"axis"`
	Smallest bool  `ir:"smallest"` // the minimum in place of the maximum
}

// CumMax is the largest of every element and all before it along Axis, and the i64 index of the last element that equals it (aten::cummax,
// aten::cummin). Bools, integers or floats; NaN, once seen, stays, with the index of the last NaN.
var CumMax = define(Def[CumMaxAttr]{
	Name: "cummax", Doc: "Takes the largest element up to every one along an axis, and its index.", Args: "x",
	Traits: ir.Exact,
	Infer: func(in []tensor.Type, a CumMaxAttr) ([]tensor.Type, error) {
		switch x := in[0]; {
		case x.DType.IsComplex():
			return nil, fail(1, "dtype %s, wanted %s", x.DType, bools|ints|floats)
		case a.Axis < 0 || a.Axis >= int64(x.Rank()):
			return nil, fail(2, "axis %d, wanted one of rank %d", a.Axis, x.Rank())
		}
		return []tensor.Type{in[0], in[0].WithDType(tensor.I64)}, nil
	},
	Decompose: decomposeCumMax, Eval: evalCumMax,
})

// decomposeCumMax carries i32 indices; index -1, before the start, never wins.
func decomposeCumMax(b *ir.Builder, n *ir.Node, a CumMaxAttr) []*ir.Value {
	x, dir := n.Args[0], GE
	if a.Smallest {
		dir = LE
	}
	xs := []*ir.Value{x, Iota.Make(b, IotaAttr{Type: x.Type.WithDType(tensor.I32), Axis: a.Axis})}
	none := []*tensor.Tensor{tensor.Scalar(x.Type.DType, 0), tensor.ScalarInt(tensor.I32, -1)}
	ys := cumulate(b, a.Axis, false, xs, none, func(e, l []*ir.Value) []*ir.Value {
		later := Compare.Make(b, CompareAttr{Dir: dir}, l[0], e[0])
		if x.Type.DType.IsFloat() {
			later = Or.Make(b, later, Compare.Make(b, CompareAttr{Dir: NE}, l[0], l[0]))
		}
		later = Or.Make(b, later, Compare.Make(b, CompareAttr{Dir: LT}, e[1], Splat(b, e[1].Type, 0)))
		return []*ir.Value{Select.Make(b, later, l[0], e[0]), Select.Make(b, later, l[1], e[1])}
	})
	return []*ir.Value{ys[0], Cast(b, ys[1], tensor.I64)}
}

// evalCumMax keeps the place of the extreme while it walks.
func evalCumMax(in []*tensor.Tensor, a CumMaxAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
	x := in[0]
	values, indices := tensor.Zeros(out[0]), make([]int64, x.Elements())
	compare, size := extremeComparer(x, a.Smallest), int64(x.DType.Size())
	along := []int64{a.Axis}
	steps := offsets(x.Dims, along)
	for _, r := range offsets(x.Dims, free(x.Rank(), along)) {
		top := 0
		for i, s := range steps {
			if compare(r+s, r+steps[top]) >= 0 {
				top = i
			}
			copy(values.Data[(r+s)*size:(r+s+1)*size], x.Data[(r+steps[top])*size:])
			indices[r+s] = int64(top)
		}
	}
	return []*tensor.Tensor{values, tensor.FromInts(out[1], indices)}, nil
}

// extremeComparer orders elements so that the extreme is the largest, and NaN above all.
func extremeComparer(x *tensor.Tensor, smallest bool) func(i, j int64) int {
	order := comparer(x)
	if !smallest {
		return order
	}
	if !x.DType.IsFloat() {
		return func(i, j int64) int { return -order(i, j) }
	}
	v := x.Floats()
	return func(i, j int64) int { return -cmp.Compare(v[i], v[j]) } // cmp orders NaN first
}
