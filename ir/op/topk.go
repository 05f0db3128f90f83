package op

import (
	"cmp"
	"slices"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// TopKAttr is the attribute struct of TopK.
type TopKAttr struct {
	K       int64 `ir:"k"`
	Axis    int64 `ir:"axis"`
	Largest bool  `ir:"largest"` // otherwise the smallest
}

// TopK gives the K largest or smallest elements along Axis in order, and their i64 indices (aten::topk). x is of integers or floats; NaN
// counts as larger than all else; of equal elements the lower index comes first.
var TopK = define(Def[TopKAttr]{
	Name: "topk", Doc: "Takes the largest or smallest elements along an axis, and their indices.", Args: "x",
	Traits: ir.Exact,
	Infer: func(in []tensor.Type, a TopKAttr) ([]tensor.Type, error) {
		x := in[0]
		switch {
		case !(ints | floats).has(x.DType):
			return nil, fail(1, "dtype %s, wanted %s", x.DType, ints|floats)
		case a.Axis < 0 || a.Axis >= int64(x.Rank()):
			return nil, fail(2, "axis %d, wanted one of rank %d", a.Axis, x.Rank())
		case a.K < 0 || a.K > x.Dims[a.Axis]:
			return nil, fail(3, "k is %d, wanted 0 to %d", a.K, x.Dims[a.Axis])
		}
		t := x.WithDims(with(x.Dims, a.Axis, a.K)...)
		return []tensor.Type{t, t.WithDType(tensor.I64)}, nil
	},
	Decompose: decomposeTopK, Eval: evalTopK,
	Cost: func(n *ir.Node, _ TopKAttr) ir.Cost { return ir.Cost{Flops: n.Args[0].Type.Elements()} },
})

// decomposeTopK sorts the whole axis stably with a count as payload, so that ties keep the lower index first.
func decomposeTopK(b *ir.Builder, n *ir.Node, a TopKAttr) []*ir.Value {
	x := n.Args[0]
	// i32 indices: TPU sorts 64-bit payloads as pairs of 32-bit ones. An axis beyond 2^31 does not fit a chip.
	at := Iota.Make(b, IotaAttr{Type: x.Type.WithDType(tensor.I32), Axis: a.Axis})
	sorted := Sort.MakeAll(b, SortAttr{Axis: a.Axis, Descending: a.Largest, Stable: true, Keys: 1}, x, at)
	rank := x.Type.Rank()
	cut := SliceAttr{Start: make([]int64, rank), Limit: n.Outs[0].Type.Dims, Stride: make([]int64, rank)}
	for i := range cut.Stride {
		cut.Stride[i] = 1
	}
	return []*ir.Value{Slice.Make(b, cut, sorted[0]), Cast(b, Slice.Make(b, cut, sorted[1]), tensor.I64)}
}

// evalTopK orders places by element, then by index.
func evalTopK(in []*tensor.Tensor, a TopKAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
	x, values := in[0], tensor.Zeros(out[0])
	less, size := comparer(x), int64(x.DType.Size())
	axis := []int64{a.Axis}
	steps, outSteps := offsets(x.Dims, axis), offsets(out[0].Dims, axis)
	outRows := offsets(out[0].Dims, free(x.Rank(), axis))
	indices := make([]int64, out[1].Elements())
	order := make([]int64, len(steps))
	for r, row := range offsets(x.Dims, free(x.Rank(), axis)) {
		for i := range order {
			order[i] = int64(i)
		}
		slices.SortFunc(order, func(i, j int64) int {
			c := less(row+steps[i], row+steps[j])
			if a.Largest {
				c = -c
			}
			return cmp.Or(c, cmp.Compare(i, j))
		})
		for k, s := range outSteps {
			from, to := row+steps[order[k]], outRows[r]+s
			copy(values.Data[to*size:(to+1)*size], x.Data[from*size:])
			indices[to] = order[k]
		}
	}
	return []*tensor.Tensor{values, tensor.FromInts(out[1], indices)}, nil
}
