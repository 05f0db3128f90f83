package passes

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// narrow computes i64 in i32 where ranges prove that nothing is lost: PyTorch's positions, masks and indices are 64 bits wide, and TPUs
// compute those as pairs of 32. Inputs, outputs and state keep their dtypes; where a value leaves the 32-bit part a conversion makes it
// wide again. An index that is not known, such as an id of a vocabulary, is clamped before it is converted, as gather clamps it itself.
var narrow = Pass{
	Name: "narrow", Doc: "Computes 64-bit integers in 32 bits where their ranges allow it.",
	After: []string{"expand"}, // composites are indexed by whatever integers come
	Rules: narrowRules,
	Run: func(c *Context, m *ir.Module) error {
		w := narrower{c, make(ranges)}
		for _, f := range m.Functions() {
			f.Rewrite(w.node)
		}
		return nil
	},
}

// narrowRules names what narrow counts. A product of 64-bit integers that stays, which libtpu refuses, becomes a sum of products: that is no
// matter of cost, so it is none of these.
var narrowRules = []Rule{
	{Name: "compare", Doc: "A comparison that ranges decide is true or false."},
	{Name: "clamp", Doc: "A maximum or minimum that ranges decide is one of its arguments."},
	{Name: "compute", Doc: "A node on i64 within the range of i32 computes in i32."},
	{Name: "index", Doc: "i64 indices are i32, clamped before where they are not known."},
	{Name: "bound", Doc: "An i64 value repeated and compared with one within the range of i32 is clamped before it is repeated."},
}

// narrower is the state of one run.
type narrower struct {
	c *Context
	ranges
}

// node replaces one node, or changes its arguments in place.
func (w *narrower) node(b *ir.Builder, n *ir.Node) []*ir.Value {
	w.c.At(n)
	if sharded(n) {
		return nil
	}
	if v := w.decided(b, n); v != nil {
		return one(v)
	}
	w.indices(b, n)
	switch out := w.compute(b, n); {
	case out != nil:
		return out
	case op.Compare.Is(n):
		return w.bound(b, n)
	case op.Dot.Is(n) && n.Args[0].Type.DType.IsInt() && n.Args[0].Type.DType.Bits() == 64:
		w.c.Hit("product")
		return one(sumOfProducts(b, n))
	}
	return nil
}

// decided gives what a comparison, a maximum or a minimum of integers is by its arguments' ranges, nil where they do not say.
func (w *narrower) decided(b *ir.Builder, n *ir.Node) *ir.Value {
	switch {
	case op.Compare.Is(n):
		if s := w.compare(n); s.lo == s.hi {
			w.c.Hit("compare")
			return op.Splat(b, n.Outs[0].Type, float64(s.lo))
		}
	case op.Maximum.Is(n), op.Minimum.Is(n):
		x, known := w.of(n.Args[0])
		y, also := w.of(n.Args[1])
		if op.Minimum.Is(n) {
			x, y = y, x
		}
		if !known || !also || x.lo < y.hi && y.lo < x.hi {
			break
		}
		w.c.Hit("clamp")
		if x.lo >= y.hi { // of minimum, the second is never smaller
			return n.Args[0]
		}
		return n.Args[1]
	}
	return nil
}

// inI32 are operators that give in i32 what they give in i64, where neither arguments nor results are beyond i32.
var inI32 = []*ir.Op{
	op.Abs.Op, op.Add.Op, op.And.Op, op.Broadcast.Op, op.Compare.Op, op.Concat.Op, op.Convert.Op, op.Div.Op, op.Dot.Op, op.DynamicSlice.Op, op.DynamicUpdateSlice.Op,
	op.Gather.Op, op.Iota.Op, op.Maximum.Op, op.Minimum.Op, op.Mul.Op, op.Neg.Op, op.Pad.Op, op.Reduce.Op, op.Rem.Op, op.Reshape.Op, op.Reverse.Op,
	op.Select.Op, op.Slice.Op, op.Sort.Op, op.Sub.Op, op.Transpose.Op,
}

// compute builds n in i32, and i64 results from it, where n computes i64 and everything fits.
func (w *narrower) compute(b *ir.Builder, n *ir.Node) []*ir.Value {
	if !slices.Contains(inI32, n.Op) {
		return nil
	}
	long := false
	for _, values := range [][]*ir.Value{n.Args, n.Outs} {
		for _, v := range values {
			if v.Type.DType != tensor.I64 {
				continue
			}
			long = true
			if !w.fits(v) {
				return nil
			}
		}
	}
	if !long || op.Convert.Is(n) && n.Args[0].Type.DType != tensor.I64 {
		return nil // an edge already
	}
	args := make([]*ir.Value, len(n.Args))
	for i, v := range n.Args {
		if args[i] = v; v.Type.DType == tensor.I64 {
			args[i] = low(b, v)
		}
	}
	w.c.Hit("compute")
	attr := n.Attr
	switch {
	case op.Iota.Is(n):
		a := op.Iota.Attr(n)
		a.Type = a.Type.WithDType(tensor.I32)
		attr = a
	case op.Dot.Is(n):
		a := op.Dot.Attr(n)
		a.Out = tensor.Invalid
		attr = a
	case op.Convert.Is(n):
		return one(op.Cast(b, args[0], n.Outs[0].Type.DType))
	}
	out := slices.Clone(b.Build(n.Op, attr, args...))
	for i, v := range out {
		out[i] = op.Cast(b, v, n.Outs[i].Type.DType)
	}
	return out
}

// fits reports that every element of v is one of i32.
func (w *narrower) fits(v *ir.Value) bool {
	s, ok := w.of(v)
	return ok && s.within(int32s)
}

// low is v, which fits, in i32: what it was made from where that is i32 or narrower, a literal, or a conversion.
func low(b *ir.Builder, v *ir.Value) *ir.Value {
	switch n := v.Def; {
	case op.Constant.Is(n):
		x := op.Constant.Attr(n).Value
		return op.Constant.Make(b, op.ConstantAttr{Value: tensor.FromInts(x.WithDType(tensor.I32), x.Ints())})
	case op.Convert.Is(n) && holds(tensor.I32, n.Args[0].Type.DType):
		return op.Cast(b, n.Args[0], tensor.I32)
	}
	return op.Cast(b, v, tensor.I32)
}

// clamped is v in i32, moved into s, which lies in i32's range, first.
func clamped(b *ir.Builder, v *ir.Value, s span) *ir.Value {
	splat := func(x int64) *ir.Value { return makeSplat(b, tensor.ScalarInt(v.Type.DType, x), v.Type) }
	return op.Cast(b, op.Minimum.Make(b, op.Maximum.Make(b, v, splat(s.lo)), splat(s.hi)), tensor.I32)
}

// indices makes n's indices i32, in place. Gather clamps a place to where its window fits, scatter drops one that is not within: a place
// clamped to one before or behind is still not. The scalars of dynamic slices that are not known stay: clamping them is more work
// than they are.
func (w *narrower) indices(b *ir.Builder, n *ir.Node) {
	switch {
	case op.Gather.Is(n):
		a, dims := op.Gather.Attr(n), n.Args[0].Type.Dims
		var bounds []span
		for _, d := range a.StartIndexMap {
			bounds = append(bounds, span{0, dims[d] - a.SliceSizes[d]})
		}
		n.Args[1] = w.index(b, n.Args[1], a.IndexVectorDim, bounds)
	case op.Scatter.Is(n):
		a, dims := op.Scatter.Attr(n), n.Args[0].Type.Dims
		var bounds []span
		for _, d := range a.ScatterDimsToOperandDims {
			bounds = append(bounds, span{-1, dims[d]})
		}
		n.Args[1] = w.index(b, n.Args[1], a.IndexVectorDim, bounds)
	case op.DynamicUpdateSlice.Is(n), op.DynamicSlice.Is(n):
		starts := n.Args[len(n.Op.Args)-1:]
		if len(starts) == 0 || starts[0].Type.DType != tensor.I64 || slices.ContainsFunc(starts, func(s *ir.Value) bool { return !w.fits(s) }) {
			return
		}
		w.c.Hit("index")
		for d, s := range starts {
			starts[d] = low(b, s)
		}
	}
}

func beyondI32(n int64) bool { return n > int32s.hi-1 }

// index is ids in i32, clamped where it is not known to fit, with bounds for each component along the vector dimension.
func (w *narrower) index(b *ir.Builder, ids *ir.Value, vector int64, bounds []span) *ir.Value {
	if ids.Type.DType != tensor.I64 || len(bounds) == 0 || slices.ContainsFunc(bounds, func(s span) bool { return beyondI32(s.hi) }) {
		return ids
	}
	w.c.Hit("index")
	switch {
	case w.fits(ids):
		return low(b, ids)
	case len(bounds) == 1:
		return clamped(b, ids, bounds[0])
	case op.Concat.Is(ids.Def) && op.Concat.Attr(ids.Def).Axis == vector && len(ids.Def.Args) == len(bounds) &&
		!slices.ContainsFunc(ids.Def.Args, func(part *ir.Value) bool { return part.Type.Dims[vector] != 1 }):
		parts := make([]*ir.Value, len(bounds))
		for k, part := range ids.Def.Args {
			parts[k] = w.index(b, part, vector, bounds[k:k+1])
		}
		return op.Concat.Make(b, op.Concat.Attr(ids.Def), parts...)
	}
	limit := func(pick func(span) int64) *ir.Value {
		v := make([]int64, len(bounds))
		for k, s := range bounds {
			v[k] = pick(s)
		}
		c := op.Constant.Make(b, op.ConstantAttr{Value: tensor.FromInts(tensor.Make(tensor.I64, int64(len(v))), v)})
		return op.Broadcast.Make(b, op.BroadcastAttr{Shape: ids.Type.Dims, Dims: []int64{vector}}, c)
	}
	x := op.Maximum.Make(b, ids, limit(func(s span) int64 { return s.lo }))
	x = op.Minimum.Make(b, x, limit(func(s span) int64 { return s.hi }))
	return op.Cast(b, x, tensor.I32)
}

// bound matches a comparison of x within i32 and a y that is not known but repeats fewer elements, such as a position with a count: clamped to
// one beyond x's range on either side y compares as before.
func (w *narrower) bound(b *ir.Builder, n *ir.Node) []*ir.Value {
	if n.Args[0].Type.DType != tensor.I64 {
		return nil
	}
	for i, x := range n.Args {
		y := n.Args[1-i]
		s, _ := w.of(x)
		origin, moves := repeated(y)
		if s = (span{s.lo - 1, s.hi + 1}); !w.fits(x) || !s.within(int32s) || 2*origin.Type.Elements() > y.Type.Elements() {
			continue
		}
		w.c.Hit("bound")
		v := clamped(b, origin, s)
		for _, m := range slices.Backward(moves) {
			v = b.Build(m.Op, m.Attr, v)[0]
		}
		args := []*ir.Value{low(b, x), v}
		if i == 1 {
			args[0], args[1] = args[1], args[0]
		}
		return one(op.Compare.Make(b, op.Compare.Attr(n), args...))
	}
	return nil
}

// repeated goes back from y through broadcasts and reshapes, which it lists from the last to the first.
func repeated(y *ir.Value) (origin *ir.Value, moves []*ir.Node) {
	for (op.Broadcast.Is(y.Def) || op.Reshape.Is(y.Def)) && !sharded(y.Def) {
		moves = append(moves, y.Def)
		y = y.Def.Args[0]
	}
	return y, moves
}

// sumOfProducts is the dot n as a sum over the products of all pairs of free positions; the compiler fuses the two.
func sumOfProducts(b *ir.Builder, n *ir.Node) *ir.Value {
	s := sides(n)
	out, dims := n.Outs[0].Type, slices.Clone(n.Outs[0].Type.Dims)
	dims = append(dims, at(n.Args[0].Type.Dims, s[0].contract)...)
	batch, contract := int64(len(s[0].batch)), int64(len(s[0].contract))
	rank := int64(len(dims))
	var parts [2]*ir.Value
	first := batch // where the side's free dimensions stand in the product
	for i, x := range n.Args {
		free := freeDims(x, s[i])
		end := first + int64(len(free))
		x = op.Transpose.Make(b, op.TransposeAttr{Perm: slices.Concat(s[i].batch, free, s[i].contract)}, op.Cast(b, x, out.DType))
		places := slices.Concat(upTo(0, batch), upTo(first, end), upTo(rank-contract, rank))
		parts[i] = op.Broadcast.Make(b, op.BroadcastAttr{Shape: dims, Dims: places}, x)
		first = end
	}
	return op.Reduce.Make(b, op.ReduceAttr{Kind: op.Sum, Axes: upTo(rank-contract, rank)}, op.Mul.Make(b, parts[0], parts[1]))
}
