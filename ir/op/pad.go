package op

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// PadAttr is the attribute struct of Pad. Each list has one entry a dimension of x.
type PadAttr struct {
	Low      []int64 `ir:"low"`      // elements added before the first; a negative number removes
	High     []int64 `ir:"high"`     // elements added after the last; a negative number removes
	Interior []int64 `ir:"interior"` // elements added between any two, before Low and High apply
}

// Pad adds elements of the 0-d value around and between those of x, of one dtype (StableHLO pad, aten::constant_pad_nd).
var Pad = define(Def[PadAttr]{
	Name: "pad", Doc: "Adds or removes elements at the edges and between elements.", Args: "x value",
	Traits: ir.Exact,
	Infer:  inferPad,
	Lower: func(e ir.Emitter, n *ir.Node, a PadAttr) []ir.Ref {
		return e.Emit(ir.HLO{Name: "stablehlo.pad", Args: refs(e, n), Attrs: []string{"edge_padding_high = " + i64Array(a.High),
			"edge_padding_low = " + i64Array(a.Low), "interior_padding = " + i64Array(a.Interior)}, Out: []tensor.Type{n.Outs[0].Type}})
	},
	Eval: evalPad,
	Cost: noCost[PadAttr],
})

// inferPad checks the value in 1, lengths in 2 and each dimension in 3 to 5.
func inferPad(in []tensor.Type, a PadAttr) ([]tensor.Type, error) {
	x, v := in[0], in[1]
	if !v.Equal(tensor.Make(x.DType)) {
		return nil, fail(1, "value is %s, wanted %s", v, tensor.Make(x.DType))
	}
	if len(a.Low) != x.Rank() || len(a.High) != x.Rank() || len(a.Interior) != x.Rank() {
		return nil, fail(2, "%d low, %d high and %d interior amounts, wanted %d of each", len(a.Low), len(a.High), len(a.Interior), x.Rank())
	}
	dims := make([]int64, x.Rank())
	for i, extent := range x.Dims {
		if a.Interior[i] < 0 {
			return nil, fail(3, "dimension %d: interior amount %d, wanted 0 or more", i, a.Interior[i])
		}
		const most = 1 << 40 // keeps the sums below from overflowing
		if a.Interior[i] > most || !within(a.Low[i], most) || !within(a.High[i], most) || extent > most || extent > 0 && a.Interior[i] > most/extent {
			return nil, fail(5, "dimension %d: extent %d with low %d, high %d and interior %d, wanted all within 2^40", i, extent, a.Low[i], a.High[i], a.Interior[i])
		}
		dims[i] = extent + max(extent-1, 0)*a.Interior[i] + a.Low[i] + a.High[i]
		if dims[i] < 0 {
			return nil, fail(4, "dimension %d: extent %d with low %d and high %d leaves %d, wanted 0 or more", i, extent, a.Low[i], a.High[i], dims[i])
		}
	}
	return one(x.WithDims(dims...))
}

// evalPad fills the result with the value and puts every element of x that is not cropped in its place.
func evalPad(in []*tensor.Tensor, a PadAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
	x := in[0]
	y := tensor.Gather(out[0], in[1].Data, 0, make([]int64, out[0].Rank()))
	size := int64(x.DType.Size())
	strides := tensor.Strides(y.Dims)
	from := int64(0)
	walk(x.Dims, func(ix []int64) {
		at := int64(0)
		for d, i := range ix {
			j := a.Low[d] + i*(1+a.Interior[d])
			if j < 0 || j >= y.Dims[d] {
				at = -1
				break
			}
			at += j * strides[d]
		}
		if at >= 0 {
			copy(y.Data[at*size:(at+1)*size], x.Data[from:])
		}
		from += size
	})
	return result(y)
}
