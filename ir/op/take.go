package op

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// TakeAttr is the attribute struct of Take.
type TakeAttr struct {
	Axis int64 `ir:"axis"`
}

// Take takes slices of x, of any dtype, along Axis at ids, integers of any rank, whose dimensions replace Axis (aten::index_select,
// aten::select). Ids are clamped to the extent; negative ones do not count from the end.
var Take = define(Def[TakeAttr]{
	Name: "take", Doc: "Takes slices along an axis.", Args: "x ids",
	Traits: ir.Exact,
	Infer: func(in []tensor.Type, a TakeAttr) ([]tensor.Type, error) {
		switch x, ids := in[0], in[1]; {
		case a.Axis < 0 || a.Axis >= int64(x.Rank()):
			return nil, fail(1, "axis %d, wanted one of rank %d", a.Axis, x.Rank())
		case !ids.DType.IsInt():
			return nil, fail(2, "ids are %s, wanted integers", ids)
		case x.Dims[a.Axis] == 0 && ids.Elements() != 0:
			return nil, fail(3, "axis %d of %s is empty, wanted elements as ids is not empty", a.Axis, x)
		}
		return inferTake(in[0], in[1], a.Axis)
	},
	Decompose: func(b *ir.Builder, n *ir.Node, a TakeAttr) []*ir.Value { return decomposeTake(b, n, a.Axis) },
	Eval: func(in []*tensor.Tensor, a TakeAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
		return result(take(in[0], in[1], a.Axis, out[0]))
	},
	Cost: func(n *ir.Node, _ TakeAttr) ir.Cost {
		return ir.Cost{Bytes: 2*n.Outs[0].Type.Bytes() + n.Args[1].Type.Bytes()}
	},
})

// inferTake gives the result type; the callers have checked.
func inferTake(x, ids tensor.Type, axis int64) ([]tensor.Type, error) {
	return one(x.WithDims(slices.Concat(x.Dims[:axis], ids.Dims, x.Dims[axis+1:])...))
}

// decomposeTake is a gather of slices of extent 1 along axis.
func decomposeTake(b *ir.Builder, n *ir.Node, axis int64) []*ir.Value {
	x, ids, out := n.Args[0], n.Args[1], n.Outs[0].Type
	if x.Type.Dims[axis] == 0 { // a gather has no slice of size 1 to take; the result is empty
		return []*ir.Value{Splat(b, out, 0)}
	}
	after := int(axis) + ids.Type.Rank()
	return []*ir.Value{Gather.Make(b, GatherAttr{
		OffsetDims:         slices.Concat(count(0, int(axis)), count(after, out.Rank())),
		CollapsedSliceDims: []int64{axis},
		StartIndexMap:      []int64{axis},
		IndexVectorDim:     int64(ids.Type.Rank()),
		SliceSizes:         with(x.Type.Dims, axis, 1),
	}, x, ids)}
}

// take copies runs of bytes: what lies behind the axis is contiguous.
func take(x, ids *tensor.Tensor, axis int64, t tensor.Type) *tensor.Tensor {
	y := tensor.Zeros(t)
	inner := product(x.Dims[axis+1:]) * int64(x.DType.Size()) // bytes
	at := int64(0)
	v := ids.Ints()
	for o := range product(x.Dims[:axis]) {
		for _, i := range v {
			if ids.DType == tensor.U64 && i < 0 {
				i = x.Dims[axis]
			}
			from := (o*x.Dims[axis] + min(max(i, 0), x.Dims[axis]-1)) * inner
			copy(y.Data[at:at+inner], x.Data[from:from+inner])
			at += inner
		}
	}
	return y
}
