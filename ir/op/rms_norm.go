package op

import (
	"math"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// RMSNormAttr is the attribute struct of RMSNorm.
type RMSNormAttr struct {
	Eps  float64 `ir:"eps"`
	Rank int64   `ir:"rank"` // normalise over the last so many dimensions
}

// RMSNorm is x / sqrt(mean(x^2) + Eps) * w over the last Rank dimensions (aten::rms_norm). x and w are floats; w has the shape of those
// dimensions. All is computed in f32 at least and rounded once, to x's dtype.
var RMSNorm = define(Def[RMSNormAttr]{
	Name: "rms_norm", Doc: "Scales to unit root mean square over the last dimensions, then multiplies by a weight.", Args: "x w?",
	Infer: func(in []tensor.Type, a RMSNormAttr) ([]tensor.Type, error) { return inferNorm(in, a.Rank) },
	Decompose: func(b *ir.Builder, n *ir.Node, a RMSNormAttr) []*ir.Value {
		x := widen(b, n.Args[0])
		axes := lastAxes(x.Type, a.Rank)
		y := Mul.Make(b, x, spread(b, rsqrtEps(b, mean(b, Mul.Make(b, x, x), axes), a.Eps), x.Type, axes))
		return []*ir.Value{affine(b, y, n.Args[1:], n.Outs[0].Type)}
	},
	Eval: func(in []*tensor.Tensor, a RMSNormAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
		v := in[0].Floats()
		size := int(product(in[0].Dims[in[0].Rank()-int(a.Rank):]))
		for row := range chunks(v, size) {
			squares := 0.0
			for _, x := range row {
				squares += x * x
			}
			for i := range row {
				row[i] /= math.Sqrt(squares/float64(size) + a.Eps)
			}
		}
		return result(tensor.FromFloats(out[0], affineRows(v, in[1:])))
	},
	Cost: func(n *ir.Node, _ RMSNormAttr) ir.Cost { return ir.Cost{Flops: 4 * n.Outs[0].Type.Elements()} },
})
