package pt2

import (
	"math"
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// reduceRules combine or order elements along dimensions. Floats narrower than f32 are summed in f32 and rounded once.
var reduceRules = map[string]rule{
	"sum":                       value(sum),
	"sum.dim_IntList":           value(sum),
	"nansum":                    value(func(c *call) *ir.Value { return c.nanSum(false) }),
	"nanmean":                   value(func(c *call) *ir.Value { return c.nanSum(true) }),
	"sum_to_size":               value(sumToSize),
	"mean":                      value(mean),
	"mean.dim":                  value(mean),
	"prod":                      value(prod),
	"prod.dim_int":              value(prod),
	"amax":                      value(func(c *call) *ir.Value { return c.extreme(op.Max) }),
	"amin":                      value(func(c *call) *ir.Value { return c.extreme(op.Min) }),
	"max":                       value(func(c *call) *ir.Value { return c.extreme(op.Max) }),
	"min":                       value(func(c *call) *ir.Value { return c.extreme(op.Min) }),
	"max.dim":                   values(func(c *call) []*ir.Value { return c.extremeDim(op.Max) }),
	"min.dim":                   values(func(c *call) []*ir.Value { return c.extremeDim(op.Min) }),
	"aminmax":                   values(aminmax),
	"argmax":                    value(func(c *call) *ir.Value { return c.argExtreme(op.Max) }),
	"argmin":                    value(func(c *call) *ir.Value { return c.argExtreme(op.Min) }),
	"any":                       value(func(c *call) *ir.Value { return c.truth(op.AnyTrue) }),
	"any.dim":                   value(func(c *call) *ir.Value { return c.truth(op.AnyTrue) }),
	"any.dims":                  value(func(c *call) *ir.Value { return c.truth(op.AnyTrue) }),
	"all":                       value(func(c *call) *ir.Value { return c.truth(op.AllTrue) }),
	"all.dim":                   value(func(c *call) *ir.Value { return c.truth(op.AllTrue) }),
	"all.dims":                  value(func(c *call) *ir.Value { return c.truth(op.AllTrue) }),
	"_is_all_true":              value(func(c *call) *ir.Value { return c.truth(op.AllTrue) }),
	"_is_any_true":              value(func(c *call) *ir.Value { return c.truth(op.AnyTrue) }),
	"count_nonzero":             value(countNonzero),
	"count_nonzero.dim_IntList": value(countNonzero),
	"var":                       value(func(c *call) *ir.Value { return c.variance()[0] }),
	"var.dim":                   value(func(c *call) *ir.Value { return c.variance()[0] }),
	"var.correction":            value(func(c *call) *ir.Value { return c.variance()[0] }),
	"std":                       value(func(c *call) *ir.Value { return c.deviation()[0] }),
	"std.dim":                   value(func(c *call) *ir.Value { return c.deviation()[0] }),
	"std.correction":            value(func(c *call) *ir.Value { return c.deviation()[0] }),
	"var_mean":                  values((*call).variance),
	"var_mean.dim":              values((*call).variance),
	"var_mean.correction":       values((*call).variance),
	"std_mean":                  values((*call).deviation),
	"std_mean.dim":              values((*call).deviation),
	"std_mean.correction":       values((*call).deviation),
	"hash_tensor":               value(hashTensor),
	"logsumexp":                 value(logsumexp),
	"trace":                     value(trace),
}

// over gives the dimensions that dim names, and keepdim, where the overload has them.
func (c *call) over(rank int) (axes []int64, keep bool) {
	axes = iotaInts(rank)
	if c.schema.param("dim") != nil && c.has("dim") {
		axes = c.axes("dim", rank)
	}
	return axes, c.schema.param("keepdim") != nil && c.bool("keepdim")
}

// count is the number of elements along axes.
func count(t tensor.Type, axes []int64) int64 {
	n := int64(1)
	for _, a := range axes {
		n *= t.Dims[a]
	}
	return n
}

// summedType is the result type of sum and prod: integers and bool become i64.
func (c *call) summedType(d tensor.DType) tensor.DType {
	if d == tensor.Bool || d.IsInt() {
		d = tensor.I64
	}
	return c.dtype("dtype", d)
}

// sum of integers and bools is i64.
func sum(c *call) *ir.Value {
	x := c.val("self")
	axes, keep := c.over(x.Type.Rank())
	return reduce(c.b, op.Sum, c.cast(x, c.summedType(x.Type.DType)), axes, keep)
}

// mean divides the sum before it is rounded.
func mean(c *call) *ir.Value {
	x := c.val("self")
	axes, keep := c.over(x.Type.Rank())
	d := c.dtype("dtype", x.Type.DType)
	if e, open := c.extentOf(x); open && slices.Contains(axes, int64(e.axis)) {
		s := reduce(c.b, op.Sum, c.cast(c.covered(x, e, intScalar(0)), wide(d)), axes, keep)
		n := op.Mul.Make(c.b, e.count, intConst(c.b, tensor.I64, e.scale*count(x.Type, axes)/x.Type.Dims[e.axis]))
		return c.cast(op.Div.Make(c.b, s, op.BroadcastTo(c.b, c.cast(n, s.Type.DType), s.Type.Dims)), d)
	}
	return c.cast(c.meanOf(c.cast(x, wide(d)), axes, keep), d)
}

// meanOf is the mean in x's dtype; NaN over no elements.
func (c *call) meanOf(x *ir.Value, axes []int64, keep bool) *ir.Value {
	s := reduce(c.b, op.Sum, x, axes, keep)
	return op.Div.Make(c.b, s, likeF(c.b, s, float64(count(x.Type, axes))))
}

// prod of integers and bools is i64.
func prod(c *call) *ir.Value {
	x := c.val("self")
	axes, keep := c.over(x.Type.Rank())
	return c.productOver(c.cast(x, c.summedType(x.Type.DType)), axes, keep)
}

// fewFactors bounds the products that are written out.
const fewFactors = 32

// productOver is the product along axes. Below f32 torch rounds after every factor, unlike a sum; a few factors are multiplied like that, one
// after another.
func (c *call) productOver(x *ir.Value, axes []int64, keep bool) *ir.Value {
	n := count(x.Type, axes)
	if wide(x.Type.DType) == x.Type.DType || n < 1 || n > fewFactors {
		return reduce(c.b, op.Prod, x, axes, keep)
	}
	var dims, perm []int64
	for a, size := range x.Type.Dims {
		if !slices.Contains(axes, int64(a)) {
			dims, perm = append(dims, size), append(perm, int64(a))
		}
	}
	last := len(dims)
	flat := reshape(c.b, transpose(c.b, x, append(perm, slices.Sorted(slices.Values(axes))...)), append(slices.Clone(dims), n))
	y := slice(c.b, flat, last, 0, 1, 1)
	for i := int64(1); i < n; i++ {
		y = op.Mul.Make(c.b, y, slice(c.b, flat, last, i, i+1, 1))
	}
	if keep {
		dims = keptDims(x.Type.Dims, axes)
	}
	return reshape(c.b, y, dims)
}

// extreme is the largest or smallest element; of bools by or and and.
func (c *call) extreme(kind op.Reducer) *ir.Value {
	x := c.val("self")
	axes, keep := c.over(x.Type.Rank())
	return c.extremeOf(kind, x, axes, keep)
}

// extremeOf refuses an extreme over nothing, as torch does.
func (c *call) extremeOf(kind op.Reducer, x *ir.Value, axes []int64, keep bool) *ir.Value {
	if count(x.Type, axes) == 0 {
		c.failf("the %s over no elements of %s", kind, x.Type)
	}
	if x.Type.DType == tensor.Bool {
		kind = map[op.Reducer]op.Reducer{op.Max: op.AnyTrue, op.Min: op.AllTrue}[kind]
	}
	return reduce(c.b, kind, x, axes, keep)
}

// extremeDim gives the extreme along dim and the first index that holds it.
func (c *call) extremeDim(kind op.Reducer) []*ir.Value {
	x := c.val("self")
	axis := c.axis("dim", x.Type.Rank())
	if x.Type.Rank() == 0 {
		return []*ir.Value{x, intConst(c.b, tensor.I64, 0)}
	}
	top, at := c.firstExtreme(kind, x, axis)
	return c.dropped(axis, top, at)
}

// firstExtreme gives the extreme along axis, kept with extent 1, and the first index that holds it. NaN counts as the extreme.
func (c *call) firstExtreme(kind op.Reducer, x *ir.Value, axis int) (top, at *ir.Value) {
	axes := []int64{int64(axis)}
	top = c.extremeOf(kind, x, axes, true)
	hit := compare(c.b, op.EQ, x, op.BroadcastTo(c.b, top, x.Type.Dims))
	if x.Type.DType.IsFloat() {
		hit = op.Or.Make(c.b, hit, compare(c.b, op.NE, x, x))
	}
	index := counting(c.b, tensor.I32, x.Type.Dims, axis)
	at = op.Select.Make(c.b, hit, index, like(c.b, index, intScalar(x.Type.Dims[axis])))
	return top, c.cast(reduce(c.b, op.Min, at, axes, true), tensor.I64)
}

// argExtreme is the first index of the extreme, along dim or in the flattened tensor.
func (c *call) argExtreme(kind op.Reducer) *ir.Value {
	x := c.val("self")
	keep := c.bool("keepdim")
	if !c.has("dim") {
		flat := reshape(c.b, x, []int64{x.Type.Elements()})
		_, at := c.firstExtreme(kind, flat, 0)
		dims := []int64{}
		if keep {
			dims = slices.Repeat([]int64{1}, x.Type.Rank())
		}
		return reshape(c.b, at, dims)
	}
	if x.Type.Rank() == 0 {
		return intConst(c.b, tensor.I64, 0)
	}
	axis := c.axis("dim", x.Type.Rank())
	_, at := c.firstExtreme(kind, x, axis)
	return c.dropped(axis, at)[0]
}

// aminmax gives the smallest and the largest element.
func aminmax(c *call) []*ir.Value {
	x := c.val("self")
	axes, keep := c.over(x.Type.Rank())
	return []*ir.Value{c.extremeOf(op.Min, x, axes, keep), c.extremeOf(op.Max, x, axes, keep)}
}

// truth is any or all; of u8 tensors the result is u8.
func (c *call) truth(kind op.Reducer) *ir.Value {
	x := c.val("self")
	axes, keep := c.over(x.Type.Rank())
	y := reduce(c.b, kind, c.cast(x, tensor.Bool), axes, keep)
	if x.Type.DType == tensor.U8 {
		return c.cast(y, tensor.U8)
	}
	return y
}

// countNonzero counts what is not zero, NaN included.
func countNonzero(c *call) *ir.Value {
	x := c.val("self")
	axes, _ := c.over(x.Type.Rank())
	return reduce(c.b, op.Sum, c.cast(c.cast(x, tensor.Bool), tensor.I64), axes, false)
}

// variance gives variance and mean.
func (c *call) variance() []*ir.Value {
	v, mu := c.wideVariance()
	d := c.ref("self").typ.DType
	return []*ir.Value{c.cast(v, d.Real()), c.cast(mu, d)}
}

// wideVariance gives variance and mean, in two passes, in f32 at least. The variance of complex numbers is that of their distances, real.
func (c *call) wideVariance() (v, mu *ir.Value) {
	x := c.val("self")
	axes, keep := c.over(x.Type.Rank())
	correction := 1.0
	if c.schema.param("unbiased") != nil {
		correction = float64(btoi(c.bool("unbiased")))
	} else {
		correction = c.floatOr("correction", 1)
	}
	x = c.cast(x, wide(x.Type.DType))
	mu = c.meanOf(x, axes, true)
	dev := op.Sub.Make(c.b, x, op.BroadcastTo(c.b, mu, x.Type.Dims))
	s := reduce(c.b, op.Sum, realPart(c.b, op.Mul.Make(c.b, dev, conjugate(c.b, dev))), axes, true)
	v = op.Div.Make(c.b, s, likeF(c.b, s, math.Max(float64(count(x.Type, axes))-correction, 0)))
	if !keep {
		dims := slices.Clone(x.Type.Dims)
		for _, a := range slices.Backward(slices.Sorted(slices.Values(axes))) {
			dims = slices.Delete(dims, int(a), int(a)+1)
		}
		v, mu = reshape(c.b, v, dims), reshape(c.b, mu, dims)
	}
	return v, mu
}

// deviation gives standard deviation and mean.
func (c *call) deviation() []*ir.Value {
	v, mu := c.wideVariance()
	d := c.ref("self").typ.DType
	return []*ir.Value{c.cast(op.Sqrt.Make(c.b, v), d.Real()), c.cast(mu, d)}
}

// logsumexp is several operators in torch, each of which rounds.
func logsumexp(c *call) *ir.Value {
	x := c.val("self")
	axes, keep := c.over(x.Type.Rank())
	return c.logSumExp(c.cast(x, floatResult(x.Type.DType)), axes, keep)
}

// logSumExp takes the maximum, of the real parts, out, so that nothing overflows; an infinite maximum stays.
func (c *call) logSumExp(x *ir.Value, axes []int64, keep bool) *ir.Value {
	top := reduce(c.b, op.Max, realPart(c.b, x), axes, true)
	top = op.Select.Make(c.b, compare(c.b, op.EQ, op.Abs.Make(c.b, top), likeF(c.b, top, math.Inf(1))), likeF(c.b, top, 0), top)
	top = c.cast(top, x.Type.DType)
	e := op.Exp.Make(c.b, op.Sub.Make(c.b, x, op.BroadcastTo(c.b, top, x.Type.Dims)))
	y := op.Log.Make(c.b, reduce(c.b, op.Sum, e, axes, keep))
	return op.Add.Make(c.b, y, reshape(c.b, top, y.Type.Dims))
}

// dtype2 is dtype for overloads that may lack the argument.
func (c *call) dtype2(name string, dflt tensor.DType) tensor.DType {
	if c.schema.param(name) == nil {
		return dflt
	}
	return c.dtype(name, dflt)
}

// trace sums the main diagonal of a matrix.
func trace(c *call) *ir.Value {
	x := c.val("self")
	if x.Type.Rank() != 2 {
		c.failf("self is %s, wanted rank 2", x.Type)
	}
	dims := x.Type.Dims
	on := compare(c.b, op.EQ, counting(c.b, tensor.I64, dims, 0), counting(c.b, tensor.I64, dims, 1))
	x = c.cast(x, c.summedType2(x.Type.DType))
	return reduce(c.b, op.Sum, op.Select.Make(c.b, on, x, likeF(c.b, x, 0)), []int64{0, 1}, false)
}

// summedType2 is summedType for overloads without a dtype argument.
func (c *call) summedType2(d tensor.DType) tensor.DType {
	if d == tensor.Bool || d.IsInt() {
		return tensor.I64
	}
	return d
}

// nanSum sums what is not NaN, or takes its mean.
func (c *call) nanSum(mean bool) *ir.Value {
	x := c.val("self")
	axes, keep := c.over(x.Type.Rank())
	d := c.summedType(x.Type.DType)
	x = c.cast(x, wide(d))
	if !x.Type.DType.IsFloat() {
		return reduce(c.b, op.Sum, x, axes, keep)
	}
	nan := compare(c.b, op.NE, x, x)
	s := reduce(c.b, op.Sum, op.Select.Make(c.b, nan, likeF(c.b, x, 0), x), axes, keep)
	if mean {
		s = op.Div.Make(c.b, s, reduce(c.b, op.Sum, c.cast(op.Not.Make(c.b, nan), x.Type.DType), axes, keep))
	}
	return c.cast(s, d)
}

// sumToSize undoes broadcasting by sums.
func sumToSize(c *call) *ir.Value {
	x, size := c.val("self"), c.ints("size")
	lead := x.Type.Rank() - len(size)
	if lead < 0 {
		c.failf("size is %v for %s", size, x.Type)
	}
	var axes []int64
	for d := range x.Type.Rank() {
		if d < lead || size[d-lead] == 1 && x.Type.Dims[d] != 1 {
			axes = append(axes, int64(d))
		}
	}
	if len(axes) > 0 || len(size) == 0 {
		x = c.cast(x, c.summedType2(x.Type.DType))
	}
	return reshape(c.b, reduce(c.b, op.Sum, x, axes, false), size)
}

// hashTensor is the exclusive or of the elements' bits along dim, as u64: of floats as f64, of integers and bools as i64.
func hashTensor(c *call) *ir.Value {
	x := c.val("self")
	if mode := c.int("mode"); mode != 0 {
		c.unsupported("mode %d", mode)
	}
	axes, keep := c.over(x.Type.Rank())
	if x.Type.DType.IsFloat() {
		x = op.Bitcast.Make(c.b, op.BitcastAttr{To: tensor.I64}, c.cast(x, tensor.F64))
	}
	x = c.cast(x, tensor.I64)
	dims := reduce(c.b, op.Max, x, axes, keep).Type.Dims
	// The dimensions to combine as one at the end, halved until one element is left.
	rest := slices.DeleteFunc(iotaInts(x.Type.Rank()), func(a int64) bool { return slices.Contains(axes, a) })
	n := count(x.Type, axes)
	rows := count(x.Type, rest)
	x = reshape(c.b, transpose(c.b, x, slices.Concat(rest, slices.Sorted(slices.Values(axes)))), []int64{rows, n})
	if n == 0 {
		return splat(c.b, tensor.U64, intScalar(0), dims)
	}
	for n > 1 {
		half := n / 2
		y := op.Xor.Make(c.b, slice(c.b, x, 1, 0, half, 1), slice(c.b, x, 1, half, 2*half, 1))
		if n%2 == 1 {
			y = concat(c.b, 1, y, slice(c.b, x, 1, n-1, n, 1))
		}
		x, n = y, half+n%2
	}
	return reshape(c.b, c.cast(x, tensor.U64), dims)
}
