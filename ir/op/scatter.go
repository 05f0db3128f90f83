package op

import (
	"fmt"
	"slices"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// Set is the Reducer of Scatter that replaces the element.
const Set Reducer = "set"

// ScatterAttr is the attribute struct of Scatter, with StableHLO's names.
type ScatterAttr struct {
	UpdateWindowDims           []int64 `ir:"update_window_dims"`            // dimensions of updates that run within a window, ascending
	InsertedWindowDims         []int64 `ir:"inserted_window_dims"`          // dimensions of x that a window lacks, ascending
	InputBatchingDims          []int64 `ir:"input_batching_dims"`           // dimensions of x that run along with those of indices, ascending
	ScatterIndicesBatchingDims []int64 `ir:"scatter_indices_batching_dims"` // their partners in indices
	ScatterDimsToOperandDims   []int64 `ir:"scatter_dims_to_operand_dims"`  // for each component of an index the dimension of x
	IndexVectorDim             int64   `ir:"index_vector_dim"`              // dimension of indices that holds the components; its rank: one component
	Kind                       Reducer `ir:"kind"`                          // set, sum, prod, max or min
	UniqueIndices              bool    `ir:"unique_indices"`                // promises that no element is updated twice
}

// Scatter is x with windows at computed places combined with updates (StableHLO scatter). x and updates are of one dtype, indices are
// integers. A window that does not lie within x is dropped whole: so does XLA, where the specification drops only the elements outside.
// Floats below f32 accumulate in f32. Of several updates of kind set to one element any may win.
var Scatter = define(Def[ScatterAttr]{
	Name: "scatter", Doc: "Combines windows of a tensor at computed places with updates.", Args: "x indices updates",
	Infer: inferScatter, Lower: lowerScatter, Eval: evalScatter,
	Cost: func(n *ir.Node, a ScatterAttr) ir.Cost {
		c := ir.Cost{Bytes: 3*n.Args[2].Type.Bytes() + n.Args[1].Type.Bytes()} // in place where x is donated or dead
		if a.Kind != Set {
			c.Flops = n.Args[2].Type.Elements()
		}
		return c
	},
})

// inferScatter checks indices in 1 to 6, the kind in 11 and 12, and updates and windows in 13 to 17.
func inferScatter(in []tensor.Type, a ScatterAttr) ([]tensor.Type, error) {
	x, ids, u := in[0], in[1], in[2]
	batch, err := checkIndices(x, ids, a.ScatterDimsToOperandDims, a.InputBatchingDims, a.ScatterIndicesBatchingDims, a.IndexVectorDim)
	if err != nil {
		return nil, err
	}
	if a.Kind != Set {
		r, ok := reducers[a.Kind]
		if !ok || a.Kind == AllTrue || a.Kind == AnyTrue {
			return nil, fail(11, "kind %q, wanted set, sum, prod, max or min", string(a.Kind))
		}
		if !r.domain.has(x.DType) {
			return nil, fail(12, "dtype %s, wanted %s for %s", x.DType, r.domain, a.Kind)
		}
	}
	if u.DType != x.DType {
		return nil, fail(13, "updates are %s, x is %s, wanted one dtype", u.DType, x.DType)
	}
	if !ascending(a.InsertedWindowDims, x.Rank()) || !distinct(slices.Concat(a.InsertedWindowDims, a.InputBatchingDims), x.Rank()) {
		return nil, fail(14, "inserted_window_dims %v, wanted ascending dimensions of rank %d that are not in input_batching_dims %v",
			a.InsertedWindowDims, x.Rank(), a.InputBatchingDims)
	}
	window := free(x.Rank(), a.InsertedWindowDims, a.InputBatchingDims)
	if u.Rank() != len(batch)+len(window) || len(a.UpdateWindowDims) != len(window) || !ascending(a.UpdateWindowDims, u.Rank()) {
		return nil, fail(15, "updates are %s with update_window_dims %v, wanted rank %d and %d ascending window dimensions",
			u, a.UpdateWindowDims, len(batch)+len(window), len(window))
	}
	for i, d := range free(u.Rank(), a.UpdateWindowDims) {
		if u.Dims[d] != batch[i] {
			return nil, fail(16, "updates dimension %d is %d, wanted %d as indices", d, u.Dims[d], batch[i])
		}
	}
	for i, d := range a.UpdateWindowDims {
		if u.Dims[d] > x.Dims[window[i]] {
			return nil, fail(17, "updates dimension %d is %d, wanted at most %d as x dimension %d", d, u.Dims[d], x.Dims[window[i]], window[i])
		}
	}
	return one(x)
}

// lowerScatter widens what adds or multiplies below f32; kinds that only move or choose stay in place, such as a cache's update.
func lowerScatter(e ir.Emitter, n *ir.Node, a ScatterAttr) []ir.Ref {
	x, ids, u := e.Value(n.Args[0]), e.Value(n.Args[1]), e.Value(n.Args[2])
	acc := x.Type.DType
	if (a.Kind == Sum || a.Kind == Prod) && acc.IsFloat() && acc.Bits() < 32 {
		acc = tensor.F32
		x, u = emitConvert(e, x, acc), emitConvert(e, u, acc)
	}
	numbers := fmt.Sprintf("scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = %s, inserted_window_dims = %s, "+
		"input_batching_dims = %s, scatter_indices_batching_dims = %s, scatter_dims_to_operand_dims = %s, index_vector_dim = %d>",
		list(a.UpdateWindowDims), list(a.InsertedWindowDims), list(a.InputBatchingDims), list(a.ScatterIndicesBatchingDims),
		list(a.ScatterDimsToOperandDims), a.IndexVectorDim)
	scalar := tensor.Make(acc)
	y := e.Emit(ir.HLO{Name: "stablehlo.scatter", Args: []ir.Ref{x, ids, u},
		Attrs: []string{"indices_are_sorted = false", numbers, fmt.Sprintf("unique_indices = %t", a.UniqueIndices)},
		Regions: []ir.Region{{Args: []tensor.Type{scalar, scalar}, Body: func(e ir.Emitter, args []ir.Ref) []ir.Ref {
			if a.Kind == Set {
				return args[1:]
			}
			return e.Emit(ir.HLO{Name: reducers[a.Kind].hlo, Args: args, Out: []tensor.Type{scalar}})
		}}}, Out: []tensor.Type{x.Type}})[0]
	return []ir.Ref{emitConvert(e, y, n.Outs[0].Type.DType)}
}

// evalScatter applies updates in row-major order.
func evalScatter(in []*tensor.Tensor, a ScatterAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
	x, u, t := in[0], in[2], out[0]
	pairs := scatterPairs(x.Type, in[1], u.Type, a)
	if a.Kind == Set {
		y := &tensor.Tensor{Type: t, Data: append([]byte(nil), x.Data...)}
		size := int64(t.DType.Size())
		for from, to := range pairs {
			if to >= 0 {
				copy(y.Data[to*size:(to+1)*size], u.Data[int64(from)*size:])
			}
		}
		return result(y)
	}
	fn := reducers[a.Kind].fn
	switch {
	case t.DType.IsFloat():
		return result(tensor.FromFloats(t, combine(x.Floats(), u.Floats(), pairs, fn.f)))
	case t.DType.IsComplex():
		return result(tensor.FromComplexes(t, combine(x.Complexes(), u.Complexes(), pairs, fn.c)))
	case t.DType.IsUnsigned() && fn.u != nil:
		f := func(x, y int64) int64 { return int64(fn.u(uint64(x), uint64(y))) }
		return result(tensor.FromInts(t, combine(x.Ints(), u.Ints(), pairs, f)))
	}
	return result(tensor.FromInts(t, combine(x.Ints(), u.Ints(), pairs, fn.i)))
}

// combine applies f to x in place; pairs gives for each element of u its partner in x, or -1.
func combine[T any](x, u []T, pairs []int64, f func(a, b T) T) []T {
	for from, to := range pairs {
		if to >= 0 {
			x[to] = f(x[to], u[from])
		}
	}
	return x
}

// scatterPairs gives, for every element of updates in row-major order, the element of x that it goes to, or -1 for none.
func scatterPairs(x tensor.Type, ids *tensor.Tensor, u tensor.Type, a ScatterAttr) []int64 {
	p := newPlaces(ids, a.ScatterDimsToOperandDims, a.InputBatchingDims, a.ScatterIndicesBatchingDims, a.IndexVectorDim)
	batch, window := free(u.Rank(), a.UpdateWindowDims), free(x.Rank(), a.InsertedWindowDims, a.InputBatchingDims)
	strides := tensor.Strides(x.Dims)
	out := make([]int64, 0, u.Elements())
	at, start := make([]int64, len(batch)), make([]int64, x.Rank())
	extent := pick(u.Dims, a.UpdateWindowDims)
	walk(u.Dims, func(ix []int64) {
		for i, d := range batch {
			at[i] = ix[d]
		}
		p.at(at, start)
		for i, d := range a.UpdateWindowDims {
			if s := start[window[i]]; s < 0 || s > x.Dims[window[i]]-extent[i] {
				out = append(out, -1)
				return
			}
			start[window[i]] += ix[d]
		}
		to := int64(0)
		for d, s := range start {
			if s < 0 || s >= x.Dims[d] {
				out = append(out, -1)
				return
			}
			to += s * strides[d]
		}
		out = append(out, to)
	})
	return out
}
