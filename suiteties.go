package tpuc

import (
	"context"
	"fmt"
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// sameUpToTies reports that output k of call i, which differs from the expected one, is the indices of a sort or topk, or some of them, in another
// order of equal elements, for which torch promises none: gathered by either, the elements that were sorted are the same within the tolerance, and no index repeats.
// The elements come from the reference evaluator.
func (r *caseRun) sameUpToTies(ctx context.Context, i, k int, got, want *tensor.Tensor) bool {
	if !got.Type.Equal(want.Type) {
		return false
	}
	source, axis, err := r.sorted(ctx, i, k)
	if err != nil || source == nil {
		return false
	}
	got, want = alongAxis(got, source, axis), alongAxis(want, source, axis)
	g, err := gatherAxis(source, got, axis, true)
	if err != nil {
		return false
	}
	w, err := gatherAxis(source, want, axis, false)
	if err != nil {
		return false
	}
	return compareTensors(g, w, r.Tolerance).OK
}

// sorted evaluates the calls up to call i as far as the operand of the sort or topk whose indices output k is. It is nil where that is something else.
func (r *caseRun) sorted(ctx context.Context, i, k int) (x *tensor.Tensor, axis int64, err error) {
	out, err := r.evaluateCalls(ctx, i, func(m *ir.Module) bool {
		if k >= len(m.Func.Results) {
			return false
		}
		operand, a := sortedBy(m.Func.Results[k])
		if operand == nil {
			return false
		}
		m.Func.Results, axis = []*ir.Value{operand}, a
		return true
	})
	if err != nil || out == nil {
		return nil, 0, err
	}
	return out[0], axis, nil
}

// evaluateCalls evaluates the calls up to call i, of a module that prepare may change, and gives what the last one does; nothing where prepare
// says no.
func (r *caseRun) evaluateCalls(ctx context.Context, i int, prepare func(*ir.Module) bool) (out []*tensor.Tensor, err error) {
	paths := r.Calls[i : i+1]
	if r.Stateful {
		paths = r.Calls[:i+1]
	}
	var e *Evaluator
	for _, p := range paths {
		inputs, err := openTensors(p.Inputs)
		if err != nil {
			return nil, err
		}
		defer inputs.source.Close()
		if e == nil {
			m, err := Load(ctx, r.Model, Shapes{Inputs: inputs.shapes, Custom: r.o.Custom})
			if err != nil {
				return nil, err
			}
			defer m.Close()
			if !prepare(m.Module) {
				return nil, nil
			}
			if e, err = NewEvaluator(m, ""); err != nil {
				return nil, err
			}
		}
		in, _ := e.Ports()
		args, err := inputs.arrange(inputs.numbering(in, "input"))
		if err != nil {
			return nil, err
		}
		if out, err = e.Call(ctx, args); err != nil {
			return nil, err
		}
	}
	for i, x := range out {
		out[i] = &tensor.Tensor{Type: x.Type, Data: slices.Clone(x.Data)} // which may be that of a file
	}
	return out, nil
}

// alongAxis gives indices that lack the axis of the elements it with extent 1.
func alongAxis(indices, x *tensor.Tensor, axis int64) *tensor.Tensor {
	if indices.Rank() != x.Rank()-1 {
		return indices
	}
	return &tensor.Tensor{Type: indices.WithDims(slices.Insert(slices.Clone(indices.Dims), int(axis), 1)...), Data: indices.Data}
}

// sortedBy is the operand and the axis of the sort or topk whose indices v is, or picks from, as a median does, or nil.
func sortedBy(v *ir.Value) (*ir.Value, int64) {
	for v.Def != nil && v.Type.DType.IsInt() && (op.Convert.Is(v.Def) || op.Reshape.Is(v.Def) || op.Slice.Is(v.Def) || op.Gather.Is(v.Def) || op.Take.Is(v.Def)) &&
		v.Def.Args[0].Type.DType.IsInt() {
		v = v.Def.Args[0]
	}
	n := v.Def
	switch {
	case n == nil || v.Index != 1:
	case op.TopK.Is(n):
		return n.Args[0], op.TopK.Attr(n).Axis
	case op.Sort.Is(n) && len(n.Args) == 2 && op.Sort.Attr(n).Keys <= 1 && counts(n.Args[1], op.Sort.Attr(n).Axis):
		return n.Args[0], op.Sort.Attr(n).Axis
	}
	return nil, 0
}

// counts reports that v is 0, 1, ... along axis.
func counts(v *ir.Value, axis int64) bool {
	for v.Def != nil && op.Convert.Is(v.Def) {
		v = v.Def.Args[0]
	}
	return v.Def != nil && op.Iota.Is(v.Def) && op.Iota.Attr(v.Def).Axis == axis
}

// gatherAxis takes the elements of x at the indices along axis. An index out of range is an error, and with unique one that repeats along the axis.
func gatherAxis(x, indices *tensor.Tensor, axis int64, unique bool) (*tensor.Tensor, error) {
	dims := slices.Clone(x.Dims)
	n := dims[axis]
	dims[axis] = indices.Dims[axis]
	if !slices.Equal(dims, indices.Dims) {
		return nil, fmt.Errorf("indices are %s, wanted the shape %v", indices.Type, dims)
	}
	out := tensor.Zeros(tensor.Make(x.DType, dims...))
	inner, k := int64(1), dims[axis]
	for _, d := range dims[axis+1:] {
		inner *= d
	}
	size := int64(x.DType.Size())
	seen := make(map[[2]int64]bool)
	for to, at := range indices.Ints() {
		row, column := int64(to)/(inner*max(k, 1)), int64(to)%inner
		if at < 0 || at >= n {
			return nil, fmt.Errorf("index %d, wanted 0 to %d", at, n-1)
		}
		key := [2]int64{row*inner + column, at}
		if unique && seen[key] {
			return nil, fmt.Errorf("index %d occurs twice", at)
		}
		seen[key] = true
		from := (row*n+at)*inner + column
		copy(out.Data[int64(to)*size:(int64(to)+1)*size], x.Data[from*size:(from+1)*size])
	}
	return out, nil
}
