package pt2

import (
	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// householderRules are factors of a matrix by reflections, with LAPACK's signs.
var householderRules = map[string]rule{
	"geqrf":                      values(geqrf),
	"linalg_qr":                  values(func(c *call) []*ir.Value { return c.qr(c.val("A"), c.str("mode")) }),
	"linalg_householder_product": value(func(c *call) *ir.Value { return c.householderProduct(c.val("input"), c.val("tau")) }),
	"orgqr":                      value(func(c *call) *ir.Value { return c.householderProduct(c.val("self"), c.val("input2")) }),
	"ormqr":                      value(ormqr),
}

// reflectors eliminates a [batch, m, n] column by column (LAPACK geqrf, larfg): R on and above the diagonal, below it the vectors v of the
// reflections I - tau v v^H, whose first element is 1 and not stored; tau is [batch, 1, min(m, n)].
func (c *call) reflectors(a *ir.Value) (packed, tau *ir.Value) {
	dims := a.Type.Dims
	k := min(dims[1], dims[2])
	out := c.loop(k, nil, []*ir.Value{a, splat(c.b, a.Type.DType, intScalar(0), []int64{dims[0], 1, k})}, func(i *ir.Value, s []*ir.Value) []*ir.Value {
		a, tau := s[0], s[1]
		f := fb{c.b, c}
		col := c.column(a, i)
		alpha := c.row(col, i)
		below := op.Select.Make(c.b, c.places(op.GT, col.Type.Dims, 1, i), col, f.c(col, 0))
		re := realPart(c.b, alpha)
		rest := c.vectorNorm(below, 2, []int64{1}, true)
		size := hypot(c.b, []*ir.Value{c.magnitude(alpha), rest})
		done := compare(c.b, op.EQ, rest, f.c(rest, 0)) // nothing to reflect
		if a.Type.DType.IsComplex() {
			im := imagPart(c.b, alpha)
			done = op.And.Make(c.b, done, compare(c.b, op.EQ, im, f.c(im, 0)))
		}
		size = op.Select.Make(c.b, done, f.c(size, 1), size) // any number but 0
		beta := c.cast(f.where(op.LT, re, 0, size, f.neg(size)), a.Type.DType)
		t := op.Select.Make(c.b, done, f.c(alpha, 0), op.Div.Make(c.b, f.sub(beta, alpha), beta))
		gap := op.Select.Make(c.b, done, f.c(alpha, 1), f.sub(alpha, beta))
		v := op.Div.Make(c.b, below, op.BroadcastTo(c.b, gap, below.Type.Dims))
		v = op.Select.Make(c.b, c.places(op.EQ, v.Type.Dims, 1, i), f.c(v, 1), v)

		rows := c.matmul(c.adjointOf(v), a) // v^H A, of which columns after i count
		moved := f.sub(a, c.outerProduct(op.Mul.Make(c.b, v, op.BroadcastTo(c.b, conjugate(c.b, t), v.Type.Dims)), rows))
		a = op.Select.Make(c.b, c.places(op.GT, dims, 2, i), moved, a)
		head := op.Select.Make(c.b, done, alpha, beta)
		own := op.Select.Make(c.b, c.places(op.EQ, col.Type.Dims, 1, i), op.BroadcastTo(c.b, head, col.Type.Dims), v)
		own = op.Select.Make(c.b, c.places(op.LT, col.Type.Dims, 1, i), col, own)
		a = op.Select.Make(c.b, c.places(op.EQ, dims, 2, i), op.BroadcastTo(c.b, own, dims), a)
		return []*ir.Value{a, op.Select.Make(c.b, c.places(op.EQ, tau.Type.Dims, 2, i), op.BroadcastTo(c.b, t, tau.Type.Dims), tau)}
	})
	return out[0], out[1]
}

// reflected is the first cols columns of the product of the reflections in packed [batch, m, n], with tau [batch, 1, k]: [batch, m, cols].
func (c *call) reflected(packed, tau *ir.Value, cols int64) *ir.Value {
	batch, m, k := packed.Type.Dims[0], packed.Type.Dims[1], tau.Type.Dims[2]
	dims := []int64{batch, m, cols}
	eye := c.cast(compare(c.b, op.EQ, counting(c.b, tensor.I32, dims, 1), counting(c.b, tensor.I32, dims, 2)), packed.Type.DType)
	out := c.loop(k, nil, []*ir.Value{eye, packed, tau}, func(i *ir.Value, s []*ir.Value) []*ir.Value {
		f := fb{c.b, c}
		i = op.Sub.Make(c.b, intConst(c.b, tensor.I32, k-1), i) // the last one first
		v := c.column(s[1], i)
		v = op.Select.Make(c.b, c.places(op.GT, v.Type.Dims, 1, i), v, f.c(v, 0))
		v = op.Select.Make(c.b, c.places(op.EQ, v.Type.Dims, 1, i), f.c(v, 1), v)
		t := op.BroadcastTo(c.b, c.column(s[2], i), v.Type.Dims)
		q := f.sub(s[0], c.outerProduct(f.mul(v, t), c.matmul(c.adjointOf(v), s[0])))
		return []*ir.Value{q, s[1], s[2]}
	})
	return out[0]
}

// upperOf is the elements of the first rows of m on and above the diagonal.
func (c *call) upperOf(m *ir.Value, rows int64) *ir.Value {
	m = slice(c.b, m, 1, 0, rows, 1)
	in := compare(c.b, op.LE, counting(c.b, tensor.I32, m.Type.Dims, 1), counting(c.b, tensor.I32, m.Type.Dims, 2))
	return op.Select.Make(c.b, in, m, likeF(c.b, m, 0))
}

// geqrf gives the reflections as LAPACK keeps them.
func geqrf(c *call) []*ir.Value {
	x := c.val("self")
	packed, tau := c.reflectors(c.matrices(x))
	return []*ir.Value{reshape(c.b, packed, x.Type.Dims), c.batched(tau, x, tau.Type.Dims[2])}
}

// qr gives Q and R of a mode: reduced, complete, or r, where Q is empty.
func (c *call) qr(x *ir.Value, mode string) []*ir.Value {
	a := c.matrices(x)
	m, n := a.Type.Dims[1], a.Type.Dims[2]
	k := min(m, n)
	cols := map[string]int64{"reduced": k, "complete": m, "r": k}
	if _, ok := cols[mode]; !ok {
		c.failf("mode is %q, wanted reduced, complete or r", clip(mode))
	}
	packed, tau := c.reflectors(a)
	r := c.upperOf(packed, cols[mode])
	r = c.batched(r, x, r.Type.Dims[1:]...)
	if mode == "r" {
		return []*ir.Value{splat(c.b, x.Type.DType, intScalar(0), []int64{0}), r}
	}
	return []*ir.Value{c.batched(c.reflected(packed, tau, cols[mode]), x, m, cols[mode]), r}
}

// reflections reads reflectors [..., m, n] and their factors [..., k].
func (c *call) reflections(x, tau *ir.Value) (packed, factors *ir.Value) {
	a := c.matrices(x)
	if tau.Type.Rank() != x.Type.Rank()-1 || tau.Type.Dims[tau.Type.Rank()-1] > min(a.Type.Dims[1], a.Type.Dims[2]) {
		c.failf("tau is %s for reflections %s", tau.Type, x.Type)
	}
	return a, reshape(c.b, tau, []int64{a.Type.Dims[0], 1, tau.Type.Dims[tau.Type.Rank()-1]})
}

// householderProduct is the product of reflections, as many columns as they have.
func (c *call) householderProduct(x, tau *ir.Value) *ir.Value {
	packed, factors := c.reflections(x, tau)
	return reshape(c.b, c.reflected(packed, factors, packed.Type.Dims[2]), x.Type.Dims)
}

// ormqr multiplies input3 by the product of reflections, or its adjoint, from the left or the right.
func ormqr(c *call) *ir.Value {
	other := c.val("input3")
	packed, factors := c.reflections(c.val("self"), c.val("input2"))
	m := packed.Type.Dims[1]
	q := c.reflected(packed, factors, m)
	if c.bool("transpose") {
		q = c.adjointOf(q)
	}
	q = c.batched(q, other, m, m)
	if c.bool("left") {
		return c.matmul(q, other)
	}
	return c.matmul(other, q)
}
