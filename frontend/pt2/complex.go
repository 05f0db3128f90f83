package pt2

import (
	"math"
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// complexRules go between complex tensors and their parts, which are views: what is written to a part is written to the whole.
var complexRules = map[string]rule{
	"complex": value(func(c *call) *ir.Value {
		v := c.broadcastAll(c.val("real"), c.val("imag"))
		return complexOfParts(c.b, v[0], v[1])
	}),
	"isreal": value(func(c *call) *ir.Value {
		x := imagPart(c.b, c.val("self"))
		return compare(c.b, op.EQ, x, likeF(c.b, x, 0))
	}),
	"polar":           value(polar),
	"view_as_complex": seen(viewAsComplex),
	"view_as_real":    seen(viewAsReal),
	"real":            seen(realView),
	"imag":            seen(imaginary),
	"conj":            seen(func(*call, *ref) view { return conjugated(identityView()) }),
	"_conj":           seen(func(*call, *ref) view { return conjugated(identityView()) }),
	"conj_physical":   value(func(c *call) *ir.Value { return conjugate(c.b, c.val("self")) }),
	"resolve_conj":    aliased,
	"resolve_neg":     aliased,
	"abs":             value(absolute),
	"angle":           value(angle),
	"vdot":            value(func(c *call) *ir.Value { return c.matmul(conjugate(c.b, c.val("self")), c.val("other")) }),
	"adjoint":         seen(func(c *call, x *ref) view { return conjugated(lastTwo(c, x)) }),
	"mH":              seen(func(c *call, x *ref) view { return conjugated(lastTwo(c, x)) }),
	"matrix_H":        seen(func(c *call, x *ref) view { return conjugated(reversedView(x)) }),
}

// broadcastAll repeats tensors to their common shape.
func (c *call) broadcastAll(xs ...*ir.Value) []*ir.Value {
	ops := make([]operand, len(xs))
	for i, x := range xs {
		ops[i] = tensorOperand(x)
	}
	dims := c.broadcastDims(ops...)
	for i, x := range xs {
		xs[i] = op.BroadcastTo(c.b, x, dims)
	}
	return xs
}

// complexOfParts is re + i im of floats, narrow ones as f32.
func complexOfParts(b *ir.Builder, re, im *ir.Value) *ir.Value {
	d := complexOf(re.Type.DType).Real()
	return op.Complex.Make(b, op.Cast(b, re, d), op.Cast(b, im, d))
}

// realPart of a real tensor is itself.
func realPart(b *ir.Builder, x *ir.Value) *ir.Value {
	if !x.Type.DType.IsComplex() {
		return x
	}
	return op.Real.Make(b, x)
}

// imagPart is 0 for real numbers.
func imagPart(b *ir.Builder, x *ir.Value) *ir.Value {
	if !x.Type.DType.IsComplex() {
		return likeF(b, x, 0)
	}
	return op.Imag.Make(b, x)
}

// conjugate of a real tensor is itself.
func conjugate(b *ir.Builder, x *ir.Value) *ir.Value {
	if !x.Type.DType.IsComplex() {
		return x
	}
	return complexOfParts(b, realPart(b, x), op.Neg.Make(b, imagPart(b, x)))
}

// conjugated is a view of which the conjugate is seen.
func conjugated(v view) view {
	return view{
		read: func(b *ir.Builder, x *ir.Value) *ir.Value { return conjugate(b, v.read(b, x)) },
		write: func(b *ir.Builder, old func() *ir.Value, x *ir.Value) *ir.Value {
			return v.write(b, old, conjugate(b, x))
		},
	}
}

// polar is abs (cos angle + i sin angle).
func polar(c *call) *ir.Value {
	v := c.broadcastAll(c.val("abs"), c.val("angle"))
	r, a := v[0], v[1]
	return complexOfParts(c.b, op.Mul.Make(c.b, r, op.Cos.Make(c.b, a)), op.Mul.Make(c.b, r, op.Sin.Make(c.b, a)))
}

// asReal puts real and imaginary part of complex numbers into a new last dimension.
func asReal(b *ir.Builder, x *ir.Value) *ir.Value {
	dims := append(slices.Clone(x.Type.Dims), 1)
	return concat(b, len(dims)-1, reshape(b, realPart(b, x), dims), reshape(b, imagPart(b, x), dims))
}

// asComplex takes the last dimension, of extent 2, as real and imaginary part.
func asComplex(b *ir.Builder, x *ir.Value) *ir.Value {
	last := x.Type.Rank() - 1
	part := func(i int64) *ir.Value { return reshape(b, slice(b, x, last, i, i+1, 1), x.Type.Dims[:last]) }
	return complexOfParts(b, part(0), part(1))
}

// viewAsComplex sees the last dimension, of extent 2, as real and imaginary part.
func viewAsComplex(c *call, x *ref) view {
	n := x.typ.Rank()
	if n == 0 || x.typ.Dims[n-1] != 2 || x.typ.DType != tensor.F32 && x.typ.DType != tensor.F64 {
		c.unsupported("a view of %s as complex numbers", x.typ)
	}
	return view{
		read:  asComplex,
		write: func(b *ir.Builder, _ func() *ir.Value, v *ir.Value) *ir.Value { return asReal(b, v) },
	}
}

// viewAsReal shows real and imaginary part in a new last dimension.
func viewAsReal(c *call, x *ref) view {
	if !x.typ.DType.IsComplex() {
		c.failf("self is %s, wanted complex numbers", x.typ)
	}
	return view{
		read:  asReal,
		write: func(b *ir.Builder, _ func() *ir.Value, v *ir.Value) *ir.Value { return asComplex(b, v) },
	}
}

// realView sees the real part; of a real tensor that is all of it.
func realView(_ *call, x *ref) view {
	if !x.typ.DType.IsComplex() {
		return identityView()
	}
	return view{
		read: realPart,
		write: func(b *ir.Builder, old func() *ir.Value, v *ir.Value) *ir.Value {
			return complexOfParts(b, v, imagPart(b, old()))
		},
	}
}

// imaginary sees the imaginary part of a complex tensor; of a real one there is none.
func imaginary(c *call, x *ref) view {
	if !x.typ.DType.IsComplex() {
		c.failf("self is %s, wanted complex numbers", x.typ)
	}
	return view{
		read: imagPart,
		write: func(b *ir.Builder, old func() *ir.Value, v *ir.Value) *ir.Value {
			return complexOfParts(b, realPart(b, old()), v)
		},
	}
}

// absolute of complex numbers is real.
func absolute(c *call) *ir.Value {
	x := c.val("self")
	if x.Type.DType.IsComplex() {
		return hypot(c.b, []*ir.Value{realPart(c.b, x), imagPart(c.b, x)})
	}
	return op.Abs.Make(c.b, x)
}

// angle of a real number is 0 or pi, and NaN for NaN.
func angle(c *call) *ir.Value {
	x := c.val("self")
	if !x.Type.DType.IsComplex() {
		x = c.cast(x, floatResult(x.Type.DType))
		f := fb{c.b, c}
		y := f.where(op.LT, x, 0, f.c(x, math.Pi), f.c(x, 0)) // of -0 too
		return op.Select.Make(c.b, compare(c.b, op.NE, x, x), x, y)
	}
	return op.Atan2.Make(c.b, imagPart(c.b, x), realPart(c.b, x))
}
