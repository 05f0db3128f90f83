package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// calculusRules integrate and differentiate along dimensions.
var calculusRules = map[string]rule{
	"trapezoid.x":             value(func(c *call) *ir.Value { return c.trapezoids(false) }),
	"trapezoid.dx":            value(func(c *call) *ir.Value { return c.trapezoids(false) }),
	"trapz.x":                 value(func(c *call) *ir.Value { return c.trapezoids(false) }),
	"trapz.dx":                value(func(c *call) *ir.Value { return c.trapezoids(false) }),
	"cumulative_trapezoid.x":  value(func(c *call) *ir.Value { return c.trapezoids(true) }),
	"cumulative_trapezoid.dx": value(func(c *call) *ir.Value { return c.trapezoids(true) }),
	"gradient.scalarint":      values(gradient),
	"gradient.tensorarray":    values(gradient),
	"gradient.tensorarrayint": values(gradient),
	"gradient.array":          values(gradient),
	"gradient.scalararray":    values(gradient),
	"gradient.scalarrayint":   values(gradient),
	"gradient.scalarrayarray": values(gradient),
}

// arith applies a binary operator other than division in the common type of x and y.
func (c *call) arith(p op.Plain, x, y operand) *ir.Value {
	if p.Op == op.Mul.Op {
		return c.precisely(resultType(x, y), plain(p), x, y)
	}
	return c.elementwise(resultType(x, y), plain(p), x, y)
}

// over2 is true division, integers as f32.
func (c *call) over2(x, y operand) *ir.Value {
	d := floatResult(resultType(x, y))
	if !exactIn(x, d) {
		x = c.rounded(x, d)
	}
	return c.precisely(d, plain(op.Div), x, y)
}

// trapezoids sums the areas between neighbours along dim: all of them, or up to every element.
func (c *call) trapezoids(running bool) *ir.Value {
	y := c.val("y")
	axis := c.axis("dim", y.Type.Rank())
	if y.Type.Rank() == 0 {
		c.failf("y has rank 0, wanted 1 or more")
	}
	n := y.Type.Dims[axis]
	if n == 0 {
		if running {
			c.unsupported("running sums over no elements")
		}
		return splat(c.b, c.resultType().DType, intScalar(0), slices.Delete(slices.Clone(y.Type.Dims), axis, axis+1))
	}
	at := func(from, to int64) operand { return tensorOperand(slice(c.b, y, axis, from, to, 1)) }
	if c.schema.param("x") == nil && !running { // the sum less half of both ends
		d := c.summedType2(y.Type.DType)
		whole := tensorOperand(reduce(c.b, op.Sum, c.cast(y, d), []int64{int64(axis)}, true))
		ends := tensorOperand(c.arith(op.Add, at(0, 1), at(n-1, n)))
		half := tensorOperand(c.arith(op.Mul, ends, operand{s: floatScalar(0.5)}))
		s := c.arith(op.Mul, tensorOperand(c.arith(op.Sub, whole, half)), operand{s: c.scalar("dx")})
		return reshape(c.b, s, slices.Delete(slices.Clone(s.Type.Dims), axis, axis+1))
	}
	sides := tensorOperand(c.arith(op.Add, at(0, n-1), at(1, n)))
	var area *ir.Value
	if c.schema.param("x") != nil {
		x := c.val("x")
		switch {
		case x.Type.Rank() == 1:
			dims := slices.Repeat([]int64{1}, y.Type.Rank())
			dims[axis] = x.Type.Elements()
			x = reshape(c.b, x, dims)
		case x.Type.Rank() < y.Type.Rank():
			x = reshape(c.b, x, slices.Concat(slices.Repeat([]int64{1}, y.Type.Rank()-x.Type.Rank()), x.Type.Dims))
		}
		if axis >= x.Type.Rank() || x.Type.Dims[axis] < 1 {
			c.failf("x is %s for y %s along dimension %d", x.Type, y.Type, axis)
		}
		m := x.Type.Dims[axis]
		dx := c.arith(op.Sub, tensorOperand(slice(c.b, x, axis, 1, m, 1)), tensorOperand(slice(c.b, x, axis, 0, m-1, 1)))
		area = c.arith(op.Mul, sides, tensorOperand(dx))
	} else {
		half := operand{s: floatScalar(c.float("dx") / 2)}
		return op.CumSum.Make(c.b, op.CumSumAttr{Axis: int64(axis)}, c.arith(op.Mul, sides, half))
	}
	area = c.cast(area, c.summedType2(area.Type.DType))
	if axis >= area.Type.Rank() {
		c.failf("the areas are %s, wanted a dimension %d", area.Type, axis)
	}
	if running {
		area = op.CumSum.Make(c.b, op.CumSumAttr{Axis: int64(axis)}, area)
	} else {
		area = reduce(c.b, op.Sum, area, []int64{int64(axis)}, false)
	}
	return c.over2(tensorOperand(area), operand{s: floatScalar(2)})
}

// gradient is central differences, with differences of the first or second order at the edges; one tensor a dimension.
func gradient(c *call) []*ir.Value {
	x := c.val("self")
	axes := iotaInts(x.Type.Rank())
	if c.has("dim") {
		axes = c.axesOrNone("dim", x.Type.Rank())
	}
	steps := slices.Repeat([]scalar{intScalar(1)}, len(axes))
	var places []*ir.Value // coordinates along each dimension, instead of steps
	if c.has("spacing") {
		switch a := c.arg("spacing"); {
		case a.Tensors != nil && len(*a.Tensors) > 0:
			if places = c.vals("spacing"); len(places) != len(axes) {
				c.failf("%d spacings for %d dimensions", len(places), len(axes))
			}
		case a.Floats != nil || a.Ints != nil:
			list := c.floats("spacing")
			if len(list) != len(axes) {
				c.failf("%d spacings for %d dimensions", len(list), len(axes))
			}
			for i, f := range list {
				steps[i] = floatScalar(f)
			}
		default:
			steps = slices.Repeat([]scalar{c.scalar("spacing")}, len(axes))
		}
	}
	order := c.int("edge_order")
	if order != 1 && order != 2 {
		c.failf("edge_order is %d, wanted 1 or 2", order)
	}
	var out []*ir.Value
	for i, a := range axes {
		axis := int(a)
		n := x.Type.Dims[axis]
		if n <= order {
			c.failf("dimension %d has %d elements, wanted more than edge_order %d", axis, n, order)
		}
		if places != nil {
			out = append(out, c.unevenSlope(x, places[i], axis, order == 2))
			continue
		}
		at := func(from, to int64) operand { return tensorOperand(slice(c.b, x, axis, from, to, 1)) }
		// slope is (later - earlier) / spacing, divided by 2 where two steps lie between.
		slope := func(later, earlier operand) *ir.Value {
			return c.over2(tensorOperand(c.arith(op.Sub, later, earlier)), operand{s: steps[i]})
		}
		first, last := slope(at(1, 2), at(0, 1)), slope(at(n-1, n), at(n-2, n-1))
		if order == 2 { // 1.5 times the slope at the edge less half the next one
			f := fb{c.b, c}
			second, before := slope(at(2, 3), at(1, 2)), slope(at(n-2, n-1), at(n-3, n-2))
			first = f.sub(f.scale(first, 1.5), f.half(second))
			last = f.sub(f.scale(last, 1.5), f.half(before))
		}
		parts := []*ir.Value{first}
		if n > 2 {
			mid := slope(at(2, n), at(0, n-2))
			parts = append(parts, op.Div.Make(c.b, mid, likeF(c.b, mid, 2)))
		}
		out = append(out, concat(c.b, axis, append(parts, last)...))
	}
	return out
}

// unevenSlope is the slope of x along axis at coordinates [n]: of the parabola through each element and its neighbours, at the ends of the
// line through two, or of the parabola through three.
func (c *call) unevenSlope(x, at *ir.Value, axis int, parabolic bool) *ir.Value {
	n := x.Type.Dims[axis]
	if at.Type.Rank() != 1 || at.Type.Dims[0] != n {
		c.failf("spacing is %s for dimension %d of %s", at.Type, axis, x.Type)
	}
	d := floatResult(resultType(tensorOperand(x), tensorOperand(at)))
	x, at = c.cast(x, d), c.cast(at, d)
	f := fb{c.b, c}
	div := func(a, b *ir.Value) *ir.Value { return op.Div.Make(c.b, a, b) }
	step := f.sub(slice(c.b, at, 0, 1, n, 1), slice(c.b, at, 0, 0, n-1, 1))
	gap := func(from, to int64) *ir.Value { return slice(c.b, step, 0, from, to, 1) }
	// weighted sums slices of x that start at the places, times weights along axis.
	weighted := func(from []int64, weights ...*ir.Value) *ir.Value {
		var sum *ir.Value
		for i, w := range weights {
			k := w.Type.Dims[0]
			v := slice(c.b, x, axis, from[i], from[i]+k, 1)
			if v = f.mul(v, along(c.b, w, v.Type.Dims, axis)); sum == nil {
				sum = v
			} else {
				sum = f.add(sum, v)
			}
		}
		return sum
	}
	// inner are the weights of three neighbours for the slope at the middle one, with steps p and q between them.
	inner := func(p, q *ir.Value) []*ir.Value {
		s := f.add(p, q)
		return []*ir.Value{f.neg(div(q, f.mul(p, s))), div(f.sub(q, p), f.mul(p, q)), div(p, f.mul(q, s))}
	}
	// outer are those for the slope at the first one.
	outer := func(p, q *ir.Value) []*ir.Value {
		s := f.add(p, q)
		return []*ir.Value{f.neg(div(f.add(p, s), f.mul(p, s))), div(s, f.mul(p, q)), f.neg(div(p, f.mul(q, s)))}
	}
	var first, last *ir.Value
	if parabolic {
		first = weighted([]int64{0, 1, 2}, outer(gap(0, 1), gap(1, 2))...)
		w := outer(gap(n-2, n-1), gap(n-3, n-2)) // from the end
		last = f.neg(weighted([]int64{n - 1, n - 2, n - 3}, w...))
	} else {
		line := func(i int64) *ir.Value { // through elements i and i+1
			rise := f.sub(slice(c.b, x, axis, i+1, i+2, 1), slice(c.b, x, axis, i, i+1, 1))
			return div(rise, along(c.b, gap(i, i+1), rise.Type.Dims, axis))
		}
		first, last = line(0), line(n-2)
	}
	parts := []*ir.Value{first}
	if n > 2 {
		parts = append(parts, weighted([]int64{0, 1, 2}, inner(gap(0, n-2), gap(1, n-1))...))
	}
	return concat(c.b, axis, append(parts, last)...)
}

// powers is 1, x, x^2, ... below count in a new last dimension; integers and bools as i64.
func (c *call) powers(x *ir.Value, count int64) *ir.Value {
	d := c.summedType2(x.Type.DType)
	dims := append(slices.Clone(x.Type.Dims), count)
	if err := tensor.Make(d, dims...).Check(); err != nil || count < 0 || count > maxConstant {
		c.unsupported("%d powers of %s", count, x.Type)
	}
	if count == 0 {
		return splat(c.b, d, intScalar(0), dims)
	}
	w := c.cast(x, wide(d))
	last := len(dims) - 1
	col := append(slices.Clone(x.Type.Dims), 1)
	one := splat(c.b, w.Type.DType, intScalar(1), col)
	if count == 1 {
		return c.cast(one, d)
	}
	rest := append(slices.Clone(x.Type.Dims), count-1)
	xs := op.BroadcastTo(c.b, reshape(c.b, w, col), rest)
	unit := intConst(c.b, w.Type.DType, 1)
	y := c.scan(last, []*ir.Value{xs}, []*ir.Value{unit}, func(e, l []*ir.Value) []*ir.Value {
		return []*ir.Value{op.Mul.Make(c.b, e[0], l[0])}
	})
	return c.cast(concat(c.b, last, one, y[0]), d)
}
