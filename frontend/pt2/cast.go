package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// castRules are conversions, copies and what torch calls the same tensor. Devices and layouts mean nothing here.
var castRules = map[string]rule{
	"to.dtype":        func(c *call) []*ref { return c.to(c.dtype("dtype", c.ref("self").typ.DType)) },
	"to.device":       func(c *call) []*ref { return c.to(c.dtype("dtype", c.ref("self").typ.DType)) },
	"to.dtype_layout": func(c *call) []*ref { return c.to(c.dtype("dtype", c.ref("self").typ.DType)) },
	"to.other":        func(c *call) []*ref { return c.to(c.ref("other").typ.DType) },
	"type_as":         func(c *call) []*ref { return c.to(c.ref("other").typ.DType) },
	"view.dtype":      seen(bitsView),
	"_to_copy":        value(func(c *call) *ir.Value { x := c.val("self"); return c.cast(x, c.dtype("dtype", x.Type.DType)) }),
	"clone":           value(func(c *call) *ir.Value { return c.val("self") }),
	"lift_fresh_copy": value(func(c *call) *ir.Value { return c.val("self") }),
	"contiguous":      contiguous,
	"alias":           aliased,
	"detach":          aliased,
	"detach_":         aliased,
	"lift":            aliased,
	"lift_fresh":      aliased,
	"requires_grad_":  aliased,
	"cpu":             aliased,
	"cuda":            aliased,
}

// to is the tensor itself where nothing changes, otherwise a copy.
func (c *call) to(d tensor.DType) []*ref {
	x := c.ref("self")
	if x.typ.DType == d && (c.schema.param("copy") == nil || !c.bool("copy")) {
		return []*ref{x.through(c.b, identityView())}
	}
	return []*ref{fresh(c.cast(x.read(c.b), d))}
}

// bitsView sees the bits of every element as another dtype of the same width, or complex numbers as their parts in the last dimension.
func bitsView(c *call, x *ref) view {
	from, to := x.typ.DType, c.dtype("dtype", x.typ.DType)
	dims, last := x.typ.Dims, x.typ.Rank()-1
	bits := func(d tensor.DType) func(b *ir.Builder, v *ir.Value) *ir.Value {
		return func(b *ir.Builder, v *ir.Value) *ir.Value { return op.Bitcast.Make(b, op.BitcastAttr{To: d}, v) }
	}
	parts := func(b *ir.Builder, v *ir.Value) *ir.Value {
		return reshape(b, asReal(b, v), append(slices.Clone(v.Type.Dims[:last]), 2*v.Type.Dims[last]))
	}
	whole := func(b *ir.Builder, v *ir.Value) *ir.Value { return asComplex(b, reshape(b, v, paired(v.Type.Dims))) }
	var read, write func(b *ir.Builder, v *ir.Value) *ir.Value
	switch {
	case from == to:
		return identityView()
	case from.IsComplex() && to == from.Real() && last >= 0:
		read, write = parts, whole
	case to.IsComplex() && from == to.Real() && last >= 0 && dims[last]%2 == 0:
		read, write = whole, parts
	case !from.IsComplex() && !to.IsComplex() && from != tensor.Bool && to != tensor.Bool && from.Bits() == to.Bits():
		read, write = bits(to), bits(from)
	default:
		c.unsupported("the bits of %s as %s", x.typ, to)
	}
	return view{read: read, write: func(b *ir.Builder, _ func() *ir.Value, v *ir.Value) *ir.Value { return write(b, v) }}
}

// paired splits the last dimension into pairs.
func paired(dims []int64) []int64 {
	last := len(dims) - 1
	return append(slices.Clone(dims[:last]), dims[last]/2, 2)
}

// contiguous is the tensor itself where its elements lie in order already.
func contiguous(c *call) []*ref {
	x := c.ref("self")
	if a := c.arg("memory_format"); (a.MemoryFormat == nil || *a.MemoryFormat == 1) && isContiguous(x.typ.Dims, x.strides) {
		return []*ref{x.through(c.b, identityView())}
	}
	return []*ref{fresh(x.read(c.b))}
}

// isContiguous compares strides with row-major ones, ignoring dimensions of extent 1. Unknown strides count as row-major.
func isContiguous(dims, strides []int64) bool {
	if len(strides) != len(dims) || slices.Contains(dims, 0) {
		return true
	}
	n := int64(1)
	for d := len(dims) - 1; d >= 0; d-- {
		if dims[d] != 1 && strides[d] != n {
			return false
		}
		n *= dims[d]
	}
	return true
}
