package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// castRules are conversions, copies and what torch calls the same tensor. Devices and layouts mean nothing here.
var castRules = map[string]rule{
	"to.dtype":        func(c *call) []*ref { return c.to(c.dtype("dtype", c.ref("self").typ.DType)) },
	"to.device":       func(c *call) []*ref { return c.to(c.dtype("dtype", c.ref("self").typ.DType)) },
	"to.dtype_layout": func(c *call) []*ref { return c.to(c.dtype("dtype", c.ref("self").typ.DType)) },
	"to.other":        func(c *call) []*ref { return c.to(c.ref("other").typ.DType) },
	"type_as":         func(c *call) []*ref { return c.to(c.ref("other").typ.DType) },
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
