package pt2

import (
	"maps"
	"slices"
	"strings"

	"tpuc/ir"
	"tpuc/ir/diag"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// Sizes that the data decides. A compiled program has fixed shapes, so such a dimension gets the largest size that it can have, and only the
// first elements along it are meant; what the others hold is anything. A value that has such a dimension has an extent, which extent_flow.go
// follows from operator to operator: what is computed of elements that are not meant must be beyond the extent of the result again, or the
// operator is refused. What goes out of the program has no extent.

// extent says that of a value's elements along an axis the first scale*count are meant.
type extent struct {
	axis  int
	scale int64
	count *ir.Value // a 0-d i64; nil: no elements are meant, and the value must not be read
}

// spoilt is the extent of a value that elements beyond an extent went into.
var spoilt = extent{axis: -1}

// extents are what is known of the sizes that the data decides. Graphs within graphs share it.
type extents struct {
	counts map[string]*ir.Value    // by symbol
	made   map[string]maker        // the node that made the symbol
	of     map[*ir.Value]extent    // by value; the others are meant whole
	meant  map[*ir.Value]bool      // values that a rule made whole from such with an extent
	seen   map[*ir.Builder]int     // how many nodes are followed
	marked map[*ir.Value]*ir.Value // values under another name that has an extent
	root   *ir.Builder             // of the program; functions of control flow do not see counts
	equal  map[string][2]string    // symbols that a number of the graph compares
	sums   sums
	same   map[*ir.Value]*ir.Value // counts that the program asserts to be equal to another
}

func newExtents(root *ir.Builder) *extents {
	return &extents{root: root, counts: make(map[string]*ir.Value), made: make(map[string]maker), of: make(map[*ir.Value]extent), meant: make(map[*ir.Value]bool),
		seen: make(map[*ir.Builder]int), marked: make(map[*ir.Value]*ir.Value), equal: make(map[string][2]string), sums: newSums(), same: make(map[*ir.Value]*ir.Value)}
}

// maker is a node that made a symbol.
type maker struct {
	c   *call
	loc *diag.Loc
}

// declare says that a symbol is a count, which c's node made.
func (x *extents) declare(symbol string, count *ir.Value, c *call) {
	x.counts[symbol], x.made[symbol] = count, maker{c, c.b.Loc}
}

// one is the count that stands for all that are asserted to be equal to count.
func (x *extents) one(count *ir.Value) *ir.Value {
	for x.same[count] != nil {
		count = x.same[count]
	}
	return count
}

// equate takes two counts for one.
func (x *extents) equate(a, b *ir.Value) {
	if a, b = x.one(a), x.one(b); a != b {
		x.same[a] = b
	}
}

// minOpen is the least size of a dimension with an extent: one of 1 would look like those that broadcast.
const minOpen = 2

// open gives v, whose extent along axis is at least minOpen, an extent of count elements.
func (c *call) open(v *ir.Value, axis int, count *ir.Value) *ir.Value {
	c.im.extents.of[v] = extent{axis, 1, count}
	return v
}

// whole says that a rule made v from elements alone that are meant.
func (c *call) whole(v *ir.Value) *ir.Value {
	c.im.extents.meant[v] = true
	delete(c.im.extents.of, v)
	return v
}

// wholeAs is x for a rule that reads none but elements that are meant.
func (c *call) wholeAs(x *ir.Value) *ir.Value {
	return c.whole(op.Reshape.Make(c.b, op.ReshapeAttr{Shape: slices.Clone(x.Type.Dims)}, x))
}

// extentOf is the extent of v, if it has one.
func (c *call) extentOf(v *ir.Value) (extent, bool) {
	e := c.im.extents
	if len(e.of) == 0 {
		return extent{}, false
	}
	e.follow(c.b)
	x, ok := e.of[v]
	return x, ok
}

// inside is which elements of v are meant, for a value with an extent.
func (c *call) inside(v *ir.Value, e extent) *ir.Value {
	n := op.Mul.Make(c.b, e.count, intConst(c.b, tensor.I64, e.scale))
	return compare(c.b, op.LT, counting(c.b, tensor.I64, v.Type.Dims, e.axis), op.BroadcastTo(c.b, n, v.Type.Dims))
}

// covered is v with the elements that are not meant replaced by s, which makes it whole.
func (c *call) covered(v *ir.Value, e extent, s scalar) *ir.Value {
	return c.whole(op.Select.Make(c.b, c.inside(v, e), v, like(c.b, v, s)))
}

// beyondTo is indices with those that are not meant replaced by n, for a scatter, which drops what is out of range.
func (c *call) beyondTo(ids *ir.Value, e extent, n int64) *ir.Value {
	ids = c.cast(ids, tensor.I64)
	return c.covered(ids, e, intScalar(n))
}

// fillers are reductions, and what the elements that are not meant are replaced by so that they change nothing.
var fillers = map[string]func(d tensor.DType) scalar{
	"sum": none, "nansum": none, "count_nonzero": none, "any": none, "linalg_vector_norm": none, "norm": none,
	"prod": func(tensor.DType) scalar { return intScalar(1) }, "all": func(tensor.DType) scalar { return intScalar(1) },
	"amax": lowest, "max": lowest, "argmax": lowest, "logsumexp": lowest, "softmax": lowest, "_softmax": lowest, "log_softmax": lowest,
	"_log_softmax": lowest, "amin": highest, "min": highest, "argmin": highest,
}

func none(tensor.DType) scalar { return intScalar(0) }

// readArg is a tensor argument as the operator may read it.
func (c *call) readArg(r *ref) *ir.Value {
	v := r.read(c.b)
	e, ok := c.extentOf(v)
	if !ok {
		return v
	}
	base, _, _ := strings.Cut(c.op, ".")
	if f := fillers[base]; f != nil && e.axis >= 0 {
		return c.covered(v, e, f(v.Type.DType))
	}
	return v
}

// recordedExtent is the extent of a tensor by its recorded sizes. A size is a symbol whose count is known, or a multiple of one.
func (im *importer) recordedExtent(meta *tensorMeta) (e extent, ok bool) {
	for i, s := range meta.Sizes {
		if s.Expr == nil {
			continue
		}
		if _, fixed := im.fixedSize(s); fixed {
			continue
		}
		scale, count, open := im.sizeCount(s.Expr.Expr)
		if !open {
			continue
		}
		im.extents.sums.used[im.sumOf(s.Expr.Expr)] = true
		if ok || count == nil || im.b != im.extents.root {
			panic(&ruleError{unsupported: true, msg: "the shape of its result depends on the data"})
		}
		e, ok = extent{i, scale, count}, true
	}
	return e, ok
}

// sizeCount reads a recorded size: open reports one that depends on symbols with counts; it is scale times count, or count is nil.
func (im *importer) sizeCount(text string) (scale int64, count *ir.Value, open bool) {
	if len(im.extents.counts) == 0 {
		return 0, nil, false
	}
	e, err := im.p.parse(text)
	if err != nil {
		return 0, nil, false
	}
	set := make(map[string]bool)
	e.symbols(set)
	for s := range set {
		open = open || im.extents.counts[s] != nil
	}
	if !open {
		return 0, nil, false
	}
	switch {
	case e.fn == "Symbol":
		return 1, im.extents.counts[e.name], true
	case e.fn == "Mul" && len(e.args) == 2 && e.args[0].fn == "Integer" && e.args[1].fn == "Symbol" && e.args[0].num.i > 0:
		return e.args[0].num.i, im.extents.counts[e.args[1].name], true
	}
	return 1, im.sumCount(e), true
}

// openNumber reads a number of the graph that depends on symbols with counts, as sizeCount does.
func (im *importer) openNumber(name string) (scale int64, count *ir.Value, open bool) {
	if s, ok := im.g.SymIntValues[name]; ok && s.Expr != nil {
		return im.sizeCount(s.Expr.Expr)
	}
	return 0, nil, false
}

// openSizes are the arguments that take a size which the data decides at its largest: the result then has an extent.
var openSizes = map[string]string{
	"view": "size", "_unsafe_view": "size", "reshape": "shape", "expand": "size", "ones": "size", "zeros": "size", "full": "size", "empty": "size",
	"new_zeros": "size", "new_ones": "size", "new_full": "size", "new_empty": "size", "arange": "end", "slice": "end", "split_with_sizes": "split_sizes",
	"split": "split_size", "unsafe_split_with_sizes": "split_sizes",
}

// takesOpen refuses a number that depends on the data, but for sizes.
func (c *call) takesOpen(name string, s *symRef) {
	if s.Name == nil {
		return
	}
	if _, _, open := c.im.openNumber(*s.Name); open {
		base, _, _ := strings.Cut(c.op, ".")
		if openSizes[base] != name || name == "" {
			c.unsupported("a number depends on the data")
		}
	}
}

// symbolic computes with numbers of which one depends on the data: what is a size again is known at its largest, and what compares two symbols
// may be asserted; the rest is unknown.
func (im *importer) symbolic(c *call) (done bool) {
	found := false
	var names []string
	for i := range c.node.Inputs {
		c.node.Inputs[i].Arg.visit(func(string) {}, func(name string) {
			_, _, open := im.openNumber(name)
			found = found || open
			names = append(names, name)
		})
	}
	if !found || !strings.HasPrefix(c.op, "_operator.") && !strings.HasPrefix(c.op, "torch.") && !strings.HasPrefix(c.op, "math.") {
		return false
	}
	for i := range c.node.Outputs {
		o := &c.node.Outputs[i]
		if o.SymInt != nil && o.SymInt.Name != nil {
			if _, count, open := im.openNumber(*o.SymInt.Name); open && count != nil {
				return true // symValue gives it
			}
		}
		if o.SymBool != nil && o.SymBool.Name != nil && c.op == "_operator.eq" && len(names) == 2 {
			a, b := im.symbolOf(names[0]), im.symbolOf(names[1])
			if im.extents.counts[a] != nil && im.extents.counts[b] != nil {
				im.extents.equal[*o.SymBool.Name] = [2]string{a, b}
			}
		}
		if o.SymBool != nil && o.SymBool.Name != nil && c.op == "_operator.eq" {
			im.compared(c, *o.SymBool.Name)
		}
	}
	im.markUnknown(c.node)
	im.compute(c)
	return true
}

// symbolOf is the symbol that a number of the graph is, or "".
func (im *importer) symbolOf(name string) string {
	if s, ok := im.g.SymIntValues[name]; ok && s.Expr != nil {
		if e, err := im.p.parse(s.Expr.Expr); err == nil && e.fn == "Symbol" {
			return e.name
		}
	}
	return ""
}

// asserted takes two symbols for one that the program asserts to be equal, and a sum for the number that it is asserted to be.
func (im *importer) asserted(c *call) {
	for i := range c.node.Inputs {
		if s := c.node.Inputs[i].Arg.SymBool; s != nil && s.Name != nil {
			if pair, ok := im.extents.equal[*s.Name]; ok && im.bound[pair[0]] == im.bound[pair[1]] {
				im.extents.equate(im.extents.counts[pair[0]], im.extents.counts[pair[1]])
				im.extents.counts[pair[0]] = im.extents.counts[pair[1]]
			}
			if f, ok := im.extents.sums.equal[*s.Name]; ok && !im.extents.sums.used[f.sum] {
				im.extents.sums.fixed[f.sum] = f.n
			}
		}
	}
}

// bindExtent gives a result the extent that the archive's sizes say, and compares it with the one that it has.
func (im *importer) bindExtent(c *call, r *ref, meta *tensorMeta) {
	v := r.read(c.b)
	has, open := c.extentOf(v)
	if open && has.axis >= 0 { // a new symbol
		if s := meta.Sizes[has.axis]; s.Expr != nil && has.scale == 1 {
			if e, err := im.p.parse(s.Expr.Expr); err == nil && e.fn == "Symbol" && im.extents.counts[e.name] == nil {
				im.extents.declare(e.name, has.count, c)
			}
		}
	}
	want, sized := im.recordedExtent(meta)
	switch {
	case !open && !sized:
		return
	case open && (!sized || has.axis != want.axis || has.scale != want.scale):
		c.unsupported("it reads elements whose number depends on the data")
	case open: // perhaps counted anew, of the same size as the archive says
		c.im.extents.of[v] = want
	}
	r.mark = func(b *ir.Builder, v *ir.Value) *ir.Value {
		x := im.extents
		x.follow(b)
		if _, ok := x.of[v]; ok {
			return v
		}
		if x.marked[v] == nil {
			y := op.Reshape.Make(b, op.ReshapeAttr{Shape: slices.Clone(v.Type.Dims)}, v)
			x.of[y], x.marked[v] = want, y
		}
		return x.marked[v]
	}
}

// openOutputs lists the outputs whose shape depends on the data, at the operators that made the sizes.
func (im *importer) openOutputs() {
	told := make(map[string]bool)
	for _, leaf := range im.p.Outputs {
		meta, ok := im.g.TensorValues[leaf.Name]
		if leaf.Kind != Tensor || !ok {
			continue
		}
		for _, s := range meta.Sizes {
			if s.Expr == nil {
				continue
			}
			if _, fixed := im.fixedSize(s); fixed {
				continue
			}
			if _, _, open := im.sizeCount(s.Expr.Expr); !open {
				continue
			}
			e, err := im.p.parse(s.Expr.Expr)
			if err != nil {
				continue
			}
			set := make(map[string]bool)
			e.symbols(set)
			for _, name := range slices.Sorted(maps.Keys(set)) {
				if m, ok := im.extents.made[name]; ok && !told[name] {
					told[name] = true
					m.c.b.Loc = m.loc
					im.lacking.add(m.c, "the shape of an output of the model depends on the data")
				}
			}
		}
	}
}

// checkOpen refuses memory that outlives the call and holds elements beyond an extent.
func (im *importer) checkOpen() error {
	if len(im.extents.of) == 0 {
		return nil
	}
	im.extents.follow(im.b)
	var errs diag.List
	for _, u := range im.m.Func.Updates {
		if _, ok := im.extents.of[u.New]; ok {
			errs.Addf(nil, codeUnsupported, "memory that the program updates depends on elements whose number depends on the data")
		}
	}
	for i, v := range im.m.Func.Results {
		if _, ok := im.extents.of[v]; ok {
			errs.Addf(nil, codeUnsupported, "result %d depends on elements whose number depends on the data", i)
		}
	}
	return errs.Err()
}
