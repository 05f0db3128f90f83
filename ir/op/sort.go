package op

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// SortAttr is the attribute struct of Sort.
type SortAttr struct {
	Axis       int64 `ir:"axis"`
	Descending bool  `ir:"descending"`
	Stable     bool  `ir:"stable"` // equal elements keep their order
	Keys       int64 `ir:"keys"`   // the first so many arguments are compared, the first of them first; 0 means 1
}

// Sort orders tensors of one shape together along Axis (StableHLO sort, aten::sort): as many results as arguments, of their types.
// Keys are bools, integers or floats; NaN counts as larger than all else, zeros of both signs as equal.
var Sort = define(Def[SortAttr]{
	Name: "sort", Doc: "Orders tensors together along an axis by the first of them.", Args: "xs...",
	Traits: ir.Exact,
	Infer:  inferSort, Lower: lowerSort, Eval: evalSort,
	Cost: func(n *ir.Node, a SortAttr) ir.Cost {
		t := n.Outs[0].Type
		return ir.Cost{Flops: t.Elements() * int64(math.Ceil(math.Log2(float64(max(t.Dims[a.Axis], 2)))))}
	},
})

// keys is the number of arguments that are compared.
func (a SortAttr) keys() int64 { return max(a.Keys, 1) }

// inferSort checks arguments and axis in 1 and 2, keys in 3 and 5, and equal shapes in 4.
func inferSort(in []tensor.Type, a SortAttr) ([]tensor.Type, error) {
	if len(in) == 0 {
		return nil, fail(1, "no arguments, wanted one or more")
	}
	if a.Axis < 0 || a.Axis >= int64(in[0].Rank()) {
		return nil, fail(2, "axis %d, wanted one of rank %d", a.Axis, in[0].Rank())
	}
	if a.Keys < 0 || a.keys() > int64(len(in)) {
		return nil, fail(3, "%d keys, wanted 1 to %d", a.Keys, len(in))
	}
	for i, t := range in {
		if !slices.Equal(t.Dims, in[0].Dims) {
			return nil, fail(4, "argument %d is %s, wanted the shape of argument 0, %s", i, t, in[0])
		}
		if int64(i) < a.keys() && t.DType.IsComplex() {
			return nil, fail(5, "key %d is %s, wanted bool, integer or float", i, t)
		}
	}
	return slices.Clone(in), nil
}

// lowerSort writes the comparison out in the region, NaN included: a total order of bits would part zeros of both signs.
func lowerSort(e ir.Emitter, n *ir.Node, a SortAttr) []ir.Ref {
	var params, out []tensor.Type
	for _, v := range n.Args {
		params = append(params, tensor.Make(v.Type.DType), tensor.Make(v.Type.DType))
		out = append(out, v.Type)
	}
	return e.Emit(ir.HLO{Name: "stablehlo.sort", Args: refs(e, n),
		Attrs: []string{fmt.Sprintf("dimension = %d : i64", a.Axis), fmt.Sprintf("is_stable = %t", a.Stable)},
		Regions: []ir.Region{{Args: params, Body: func(e ir.Emitter, args []ir.Ref) []ir.Ref {
			// less(x0, y0) or equal(x0, y0) and (less(x1, y1) or ...), from the last key to the first.
			var before ir.Ref
			for k := a.keys() - 1; k >= 0; k-- {
				x, y := args[2*k], args[2*k+1]
				if a.Descending {
					x, y = y, x
				}
				less := emitLess(e, x, y)
				if before.Name != "" {
					same := emitAnd(e, emitNot(e, less), emitNot(e, emitLess(e, y, x)))
					less = emitOr(e, less, emitAnd(e, same, before))
				}
				before = less
			}
			return []ir.Ref{before}
		}}}, Out: out})
}

// emitLess is x < y with NaN above all else.
func emitLess(e ir.Emitter, x, y ir.Ref) ir.Ref {
	less := emitCompare(e, LT, x, y)
	if !x.Type.DType.IsFloat() {
		return less
	}
	return emitOr(e, less, emitAnd(e, emitCompare(e, EQ, x, x), emitCompare(e, NE, y, y)))
}

func emitAnd(e ir.Emitter, x, y ir.Ref) ir.Ref {
	return e.Emit(ir.HLO{Name: "stablehlo.and", Args: []ir.Ref{x, y}, Out: []tensor.Type{x.Type}})[0]
}

func emitOr(e ir.Emitter, x, y ir.Ref) ir.Ref {
	return e.Emit(ir.HLO{Name: "stablehlo.or", Args: []ir.Ref{x, y}, Out: []tensor.Type{x.Type}})[0]
}

func emitNot(e ir.Emitter, x ir.Ref) ir.Ref {
	return e.Emit(ir.HLO{Name: "stablehlo.not", Args: []ir.Ref{x}, Out: []tensor.Type{x.Type}})[0]
}

// evalSort sorts places, always stably, and moves all arguments by them.
func evalSort(in []*tensor.Tensor, a SortAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
	dims := in[0].Dims
	var keys []func(i, j int64) int // compare elements i and j
	for _, x := range in[:a.keys()] {
		keys = append(keys, comparer(x))
	}
	axis := []int64{a.Axis}
	rows, steps := offsets(dims, free(len(dims), axis)), offsets(dims, axis)
	from := make([]int64, product(dims)) // for each element of the results the element of the arguments
	order := make([]int64, len(steps))
	for _, r := range rows {
		for i, s := range steps {
			order[i] = r + s
		}
		slices.SortStableFunc(order, func(i, j int64) int {
			for _, k := range keys {
				if c := k(i, j); c != 0 {
					if a.Descending {
						return -c
					}
					return c
				}
			}
			return 0
		})
		for i, s := range steps {
			from[r+s] = order[i]
		}
	}
	ys := make([]*tensor.Tensor, len(in))
	for k, x := range in {
		ys[k] = tensor.Zeros(out[k])
		size := int64(x.DType.Size())
		for i, f := range from {
			copy(ys[k].Data[int64(i)*size:int64(i+1)*size], x.Data[f*size:])
		}
	}
	return ys, nil
}

// comparer orders the elements of x by their position, NaN last.
func comparer(x *tensor.Tensor) func(i, j int64) int {
	switch {
	case x.DType.IsFloat():
		v := x.Floats()
		return func(i, j int64) int { return -cmp.Compare(-v[i], -v[j]) } // cmp orders NaN first
	case x.DType == tensor.U64:
		v := unsigned(x)
		return func(i, j int64) int { return cmp.Compare(v[i], v[j]) }
	}
	v := x.Ints()
	return func(i, j int64) int { return cmp.Compare(v[i], v[j]) }
}
