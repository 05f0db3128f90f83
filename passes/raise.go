package passes

import (
	"tpuc/ir"
	"tpuc/ir/op"
)

// raise finds what models spell out in small operators and states it in the operator that means it. A match is exact: the composite rounds
// to a narrower dtype where the original does and nowhere else. Within f32 and f64 sums and products may associate otherwise.
var raise = Pass{
	Name: "raise", Doc: "Recognises what models spell out in small operators.",
	After: []string{"simplify"}, // identity slices, casts and doubled reshapes are gone
	Rules: raiseRules,
	Run:   func(c *Context, m *ir.Module) error { return applyRules(c, m, raiseRules) },
}

var raiseRules = []Rule{
	counted("rms_norm", "x * rsqrt(mean(x * x) + eps) over the last dimensions.", op.Mul.Op, rmsNorm),
	counted("rms_norm_weight", "rms_norm(x) * w is rms_norm(x, w) where nothing is rounded between.", op.Mul.Op, rmsNormWeight),
	counted("layer_norm", "(x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) over the last dimensions.", op.Div.Op, layerNorm),
	counted("layer_norm_weight", "layer_norm(x) * w is layer_norm(x, w) where nothing is rounded between.", op.Mul.Op, layerNormWeight),
	counted("layer_norm_bias", "layer_norm(x, w) + b is layer_norm(x, w, b) where nothing is rounded between.", op.Add.Op, layerNormBias),
	counted("gelu", "x / 2 * (1 + erf(x / sqrt 2)), or with tanh(sqrt(2/pi) (x + 0.044715 x^3)).", op.Mul.Op, gelu),
	counted("silu", "x * sigmoid(x).", op.Mul.Op, silu),
	counted("in_f32", "convert(f(convert(x))) is f(x) where f computes in f32 and rounds once.", op.Convert.Op, inF32),
	rule("softmax_shift", "softmax(x - max(x)) is softmax(x).", op.Softmax.Op, softmaxShift),
	counted("rope", "x * cos + rotated(x) * sin, where halves or neighbours of the last dimension are swapped and half of them negated.", op.Add.Op, rope),
	counted("attention", "softmax(scale q k' + mask) v, eager or decomposed, the fully masked row that gives 0 included.", op.Dot.Op, attention),
	rule("repeat_kv", "Attention over repeated key and value heads reads the heads before the repetition.", op.Attention.Op, repeatKV),
	counted("experts", "Rows times a matrix each that is taken from a stack are, sorted by matrix, the groups of grouped_dot.", op.Dot.Op, experts),
	counted("experts_rounded", "convert(product) of such rows, below f32, likewise.", op.Convert.Op, roundedExperts),
}
