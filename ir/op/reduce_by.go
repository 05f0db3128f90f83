package op

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// ReduceByAttr is the attribute struct of ReduceBy.
type ReduceByAttr struct {
	Fn   *ir.Func `ir:"fn"`   // takes n accumulated and n further scalars and gives n; associative
	Axes []int64  `ir:"axes"` // ascending; they are dropped
}

// ReduceBy combines n tensors of one shape together along Axes by a function (StableHLO reduce), such as a maximum with its index. The
// arguments are the tensors, then their initial values, scalars that the function leaves as they are. A program may combine in any order.
var ReduceBy = define(Def[ReduceByAttr]{
	Name: "reduce_by", Doc: "Combines elements of several tensors together along axes by a function.", Args: "xs...",
	Infer: inferReduceBy, Lower: lowerReduceBy, Control: runReduceBy,
	Cost: func(n *ir.Node, a ReduceByAttr) ir.Cost {
		return ir.Cost{Flops: funcCost(a.Fn) * n.Args[0].Type.Elements()}
	},
})

// inferReduceBy checks the number of arguments in 1, axes in 2, shapes in 3, initial values in 4 and the function in 5 and 6.
func inferReduceBy(in []tensor.Type, a ReduceByAttr) ([]tensor.Type, error) {
	n := len(in) / 2
	if n == 0 || len(in) != 2*n {
		return nil, fail(1, "%d arguments, wanted tensors and as many initial values", len(in))
	}
	rank := in[0].Rank()
	if !ascending(a.Axes, rank) {
		return nil, fail(2, "axes are %v, wanted ascending dimensions of rank %d", a.Axes, rank)
	}
	dims := pick(in[0].Dims, free(rank, a.Axes))
	var out, scalars []tensor.Type
	for i, x := range in[:n] {
		if !slices.Equal(x.Dims, in[0].Dims) {
			return nil, fail(3, "argument %d is %s, wanted the shape of argument 0, %s", i, x, in[0])
		}
		if !in[n+i].Equal(tensor.Make(x.DType)) {
			return nil, fail(4, "initial value %d is %s, wanted %s", i, in[n+i], tensor.Make(x.DType))
		}
		out, scalars = append(out, x.WithDims(dims...)), append(scalars, tensor.Make(x.DType))
	}
	if err := checkFunc(5, "fn", a.Fn, slices.Concat(scalars, scalars), scalars); err != nil {
		return nil, err
	}
	return out, nil
}

func lowerReduceBy(e ir.Emitter, n *ir.Node, a ReduceByAttr) []ir.Ref {
	var out []tensor.Type
	for _, o := range n.Outs {
		out = append(out, o.Type)
	}
	return e.Emit(ir.HLO{Name: "stablehlo.reduce", Args: refs(e, n), Attrs: []string{"dimensions = " + i64Array(a.Axes)},
		Regions: []ir.Region{{Args: a.Fn.ParamTypes(), Body: func(e ir.Emitter, args []ir.Ref) []ir.Ref { return e.Call(a.Fn, args) }}}, Out: out})
}

// runReduceBy combines in row-major order.
func runReduceBy(run ir.Runner, in []*tensor.Tensor, a ReduceByAttr) ([]*tensor.Tensor, error) {
	n := len(in) / 2
	xs, init := in[:n], in[n:]
	dims := xs[0].Dims
	outer, inner := offsets(dims, free(len(dims), a.Axes)), offsets(dims, a.Axes)
	out := make([]*tensor.Tensor, n)
	for i, x := range xs {
		out[i] = tensor.Zeros(x.WithDims(pick(dims, free(len(dims), a.Axes))...))
	}
	for at, o := range outer {
		acc := init
		for _, k := range inner {
			args := slices.Clone(acc)
			for i, x := range xs {
				args = append(args, &tensor.Tensor{Type: init[i].Type, Data: element(x, o+k)})
			}
			var err error
			if acc, err = run(a.Fn, args); err != nil {
				return nil, err
			}
		}
		for i, y := range out {
			copy(element(y, int64(at)), acc[i].Data)
		}
	}
	return out, nil
}

// element are the bytes of one element.
func element(x *tensor.Tensor, i int64) []byte {
	size := int64(x.DType.Size())
	return x.Data[i*size : (i+1)*size : (i+1)*size]
}
