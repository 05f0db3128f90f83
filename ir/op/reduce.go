package op

import (
	"math"
	"slices"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// Reducer names an associative combination.
type Reducer string

// Reducers. Max and Min propagate NaN; AllTrue and AnyTrue are for bool.
const (
	Sum     Reducer = "sum"
	Prod    Reducer = "prod"
	Max     Reducer = "max"
	Min     Reducer = "min"
	AllTrue Reducer = "and"
	AnyTrue Reducer = "or"
)

// ReduceAttr is the attribute struct of Reduce.
type ReduceAttr struct {
	Kind Reducer `ir:"kind"`
	Axes []int64 `ir:"axes"` // ascending; they are dropped
}

// Reduce combines the elements along Axes, starting from the reducer's identity (StableHLO reduce).
// Floats below f32 accumulate in f32. A maximum or minimum over no elements is -inf or +inf, or the integer type's bound.
var Reduce = define(Def[ReduceAttr]{
	Name: "reduce", Doc: "Combines the elements along axes.", Args: "x",
	Infer: inferReduce, Lower: lowerReduce, Eval: evalReduce,
	Cost: func(n *ir.Node, _ ReduceAttr) ir.Cost { return ir.Cost{Flops: n.Args[0].Type.Elements()} },
})

// reducers is the table of combinations: domain, StableHLO operation, identity and functions.
var reducers = map[Reducer]struct {
	domain   domain
	hlo      string
	identity func(d tensor.DType) *tensor.Tensor
	fn       *scalar2
}{
	Sum:     {numbers, "stablehlo.add", func(d tensor.DType) *tensor.Tensor { return tensor.Scalar(d, 0) }, &addFn},
	Prod:    {numbers, "stablehlo.multiply", func(d tensor.DType) *tensor.Tensor { return tensor.Scalar(d, 1) }, &mulFn},
	Max:     {ints | floats, "stablehlo.maximum", func(d tensor.DType) *tensor.Tensor { return bound(d, false) }, &maxFn},
	Min:     {ints | floats, "stablehlo.minimum", func(d tensor.DType) *tensor.Tensor { return bound(d, true) }, &minFn},
	AllTrue: {bools, "stablehlo.and", func(d tensor.DType) *tensor.Tensor { return tensor.Scalar(d, 1) }, &andFn},
	AnyTrue: {bools, "stablehlo.or", func(d tensor.DType) *tensor.Tensor { return tensor.Scalar(d, 0) }, &orFn},
}

// bound is the largest or smallest value of d: infinities where it has them.
func bound(d tensor.DType, largest bool) *tensor.Tensor {
	if d.IsFloat() {
		v := math.Inf(-1)
		if largest {
			v = math.Inf(1)
		}
		return tensor.Scalar(d, v)
	}
	lo, hi := d.IntRange()
	if largest {
		return tensor.ScalarInt(d, hi)
	}
	return tensor.ScalarInt(d, lo)
}

// inferReduce checks the kind in 1, its dtypes in 2 and the axes in 3.
func inferReduce(in []tensor.Type, a ReduceAttr) ([]tensor.Type, error) {
	x := in[0]
	r, ok := reducers[a.Kind]
	switch {
	case !ok:
		return nil, fail(1, "kind %q, wanted sum, prod, max, min, and, or", a.Kind)
	case !r.domain.has(x.DType):
		return nil, fail(2, "dtype %s, wanted %s for %s", x.DType, r.domain, a.Kind)
	}
	for i, d := range a.Axes {
		if d < 0 || d >= int64(x.Rank()) || i > 0 && d <= a.Axes[i-1] {
			return nil, fail(3, "axes are %v, wanted ascending dimensions of rank %d", a.Axes, x.Rank())
		}
	}
	var dims []int64
	for _, d := range free(x.Rank(), a.Axes) {
		dims = append(dims, x.Dims[d])
	}
	return one(x.WithDims(dims...))
}

func lowerReduce(e ir.Emitter, n *ir.Node, a ReduceAttr) []ir.Ref {
	r := reducers[a.Kind]
	x, out := e.Value(n.Args[0]), n.Outs[0].Type
	// XLA may accumulate in the element type: widen what is narrower than f32.
	acc := out.DType
	if acc.IsFloat() && acc.Bits() < 32 {
		acc = tensor.F32
		x = emitConvert(e, x, acc)
	}
	init := emitConstant(e, r.identity(acc))
	scalar := tensor.Make(acc)
	y := e.Emit(ir.HLO{Name: "stablehlo.reduce", Args: []ir.Ref{x, init}, Attrs: []string{"dimensions = " + i64Array(a.Axes)},
		Regions: []ir.Region{{Args: []tensor.Type{scalar, scalar}, Body: func(e ir.Emitter, args []ir.Ref) []ir.Ref {
			return e.Emit(ir.HLO{Name: r.hlo, Args: args, Out: []tensor.Type{scalar}})
		}}}, Out: []tensor.Type{out.WithDType(acc)}})[0]
	return []ir.Ref{emitConvert(e, y, out.DType)}
}

// emitConstant emits a literal.
func emitConstant(e ir.Emitter, x *tensor.Tensor) ir.Ref {
	return e.Emit(ir.HLO{Name: "stablehlo.constant", Attrs: []string{"value = " + Dense(x)}, Out: []tensor.Type{x.Type}})[0]
}

// emitConvert emits a conversion between numeric types, or nothing.
func emitConvert(e ir.Emitter, x ir.Ref, d tensor.DType) ir.Ref {
	if x.Type.DType == d {
		return x
	}
	return e.Emit(ir.HLO{Name: "stablehlo.convert", Args: []ir.Ref{x}, Out: []tensor.Type{x.Type.WithDType(d)}})[0]
}

// evalReduce combines in float64, complex128 or int64 and rounds once.
func evalReduce(in []*tensor.Tensor, a ReduceAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
	x := in[0]
	r := reducers[a.Kind]
	outer, inner := offsets(x.Dims, free(x.Rank(), a.Axes)), offsets(x.Dims, slices.Clone(a.Axes))
	init := r.identity(x.DType)
	switch {
	case x.DType.IsFloat():
		first := r.identity(tensor.F64).Floats()[0] // f8e4m3fn has no infinities
		return result(tensor.FromFloats(out[0], fold(x.Floats(), first, outer, inner, r.fn.f)))
	case x.DType.IsComplex():
		return result(tensor.FromComplexes(out[0], fold(x.Complexes(), init.Complexes()[0], outer, inner, r.fn.c)))
	case x.DType.IsUnsigned() && r.fn.u != nil:
		u := func(x, y int64) int64 { return int64(r.fn.u(uint64(x), uint64(y))) }
		return result(tensor.FromInts(out[0], fold(x.Ints(), init.Ints()[0], outer, inner, u)))
	}
	return result(tensor.FromInts(out[0], fold(x.Ints(), init.Ints()[0], outer, inner, r.fn.i)))
}

// fold combines, for each of outer, the elements at the inner offsets, in order.
func fold[T any](x []T, init T, outer, inner []int64, f func(a, b T) T) []T {
	out := make([]T, len(outer))
	for i, o := range outer {
		acc := init
		for _, k := range inner {
			acc = f(acc, x[o+k])
		}
		out[i] = acc
	}
	return out
}

// emitBroadcast repeats a 0-d value to dims.
func emitBroadcast(e ir.Emitter, x ir.Ref, dims []int64) ir.Ref {
	return e.Emit(ir.HLO{Name: "stablehlo.broadcast_in_dim", Args: []ir.Ref{x}, Attrs: []string{"broadcast_dimensions = " + i64Array(nil)},
		Out: []tensor.Type{x.Type.WithDims(dims...)}})[0]
}
