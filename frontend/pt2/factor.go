package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// Factorisations and solutions of systems of square matrices, as loops over columns: as many steps as the matrix has, each over the whole
// matrix. Batches run together. Matrices are [batch, rows, columns] within this file.

// matrices is x with all dimensions before the last two as one.
func (c *call) matrices(x *ir.Value) *ir.Value {
	n := x.Type.Rank()
	if n < 2 {
		c.failf("a matrix is %s, wanted rank 2 or more", x.Type)
	}
	if d := x.Type.DType; d.Bits() < 32 || !d.IsFloat() && !d.IsComplex() {
		c.unsupported("matrices of %s", d)
	}
	batch := x.Type.WithDims(x.Type.Dims[:n-2]...).Elements()
	return reshape(c.b, x, slices.Concat([]int64{batch}, x.Type.Dims[n-2:]))
}

// square is matrices with as many rows as columns.
func (c *call) square(x *ir.Value) *ir.Value {
	m := c.matrices(x)
	if m.Type.Dims[1] != m.Type.Dims[2] {
		c.failf("a matrix is %s, wanted as many rows as columns", x.Type)
	}
	return m
}

// column is x[:, :, i] as [batch, rows, 1]; row is x[:, i, :] as [batch, 1, columns].
func (c *call) column(x, i *ir.Value) *ir.Value { return c.lineAt(x, i, 2) }
func (c *call) row(x, i *ir.Value) *ir.Value    { return c.lineAt(x, i, 1) }

func (c *call) lineAt(x, i *ir.Value, axis int) *ir.Value {
	size := slices.Clone(x.Type.Dims)
	size[axis] = 1
	at := []*ir.Value{x, intConst(c.b, tensor.I32, 0), intConst(c.b, tensor.I32, 0), intConst(c.b, tensor.I32, 0)}
	at[1+axis] = i
	return op.DynamicSlice.Make(c.b, op.DynamicSliceAttr{Sizes: size}, at...)
}

// places compares the index along axis with i, a scalar or of extent 1 along axis.
func (c *call) places(dir op.CompareDir, dims []int64, axis int, i *ir.Value) *ir.Value {
	return compare(c.b, dir, counting(c.b, tensor.I32, dims, axis), op.BroadcastTo(c.b, i, dims))
}

// outerProduct is col [batch, n, 1] times row [batch, 1, m].
func (c *call) outerProduct(col, row *ir.Value) *ir.Value {
	dims := []int64{col.Type.Dims[0], col.Type.Dims[1], row.Type.Dims[2]}
	return op.Mul.Make(c.b, op.BroadcastTo(c.b, col, dims), op.BroadcastTo(c.b, row, dims))
}

// factored is P A = L U: lu holds both below and above the diagonal; perm [batch, n, 1] is the row of A in each place, pivots [batch, k, 1] the
// rows exchanged, counted from 1, swaps [batch, 1, 1] how many were, and info the first zero pivot, counted from 1, or 0; all i32.
type factored struct{ lu, perm, pivots, swaps, info *ir.Value }

// luFactor eliminates column by column, with the largest element of each as pivot (LAPACK getrf), or the diagonal where pivot is false.
func (c *call) luFactor(a *ir.Value, pivot bool) factored {
	dims := a.Type.Dims
	batch, n, k := dims[0], dims[1], min(dims[1], dims[2])
	ints := func(d ...int64) *ir.Value { return splat(c.b, tensor.I32, intScalar(0), d) }
	state := []*ir.Value{a, counting(c.b, tensor.I32, []int64{batch, n, 1}, 1), ints(batch, k, 1), ints(batch, 1, 1), ints(batch, 1, 1)}
	out := c.loop(k, nil, state, func(i *ir.Value, s []*ir.Value) []*ir.Value {
		a, perm, pivots, swaps, info := s[0], s[1], s[2], s[3], s[4]
		f := fb{c.b, c}
		line := []int64{batch, n, 1}
		top := op.BroadcastTo(c.b, i, []int64{batch, 1, 1})
		if pivot {
			col := c.column(a, i)
			size := c.cabs1(col)
			size = op.Select.Make(c.b, c.places(op.LT, line, 1, i), f.c(size, -1), size)
			_, at := c.firstExtreme(op.Max, size, 1)
			top = c.cast(at, tensor.I32)
		}
		swapped := func(x *ir.Value) *ir.Value {
			mine, other := c.row(x, i), c.gatherAlong(x, op.BroadcastTo(c.b, top, []int64{batch, 1, x.Type.Dims[2]}), 1)
			y := op.Select.Make(c.b, c.places(op.EQ, x.Type.Dims, 1, top), op.BroadcastTo(c.b, mine, x.Type.Dims), x)
			return op.Select.Make(c.b, c.places(op.EQ, x.Type.Dims, 1, i), op.BroadcastTo(c.b, other, x.Type.Dims), y)
		}
		if pivot {
			a, perm = swapped(a), swapped(perm)
		}
		row := c.row(a, i)
		head := c.column(row, i)
		none := compare(c.b, op.EQ, head, f.c(head, 0))
		safe := op.Select.Make(c.b, none, f.c(head, 1), head)
		col := c.column(a, i)
		col = op.Select.Make(c.b, c.places(op.GT, line, 1, i), op.Div.Make(c.b, col, op.BroadcastTo(c.b, safe, line)), f.c(col, 0))
		right := op.Select.Make(c.b, c.places(op.GT, row.Type.Dims, 2, i), row, f.c(row, 0))
		a = op.Sub.Make(c.b, a, c.outerProduct(col, right))
		below := op.And.Make(c.b, c.places(op.GT, dims, 1, i), c.places(op.EQ, dims, 2, i))
		a = op.Select.Make(c.b, below, op.BroadcastTo(c.b, col, dims), a)

		next := op.Add.Make(c.b, i, intConst(c.b, tensor.I32, 1))
		one := like(c.b, top, intScalar(1))
		pivots = op.Select.Make(c.b, c.places(op.EQ, pivots.Type.Dims, 1, i), op.BroadcastTo(c.b, op.Add.Make(c.b, top, one), pivots.Type.Dims), pivots)
		moved := compare(c.b, op.NE, top, op.BroadcastTo(c.b, i, top.Type.Dims))
		swaps = op.Add.Make(c.b, swaps, c.cast(moved, tensor.I32))
		first := op.And.Make(c.b, none, compare(c.b, op.EQ, info, like(c.b, info, intScalar(0))))
		info = op.Select.Make(c.b, first, op.BroadcastTo(c.b, next, info.Type.Dims), info)
		return []*ir.Value{a, perm, pivots, swaps, info}
	})
	return factored{out[0], out[1], out[2], out[3], out[4]}
}

// cabs1 is |x|, of complex numbers |re| + |im|, by which LAPACK compares pivots.
func (c *call) cabs1(x *ir.Value) *ir.Value {
	if x.Type.DType.IsComplex() {
		return op.Add.Make(c.b, op.Abs.Make(c.b, realPart(c.b, x)), op.Abs.Make(c.b, imagPart(c.b, x)))
	}
	return op.Abs.Make(c.b, x)
}

// solveTriangular is X of A X = B by substitution; only the triangle of A is read, without its diagonal where unit is set.
func (c *call) solveTriangular(a, b *ir.Value, upper, unit bool) *ir.Value {
	n := a.Type.Dims[1]
	if b.Type.Dims[1] != n || b.Type.Dims[0] != a.Type.Dims[0] {
		c.failf("a system of %s with right sides %s", a.Type, b.Type)
	}
	out := c.loop(n, nil, []*ir.Value{b, a}, func(i *ir.Value, s []*ir.Value) []*ir.Value {
		x, a := s[0], s[1]
		dir := op.GT
		if upper {
			i, dir = op.Sub.Make(c.b, intConst(c.b, tensor.I32, n-1), i), op.LT
		}
		xi := c.row(x, i)
		if !unit {
			xi = op.Div.Make(c.b, xi, op.BroadcastTo(c.b, c.column(c.row(a, i), i), xi.Type.Dims))
		}
		rest := op.Sub.Make(c.b, x, c.outerProduct(c.column(a, i), xi))
		x = op.Select.Make(c.b, c.places(dir, x.Type.Dims, 1, i), rest, x)
		x = op.Select.Make(c.b, c.places(op.EQ, x.Type.Dims, 1, i), op.BroadcastTo(c.b, xi, x.Type.Dims), x)
		return []*ir.Value{x, a}
	})
	return out[0]
}

// solveFactored is X of A X = B.
func (c *call) solveFactored(f factored, b *ir.Value) *ir.Value {
	b = c.gatherAlong(b, op.BroadcastTo(c.b, f.perm, b.Type.Dims), 1)
	return c.solveTriangular(f.lu, c.solveTriangular(f.lu, b, false, true), true, false)
}

// identity is the unit matrix of the type of x [batch, n, n].
func (c *call) identity(x *ir.Value) *ir.Value {
	dims := x.Type.Dims
	return c.cast(compare(c.b, op.EQ, counting(c.b, tensor.I32, dims, 1), counting(c.b, tensor.I32, dims, 2)), x.Type.DType)
}

// inverted is the inverse of a [batch, n, n], and info of its factorisation.
func (c *call) inverted(a *ir.Value) (inverse, info *ir.Value) {
	f := c.luFactor(a, true)
	return c.solveFactored(f, c.identity(a)), f.info
}

// choleskyOf is L of A = L L^H, whose lower triangle is read, and info: 0, or the first column without a positive pivot, counted from 1.
func (c *call) choleskyOf(a *ir.Value) (l, info *ir.Value) {
	dims := a.Type.Dims
	state := []*ir.Value{a, likeF(c.b, a, 0), splat(c.b, tensor.I32, intScalar(0), []int64{dims[0], 1, 1})}
	out := c.loop(dims[1], nil, state, func(i *ir.Value, s []*ir.Value) []*ir.Value {
		a, l, info := s[0], s[1], s[2]
		f := fb{c.b, c}
		col := c.column(a, i)
		head := realPart(c.b, c.row(col, i))
		bad := op.Not.Make(c.b, compare(c.b, op.GT, head, f.c(head, 0)))
		root := c.cast(op.Sqrt.Make(c.b, head), a.Type.DType)
		col = op.Div.Make(c.b, col, op.BroadcastTo(c.b, root, col.Type.Dims))
		col = op.Select.Make(c.b, c.places(op.GE, col.Type.Dims, 1, i), col, f.c(col, 0))
		l = op.Select.Make(c.b, c.places(op.EQ, dims, 2, i), op.BroadcastTo(c.b, col, dims), l)
		a = op.Sub.Make(c.b, a, c.outerProduct(col, conjugate(c.b, swap(c.b, col, 1, 2))))
		first := op.And.Make(c.b, bad, compare(c.b, op.EQ, info, like(c.b, info, intScalar(0))))
		next := op.Add.Make(c.b, i, intConst(c.b, tensor.I32, 1))
		return []*ir.Value{a, l, op.Select.Make(c.b, first, op.BroadcastTo(c.b, next, info.Type.Dims), info)}
	})
	return out[1], out[2]
}

// adjointOf exchanges rows and columns and conjugates.
func (c *call) adjointOf(x *ir.Value) *ir.Value { return conjugate(c.b, swap(c.b, x, 1, 2)) }

// rowsFrom is the row of the matrix in each place, [batch, n, 1], after the exchanges that pivots [batch, k, 1] names.
func (c *call) rowsFrom(pivots *ir.Value, n int64) *ir.Value {
	batch, k := pivots.Type.Dims[0], pivots.Type.Dims[1]
	start := counting(c.b, tensor.I32, []int64{batch, n, 1}, 1)
	out := c.loop(k, nil, []*ir.Value{start, pivots}, func(i *ir.Value, s []*ir.Value) []*ir.Value {
		x, dims := s[0], s[0].Type.Dims
		top := op.Sub.Make(c.b, c.row(s[1], i), splat(c.b, tensor.I32, intScalar(1), []int64{batch, 1, 1}))
		mine, other := c.row(x, i), c.gatherAlong(x, top, 1)
		y := op.Select.Make(c.b, c.places(op.EQ, dims, 1, top), op.BroadcastTo(c.b, mine, dims), x)
		return []*ir.Value{op.Select.Make(c.b, c.places(op.EQ, dims, 1, i), op.BroadcastTo(c.b, other, dims), y), s[1]}
	})
	return out[0]
}
