package op

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// BitcastAttr is the attribute struct of Bitcast.
type BitcastAttr struct {
	To tensor.DType `ir:"to"`
}

// Bitcast reads the bits of every element as another type of the same width, 8 bits or more (StableHLO bitcast_convert between equal
// widths, aten::view.dtype).
var Bitcast = define(Def[BitcastAttr]{
	Name: "bitcast", Doc: "Reads the bits of every element as another type of the same width.", Args: "x",
	Traits: ir.Elementwise | ir.Exact,
	Infer: func(in []tensor.Type, a BitcastAttr) ([]tensor.Type, error) {
		x := in[0]
		switch {
		case !(ints | floats).has(x.DType) || x.DType.Bits() < 8:
			return nil, fail(1, "dtype %s, wanted %s of 8 bits or more", x.DType, ints|floats)
		case a.To == tensor.Invalid || !(ints | floats).has(a.To) || a.To.Bits() != x.DType.Bits():
			return nil, fail(2, "to %s, wanted %s of %d bits", a.To, ints|floats, x.DType.Bits())
		}
		return one(x.WithDType(a.To))
	},
	Lower: func(e ir.Emitter, n *ir.Node, a BitcastAttr) []ir.Ref {
		return e.Emit(ir.HLO{Name: "stablehlo.bitcast_convert", Args: refs(e, n), Out: []tensor.Type{n.Outs[0].Type}})
	},
	Eval: func(in []*tensor.Tensor, _ BitcastAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
		return result(&tensor.Tensor{Type: out[0], Data: in[0].Data})
	},
	Cost: noCost[BitcastAttr],
})
