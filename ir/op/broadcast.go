package op

import (
	"fmt"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// BroadcastAttr is the attribute struct of Broadcast.
type BroadcastAttr struct {
	Shape []int64 `ir:"shape"` // of the result
	Dims  []int64 `ir:"dims"`  // for each dimension of x its place in the result, ascending
}

// Broadcast repeats x along new dimensions and along its own of extent 1 (StableHLO broadcast_in_dim).
var Broadcast = define(Def[BroadcastAttr]{
	Name: "broadcast", Doc: "Repeats a tensor along new dimensions and along its dimensions of extent 1.", Args: "x",
	Traits: ir.Exact,
	Infer:  inferBroadcast,
	Lower: func(e ir.Emitter, n *ir.Node, a BroadcastAttr) []ir.Ref {
		return e.Emit(ir.HLO{Name: "stablehlo.broadcast_in_dim", Args: refs(e, n),
			Attrs: []string{"broadcast_dimensions = " + i64Array(a.Dims)}, Out: []tensor.Type{n.Outs[0].Type}})
	},
	Eval: evalBroadcast,
	Cost: func(*ir.Node, BroadcastAttr) ir.Cost { return ir.Cost{} },
})

// inferBroadcast checks the length of Dims in 1, their order in 2 and every extent in 3.
func inferBroadcast(in []tensor.Type, a BroadcastAttr) ([]tensor.Type, error) {
	x := in[0]
	if len(a.Dims) != x.Rank() {
		return nil, fail(1, "%d dims for an argument of rank %d", len(a.Dims), x.Rank())
	}
	for i, d := range a.Dims {
		switch {
		case d < 0 || d >= int64(len(a.Shape)) || i > 0 && d <= a.Dims[i-1]:
			return nil, fail(2, "dims are %v, wanted ascending places in a result of rank %d", a.Dims, len(a.Shape))
		case x.Dims[i] != 1 && x.Dims[i] != a.Shape[d]:
			return nil, fail(3, "argument dimension %d is %d, wanted 1 or %d as result dimension %d", i, x.Dims[i], a.Shape[d], d)
		}
	}
	return one(x.WithDims(a.Shape...))
}

// evalBroadcast reads x with stride 0 along what repeats.
func evalBroadcast(in []*tensor.Tensor, a BroadcastAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
	x := in[0]
	xs := tensor.Strides(x.Dims)
	strides := make([]int64, len(a.Shape)) // of x, along result dimensions
	for i, d := range a.Dims {
		if x.Dims[i] != 1 {
			strides[d] = xs[i]
		}
	}
	return result(tensor.Gather(out[0], x.Data, 0, strides))
}

// walk visits every index of dims in row-major order. ix is reused.
func walk(dims []int64, visit func(ix []int64)) {
	ix := make([]int64, len(dims))
	for n := (tensor.Type{Dims: dims}).Elements(); n > 0; n-- {
		visit(ix)
		for d := len(dims) - 1; d >= 0; d-- {
			if ix[d]++; ix[d] < dims[d] {
				break
			}
			ix[d] = 0
		}
	}
}

// i64Array is such as "array<i64: 1, 2>".
func i64Array(v []int64) string {
	s := "array<i64"
	for i, x := range v {
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		s += sep + fmt.Sprint(x)
	}
	return s + ">"
}
