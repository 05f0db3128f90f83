package op

import (
	"math"
	"slices"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// Filter says how Resize makes an element of its result.
type Filter string

// Filters. The last two widen the filter where the result is smaller, as Pillow does.
const (
	NearestFilter  Filter = "nearest"   // the element at floor(o * scale)
	ExactFilter    Filter = "exact"     // the element at floor((o + 1/2) * scale)
	LinearFilter   Filter = "linear"    // of the two around the position
	CubicFilter    Filter = "cubic"     // of four, by Keys' convolution with a = -0.75
	LinearAAFilter Filter = "linear_aa" // a triangle
	CubicAAFilter  Filter = "cubic_aa"  // Keys' convolution with a = -0.5
)

// ResizeAttr is the attribute struct of Resize. Sizes and Scale have an entry for each of the last dimensions of x that change.
type ResizeAttr struct {
	Filter Filter    `ir:"filter"`
	Sizes  []int64   `ir:"sizes"` // of the result
	Scale  []float64 `ir:"scale"` // elements of x for one of the result
	Align  bool      `ir:"align"` // element o stands at o * scale, so that corners stay; otherwise at (o + 1/2) * scale - 1/2
}

// Resize samples the last dimensions of x at other sizes, one after another, edges repeated (aten::upsample_* and aten::_upsample_*_aa). The nearest ones
// take any dtype, the others floats, computed in f32 at least and rounded once, and u8, whose weights have 15 bits and which
// are rounded after every dimension, the last first (aten/src/ATen/native/cpu/UpSampleKernel.cpp, compute_index_ranges_int16_weights). The decomposition
// multiplies by matrices, where an infinity or NaN reaches its whole line.
var Resize = define(Def[ResizeAttr]{
	Name: "resize", Doc: "Samples the last dimensions at other sizes.", Args: "x",
	Infer: inferResize, Decompose: decomposeResize, Eval: evalResize,
	Cost: func(n *ir.Node, a ResizeAttr) ir.Cost {
		var c ir.Cost
		dims := slices.Clone(n.Args[0].Type.Dims)
		for i, size := range a.Sizes {
			axis := len(dims) - len(a.Sizes) + i
			extent := dims[axis]
			dims[axis] = size
			if !a.nearest() {
				c.Flops += 2 * extent * product(dims)
			}
		}
		return c
	},
})

// MaxResize bounds the weights of one dimension.
const MaxResize = 1 << 22

// Weights is the number of weights that take a dimension from extent n to o: a matrix, or a place for each where the filter takes the nearest.
// It saturates.
func (a ResizeAttr) Weights(n, o int64) int64 {
	if a.nearest() || n == 0 {
		return o
	}
	if o > math.MaxInt64/n {
		return math.MaxInt64
	}
	return n * o
}

// nearest reports filters that take single elements.
func (a ResizeAttr) nearest() bool { return a.Filter == NearestFilter || a.Filter == ExactFilter }

// inferResize checks the filter in 1, sizes in 2, scales in 3, the dtype in 4 and extents in 5.
func inferResize(in []tensor.Type, a ResizeAttr) ([]tensor.Type, error) {
	x := in[0]
	if !slices.Contains([]Filter{NearestFilter, ExactFilter, LinearFilter, CubicFilter, LinearAAFilter, CubicAAFilter}, a.Filter) {
		return nil, fail(1, "filter %q, wanted nearest, exact, linear, cubic, linear_aa or cubic_aa", a.Filter)
	}
	if len(a.Sizes) > x.Rank() || len(a.Scale) != len(a.Sizes) {
		return nil, fail(2, "%d sizes and %d scales for rank %d, wanted as many, of the last dimensions", len(a.Sizes), len(a.Scale), x.Rank())
	}
	for i, s := range a.Scale {
		if !(s >= 0 && s <= 1<<31) {
			return nil, fail(3, "scale %d is %v, wanted 0 to 2^31", i, s)
		}
	}
	if !a.nearest() && x.DType != tensor.U8 && !x.DType.IsFloat() {
		return nil, fail(4, "dtype %s, wanted float or u8 for filter %s", x.DType, a.Filter)
	}
	dims := slices.Clone(x.Dims)
	for i, size := range a.Sizes {
		axis := x.Rank() - len(a.Sizes) + i
		if dims[axis] == 0 || size < 0 || a.Weights(dims[axis], size) > MaxResize {
			return nil, fail(5, "dimension %d of %s to size %d, wanted one that is not empty and at most %d weights", axis, x, size, MaxResize)
		}
		dims[axis] = size
	}
	return one(x.WithDims(dims...))
}

// places are the elements that a nearest filter takes along dimension i of extent n, computed in f32 as torch does.
func (a ResizeAttr) places(i int, n int64) []int64 {
	shift := float32(0)
	if a.Filter == ExactFilter {
		shift = 0.5
	}
	ids := make([]int64, a.Sizes[i])
	for o := range ids {
		ids[o] = min(int64(math.Floor(float64((float32(o)+shift)*float32(a.Scale[i])))), n-1)
	}
	return ids
}

// weights are the rows [size, n] of weights along dimension i of extent n.
func (a ResizeAttr) weights(i int, n int64) [][]float64 {
	rows := make([][]float64, a.Sizes[i])
	for o := range rows {
		rows[o] = make([]float64, n)
		scale := a.Scale[i]
		s := (float64(o)+0.5)*scale - 0.5
		if a.Align {
			s = float64(o) * scale
		}
		switch a.Filter {
		case LinearFilter:
			linearWeights(rows[o], s)
		case CubicFilter:
			cubicWeights(rows[o], s)
		case LinearAAFilter:
			antialiased(rows[o], o, scale, 1, func(x float64) float64 { return max(1-math.Abs(x), 0) })
		case CubicAAFilter:
			antialiased(rows[o], o, scale, 2, func(x float64) float64 { return keys(x, -0.5) })
		}
	}
	return rows
}

// linearWeights are of the two elements around s.
func linearWeights(row []float64, s float64) {
	last := len(row) - 1
	s = max(s, 0)
	i := min(int(s), last)
	t := min(max(s-float64(i), 0), 1)
	row[i] += 1 - t
	row[min(i+1, last)] += t
}

// cubicWeights are of the four elements around s.
func cubicWeights(row []float64, s float64) {
	first := math.Floor(s)
	for k := -1.0; k <= 2; k++ {
		at := min(max(int(first+k), 0), len(row)-1)
		row[at] += keys(s-first-k, -0.75)
	}
}

// antialiased are of all elements that a filter of the support reaches around element o, widened by a scale above 1, with a sum of 1.
func antialiased(row []float64, o int, scale, support float64, filter func(float64) float64) {
	widening := max(scale, 1)
	center := scale * (float64(o) + 0.5)
	from := max(int(center-support*widening+0.5), 0)
	to := min(int(center+support*widening+0.5), len(row))
	total := 0.0
	for k := from; k < to; k++ {
		row[k] = filter((float64(k) - center + 0.5) / widening)
		total += row[k]
	}
	for k := range row {
		if total != 0 {
			row[k] /= total
		}
	}
}

// keys is Keys' cubic convolution kernel of support 2 with parameter a.
func keys(x, a float64) float64 {
	x = math.Abs(x)
	switch {
	case x <= 1:
		return ((a+2)*x-(a+3))*x*x + 1
	case x < 2:
		return (((x-5)*x+8)*x - 4) * a
	}
	return 0
}

// fixedPoint makes weights whole numbers of as many bits as 15 allow, which it returns.
func fixedPoint(rows [][]float64) (bits int) {
	top := 0.0
	for _, r := range rows {
		top = max(top, slices.Max(r))
	}
	for bits < 22 && int64(0.5+top*float64(int64(2)<<bits)) < 1<<15 {
		bits++
	}
	for _, r := range rows {
		for k := range r {
			r[k] = math.Round(r[k] * float64(int64(1)<<bits))
		}
	}
	return bits
}

// order are the places among Sizes in the order in which the dimensions are resized.
func (a ResizeAttr) order(d tensor.DType) []int {
	order := make([]int, len(a.Sizes))
	for i := range order {
		order[i] = i
	}
	if d == tensor.U8 && !a.nearest() {
		slices.Reverse(order)
	}
	return order
}

func decomposeResize(b *ir.Builder, n *ir.Node, a ResizeAttr) []*ir.Value {
	x, d := n.Args[0], n.Outs[0].Type.DType
	fixed := d == tensor.U8
	switch {
	case a.nearest():
	case fixed:
		x = Cast(b, x, tensor.I32)
	default:
		x = widen(b, x)
	}
	for _, i := range a.order(d) {
		axis := x.Type.Rank() - len(a.Sizes) + i
		extent := x.Type.Dims[axis]
		switch {
		case a.nearest():
			x = pickAlong(b, x, axis, a.places(i, extent))
		case fixed:
			rows := a.weights(i, extent)
			bits := fixedPoint(rows)
			x = MulAlong(b, x, axis, rows)
			x = Add.Make(b, x, Splat(b, x.Type, float64(int64(1)<<bits>>1)))
			x = ShiftRight.Make(b, x, Splat(b, x.Type, float64(bits)))
			x = Maximum.Make(b, Minimum.Make(b, x, Splat(b, x.Type, 255)), Splat(b, x.Type, 0))
		default:
			x = MulAlong(b, x, axis, a.weights(i, extent))
		}
	}
	return []*ir.Value{Cast(b, x, d)}
}

// pickAlong takes the elements ids along axis; whole repetitions of all of them are a broadcast.
func pickAlong(b *ir.Builder, x *ir.Value, axis int, ids []int64) *ir.Value {
	n, o := x.Type.Dims[axis], int64(len(ids))
	repeats := o%n == 0 && o > 0
	for k, id := range ids {
		repeats = repeats && id == int64(k)/(o/n)
	}
	switch {
	case repeats && n == o:
		return x
	case repeats:
		full := slices.Insert(slices.Clone(x.Type.Dims), axis+1, o/n)
		dims := slices.Delete(count(0, len(full)), axis+1, axis+2)
		return reshape(b, Broadcast.Make(b, BroadcastAttr{Shape: full, Dims: dims}, x), with(x.Type.Dims, int64(axis), o)...)
	}
	places := Constant.Make(b, ConstantAttr{Value: tensor.FromInts(tensor.Make(tensor.I64, o), ids)})
	return Take.Make(b, TakeAttr{Axis: int64(axis)}, x, places)
}

// MulAlong multiplies dimension axis of x by a matrix [out, in] given by rows.
func MulAlong(b *ir.Builder, x *ir.Value, axis int, rows [][]float64) *ir.Value {
	m := tensor.FromFloats(tensor.Make(x.Type.DType, int64(len(rows)), x.Type.Dims[axis]), slices.Concat(rows...))
	y := Dot.Make(b, DotAttr{Contract: [][]int64{{int64(axis)}, {1}}}, x, Constant.Make(b, ConstantAttr{Value: m})) // the dimension comes last
	last := x.Type.Rank() - 1
	if axis == last {
		return y
	}
	return Transpose.Make(b, TransposeAttr{Perm: slices.Insert(count(0, last), axis, int64(last))}, y)
}

// evalResize works line by line in float64 and rounds once, but for u8.
func evalResize(in []*tensor.Tensor, a ResizeAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
	x := in[0]
	if a.nearest() {
		for i := range a.Sizes {
			axis := int64(x.Rank() - len(a.Sizes) + i)
			ids := a.places(i, x.Dims[axis])
			x = take(x, tensor.FromInts(tensor.Make(tensor.I64, int64(len(ids))), ids), axis, x.WithDims(with(x.Dims, axis, a.Sizes[i])...))
		}
		return result(x)
	}
	v, dims := x.Floats(), x.Dims
	for _, i := range a.order(x.DType) {
		axis := int64(len(dims) - len(a.Sizes) + i)
		rows := a.weights(i, dims[axis])
		finish := func(sum float64) float64 { return sum }
		if x.DType == tensor.U8 {
			bits := fixedPoint(rows)
			finish = func(sum float64) float64 {
				return min(max(math.Floor((sum+float64(int64(1)<<bits>>1))/float64(int64(1)<<bits)), 0), 255)
			}
		}
		outer, inner := product(dims[:axis]), product(dims[axis+1:])
		next := make([]float64, 0, outer*inner*a.Sizes[i])
		for o := range outer {
			for _, row := range rows {
				for k := range inner {
					sum := 0.0
					for j, w := range row {
						if w != 0 {
							sum += w * v[(o*dims[axis]+int64(j))*inner+k]
						}
					}
					next = append(next, finish(sum))
				}
			}
		}
		v, dims = next, with(dims, axis, a.Sizes[i])
	}
	return result(tensor.FromFloats(out[0], v))
}
