package op

import (
	"fmt"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// ConcatAttr is the attribute struct of Concat.
type ConcatAttr struct {
	Axis int64 `ir:"axis"`
}

// Concat joins tensors along Axis (StableHLO concatenate, aten::cat). They are of one dtype, and of one shape but along Axis.
var Concat = define(Def[ConcatAttr]{
	Name: "concat", Doc: "Joins tensors along an axis.", Args: "xs...",
	Traits: ir.Exact,
	Infer:  inferConcat,
	Lower: func(e ir.Emitter, n *ir.Node, a ConcatAttr) []ir.Ref {
		return e.Emit(ir.HLO{Name: "stablehlo.concatenate", Args: refs(e, n), Attrs: []string{fmt.Sprintf("dimension = %d : i64", a.Axis)},
			Out: []tensor.Type{n.Outs[0].Type}})
	},
	Eval: evalConcat,
	Cost: noCost[ConcatAttr],
})

// inferConcat checks that there is an argument in 1, the axis in 2, dtypes and ranks in 3 and the other extents in 4.
func inferConcat(in []tensor.Type, a ConcatAttr) ([]tensor.Type, error) {
	if len(in) == 0 {
		return nil, fail(1, "no arguments, wanted one or more")
	}
	x := in[0]
	if a.Axis < 0 || a.Axis >= int64(x.Rank()) {
		return nil, fail(2, "axis %d, wanted one of rank %d", a.Axis, x.Rank())
	}
	total := int64(0)
	for i, t := range in {
		if t.DType != x.DType || t.Rank() != x.Rank() {
			return nil, fail(3, "argument %d is %s, wanted dtype %s and rank %d as argument 0", i, t, x.DType, x.Rank())
		}
		for d, n := range t.Dims {
			if int64(d) != a.Axis && n != x.Dims[d] {
				return nil, fail(4, "argument %d is %s, argument 0 is %s, wanted equal dimensions but along axis %d", i, t, x, a.Axis)
			}
		}
		total += t.Dims[a.Axis]
	}
	return one(x.WithDims(with(x.Dims, a.Axis, total)...))
}

// evalConcat copies whole runs of bytes: what lies at and behind the axis is contiguous in every argument.
func evalConcat(in []*tensor.Tensor, a ConcatAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
	y := tensor.Zeros(out[0])
	rows := product(y.Dims[:a.Axis])
	row := int64(0) // bytes of a whole row
	if rows > 0 {
		row = int64(len(y.Data)) / rows
	}
	at := int64(0)
	for _, x := range in {
		part := int64(0)
		if rows > 0 {
			part = int64(len(x.Data)) / rows
		}
		for r := range rows {
			copy(y.Data[r*row+at:], x.Data[r*part:(r+1)*part])
		}
		at += part
	}
	return result(y)
}
