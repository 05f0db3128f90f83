package op

import (
	"math/bits"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// GroupedDotAttr is the attribute struct of GroupedDot.
type GroupedDotAttr struct {
	Transposed bool `ir:"transposed"` // w is [E, N, K]
}

// GroupedDot multiplies consecutive groups of x's rows [M, K] by one matrix each of w [E, K, N], which gives [M, N]: the experts of a
// mixture, over rows sorted by expert (aten::_grouped_mm, transformers::grouped_mm_fallback). offsets [E] are integers: group e ends before row
// offsets[e] and begins where the one before it ends. They are clamped to 0 .. M, and one that lies before its predecessor's counts as
// equal to it. Rows beyond the last group give 0, where torch leaves them undefined or 0. x and w are of one float dtype; floats below
// f32 accumulate in f32.
var GroupedDot = define(Def[GroupedDotAttr]{
	Name: "grouped_dot", Doc: "Multiplies consecutive groups of rows by one matrix each.", Args: "x w offsets",
	Infer: inferGroupedDot, Decompose: decomposeGroupedDot, Eval: evalGroupedDot,
	Cost: func(n *ir.Node, _ GroupedDotAttr) ir.Cost {
		return ir.Cost{Flops: 2 * n.Outs[0].Type.Elements() * n.Args[0].Type.Dims[1]}
	},
})

// inferGroupedDot checks ranks in 1, dtypes in 2 and 5, and extents in 3 and 4.
func inferGroupedDot(in []tensor.Type, a GroupedDotAttr) ([]tensor.Type, error) {
	x, w, o := in[0], in[1], in[2]
	if x.Rank() != 2 || w.Rank() != 3 || o.Rank() != 1 {
		return nil, fail(1, "x is %s, w %s and offsets %s, wanted ranks 2, 3 and 1", x, w, o)
	}
	if !x.DType.IsFloat() || w.DType != x.DType {
		return nil, fail(2, "x is %s, w is %s, wanted one float dtype", x, w)
	}
	k, n := w.Dims[1], w.Dims[2]
	if a.Transposed {
		k, n = n, k
	}
	switch {
	case k != x.Dims[1]:
		return nil, fail(3, "x has %d columns, the matrices of w %d rows, wanted as many", x.Dims[1], k)
	case o.Dims[0] != w.Dims[0]:
		return nil, fail(4, "%d offsets for %d matrices, wanted one each", o.Dims[0], w.Dims[0])
	case !o.DType.IsInt() || o.DType.Bits() < 32:
		return nil, fail(5, "offsets are %s, wanted integers of 32 bits or more", o)
	}
	return one(x.WithDims(x.Dims[0], n))
}

// decomposeGroupedDot is a loop over tiles of rows, as many as the groups need at run time: each takes its matrix out of w, multiplies a
// tile of x by it, and replaces the rows that belong to its group. Work is that of M rows and at most a tile more a group; no matrix is
// held twice. It is one program for every target: XLA on TPU has a ragged product of its own, on CPU it has none.
func decomposeGroupedDot(b *ir.Builder, n *ir.Node, a GroupedDotAttr) []*ir.Value {
	x, w, out := n.Args[0], n.Args[1], n.Outs[0].Type
	m, e := x.Type.Dims[0], w.Type.Dims[0]
	if out.Elements() == 0 || x.Type.Elements() == 0 || e == 0 {
		return []*ir.Value{Splat(b, out, 0)}
	}
	tile := groupTile(m, e)
	per := tensor.Make(tensor.I32, e)
	offsets := n.Args[2] // clamped before they are narrowed
	offsets = Maximum.Make(b, Minimum.Make(b, offsets, Splat(b, offsets.Type, float64(m))), Splat(b, offsets.Type, 0))
	ends := runningMax(b, Cast(b, offsets, tensor.I32))
	zero := Splat(b, tensor.Make(tensor.I32), 0)
	starts := Pad.Make(b, PadAttr{Low: []int64{1}, High: []int64{-1}, Interior: []int64{0}}, ends, zero)
	size := Splat(b, per, float64(tile))
	tiles := Div.Make(b, Add.Make(b, Sub.Make(b, ends, starts), Splat(b, per, float64(tile-1))), size)
	upTo := CumSum.Make(b, CumSumAttr{}, tiles) // tiles of this group and all before it
	// Tile t of all begins at row first[its group] + t*tile.
	first := Sub.Make(b, starts, Mul.Make(b, Sub.Make(b, upTo, tiles), size))
	total := reshape(b, Slice.Make(b, SliceAttr{Start: []int64{e - 1}, Limit: []int64{e}, Stride: []int64{1}}, upTo))
	init := []*ir.Value{zero, Splat(b, out, 0), total, x, w, upTo, first, ends}
	more, step := groupedLoop(init, tile, a, b)
	return While.MakeAll(b, WhileAttr{Cond: more, Body: step}, init...)[1:2]
}

// groupTile is the rows of a tile: about those of a group, as a power of two from 8, the sublanes of a vector register, to 128.
func groupTile(m, e int64) int64 {
	mean := uint64((m + e - 1) / e)
	return min(max(int64(1)<<bits.Len64(mean-1), 8), 128, m)
}

// groupedLoop gives condition and body over the state: tile number, result, number of tiles, x, w, and by group the tiles up to its end, its
// first row less its tiles before, its end.
func groupedLoop(state []*ir.Value, tile int64, a GroupedDotAttr, at *ir.Builder) (more, step *ir.Func) {
	more, step = &ir.Func{Name: "more"}, &ir.Func{Name: "tile"}
	var p []*ir.Value
	for i, name := range []string{"t", "y", "total", "x", "w", "up_to", "first", "ends"} {
		more.AddParam(name, state[i].Type)
		p = append(p, step.AddParam(name, state[i].Type))
	}
	mb := &ir.Builder{Loc: at.Loc}
	more.Results = []*ir.Value{Compare.Make(mb, CompareAttr{Dir: LT}, more.Params[0], more.Params[2])}
	more.Body = mb.Body

	b := &ir.Builder{Loc: at.Loc}
	t, y, x, w, upTo, first, ends := p[0], p[1], p[3], p[4], p[5], p[6], p[7]
	scalar := tensor.Make(tensor.I32)
	zero := Splat(b, scalar, 0)
	number := func(v *ir.Value, g *ir.Value) *ir.Value {
		return reshape(b, DynamicSlice.Make(b, DynamicSliceAttr{Sizes: []int64{1}}, v, g))
	}
	past := Compare.Make(b, CompareAttr{Dir: LE}, upTo, BroadcastTo(b, t, upTo.Type.Dims))
	group := Reduce.Make(b, ReduceAttr{Kind: Sum, Axes: []int64{0}}, Cast(b, past, tensor.I32))
	lo := Add.Make(b, number(first, group), Mul.Make(b, t, Splat(b, scalar, float64(tile))))
	hi := number(ends, group)
	row := Minimum.Make(b, lo, Splat(b, scalar, float64(x.Type.Dims[0]-tile)))
	rows := DynamicSlice.Make(b, DynamicSliceAttr{Sizes: []int64{tile, x.Type.Dims[1]}}, x, row, zero)
	matrix := DynamicSlice.Make(b, DynamicSliceAttr{Sizes: []int64{1, w.Type.Dims[1], w.Type.Dims[2]}}, w, group, zero, zero)
	matrix = reshape(b, matrix, w.Type.Dims[1:]...)
	side := int64(0)
	if a.Transposed {
		side = 1
	}
	part := Dot.Make(b, DotAttr{Contract: [][]int64{{1}, {side}}}, rows, matrix)
	old := DynamicSlice.Make(b, DynamicSliceAttr{Sizes: part.Type.Dims}, y, row, zero)
	places := Iota.Make(b, IotaAttr{Type: tensor.Make(tensor.I32, tile)})
	places = Add.Make(b, places, BroadcastTo(b, row, places.Type.Dims))
	mine := And.Make(b, Compare.Make(b, CompareAttr{Dir: GE}, places, BroadcastTo(b, lo, places.Type.Dims)),
		Compare.Make(b, CompareAttr{Dir: LT}, places, BroadcastTo(b, hi, places.Type.Dims)))
	part = Select.Make(b, Broadcast.Make(b, BroadcastAttr{Shape: part.Type.Dims, Dims: []int64{0}}, mine), part, old)
	y = DynamicUpdateSlice.Make(b, y, part, row, zero)
	step.Results = append([]*ir.Value{Add.Make(b, t, Splat(b, scalar, 1)), y}, p[2:]...)
	step.Body = b.Body
	return more, step
}

// evalGroupedDot multiplies row by row in float64 and rounds once.
func evalGroupedDot(in []*tensor.Tensor, a GroupedDotAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
	x, w, t := in[0].Floats(), in[1].Floats(), out[0]
	m, k, n := t.Dims[0], in[0].Dims[1], t.Dims[1]
	y := make([]float64, t.Elements())
	row := int64(0)
	for g, end := range in[2].Ints() {
		if in[2].DType == tensor.U64 && end < 0 {
			end = m
		}
		for ; row < min(end, m); row++ {
			for j := range n {
				for i := range k {
					at := (int64(g)*k+i)*n + j
					if a.Transposed {
						at = (int64(g)*n+j)*k + i
					}
					y[row*n+j] += x[row*k+i] * w[at]
				}
			}
		}
	}
	return result(tensor.FromFloats(t, y))
}
