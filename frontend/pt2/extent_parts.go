package pt2

import (
	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// Parts whose sizes the data decides: a tensor is split into them, and such tensors are joined, as where each expert of a mixture takes its own
// rows of those sorted by expert. Sizes are then sums of symbols.

// sums are sizes that are sums of symbols with counts, by their expressions.
type sums struct {
	count map[string]*ir.Value // how many elements
	fixed map[string]int64     // the number that the program asserts it to be
	used  map[string]bool      // some value has it for its extent
	equal map[string]fixedSum  // by a number of the graph that compares it
}

// fixedSum says that the sum of an expression is n.
type fixedSum struct {
	sum string
	n   int64
}

func newSums() sums {
	return sums{make(map[string]*ir.Value), make(map[string]int64), make(map[string]bool), make(map[string]fixedSum)}
}

// terms are the symbols of a size that is a sum of symbols with counts and perhaps a number.
func (im *importer) terms(e *expr) (symbols []string, number int64, ok bool) {
	if e.fn != "Add" || len(e.args) < 2 {
		return nil, 0, false
	}
	for _, a := range e.args {
		switch {
		case a.fn == "Symbol" && im.extents.counts[a.name] != nil:
			symbols = append(symbols, a.name)
		case a.fn == "Integer" && a.num.i >= 0:
			number += a.num.i
		default:
			return nil, 0, false
		}
	}
	return symbols, number, len(symbols) > 0
}

// sumCount is how many elements a sum of symbols means, or nil for another expression and within functions, which do not see counts.
func (im *importer) sumCount(e *expr) *ir.Value {
	symbols, number, ok := im.terms(e)
	if !ok || im.b != im.extents.root {
		return nil
	}
	key := e.String()
	if im.extents.sums.count[key] == nil {
		n := intConst(im.b, tensor.I64, number)
		for _, s := range symbols {
			n = op.Add.Make(im.b, n, im.extents.counts[s])
		}
		im.extents.sums.count[key] = n
	}
	return im.extents.sums.count[key]
}

// sumOf is the expression of a size in the form in which sums are known, "" for one that cannot be read.
func (im *importer) sumOf(text string) string {
	e, err := im.p.parse(text)
	if err != nil {
		return ""
	}
	return e.String()
}

// fixedSize is the number that the program asserts a recorded size to be.
func (im *importer) fixedSize(s symInt) (int64, bool) {
	if s.Expr == nil || len(im.extents.sums.fixed) == 0 {
		return 0, false
	}
	n, ok := im.extents.sums.fixed[im.sumOf(s.Expr.Expr)]
	return n, ok
}

// sizeOf evaluates a recorded size, as Program.sizeOf does, with what the program asserts of it.
func (im *importer) sizeOf(s symInt) (v int64, unbacked bool, err error) {
	if n, ok := im.fixedSize(s); ok {
		return n, false, nil
	}
	return im.p.sizeOf(s, im.bound)
}

// compared keeps in mind a node that compares a sum of symbols with a number, for an assertion.
func (im *importer) compared(c *call, result string) {
	sum, n, ints := "", int64(0), 0
	for i := range c.node.Inputs {
		a := c.node.Inputs[i].Arg
		switch {
		case a.SymInt != nil && a.SymInt.Name != nil:
			if s, ok := im.g.SymIntValues[*a.SymInt.Name]; ok && s.Expr != nil {
				if e, err := im.p.parse(s.Expr.Expr); err == nil {
					if _, _, ok := im.terms(e); ok {
						sum = e.String()
					}
				}
			}
		case a.Int != nil:
			n, ints = *a.Int, ints+1
		case a.SymInt != nil && a.SymInt.Int != nil:
			n, ints = *a.SymInt.Int, ints+1
		}
	}
	if sum != "" && ints == 1 && n >= 0 {
		im.extents.sums.equal[result] = fixedSum{sum, n}
	}
}

// openSplit gives views of parts along dim of which the data decides some of the sizes: each of its largest size, the first elements meant.
func (c *call) openSplit(name string) ([]*ref, bool) {
	a := c.arg(name)
	if a.SymInts == nil {
		return nil, false
	}
	counts, found := make([]*ir.Value, len(*a.SymInts)), false
	for i, s := range *a.SymInts {
		if s.Name == nil {
			continue
		}
		scale, count, open := c.im.openNumber(*s.Name)
		if !open {
			continue
		}
		if count == nil || scale != 1 || c.b != c.im.extents.root {
			c.unsupported("the size of a part depends on the data in a way other than a count or a sum of counts")
		}
		counts[i], found = count, true
	}
	if !found {
		return nil, false
	}
	x, sizes := c.ref("self"), c.ints(name)
	axis := c.axis("dim", x.typ.Rank())
	if x.typ.Rank() == 0 || x.typ.Dims[axis] == 0 {
		c.unsupported("parts of sizes that depend on the data, of %s", x.typ)
	}
	var out []*ref
	start := zero(c.b, tensor.I64)
	for i, n := range sizes {
		if n < 0 || n > maxViewed {
			c.failf("a part of size %d, wanted 0 to %d", n, maxViewed)
		}
		count := counts[i]
		if count == nil {
			count = intConst(c.b, tensor.I64, n)
		}
		r := x.through(c.b, c.partView(axis, start, n, count))
		if counts[i] != nil {
			c.open(r.read(c.b), axis, count)
		}
		out = append(out, r)
		start = op.Add.Make(c.b, start, count)
	}
	return out, true
}

// partView sees n elements along axis from start on, of which count are meant; the others are some of the base's.
func (c *call) partView(axis int, start *ir.Value, n int64, count *ir.Value) view {
	return view{
		read: func(b *ir.Builder, x *ir.Value) *ir.Value {
			ids := op.Add.Make(b, counting(b, tensor.I64, []int64{n}, 0), op.BroadcastTo(b, start, []int64{n})) // clamped by Take
			return op.Take.Make(b, op.TakeAttr{Axis: int64(axis)}, c.wholeAs(x), ids)
		},
		write: func(b *ir.Builder, old func() *ir.Value, v *ir.Value) *ir.Value {
			x := old()
			all := x.Type.Dims[axis : axis+1]
			ids := op.Sub.Make(b, counting(b, tensor.I64, all, 0), op.BroadcastTo(b, start, all))
			in := op.And.Make(b, compare(b, op.GE, ids, like(b, ids, intScalar(0))), compare(b, op.LT, ids, op.BroadcastTo(b, count, all)))
			rows := op.Take.Make(b, op.TakeAttr{Axis: int64(axis)}, c.wholeAs(v), ids)
			return c.whole(op.Select.Make(b, op.Broadcast.Make(b, op.BroadcastAttr{Shape: x.Type.Dims, Dims: []int64{int64(axis)}}, in), rows, x))
		},
	}
}

// openSlice gives a view of the elements from start to end along dim, numbers of which the data decides one or both.
func (c *call) openSlice() ([]*ref, bool) {
	if c.b != c.im.extents.root || c.bounded("start") && c.bounded("end") {
		return nil, false
	}
	x := c.ref("self")
	axis := c.axis("dim", x.typ.Rank())
	if x.typ.Rank() == 0 || x.typ.Dims[axis] < minOpen || c.int("step") != 1 {
		return nil, false
	}
	size := intConst(c.b, tensor.I64, x.typ.Dims[axis])
	if e, open := c.extentOf(x.read(c.b)); open && e.axis == axis {
		size = op.Mul.Make(c.b, e.count, intConst(c.b, tensor.I64, e.scale))
	}
	none := zero(c.b, tensor.I64)
	place := func(name string, dflt *ir.Value) *ir.Value { // from the front, within the elements
		a := c.arg(name)
		if a.None != nil {
			return dflt
		}
		n := c.im.runtimeOperand(&a)
		if n == nil {
			n = intConst(c.b, tensor.I64, c.int(name))
		}
		n = c.cast(n, tensor.I64)
		n = op.Select.Make(c.b, compare(c.b, op.LT, n, none), op.Add.Make(c.b, n, size), n)
		return op.Minimum.Make(c.b, op.Maximum.Make(c.b, n, none), size)
	}
	start, end := place("start", none), place("end", size)
	count := op.Maximum.Make(c.b, op.Sub.Make(c.b, end, start), none)
	most := x.typ.Dims[axis]
	least := int64(0)
	if meta, ok := c.im.g.TensorValues[outputNames(c.node)[0]]; ok && axis < len(meta.Sizes) {
		most, least = c.im.sizeRange(meta.Sizes[axis], most)
	}
	if least == most {
		count = intConst(c.b, tensor.I64, most)
	}
	r := x.through(c.b, c.partView(axis, start, most, count))
	v := c.whole(r.read(c.b))
	if least != most {
		c.open(v, axis, count)
	}
	return []*ref{r}, true
}

// bounded reports an argument of slice that is no number which only the data tells.
func (c *call) bounded(name string) bool {
	a := c.arg(name)
	return a.SymInt == nil || a.SymInt.Name == nil || !c.im.unknown[*a.SymInt.Name] || c.im.runtimeOperand(&a) == nil
}

// sizeRange is the most and the least that the archive records of a size of at most n, which is a symbol without a value.
func (im *importer) sizeRange(s symInt, n int64) (most, least int64) {
	most = n
	if s.Int != nil {
		return min(most, *s.Int), *s.Int
	}
	if s.Expr == nil {
		return most, 0
	}
	if r, ok := im.p.ep.RangeConstraints[im.sumOf(s.Expr.Expr)]; ok {
		if r.Max != nil && *r.Max >= 0 {
			most = min(most, *r.Max)
		}
		if r.Min != nil && *r.Min == most {
			return most, most
		}
	}
	return max(most, minOpen), 0
}

// openPad pads along one dimension at its end up to a size that is known, by a number that the data decides.
func (c *call) openPad(v scalar) (*ir.Value, bool) {
	a := c.arg("pad")
	if a.SymInts == nil {
		return nil, false
	}
	x := c.val("self")
	e, open := c.extentOf(x)
	widths := make([]int64, len(*a.SymInts))
	found := false
	for i := range widths {
		s := &(*a.SymInts)[i]
		if s.Name == nil || c.im.runtimeOperand(&argument{SymInt: s}) == nil {
			widths[i] = c.sym(s).i
			continue
		}
		if !open || found || i%2 == 0 || x.Type.Rank()-1-i/2 != e.axis || widths[i-1] != 0 {
			c.unsupported("a width depends on the data")
		}
		found = true
	}
	if !found {
		return nil, false
	}
	total := c.resultType().Dims
	if len(total) != x.Type.Rank() || total[e.axis] < 1 {
		c.failf("a result of dimensions %v of %s", total, x.Type)
	}
	if meta := c.im.g.TensorValues[outputNames(c.node)[0]]; meta.Sizes[e.axis].Int == nil {
		c.unsupported("a width depends on the data, and the result's size too")
	}
	x = c.covered(x, e, v)
	for i := range widths {
		if i == 2*(x.Type.Rank()-1-e.axis)+1 {
			widths[i] = total[e.axis] - x.Type.Dims[e.axis]
		}
	}
	return c.whole(c.constantPad(x, widths, v)), true
}

// joinParts joins tensors along axis, of some of which only the first elements are meant, so that those that are meant follow each other. ok is
// false where all are meant.
func (c *call) joinParts(axis int, xs []*ir.Value) (y *ir.Value, ok bool) {
	opens := make([]extent, len(xs))
	for i, x := range xs {
		if e, open := c.extentOf(x); open && e.axis == axis {
			opens[i], ok = e, true
		}
	}
	if !ok {
		return nil, false
	}
	// Element r of the result is element r of the padded parts one after another, moved on by what is not meant of the parts before it.
	total := c.resultType().Dims
	if axis >= len(total) || total[axis] > maxViewed {
		c.failf("the result has dimensions %v, wanted a dimension %d of at most %d", total, axis, maxViewed)
	}
	dims := total[axis : axis+1]
	ids := counting(c.b, tensor.I64, dims, 0)
	place, end := ids, zero(c.b, tensor.I64)
	for i, x := range xs[:len(xs)-1] {
		size := intConst(c.b, tensor.I64, x.Type.Dims[axis])
		count := size
		if opens[i].count != nil {
			count = op.Mul.Make(c.b, opens[i].count, intConst(c.b, tensor.I64, opens[i].scale))
		}
		end = op.Add.Make(c.b, end, count)
		beyond := compare(c.b, op.GE, ids, op.BroadcastTo(c.b, end, dims))
		skip := op.BroadcastTo(c.b, op.Sub.Make(c.b, size, count), dims)
		place = op.Add.Make(c.b, place, op.Select.Make(c.b, beyond, skip, like(c.b, ids, intScalar(0))))
	}
	parts := make([]*ir.Value, len(xs))
	for i, x := range xs {
		if parts[i] = x; opens[i].count != nil {
			parts[i] = c.wholeAs(x)
		}
	}
	y = op.Take.Make(c.b, op.TakeAttr{Axis: int64(axis)}, concat(c.b, axis, parts...), place)
	meta := c.im.g.TensorValues[outputNames(c.node)[0]]
	if s := meta.Sizes[axis]; s.Expr != nil {
		if _, fixed := c.im.fixedSize(s); !fixed {
			scale, count, open := c.im.sizeCount(s.Expr.Expr)
			if !open || count == nil {
				c.unsupported("it joins parts to a size that depends on the data in a way other than a sum of counts")
			}
			c.im.extents.of[y] = extent{axis, scale, count}
		}
	}
	return y, true
}
