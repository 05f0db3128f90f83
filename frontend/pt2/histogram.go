package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// histogramRules count elements in bins.
var histogramRules = map[string]rule{
	"histc":                 value(histc),
	"histogram.bin_ct":      values(func(c *call) []*ir.Value { return c.histogram([]binning{{count: c.int("bins")}}) }),
	"histogram.bins_tensor": values(func(c *call) []*ir.Value { return c.histogram([]binning{{edges: c.val("bins")}}) }),
	"histogramdd": values(func(c *call) []*ir.Value {
		return c.histogram(binnings(c.ints("bins")))
	}),
	"histogramdd.int_bins": values(func(c *call) []*ir.Value {
		return c.histogram(binnings(slices.Repeat([]int64{c.int("bins")}, int(c.points()))))
	}),
	"histogramdd.TensorList_bins":   values(func(c *call) []*ir.Value { return c.histogram(edged(c.vals("bins"))) }),
	"_histogramdd_bin_edges":        values(func(c *call) []*ir.Value { return c.histogram(binnings(c.ints("bins")))[1:] }),
	"_histogramdd_from_bin_cts":     value(func(c *call) *ir.Value { return c.histogram(binnings(c.ints("bins")))[0] }),
	"_histogramdd_from_bin_tensors": value(func(c *call) *ir.Value { return c.histogram(edged(c.vals("bins")))[0] }),
	"bincount":                      value(binCount),
}

// maxBins bounds the bins of a histogram, and their number times the elements where each is compared with each.
const maxBins = 1 << 28

// binning is the bins of one dimension: their edges, or a number of equal ones.
type binning struct {
	edges *ir.Value // [bins + 1], ascending
	count int64
}

func binnings(counts []int64) []binning {
	out := make([]binning, len(counts))
	for i, n := range counts {
		out[i].count = n
	}
	return out
}

func edged(edges []*ir.Value) []binning {
	out := make([]binning, len(edges))
	for i, e := range edges {
		out[i].edges = e
	}
	return out
}

// points is the number of coordinates of a point: the extent of self's last dimension.
func (c *call) points() int64 {
	t := c.ref("self").typ
	if t.Rank() < 2 || t.Dims[t.Rank()-1] > tensor.MaxRank {
		c.failf("self is %s, wanted points along the last dimension", t)
	}
	return t.Dims[t.Rank()-1]
}

// histogram counts elements of self, for several dimensions points along its last one, in bins that hold their lower edge, the last also its
// upper one, and gives the edges. Elements outside of the bins do not count. With weight it adds those up; with density it divides by their sum
// and the bins' sizes.
func (c *call) histogram(bins []binning) []*ir.Value {
	x := c.val("self")
	d := x.Type.DType
	if c.schema.param("bins").typ == "int" && len(bins) == 1 || len(bins) == 1 && c.op == "histogram.bins_tensor" {
		x = reshape(c.b, x, []int64{x.Type.Elements(), 1})
	} else if c.points() != int64(len(bins)) {
		c.failf("bins of %d dimensions for %s", len(bins), x.Type)
	}
	n := x.Type.Elements() / max(int64(len(bins)), 1)
	x = reshape(c.b, x, []int64{n, int64(len(bins))})
	var dims []int64
	var ids, in *ir.Value
	edges := make([]*ir.Value, len(bins))
	for i, bin := range bins {
		v := reshape(c.b, slice(c.b, x, 1, int64(i), int64(i)+1, 1), []int64{n})
		edges[i] = bin.edges
		if bin.edges == nil {
			edges[i] = c.binEdges(v, bin.count, i)
		}
		if e := edges[i].Type; e.Rank() != 1 || e.Dims[0] < 2 || e.Dims[0] > maxBins/max(n, 1) {
			c.failf("edges of bins are %s for %d elements", e, n)
		}
		k := edges[i].Type.Dims[0] - 1
		dims = append(dims, k)
		first, last := slice(c.b, edges[i], 0, 0, 1, 1), slice(c.b, edges[i], 0, k, k+1, 1)
		spread := func(e *ir.Value) *ir.Value { return op.BroadcastTo(c.b, e, v.Type.Dims) }
		within := op.And.Make(c.b, compare(c.b, op.GE, v, spread(first)), compare(c.b, op.LE, v, spread(last)))
		at := c.search(edges[i], v, true, false)
		at = c.clampTo(op.Sub.Make(c.b, at, like(c.b, at, intScalar(1))), intScalar(0), intScalar(k-1))
		if i == 0 {
			ids, in = at, within
			continue
		}
		ids = op.Add.Make(c.b, op.Mul.Make(c.b, ids, like(c.b, ids, intScalar(k))), at)
		in = op.And.Make(c.b, in, within)
	}
	t := tensor.Make(d, dims...)
	if err := t.Check(); err != nil || t.Elements() > maxBins {
		c.unsupported("bins of %v", dims)
	}
	w := splat(c.b, d, intScalar(1), []int64{n})
	if g := c.opt("weight"); g != nil {
		if g.Type.Elements() != n {
			c.failf("weight is %s for %d elements", g.Type, n)
		}
		w = reshape(c.b, c.cast(g, d), []int64{n})
	}
	w = op.Select.Make(c.b, in, w, likeF(c.b, w, 0))
	zeros := splat(c.b, d, intScalar(0), []int64{t.Elements()})
	hist := reshape(c.b, c.scatterAlong(op.Sum, zeros, ids, w, 0), dims)
	if c.bool("density") {
		total := reduce(c.b, op.Sum, hist, iotaInts(len(dims)), false)
		hist = op.Div.Make(c.b, hist, op.BroadcastTo(c.b, total, dims))
		for i, e := range edges {
			size := op.Sub.Make(c.b, slice(c.b, e, 0, 1, dims[i]+1, 1), slice(c.b, e, 0, 0, dims[i], 1))
			hist = op.Div.Make(c.b, hist, along(c.b, c.cast(size, d), dims, i))
		}
	}
	return append([]*ir.Value{hist}, edges...)
}

// binEdges are those of count equal bins over the argument range, whose entries 2i and 2i+1 are of dimension i, or over the elements of v.
func (c *call) binEdges(v *ir.Value, count int64, dim int) *ir.Value {
	if count < 1 || count > maxBins {
		c.failf("%d bins, wanted 1 or more", count)
	}
	f := fb{c.b, c}
	lo, hi := constant(c.b, v.Type.DType, floatScalar(0)), constant(c.b, v.Type.DType, floatScalar(1))
	if r := c.floats("range"); len(r) > 0 {
		if len(r) < 2*dim+2 {
			c.failf("range has %d numbers, wanted two for each dimension", len(r))
		}
		lo, hi = f.c(lo, r[2*dim]), f.c(hi, r[2*dim+1])
	} else if v.Type.Elements() > 0 {
		lo, hi = reduce(c.b, op.Min, v, []int64{0}, false), reduce(c.b, op.Max, v, []int64{0}, false)
	}
	same := compare(c.b, op.EQ, lo, hi)
	lo, hi = op.Select.Make(c.b, same, f.sub(lo, f.c(lo, 0.5)), lo), op.Select.Make(c.b, same, f.add(hi, f.c(hi, 0.5)), hi)
	return c.evenly(lo, hi, count+1)
}

// evenly is n numbers from lo to hi, the first half counted from lo and the others from hi, as linspace counts them.
func (c *call) evenly(lo, hi *ir.Value, n int64) *ir.Value {
	f, dims := fb{c.b, c}, []int64{n}
	i := counting(c.b, tensor.I64, dims, 0)
	step := op.Div.Make(c.b, f.sub(hi, lo), f.c(lo, float64(n-1)))
	steps := func(k *ir.Value) *ir.Value {
		return f.mul(c.cast(k, lo.Type.DType), op.BroadcastTo(c.b, step, dims))
	}
	up := f.add(op.BroadcastTo(c.b, lo, dims), steps(i))
	down := f.sub(op.BroadcastTo(c.b, hi, dims), steps(op.Sub.Make(c.b, like(c.b, i, intScalar(n-1)), i)))
	return op.Select.Make(c.b, compare(c.b, op.LT, i, like(c.b, i, intScalar(n/2))), up, down)
}

// binCount counts each number below the length of the result, which a constant must decide.
func binCount(c *call) *ir.Value {
	x := c.val("self")
	ids := c.knownInts("self")
	n := c.int("minlength")
	for _, k := range ids {
		if k < 0 || k >= maxBins {
			c.failf("self holds %d, wanted 0 to %d", k, maxBins-1)
		}
		n = max(n, k+1)
	}
	if n < 0 || n > maxBins {
		c.failf("minlength is %d, wanted 0 to %d", n, maxBins)
	}
	w := splat(c.b, tensor.I64, intScalar(1), x.Type.Dims)
	if g := c.opt("weights"); g != nil {
		if w = g; g.Type.DType != tensor.F32 {
			w = c.cast(g, tensor.F64)
		}
	}
	return c.scatterAlong(op.Sum, splat(c.b, w.Type.DType, intScalar(0), []int64{n}), c.cast(x, tensor.I64), w, 0)
}

// histc counts elements in bins of equal width between min and max; elements outside are left out. Equal bounds mean the range of
// the data.
func histc(c *call) *ir.Value {
	x, bins := c.val("self"), c.int("bins")
	d := x.Type.DType
	n := x.Type.Elements()
	if bins < 1 || bins > (1<<40)/max(n, 1) {
		c.failf("%d bins for %s", bins, x.Type)
	}
	if n == 0 {
		return splat(c.b, d, intScalar(0), []int64{bins})
	}
	flat := c.cast(reshape(c.b, x, []int64{n}), wide(floatResult(d)))
	f := fb{c.b, c}
	lo, hi := f.c(flat, c.float("min")), f.c(flat, c.float("max"))
	if c.float("min") == c.float("max") {
		lo = op.BroadcastTo(c.b, reduce(c.b, op.Min, flat, []int64{0}, true), flat.Type.Dims)
		hi = op.BroadcastTo(c.b, reduce(c.b, op.Max, flat, []int64{0}, true), flat.Type.Dims)
		same := compare(c.b, op.EQ, lo, hi)
		lo, hi = op.Select.Make(c.b, same, f.sub(lo, f.c(lo, 1)), lo), op.Select.Make(c.b, same, f.add(hi, f.c(hi, 1)), hi)
	}
	at := op.Floor.Make(c.b, f.scale(op.Div.Make(c.b, f.sub(flat, lo), f.sub(hi, lo)), float64(bins)))
	at = f.min(at, float64(bins-1)) // the last bin holds max itself
	in := op.And.Make(c.b, compare(c.b, op.GE, flat, lo), compare(c.b, op.LE, flat, hi))
	grid := []int64{bins, n}
	bin := c.cast(counting(c.b, tensor.I32, grid, 0), at.Type.DType)
	hit := op.And.Make(c.b, compare(c.b, op.EQ, bin, along(c.b, at, grid, 1)), along(c.b, in, grid, 1))
	return c.cast(reduce(c.b, op.Sum, c.cast(hit, tensor.I32), []int64{1}, false), d)
}
