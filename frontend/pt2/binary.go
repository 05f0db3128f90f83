package pt2

import (
	"math"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// binaryRules are the operators of several tensors or numbers that work elementwise, with torch's type promotion.
var binaryRules = concatRules(map[string]rule{
	"add.Tensor":                value(func(c *call) *ir.Value { return c.addScaled("self", "other", op.Add) }),
	"add.Scalar":                value(func(c *call) *ir.Value { return c.addScaled("self", "other", op.Add) }),
	"sub.Tensor":                value(func(c *call) *ir.Value { return c.addScaled("self", "other", op.Sub) }),
	"sub.Scalar":                value(func(c *call) *ir.Value { return c.addScaled("self", "other", op.Sub) }),
	"subtract.Tensor":           value(func(c *call) *ir.Value { return c.addScaled("self", "other", op.Sub) }),
	"rsub.Tensor":               value(func(c *call) *ir.Value { return c.addScaled("other", "self", op.Sub) }),
	"rsub.Scalar":               value(func(c *call) *ir.Value { return c.addScaled("other", "self", op.Sub) }),
	"div.Tensor_mode":           value(divMode),
	"div.Scalar_mode":           value(divMode),
	"floor_divide":              value(floorDivide),
	"floor_divide.Scalar":       value(floorDivide),
	"pow.Tensor_Tensor":         value(pow),
	"pow.Tensor_Scalar":         value(pow),
	"pow.Scalar":                value(pow),
	"atan2":                     floatBinary(plain(op.Atan2)),
	"where.self":                value(where),
	"where.ScalarOther":         value(where),
	"where.ScalarSelf":          value(where),
	"where.Scalar":              value(where),
	"masked_fill.Scalar":        value(maskedFill),
	"masked_fill.Tensor":        value(maskedFill),
	"clamp":                     value(clamp("min", "max")),
	"clamp.Tensor":              value(clamp("min", "max")),
	"clip":                      value(clamp("min", "max")),
	"clip.Tensor":               value(clamp("min", "max")),
	"clamp_min":                 value(clamp("min", "")),
	"clamp_min.Tensor":          value(clamp("min", "")),
	"clamp_max":                 value(clamp("", "max")),
	"clamp_max.Tensor":          value(clamp("", "max")),
	"maximum":                   promoted(plain(op.Maximum)),
	"max.other":                 promoted(plain(op.Maximum)),
	"minimum":                   promoted(plain(op.Minimum)),
	"min.other":                 promoted(plain(op.Minimum)),
	"fmax":                      promoted(skipNaN(op.Maximum)),
	"fmin":                      promoted(skipNaN(op.Minimum)),
	"lerp.Scalar":               value(lerp),
	"lerp.Tensor":               value(lerp),
	"addcmul":                   value(addc(op.Mul)),
	"addcdiv":                   value(addc(op.Div)),
	"prelu":                     value(prelu),
	"glu":                       value(glu),
	"fill.Scalar":               value(fill),
	"fill.Tensor":               value(fill),
	"copy":                      value(copyInto),
	"zero":                      value(func(c *call) *ir.Value { return likeF(c.b, c.val("self"), 0) }),
	"xlogy.Tensor":              floatBinary(xlogy),
	"xlogy.Scalar_Other":        floatBinary(xlogy),
	"xlogy.Scalar_Self":         floatBinary(xlogy),
	"gcd":                       value(func(c *call) *ir.Value { return c.divisor(false) }),
	"lcm":                       value(func(c *call) *ir.Value { return c.divisor(true) }),
	"ldexp.Tensor":              value(ldexp),
	"logaddexp2":                wideBinary(logaddexp2),
	"nextafter":                 promoted(plain(op.NextAfter)),
	"hypot":                     wideBinary(hypot),
	"logaddexp":                 wideBinary(logaddexp),
	"copysign.Tensor":           floatBinary(copysign),
	"copysign.Scalar":           floatBinary(copysign),
	"heaviside":                 value(heaviside),
	"isclose":                   value(isClose),
	"float_power.Tensor_Scalar": value(floatPower),
	"float_power.Tensor_Tensor": value(floatPower),
	"float_power.Scalar":        value(floatPower),
},
	bothForms(value(func(c *call) *ir.Value { return c.arith(op.Mul, c.operand("self"), c.operand("other")) }), "mul", "multiply"),
	bothForms(value(func(c *call) *ir.Value { return c.over2(c.operand("self"), c.operand("other")) }), "div", "divide", "true_divide"),
	bothForms(promoted(remainder), "remainder"),
	bothForms(promoted(plain(op.Rem)), "fmod"),
	bothForms(comparison(op.EQ), "eq"), bothForms(comparison(op.NE), "ne", "not_equal"),
	bothForms(comparison(op.LT), "lt", "less"), bothForms(comparison(op.LE), "le", "less_equal"),
	bothForms(comparison(op.GT), "gt", "greater"), bothForms(comparison(op.GE), "ge", "greater_equal"),
	bothForms(promoted(plain(op.And)), "bitwise_and", "__and__"),
	bothForms(promoted(plain(op.Or)), "bitwise_or", "__or__"),
	bothForms(promoted(plain(op.Xor)), "bitwise_xor", "__xor__"),
	bothForms(promoted(plain(op.ShiftLeft)), "__lshift__"),
	bothForms(promoted(plain(op.ShiftRight)), "__rshift__"),
	map[string]rule{
		"logical_and": value(logical(op.And)), "logical_or": value(logical(op.Or)), "logical_xor": value(logical(op.Xor)),
		"bitwise_and.Scalar_Tensor": promoted(plain(op.And)), "bitwise_or.Scalar_Tensor": promoted(plain(op.Or)),
		"bitwise_xor.Scalar_Tensor": promoted(plain(op.Xor)), "remainder.Scalar_Tensor": promoted(remainder),
		"bitwise_left_shift.Tensor": promoted(plain(op.ShiftLeft)), "bitwise_right_shift.Tensor": promoted(plain(op.ShiftRight)),
		"bitwise_left_shift.Tensor_Scalar": promoted(plain(op.ShiftLeft)), "bitwise_right_shift.Tensor_Scalar": promoted(plain(op.ShiftRight)),
	},
)

// bothForms gives each operator a rule for a tensor and for a number as second argument.
func bothForms(r rule, names ...string) map[string]rule {
	out := make(map[string]rule)
	for _, n := range names {
		out[n+".Tensor"], out[n+".Scalar"] = r, r
	}
	return out
}

// concatRules joins families whose names differ.
func concatRules(families ...map[string]rule) map[string]rule {
	out := make(map[string]rule)
	for _, f := range families {
		for name, r := range f {
			out[name] = r
		}
	}
	return out
}

// fn computes from operands of one type.
type fn func(b *ir.Builder, x []*ir.Value) *ir.Value

// plain applies one operator of the IR.
func plain(p op.Plain) fn {
	return func(b *ir.Builder, x []*ir.Value) *ir.Value { return p.Make(b, x...) }
}

// promoted applies f to self and other in their common type.
func promoted(f fn) rule {
	return value(func(c *call) *ir.Value {
		x, y := c.operand("self"), c.operand("other")
		return c.elementwise(resultType(x, y), f, x, y)
	})
}

// floatBinary is promoted with integers as f32.
func floatBinary(f fn) rule {
	return value(func(c *call) *ir.Value {
		x, y := c.operand("self"), c.operand("other")
		return c.elementwise(floatResult(resultType(x, y)), f, x, y)
	})
}

// wideBinary is floatBinary computed in f32 at least and rounded once.
func wideBinary(f fn) rule {
	return value(func(c *call) *ir.Value {
		x, y := c.operand("self"), c.operand("other")
		return c.inF32(floatResult(resultType(x, y)), f, x, y)
	})
}

// comparison compares in the common type, which a number does not widen.
func comparison(dir op.CompareDir) rule {
	return value(func(c *call) *ir.Value {
		x, y := c.operand("self"), c.operand("other")
		d, dims := resultType(x, y), c.broadcastDims(x, y)
		return compare(c.b, dir, c.materialize(x, d, dims), c.materialize(y, d, dims))
	})
}

// addScaled is x plus or minus alpha times y, the product not rounded.
func (c *call) addScaled(xArg, yArg string, p op.Plain) *ir.Value {
	x, y, alpha := c.operand(xArg), c.operand(yArg), c.scalar("alpha")
	d := resultType(x, y)
	return c.elementwise(d, func(b *ir.Builder, v []*ir.Value) *ir.Value {
		if alpha.is(1) {
			return p.Make(b, v...)
		}
		w := wide(d)
		scaled := op.Mul.Make(b, c.cast(v[1], w), c.cast(like(b, v[1], alpha), w))
		return c.cast(p.Make(b, c.cast(v[0], w), scaled), d)
	}, x, y)
}

// divMode divides exactly, or rounds towards minus infinity (floor) or zero (trunc); the rounding forms keep integers.
func divMode(c *call) *ir.Value {
	x, y := c.operand("self"), c.operand("other")
	d := resultType(x, y)
	switch mode := c.str("rounding_mode"); mode {
	case "":
		return c.over2(x, y)
	case "floor":
		return c.precisely(d, floorDivision, x, y)
	case "trunc":
		return c.precisely(d, func(b *ir.Builder, v []*ir.Value) *ir.Value { return truncate(b, op.Div.Make(b, v...)) }, x, y)
	default:
		c.failf("rounding mode is %q, wanted floor or trunc", clip(mode))
	}
	return nil
}

// floorDivide rounds towards minus infinity (torch.floor_divide since 1.13).
func floorDivide(c *call) *ir.Value {
	x, y := c.operand("self"), c.operand("other")
	return c.precisely(resultType(x, y), floorDivision, x, y)
}

// floorDivision is Python's //. For floats it follows c10::div_floor_floating: exact where x / y itself would round up.
func floorDivision(b *ir.Builder, v []*ir.Value) *ir.Value {
	x, y := v[0], v[1]
	rem := op.Rem.Make(b, x, y)
	if !x.Type.DType.IsFloat() {
		q := op.Div.Make(b, x, y)
		if x.Type.DType.IsUnsigned() {
			return q
		}
		return op.Select.Make(b, crosses(b, rem, y), op.Sub.Make(b, q, likeF(b, q, 1)), q)
	}
	q := op.Div.Make(b, op.Sub.Make(b, x, rem), y)
	q = op.Select.Make(b, crosses(b, rem, y), op.Sub.Make(b, q, likeF(b, q, 1)), q)
	down := op.Floor.Make(b, q)
	near := compare(b, op.GT, op.Sub.Make(b, q, down), likeF(b, q, 0.5))
	down = op.Select.Make(b, near, op.Add.Make(b, down, likeF(b, q, 1)), down)
	return op.Select.Make(b, compare(b, op.EQ, y, likeF(b, y, 0)), op.Div.Make(b, x, y), down)
}

// crosses reports a remainder that is not zero and differs in sign from y: division rounded the other way than floor.
func crosses(b *ir.Builder, rem, y *ir.Value) *ir.Value {
	z := likeF(b, y, 0)
	differ := op.Xor.Make(b, compare(b, op.LT, rem, z), compare(b, op.LT, y, z))
	return op.And.Make(b, compare(b, op.NE, rem, z), differ)
}

// remainder has the sign of y, as Python's %.
func remainder(b *ir.Builder, v []*ir.Value) *ir.Value {
	rem := op.Rem.Make(b, v...)
	if v[0].Type.DType.IsUnsigned() {
		return rem
	}
	return op.Select.Make(b, crosses(b, rem, v[1]), op.Add.Make(b, rem, v[1]), rem)
}

// pow uses the products and roots that torch uses for exponents that are numbers.
func pow(c *call) *ir.Value {
	x, y := c.operand("self"), c.operand("exponent")
	d := resultType(x, y)
	if y.x == nil && x.x != nil && y.s.kind != kindComplex {
		if v := powNumber(c, c.cast(x.x, d), y.s.float()); v != nil {
			return v
		}
	}
	if d == tensor.Bool { // as exports record it
		d = tensor.I64
	}
	return c.elementwise(d, plain(op.Pow), x, y)
}

// powNumber is x to a small power that needs no op.Pow, or nil. Roots and inverses are for floats only.
func powNumber(c *call, x *ir.Value, e float64) *ir.Value {
	d := x.Type.DType
	if !d.IsFloat() && !d.IsInt() {
		return nil
	}
	w := c.cast(x, wide(d))
	mul := func(a, b *ir.Value) *ir.Value { return op.Mul.Make(c.b, a, b) }
	inverse := func(a *ir.Value) *ir.Value { return op.Div.Make(c.b, likeF(c.b, a, 1), a) }
	var y *ir.Value
	switch e {
	case 1:
		return x
	case 2:
		return mul(x, x) // one rounding in any dtype
	case 3:
		y = mul(mul(w, w), w)
	case 4:
		y = mul(w, w)
		y = mul(y, y)
	}
	if d.IsFloat() {
		switch e {
		case 0.5:
			y = op.Sqrt.Make(c.b, w)
		case -0.5:
			y = op.Rsqrt.Make(c.b, w)
		case -1:
			y = inverse(w)
		case -2:
			y = inverse(mul(w, w))
		}
	}
	if y == nil {
		return nil
	}
	return c.cast(y, d)
}

// floatPower computes in double precision always.
func floatPower(c *call) *ir.Value {
	x, y := c.operand("self"), c.operand("exponent")
	d := tensor.F64
	if resultType(x, y).IsComplex() {
		d = tensor.C128
	}
	return c.elementwise(d, plain(op.Pow), x, y)
}

// logical combines truth values: what is not zero is true.
func logical(p op.Plain) func(c *call) *ir.Value {
	return func(c *call) *ir.Value {
		x, y := tensorOperand(c.cast(c.val("self"), tensor.Bool)), tensorOperand(c.cast(c.val("other"), tensor.Bool))
		return c.elementwise(tensor.Bool, plain(p), x, y)
	}
}

// where promotes the two choices together; the condition only broadcasts.
func where(c *call) *ir.Value {
	cond := tensorOperand(c.cast(c.val("condition"), tensor.Bool))
	x, y := c.operand("self"), c.operand("other")
	d, dims := resultType(x, y), c.broadcastDims(cond, x, y)
	return op.Select.Make(c.b, c.materialize(cond, tensor.Bool, dims), c.materialize(x, d, dims), c.materialize(y, d, dims))
}

// maskedFill keeps self's dtype.
func maskedFill(c *call) *ir.Value {
	x, mask := c.operand("self"), tensorOperand(c.cast(c.val("mask"), tensor.Bool))
	d, dims := x.x.Type.DType, c.broadcastDims(x, mask)
	return op.Select.Make(c.b, c.materialize(mask, tensor.Bool, dims), c.materialize(c.operand("value"), d, dims), c.materialize(x, d, dims))
}

// clamp bounds self; of bounds that cross the upper one wins. NaN stays.
func clamp(lo, hi string) func(c *call) *ir.Value {
	return func(c *call) *ir.Value {
		ops := []operand{c.operand("self")}
		var ps []op.Plain
		if lo != "" && c.has(lo) {
			ops, ps = append(ops, c.operand(lo)), append(ps, op.Maximum)
		}
		if hi != "" && c.has(hi) {
			ops, ps = append(ops, c.operand(hi)), append(ps, op.Minimum)
		}
		return c.elementwise(resultType(ops...), func(b *ir.Builder, v []*ir.Value) *ir.Value {
			y := v[0]
			for i, p := range ps {
				y = p.Make(b, y, v[i+1])
			}
			return y
		}, ops...)
	}
}

// clampTo bounds x by numbers in x's dtype.
func (c *call) clampTo(x *ir.Value, lo, hi scalar) *ir.Value {
	return op.Minimum.Make(c.b, op.Maximum.Make(c.b, x, like(c.b, x, lo)), like(c.b, x, hi))
}

// skipNaN prefers the operand that is a number.
func skipNaN(p op.Plain) fn {
	return func(b *ir.Builder, v []*ir.Value) *ir.Value {
		y := p.Make(b, v...)
		if !y.Type.DType.IsFloat() {
			return y
		}
		y = op.Select.Make(b, compare(b, op.NE, v[0], v[0]), v[1], y)
		return op.Select.Make(b, compare(b, op.NE, v[1], v[1]), v[0], y)
	}
}

// lerp is start + weight (end - start), computed from the nearer end.
func lerp(c *call) *ir.Value {
	x, y, w := c.operand("self"), c.operand("end"), c.operand("weight")
	d := resultType(x, y, w)
	work := wide(d)
	dims := c.broadcastDims(x, y, w)
	a, e, t := c.materialize(x, work, dims), c.materialize(y, work, dims), c.materialize(w, work, dims)
	return c.cast(fb{c.b, c}.lerp(a, e, t), d)
}

// lerp is a + t (e - a), or e - (e - a) (1 - t) where t is 1/2 or more.
func (f fb) lerp(a, e, t *ir.Value) *ir.Value {
	diff := f.sub(e, a)
	low := f.add(a, f.mul(t, diff))
	high := f.sub(e, f.mul(diff, f.sub(f.c(t, 1), t)))
	near := compare(f.b, op.LT, f.call.magnitude(t), likeF(f.b, realPart(f.b, t), 0.5))
	return op.Select.Make(f.b, near, low, high)
}

// addc is self + value * (tensor1 op tensor2).
func addc(p op.Plain) func(c *call) *ir.Value {
	return func(c *call) *ir.Value {
		x, y, z := c.operand("self"), c.operand("tensor1"), c.operand("tensor2")
		v := c.scalar("value")
		d := resultType(x, y, z)
		dims := c.broadcastDims(x, y, z)
		work := wide(d)
		t := p.Make(c.b, c.materialize(y, work, dims), c.materialize(z, work, dims))
		if !v.is(1) {
			t = op.Mul.Make(c.b, t, like(c.b, t, v))
		}
		return c.cast(op.Add.Make(c.b, c.materialize(x, work, dims), t), d)
	}
}

// prelu scales negative elements by a weight for each channel, dimension 1.
func prelu(c *call) *ir.Value {
	x, w := c.val("self"), c.val("weight")
	dims := x.Type.Dims
	if w.Type.Elements() == 1 || len(dims) < 2 {
		w = op.BroadcastTo(c.b, reshape(c.b, w, nil), dims)
	} else {
		w = along(c.b, reshape(c.b, w, []int64{w.Type.Elements()}), dims, 1)
	}
	return op.Select.Make(c.b, compare(c.b, op.GT, x, likeF(c.b, x, 0)), x, op.Mul.Make(c.b, x, w))
}

// glu is the first half along an axis times the sigmoid of the second.
func glu(c *call) *ir.Value {
	x := c.val("self")
	axis := c.axis("dim", x.Type.Rank())
	n := x.Type.Dims[axis] / 2
	d := x.Type.DType
	a := c.cast(slice(c.b, x, axis, 0, n, 1), wide(d))
	g := c.cast(slice(c.b, x, axis, n, 2*n, 1), wide(d))
	return c.cast(op.Mul.Make(c.b, a, op.Sigmoid.Make(c.b, g)), d)
}

// fill is value in self's dtype and shape.
func fill(c *call) *ir.Value {
	t := c.ref("self").typ
	return c.materialize(c.operand("value"), t.DType, t.Dims)
}

// copyInto is src in self's dtype and shape.
func copyInto(c *call) *ir.Value {
	t := c.ref("self").typ
	src := c.operand("src")
	if len(src.dims()) > len(t.Dims) {
		c.failf("src is %s, wanted a shape that broadcasts to %s", src.x.Type, t)
	}
	return c.materialize(src, t.DType, t.Dims)
}

// xlogy is x log y, 0 where x is 0 whatever y is, and NaN where y is.
func xlogy(b *ir.Builder, v []*ir.Value) *ir.Value {
	y := op.Mul.Make(b, v[0], op.Log.Make(b, v[1]))
	y = op.Select.Make(b, compare(b, op.EQ, v[0], likeF(b, v[0], 0)), likeF(b, y, 0), y)
	return op.Select.Make(b, compare(b, op.NE, v[1], v[1]), v[1], y)
}

// hypot is sqrt(x^2 + y^2) without overflow: the larger is taken out of the root.
func hypot(b *ir.Builder, v []*ir.Value) *ir.Value {
	x, y := op.Abs.Make(b, v[0]), op.Abs.Make(b, v[1])
	hi, lo := op.Maximum.Make(b, x, y), op.Minimum.Make(b, x, y)
	r := op.Div.Make(b, lo, hi)
	h := op.Mul.Make(b, hi, op.Sqrt.Make(b, op.Add.Make(b, op.Mul.Make(b, r, r), likeF(b, r, 1))))
	h = op.Select.Make(b, compare(b, op.EQ, hi, likeF(b, hi, 0)), hi, h)
	for _, v := range []*ir.Value{x, y} { // whatever the other is, NaN too
		h = op.Select.Make(b, compare(b, op.EQ, v, likeF(b, v, math.Inf(1))), v, h)
	}
	return h
}

// logaddexp is log(exp x + exp y) without overflow; equal infinities stay. Of complex numbers, the one with the larger real part is taken out.
func logaddexp(b *ir.Builder, v []*ir.Value) *ir.Value {
	if v[0].Type.DType.IsComplex() {
		f := fb{b: b}
		first := compare(b, op.GE, realPart(b, v[0]), realPart(b, v[1]))
		hi, lo := op.Select.Make(b, first, v[0], v[1]), op.Select.Make(b, first, v[1], v[0])
		return f.add(hi, partsOf(f, f.exp(f.sub(lo, hi))).log1p().join())
	}
	hi := op.Maximum.Make(b, v...)
	diff := op.Neg.Make(b, op.Abs.Make(b, op.Sub.Make(b, v[0], v[1])))
	y := op.Add.Make(b, hi, op.Log1p.Make(b, op.Exp.Make(b, diff)))
	inf := compare(b, op.EQ, op.Abs.Make(b, hi), likeF(b, hi, math.Inf(1)))
	return op.Select.Make(b, op.And.Make(b, inf, compare(b, op.EQ, v[0], v[1])), hi, y)
}

// logaddexp2 is log2(2^x + 2^y).
func logaddexp2(b *ir.Builder, v []*ir.Value) *ir.Value {
	f := fb{b: b}
	return f.scale(logaddexp(b, []*ir.Value{f.scale(v[0], math.Ln2), f.scale(v[1], math.Ln2)}), 1/math.Ln2)
}

// divisor is the greatest common divisor, or the least common multiple, by Euclid's algorithm; 92 steps are enough for 64 bits.
func (c *call) divisor(multiple bool) *ir.Value {
	x, y := c.operand("self"), c.operand("other")
	return c.elementwise(resultType(x, y), func(b *ir.Builder, v []*ir.Value) *ir.Value {
		p, q := op.Abs.Make(b, v[0]), op.Abs.Make(b, v[1])
		out := c.loop(92, nil, []*ir.Value{p, q}, func(_ *ir.Value, s []*ir.Value) []*ir.Value {
			done := compare(c.b, op.EQ, s[1], likeF(c.b, s[1], 0))
			safe := op.Select.Make(c.b, done, likeF(c.b, s[1], 1), s[1])
			return []*ir.Value{op.Select.Make(c.b, done, s[0], s[1]), op.Select.Make(c.b, done, s[1], op.Rem.Make(c.b, s[0], safe))}
		})
		if !multiple {
			return out[0]
		}
		none := compare(b, op.EQ, out[0], likeF(b, out[0], 0))
		safe := op.Select.Make(b, none, likeF(b, out[0], 1), out[0])
		return op.Abs.Make(b, op.Mul.Make(b, op.Div.Make(b, v[0], safe), v[1]))
	}, x, y)
}

// ldexp is self * 2^other.
func ldexp(c *call) *ir.Value {
	two, y := operand{s: floatScalar(2)}, c.operand("other")
	p := c.elementwise(resultType(two, y), plain(op.Pow), two, y)
	return c.arith(op.Mul, c.operand("self"), tensorOperand(p))
}

// copysign is |x| with the sign of y, also of zeros: 1/y tells -0 from 0.
func copysign(b *ir.Builder, v []*ir.Value) *ir.Value {
	mag, s := op.Abs.Make(b, v[0]), v[1]
	one := likeF(b, s, 1)
	probe := op.Select.Make(b, compare(b, op.EQ, s, likeF(b, s, 0)), op.Div.Make(b, one, s), s)
	return op.Select.Make(b, compare(b, op.LT, probe, likeF(b, s, 0)), op.Neg.Make(b, mag), mag)
}

// heaviside is 0 below 0, 1 above, and values at 0.
func heaviside(c *call) *ir.Value {
	x, y := c.operand("self"), c.operand("values")
	return c.elementwise(resultType(x, y), func(b *ir.Builder, v []*ir.Value) *ir.Value {
		z := likeF(b, v[0], 0)
		y := op.Select.Make(b, compare(b, op.GT, v[0], z), likeF(b, v[0], 1), z)
		return op.Select.Make(b, compare(b, op.EQ, v[0], z), v[1], y)
	}, x, y)
}

// isClose is |x - y| <= atol + rtol |y| for finite differences, or equality.
func isClose(c *call) *ir.Value {
	x, y := c.operand("self"), c.operand("other")
	d, dims := resultType(x, y), c.broadcastDims(x, y)
	a, e := c.materialize(x, d, dims), c.materialize(y, d, dims)
	eq := compare(c.b, op.EQ, a, e)
	if !d.IsFloat() && !d.IsComplex() {
		work := tensor.F64
		a, e = c.cast(a, work), c.cast(e, work)
	} else if c.bool("equal_nan") {
		eq = op.Or.Make(c.b, eq, op.And.Make(c.b, compare(c.b, op.NE, a, a), compare(c.b, op.NE, e, e)))
	}
	f := fb{c.b, c}
	limit := f.scale(c.magnitude(e), c.float("rtol"))
	limit = f.add(f.c(limit, c.float("atol")), limit)
	diff := c.magnitude(f.sub(a, e))
	near := op.And.Make(c.b, op.IsFinite.Make(c.b, diff), compare(c.b, op.LE, diff, limit))
	return op.Or.Make(c.b, eq, near)
}
