package op

import (
	"math"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// GeluAttr is the attribute struct of Gelu.
type GeluAttr struct {
	Tanh bool `ir:"tanh"` // the tanh approximation instead of erf
}

// Gelu is x times the normal distribution's cumulative function at x, floats, in f32 at least and rounded once (aten::gelu):
// x/2 (1 + erf(x / sqrt 2)), or x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
var Gelu = define(Def[GeluAttr]{
	Name: "gelu", Doc: "Applies the Gaussian error linear unit.", Args: "x",
	Traits: ir.Elementwise,
	Infer:  func(in []tensor.Type, _ GeluAttr) ([]tensor.Type, error) { return sameTypes(floats)(in, None{}) },
	Decompose: func(b *ir.Builder, n *ir.Node, a GeluAttr) []*ir.Value {
		x := widen(b, n.Args[0])
		c := func(v float64) *ir.Value { return Splat(b, x.Type, v) }
		var g *ir.Value
		if a.Tanh {
			cube := Mul.Make(b, Mul.Make(b, x, x), x)
			g = Tanh.Make(b, Mul.Make(b, c(geluSlope), Add.Make(b, x, Mul.Make(b, c(geluCubic), cube))))
		} else {
			g = Erf.Make(b, Mul.Make(b, x, c(1/math.Sqrt2)))
		}
		y := Mul.Make(b, Mul.Make(b, x, c(0.5)), Add.Make(b, g, c(1)))
		return []*ir.Value{Cast(b, y, n.Outs[0].Type.DType)}
	},
	Eval: func(in []*tensor.Tensor, a GeluAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
		f := func(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) }
		if a.Tanh {
			f = func(x float64) float64 { return x / 2 * (1 + math.Tanh(geluSlope*(x+geluCubic*x*x*x))) }
		}
		return scalar1{f: f}.eval(in, None{}, out)
	},
	Cost: func(n *ir.Node, _ GeluAttr) ir.Cost { return ir.Cost{Flops: 8 * n.Outs[0].Type.Elements()} },
})

// Constants of the tanh approximation.
const (
	geluSlope = 0.7978845608028654 // sqrt(2/pi)
	geluCubic = 0.044715
)
