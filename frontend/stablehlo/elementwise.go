package stablehlo

import (
	"fmt"
	"math"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// elementwiseRules compute every element from those at its place.
var elementwiseRules = map[string]rule{
	"stablehlo.abs":                    realOnly(op.Abs),
	"stablehlo.add":                    applied(op.Add, &op.Or),
	"stablehlo.and":                    applied(op.And, &op.And),
	"stablehlo.atan2":                  realOnly(op.Atan2),
	"stablehlo.ceil":                   unary(op.Ceil),
	"stablehlo.clamp":                  clamp,
	"stablehlo.compare":                compare,
	"stablehlo.convert":                convert,
	"stablehlo.cosine":                 unary(op.Cos),
	"stablehlo.divide":                 applied(op.Div, nil),
	"stablehlo.exponential":            unary(op.Exp),
	"stablehlo.exponential_minus_one":  unary(op.Expm1),
	"stablehlo.floor":                  unary(op.Floor),
	"stablehlo.is_finite":              unary(op.IsFinite),
	"stablehlo.log":                    unary(op.Log),
	"stablehlo.log_plus_one":           unary(op.Log1p),
	"stablehlo.logistic":               unary(op.Sigmoid),
	"stablehlo.maximum":                realBinary(op.Maximum, &op.Or),
	"stablehlo.minimum":                realBinary(op.Minimum, &op.And),
	"stablehlo.multiply":               applied(op.Mul, &op.And),
	"stablehlo.negate":                 unary(op.Neg),
	"stablehlo.not":                    unary(op.Not),
	"stablehlo.or":                     applied(op.Or, &op.Or),
	"stablehlo.power":                  applied(op.Pow, nil),
	"stablehlo.real":                   realPart,
	"stablehlo.remainder":              realBinary(op.Rem, nil),
	"stablehlo.round_nearest_even":     unary(op.Round),
	"stablehlo.rsqrt":                  unary(op.Rsqrt),
	"stablehlo.select":                 selectRule,
	"stablehlo.shift_left":             applied(op.ShiftLeft, nil),
	"stablehlo.shift_right_arithmetic": shiftRight(false),
	"stablehlo.shift_right_logical":    shiftRight(true),
	"stablehlo.sign":                   realOnly(op.Sign),
	"stablehlo.sine":                   unary(op.Sin),
	"stablehlo.sqrt":                   unary(op.Sqrt),
	"stablehlo.subtract":               applied(op.Sub, nil),
	"stablehlo.tan":                    unary(op.Tan),
	"stablehlo.tanh":                   unary(op.Tanh),
	"stablehlo.xor":                    applied(op.Xor, &op.Xor),
	"stablehlo.bitcast_convert":        bitcast,
	"stablehlo.cbrt":                   unary(op.Cbrt),
	"stablehlo.complex":                applied(op.Complex, nil),
	"stablehlo.count_leading_zeros":    unary(op.CountLeadingZeros),
	"stablehlo.imag":                   imaginary,
	"stablehlo.popcnt":                 unary(op.Popcnt),
	"stablehlo.reduce_precision":       reducePrecision,
	"stablehlo.round_nearest_afz":      roundAway,
	"chlo.atan":                        arcTangent,
	"chlo.digamma":                     unary(op.Digamma),
	"chlo.erf_inv":                     unary(op.ErfInv),
	"chlo.lgamma":                      unary(op.Lgamma),
	"chlo.next_after":                  applied(op.NextAfter, nil),
	"chlo.erf":                         unary(op.Erf),
	"chlo.square":                      func(c *call) []*ir.Value { c.arity(1); return one(op.Mul.Make(c.b, c.args[0], c.args[0])) },
	"chlo.tan":                         unary(op.Tan),
	"chlo.is_inf":                      isInf(true, true),
	"chlo.is_pos_inf":                  isInf(true, false),
	"chlo.is_neg_inf":                  isInf(false, true),
	"chlo.broadcast_add":               chloBinary(op.Add, &op.Or),
	"chlo.broadcast_subtract":          chloBinary(op.Sub, nil),
	"chlo.broadcast_multiply":          chloBinary(op.Mul, &op.And),
	"chlo.broadcast_divide":            chloBinary(op.Div, nil),
	"chlo.broadcast_maximum":           chloBinary(op.Maximum, &op.Or),
	"chlo.broadcast_minimum":           chloBinary(op.Minimum, &op.And),
	"chlo.broadcast_power":             chloBinary(op.Pow, nil),
	"chlo.broadcast_and":               chloBinary(op.And, &op.And),
	"chlo.broadcast_or":                chloBinary(op.Or, &op.Or),
	"chlo.broadcast_xor":               chloBinary(op.Xor, &op.Xor),
}

// takes reports whether o's shape rule takes the arguments: an operator has fewer dtypes in some cases, where StableHLO's own goes on opaquely.
func takes(o *ir.Op, args []*ir.Value) bool {
	types := make([]tensor.Type, len(args))
	for i, a := range args {
		types[i] = a.Type
	}
	_, err := o.InferTypes(types, nil)
	return err == nil
}

func unary(o op.Plain) rule {
	return func(c *call) []*ir.Value {
		c.arity(1)
		if a, ok := c.o.attrs.find("result_accuracy"); ok && a.Hash != nil && *a.Hash != "#stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<DEFAULT>>" {
			return nil
		}
		if !takes(o.Op, c.args) {
			return nil
		}
		return one(o.Make(c.b, c.args[0]))
	}
}

// applied maps to o, and on bools to the logical operation.
func applied(o op.Plain, onBool *op.Plain) rule {
	return func(c *call) []*ir.Value {
		c.arity(2)
		use := o
		if c.args[0].Type.DType == tensor.Bool && onBool != nil {
			use = *onBool
		}
		x, y := c.args[0], c.args[1]
		if !x.Type.Equal(y.Type) {
			c.fail("operands are %s and %s, wanted one type", x.Type, y.Type)
		}
		if !takes(use.Op, c.args) {
			return nil
		}
		return one(use.Make(c.b, x, y))
	}
}

// realOnly and realBinary leave complex numbers, which StableHLO treats in a way of its own, to StableHLO.
func realOnly(o op.Plain) rule {
	return func(c *call) []*ir.Value {
		for _, a := range c.args {
			if a.Type.DType.IsComplex() {
				return nil
			}
		}
		if len(o.Args) == 1 {
			return unary(o)(c)
		}
		return applied(o, nil)(c)
	}
}

func realBinary(o op.Plain, onBool *op.Plain) rule {
	f := applied(o, onBool)
	return func(c *call) []*ir.Value {
		c.arity(2)
		if c.args[0].Type.DType.IsComplex() {
			return nil
		}
		return f(c)
	}
}

// chloBinary broadcasts as NumPy does before it applies.
func chloBinary(o op.Plain, onBool *op.Plain) rule {
	f := applied(o, onBool)
	return func(c *call) []*ir.Value {
		c.arity(2)
		dims := c.out().Dims
		if _, ok := c.o.attrs.find("broadcast_dimensions"); ok {
			return nil
		}
		for i, a := range c.args {
			c.args[i] = op.BroadcastTo(c.b, a, dims)
		}
		return f(c)
	}
}

// reducePrecision reads two numbers of bits, or a format such as e5m10. It leaves dtypes that the IR's operator does not take to StableHLO.
func reducePrecision(c *call) []*ir.Value {
	c.arity(1)
	if d := c.args[0].Type.DType; !d.IsFloat() || d.Bits() < 16 {
		return nil
	}
	a := op.ReducePrecisionAttr{Exponent: c.int("exponent_bits", 0), Mantissa: c.int("mantissa_bits", 0)}
	if format := c.o.attrs.word("format"); format != "" {
		if n, err := fmt.Sscanf(format, "e%dm%d", &a.Exponent, &a.Mantissa); n != 2 || err != nil {
			c.fail("format %s, wanted such as e5m10", format)
		}
	}
	return one(op.ReducePrecision.Make(c.b, a, c.args[0]))
}

// clamp is min(max(low, x), high), with bounds of x's type or scalars.
func clamp(c *call) []*ir.Value {
	c.arity(3)
	x := c.args[1]
	if x.Type.DType.IsComplex() || x.Type.DType == tensor.Bool {
		return nil
	}
	lo, hi := c.args[0], c.args[2]
	for _, v := range []*ir.Value{lo, hi} {
		if v.Type.Rank() != 0 && !v.Type.Equal(x.Type) || v.Type.DType != x.Type.DType {
			c.fail("a bound is %s, wanted %s or a scalar of its dtype", v.Type, x.Type)
		}
	}
	return one(op.Minimum.Make(c.b, op.Maximum.Make(c.b, c.spread(lo, x.Type.Dims), x), c.spread(hi, x.Type.Dims)))
}

// directions are comparisons by StableHLO's name.
var directions = map[string]op.CompareDir{"EQ": op.EQ, "NE": op.NE, "LT": op.LT, "LE": op.LE, "GT": op.GT, "GE": op.GE}

// compare takes the total order of floats by that of integers.
func compare(c *call) []*ir.Value {
	c.arity(2)
	dir, ok := directions[c.o.attrs.word("comparison_direction")]
	if !ok {
		c.fail("comparison_direction is %q, wanted EQ, NE, LT, LE, GT or GE", c.o.attrs.word("comparison_direction"))
	}
	x, y := c.args[0], c.args[1]
	if c.o.attrs.word("compare_type") == "TOTALORDER" && x.Type.DType.IsFloat() {
		if x, y = c.totalOrder(x), c.totalOrder(y); x == nil || y == nil {
			return nil
		}
	}
	return one(op.Compare.Make(c.b, op.CompareAttr{Dir: dir}, x, y))
}

// totalOrder gives integers in the total order of IEEE 754 (2019, 5.10): the bits as a signed number, with those behind the sign turned
// around where it is set. nil: no integers of that width.
func (c *call) totalOrder(x *ir.Value) *ir.Value {
	d, ok := map[int]tensor.DType{16: tensor.I16, 32: tensor.I32, 64: tensor.I64}[x.Type.DType.Bits()]
	if !ok {
		return nil
	}
	return c.turned(op.Bitcast.Make(c.b, op.BitcastAttr{To: d}, x))
}

// turned turns the bits behind the sign around where it is set, which twice is nothing.
func (c *call) turned(bits *ir.Value) *ir.Value {
	d := bits.Type.DType
	number := func(v int64) *ir.Value { return c.spread(c.integer(c.b, d, v), bits.Type.Dims) }
	_, largest := d.IntRange()
	mask := op.And.Make(c.b, op.ShiftRight.Make(c.b, bits, number(int64(d.Bits())-1)), number(largest))
	return op.Xor.Make(c.b, bits, mask)
}

func convert(c *call) []*ir.Value {
	c.arity(1)
	return one(c.cast(c.args[0], c.out().DType))
}

// realPart is the real part; of a real number itself.
func realPart(c *call) []*ir.Value {
	c.arity(1)
	if !c.args[0].Type.DType.IsComplex() {
		return one(c.args[0])
	}
	return one(op.Real.Make(c.b, c.args[0]))
}

// imaginary is 0 of a real number.
func imaginary(c *call) []*ir.Value {
	c.arity(1)
	if !c.args[0].Type.DType.IsComplex() {
		return one(op.Splat(c.b, c.args[0].Type, 0))
	}
	return one(op.Imag.Make(c.b, c.args[0]))
}

// bitcast between types of one width; others change the shape and are left to StableHLO.
func bitcast(c *call) []*ir.Value {
	c.arity(1)
	a := op.BitcastAttr{To: c.out().DType}
	if _, err := op.Bitcast.InferTypes([]tensor.Type{c.args[0].Type}, a); err != nil || c.args[0].Type.Rank() != c.out().Rank() {
		return nil
	}
	return one(op.Bitcast.Make(c.b, a, c.args[0]))
}

// arcTangent is the angle of the point (1, x).
func arcTangent(c *call) []*ir.Value {
	c.arity(1)
	x := c.args[0]
	if !x.Type.DType.IsFloat() {
		return nil
	}
	return one(op.Atan2.Make(c.b, x, op.Splat(c.b, x.Type, 1)))
}

// roundAway takes the magnitude's whole part, which is exact, and one more where the rest is a half or more; the sign comes last.
func roundAway(c *call) []*ir.Value {
	c.arity(1)
	x := c.args[0]
	if !x.Type.DType.IsFloat() {
		return nil
	}
	size := op.Abs.Make(c.b, x)
	whole := op.Floor.Make(c.b, size)
	up := op.Compare.Make(c.b, op.CompareAttr{Dir: op.GE}, op.Sub.Make(c.b, size, whole), op.Splat(c.b, x.Type, 0.5))
	return one(op.Mul.Make(c.b, op.Sign.Make(c.b, x), op.Add.Make(c.b, whole, c.cast(up, x.Type.DType))))
}

// selectRule takes a scalar predicate too.
func selectRule(c *call) []*ir.Value {
	c.arity(3)
	return one(op.Select.Make(c.b, c.spread(c.args[0], c.args[1].Type.Dims), c.args[1], c.args[2]))
}

// shiftRight fills with zeros or with the sign. The IR's shift goes by the dtype, so the other one goes through the integer of as many
// bits and the other sign.
func shiftRight(logical bool) rule {
	partner := map[tensor.DType]tensor.DType{tensor.I4: tensor.U4, tensor.I8: tensor.U8, tensor.I16: tensor.U16, tensor.I32: tensor.U32, tensor.I64: tensor.U64}
	for s, u := range partner {
		partner[u] = s
	}
	return func(c *call) []*ir.Value {
		c.arity(2)
		x, y := c.args[0], c.args[1]
		d := x.Type.DType
		if !d.IsInt() {
			return nil
		}
		if d.IsUnsigned() == logical {
			return one(op.ShiftRight.Make(c.b, x, y))
		}
		// An amount of the width or more gives zeros or signs either way, as unsigned or as negative number.
		z := op.ShiftRight.Make(c.b, c.cast(x, partner[d]), c.cast(y, partner[d]))
		return one(c.cast(z, d))
	}
}

// isInf reports infinities of either sign.
func isInf(pos, neg bool) rule {
	return func(c *call) []*ir.Value {
		c.arity(1)
		x := c.args[0]
		if !x.Type.DType.IsFloat() {
			return nil
		}
		is := func(sign int) *ir.Value {
			return op.Compare.Make(c.b, op.CompareAttr{Dir: op.EQ}, x, op.Splat(c.b, x.Type, math.Inf(sign)))
		}
		switch {
		case pos && neg:
			return one(op.Or.Make(c.b, is(1), is(-1)))
		case pos:
			return one(is(1))
		}
		return one(is(-1))
	}
}
