package padproof

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir"
	"tpuc/ir/eval"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// extent is c * n^p for the size n of a program.
type extent struct{ c, p int64 }

func (e extent) at(n int64) int64 {
	out := e.c
	for range e.p {
		out *= n
	}
	return out
}

// generator builds one random program for several sizes: what it chooses depends on the seed and on extents as expressions, never on the size.
type generator struct {
	*rand.Rand
	n      int64
	b      *ir.Builder
	values []generated // f32
	ids    []generated // i64
}

type generated struct {
	v    *ir.Value
	dims []extent
}

func shape(dims []extent, n int64) []int64 {
	out := make([]int64, len(dims))
	for i, e := range dims {
		out[i] = e.at(n)
	}
	return out
}

// program is the program of a seed for size n.
func program(seed uint64, n int64, steps int) *ir.Module {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), n: n, b: &ir.Builder{}}
	m := &ir.Module{Func: &ir.Func{Name: "main"}}
	param := func(name string, d tensor.DType, dims ...extent) generated {
		return generated{m.Func.AddParam(name, tensor.Make(d, shape(dims, n)...)), dims}
	}
	N := extent{1, 1}
	g.values = []generated{
		param("x", tensor.F32, N, extent{4, 0}), param("y", tensor.F32, extent{2, 0}, N, extent{4, 0}), param("z", tensor.F32, extent{4, 0}, extent{3, 0}),
		param("v", tensor.F32, extent{2, 1}), param("w", tensor.F32, extent{2, 0}, extent{3, 0}, N),
	}
	g.ids = []generated{param("i", tensor.I64, N), param("j", tensor.I64, extent{2, 0})}
	for range steps {
		g.step()
	}
	m.Func.Body = g.b.Body
	for range 1 + g.IntN(3) {
		m.Func.Results = append(m.Func.Results, g.values[len(g.values)-1-g.IntN(min(4, len(g.values)))].v)
	}
	return m
}

// step applies one more operator.
func (g *generator) step() {
	x := g.values[len(g.values)-1]
	if g.IntN(2) == 0 {
		x = g.values[g.IntN(len(g.values))]
	}
	rank := len(x.dims)
	kind := g.IntN(len(generators))
	axis := g.IntN(max(rank, 1))
	if rank == 0 || (tensor.Type{Dims: shape(x.dims, 7)}).Elements() > 4000 {
		return
	}
	if out, ok := generators[kind](g, x, axis); ok {
		g.values = append(g.values, out)
	}
}

// ones are strides of 1.
func ones(n int) []int64 { return slices.Repeat([]int64{1}, n) }

func (g *generator) splat(dims []extent, v float64) *ir.Value {
	return op.Splat(g.b, tensor.Make(tensor.F32, shape(dims, g.n)...), v)
}

// partner is a value of x's shape, made by the program where possible.
func (g *generator) partner(x generated) *ir.Value {
	var fit []*ir.Value
	for _, y := range g.values {
		if slices.Equal(x.dims, y.dims) {
			fit = append(fit, y.v)
		}
	}
	return fit[g.IntN(len(fit))]
}

// replaced is dims with another extent along axis.
func replaced(dims []extent, axis int, e ...extent) []extent {
	return slices.Concat(dims[:axis], e, dims[axis+1:])
}

// start is a 0-d index: a literal, or an input's element.
func (g *generator) start() *ir.Value {
	if g.IntN(2) == 0 {
		return op.Constant.Make(g.b, op.ConstantAttr{Value: tensor.ScalarInt(tensor.I64, int64(g.IntN(4)))})
	}
	s := op.Slice.Make(g.b, op.SliceAttr{Start: []int64{0}, Limit: []int64{1}, Stride: []int64{1}}, g.ids[1].v)
	return op.Reshape.Make(g.b, op.ReshapeAttr{Shape: []int64{}}, s)
}

// generators make one operator, or several that belong together. They say no where it does not fit.
var generators = []func(g *generator, x generated, axis int) (generated, bool){
	func(g *generator, x generated, _ int) (generated, bool) {
		return generated{op.Add.Make(g.b, x.v, g.partner(x)), x.dims}, true
	},
	func(g *generator, x generated, _ int) (generated, bool) {
		return generated{op.Mul.Make(g.b, x.v, g.partner(x)), x.dims}, true
	},
	func(g *generator, x generated, _ int) (generated, bool) {
		return generated{op.Tanh.Make(g.b, x.v), x.dims}, true
	},
	func(g *generator, x generated, axis int) (generated, bool) { // positions
		t := x.v.Type
		at := op.Iota.Make(g.b, op.IotaAttr{Type: t, Axis: int64(axis)})
		return generated{op.Add.Make(g.b, x.v, at), x.dims}, true
	},
	func(g *generator, x generated, axis int) (generated, bool) { // a mask
		at := op.Iota.Make(g.b, op.IotaAttr{Type: x.v.Type.WithDType(tensor.I64), Axis: int64(axis)})
		two := op.Splat(g.b, at.Type, 2)
		keep := op.Compare.Make(g.b, op.CompareAttr{Dir: op.LT}, at, two)
		return generated{op.Select.Make(g.b, keep, x.v, g.splat(x.dims, 0)), x.dims}, true
	},
	func(g *generator, x generated, axis int) (generated, bool) {
		perm := g.Perm(len(x.dims))
		var dims []extent
		var p []int64
		for _, d := range perm {
			dims, p = append(dims, x.dims[d]), append(p, int64(d))
		}
		return generated{op.Transpose.Make(g.b, op.TransposeAttr{Perm: p}, x.v), dims}, true
	},
	mergeAxes, mergeAxes, mergeAxes,
	func(g *generator, x generated, axis int) (generated, bool) { // split
		e := x.dims[axis]
		var parts []extent
		switch {
		case e.p == 1 && e.c > 1:
			parts = []extent{{e.c, 0}, {1, 1}}
		case e.p == 2:
			parts = []extent{{e.c, 1}, {1, 1}}
		case e.c%2 == 0 && e.p == 0:
			parts = []extent{{2, 0}, {e.c / 2, 0}}
		default:
			return generated{}, false
		}
		if g.IntN(2) == 0 {
			slices.Reverse(parts)
		}
		dims := replaced(x.dims, axis, parts...)
		return generated{op.Reshape.Make(g.b, op.ReshapeAttr{Shape: shape(dims, g.n)}, x.v), dims}, len(dims) <= 5
	},
	func(g *generator, x generated, axis int) (generated, bool) {
		return generated{op.Reverse.Make(g.b, op.ReverseAttr{Axes: []int64{int64(axis)}}, x.v), x.dims}, true
	},
	func(g *generator, x generated, axis int) (generated, bool) { // from the start, or all but the last
		limit, dims := slices.Clone(x.v.Type.Dims), slices.Clone(x.dims)
		start, stride := make([]int64, len(limit)), ones(len(limit))
		switch e := x.dims[axis]; {
		case e == extent{2, 1} && g.IntN(2) == 0:
			stride[axis], dims[axis] = 2, extent{1, 1}
		case e == extent{2, 1}:
			start[axis], dims[axis] = g.n, extent{1, 1}
		case e.p == 0 && e.c < 2:
			return generated{}, false
		case g.IntN(3) == 0:
			start[axis] = limit[axis] - 1
			dims[axis] = extent{1, 0}
		default:
			limit[axis], dims[axis] = 2, extent{2, 0}
		}
		return generated{op.Slice.Make(g.b, op.SliceAttr{Start: start, Limit: limit, Stride: stride}, x.v), dims}, true
	},
	func(g *generator, x generated, axis int) (generated, bool) { // a shift by padding
		low, high := make([]int64, len(x.dims)), make([]int64, len(x.dims))
		switch g.IntN(3) {
		case 0:
			low[axis], high[axis] = 1, -1
		case 1:
			low[axis], high[axis] = -1, 1
		case 2: // to twice the extent
			high[axis] = x.v.Type.Dims[axis]
			x.dims = replaced(x.dims, axis, extent{2 * x.dims[axis].c, x.dims[axis].p})
		}
		zero := op.Constant.Make(g.b, op.ConstantAttr{Value: tensor.Scalar(tensor.F32, 0)})
		return generated{op.Pad.Make(g.b, op.PadAttr{Low: low, High: high, Interior: make([]int64, len(low))}, x.v, zero), x.dims}, true
	},
	func(g *generator, x generated, axis int) (generated, bool) {
		e := x.dims[axis]
		return generated{op.Concat.Make(g.b, op.ConcatAttr{Axis: int64(axis)}, x.v, g.partner(x)), replaced(x.dims, axis, extent{2 * e.c, e.p})}, e.c < 8
	},
	func(g *generator, x generated, axis int) (generated, bool) {
		kind := []op.Reducer{op.Sum, op.Max}[g.IntN(2)]
		return generated{op.Reduce.Make(g.b, op.ReduceAttr{Kind: kind, Axes: []int64{int64(axis)}}, x.v), replaced(x.dims, axis)}, true
	},
	func(g *generator, x generated, axis int) (generated, bool) {
		return generated{op.Softmax.Make(g.b, op.SoftmaxAttr{Axis: int64(axis)}, x.v), x.dims}, true
	},
	func(g *generator, x generated, axis int) (generated, bool) {
		return generated{op.CumSum.Make(g.b, op.CumSumAttr{Axis: int64(axis), Reverse: g.IntN(2) == 0}, x.v), x.dims}, true
	},
	func(g *generator, x generated, axis int) (generated, bool) {
		dims := slices.Insert(slices.Clone(x.dims), axis, extent{2, 0})
		var at []int64
		for d := range int64(len(dims)) {
			if d != int64(axis) {
				at = append(at, d)
			}
		}
		return generated{op.Broadcast.Make(g.b, op.BroadcastAttr{Shape: shape(dims, g.n), Dims: at}, x.v), dims}, len(dims) <= 4
	},
	func(g *generator, x generated, axis int) (generated, bool) { // a window that looks back, or ahead
		n := len(x.dims)
		a := op.ReduceWindowAttr{Kind: op.Sum, Window: ones(n), Strides: ones(n), Dilation: ones(n), Padding: slices.Repeat([][]int64{{0, 0}}, n)}
		a.Window[axis], a.Padding[axis] = 2, [][]int64{{1, 0}, {0, 1}}[g.IntN(2)]
		return generated{op.ReduceWindow.Make(g.b, a, x.v), x.dims}, true
	},
	func(g *generator, x generated, axis int) (generated, bool) { // with a random other along one extent
		for range 8 {
			y := g.values[g.IntN(len(g.values))]
			for d, e := range y.dims {
				if e == x.dims[axis] && len(x.dims)+len(y.dims) <= 6 {
					a := op.DotAttr{Contract: [][]int64{{int64(axis)}, {int64(d)}}}
					return generated{op.Dot.Make(g.b, a, x.v, y.v), slices.Concat(replaced(x.dims, axis), replaced(y.dims, d))}, true
				}
			}
		}
		return generated{}, false
	},
	func(g *generator, x generated, axis int) (generated, bool) { // a batch dimension
		y := g.partner(x)
		rest := others(len(x.dims), []int64{int64(axis)})
		if len(rest) == 0 {
			return generated{}, false
		}
		c := rest[g.IntN(len(rest))]
		a := op.DotAttr{Batch: [][]int64{{int64(axis)}, {int64(axis)}}, Contract: [][]int64{{c}, {c}}}
		dims := []extent{x.dims[axis]}
		for range 2 {
			for _, d := range rest {
				if d != c {
					dims = append(dims, x.dims[d])
				}
			}
		}
		return generated{op.Dot.Make(g.b, a, x.v, y), dims}, len(dims) <= 5
	},
	func(g *generator, x generated, axis int) (generated, bool) { // indices that are inputs
		ids := g.ids[g.IntN(2)]
		return generated{op.Take.Make(g.b, op.TakeAttr{Axis: int64(axis)}, x.v, ids.v), replaced(x.dims, axis, ids.dims...)}, true
	},
	func(g *generator, x generated, axis int) (generated, bool) { // indices that are known
		ids := op.Iota.Make(g.b, op.IotaAttr{Type: tensor.Make(tensor.I64, x.v.Type.Dims[axis])})
		if g.IntN(2) == 0 { // beyond the end
			ids = op.Add.Make(g.b, ids, op.Splat(g.b, ids.Type, 1))
		}
		return generated{op.Take.Make(g.b, op.TakeAttr{Axis: int64(axis)}, x.v, ids), x.dims}, true
	},
	func(g *generator, x generated, axis int) (generated, bool) {
		sizes, dims := slices.Clone(x.v.Type.Dims), slices.Clone(x.dims)
		sizes[axis], dims[axis] = 1, extent{1, 0}
		args := []*ir.Value{x.v}
		for range dims {
			args = append(args, g.start())
		}
		return generated{op.DynamicSlice.Make(g.b, op.DynamicSliceAttr{Sizes: sizes}, args...), dims}, true
	},
	func(g *generator, x generated, axis int) (generated, bool) {
		size := slices.Clone(x.v.Type.Dims)
		size[axis] = 1
		u := op.Slice.Make(g.b, op.SliceAttr{Start: make([]int64, len(size)), Limit: size, Stride: ones(len(size))}, g.partner(x))
		args := []*ir.Value{x.v, u}
		for range size {
			args = append(args, g.start())
		}
		return generated{op.DynamicUpdateSlice.Make(g.b, args...), x.dims}, true
	},
	func(g *generator, x generated, axis int) (generated, bool) { // rows of the first dimension at indices that are inputs
		ids := g.ids[g.IntN(2)]
		rest := x.dims[1:]
		u := g.splat(slices.Concat(ids.dims, rest), 3)
		a := op.ScatterAttr{InsertedWindowDims: []int64{0}, ScatterDimsToOperandDims: []int64{0}, IndexVectorDim: 1, Kind: []op.Reducer{op.Set, op.Sum}[g.IntN(2)]}
		for d := range rest {
			a.UpdateWindowDims = append(a.UpdateWindowDims, int64(d+1))
		}
		return generated{op.Scatter.Make(g.b, a, x.v, ids.v, u), x.dims}, true
	},
	func(g *generator, x generated, axis int) (generated, bool) {
		return generated{op.Sort.Make(g.b, op.SortAttr{Axis: int64(axis), Stable: true}, x.v), x.dims}, true
	},
	func(g *generator, x generated, axis int) (generated, bool) {
		return generated{op.TopK.MakeAll(g.b, op.TopKAttr{K: 1, Axis: int64(axis), Largest: g.IntN(2) == 0}, x.v)[0], replaced(x.dims, axis, extent{1, 0})}, true
	},
	func(g *generator, x generated, axis int) (generated, bool) { // batch, channels, positions
		if len(x.dims) != 3 || x.dims[1].p > 0 {
			return generated{}, false
		}
		w := g.splat([]extent{{2, 0}, x.dims[1], {2, 0}}, 0.5)
		a := op.ConvAttr{Strides: []int64{1}, Padding: [][]int64{{0, 1}}, LhsDilation: []int64{1}, RhsDilation: []int64{1}, Groups: 1}
		return generated{op.Conv.Make(g.b, a, x.v, w), replaced(x.dims, 1, extent{2, 0})}, true
	},
	func(g *generator, x generated, axis int) (generated, bool) {
		z := op.Complex.Make(g.b, x.v, x.v)
		n := int64(len(x.dims))
		y := op.FFT.Make(g.b, op.FFTAttr{Kind: op.FFTForward, Length: x.v.Type.Dims[n-1:]}, z)
		return generated{op.Real.Make(g.b, y), x.dims}, true
	},
	func(g *generator, x generated, axis int) (generated, bool) { // an index for each row of the first dimension
		if len(x.dims) < 2 || x.dims[0] != (extent{1, 1}) {
			return generated{}, false
		}
		a := op.GatherAttr{CollapsedSliceDims: []int64{1}, OperandBatchingDims: []int64{0}, StartIndicesBatchingDims: []int64{0}, StartIndexMap: []int64{1}, IndexVectorDim: 1,
			SliceSizes: slices.Clone(x.v.Type.Dims)}
		a.SliceSizes[0], a.SliceSizes[1] = 1, 1
		dims := slices.Concat(x.dims[:1], x.dims[2:])
		for d := 1; d < len(dims); d++ {
			a.OffsetDims = append(a.OffsetDims, int64(d))
			if d == len(dims)-1 && a.SliceSizes[d+1] > 1 && g.IntN(2) == 0 && dims[d].p == 0 { // a part of the last
				a.SliceSizes[d+1], dims[d] = 2, extent{2, 0}
			}
		}
		return generated{op.Gather.Make(g.b, a, x.v, g.ids[0].v), dims}, true
	},
	func(g *generator, x generated, axis int) (generated, bool) { // a row at an index, and the first element of the last dimension alone
		last := len(x.dims) - 1
		if len(x.dims) < 2 {
			return generated{}, false
		}
		a := op.GatherAttr{CollapsedSliceDims: []int64{0}, StartIndexMap: []int64{0}, IndexVectorDim: 1, SliceSizes: slices.Clone(x.v.Type.Dims)}
		a.SliceSizes[0], a.SliceSizes[last] = 1, 1
		ids := g.ids[g.IntN(2)]
		dims := slices.Concat(ids.dims, x.dims[1:last], []extent{{1, 0}})
		for d := 1; d < len(dims); d++ {
			a.OffsetDims = append(a.OffsetDims, int64(d))
		}
		return generated{op.Gather.Make(g.b, a, x.v, ids.v), dims}, true
	},
	func(g *generator, x generated, axis int) (generated, bool) { // an element for each row of the first dimension
		if len(x.dims) < 2 || x.dims[0] != (extent{1, 1}) {
			return generated{}, false
		}
		u := op.Reduce.Make(g.b, op.ReduceAttr{Kind: op.Max, Axes: []int64{1}}, g.partner(x))
		a := op.ScatterAttr{InsertedWindowDims: []int64{1}, InputBatchingDims: []int64{0}, ScatterIndicesBatchingDims: []int64{0}, ScatterDimsToOperandDims: []int64{1},
			IndexVectorDim: 1, Kind: []op.Reducer{op.Set, op.Sum}[g.IntN(2)]}
		for d := 1; d < len(x.dims)-1; d++ {
			a.UpdateWindowDims = append(a.UpdateWindowDims, int64(d))
		}
		return generated{op.Scatter.Make(g.b, a, x.v, g.ids[0].v, u), x.dims}, true
	},
	func(g *generator, x generated, axis int) (generated, bool) { // the larger of pairs by a function
		fn := &ir.Func{Name: "larger"}
		f, i := tensor.Make(tensor.F32), tensor.Make(tensor.I64)
		av, ai, bv, bi := fn.AddParam("av", f), fn.AddParam("ai", i), fn.AddParam("bv", f), fn.AddParam("bi", i)
		b := &ir.Builder{}
		first := op.Compare.Make(b, op.CompareAttr{Dir: op.GE}, av, bv)
		fn.Results = []*ir.Value{op.Select.Make(b, first, av, bv), op.Select.Make(b, first, ai, bi)}
		fn.Body = b.Body
		at := op.Iota.Make(g.b, op.IotaAttr{Type: x.v.Type.WithDType(tensor.I64), Axis: int64(axis)})
		low := op.Constant.Make(g.b, op.ConstantAttr{Value: tensor.Scalar(tensor.F32, -1e9)})
		none := op.Constant.Make(g.b, op.ConstantAttr{Value: tensor.ScalarInt(tensor.I64, -1)})
		out := op.ReduceBy.MakeAll(g.b, op.ReduceByAttr{Fn: fn, Axes: []int64{int64(axis)}}, x.v, at, low, none)
		return generated{op.Cast(g.b, out[1], tensor.F32), replaced(x.dims, axis)}, true
	},
	func(g *generator, x generated, axis int) (generated, bool) { // between, and every other back
		n := len(x.dims)
		interior, low := make([]int64, n), make([]int64, n)
		e := x.dims[axis]
		if e.c > 4 {
			return generated{}, false
		}
		interior[axis] = 1
		high := slices.Clone(low)
		high[axis] = 1 // 2n elements
		zero := op.Constant.Make(g.b, op.ConstantAttr{Value: tensor.Scalar(tensor.F32, 0)})
		return generated{op.Pad.Make(g.b, op.PadAttr{Low: low, High: high, Interior: interior}, x.v, zero), replaced(x.dims, axis, extent{2 * e.c, e.p})}, true
	},
	func(g *generator, x generated, axis int) (generated, bool) {
		return generated{op.Barrier.Make(g.b, x.v), x.dims}, true
	},
	func(g *generator, x generated, axis int) (generated, bool) { // a literal that depends on the size
		return generated{op.Mul.Make(g.b, x.v, g.splat(x.dims, 1/float64(g.n))), x.dims}, g.IntN(4) == 0
	},
	func(g *generator, x generated, axis int) (generated, bool) { // three steps of a loop
		f := func(name string, body func(b *ir.Builder, i, v *ir.Value) []*ir.Value) *ir.Func {
			fn := &ir.Func{Name: name}
			i, v := fn.AddParam("i", tensor.Make(tensor.I64)), fn.AddParam("v", x.v.Type)
			b := &ir.Builder{}
			fn.Results = body(b, i, v)
			fn.Body = b.Body
			return fn
		}
		one := func(b *ir.Builder, v int64) *ir.Value {
			return op.Constant.Make(b, op.ConstantAttr{Value: tensor.ScalarInt(tensor.I64, v)})
		}
		again := f("again", func(b *ir.Builder, i, _ *ir.Value) []*ir.Value {
			return []*ir.Value{op.Compare.Make(b, op.CompareAttr{Dir: op.LT}, i, one(b, 3))}
		})
		mode := g.IntN(3)
		body := f("body", func(b *ir.Builder, i, v *ir.Value) []*ir.Value {
			switch mode {
			case 0:
				v = op.Tanh.Make(b, v)
			case 1:
				v = op.Reverse.Make(b, op.ReverseAttr{Axes: []int64{int64(axis)}}, v)
			case 2:
				v = op.CumSum.Make(b, op.CumSumAttr{Axis: int64(axis)}, v)
			}
			return []*ir.Value{op.Add.Make(b, i, one(b, 1)), v}
		})
		return generated{op.While.MakeAll(g.b, op.WhileAttr{Cond: again, Body: body}, one(g.b, 0), x.v)[1], x.dims}, true
	},
	func(g *generator, x generated, axis int) (generated, bool) { // a branch by an input
		branch := func(name string, turn bool) *ir.Func {
			fn := &ir.Func{Name: name}
			v := fn.AddParam("v", x.v.Type)
			b := &ir.Builder{}
			if turn {
				v = op.Reverse.Make(b, op.ReverseAttr{Axes: []int64{int64(axis)}}, v)
			} else {
				v = op.Neg.Make(b, v)
			}
			fn.Body, fn.Results = b.Body, []*ir.Value{v}
			return fn
		}
		p := op.Compare.Make(g.b, op.CompareAttr{Dir: op.LT}, g.start(), op.Splat(g.b, tensor.Make(tensor.I64), 2))
		return generated{op.Cond.Make(g.b, op.CondAttr{Then: branch("then", g.IntN(2) == 0), Else: branch("else", g.IntN(2) == 0)}, p, x.v), x.dims}, true
	},
}

// mergeAxes joins a dimension with the next.
func mergeAxes(g *generator, x generated, axis int) (generated, bool) {
	if axis+1 >= len(x.dims) {
		return generated{}, false
	}
	e := extent{x.dims[axis].c * x.dims[axis+1].c, x.dims[axis].p + x.dims[axis+1].p}
	dims := slices.Concat(x.dims[:axis], []extent{e}, x.dims[axis+2:])
	return generated{op.Reshape.Make(g.b, op.ReshapeAttr{Shape: shape(dims, g.n)}, x.v), dims}, e.p <= 2
}

// sized is the program of a seed, or nil where it does not exist for so small a size.
func sized(seed uint64, n int64, steps int) (m *ir.Module) {
	var err error
	defer func() {
		if err != nil {
			m = nil
		}
	}()
	defer ir.Recover(nil, &err)
	return program(seed, n, steps)
}

// search looks at random programs: how many are proved and refused, and the first proof that the evaluator contradicts.
func search(programs int, steps func(seed uint64) int) (proofs, refusals int, wrong error) {
	for seed := range uint64(programs) {
		large, small := program(seed, 7, steps(seed)), sized(seed, []int64{3, 6, 1, 2}[seed%4], steps(seed))
		if small == nil {
			continue
		}
		if Prove(large, small) != nil {
			refusals++
			continue
		}
		proofs++
		if err := compare(large, small, seed, eval.Options{}); err != nil {
			return proofs, refusals, fmt.Errorf("seed %d: %w", seed, err)
		}
	}
	return proofs, refusals, nil
}

func TestRandomPrograms(t *testing.T) {
	programs := 6000
	if testing.Short() {
		programs = 600
	}
	proofs, refusals, wrong := search(programs, func(seed uint64) int { return 1 + int(seed%9) })
	require.NoError(t, wrong)
	t.Logf("%d proofs, %d refusals", proofs, refusals)
	require.Greater(t, proofs, programs/10)
	require.Greater(t, refusals, programs/10)
}

// TestWrongRules makes one rule after another one that says that results are as if nothing were padded, and wants random programs to show it.
func TestWrongRules(t *testing.T) {
	believe := func(a *application) ([]state, error) { return a.whole(), nil }
	for o, rule := range rules {
		if o == op.Opaque.Op || o == op.OpaqueEffect.Op || o == op.Iota.Op || o == op.Complex.Op || o == op.Real.Op || o == op.Imag.Op {
			continue // not evaluated, not made above, or right: positions begin alike, and parts are elementwise
		}
		t.Run(o.Name, func(t *testing.T) {
			rules[o] = believe
			defer func() { rules[o] = rule }()
			_, _, wrong := search(100000, func(seed uint64) int { return 1 + int(seed%12) })
			require.Error(t, wrong, "no program shows that the rule is wrong")
		})
	}
}

// TestEveryOperator demands a rule, or a reason to have none, for each operator of the table.
func TestEveryOperator(t *testing.T) {
	for _, o := range op.All {
		n := 0
		for _, has := range []bool{rules[o] != nil, rules[o] == nil && o.Traits&ir.Elementwise != 0, rules[o] == nil && o.Traits&ir.Elementwise == 0 && o.Composite()} {
			if has {
				n++
			}
		}
		require.Equal(t, 1, n, "%s has no rule: what does padding do to it?", o.Name)
	}
}
