package pt2

import (
	"math"
	"slices"
	"strings"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// singularRules follow from singular values, which turning pairs of columns until all are orthogonal gives (one-sided Jacobi). Singular
// vectors and eigenvectors are refused where they are read: their signs and, of equal values, their choice are LAPACK's alone.
var singularRules = map[string]rule{
	"linalg_svdvals":           value(func(c *call) *ir.Value { return c.singularValues(c.val("A")) }),
	"linalg_eigvalsh":          value(func(c *call) *ir.Value { return c.eigenvalues(c.val("self")) }),
	"linalg_eigh":              values(func(c *call) []*ir.Value { return c.eigh(c.val("self")) }),
	"_linalg_eigh":             values(func(c *call) []*ir.Value { return c.eigh(c.val("A")) }),
	"linalg_polar":             values(polarFactors),
	"linalg_matrix_sqrth":      value(matrixRoot),
	"pinverse":                 value(func(c *call) *ir.Value { return c.pinv(c.val("self"), "", "rcond") }),
	"linalg_pinv":              value(func(c *call) *ir.Value { return c.pinv(c.val("self"), "", "rcond") }),
	"linalg_pinv.rcond_tensor": value(func(c *call) *ir.Value { return c.pinv(c.val("self"), "", "rcond") }),
	"linalg_pinv.atol_rtol_float": value(func(c *call) *ir.Value {
		return c.pinv(c.val("self"), "atol", "rtol")
	}),
	"linalg_pinv.atol_rtol_tensor": value(func(c *call) *ir.Value {
		return c.pinv(c.val("self"), "atol", "rtol")
	}),
	"linalg_matrix_rank":            value(func(c *call) *ir.Value { return c.rank(c.val("self"), "tol", "") }),
	"linalg_matrix_rank.tol_tensor": value(func(c *call) *ir.Value { return c.rank(c.val("input"), "tol", "") }),
	"linalg_matrix_rank.atol_rtol_float": value(func(c *call) *ir.Value {
		return c.rank(c.val("self"), "atol", "rtol")
	}),
	"linalg_matrix_rank.atol_rtol_tensor": value(func(c *call) *ir.Value {
		return c.rank(c.val("input"), "atol", "rtol")
	}),
}

// singular is A V = columns, which are orthogonal, with their norms; the columns stand in no order, and zeros may stand among them.
type singular struct {
	columns *ir.Value // [batch, m, k]
	norms   *ir.Value // [batch, 1, k], real: the singular values
	turns   *ir.Value // V, [batch, n, k]
}

// sweeps is how often every pair of columns is turned. Convergence is quadratic at the end; tests at the limits of the types need half of it.
var sweeps = map[tensor.DType]int64{tensor.F32: 14, tensor.C64: 14, tensor.F64: 18, tensor.C128: 18}

// jacobi makes the columns of a [batch, m, n] orthogonal, as many pairs at a time as there are, each pair once a sweep (Brent and Luk, The
// solution of singular-value and symmetric eigenvalue problems on multiprocessor arrays, 1985).
func (c *call) jacobi(a *ir.Value) singular {
	batch, m, n := a.Type.Dims[0], a.Type.Dims[1], a.Type.Dims[2]
	f := fb{c.b, c}
	size := reduce(c.b, op.Max, c.magnitude(a), []int64{1, 2}, true) // squares must neither overflow nor vanish
	size = op.Select.Make(c.b, compare(c.b, op.GT, size, f.c(size, 0)), size, f.c(size, 1))
	a = op.Div.Make(c.b, a, c.cast(op.BroadcastTo(c.b, size, a.Type.Dims), a.Type.DType))
	eye := c.identity(&ir.Value{Type: a.Type.WithDims(batch, n, n)})
	both := concat(c.b, 1, a, eye) // V is turned with A
	if n%2 == 1 {
		both = op.Pad.Make(c.b, op.PadAttr{Low: []int64{0, 0, 0}, High: []int64{0, 0, 1}, Interior: []int64{0, 0, 0}}, both, zero(c.b, a.Type.DType))
	}
	half := both.Type.Dims[2] / 2
	state := []*ir.Value{slice(c.b, both, 2, 0, half, 1), slice(c.b, both, 2, half, 2*half, 1)}
	state = c.loop(sweeps[a.Type.DType]*max(2*half-1, 1), nil, state, func(_ *ir.Value, s []*ir.Value) []*ir.Value {
		left, right := c.turned(s[0], s[1], m)
		if half == 1 {
			return []*ir.Value{left, right}
		}
		part := func(x *ir.Value, from, to int64) *ir.Value { return slice(c.b, x, 2, from, to, 1) }
		return []*ir.Value{ // all columns but the first move one place around
			concat(c.b, 2, part(left, 0, 1), part(right, 0, 1), part(left, 1, half-1)),
			concat(c.b, 2, part(right, 1, half), part(left, half-1, half)),
		}
	})
	all := concat(c.b, 2, state...)
	cols := slice(c.b, all, 1, 0, m, 1)
	cols = op.Mul.Make(c.b, cols, c.cast(op.BroadcastTo(c.b, size, cols.Type.Dims), cols.Type.DType))
	return singular{cols, c.vectorNorm(cols, 2, []int64{1}, true), slice(c.b, all, 1, m, m+n, 1)}
}

// turned turns each pair of columns so that their first m elements are orthogonal (Hestenes).
func (c *call) turned(left, right *ir.Value, m int64) (l, r *ir.Value) {
	f := fb{c.b, c}
	x, y := slice(c.b, left, 1, 0, m, 1), slice(c.b, right, 1, 0, m, 1)
	over := []int64{1}
	a, b := c.vectorNorm(x, 2, over, true), c.vectorNorm(y, 2, over, true)
	dot := reduce(c.b, op.Sum, op.Mul.Make(c.b, conjugate(c.b, x), y), over, true)
	g := c.magnitude(dot)
	eps := map[tensor.DType]float64{tensor.F32: 0x1p-25, tensor.F64: 0x1p-54}[g.Type.DType]
	apart := compare(c.b, op.GT, g, f.scale(f.mul(a, b), eps))
	safe := op.Select.Make(c.b, apart, g, f.c(g, 1))
	zeta := op.Div.Make(c.b, f.mul(f.sub(b, a), f.add(b, a)), f.scale(safe, 2))
	size := op.Abs.Make(c.b, zeta)
	t := op.Div.Make(c.b, f.c(size, 1), f.add(size, hypot(c.b, []*ir.Value{size, f.c(size, 1)})))
	t = f.where(op.LT, zeta, 0, f.neg(t), t)
	t = op.Select.Make(c.b, apart, t, f.c(t, 0))
	cos := op.Rsqrt.Make(c.b, f.add(f.mul(t, t), f.c(t, 1)))
	sin := f.mul(cos, t)
	spread := func(v *ir.Value) *ir.Value { return op.BroadcastTo(c.b, c.cast(v, left.Type.DType), left.Type.Dims) }
	phase := op.Div.Make(c.b, dot, c.cast(safe, dot.Type.DType)) // of magnitude 1 where it counts
	back := f.mul(spread(sin), spread(conjugate(c.b, phase)))
	forth := f.mul(spread(sin), spread(phase))
	return f.sub(f.mul(spread(cos), left), f.mul(back, right)), f.add(f.mul(forth, left), f.mul(spread(cos), right))
}

// tall is x as matrices with no fewer rows than columns, by taking adjoints.
func (c *call) tall(x *ir.Value) (a *ir.Value, turned bool) {
	a = c.matrices(x)
	if a.Type.Dims[1] < a.Type.Dims[2] {
		return c.adjointOf(a), true
	}
	return a, false
}

// singularValues are the singular values of matrices, the largest first, [..., min(m, n)].
func (c *call) singularValues(x *ir.Value) *ir.Value {
	a, _ := c.tall(x)
	n := a.Type.Dims[2]
	if a.Type.Elements() == 0 {
		return splat(c.b, a.Type.DType.Real(), intScalar(0), slices.Concat(lead(x), []int64{n}))
	}
	v := op.Sort.Make(c.b, op.SortAttr{Axis: 2, Descending: true, Stable: true}, c.jacobi(a).norms)
	return c.batched(slice(c.b, v, 2, 0, n, 1), x, n)
}

// triangle is the Hermitian matrices that the triangle of the argument UPLO, by default the lower one, stands for.
func (c *call) triangle(x *ir.Value) *ir.Value {
	a := c.square(x)
	upper := c.schema.param("UPLO") != nil && strings.EqualFold(c.str("UPLO"), "U")
	rows, cols := counting(c.b, tensor.I32, a.Type.Dims, 1), counting(c.b, tensor.I32, a.Type.Dims, 2)
	dir := op.GT
	if upper {
		dir = op.LT
	}
	given := op.Select.Make(c.b, compare(c.b, dir, rows, cols), a, c.adjointOf(a))
	diagonal := a
	if a.Type.DType.IsComplex() { // whose imaginary part is not read
		diagonal = c.cast(realPart(c.b, a), a.Type.DType)
	}
	return op.Select.Make(c.b, compare(c.b, op.EQ, rows, cols), diagonal, given)
}

// eigenvalues are those of Hermitian matrices, ascending: the singular values after a shift that makes all of them positive, less the shift.
func (c *call) eigenvalues(x *ir.Value) *ir.Value {
	a := c.triangle(x)
	n := a.Type.Dims[1]
	if a.Type.Elements() == 0 {
		return splat(c.b, a.Type.DType.Real(), intScalar(0), slices.Concat(lead(x), []int64{n}))
	}
	f := fb{c.b, c}
	shift := c.vectorNorm(a, 2, []int64{1, 2}, true)
	moved := f.add(a, f.mul(c.identity(a), c.cast(op.BroadcastTo(c.b, shift, a.Type.Dims), a.Type.DType)))
	v := op.Sort.Make(c.b, op.SortAttr{Axis: 2, Stable: true}, c.jacobi(moved).norms)
	v = slice(c.b, v, 2, n%2, n+n%2, 1) // a column of zeros that made their number even is the first
	return c.batched(f.sub(v, op.BroadcastTo(c.b, shift, v.Type.Dims)), x, n)
}

// eigh gives eigenvalues alone: eigenvectors that are read are refused.
func (c *call) eigh(x *ir.Value) []*ir.Value {
	c.unread("eigenvectors", 1)
	return []*ir.Value{c.eigenvalues(x), c.recordedZeros(1)}
}

// unread refuses the node where one of the results is read, unless it is empty.
func (c *call) unread(what string, results ...int) {
	names := outputNames(c.node)
	for _, i := range results {
		if i < len(names) && names[i] != "" && c.im.isRead(names[i]) && c.recordedZeros(i).Type.Elements() > 0 {
			c.unsupported("%s, whose signs are LAPACK's alone", what)
		}
	}
}

// recordedZeros is zeros of the recorded type of a result.
func (c *call) recordedZeros(i int) *ir.Value {
	names := outputNames(c.node)
	if i >= len(names) || names[i] == "" {
		return splat(c.b, tensor.F32, intScalar(0), []int64{0})
	}
	meta, ok := c.im.g.TensorValues[names[i]]
	if !ok {
		c.failf("the graph does not describe tensor %q", clip(names[i]))
	}
	t, _, err := c.im.typeOf(&meta)
	if err != nil {
		c.failf("tensor %q: %v", clip(names[i]), err)
	}
	return splat(c.b, t.DType, intScalar(0), t.Dims)
}

// isRead reports a tensor that a node reads or the graph gives.
func (im *importer) isRead(name string) bool {
	found := false
	look := func(n string) { found = found || n == name }
	for i := range im.g.Nodes {
		for k := range im.g.Nodes[i].Inputs {
			im.g.Nodes[i].Inputs[k].Arg.visit(look, func(string) {})
		}
	}
	for i := range im.g.Outputs {
		im.g.Outputs[i].visit(look, func(string) {})
	}
	return found
}

// polarFactors are U with orthonormal columns and H, Hermitian and not negative, of A = U H.
func polarFactors(c *call) []*ir.Value {
	x := c.val("A")
	a := c.matrices(x)
	m, n := a.Type.Dims[1], a.Type.Dims[2]
	if m < n {
		c.failf("A is %s, wanted no fewer rows than columns", x.Type)
	}
	if a.Type.Elements() == 0 {
		return []*ir.Value{x, splat(c.b, x.Type.DType, intScalar(0), slices.Concat(lead(x), []int64{n, n}))}
	}
	s := c.jacobi(a)
	unit := op.Div.Make(c.b, s.columns, c.cast(op.BroadcastTo(c.b, c.nonzeroOr1(s.norms), s.columns.Type.Dims), a.Type.DType))
	u := c.matmul(unit, c.adjointOf(s.turns))
	return []*ir.Value{c.batched(u, x, m, n), c.batched(c.recomposed(s.turns, s.norms), x, n, n)}
}

// nonzeroOr1 is x with ones in the place of zeros.
func (c *call) nonzeroOr1(x *ir.Value) *ir.Value {
	f := fb{c.b, c}
	return f.where(op.EQ, x, 0, f.c(x, 1), x)
}

// recomposed is V diag(w) V^H of V [batch, n, k] and w [batch, 1, k].
func (c *call) recomposed(v, w *ir.Value) *ir.Value {
	scaled := op.Mul.Make(c.b, v, c.cast(op.BroadcastTo(c.b, w, v.Type.Dims), v.Type.DType))
	return c.matmul(scaled, c.adjointOf(v))
}

// matrixRoot is the square root of a positive-definite matrix, whose lower triangle is read.
func matrixRoot(c *call) *ir.Value {
	x := c.val("self")
	if x.Type.Elements() == 0 {
		return x
	}
	s := c.jacobi(c.triangle(x))
	return reshape(c.b, c.recomposed(s.turns, op.Sqrt.Make(c.b, s.norms)), x.Type.Dims)
}

// cutoff is the size from which on singular values of matrices x count, which broadcasts with their leading dimensions: the larger of the
// argument atol, or 0 where its name is "" or it is None, and of the argument rtol times the largest value. Where rtol is None it is 0 beside a
// positive atol, and the machine epsilon times the larger extent otherwise.
func (c *call) cutoff(x *ir.Value, largest operand, atol, rtol string) operand {
	d := x.Type.DType.Real()
	eps := map[tensor.DType]float64{tensor.F32: 0x1p-23, tensor.F64: 0x1p-52}[d]
	n := x.Type.Rank()
	auto := operand{s: floatScalar(eps * float64(max(x.Type.Dims[n-2], x.Type.Dims[n-1])))}
	none := operand{s: floatScalar(0)}
	given := func(name string, otherwise operand) operand {
		if name == "" || !c.has(name) {
			return otherwise
		}
		o := c.operand(name)
		if o.x != nil {
			o.x = c.cast(o.x, d)
		}
		return o
	}
	a := given(atol, none)
	relative := auto
	switch {
	case rtol == "":
		relative = none
	case c.has(rtol):
		relative = given(rtol, none)
	case a.x != nil:
		relative = tensorOperand(c.elementwise(d, func(_ *ir.Builder, v []*ir.Value) *ir.Value {
			f := fb{c.b, c}
			return f.where(op.GT, v[0], 0, f.c(v[0], 0), v[1])
		}, a, auto))
	case a.s.float() > 0:
		relative = none
	}
	return tensorOperand(c.elementwise(d, func(_ *ir.Builder, v []*ir.Value) *ir.Value {
		return op.Maximum.Make(c.b, v[0], op.Mul.Make(c.b, v[1], v[2]))
	}, a, relative, largest))
}

// hermitian is x, or what its lower triangle stands for where the argument hermitian is set.
func (c *call) hermitian(x *ir.Value) *ir.Value {
	if c.schema.param("hermitian") == nil || !c.bool("hermitian") {
		return x
	}
	return reshape(c.b, c.triangle(x), x.Type.Dims)
}

// last is x with a new last dimension of extent 1.
func (c *call) last(o operand) operand {
	if o.x == nil {
		return o
	}
	return tensorOperand(reshape(c.b, o.x, append(slices.Clone(o.x.Type.Dims), 1)))
}

// rank is the number of singular values above the cutoff.
func (c *call) rank(x *ir.Value, atol, rtol string) *ir.Value {
	v := c.singularValues(c.hermitian(x))
	n := v.Type.Rank()
	if v.Type.Elements() == 0 {
		return splat(c.b, tensor.I64, intScalar(0), c.resultType().Dims)
	}
	largest := reduce(c.b, op.Max, v, []int64{int64(n - 1)}, false)
	cut := c.cutoff(x, tensorOperand(largest), atol, rtol)
	above := c.elementwise(v.Type.DType, func(b *ir.Builder, v []*ir.Value) *ir.Value { return compare(b, op.GT, v[0], v[1]) }, tensorOperand(v), c.last(cut))
	return reduce(c.b, op.Sum, c.cast(above, tensor.I64), []int64{int64(above.Type.Rank() - 1)}, false)
}

// pinv is the pseudoinverse, in which singular values up to the cutoff count as 0.
func (c *call) pinv(x *ir.Value, atol, rtol string) *ir.Value {
	n := x.Type.Rank()
	if n < 2 {
		c.failf("a matrix is %s, wanted rank 2 or more", x.Type)
	}
	if x.Type.Elements() == 0 {
		return splat(c.b, x.Type.DType, intScalar(0), slices.Concat(lead(x), []int64{x.Type.Dims[n-1], x.Type.Dims[n-2]}))
	}
	a, turned := c.tall(c.hermitian(x))
	s := c.jacobi(a)
	k := s.norms.Type.Dims[2]
	values := c.batched(s.norms, x, k)
	largest := reduce(c.b, op.Max, values, []int64{int64(n - 2)}, false)
	cut := c.cutoff(x, tensorOperand(largest), atol, rtol)
	weights := c.elementwise(values.Type.DType, func(b *ir.Builder, v []*ir.Value) *ir.Value { // 1/s^2: the columns hold s once
		f := fb{b, c}
		one := op.Div.Make(b, f.c(v[0], 1), c.nonzeroOr1(v[0]))
		return op.Select.Make(b, compare(b, op.GT, v[0], v[1]), one, f.c(one, 0))
	}, tensorOperand(values), c.last(cut))
	w := reshape(c.b, weights, slices.Insert(slices.Clone(weights.Type.Dims), weights.Type.Rank()-1, 1))
	scaled := func(v *ir.Value, rows int64) *ir.Value {
		return c.elementwise(v.Type.DType, func(b *ir.Builder, v []*ir.Value) *ir.Value { return op.Mul.Make(b, v[0], v[1]) },
			tensorOperand(c.batched(v, x, rows, k)), tensorOperand(c.cast(w, v.Type.DType)))
	}
	m, cols := a.Type.Dims[1], a.Type.Dims[2]
	left, right := scaled(s.turns, cols), scaled(s.columns, m)
	last := func(v *ir.Value) *ir.Value { return conjugate(c.b, swap(c.b, v, v.Type.Rank()-2, v.Type.Rank()-1)) }
	if turned { // of the adjoint: the adjoint of its pseudoinverse
		return c.matmul(right, last(left))
	}
	return c.matmul(left, last(right))
}

// spectralNorm is the norm of matrices by their singular values: their sum for 0, the largest for 2, the least for -2.
func (c *call) spectralNorm(x *ir.Value, order int, axes []int64, keep bool) *ir.Value {
	rank := x.Type.Rank()
	if rank < 2 || len(axes) != 2 {
		c.failf("a matrix norm over %d dimensions of %s, wanted 2", len(axes), x.Type)
	}
	x, d := c.normInput(x)
	perm := slices.DeleteFunc(iotaInts(rank), func(a int64) bool { return slices.Contains(axes, a) })
	v := c.singularValues(transpose(c.b, x, append(perm, axes...)))
	kind := map[int]op.Reducer{0: op.Sum, 2: op.Max, -2: op.Min}[order]
	if v.Type.Dims[rank-2] == 0 && kind != op.Sum {
		c.failf("the norm of order %d over no elements of %s", order, x.Type)
	}
	y := reduce(c.b, kind, v, []int64{int64(rank - 2)}, false)
	if keep {
		dims := slices.Clone(x.Type.Dims)
		for _, a := range axes {
			dims[a] = 1
		}
		y = reshape(c.b, y, dims)
	}
	return c.cast(y, d)
}

// isSpectral reports an order of matrix norms that singular values give, with its number for spectralNorm.
func isSpectral(order float64) (int, bool) { return int(order), math.Abs(order) == 2 }
