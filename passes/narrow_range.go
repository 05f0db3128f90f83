package passes

import (
	"math"
	"math/bits"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// span holds the least and the largest that an integer or bool value's elements may be; a bool's are 0 and 1.
type span struct{ lo, hi int64 }

// within reports that s lies in t.
func (s span) within(t span) bool { return s.lo >= t.lo && s.hi <= t.hi }

// or is the least span over both.
func (s span) or(t span) span { return span{min(s.lo, t.lo), max(s.hi, t.hi)} }

// int32s are the values of i32.
var int32s = span{math.MinInt32, math.MaxInt32}

// ranges finds spans from what makes a value: counts, literals, the contents of constants, clamps, and arithmetic on them. Nothing is
// assumed of inputs, parameters, buffers and state.
type ranges map[*ir.Value]span

// of gives v's span: at most all that its dtype holds, of u64 the half that an int64 holds for what is known, and nothing else.
// ok is false for dtypes other than integers and bool, and for a u64 that is not known.
func (r ranges) of(v *ir.Value) (s span, ok bool) {
	d := v.Type.DType
	if !d.IsInt() && d != tensor.Bool {
		return span{}, false
	}
	if s, ok := r[v]; ok {
		return s, true
	}
	all := span{}
	all.lo, all.hi = d.IntRange()
	if s, ok = r.make(v); !ok || d != tensor.U64 && !s.within(all) || s.lo < 0 && d.IsUnsigned() {
		if d == tensor.U64 {
			return span{}, false
		}
		s = all // unknown, or it may wrap
	}
	r[v] = s
	return s, true
}

// make computes a span before it wraps to the dtype; ok is false where nothing is known.
func (r ranges) make(v *ir.Value) (s span, ok bool) {
	n := v.Def
	switch {
	case v.Weight != nil && v.Weight.Class == ir.Constant && !v.Weight.Mutable && v.Weight.Data != nil:
		return contents(v.Weight.Data)
	case n == nil:
		return span{}, false
	case op.Constant.Is(n):
		return contents(op.Constant.Attr(n).Value)
	case op.Iota.Is(n):
		return span{0, max(v.Type.Dims[op.Iota.Attr(n).Axis], 1) - 1}, true
	case op.Compare.Is(n):
		return r.compare(n), true
	case op.Convert.Is(n), op.Broadcast.Is(n), op.Reshape.Is(n), op.Transpose.Is(n), op.Slice.Is(n), op.Reverse.Is(n), op.Gather.Is(n), op.DynamicSlice.Is(n):
		return r.of(n.Args[0])
	case op.Sort.Is(n):
		return r.of(n.Args[v.Index])
	case op.Concat.Is(n):
		return r.union(n.Args...)
	case op.Pad.Is(n), op.DynamicUpdateSlice.Is(n):
		return r.union(n.Args[:2]...)
	case op.Select.Is(n):
		switch p, _ := r.of(n.Args[0]); {
		case p.lo == 1:
			return r.of(n.Args[1])
		case p.hi == 0:
			return r.of(n.Args[2])
		}
		return r.union(n.Args[1:]...)
	case op.Reduce.Is(n):
		return r.reduce(n)
	case op.Dot.Is(n):
		x, known := r.of(n.Args[0])
		y, also := r.of(n.Args[1])
		if !known || !also {
			return span{}, false
		}
		count := product(at(n.Args[0].Type.Dims, sides(n)[0].contract))
		if s, ok = corners(x, y, mulInt); !ok {
			return span{}, false
		}
		return corners(s, span{count, count}, mulInt)
	case op.Neg.Is(n), op.Abs.Is(n), op.Not.Is(n):
		x, known := r.of(n.Args[0])
		if !known {
			return span{}, false
		}
		return unarySpan(n, x)
	case len(n.Args) == 2 && n.Op.Traits&ir.Elementwise != 0:
		x, known := r.of(n.Args[0])
		y, also := r.of(n.Args[1])
		if !known || !also {
			return span{}, false
		}
		return binarySpan(n, x, y)
	}
	return span{}, false
}

// contents are the bounds of known elements; a u64 beyond int64 is not known.
func contents(x *tensor.Tensor) (span, bool) {
	v := x.Ints()
	if len(v) == 0 {
		return span{}, true
	}
	s := span{v[0], v[0]}
	for _, w := range v {
		s = s.or(span{w, w})
	}
	return s, x.DType != tensor.U64 || s.lo >= 0
}

func (r ranges) union(values ...*ir.Value) (s span, ok bool) {
	for i, v := range values {
		t, known := r.of(v)
		if !known {
			return span{}, false
		}
		if i > 0 {
			t = t.or(s)
		}
		s = t
	}
	return s, true
}

// compare is {0, 0} or {1, 1} where the spans decide.
func (r ranges) compare(n *ir.Node) span {
	x, known := r.of(n.Args[0])
	y, also := r.of(n.Args[1])
	if !known || !also || n.Args[0].Type.DType == tensor.Bool {
		return span{0, 1}
	}
	always, never := false, false
	switch op.Compare.Attr(n).Dir {
	case op.LT:
		always, never = x.hi < y.lo, x.lo >= y.hi
	case op.LE:
		always, never = x.hi <= y.lo, x.lo > y.hi
	case op.GT:
		always, never = x.lo > y.hi, x.hi <= y.lo
	case op.GE:
		always, never = x.lo >= y.hi, x.hi < y.lo
	case op.EQ:
		always, never = x.lo == x.hi && x == y, x.hi < y.lo || x.lo > y.hi
	case op.NE:
		always, never = x.hi < y.lo || x.lo > y.hi, x.lo == x.hi && x == y
	}
	switch {
	case always:
		return span{1, 1}
	case never:
		return span{0, 0}
	}
	return span{0, 1}
}

// reduce knows sums, extremes and the logic of bools over at least one element.
func (r ranges) reduce(n *ir.Node) (span, bool) {
	x, ok := r.of(n.Args[0])
	count := product(at(n.Args[0].Type.Dims, op.Reduce.Attr(n).Axes))
	if !ok || count == 0 {
		return span{}, false
	}
	switch op.Reduce.Attr(n).Kind {
	case op.Max, op.Min, op.AllTrue, op.AnyTrue:
		return x, true
	case op.Sum:
		return corners(x, span{count, count}, mulInt)
	}
	return span{}, false
}

func unarySpan(n *ir.Node, x span) (span, bool) {
	switch {
	case x.lo == math.MinInt64:
		return span{}, false
	case op.Neg.Is(n):
		return span{-x.hi, -x.lo}, true
	case op.Abs.Is(n) && x.lo >= 0:
		return x, true
	case op.Abs.Is(n):
		return span{0, max(-x.lo, x.hi)}, true
	case op.Not.Is(n) && n.Outs[0].Type.DType == tensor.Bool:
		return span{1 - x.hi, 1 - x.lo}, true
	}
	return span{}, false
}

func binarySpan(n *ir.Node, x, y span) (span, bool) {
	bool2 := n.Outs[0].Type.DType == tensor.Bool
	switch {
	case op.Maximum.Is(n):
		return span{max(x.lo, y.lo), max(x.hi, y.hi)}, true
	case op.Minimum.Is(n):
		return span{min(x.lo, y.lo), min(x.hi, y.hi)}, true
	case op.And.Is(n) && bool2:
		return span{min(x.lo, y.lo), min(x.hi, y.hi)}, true
	case op.Or.Is(n) && bool2:
		return span{max(x.lo, y.lo), max(x.hi, y.hi)}, true
	case bool2:
		return span{}, false
	case op.Add.Is(n):
		return corners(x, y, addInt)
	case op.Sub.Is(n):
		if y.lo == math.MinInt64 {
			return span{}, false
		}
		return corners(x, span{-y.hi, -y.lo}, addInt)
	case op.Mul.Is(n):
		return corners(x, y, mulInt)
	case op.Div.Is(n) && y.lo > 0:
		return corners(x, y, func(a, b int64) (int64, bool) { return a / b, true })
	case op.Rem.Is(n) && y.lo > 0: // the sign of x, smaller than y
		return span{max(min(x.lo, 0), 1-y.hi), min(max(x.hi, 0), y.hi-1)}, true
	case op.And.Is(n) && x.lo >= 0 && y.lo >= 0:
		return span{0, min(x.hi, y.hi)}, true
	case op.ShiftRight.Is(n) && x.lo >= 0:
		return span{0, x.hi}, true
	}
	return span{}, false
}

// corners is the span of a function that is monotonous in both arguments: its bounds are among the values at the bounds.
func corners(x, y span, f func(a, b int64) (int64, bool)) (s span, ok bool) {
	for i, p := range [4][2]int64{{x.lo, y.lo}, {x.lo, y.hi}, {x.hi, y.lo}, {x.hi, y.hi}} {
		v, ok := f(p[0], p[1])
		if !ok {
			return span{}, false
		}
		if i == 0 {
			s = span{v, v}
		}
		s = s.or(span{v, v})
	}
	return s, true
}

// addInt is a + b where it does not overflow.
func addInt(a, b int64) (int64, bool) {
	s := a + b
	return s, (s > a) == (b > 0)
}

// mulInt is a * b where it does not overflow.
func mulInt(a, b int64) (int64, bool) {
	if a == math.MinInt64 || b == math.MinInt64 {
		return 0, a == 0 || b == 0
	}
	hi, lo := bits.Mul64(uint64(max(a, -a)), uint64(max(b, -b)))
	return a * b, hi == 0 && lo <= math.MaxInt64
}
