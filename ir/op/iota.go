package op

import (
	"fmt"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// IotaAttr is the attribute struct of Iota.
type IotaAttr struct {
	Type tensor.Type `ir:"type"` // of the result: rank 1 or more, numeric
	Axis int64       `ir:"axis"`
}

// Iota counts 0, 1, 2, ... along Axis and repeats it along the others (StableHLO iota, aten::arange).
var Iota = define(Def[IotaAttr]{
	Name: "iota", Doc: "Counts up from zero along an axis.",
	Traits: ir.Exact,
	Infer: func(_ []tensor.Type, a IotaAttr) ([]tensor.Type, error) {
		switch {
		case !numbers.has(a.Type.DType) || a.Type.DType == tensor.Invalid:
			return nil, fail(1, "dtype %s, wanted %s", a.Type.DType, numbers)
		case a.Axis < 0 || a.Axis >= int64(a.Type.Rank()):
			return nil, fail(2, "axis %d, wanted one of rank %d", a.Axis, a.Type.Rank())
		}
		return one(a.Type)
	},
	Lower: func(e ir.Emitter, _ *ir.Node, a IotaAttr) []ir.Ref { return []ir.Ref{emitIota(e, a.Type, a.Axis)} },
	Eval: func(_ []*tensor.Tensor, a IotaAttr, _ []tensor.Type) ([]*tensor.Tensor, error) {
		n := a.Type.Dims[a.Axis]
		count := make([]int64, n)
		for i := range count {
			count[i] = int64(i)
		}
		strides := make([]int64, a.Type.Rank())
		strides[a.Axis] = 1
		return result(tensor.Gather(a.Type, tensor.FromInts(tensor.Make(a.Type.DType, n), count).Data, 0, strides))
	},
	Cost: noCost[IotaAttr],
})

// emitIota emits a count along axis.
func emitIota(e ir.Emitter, t tensor.Type, axis int64) ir.Ref {
	return e.Emit(ir.HLO{Name: "stablehlo.iota", Attrs: []string{fmt.Sprintf("iota_dimension = %d : i64", axis)}, Out: []tensor.Type{t}})[0]
}
