package op

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// Div is x / y (StableHLO divide): true division of floats and complex numbers; of integers, truncated towards zero
// (aten::div with rounding_mode "trunc"). An integer divided by zero gives -1, all bits set, as XLA does.
var Div = definePlain(Def[None]{
	Name: "div", Doc: "Divides two tensors of one type elementwise; integers truncate towards zero.", Args: "x y",
	Traits: ir.Elementwise | ir.Exact,
	Infer:  sameTypes(numbers),
	Lower:  lowerDiv,
	Eval: scalar2{
		i: func(x, y int64) int64 {
			if y == 0 {
				return -1
			}
			return x / y
		},
		u: func(x, y uint64) uint64 {
			if y == 0 {
				return ^uint64(0)
			}
			return x / y
		},
		f: func(x, y float64) float64 { return x / y },
		c: func(x, y complex128) complex128 { return x / y },
	}.eval,
})

// lowerDiv divides f16 in f32 and rounds once, as torch does: XLA multiplies by the reciprocal of a repeated divisor, which in f16 gives a third of
// all quotients another last bit (seen with lammps-jax-pjrt-cpu 0.11.2; bf16 it computes in f32 by itself).
func lowerDiv(e ir.Emitter, n *ir.Node, a None) []ir.Ref {
	t := n.Outs[0].Type
	if t.DType != tensor.F16 {
		return lowerTo("stablehlo.divide")(e, n, a)
	}
	wide := t.WithDType(tensor.F32)
	var args []ir.Ref
	for _, r := range refs(e, n) {
		args = append(args, e.Emit(ir.HLO{Name: "stablehlo.convert", Args: []ir.Ref{r}, Out: []tensor.Type{wide}})...)
	}
	q := e.Emit(ir.HLO{Name: "stablehlo.divide", Args: args, Out: []tensor.Type{wide}})
	return e.Emit(ir.HLO{Name: "stablehlo.convert", Args: q, Out: []tensor.Type{t}})
}
