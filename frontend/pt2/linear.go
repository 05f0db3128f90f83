package pt2

import (
	"slices"
	"strings"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// linearRules are products of matrices. Sums over narrow floats are f32 and rounded once, with what is added to them.
var linearRules = map[string]rule{
	"linear":           value(func(c *call) *ir.Value { return c.linear(c.val("input"), c.val("weight"), c.opt("bias")) }),
	"mm":               value(func(c *call) *ir.Value { return c.matmul(c.val("self"), c.val("mat2")) }),
	"bmm":              value(func(c *call) *ir.Value { return c.matmul(c.val("self"), c.val("mat2")) }),
	"mv":               value(func(c *call) *ir.Value { return c.matmul(c.val("self"), c.val("vec")) }),
	"dot":              value(func(c *call) *ir.Value { return c.matmul(c.val("self"), c.val("tensor")) }),
	"matmul":           value(func(c *call) *ir.Value { return c.matmul(c.val("self"), c.val("other")) }),
	"inner":            value(inner),
	"outer":            value(outer),
	"ger":              value(outer),
	"addmm":            value(func(c *call) *ir.Value { return c.addProduct("mat1", "mat2") }),
	"addmv":            value(func(c *call) *ir.Value { return c.addProduct("mat", "vec") }),
	"baddbmm":          value(func(c *call) *ir.Value { return c.addProduct("batch1", "batch2") }),
	"addbmm":           value(addbmm),
	"addr":             value(addr),
	"einsum":           value(einsum),
	"chain_matmul":     value(func(c *call) *ir.Value { return c.product(c.vals("matrices")) }),
	"linalg_multi_dot": value(func(c *call) *ir.Value { return c.product(c.vals("tensors")) }),
	"tensordot":        value(tensordot),
	"kron":             value(kron),
	"bilinear":         value(bilinear),
	"cdist":            value(cdist),
	"_cdist_forward":   value(cdist),
}

// linear is x w^T + bias; bias may be nil.
func (c *call) linear(x, w, bias *ir.Value) *ir.Value {
	if w.Type.Rank() == 1 { // one number of each row
		y := c.wideMatmul(x, w)
		if bias != nil {
			y = op.Add.Make(c.b, y, op.BroadcastTo(c.b, c.cast(bias, y.Type.DType), y.Type.Dims))
		}
		return c.cast(y, x.Type.DType)
	}
	args := []*ir.Value{x, w}
	if bias != nil {
		args = append(args, bias)
	}
	return op.Linear.Make(c.b, args...)
}

// matmul is torch.matmul in x's dtype.
func (c *call) matmul(x, y *ir.Value) *ir.Value {
	return c.cast(c.wideMatmul(x, y), x.Type.DType)
}

// wideMatmul is torch.matmul with the sums not yet rounded: f32 for narrower floats.
func (c *call) wideMatmul(x, y *ir.Value) *ir.Value {
	b := c.b
	xr, yr := x.Type.Rank(), y.Type.Rank()
	if xr == 0 || yr == 0 {
		c.failf("matrices are %s and %s, wanted rank 1 or more", x.Type, y.Type)
	}
	a := op.DotAttr{Contract: [][]int64{{int64(xr - 1)}, {int64(max(yr-2, 0))}}}
	if w := wide(x.Type.DType); w != x.Type.DType {
		a.Out = w
	}
	if xr <= 2 && yr <= 2 || yr <= 2 {
		return op.Dot.Make(b, a, x, y)
	}
	// A vector on the left is a matrix of one row.
	row := xr == 1
	if row {
		x = reshape(b, x, []int64{1, x.Type.Dims[0]})
		xr = 2
	}
	batch := c.broadcastDims(operand{x: zeroOf(x.Type.Dims[:xr-2])}, operand{x: zeroOf(y.Type.Dims[:yr-2])})
	x = op.BroadcastTo(b, x, slices.Concat(batch, x.Type.Dims[xr-2:]))
	y = op.BroadcastTo(b, y, slices.Concat(batch, y.Type.Dims[yr-2:]))
	n := len(batch)
	a.Contract = [][]int64{{int64(n + 1)}, {int64(n)}}
	a.Batch = [][]int64{iotaInts(n), iotaInts(n)}
	z := op.Dot.Make(b, a, x, y)
	if row {
		z = reshape(b, z, slices.Delete(slices.Clone(z.Type.Dims), n, n+1))
	}
	return z
}

// zeroOf stands for a shape in broadcastDims; it is never part of the program.
func zeroOf(dims []int64) *ir.Value { return &ir.Value{Type: tensor.Make(tensor.F32, dims...)} }

// product multiplies matrices from left to right.
func (c *call) product(xs []*ir.Value) *ir.Value {
	if len(xs) == 0 {
		c.failf("no matrices, wanted one or more")
	}
	y := xs[0]
	for _, x := range xs[1:] {
		y = c.matmul(y, x)
	}
	return y
}

// inner contracts the last dimensions; with a 0-d tensor it is the elementwise product.
func inner(c *call) *ir.Value {
	x, y := c.val("self"), c.val("other")
	if x.Type.Rank() == 0 || y.Type.Rank() == 0 {
		return c.elementwise(x.Type.DType, plain(op.Mul), tensorOperand(x), tensorOperand(y))
	}
	a := op.DotAttr{Contract: [][]int64{{int64(x.Type.Rank() - 1)}, {int64(y.Type.Rank() - 1)}}}
	return op.Dot.Make(c.b, a, x, y)
}

// outer is the products of all pairs, [n, m].
func outer(c *call) *ir.Value {
	x, y := c.val("self"), c.val("vec2")
	d := resultType(tensorOperand(x), tensorOperand(y))
	dims := []int64{x.Type.Elements(), y.Type.Elements()}
	return op.Mul.Make(c.b, along(c.b, c.cast(x, d), dims, 0), along(c.b, c.cast(y, d), dims, 1))
}

// addProduct is beta self + alpha (x y).
func (c *call) addProduct(xArg, yArg string) *ir.Value {
	self, x, y := c.val("self"), c.val(xArg), c.val(yArg)
	p := c.wideMatmul(x, y)
	return c.addScaledTo(self, p)
}

// addScaledTo is beta self + alpha p, rounded once to self's dtype.
func (c *call) addScaledTo(self, p *ir.Value) *ir.Value {
	alpha, beta := c.scalar("alpha"), c.scalar("beta")
	if !alpha.is(1) {
		p = op.Mul.Make(c.b, p, like(c.b, p, alpha))
	}
	if !beta.is(0) { // NaN in self does not count then
		s := op.BroadcastTo(c.b, c.cast(self, p.Type.DType), p.Type.Dims)
		if !beta.is(1) {
			s = op.Mul.Make(c.b, s, like(c.b, s, beta))
		}
		p = op.Add.Make(c.b, s, p)
	}
	return c.cast(p, self.Type.DType)
}

// addbmm is beta self + alpha times the sum of the products of the batches.
func addbmm(c *call) *ir.Value {
	x, y := c.val("batch1"), c.val("batch2")
	if x.Type.Rank() != 3 || y.Type.Rank() != 3 {
		c.failf("batches are %s and %s, wanted rank 3", x.Type, y.Type)
	}
	a := op.DotAttr{Contract: [][]int64{{0, 2}, {0, 1}}}
	if w := wide(x.Type.DType); w != x.Type.DType {
		a.Out = w
	}
	return c.addScaledTo(c.val("self"), op.Dot.Make(c.b, a, x, y))
}

// addr is beta self + alpha (vec1 outer vec2).
func addr(c *call) *ir.Value {
	self, x, y := c.val("self"), c.val("vec1"), c.val("vec2")
	dims := []int64{x.Type.Elements(), y.Type.Elements()}
	d := resultType(tensorOperand(self), tensorOperand(x), tensorOperand(y))
	alpha, beta := c.scalar("alpha"), c.scalar("beta")
	f := fb{c.b, c}
	scaled := func(v *ir.Value, by scalar) *ir.Value {
		if by.is(1) {
			return v
		}
		return f.mul(like(c.b, v, by), v)
	}
	p := f.mul(along(c.b, scaled(c.cast(x, d), alpha), dims, 0), along(c.b, c.cast(y, d), dims, 1))
	if beta.is(0) { // NaN in self does not count then
		return p
	}
	return f.add(op.BroadcastTo(c.b, scaled(c.cast(self, d), beta), dims), p)
}

// einsum contracts the operands from left to right. Letters name dimensions; "..." stands for broadcast ones.
func einsum(c *call) *ir.Value {
	xs := c.vals("tensors")
	eq := strings.ReplaceAll(c.str("equation"), " ", "")
	in, out, explicit := strings.Cut(eq, "->")
	parts := strings.Split(in, ",")
	if len(parts) != len(xs) || len(xs) == 0 {
		c.failf("equation %q for %d tensors", clip(eq), len(xs))
	}
	// Ellipses become capital Greek letters, numbered from the last dimension.
	labels := make([][]rune, len(xs))
	size := make(map[rune]int64)
	used := make(map[rune]int)
	dots := 0
	for i, p := range parts {
		before, after, has := strings.Cut(p, "...")
		n := xs[i].Type.Rank() - len(before) - len(after)
		if n < 0 || n > 0 && !has {
			c.failf("equation %q: term %q for %s", clip(eq), clip(p), xs[i].Type)
		}
		dots = max(dots, n)
		labels[i] = []rune(before)
		for k := n; k > 0; k-- {
			labels[i] = append(labels[i], 'Α'+rune(k))
		}
		labels[i] = append(labels[i], []rune(after)...)
		xs[i], labels[i] = c.labelDiagonals(xs[i], labels[i])
		for d, l := range labels[i] {
			if n := xs[i].Type.Dims[d]; size[l] <= 1 {
				size[l] = n
			} else if n != 1 && n != size[l] {
				c.failf("equation %q: dimension %q is %d and %d", clip(eq), l, size[l], n)
			}
			used[l]++
		}
	}
	ellipsis := []rune{}
	for k := dots; k > 0; k-- {
		ellipsis = append(ellipsis, 'Α'+rune(k))
	}
	var want []rune
	if explicit {
		before, after, has := strings.Cut(out, "...")
		want = []rune(before)
		if has {
			want = append(append(want, ellipsis...), []rune(after)...)
		}
	} else { // the letters that occur once, in order
		want = slices.Clone(ellipsis)
		for l := 'A'; l <= 'z'; l++ {
			if used[l] == 1 {
				want = append(want, l)
			}
		}
	}
	for i, l := range want {
		if size[l] == 0 && used[l] == 0 || slices.Index(want, l) != i {
			c.failf("equation %q: result dimension %q is not in the terms or named twice", clip(eq), l)
		}
	}
	e := einsumState{c: c, size: size}
	d := xs[0].Type.DType
	acc, accLabels := e.widen(xs[0], labels[0]), labels[0]
	for i := 1; i < len(xs); i++ {
		later := slices.Concat(labels[i+1:]...)
		acc, accLabels = e.contract(acc, accLabels, e.widen(xs[i], labels[i]), labels[i], append(later, want...))
	}
	acc, accLabels = e.sumOut(acc, accLabels, want)
	perm := make([]int64, len(want))
	for i, l := range want {
		perm[i] = int64(slices.Index(accLabels, l))
	}
	if len(xs) == 1 { // torch's sum of one tensor: small integers become i64 where something is summed
		d = acc.Type.DType
	}
	return c.cast(transpose(c.b, acc, perm), d)
}

// labelDiagonals is x with the elements alone where dimensions of one label have one index, each label once.
func (c *call) labelDiagonals(x *ir.Value, labels []rune) (*ir.Value, []rune) {
	labels = slices.Clone(labels)
	for d := len(labels) - 1; d > 0; d-- {
		first := slices.Index(labels, labels[d])
		if first == d {
			continue
		}
		dims := x.Type.Dims
		if dims[first] != dims[d] {
			c.failf("label %q is of dimensions %d and %d of %s, wanted one extent", labels[d], first, d, x.Type)
		}
		same := compare(c.b, op.EQ, counting(c.b, tensor.I32, dims, first), counting(c.b, tensor.I32, dims, d))
		x = reduce(c.b, op.Sum, op.Select.Make(c.b, same, x, likeF(c.b, x, 0)), []int64{int64(d)}, false)
		labels = slices.Delete(labels, d, d+1)
	}
	return x, labels
}

// einsumState contracts labelled tensors.
type einsumState struct {
	c    *call
	size map[rune]int64
}

// widen repeats dimensions of extent 1 that are larger elsewhere.
func (e einsumState) widen(x *ir.Value, labels []rune) *ir.Value {
	dims := make([]int64, len(labels))
	for i, l := range labels {
		dims[i] = e.size[l]
	}
	return op.BroadcastTo(e.c.b, x, dims)
}

// sumOut sums the dimensions that nothing later wants.
func (e einsumState) sumOut(x *ir.Value, labels, keep []rune) (*ir.Value, []rune) {
	var axes []int64
	var left []rune
	for i, l := range labels {
		if slices.Contains(keep, l) {
			left = append(left, l)
		} else {
			axes = append(axes, int64(i))
		}
	}
	if len(axes) == 0 {
		return x, labels
	}
	return reduce(e.c.b, op.Sum, e.c.cast(x, e.c.summedType2(x.Type.DType)), axes, false), left
}

// contract multiplies x and y and sums over the dimensions that keep lacks.
func (e einsumState) contract(x *ir.Value, xl []rune, y *ir.Value, yl, keep []rune) (*ir.Value, []rune) {
	x, xl = e.sumOut(x, xl, append(slices.Clone(keep), yl...))
	y, yl = e.sumOut(y, yl, append(slices.Clone(keep), xl...))
	a := op.DotAttr{Batch: [][]int64{nil, nil}, Contract: [][]int64{nil, nil}}
	var batch, out []rune
	for i, l := range xl {
		j := slices.Index(yl, l)
		switch {
		case j < 0:
			out = append(out, l)
		case slices.Contains(keep, l):
			batch = append(batch, l)
			a.Batch[0], a.Batch[1] = append(a.Batch[0], int64(i)), append(a.Batch[1], int64(j))
		default:
			a.Contract[0], a.Contract[1] = append(a.Contract[0], int64(i)), append(a.Contract[1], int64(j))
		}
	}
	for _, l := range yl {
		if !slices.Contains(xl, l) {
			out = append(out, l)
		}
	}
	if len(a.Batch[0]) == 0 {
		a.Batch = nil
	}
	if len(a.Contract[0]) == 0 {
		a.Contract = nil
	}
	if w := wide(x.Type.DType); w != x.Type.DType {
		a.Out = w
	}
	z := op.Dot.Make(e.c.b, a, x, y)
	return e.c.cast(z, x.Type.DType), append(batch, out...)
}

// tensordot contracts dims_self of self with dims_other of other.
func tensordot(c *call) *ir.Value {
	x, y := c.val("self"), c.val("other")
	xd, yd := c.axesOrNone("dims_self", x.Type.Rank()), c.axesOrNone("dims_other", y.Type.Rank())
	for i := range min(len(xd), len(yd)) { // against extent 1 the other side is summed
		switch n, m := x.Type.Dims[xd[i]], y.Type.Dims[yd[i]]; {
		case n == 1 && m != 1:
			y = reduce(c.b, op.Sum, y, yd[i:i+1], true)
		case m == 1 && n != 1:
			x = reduce(c.b, op.Sum, x, xd[i:i+1], true)
		}
	}
	a := op.DotAttr{}
	if len(xd) > 0 || len(yd) > 0 {
		a.Contract = [][]int64{xd, yd}
	}
	return op.Dot.Make(c.b, a, x, y)
}

// kron is the Kronecker product: y scaled by every element of x, laid out as blocks.
func kron(c *call) *ir.Value {
	x, y := c.val("self"), c.val("other")
	d := resultType(tensorOperand(x), tensorOperand(y))
	rank := max(x.Type.Rank(), y.Type.Rank())
	pad := func(v *ir.Value) []int64 {
		return slices.Concat(slices.Repeat([]int64{1}, rank-v.Type.Rank()), v.Type.Dims)
	}
	xd, yd := pad(x), pad(y)
	var full, merged, xs, ys []int64
	for i := range xd {
		full = append(full, xd[i], yd[i])
		xs, ys = append(xs, xd[i], 1), append(ys, 1, yd[i])
		merged = append(merged, xd[i]*yd[i])
	}
	p := op.Mul.Make(c.b, op.BroadcastTo(c.b, reshape(c.b, c.cast(x, d), xs), full), op.BroadcastTo(c.b, reshape(c.b, c.cast(y, d), ys), full))
	return reshape(c.b, p, merged)
}

// bilinear is y[..., k] = sum x1[..., i] w[k, i, j] x2[..., j] + bias[k].
func bilinear(c *call) *ir.Value {
	x1, x2, w := c.val("input1"), c.val("input2"), c.val("weight")
	n := x1.Type.Rank()
	if n == 0 || x2.Type.Rank() != n || w.Type.Rank() != 3 {
		c.failf("inputs are %s and %s, the weight is %s", x1.Type, x2.Type, w.Type)
	}
	lead := x1.Type.Dims[:n-1]
	rows := tensor.Make(tensor.Bool, lead...).Elements()
	x1 = reshape(c.b, x1, []int64{rows, x1.Type.Dims[n-1]})
	x2 = reshape(c.b, x2, []int64{rows, x2.Type.Dims[n-1]})
	t := op.Dot.Make(c.b, op.DotAttr{Contract: [][]int64{{1}, {1}}}, x1, w) // [rows, k, j]
	y := op.Dot.Make(c.b, op.DotAttr{Batch: [][]int64{{0}, {0}}, Contract: [][]int64{{2}, {1}}}, t, x2)
	y = reshape(c.b, y, slices.Concat(lead, w.Type.Dims[:1]))
	if bias := c.opt("bias"); bias != nil {
		y = op.Add.Make(c.b, y, op.BroadcastTo(c.b, bias, y.Type.Dims))
	}
	return y
}

// cdist is the distance of order p between all rows of x1 and of x2.
func cdist(c *call) *ir.Value {
	x, y, p := c.val("x1"), c.val("x2"), c.float("p")
	xr, yr := x.Type.Rank(), y.Type.Rank()
	if xr < 2 || yr < 2 {
		c.failf("x1 is %s, x2 is %s, wanted rank 2 or more", x.Type, y.Type)
	}
	x = reshape(c.b, x, slices.Insert(slices.Clone(x.Type.Dims), xr-1, 1))
	y = reshape(c.b, y, slices.Insert(slices.Clone(y.Type.Dims), yr-2, 1))
	diff := c.elementwise(x.Type.DType, plain(op.Sub), tensorOperand(x), tensorOperand(y))
	return c.vectorNorm(diff, p, []int64{int64(diff.Type.Rank() - 1)}, false)
}
