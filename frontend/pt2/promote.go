package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// Torch's type promotion (c10/core/ScalarType.h promoteTypes, aten/src/ATen/native/TypeProperties.cpp result_type): tensors with
// dimensions decide, then 0-d tensors, then Python numbers; a lower class matters only when its kind is higher.

// operand is a tensor or a number.
type operand struct {
	x      *ir.Value // nil: num
	s      scalar
	number bool // x is a Python number that the data decides
}

// operand is an argument that may be either.
func (c *call) operand(name string) operand {
	if c.isTensor(name) {
		return operand{x: c.val(name)}
	}
	if a := c.arg(name); a.SymInt != nil || a.SymFloat != nil || a.SymBool != nil {
		if v := c.im.runtimeOperand(&a); v != nil {
			return operand{x: v, number: true}
		}
	}
	return operand{s: c.scalar(name)}
}

func tensorOperand(x *ir.Value) operand { return operand{x: x} }

func (o operand) dims() []int64 {
	if o.x == nil {
		return nil
	}
	return o.x.Type.Dims
}

// resultType is torch.result_type.
func resultType(ops ...operand) tensor.DType {
	var dim, zero, num tensor.DType
	for _, o := range ops {
		switch {
		case o.number:
			num = promote(num, numberType(scalar{kind: kindOf(o.x.Type.DType)}))
		case o.x == nil:
			num = promote(num, numberType(o.s))
		case o.x.Type.Rank() == 0:
			zero = promote(zero, o.x.Type.DType)
		default:
			dim = promote(dim, o.x.Type.DType)
		}
	}
	return combine(dim, combine(zero, num))
}

// numberType is the element type of a Python number.
func numberType(s scalar) tensor.DType {
	switch s.kind {
	case kindBool:
		return tensor.Bool
	case kindInt:
		return tensor.I64
	case kindComplex:
		return tensor.C64
	}
	return tensor.F32 // torch.get_default_dtype()
}

// kindOf is the category of an element type.
func kindOf(d tensor.DType) kind {
	switch {
	case d.IsComplex():
		return kindComplex
	case d.IsFloat():
		return kindFloat
	case d.IsInt():
		return kindInt
	}
	return kindBool
}

// combine lets the lower class change the higher one only by its kind.
func combine(higher, lower tensor.DType) tensor.DType {
	switch {
	case higher == tensor.Invalid:
		return lower
	case lower == tensor.Invalid, kindOf(higher) == kindComplex:
		return higher
	case kindOf(higher) == kindFloat:
		if kindOf(lower) == kindComplex {
			return complexOf(higher)
		}
		return higher
	case higher == tensor.Bool, kindOf(lower) >= kindFloat:
		return promote(higher, lower)
	}
	return higher
}

// complexOf is the complex type with parts at least as precise: f32 for narrower floats.
func complexOf(d tensor.DType) tensor.DType {
	if d == tensor.F64 {
		return tensor.C128
	}
	return tensor.C64
}

// promote is torch.promote_types; Invalid is neutral.
func promote(a, b tensor.DType) tensor.DType {
	switch ka, kb := kindOf(a), kindOf(b); {
	case a == tensor.Invalid:
		return b
	case b == tensor.Invalid, a == b:
		return a
	case ka < kb:
		if kb == kindComplex && ka == kindFloat {
			return promoteComplex(b, complexOf(a))
		}
		return b
	case ka > kb:
		return promote(b, a)
	case ka == kindComplex:
		return promoteComplex(a, b)
	case ka == kindFloat:
		return promoteFloat(a, b)
	}
	return promoteInt(a, b)
}

func promoteComplex(a, b tensor.DType) tensor.DType {
	if a == tensor.C128 || b == tensor.C128 {
		return tensor.C128
	}
	return tensor.C64
}

// promoteFloat is the wider type; bf16 and f16 hold neither each other.
func promoteFloat(a, b tensor.DType) tensor.DType {
	switch {
	case a.Bits() > b.Bits():
		return a
	case a.Bits() < b.Bits():
		return b
	}
	return tensor.F32 // bf16 with f16
}

// promoteInt is the smallest type that holds both; a signed and an unsigned one of equal width need a wider signed one.
func promoteInt(a, b tensor.DType) tensor.DType {
	switch {
	case a.IsSigned() == b.IsSigned():
		if a.Bits() > b.Bits() {
			return a
		}
		return b
	case a.IsUnsigned():
		return promoteInt(b, a)
	case a.Bits() > b.Bits():
		return a
	}
	// A signed type that holds the unsigned one; for u64 there is none.
	for _, d := range []tensor.DType{tensor.I16, tensor.I32, tensor.I64} {
		if d.Bits() > b.Bits() {
			return d
		}
	}
	return tensor.I64
}

// floatResult is the type of an operator that gives floats for integers.
func floatResult(d tensor.DType) tensor.DType {
	if kindOf(d) < kindFloat {
		return tensor.F32
	}
	return d
}

// broadcastDims is the common shape of operands.
func (c *call) broadcastDims(ops ...operand) []int64 {
	var out []int64
	for _, o := range ops {
		d := o.dims()
		if len(d) > len(out) {
			out = append(slices.Repeat([]int64{1}, len(d)-len(out)), out...)
		}
		for i := range d {
			at := len(out) - len(d) + i
			switch {
			case out[at] == d[i] || d[i] == 1:
			case out[at] == 1:
				out[at] = d[i]
			default:
				c.failf("shapes do not broadcast: dimension %d is %d and %d", at, out[at], d[i])
			}
		}
	}
	return out
}

// materialize is o as a tensor of d and dims.
func (c *call) materialize(o operand, d tensor.DType, dims []int64) *ir.Value {
	x := o.x
	if x == nil {
		x = constant(c.b, d, o.s)
	}
	return op.BroadcastTo(c.b, c.cast(x, d), dims)
}

// elementwise promotes and broadcasts the operands to d, as torch rounds numbers and 0-d tensors too, and applies f.
func (c *call) elementwise(d tensor.DType, f fn, ops ...operand) *ir.Value {
	dims := c.broadcastDims(ops...)
	xs := make([]*ir.Value, len(ops))
	for i, o := range ops {
		xs[i] = c.materialize(o, d, dims)
	}
	return f(c.b, xs)
}

// precisely is elementwise for products and quotients: torch keeps a factor or a divisor that is a number or a 0-d tensor in f32 where it is
// more precise than d, bf16 or f16, and rounds the result alone.
func (c *call) precisely(d tensor.DType, f fn, ops ...operand) *ir.Value {
	if slices.ContainsFunc(ops, func(o operand) bool { return !exactIn(o, d) }) {
		return c.inF32(d, f, ops...)
	}
	return c.elementwise(d, f, ops...)
}

// inF32 is elementwise in f32 for a narrower d, rounded once.
func (c *call) inF32(d tensor.DType, f fn, ops ...operand) *ir.Value {
	return c.cast(c.elementwise(wide(d), f, ops...), d)
}

// rounded is o as it is in d.
func (c *call) rounded(o operand, d tensor.DType) operand {
	return tensorOperand(c.materialize(o, d, o.dims()))
}

// exactIn reports an operand that loses nothing by conversion to d beyond what torch loses.
func exactIn(o operand, d tensor.DType) bool {
	if o.number {
		return !o.x.Type.DType.IsFloat()
	}
	if o.x != nil {
		return o.x.Type.Rank() > 0 || o.x.Type.DType == d || !o.x.Type.DType.IsFloat()
	}
	return o.s.kind < kindFloat || o.s.f != o.s.f || tensor.Scalar(d, o.s.f).Floats()[0] == o.s.f
}
