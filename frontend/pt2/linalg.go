package pt2

import (
	"math"
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// linalgRules are solutions of linear systems and what follows from them. check_errors cannot fail at run time: a singular system gives
// infinities or NaN, and info says so.
var linalgRules = map[string]rule{
	"linalg_lu_factor":    values(func(c *call) []*ir.Value { return c.luResults("A")[:2] }),
	"linalg_lu_factor_ex": values(func(c *call) []*ir.Value { return c.luResults("A") }),
	"_lu_with_info":       values(func(c *call) []*ir.Value { return c.luResults("self") }),
	"linalg_lu":           values(linalgLU),
	"lu_unpack":           luUnpack,
	"linalg_lu_solve":     value(linalgLUSolve),
	"lu_solve": value(func(c *call) *ir.Value {
		return c.luSolve(c.val("LU_data"), c.val("LU_pivots"), c.val("self"), true, false)
	}),
	"linalg_det":              value(func(c *call) *ir.Value { return c.determinant(c.val("A")) }),
	"det":                     value(func(c *call) *ir.Value { return c.determinant(c.val("self")) }),
	"linalg_slogdet":          values(func(c *call) []*ir.Value { return c.logDeterminant(c.val("A")) }),
	"slogdet":                 values(func(c *call) []*ir.Value { return c.logDeterminant(c.val("self")) }),
	"logdet":                  value(logdet),
	"linalg_inv":              value(func(c *call) *ir.Value { return c.inverse("A")[0] }),
	"inverse":                 value(func(c *call) *ir.Value { return c.inverse("self")[0] }),
	"linalg_inv_ex":           values(func(c *call) []*ir.Value { return c.inverse("A") }),
	"linalg_solve":            value(func(c *call) *ir.Value { return c.solve()[0] }),
	"linalg_solve_ex":         values((*call).solve),
	"linalg_solve_triangular": value(linalgSolveTriangular),
	"triangular_solve":        values(triangularSolve),
	"linalg_cholesky":         value(func(c *call) *ir.Value { return c.cholesky()[0] }),
	"cholesky":                value(func(c *call) *ir.Value { return c.cholesky()[0] }),
	"linalg_cholesky_ex":      values((*call).cholesky),
	"cholesky_solve": value(func(c *call) *ir.Value {
		return c.choleskySolve(c.val("input2"), c.val("self"))
	}),
	"cholesky_inverse":    value(func(c *call) *ir.Value { return c.choleskySolve(c.val("self"), nil) }),
	"linalg_matrix_exp":   value(matrixExp),
	"matrix_exp":          value(matrixExp),
	"linalg_matrix_power": value(matrixPower),
	"matrix_power":        value(matrixPower),
	"linalg_tensorinv":    value(tensorInverse),
	"linalg_tensorsolve":  value(tensorSolve),
	"linalg_cond":         value(condition),
	"linalg_cond.p_str":   value(condition),
}

// lead is the dimensions before the last two.
func lead(x *ir.Value) []int64 { return x.Type.Dims[:max(x.Type.Rank()-2, 0)] }

// batched is y with x's leading dimensions and the given ones.
func (c *call) batched(y, x *ir.Value, dims ...int64) *ir.Value {
	return reshape(c.b, y, slices.Concat(lead(x), dims))
}

// luResults gives the factors in one matrix, the pivots and info.
func (c *call) luResults(arg string) []*ir.Value {
	x := c.val(arg)
	f := c.luFactor(c.matrices(x), c.bool("pivot"))
	return []*ir.Value{reshape(c.b, f.lu, x.Type.Dims), c.batched(f.pivots, x, f.pivots.Type.Dims[1]), c.batched(f.info, x)}
}

// triangles are L, with ones on its diagonal, and U of factors in one matrix.
func (c *call) triangles(lu *ir.Value) (l, u *ir.Value) {
	n, m := lu.Type.Dims[1], lu.Type.Dims[2]
	k := min(n, m)
	part := func(x *ir.Value, dir op.CompareDir) *ir.Value {
		dims := x.Type.Dims
		in := compare(c.b, dir, counting(c.b, tensor.I32, dims, 1), counting(c.b, tensor.I32, dims, 2))
		return op.Select.Make(c.b, in, x, likeF(c.b, x, 0))
	}
	l = part(slice(c.b, lu, 2, 0, k, 1), op.GT)
	return op.Add.Make(c.b, l, c.identity(l)), part(slice(c.b, lu, 1, 0, k, 1), op.LE)
}

// permutation is P of A = P L U, [batch, n, n], from the row in each place.
func (c *call) permutation(perm *ir.Value, d tensor.DType) *ir.Value {
	batch, n := perm.Type.Dims[0], perm.Type.Dims[1]
	dims := []int64{batch, n, n}
	return c.cast(compare(c.b, op.EQ, counting(c.b, tensor.I32, dims, 1), op.BroadcastTo(c.b, swap(c.b, perm, 1, 2), dims)), d)
}

// linalgLU gives P, L and U; P is empty without pivoting.
func linalgLU(c *call) []*ir.Value {
	x := c.val("A")
	f := c.luFactor(c.matrices(x), c.bool("pivot"))
	l, u := c.triangles(f.lu)
	p := splat(c.b, x.Type.DType, intScalar(0), []int64{0})
	if c.bool("pivot") {
		p = c.permutation(f.perm, x.Type.DType)
		p = c.batched(p, x, p.Type.Dims[1:]...)
	}
	return []*ir.Value{p, c.batched(l, x, l.Type.Dims[1:]...), c.batched(u, x, u.Type.Dims[1:]...)}
}

// luUnpack gives P, L and U of what luResults gave; those that are not asked for are empty.
func luUnpack(c *call) []*ref {
	x := c.val("LU_data")
	none := func() *ref { return fresh(splat(c.b, x.Type.DType, intScalar(0), []int64{0})) }
	out := []*ref{none(), none(), none()}
	m := c.matrices(x)
	if c.bool("unpack_pivots") {
		p := c.permutation(c.rowsFrom(c.pivotColumn(c.val("LU_pivots"), m), m.Type.Dims[1]), x.Type.DType)
		out[0] = fresh(c.batched(p, x, p.Type.Dims[1:]...))
	}
	if c.bool("unpack_data") {
		l, u := c.triangles(m)
		out[1], out[2] = fresh(c.batched(l, x, l.Type.Dims[1:]...)), fresh(c.batched(u, x, u.Type.Dims[1:]...))
	}
	return out
}

// pivotColumn is pivots [..., k] as [batch, k, 1], for the factors m.
func (c *call) pivotColumn(pivots, m *ir.Value) *ir.Value {
	dims := []int64{m.Type.Dims[0], min(m.Type.Dims[1], m.Type.Dims[2]), 1}
	if pivots.Type.Elements() != dims[0]*dims[1] {
		c.failf("pivots are %s for matrices %s", pivots.Type, m.Type)
	}
	return reshape(c.b, c.cast(pivots, tensor.I32), dims)
}

func linalgLUSolve(c *call) *ir.Value {
	return c.luSolve(c.val("LU"), c.val("pivots"), c.val("B"), c.bool("left"), c.bool("adjoint"))
}

// alike repeats the leading dimensions of matrices to their common ones.
func (c *call) alike(xs ...*ir.Value) ([]*ir.Value, []int64) {
	ops := make([]operand, len(xs))
	for i, x := range xs {
		ops[i] = operand{x: zeroOf(lead(x))}
	}
	dims := c.broadcastDims(ops...)
	out := make([]*ir.Value, len(xs))
	for i, x := range xs {
		out[i] = c.matrices(op.BroadcastTo(c.b, x, slices.Concat(dims, x.Type.Dims[x.Type.Rank()-2:])))
	}
	return out, dims
}

// luSolve is X of A X = B, or of X A = B where left is false, with A or its adjoint by its factors.
func (c *call) luSolve(lu, pivots, b *ir.Value, left, adjoint bool) *ir.Value {
	if lu.Type.Rank() < 2 || b.Type.Rank() < 2 {
		c.failf("the factors are %s, B is %s, wanted matrices", lu.Type, b.Type)
	}
	n := lu.Type.Dims[lu.Type.Rank()-1]
	p := reshape(c.b, pivots, slices.Concat(pivots.Type.Dims, []int64{1}))
	ms, dims := c.alike(lu, b)
	pb := reshape(c.b, c.cast(op.BroadcastTo(c.b, p, slices.Concat(dims, []int64{n, 1})), tensor.I32), []int64{ms[0].Type.Dims[0], n, 1})
	f := factored{lu: c.square(ms[0]), perm: c.rowsFrom(pb, n)}
	rhs := ms[1]
	if !left { // X A = B is A^H X^H = B^H
		rhs, adjoint = c.adjointOf(rhs), !adjoint
	}
	x := rhs
	if adjoint { // A^H = U^H L^H P^T: the rows go back to their places at the end
		h := c.adjointOf(f.lu)
		x = c.solveTriangular(h, x, false, false)
		x = c.solveTriangular(h, x, true, true)
		back := c.inverseRows(f.perm)
		x = c.gatherAlong(x, op.BroadcastTo(c.b, back, x.Type.Dims), 1)
	} else {
		x = c.solveFactored(f, x)
	}
	if !left {
		x = c.adjointOf(x)
	}
	return reshape(c.b, x, slices.Concat(dims, x.Type.Dims[1:]))
}

// inverseRows is the inverse of a permutation [batch, n, 1].
func (c *call) inverseRows(perm *ir.Value) *ir.Value {
	id := counting(c.b, tensor.I32, perm.Type.Dims, 1)
	return op.Sort.MakeAll(c.b, op.SortAttr{Axis: 1, Stable: true}, perm, id)[1]
}

// diagonalOfFactors is the diagonal of U, [batch, n].
func (c *call) diagonalOfFactors(lu *ir.Value) *ir.Value {
	return reduce(c.b, op.Sum, op.Select.Make(c.b, compare(c.b, op.NE, c.identity(lu), likeF(c.b, lu, 0)), lu, likeF(c.b, lu, 0)), []int64{2}, false)
}

// swapSign is -1 for an odd number of exchanges, [batch].
func (c *call) swapSign(f factored, d tensor.DType) *ir.Value {
	odd := op.And.Make(c.b, f.swaps, like(c.b, f.swaps, intScalar(1)))
	odd = c.cast(reshape(c.b, odd, f.swaps.Type.Dims[:1]), d)
	return op.Sub.Make(c.b, likeF(c.b, odd, 1), op.Mul.Make(c.b, odd, likeF(c.b, odd, 2)))
}

func (c *call) determinant(x *ir.Value) *ir.Value {
	f := c.luFactor(c.square(x), true)
	p := reduce(c.b, op.Prod, c.diagonalOfFactors(f.lu), []int64{1}, false)
	return c.batched(op.Mul.Make(c.b, p, c.swapSign(f, x.Type.DType)), x)
}

// logDeterminant gives the sign, of complex matrices a number of magnitude 1, and the logarithm of the determinant's magnitude.
func (c *call) logDeterminant(x *ir.Value) []*ir.Value {
	f := c.luFactor(c.square(x), true)
	d := c.diagonalOfFactors(f.lu)
	size := c.magnitude(d)
	zero := compare(c.b, op.EQ, size, likeF(c.b, size, 0))
	unit := op.Div.Make(c.b, d, c.cast(op.Select.Make(c.b, zero, likeF(c.b, size, 1), size), d.Type.DType))
	sign := op.Mul.Make(c.b, reduce(c.b, op.Prod, unit, []int64{1}, false), c.swapSign(f, d.Type.DType))
	return []*ir.Value{c.batched(sign, x), c.batched(reduce(c.b, op.Sum, op.Log.Make(c.b, size), []int64{1}, false), x)}
}

// logdet is the logarithm of the determinant: NaN where it is negative.
func logdet(c *call) *ir.Value {
	v := c.logDeterminant(c.val("self"))
	return op.Add.Make(c.b, c.cast(v[1], v[0].Type.DType), op.Log.Make(c.b, v[0]))
}

// inverse gives the inverse and info.
func (c *call) inverse(arg string) []*ir.Value {
	x := c.val(arg)
	y, info := c.inverted(c.square(x))
	return []*ir.Value{reshape(c.b, y, x.Type.Dims), c.batched(info, x)}
}

// solve gives X of A X = B, or X A = B, and info. B is a batch of vectors where its shape is that of A less one dimension.
func (c *call) solve() []*ir.Value {
	a, b := c.val("A"), c.val("B")
	n := a.Type.Rank()
	if n < 2 {
		c.failf("A is %s, wanted rank 2 or more", a.Type)
	}
	vector := b.Type.Rank() == 1 || n-1 == b.Type.Rank() && slices.Equal(a.Type.Dims[:n-1], b.Type.Dims)
	if vector {
		b = reshape(c.b, b, slices.Concat(b.Type.Dims, []int64{1}))
	}
	left := c.bool("left")
	f := c.luFactor(c.square(a), true)
	ms, dims := c.alike(a, b)
	m, rhs := ms[0], ms[1]
	if !left && !vector {
		m, rhs = swap(c.b, m, 1, 2), swap(c.b, rhs, 1, 2)
	}
	x := c.solveFactored(c.luFactor(c.square(m), true), rhs)
	if !left && !vector {
		x = swap(c.b, x, 1, 2)
	}
	out := slices.Concat(dims, x.Type.Dims[1:])
	if vector {
		out = out[:len(out)-1]
	}
	return []*ir.Value{reshape(c.b, x, out), c.batched(f.info, a)}
}

// solveSide is X of A X = B, or X A = B where left is false, for triangular matrices.
func (c *call) solveSide(a, b *ir.Value, upper, left, unit bool) *ir.Value {
	if a.Type.Rank() < 2 || b.Type.Rank() < 2 {
		c.failf("A is %s, B is %s, wanted matrices", a.Type, b.Type)
	}
	ms, dims := c.alike(a, b)
	m, rhs := c.square(ms[0]), ms[1]
	if !left {
		m, rhs, upper = swap(c.b, m, 1, 2), swap(c.b, rhs, 1, 2), !upper
	}
	x := c.solveTriangular(m, rhs, upper, unit)
	if !left {
		x = swap(c.b, x, 1, 2)
	}
	return reshape(c.b, x, slices.Concat(dims, x.Type.Dims[1:]))
}

func linalgSolveTriangular(c *call) *ir.Value {
	return c.solveSide(c.val("self"), c.val("B"), c.bool("upper"), c.bool("left"), c.bool("unitriangular"))
}

// triangularSolve is the older form, which gives A too.
func triangularSolve(c *call) []*ir.Value {
	a, b, upper := c.val("A"), c.val("self"), c.bool("upper")
	m := a
	if c.bool("transpose") {
		if m.Type.Rank() < 2 {
			c.failf("A is %s, wanted rank 2 or more", a.Type)
		}
		m, upper = swap(c.b, m, m.Type.Rank()-2, m.Type.Rank()-1), !upper
	}
	x := c.solveSide(m, b, upper, true, c.bool("unitriangular"))
	return []*ir.Value{x, op.BroadcastTo(c.b, a, slices.Concat(lead(x), a.Type.Dims[a.Type.Rank()-2:]))}
}

// cholesky gives L of A = L L^H, or its adjoint, of the triangle named, and info.
func (c *call) cholesky() []*ir.Value {
	x, upper := c.val("self"), c.bool("upper")
	m := c.square(x)
	if upper {
		m = c.adjointOf(m)
	}
	l, info := c.choleskyOf(m)
	if upper {
		l = c.adjointOf(l)
	}
	return []*ir.Value{reshape(c.b, l, x.Type.Dims), c.batched(info, x)}
}

// choleskySolve is X of L L^H X = B, or of U^H U X = B; B is the unit matrix where it is nil.
func (c *call) choleskySolve(l, b *ir.Value) *ir.Value {
	if l.Type.Rank() < 2 || b != nil && b.Type.Rank() < 2 {
		c.failf("the factor is %s, wanted a matrix", l.Type)
	}
	if b == nil {
		b = reshape(c.b, c.identity(c.square(l)), l.Type.Dims)
	}
	ms, dims := c.alike(l, b)
	m := c.square(ms[0])
	if c.bool("upper") {
		m = c.adjointOf(m)
	}
	x := c.solveTriangular(c.adjointOf(m), c.solveTriangular(m, ms[1], false, false), true, false)
	return reshape(c.b, x, slices.Concat(dims, x.Type.Dims[1:]))
}

// maxPower bounds the power of matrices: squarings are written out.
const maxPower = 1 << 30

// matrixPower multiplies squares; negative powers are of the inverse.
func matrixPower(c *call) *ir.Value {
	x, n := c.val("self"), c.int("n")
	if n < -maxPower || n > maxPower {
		c.unsupported("the power %d", n)
	}
	if r := x.Type.Rank(); r < 2 || x.Type.Dims[r-1] != x.Type.Dims[r-2] {
		c.failf("self is %s, wanted square matrices", x.Type)
	}
	batch := x.Type.WithDims(lead(x)...).Elements()
	flat := reshape(c.b, x, slices.Concat([]int64{batch}, x.Type.Dims[x.Type.Rank()-2:]))
	if n < 0 {
		flat, _ = c.inverted(c.square(x))
		n = -n
	}
	var y *ir.Value
	for sq := flat; n > 0; n >>= 1 {
		if n&1 == 1 {
			if y == nil {
				y = sq
			} else {
				y = c.matmul(y, sq)
			}
		}
		if n > 1 {
			sq = c.matmul(sq, sq)
		}
	}
	if y == nil {
		y = c.identity(flat)
	}
	return reshape(c.b, y, x.Type.Dims)
}

// expTerms is the degree of the Taylor polynomial of matrixExp: the next term at norm 1 is below the precision of f64.
const expTerms = 18

// matrixExp is the exponential of matrices by scaling and squaring: of A / 2^s, whose norm is at most 1, by its Taylor polynomial, squared s
// times, where s is that of each matrix.
func matrixExp(c *call) *ir.Value {
	x := c.val("self")
	a := c.square(x) // of narrower floats torch gives NaN
	if a.Type.Elements() == 0 {
		return x
	}
	f := fb{c.b, c}
	norm := reduce(c.b, op.Max, reduce(c.b, op.Sum, c.magnitude(a), []int64{1}, true), []int64{2}, true)
	log := op.Div.Make(c.b, op.Log.Make(c.b, f.max(norm, 1)), f.c(norm, math.Ln2))
	count := f.min(op.Ceil.Make(c.b, log), 1024) // [batch, 1, 1]
	spread := func(v *ir.Value) *ir.Value { return c.cast(op.BroadcastTo(c.b, v, a.Type.Dims), a.Type.DType) }
	small := f.mul(a, spread(op.Pow.Make(c.b, f.c(count, 0.5), count)))
	eye := c.identity(a)
	sum := c.loop(expTerms, nil, []*ir.Value{eye, small, eye}, func(i *ir.Value, s []*ir.Value) []*ir.Value { // I + A/18 and so on, inside out
		g := fb{c.b, c}
		k := c.cast(op.Sub.Make(c.b, intConst(c.b, tensor.I32, expTerms), i), a.Type.DType)
		y := op.Div.Make(c.b, c.matmul(s[1], s[0]), op.BroadcastTo(c.b, k, a.Type.Dims))
		return []*ir.Value{g.add(y, s[2]), s[1], s[2]}
	})[0]
	most := c.cast(reduce(c.b, op.Max, count, []int64{0, 1, 2}, false), tensor.I32)
	y := c.loop(0, most, []*ir.Value{sum, count}, func(i *ir.Value, s []*ir.Value) []*ir.Value {
		left := compare(c.b, op.LT, op.BroadcastTo(c.b, c.cast(i, s[1].Type.DType), s[1].Type.Dims), s[1])
		return []*ir.Value{op.Select.Make(c.b, op.BroadcastTo(c.b, left, s[0].Type.Dims), c.matmul(s[0], s[0]), s[0]), s[1]}
	})
	return reshape(c.b, y[0], x.Type.Dims)
}

// tensorInverse is the inverse of the matrix of the first ind dimensions by the others.
func tensorInverse(c *call) *ir.Value {
	x, ind := c.val("self"), c.int("ind")
	if ind < 1 || ind >= int64(x.Type.Rank()) {
		c.failf("ind is %d for %s", ind, x.Type)
	}
	rows, cols := x.Type.Dims[:ind], x.Type.Dims[ind:]
	n := x.Type.WithDims(rows...).Elements()
	y, _ := c.inverted(c.square(reshape(c.b, x, []int64{n, x.Type.WithDims(cols...).Elements()})))
	return reshape(c.b, y, slices.Concat(cols, rows))
}

// tensorSolve solves for the last dimensions of self, after dims are moved there.
func tensorSolve(c *call) *ir.Value {
	x, b := c.val("self"), c.val("other")
	if c.has("dims") {
		last := c.axesOrNone("dims", x.Type.Rank())
		perm := slices.DeleteFunc(iotaInts(x.Type.Rank()), func(d int64) bool { return slices.Contains(last, d) })
		x = transpose(c.b, x, append(perm, last...))
	}
	if b.Type.Rank() > x.Type.Rank() {
		c.failf("other is %s for %s", b.Type, x.Type)
	}
	out := x.Type.Dims[b.Type.Rank():]
	n := b.Type.Elements()
	a := c.square(reshape(c.b, x, []int64{n, x.Type.WithDims(out...).Elements()}))
	return reshape(c.b, c.solveFactored(c.luFactor(a, true), reshape(c.b, b, []int64{1, n, 1})), out)
}

// condition is the norm of a matrix times that of its inverse.
func condition(c *call) *ir.Value {
	x := c.val("self")
	order, spectral := 2, !c.has("p")
	if !spectral && !c.isString("p") {
		order, spectral = isSpectral(c.float("p"))
	}
	if spectral {
		v := c.singularValues(x)
		n := v.Type.Rank() - 1
		if v.Type.Dims[n] == 0 {
			return splat(c.b, v.Type.DType, intScalar(0), lead(x))
		}
		top, least := reduce(c.b, op.Max, v, []int64{int64(n)}, false), reduce(c.b, op.Min, v, []int64{int64(n)}, false)
		if order < 0 {
			top, least = least, top
		}
		return op.Div.Make(c.b, top, least)
	}
	m := c.square(x)
	inv, _ := c.inverted(m)
	norm := func(v *ir.Value) *ir.Value { return c.normOf(v, "p", []int64{1, 2}, false) }
	return c.batched(op.Mul.Make(c.b, norm(m), norm(inv)), x)
}
