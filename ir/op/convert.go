package op

import (
	"math/bits"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// ConvertAttr is the attribute struct of Convert.
type ConvertAttr struct {
	To tensor.DType `ir:"to"`
}

// Convert changes the element type (StableHLO convert, aten::to). Towards floats it rounds once, to nearest with ties to even.
// Floats become integers by truncation towards zero, saturating at the type's range, NaN becoming 0; integers wrap. Towards bool it is
// x != 0, from bool 0 or 1. Complex numbers become real ones by their real part.
var Convert = define(Def[ConvertAttr]{
	Name: "convert", Doc: "Changes the element type.", Args: "x",
	Traits: ir.Elementwise | ir.Exact,
	Infer: func(in []tensor.Type, a ConvertAttr) ([]tensor.Type, error) {
		if a.To == tensor.Invalid {
			return nil, fail(1, "no dtype to convert to, wanted one")
		}
		return one(in[0].WithDType(a.To))
	},
	Lower: func(e ir.Emitter, n *ir.Node, a ConvertAttr) []ir.Ref {
		x := e.Value(n.Args[0])
		if d := x.Type.DType; d.IsComplex() && !a.To.IsComplex() {
			if a.To == tensor.Bool {
				zero := emitBroadcast(e, emitConstant(e, tensor.Zeros(tensor.Make(d))), x.Type.Dims)
				return []ir.Ref{emitCompare(e, NE, x, zero)}
			}
			x = e.Emit(ir.HLO{Name: "stablehlo.real", Args: []ir.Ref{x}, Out: []tensor.Type{x.Type.WithDType(d.Real())}})[0]
		}
		return []ir.Ref{emitConvert(e, x, a.To)}
	},
	Eval: evalConvert,
})

// evalConvert goes through int64 between integers and through float64 otherwise, where neither loses a bit of the argument.
func evalConvert(in []*tensor.Tensor, a ConvertAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
	x, t := in[0], out[0]
	switch from := x.DType; {
	case from == a.To:
		return result(x)
	case from.IsComplex() && a.To == tensor.Bool:
		y := tensor.Zeros(t)
		for i, c := range x.Complexes() {
			if c != 0 {
				y.Data[i] = 1
			}
		}
		return result(y)
	case a.To.IsComplex():
		return result(tensor.FromComplexes(t, x.Complexes()))
	case from.IsFloat() || from.IsComplex():
		return result(tensor.FromFloats(t, x.Floats()))
	case from == tensor.U64 && a.To.IsFloat():
		return result(tensor.FromFloats(t, unsignedFloats(x, a.To)))
	}
	return result(tensor.FromInts(t, x.Ints()))
}

// unsignedFloats are the elements of a u64 tensor, ready for one rounding to d: towards formats narrower than f64 the lost low bits are
// kept as a sticky bit, so that rounding twice is rounding once.
func unsignedFloats(x *tensor.Tensor, d tensor.DType) []float64 {
	out := make([]float64, x.Elements())
	for i, u := range unsigned(x) {
		if n := bits.Len64(u); d != tensor.F64 && n > 53 {
			lost := u & (1<<(n-53) - 1)
			u -= lost
			if lost != 0 {
				u |= 1 << (n - 53)
			}
		}
		out[i] = float64(u)
	}
	return out
}
