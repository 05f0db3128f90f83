package stablehlo

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// reduceRules combine elements by a region, or order them.
var reduceRules = map[string]rule{
	"stablehlo.reduce":        reduce,
	"stablehlo.reduce_window": reduceWindow,
	"stablehlo.sort":          sortRule,
	"chlo.top_k":              topK,
}

// reducers are the regions of one operation that the IR has a word for.
var reducers = map[string]op.Reducer{"stablehlo.add": op.Sum, "stablehlo.multiply": op.Prod, "stablehlo.maximum": op.Max, "stablehlo.minimum": op.Min,
	"stablehlo.and": op.AllTrue, "stablehlo.or": op.AnyTrue}

// reducerOf recognises a region that is one commutative operation on both parameters, of elements of dtype d.
func reducerOf(r *region, d tensor.DType) (op.Reducer, bool) {
	if len(r.body) != 2 || len(r.params) != 2 {
		return "", false
	}
	f, ret := r.body[0], r.body[1]
	if len(f.args) != 2 || len(f.results) != 1 || len(ret.args) != 1 || ret.args[0].name != f.results[0] {
		return "", false
	}
	x, y, p, q := f.args[0].name, f.args[1].name, r.params[0].name, r.params[1].name
	if !(x == p && y == q || x == q && y == p) {
		return "", false
	}
	kind, ok := reducers[f.name]
	if d == tensor.Bool { // sums and maxima of bools
		switch kind {
		case op.Sum, op.Max:
			kind = op.AnyTrue
		case op.Prod, op.Min:
			kind = op.AllTrue
		}
	} else if kind == op.AllTrue || kind == op.AnyTrue {
		return "", false // bitwise
	}
	if d.IsComplex() && (kind == op.Max || kind == op.Min) {
		return "", false
	}
	return kind, ok
}

// combine applies the reducer to two values.
func combine(b *ir.Builder, kind op.Reducer, x, y *ir.Value) *ir.Value {
	switch kind {
	case op.Sum:
		return op.Add.Make(b, x, y)
	case op.Prod:
		return op.Mul.Make(b, x, y)
	case op.Max:
		return op.Maximum.Make(b, x, y)
	case op.Min:
		return op.Minimum.Make(b, x, y)
	case op.AllTrue:
		return op.And.Make(b, x, y)
	}
	return op.Or.Make(b, x, y)
}

// isIdentity reports a literal that changes nothing when it is combined.
func isIdentity(kind op.Reducer, v *ir.Value) bool {
	x := constantOf(v)
	if x == nil || x.Elements() != 1 {
		return false
	}
	var want *tensor.Tensor
	switch d := x.DType; kind {
	case op.Sum, op.AnyTrue:
		want = tensor.Scalar(d, 0)
	case op.Prod, op.AllTrue:
		want = tensor.Scalar(d, 1)
	default:
		lo, hi := d.IntRange()
		switch {
		case d.IsFloat() && kind == op.Max:
			want = tensor.Scalar(d, negInf)
		case d.IsFloat():
			want = tensor.Scalar(d, -negInf)
		case kind == op.Max:
			want = tensor.ScalarInt(d, lo)
		default:
			want = tensor.ScalarInt(d, hi)
		}
	}
	return slices.Equal(x.Data, want.Data)
}

// reduce starts from the reducer's identity and combines with another initial value afterwards.
func reduce(c *call) []*ir.Value {
	n := len(c.args) / 2
	if n == 0 || len(c.args) != 2*n {
		c.fail("%d operands, wanted as many initial values as tensors", len(c.args))
	}
	axes := slices.Clone(c.list("dimensions", nil))
	slices.Sort(axes)
	r := c.region(0, 2*n)
	x, init := c.args[0], c.args[n]
	if init.Type.Rank() != 0 {
		c.fail("initial value is %s, wanted a scalar", init.Type)
	}
	kind, ok := reducerOf(r, x.Type.DType)
	if n != 1 || !ok {
		return reduceBy(c, r, axes)
	}
	y := op.Reduce.Make(c.b, op.ReduceAttr{Kind: kind, Axes: axes}, x)
	if !isIdentity(kind, init) {
		y = combine(c.b, kind, y, c.spread(init, y.Type.Dims))
	}
	return one(y)
}

// reduceBy makes a function of the region. One that reads tensors from around it goes on opaquely.
func reduceBy(c *call, r *region, axes []int64) []*ir.Value {
	k := c.capture(r)
	if len(k.values) > 0 {
		return nil
	}
	return op.ReduceBy.MakeAll(c.b, op.ReduceByAttr{Fn: c.function("reducer", r, k), Axes: axes}, c.args...)
}

// reduceWindow recognises running sums and products, which windows that reach from every element back to the first one are.
func reduceWindow(c *call) []*ir.Value {
	if len(c.args) != 2 || len(c.o.out) != 1 {
		return nil
	}
	x, init := c.args[0], c.args[1]
	rank := x.Type.Rank()
	window := c.list("window_dimensions", nil)
	pads := c.list("padding", make([]int64, 2*rank))
	if len(window) != rank || len(pads) != 2*rank {
		c.fail("%d window_dimensions and %d paddings, wanted %d and %d", len(window), len(pads), rank, 2*rank)
	}
	kind, ok := reducerOf(c.region(0, 2), x.Type.DType)
	if !ok || !isIdentity(kind, init) {
		return nil
	}
	a := op.ReduceWindowAttr{Kind: kind, Window: window, Strides: c.list("window_strides", ones(rank)), Dilation: c.list("window_dilations", ones(rank))}
	for p := range slices.Chunk(pads, 2) {
		a.Padding = append(a.Padding, p)
	}
	base := c.list("base_dilations", ones(rank))
	if len(base) != rank {
		c.fail("%d base_dilations, wanted %d", len(base), rank)
	}
	if slices.Equal(base, ones(rank)) && slices.Equal(a.Strides, ones(rank)) && slices.Equal(a.Dilation, ones(rank)) {
		if y := running(c, kind, window, pads); y != nil {
			return one(y)
		}
	}
	if !slices.Equal(base, ones(rank)) { // elements that change nothing go between those of x
		p := op.PadAttr{Low: make([]int64, rank), High: make([]int64, rank), Interior: slices.Clone(base)}
		for i := range p.Interior {
			p.Interior[i]--
		}
		x = op.Pad.Make(c.b, p, x, init)
	}
	return one(op.ReduceWindow.Make(c.b, a, x))
}

// running is the running sum or product that a window makes, or nil.
func running(c *call, kind op.Reducer, window, pads []int64) *ir.Value {
	x := c.args[0]
	axis, reversed := -1, false
	for d, n := range window {
		lo, hi := pads[2*d], pads[2*d+1]
		switch {
		case n == 1 && lo == 0 && hi == 0:
		case axis < 0 && n == x.Type.Dims[d] && lo == n-1 && hi == 0:
			axis = d
		case axis < 0 && n == x.Type.Dims[d] && hi == n-1 && lo == 0:
			axis, reversed = d, true
		default:
			return nil
		}
	}
	switch {
	case axis < 0 || !(x.Type.DType.IsInt() || x.Type.DType.IsFloat() || x.Type.DType.IsComplex()):
	case kind == op.Sum:
		return op.CumSum.Make(c.b, op.CumSumAttr{Axis: int64(axis), Reverse: reversed}, x)
	case kind == op.Prod:
		return op.CumProd.Make(c.b, op.CumProdAttr{Axis: int64(axis), Reverse: reversed}, x)
	}
	return nil
}

// topK gives the largest elements of the last dimension and their places.
func topK(c *call) []*ir.Value {
	c.arity(1)
	x := c.args[0]
	if x.Type.Rank() == 0 || len(c.o.out) != 2 || !(x.Type.DType.IsInt() || x.Type.DType.IsFloat()) {
		return nil
	}
	y := op.TopK.MakeAll(c.b, op.TopKAttr{K: c.int("k", 0), Axis: int64(x.Type.Rank()) - 1, Largest: true}, x)
	return []*ir.Value{y[0], c.cast(y[1], c.o.out[1].DType)}
}

// sortRule recognises comparators of the IR's order.
func sortRule(c *call) []*ir.Value {
	n := len(c.args)
	if n == 0 || c.args[0].Type.Rank() == 0 {
		return nil
	}
	axis := c.int("dimension", -1)
	if axis < 0 {
		axis += int64(c.args[0].Type.Rank())
	}
	return c.sorted(c.args, c.region(0, 2*n), axis, c.flag("is_stable"))
}

// sorted orders tensors by a comparator; nil where the IR has no such order. Floats in their total order, which parts zeros of both signs, are sorted as
// integers in that order, which are made floats again after it.
func (c *call) sorted(args []*ir.Value, r *region, axis int64, stable bool) []*ir.Value {
	order, ok := newComparator(c, r).order()
	if !ok {
		return nil
	}
	compared := slices.Clone(args)
	for k := range order.keys {
		if order.total[k] && args[k].Type.DType.IsFloat() {
			if compared[k] = c.totalOrder(args[k]); compared[k] == nil {
				return nil
			}
		}
	}
	out := slices.Clone(op.Sort.MakeAll(c.b, op.SortAttr{Axis: axis, Descending: order.descending, Stable: stable, Keys: order.keys}, compared...))
	for k := range order.keys {
		if d := args[k].Type.DType; out[k].Type.DType != d {
			out[k] = op.Bitcast.Make(c.b, op.BitcastAttr{To: d}, c.turned(out[k]))
		}
	}
	return out
}
