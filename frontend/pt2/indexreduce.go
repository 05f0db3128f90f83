package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// indexReduceRules combine elements by where an index or lengths put them.
var indexReduceRules = map[string]rule{
	"index_reduce":   value(indexReduce),
	"segment_reduce": value(segmentReduce),
}

// neutral is the element that changes nothing under a reduction.
func neutral(kind op.Reducer, d tensor.DType) scalar {
	return map[op.Reducer]scalar{op.Sum: intScalar(0), op.Prod: intScalar(1), op.Max: lowest(d), op.Min: highest(d)}[kind]
}

// indexReduce combines slices of source along dim at a 1-d index, with self's elements or without them where something is put.
func indexReduce(c *call) *ir.Value {
	x := c.val("self")
	src := c.cast(c.val("source"), x.Type.DType)
	mean := c.str("reduce") == "mean"
	kind := op.Sum
	if !mean {
		kind = c.reducer("reduce")
	}
	base := x
	if !c.bool("include_self") {
		base = c.indexed(op.Set, x, like(c.b, src, neutral(kind, x.Type.DType)))
	}
	y := c.indexed(kind, base, src)
	if !mean {
		return y
	}
	n := likeF(c.b, x, 1)
	if !c.bool("include_self") {
		n = c.indexed(op.Set, n, likeF(c.b, src, 0))
	}
	n = c.indexed(op.Sum, n, likeF(c.b, src, 1))
	if !x.Type.DType.IsFloat() {
		return floorDivision(c.b, []*ir.Value{y, n})
	}
	return op.Div.Make(c.b, y, n)
}

// maxSegments bounds the pairs of segments and elements, which are compared each with each.
const maxSegments = 1 << 26

// segmentReduce combines consecutive segments along axis, whose lengths or offsets are given for each place before axis. An empty segment is
// initial, by default the neutral element, and NaN for the mean.
func segmentReduce(c *call) *ir.Value {
	x := c.val("data")
	axis := c.axis("axis", x.Type.Rank())
	if x.Type.Rank() == 0 || c.has("indices") {
		c.unsupported("segments of %s by indices", x.Type)
	}
	var from, to *ir.Value // [lead..., segments]
	switch {
	case c.has("lengths"):
		n := c.cast(c.val("lengths"), tensor.I64)
		if n.Type.Rank() != axis+1 {
			c.failf("lengths are %s for axis %d", n.Type, axis)
		}
		to = op.CumSum.Make(c.b, op.CumSumAttr{Axis: int64(axis)}, n)
		from = op.Sub.Make(c.b, to, n)
	case c.has("offsets"):
		o := c.cast(c.val("offsets"), tensor.I64)
		if o.Type.Rank() != axis+1 || o.Type.Dims[axis] < 1 {
			c.failf("offsets are %s for axis %d", o.Type, axis)
		}
		n := o.Type.Dims[axis]
		from, to = slice(c.b, o, axis, 0, n-1, 1), slice(c.b, o, axis, 1, n, 1)
	default:
		c.failf("neither lengths nor offsets are given")
	}
	if !slices.Equal(from.Type.Dims[:axis], x.Type.Dims[:axis]) {
		c.failf("lengths or offsets are %s for data %s", from.Type, x.Type)
	}
	// Every segment against every element: [lead..., segments, elements, rest...].
	dims := slices.Concat(from.Type.Dims, x.Type.Dims[axis:])
	if tensor.Make(tensor.Bool, dims...).Check() != nil || tensor.Make(tensor.Bool, dims...).Elements() > maxSegments {
		c.unsupported("%d segments of %s", from.Type.Dims[axis], x.Type)
	}
	ends := func(v *ir.Value) *ir.Value {
		return op.Broadcast.Make(c.b, op.BroadcastAttr{Shape: dims, Dims: iotaInts(axis + 1)}, v)
	}
	at := counting(c.b, tensor.I64, dims, axis+1)
	in := op.And.Make(c.b, compare(c.b, op.GE, at, ends(from)), compare(c.b, op.LT, at, ends(to)))
	place := slices.Delete(iotaInts(len(dims)), axis, axis+1)
	all := op.Broadcast.Make(c.b, op.BroadcastAttr{Shape: dims, Dims: place}, c.cast(x, wide(x.Type.DType)))
	word := c.str("reduce")
	kind, ok := map[string]op.Reducer{"sum": op.Sum, "mean": op.Sum, "prod": op.Prod, "max": op.Max, "min": op.Min}[word]
	if !ok {
		c.unsupported("reduction %q", clip(word))
	}
	none := neutral(kind, all.Type.DType)
	y := reduce(c.b, kind, op.Select.Make(c.b, in, all, like(c.b, all, none)), []int64{int64(axis + 1)}, false)
	if c.has("initial") {
		p := map[op.Reducer]op.Plain{op.Sum: op.Add, op.Prod: op.Mul, op.Max: op.Maximum, op.Min: op.Minimum}[kind]
		y = p.Make(c.b, y, like(c.b, y, c.scalar("initial")))
	}
	if word == "mean" {
		n := reduce(c.b, op.Sum, c.cast(in, y.Type.DType), []int64{int64(axis + 1)}, false)
		q := op.Div.Make(c.b, y, n)
		if c.has("initial") {
			q = op.Select.Make(c.b, compare(c.b, op.EQ, n, likeF(c.b, n, 0)), y, q)
		}
		y = q
	}
	return c.cast(y, x.Type.DType)
}
