package pt2

import (
	"math"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// unaryRules are the operators of one tensor that work elementwise.
var unaryRules = map[string]rule{
	"neg":            same(op.Neg),
	"negative":       same(op.Neg),
	"positive":       aliased,
	"sign":           value(func(c *call) *ir.Value { return signOf(c.b, c.val("self")) }),
	"sgn":            value(sgn),
	"exp":            floating(op.Exp),
	"exp2":           formula(func(f fb, x *ir.Value) *ir.Value { return op.Exp.Make(f.b, f.scale(x, math.Ln2)) }),
	"log":            floating(op.Log),
	"sin":            floating(op.Sin),
	"cos":            floating(op.Cos),
	"tan":            floating(op.Tan),
	"sinh":           formula(func(f fb, x *ir.Value) *ir.Value { return f.half(f.sub(f.exp(x), f.exp(f.neg(x)))) }),
	"cosh":           formula(func(f fb, x *ir.Value) *ir.Value { return f.half(f.add(f.exp(x), f.exp(f.neg(x)))) }),
	"tanh":           floating(op.Tanh),
	"erf":            floating(op.Erf),
	"floor":          rounding(op.Floor),
	"ceil":           rounding(op.Ceil),
	"round":          rounding(op.Round),
	"round.decimals": value(func(c *call) *ir.Value { return c.roundTo(c.val("self")) }),
	"trunc":          value(func(c *call) *ir.Value { return truncate(c.b, c.val("self")) }),
	"fix":            value(func(c *call) *ir.Value { return truncate(c.b, c.val("self")) }),
	"frac":           formula(func(f fb, x *ir.Value) *ir.Value { return f.sub(x, truncate(f.b, x)) }),
	"reciprocal":     formula(func(f fb, x *ir.Value) *ir.Value { return op.Div.Make(f.b, f.c(x, 1), x) }),
	"square":         value(square),
	"deg2rad":        formula(func(f fb, x *ir.Value) *ir.Value { return f.scale(x, math.Pi/180) }),
	"rad2deg":        formula(func(f fb, x *ir.Value) *ir.Value { return f.scale(x, 180/math.Pi) }),
	"bitwise_not":    same(op.Not),
	"logical_not":    value(func(c *call) *ir.Value { return op.Not.Make(c.b, c.cast(c.val("self"), tensor.Bool)) }),
	"isnan":          value(func(c *call) *ir.Value { x := c.val("self"); return compare(c.b, op.NE, x, x) }),
	"isinf":          value(isInf),
	"isfinite":       value(isFinite),
	"nan_to_num":     value(nanToNum),
	"relu":           value(func(c *call) *ir.Value { x := c.val("self"); return op.Maximum.Make(c.b, x, likeF(c.b, x, 0)) }),
	"relu6":          value(func(c *call) *ir.Value { return c.clampTo(c.val("self"), floatScalar(0), floatScalar(6)) }),
	"hardtanh":       value(func(c *call) *ir.Value { return c.clampTo(c.val("self"), c.scalar("min_val"), c.scalar("max_val")) }),
	"gelu": value(func(c *call) *ir.Value {
		return op.Gelu.Make(c.b, op.GeluAttr{Tanh: c.str("approximate") == "tanh"}, c.val("self"))
	}),
	"mish":             formula(func(f fb, x *ir.Value) *ir.Value { return f.mul(x, op.Tanh.Make(f.b, f.softplus(x))) }),
	"log_sigmoid":      formula(func(f fb, x *ir.Value) *ir.Value { return f.neg(f.softplus(f.neg(x))) }),
	"softplus":         formula(softplus),
	"hardsigmoid":      formula(func(f fb, x *ir.Value) *ir.Value { return f.hardsigmoid(x) }),
	"hardswish":        formula(func(f fb, x *ir.Value) *ir.Value { return f.mul(x, f.hardsigmoid(x)) }),
	"elu":              formula(elu),
	"celu":             formula(celu),
	"selu":             formula(func(f fb, x *ir.Value) *ir.Value { return f.elu(x, 1.6732632423543772, 1.0507009873554805, 1) }),
	"leaky_relu":       formula(leakyRelu),
	"threshold":        value(threshold),
	"hardshrink":       value(hardshrink),
	"softshrink":       formula(softshrink),
	"logit":            eachStep(logit),
	"signbit":          value(signbit),
	"dropout":          evalOnly("train", aliasOf("input")),
	"feature_dropout":  evalOnly("train", aliasOf("input")),
	"alpha_dropout":    evalOnly("train", aliasOf("input")),
	"dropout_":         evalOnly("train", aliasOf("self")),
	"feature_dropout_": evalOnly("train", aliasOf("self")),
	"alpha_dropout_":   evalOnly("train", aliasOf("self")),
	"rrelu":            evalOnly("training", formula(rrelu)),
	"native_dropout":   evalOnly("train", nativeDropout),
	"sinc":             formula(sinc),
	"special_sinc":     formula(sinc),
	"special_entr": eachStep(func(f fb, x *ir.Value) *ir.Value {
		return f.where(op.LT, x, 0, f.c(x, math.Inf(-1)), f.neg(xlogy(f.b, []*ir.Value{x, x})))
	}),
	"special_erf":         floating(op.Erf),
	"isposinf":            value(func(c *call) *ir.Value { return c.isInfinity(math.Inf(1)) }),
	"isneginf":            value(func(c *call) *ir.Value { return c.isInfinity(math.Inf(-1)) }),
	"log_softmax.int":     value(logSoftmaxOf("dtype")),
	"_log_softmax":        value(logSoftmaxOf("")),
	"softmax.int":         value(softmaxOf("dtype")),
	"_softmax":            value(softmaxOf("")),
	"_safe_softmax":       value(safeSoftmax),
	"special_log_softmax": value(logSoftmaxOf("dtype")),
}

// same applies an operator that keeps the dtype.
func same(p op.Plain) rule {
	return value(func(c *call) *ir.Value { return p.Make(c.b, c.val("self")) })
}

// floating applies an operator of floats, to integers as f32.
func floating(p op.Plain) rule {
	return value(func(c *call) *ir.Value {
		x := c.val("self")
		return p.Make(c.b, c.cast(x, floatResult(x.Type.DType)))
	})
}

// rounding applies an operator of floats that does nothing to integers.
func rounding(p op.Plain) rule {
	return value(func(c *call) *ir.Value {
		x := c.val("self")
		if !x.Type.DType.IsFloat() {
			return x
		}
		if d := c.schema.param("decimals"); d != nil && c.int("decimals") != 0 {
			c.unsupported("rounding to %d decimals", c.int("decimals"))
		}
		return p.Make(c.b, x)
	})
}

// roundTo rounds to decimals after the point, each step in x's type as torch does; integers stay.
func (c *call) roundTo(x *ir.Value) *ir.Value {
	n := c.int("decimals")
	if !x.Type.DType.IsFloat() || n < -308 || n > 308 {
		return x
	}
	ten := likeF(c.b, x, math.Pow(10, math.Abs(float64(n))))
	up, down := op.Mul, op.Div
	if n < 0 {
		up, down = down, up
	}
	return down.Make(c.b, op.Round.Make(c.b, up.Make(c.b, x, ten)), ten)
}

// signOf of bools is themselves.
func signOf(b *ir.Builder, x *ir.Value) *ir.Value {
	if x.Type.DType == tensor.Bool {
		return x
	}
	y := op.Sign.Make(b, x)
	if x.Type.DType.IsFloat() { // torch subtracts two comparisons, so NaN gives 0
		y = op.Select.Make(b, compare(b, op.EQ, x, x), y, likeF(b, x, 0))
	}
	return y
}

// sgn is x/|x| of complex numbers, 0 at 0.
func sgn(c *call) *ir.Value {
	x := c.val("self")
	if !x.Type.DType.IsComplex() {
		return signOf(c.b, x)
	}
	r := c.magnitude(x)
	y := op.Div.Make(c.b, x, c.cast(r, x.Type.DType))
	return op.Select.Make(c.b, compare(c.b, op.EQ, r, likeF(c.b, r, 0)), likeF(c.b, x, 0), y)
}

// aliased gives self itself.
var aliased = aliasOf("self")

// aliasOf gives an argument itself, in shared memory.
func aliasOf(arg string) rule {
	return func(c *call) []*ref { return []*ref{c.ref(arg).through(c.b, identityView())} }
}

// square of bools is i64, as x**2 is.
func square(c *call) *ir.Value {
	x := c.val("self")
	if x.Type.DType == tensor.Bool {
		x = c.cast(x, tensor.I64)
	}
	return op.Mul.Make(c.b, x, x)
}

// evalOnly refuses the training form of an operator.
func evalOnly(flag string, r rule) rule {
	return func(c *call) []*ref {
		if c.has(flag) && c.bool(flag) {
			c.unsupported("it is random with %s=True; export the model in eval mode", flag)
		}
		return r(c)
	}
}

// nativeDropout gives the input and a mask that keeps everything.
func nativeDropout(c *call) []*ref {
	x := c.val("input")
	return []*ref{fresh(x), fresh(boolSplat(c.b, x.Type.Dims, true))}
}

// fb builds formulas of one float tensor; c gives access to further arguments.
type fb struct {
	b    *ir.Builder
	call *call
}

// formula is a rule over floats computed in f32 at least and rounded once.
func formula(f func(f fb, x *ir.Value) *ir.Value) rule {
	return value(func(c *call) *ir.Value {
		arg := "self"
		if c.schema.param(arg) == nil {
			arg = "x"
		}
		x := c.val(arg)
		d := floatResult(x.Type.DType)
		return c.cast(f(fb{c.b, c}, c.cast(x, wide(d))), d)
	})
}

// eachStep is a rule over floats of which torch rounds every step.
func eachStep(f func(f fb, x *ir.Value) *ir.Value) rule {
	return value(func(c *call) *ir.Value {
		x := c.val("self")
		return f(fb{c.b, c}, c.cast(x, floatResult(x.Type.DType)))
	})
}

func (f fb) c(x *ir.Value, v float64) *ir.Value     { return likeF(f.b, x, v) }
func (f fb) add(x, y *ir.Value) *ir.Value           { return op.Add.Make(f.b, x, y) }
func (f fb) sub(x, y *ir.Value) *ir.Value           { return op.Sub.Make(f.b, x, y) }
func (f fb) mul(x, y *ir.Value) *ir.Value           { return op.Mul.Make(f.b, x, y) }
func (f fb) neg(x *ir.Value) *ir.Value              { return op.Neg.Make(f.b, x) }
func (f fb) exp(x *ir.Value) *ir.Value              { return op.Exp.Make(f.b, x) }
func (f fb) scale(x *ir.Value, v float64) *ir.Value { return f.mul(x, f.c(x, v)) }
func (f fb) half(x *ir.Value) *ir.Value             { return f.scale(x, 0.5) }
func (f fb) max(x *ir.Value, v float64) *ir.Value   { return op.Maximum.Make(f.b, x, f.c(x, v)) }
func (f fb) min(x *ir.Value, v float64) *ir.Value   { return op.Minimum.Make(f.b, x, f.c(x, v)) }

// where chooses by comparing x with a number.
func (f fb) where(dir op.CompareDir, x *ir.Value, v float64, then, otherwise *ir.Value) *ir.Value {
	return op.Select.Make(f.b, compare(f.b, dir, x, f.c(x, v)), then, otherwise)
}

// leg is sqrt(1 - x*x), as the product of sums that keeps precision near 1.
func (f fb) leg(x *ir.Value) *ir.Value {
	one := f.c(x, 1)
	return op.Sqrt.Make(f.b, f.mul(f.sub(one, x), f.add(one, x)))
}

// softplus is log(1 + exp(x)) without overflow.
func (f fb) softplus(x *ir.Value) *ir.Value {
	return f.add(f.max(x, 0), op.Log1p.Make(f.b, f.exp(f.neg(op.Abs.Make(f.b, x)))))
}

// softplus is log(1 + exp(beta x)) / beta, and x itself above threshold.
func softplus(f fb, x *ir.Value) *ir.Value {
	beta, limit := f.call.float("beta"), f.call.float("threshold")
	bx := f.scale(x, beta)
	return f.where(op.GT, bx, limit, x, f.scale(f.softplus(bx), 1/beta))
}

// hardsigmoid is min(max(x + 3, 0), 6) / 6.
func (f fb) hardsigmoid(x *ir.Value) *ir.Value {
	return f.scale(f.min(f.max(f.add(x, f.c(x, 3)), 0), 6), 1.0/6)
}

// elu is scale*x above 0 and scale*alpha*(exp(input*x) - 1) below.
func (f fb) elu(x *ir.Value, alpha, scale, input float64) *ir.Value {
	low := f.scale(op.Expm1.Make(f.b, f.scale(f.min(x, 0), input)), alpha*scale)
	return f.where(op.GT, x, 0, f.scale(x, scale), low)
}

func elu(f fb, x *ir.Value) *ir.Value {
	return f.elu(x, f.call.float("alpha"), f.call.float("scale"), f.call.float("input_scale"))
}

// celu is elu with a slope of 1 at 0.
func celu(f fb, x *ir.Value) *ir.Value {
	alpha := f.call.float("alpha")
	return f.elu(x, alpha, 1, 1/alpha)
}

func leakyRelu(f fb, x *ir.Value) *ir.Value {
	return f.where(op.GT, x, 0, x, f.scale(x, f.call.float("negative_slope")))
}

// rrelu has the mean slope in eval mode.
func rrelu(f fb, x *ir.Value) *ir.Value {
	return f.where(op.GE, x, 0, x, f.scale(x, (f.call.float("lower")+f.call.float("upper"))/2))
}

// threshold keeps what lies above it; NaN is kept too.
func threshold(c *call) *ir.Value {
	x := c.val("self")
	return op.Select.Make(c.b, compare(c.b, op.LE, x, like(c.b, x, c.scalar("threshold"))), like(c.b, x, c.scalar("value")), x)
}

// hardshrink sets what lies within lambd of 0 to 0; NaN stays.
func hardshrink(c *call) *ir.Value {
	x, l := c.val("self"), c.float("lambd")
	in := op.And.Make(c.b, compare(c.b, op.GE, x, likeF(c.b, x, -l)), compare(c.b, op.LE, x, likeF(c.b, x, l)))
	return op.Select.Make(c.b, in, likeF(c.b, x, 0), x)
}

// softshrink moves elements towards 0 by lambd.
func softshrink(f fb, x *ir.Value) *ir.Value {
	l := f.call.float("lambd")
	low := f.where(op.LT, x, -l, f.add(x, f.c(x, l)), f.scale(x, 0))
	return f.where(op.GT, x, l, f.sub(x, f.c(x, l)), low)
}

// logit is log(x / (1 - x)), with x kept eps away from 0 and 1 where eps is given.
func logit(f fb, x *ir.Value) *ir.Value {
	if f.call.has("eps") {
		d := f.call.ref("self").typ.DType // in which the limits are rounded: 1-eps may be 1
		if !d.IsFloat() {
			d = x.Type.DType
		}
		lo := roundTo(d, f.call.float("eps"))
		hi := roundTo(d, 1-lo) // below lo where eps is above 1/2: lo wins then
		x = f.where(op.LT, x, lo, f.c(x, lo), f.where(op.GT, x, hi, f.c(x, hi), x))
	}
	return op.Log.Make(f.b, op.Div.Make(f.b, x, f.sub(f.c(x, 1), x)))
}

// roundTo is v in the precision of d.
func roundTo(d tensor.DType, v float64) float64 { return tensor.Scalar(d, v).Floats()[0] }

// truncate rounds towards zero.
func truncate(b *ir.Builder, x *ir.Value) *ir.Value {
	if !x.Type.DType.IsFloat() {
		return x
	}
	return op.Select.Make(b, compare(b, op.LT, x, likeF(b, x, 0)), op.Ceil.Make(b, x), op.Floor.Make(b, x))
}

// isInf of integers is false.
func isInf(c *call) *ir.Value {
	x := c.val("self")
	if x.Type.DType.IsComplex() {
		return partsOf(fb{c.b, c}, x).infinite()
	}
	if !x.Type.DType.IsFloat() {
		return boolSplat(c.b, x.Type.Dims, false)
	}
	return compare(c.b, op.EQ, op.Abs.Make(c.b, x), likeF(c.b, x, math.Inf(1)))
}

// isInfinity compares with one infinity.
func (c *call) isInfinity(v float64) *ir.Value {
	x := c.val("self")
	if !x.Type.DType.IsFloat() {
		return boolSplat(c.b, x.Type.Dims, false)
	}
	return compare(c.b, op.EQ, x, likeF(c.b, x, v))
}

// sinc is sin(pi x) / (pi x), and 1 at 0.
func sinc(f fb, x *ir.Value) *ir.Value {
	p := f.scale(x, math.Pi)
	return f.where(op.EQ, x, 0, f.c(x, 1), op.Div.Make(f.b, op.Sin.Make(f.b, p), p))
}

// isFinite of integers is true.
func isFinite(c *call) *ir.Value {
	x := c.val("self")
	if x.Type.DType.IsComplex() {
		return partsOf(fb{c.b, c}, x).finite()
	}
	if !x.Type.DType.IsFloat() {
		return boolSplat(c.b, x.Type.Dims, true)
	}
	return op.IsFinite.Make(c.b, x)
}

// signbit tells -0 from 0, by 1/x.
func signbit(c *call) *ir.Value {
	x := c.val("self")
	if x.Type.DType.IsFloat() { // tells -0 from 0
		one := likeF(c.b, x, 1)
		y := op.Select.Make(c.b, compare(c.b, op.EQ, x, likeF(c.b, x, 0)), op.Div.Make(c.b, one, x), x)
		return compare(c.b, op.LT, y, likeF(c.b, x, 0))
	}
	return compare(c.b, op.LT, x, likeF(c.b, x, 0))
}

// nanToNum replaces NaN and infinities; by default by 0 and the dtype's largest numbers. It does so in each part of complex numbers.
func nanToNum(c *call) *ir.Value {
	return c.eachPart(c.val("self"), func(x *ir.Value) *ir.Value {
		d := x.Type.DType
		if !d.IsFloat() {
			return x
		}
		f := fb{c.b, c}
		big := largest(d)
		pos, low := c.floatOr("posinf", big), c.floatOr("neginf", -big)
		y := f.where(op.EQ, x, math.Inf(1), f.c(x, pos), x)
		y = f.where(op.EQ, x, math.Inf(-1), f.c(x, low), y)
		return op.Select.Make(c.b, compare(c.b, op.NE, x, x), f.c(x, c.floatOr("nan", 0)), y)
	})
}

// largest is the largest finite value of a float type.
func largest(d tensor.DType) float64 {
	switch d {
	case tensor.F16:
		return 65504
	case tensor.BF16:
		return math.Ldexp(255, 120)
	case tensor.F32:
		return math.MaxFloat32
	case tensor.F8E4M3FN:
		return 448
	case tensor.F8E5M2:
		return 57344
	}
	return math.MaxFloat64
}

// softmaxInput is the tensor in the dtype asked for, and the axis.
func softmaxInput(c *call, dtypeArg string) (*ir.Value, int) {
	x := c.val("self")
	d := floatResult(x.Type.DType)
	if dtypeArg != "" {
		d = c.dtype(dtypeArg, d)
	} else if c.schema.param("half_to_float") != nil && c.bool("half_to_float") {
		d = tensor.F32
	}
	return c.cast(x, d), c.axis("dim", x.Type.Rank())
}

// softmaxOf is a rule of softmax; of a 0-d tensor it is 1.
func softmaxOf(dtypeArg string) func(c *call) *ir.Value {
	return func(c *call) *ir.Value {
		x, axis := softmaxInput(c, dtypeArg)
		if x.Type.Rank() == 0 {
			return likeF(c.b, x, 1)
		}
		return op.Softmax.Make(c.b, op.SoftmaxAttr{Axis: int64(axis)}, x)
	}
}

// logSoftmaxOf is a rule of log_softmax; of a 0-d tensor it is 0.
func logSoftmaxOf(dtypeArg string) func(c *call) *ir.Value {
	return func(c *call) *ir.Value {
		x, axis := softmaxInput(c, dtypeArg)
		if x.Type.Rank() == 0 {
			return likeF(c.b, x, 0)
		}
		return op.LogSoftmax.Make(c.b, op.LogSoftmaxAttr{Axis: int64(axis)}, x)
	}
}

// safeSoftmax gives 0 for rows of only -inf.
func safeSoftmax(c *call) *ir.Value {
	x, axis := softmaxInput(c, "dtype")
	y := op.Softmax.Make(c.b, op.SoftmaxAttr{Axis: int64(axis)}, x)
	top := reduce(c.b, op.Max, x, []int64{int64(axis)}, true)
	none := op.BroadcastTo(c.b, compare(c.b, op.EQ, top, likeF(c.b, top, math.Inf(-1))), x.Type.Dims)
	return op.Select.Make(c.b, none, likeF(c.b, y, 0), y)
}
