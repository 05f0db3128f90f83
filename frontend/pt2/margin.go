package pt2

import (
	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// marginRules are losses that want distances or scores to be apart by a margin.
var marginRules = map[string]rule{
	"triplet_margin_loss":            value(tripletMargin),
	"multi_margin_loss":              value(multiMargin),
	"multilabel_margin_loss":         value(func(c *call) *ir.Value { return multilabelMargin(c)[0] }),
	"multilabel_margin_loss_forward": values(multilabelMargin),
}

// tripletMargin is max(0, margin + |anchor - positive| - |anchor - negative|), with swap the nearer of anchor and positive to negative.
func tripletMargin(c *call) *ir.Value {
	distance := func(x, y string) operand {
		return tensorOperand(c.distance(c.val(x), c.val(y), c.float("p"), c.float("eps"), false))
	}
	near, far := distance("anchor", "positive"), distance("anchor", "negative")
	if c.bool("swap") {
		other := distance("positive", "negative")
		far = tensorOperand(c.arith(op.Minimum, far, other))
	}
	l := c.arith(op.Add, near, operand{s: c.scalar("margin")})
	l = c.arith(op.Sub, tensorOperand(l), far)
	return c.reduced(fb{c.b, c}.max(l, 0))
}

// scores is self as [rows, classes] in the dtype to compute in, and whether it had a dimension of rows.
func (c *call) scores() (x *ir.Value, batched bool) {
	x = c.val("self")
	if x.Type.Rank() > 2 || !x.Type.DType.IsFloat() {
		c.failf("self is %s, wanted floats of rank 2 or less", x.Type)
	}
	batched = x.Type.Rank() == 2
	if !batched {
		x = reshape(c.b, x, []int64{1, x.Type.Elements()})
	}
	return c.cast(x, wide(x.Type.DType)), batched
}

// loneShape is the result's shape where self is a single row: 0-d, but exports of losses without reduction record [1].
func (c *call) loneShape() []int64 {
	if d := c.resultType().Dims; len(d) == 1 && d[0] == 1 {
		return d
	}
	return nil
}

// rowLoss reduces a loss of rows to self's dtype.
func (c *call) rowLoss(l *ir.Value, batched bool) *ir.Value {
	if !batched {
		l = reshape(c.b, l, c.loneShape())
	}
	return c.cast(c.reduced(l), c.ref("self").typ.DType)
}

// multiMargin is the mean over classes of max(0, margin - x[target] + x[i])^p for i other than target, times the target's weight.
func multiMargin(c *call) *ir.Value {
	x, batched := c.scores()
	rows, classes := x.Type.Dims[0], x.Type.Dims[1]
	t := c.val("target")
	if t.Type.Elements() != rows || !t.Type.DType.IsInt() {
		c.failf("target is %s, wanted %d classes", t.Type, rows)
	}
	p := c.int("p")
	if p != 1 && p != 2 {
		c.failf("p is %d, wanted 1 or 2", p)
	}
	t = reshape(c.b, t, []int64{rows})
	f := fb{c.b, c}
	hit := compare(c.b, op.EQ, along(c.b, t, x.Type.Dims, 0), counting(c.b, t.Type.DType, x.Type.Dims, 1))
	picked := reduce(c.b, op.Sum, op.Select.Make(c.b, hit, x, f.c(x, 0)), []int64{1}, false)
	l := f.max(f.add(f.sub(like(c.b, x, c.scalar("margin")), along(c.b, picked, x.Type.Dims, 0)), x), 0)
	if p == 2 {
		l = f.mul(l, l)
	}
	if w := c.opt("weight"); w != nil {
		if w.Type.Rank() != 1 || w.Type.Dims[0] != classes {
			c.failf("weight is %s, wanted %d classes", w.Type, classes)
		}
		w = op.Take.Make(c.b, op.TakeAttr{Axis: 0}, c.cast(w, x.Type.DType), t)
		l = f.mul(l, along(c.b, w, x.Type.Dims, 0))
	}
	l = reduce(c.b, op.Sum, op.Select.Make(c.b, hit, f.c(l, 0), l), []int64{1}, false)
	return c.rowLoss(op.Div.Make(c.b, l, f.c(l, float64(classes))), batched || t.Type.Rank() == 1 && c.ref("target").typ.Rank() == 1)
}

// multilabelMargin is the sum of max(0, 1 - x[t] + x[i]) over a row's targets t, which end at the first negative one, and all other classes i,
// over the number of classes; and which classes are targets, as 0 and 1 in self's dtype.
func multilabelMargin(c *call) []*ir.Value {
	x, batched := c.scores()
	dims := x.Type.Dims
	t := c.val("target")
	if t.Type.Elements() != x.Type.Elements() || !t.Type.DType.IsInt() {
		c.failf("target is %s, wanted integers of self's shape %s", t.Type, c.ref("self").typ)
	}
	t = reshape(c.b, t, dims)
	f := fb{c.b, c}
	ended := compare(c.b, op.LT, t, like(c.b, t, intScalar(0)))
	before := op.CumSum.Make(c.b, op.CumSumAttr{Axis: 1}, c.cast(ended, tensor.I32))
	valid := compare(c.b, op.EQ, before, like(c.b, before, intScalar(0)))
	// [rows, targets, classes]
	grid := []int64{dims[0], dims[1], dims[1]}
	if tensor.Make(tensor.Bool, grid...).Check() != nil || tensor.Make(tensor.Bool, grid...).Elements() > maxSegments {
		c.unsupported("%d classes", dims[1])
	}
	spread := func(v *ir.Value, axes ...int64) *ir.Value {
		return op.Broadcast.Make(c.b, op.BroadcastAttr{Shape: grid, Dims: axes}, v)
	}
	hit := op.And.Make(c.b, spread(valid, 0, 1), compare(c.b, op.EQ, spread(t, 0, 1), counting(c.b, t.Type.DType, grid, 2)))
	among := reduce(c.b, op.AnyTrue, hit, []int64{1}, false)
	all := spread(x, 0, 2)
	picked := reduce(c.b, op.Sum, op.Select.Make(c.b, hit, all, f.c(all, 0)), []int64{2}, false)
	l := f.max(f.add(f.sub(f.c(all, 1), spread(picked, 0, 1)), all), 0)
	counts := op.And.Make(c.b, spread(valid, 0, 1), op.Not.Make(c.b, spread(among, 0, 2)))
	l = reduce(c.b, op.Sum, op.Select.Make(c.b, counts, l, f.c(l, 0)), []int64{1, 2}, false)
	l = op.Div.Make(c.b, l, f.c(l, float64(dims[1])))
	s := c.ref("self").typ
	return []*ir.Value{c.rowLoss(l, batched), reshape(c.b, c.cast(among, s.DType), s.Dims)}
}
