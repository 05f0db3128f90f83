package op

import (
	"fmt"
	"slices"
	"strings"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// ReduceWindowAttr is the attribute struct of ReduceWindow. Every list has one entry a dimension of x; empty ones mean 1, or no padding.
type ReduceWindowAttr struct {
	Kind     Reducer   `ir:"kind"`     // sum, prod, max, min, and, or
	Window   []int64   `ir:"window"`   // extent of the window, in elements
	Strides  []int64   `ir:"strides"`  // from one window to the next
	Dilation []int64   `ir:"dilation"` // from one element of a window to the next
	Padding  [][]int64 `ir:"padding"`  // [low, high] elements beyond the edges; negative ones crop
}

// ReduceWindow combines the elements of x under a window at every place (StableHLO reduce_window). Padding counts as the reducer's
// identity. Floats below f32 accumulate in f32.
var ReduceWindow = define(Def[ReduceWindowAttr]{
	Name: "reduce_window", Doc: "Combines the elements under a window at every place.", Args: "x",
	Infer: inferReduceWindow, Lower: lowerReduceWindow, Eval: evalReduceWindow,
	Cost: func(n *ir.Node, a ReduceWindowAttr) ir.Cost {
		return ir.Cost{Flops: n.Outs[0].Type.Elements() * product(a.Window)}
	},
})

// fill replaces empty lists by the neutral ones for a rank.
func (a ReduceWindowAttr) fill(rank int) ReduceWindowAttr {
	ones := func(v []int64) []int64 {
		if len(v) == 0 {
			return slices.Repeat([]int64{1}, rank)
		}
		return v
	}
	a.Window, a.Strides, a.Dilation = ones(a.Window), ones(a.Strides), ones(a.Dilation)
	if len(a.Padding) == 0 {
		a.Padding = slices.Repeat([][]int64{{0, 0}}, rank)
	}
	return a
}

// inferReduceWindow checks the kind in 1, its dtypes in 2, lengths in 3 and each dimension in 4 to 6.
func inferReduceWindow(in []tensor.Type, a ReduceWindowAttr) ([]tensor.Type, error) {
	x := in[0]
	r, ok := reducers[a.Kind]
	switch {
	case !ok:
		return nil, fail(1, "kind %q, wanted sum, prod, max, min, and, or", string(a.Kind))
	case !r.domain.has(x.DType):
		return nil, fail(2, "dtype %s, wanted %s for %s", x.DType, r.domain, a.Kind)
	}
	a = a.fill(x.Rank())
	if len(a.Window) != x.Rank() || len(a.Strides) != x.Rank() || len(a.Dilation) != x.Rank() || len(a.Padding) != x.Rank() {
		return nil, fail(3, "%d window, %d strides, %d dilation and %d padding, wanted %d of each", len(a.Window), len(a.Strides), len(a.Dilation),
			len(a.Padding), x.Rank())
	}
	const most = 1 << 40 // keeps the sums below from overflowing
	dims := make([]int64, x.Rank())
	for i, n := range x.Dims {
		w, s, d, p := a.Window[i], a.Strides[i], a.Dilation[i], a.Padding[i]
		if w < 1 || s < 1 || d < 1 || w > most || s > most || d > most/w {
			return nil, fail(4, "dimension %d: window %d, stride %d and dilation %d, wanted 1 or more of each", i, w, s, d)
		}
		if len(p) != 2 || !within(p[0], most) || !within(p[1], most) || n > most {
			return nil, fail(5, "dimension %d: padding %v of extent %d, wanted [low, high] within 2^40", i, p, n)
		}
		room := n + p[0] + p[1]
		if room < 0 {
			return nil, fail(6, "dimension %d: padding %v leaves %d of extent %d, wanted 0 or more", i, p, room, n)
		}
		if reach := (w-1)*d + 1; room >= reach {
			dims[i] = (room-reach)/s + 1
		}
	}
	return one(x.WithDims(dims...))
}

func lowerReduceWindow(e ir.Emitter, n *ir.Node, a ReduceWindowAttr) []ir.Ref {
	r := reducers[a.Kind]
	x, out := e.Value(n.Args[0]), n.Outs[0].Type
	a = a.fill(x.Type.Rank())
	acc := out.DType
	sums := a.Kind == Sum || a.Kind == Prod
	if acc.IsFloat() && (acc.Bits() < 16 || acc.Bits() < 32 && sums) { // f8e4m3fn has no infinity to start from
		acc = tensor.F32
		x = emitConvert(e, x, acc)
	}
	init := emitConstant(e, r.identity(acc))
	scalar := tensor.Make(acc)
	pads := make([]string, len(a.Padding))
	for i, p := range a.Padding {
		pads[i] = list(p)
	}
	attrs := []string{"base_dilations = " + i64Array(slices.Repeat([]int64{1}, len(pads)))}
	if len(pads) > 0 {
		attrs = append(attrs, fmt.Sprintf("padding = dense<[%s]> : tensor<%dx2xi64>", strings.Join(pads, ", "), len(pads)))
	} else {
		attrs = append(attrs, "padding = dense<> : tensor<0x2xi64>")
	}
	attrs = append(attrs, "window_dilations = "+i64Array(a.Dilation), "window_dimensions = "+i64Array(a.Window), "window_strides = "+i64Array(a.Strides))
	y := e.Emit(ir.HLO{Name: "stablehlo.reduce_window", Args: []ir.Ref{x, init}, Attrs: attrs,
		Regions: []ir.Region{{Args: []tensor.Type{scalar, scalar}, Body: func(e ir.Emitter, args []ir.Ref) []ir.Ref {
			return e.Emit(ir.HLO{Name: r.hlo, Args: args, Out: []tensor.Type{scalar}})
		}}}, Out: []tensor.Type{out.WithDType(acc)}})[0]
	return []ir.Ref{emitConvert(e, y, out.DType)}
}

// evalReduceWindow combines in float64, complex128 or int64 and rounds once.
func evalReduceWindow(in []*tensor.Tensor, a ReduceWindowAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
	x, t := in[0], out[0]
	a = a.fill(x.Rank())
	r := reducers[a.Kind]
	init := r.identity(x.DType)
	switch {
	case x.DType.IsFloat():
		first := r.identity(tensor.F64).Floats()[0]
		return result(tensor.FromFloats(t, foldWindows(x.Floats(), first, x.Dims, t.Dims, a, r.fn.f)))
	case x.DType.IsComplex():
		return result(tensor.FromComplexes(t, foldWindows(x.Complexes(), init.Complexes()[0], x.Dims, t.Dims, a, r.fn.c)))
	case x.DType.IsUnsigned() && r.fn.u != nil:
		u := func(x, y int64) int64 { return int64(r.fn.u(uint64(x), uint64(y))) }
		return result(tensor.FromInts(t, foldWindows(x.Ints(), init.Ints()[0], x.Dims, t.Dims, a, u)))
	}
	return result(tensor.FromInts(t, foldWindows(x.Ints(), init.Ints()[0], x.Dims, t.Dims, a, r.fn.i)))
}

// foldWindows combines what lies under each window within x, in row-major order.
func foldWindows[T any](x []T, init T, dims, out []int64, a ReduceWindowAttr, f func(a, b T) T) []T {
	strides := tensor.Strides(dims)
	y := make([]T, 0, product(out))
	walk(out, func(at []int64) {
		acc := init
		var visit func(d int, offset int64)
		visit = func(d int, offset int64) {
			if d == len(dims) {
				acc = f(acc, x[offset])
				return
			}
			for k := range a.Window[d] {
				if i := at[d]*a.Strides[d] + k*a.Dilation[d] - a.Padding[d][0]; i >= 0 && i < dims[d] {
					visit(d+1, offset+i*strides[d])
				}
			}
		}
		visit(0, 0)
		y = append(y, acc)
	})
	return y
}
