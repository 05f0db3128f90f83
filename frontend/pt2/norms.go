package pt2

import (
	"math"
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// normRules are norms and products of vectors.
var normRules = map[string]rule{
	"nuclear_norm": value(func(c *call) *ir.Value {
		x := c.val("self")
		return c.spectralNorm(x, 0, []int64{0, 1}, c.bool("keepdim"))
	}),
	"nuclear_norm.dim": value(func(c *call) *ir.Value {
		x := c.val("self")
		return c.spectralNorm(x, 0, c.axes("dim", x.Type.Rank()), c.bool("keepdim"))
	}),
	"norm.Scalar":                value(func(c *call) *ir.Value { return c.norm("p") }),
	"norm.ScalarOpt_dim":         value(func(c *call) *ir.Value { return c.norm("p") }),
	"norm.ScalarOpt_dim_dtype":   value(func(c *call) *ir.Value { return c.norm("p") }),
	"norm.ScalarOpt_dtype":       value(func(c *call) *ir.Value { return c.norm("p") }),
	"frobenius_norm.dim":         value(func(c *call) *ir.Value { return c.norm("") }),
	"linalg_vector_norm":         value(func(c *call) *ir.Value { return c.norm("ord") }),
	"linalg_norm":                value(linalgNorm),
	"linalg_norm.ord_str":        value(linalgNorm),
	"linalg_matrix_norm":         value(func(c *call) *ir.Value { x := c.val("self"); return c.matrixNorm(x, c.axes("dim", x.Type.Rank())) }),
	"linalg_matrix_norm.str_ord": value(func(c *call) *ir.Value { x := c.val("self"); return c.matrixNorm(x, c.axes("dim", x.Type.Rank())) }),
	"pairwise_distance":          value(pairwiseDistance),
	"pdist":                      value(pdist),
	"_pdist_forward":             value(pdist),
	"dist": value(func(c *call) *ir.Value {
		diff := c.arith(op.Sub, tensorOperand(c.val("self")), tensorOperand(c.val("other")))
		return c.vectorNorm(diff, c.float("p"), iotaInts(diff.Type.Rank()), false)
	}),
	"renorm":           value(renorm),
	"embedding_renorm": value(embeddingRenorm),
	"linalg_vecdot":    value(vecdot),
	"linalg_cross":     value(func(c *call) *ir.Value { return c.cross(c.int("dim")) }),
	"cross":            value(cross),
	"linalg_vander": value(func(c *call) *ir.Value {
		x := c.val("x")
		if x.Type.Rank() == 0 {
			x = reshape(c.b, x, []int64{1})
		}
		return c.powers(x, c.intOr("N", x.Type.Dims[x.Type.Rank()-1]))
	}),
	"vander": value(func(c *call) *ir.Value {
		x := c.val("x")
		y := c.powers(x, c.intOr("N", x.Type.Elements()))
		if c.bool("increasing") {
			return y
		}
		return reverse(c.b, y, []int64{int64(x.Type.Rank())})
	}),
}

// norm is a vector norm of an order, an argument's name or "" for 2, over dimensions.
func (c *call) norm(order string) *ir.Value {
	x := c.val("self")
	axes, keep := c.over(x.Type.Rank())
	p := 2.0
	if order != "" {
		p = c.floatOr(order, 2)
	}
	return c.vectorNorm(x, p, axes, keep)
}

// normInput is x in the dtype to compute in, and the result's dtype, which is real.
func (c *call) normInput(x *ir.Value) (*ir.Value, tensor.DType) {
	d := c.dtype2("dtype", floatResult(x.Type.DType))
	x = c.cast(x, wide(d))
	if d.IsComplex() {
		d = d.Real()
	}
	return x, d
}

// magnitude is |x|, real for complex numbers.
func (c *call) magnitude(x *ir.Value) *ir.Value {
	if x.Type.DType.IsComplex() {
		return hypot(c.b, []*ir.Value{realPart(c.b, x), imagPart(c.b, x)})
	}
	return op.Abs.Make(c.b, x)
}

// vectorNorm is the p-norm over axes.
func (c *call) vectorNorm(x *ir.Value, p float64, axes []int64, keep bool) *ir.Value {
	x, d := c.normInput(x)
	abs := c.magnitude(x)
	var y *ir.Value
	switch {
	case p == 2:
		y = op.Sqrt.Make(c.b, reduce(c.b, op.Sum, op.Mul.Make(c.b, abs, abs), axes, keep))
	case p == 1:
		y = reduce(c.b, op.Sum, abs, axes, keep)
	case math.IsInf(p, 1):
		y = fb{b: c.b}.max(reduce(c.b, op.Max, abs, axes, keep), 0) // 0 over no elements
	case math.IsInf(p, -1):
		y = reduce(c.b, op.Min, abs, axes, keep)
	case p == 0:
		y = reduce(c.b, op.Sum, c.cast(compare(c.b, op.NE, abs, likeF(c.b, abs, 0)), abs.Type.DType), axes, keep)
	default:
		s := reduce(c.b, op.Sum, op.Pow.Make(c.b, abs, likeF(c.b, abs, p)), axes, keep)
		y = op.Pow.Make(c.b, s, likeF(c.b, s, 1/p))
	}
	return c.cast(y, d)
}

// linalgNorm is a vector norm over one dimension or all elements, or a matrix norm over two dimensions.
func linalgNorm(c *call) *ir.Value {
	x := c.val("self")
	axes, keep := c.over(x.Type.Rank())
	switch {
	case !c.has("ord"):
		return c.vectorNorm(x, 2, axes, keep)
	case len(axes) == 2:
		return c.matrixNorm(x, axes)
	case c.isString("ord") || len(axes) > 1:
		c.failf("a norm by order over %d dimensions, wanted one or two", len(axes))
	}
	return c.vectorNorm(x, c.float("ord"), axes, keep)
}

// isString reports an argument that is a word.
func (c *call) isString(name string) bool { return c.arg(name).String != nil }

// matrixNorm is the norm of the argument ord of matrices in two dimensions.
func (c *call) matrixNorm(x *ir.Value, axes []int64) *ir.Value {
	if len(axes) != 2 {
		c.failf("a matrix norm over %d dimensions of %s, wanted 2", len(axes), x.Type)
	}
	return c.normOf(x, "ord", axes, c.bool("keepdim"))
}

// normOf is the matrix norm of an order, the name of an argument.
func (c *call) normOf(x *ir.Value, order string, axes []int64, keep bool) *ir.Value {
	if c.isString(order) {
		switch c.str(order) {
		case "fro":
			return c.vectorNorm(x, 2, axes, keep)
		case "nuc":
			return c.spectralNorm(x, 0, axes, keep)
		}
		c.failf("the norm is %q, wanted fro or nuc", clip(c.str(order)))
	}
	ord := c.float(order)
	if k, ok := isSpectral(ord); ok {
		return c.spectralNorm(x, k, axes, keep)
	}
	inner, outer := axes[0], axes[1] // sums within columns
	switch {
	case math.Abs(ord) == 1:
	case math.IsInf(ord, 0):
		inner, outer = outer, inner
	default:
		c.failf("the norm is of order %v, wanted 1, 2 or infinity, or their negatives", ord)
	}
	kind := op.Max
	if ord < 0 {
		kind = op.Min
	}
	x, d := c.normInput(x)
	sums := reduce(c.b, op.Sum, c.magnitude(x), []int64{inner}, true)
	y := reduce(c.b, kind, sums, []int64{outer}, true)
	if kind == op.Max {
		y = fb{b: c.b}.max(y, 0) // 0 over no elements
	}
	if !keep {
		dims := slices.Clone(y.Type.Dims)
		for _, a := range slices.Backward(slices.Sorted(slices.Values(axes))) {
			dims = slices.Delete(dims, int(a), int(a)+1)
		}
		y = reshape(c.b, y, dims)
	}
	return c.cast(y, d)
}

// pairwiseDistance is the p-norm of x1 - x2 + eps over the last dimension.
func pairwiseDistance(c *call) *ir.Value {
	return c.distance(c.val("x1"), c.val("x2"), c.float("p"), c.float("eps"), c.bool("keepdim"))
}

// distance is the p-norm of x - y + eps over the last dimension.
func (c *call) distance(x, y *ir.Value, p, eps float64, keep bool) *ir.Value {
	diff := c.arith(op.Sub, tensorOperand(x), tensorOperand(y))
	diff = c.arith(op.Add, tensorOperand(diff), operand{s: floatScalar(eps)})
	if diff.Type.Rank() == 0 {
		diff = reshape(c.b, diff, []int64{1})
	}
	return c.vectorNorm(diff, p, []int64{int64(diff.Type.Rank() - 1)}, keep)
}

// vecdot sums the products of conj(x) and y along dim.
func vecdot(c *call) *ir.Value {
	x, y := tensorOperand(conjugate(c.b, c.val("x"))), tensorOperand(c.val("y"))
	d := resultType(x, y)
	dims := c.broadcastDims(x, y)
	axis := c.axis("dim", len(dims))
	if len(dims) == 0 {
		c.failf("x and y have rank 0, wanted 1 or more")
	}
	p := op.Mul.Make(c.b, c.materialize(x, d, dims), c.materialize(y, d, dims))
	return reduce(c.b, op.Sum, p, []int64{int64(axis)}, false)
}

// cross is the vector product along dim, or along the first dimension of extent 3.
func cross(c *call) *ir.Value {
	if c.has("dim") {
		return c.cross(c.int("dim"))
	}
	dims := c.broadcastDims(tensorOperand(c.val("self")), tensorOperand(c.val("other")))
	return c.cross(int64(slices.Index(dims, 3)))
}

// cross is the vector product along a dimension of extent 3: x1 y2 - x2 y1 and so on around.
func (c *call) cross(dim int64) *ir.Value {
	x, y := tensorOperand(c.val("self")), tensorOperand(c.val("other"))
	d, dims := resultType(x, y), c.broadcastDims(x, y)
	axis := c.wrap("dim", dim, len(dims))
	if len(dims) == 0 || dims[axis] != 3 {
		c.failf("dimension %d of %v, wanted extent 3", axis, dims)
	}
	a, b := c.materialize(x, d, dims), c.materialize(y, d, dims)
	from := func(v *ir.Value, k int64) *ir.Value { // elements k, k+1, k+2 around
		return concat(c.b, axis, slice(c.b, v, axis, k, 3, 1), slice(c.b, v, axis, 0, k, 1))
	}
	return op.Sub.Make(c.b, op.Mul.Make(c.b, from(a, 1), from(b, 2)), op.Mul.Make(c.b, from(a, 2), from(b, 1)))
}

// pdist is the p-norms of the differences of all pairs of rows i < j, in the order of i, then j.
func pdist(c *call) *ir.Value {
	x := c.val("self")
	if x.Type.Rank() != 2 {
		c.failf("self is %s, wanted rank 2", x.Type)
	}
	n := x.Type.Dims[0]
	if n > 1<<10 {
		c.unsupported("pairs of %d rows", n)
	}
	var first, second []int64
	for i := range n {
		for j := i + 1; j < n; j++ {
			first, second = append(first, i), append(second, j)
		}
	}
	rows := func(ids []int64) *ir.Value {
		return op.Take.Make(c.b, op.TakeAttr{Axis: 0}, x, literal(c.b, tensor.I32, []int64{int64(len(ids))}, ids))
	}
	if len(first) == 0 {
		return splat(c.b, x.Type.DType, intScalar(0), []int64{0})
	}
	return c.vectorNorm(op.Sub.Make(c.b, rows(first), rows(second)), c.float("p"), []int64{1}, false)
}

// shrunk is the factor that brings norms above limit down to it: limit / (norm + 1e-7), and 1 for others.
func (c *call) shrunk(norm *ir.Value, limit float64) *ir.Value {
	f := fb{c.b, c}
	return f.where(op.GT, norm, limit, op.Div.Make(c.b, f.c(norm, limit), f.add(norm, f.c(norm, 1e-7))), f.c(norm, 1))
}

// renorm scales the slices along dim whose p-norm is above maxnorm down to it.
func renorm(c *call) *ir.Value {
	x := c.val("self")
	axis := c.axis("dim", x.Type.Rank())
	if x.Type.Rank() < 2 {
		c.failf("self is %s, wanted rank 2 or more", x.Type)
	}
	axes := slices.DeleteFunc(iotaInts(x.Type.Rank()), func(a int64) bool { return a == int64(axis) })
	factor := c.shrunk(c.vectorNorm(c.cast(x, wide(x.Type.DType)), c.float("p"), axes, false), c.float("maxnorm"))
	return op.Mul.Make(c.b, x, along(c.b, c.cast(factor, x.Type.DType), x.Type.Dims, axis))
}

// embeddingRenorm scales the rows that indices name and whose norm is above max_norm down to it.
func embeddingRenorm(c *call) *ir.Value {
	x, ids := c.val("self"), c.val("indices")
	if x.Type.Rank() != 2 || !x.Type.DType.IsFloat() {
		c.failf("self is %s, wanted floats of rank 2", x.Type)
	}
	n := ids.Type.Elements()
	if n == 0 {
		return x
	}
	norm := c.vectorNorm(x, c.float("norm_type"), []int64{1}, false)
	factor := c.cast(c.shrunk(c.cast(norm, wide(norm.Type.DType)), c.float("max_norm")), x.Type.DType)
	named := c.scatterRows(op.Set, likeF(c.b, factor, 0), ids, splat(c.b, factor.Type.DType, intScalar(1), []int64{n}))
	scaled := op.Mul.Make(c.b, x, along(c.b, factor, x.Type.Dims, 0))
	hit := compare(c.b, op.NE, named, likeF(c.b, named, 0))
	return op.Select.Make(c.b, along(c.b, hit, x.Type.Dims, 0), scaled, x)
}
