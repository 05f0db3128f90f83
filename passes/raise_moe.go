package passes

import (
	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// experts matches the product of rows x [S, K], each with a matrix of its own that is taken from w [E, K, N] or [E, N, K]: the batched form of a
// mixture of experts. S matrices are S/E times the weights. Sorted by expert, the rows are the groups of grouped_dot.
func experts(b *ir.Builder, n *ir.Node, u uses) []*ir.Value {
	return expertsOf(b, n, n.Outs[0].Type, u)
}

// roundedExperts matches a product in f32 that is rounded to its arguments' dtype, as grouped_dot does.
func roundedExperts(b *ir.Builder, n *ir.Node, u uses) []*ir.Value {
	if in := n.Args[0].Def; op.Dot.Is(in) && u.sole(n.Args[0]) && n.Args[0].Type.DType == tensor.F32 {
		return expertsOf(b, in, n.Outs[0].Type, u)
	}
	return nil
}

// expertsOf matches n, a dot, whose result is rounded to out.
func expertsOf(b *ir.Builder, n *ir.Node, out tensor.Type, u uses) []*ir.Value {
	s := sides(n)
	if len(s[0].batch) != 1 || s[0].batch[0] != 0 || s[1].batch[0] != 0 || len(s[0].contract) != 1 || !out.DType.IsFloat() || out.Elements() == 0 {
		return nil
	}
	for i, m := range n.Args {
		x := n.Args[1-i]
		if !op.Take.Is(m.Def) || op.Take.Attr(m.Def).Axis != 0 || !u.sole(m) || m.Type.Rank() != 3 || m.Type.DType != out.DType {
			continue
		}
		w, ids := m.Def.Args[0], m.Def.Args[1]
		rows, k := x.Type.Dims[0], m.Type.Dims[s[i].contract[0]]
		if w.Type.Rank() != 3 || w.Type.Dims[0] > maxExperts || ids.Type.DType.Bits() < 32 || rows < 2 || x.Type.Elements() != rows*k || x.Type.DType != out.DType {
			continue
		}
		order, offsets := grouped(b, ids, w.Type.Dims[0])
		x = op.Take.Make(b, op.TakeAttr{}, reshapeTo(b, x, []int64{rows, k}), order)
		y := op.GroupedDot.Make(b, op.GroupedDotAttr{Transposed: s[i].contract[0] == 2}, x, w, offsets)
		place := op.Sort.MakeAll(b, op.SortAttr{}, order, count(b, rows))[1]
		return one(reshapeTo(b, op.Take.Make(b, op.TakeAttr{}, y, place), out.Dims))
	}
	return nil
}

// maxExperts bounds the comparisons of every row with every expert that give the groups' ends.
const maxExperts = 4096

// grouped gives the rows in order of their experts, ids [S], and where each of so many experts' group ends. Ids are clamped, as take does.
func grouped(b *ir.Builder, ids *ir.Value, experts int64) (order, offsets *ir.Value) {
	rows := ids.Type.Dims[0]
	ids = clamped(b, ids, span{0, experts - 1})
	order = op.Sort.MakeAll(b, op.SortAttr{Stable: true}, ids, count(b, rows))[1]
	t := tensor.Make(tensor.I32, experts, rows)
	number := op.Iota.Make(b, op.IotaAttr{Type: t})
	within := op.Compare.Make(b, op.CompareAttr{Dir: op.LE}, op.Broadcast.Make(b, op.BroadcastAttr{Shape: t.Dims, Dims: []int64{1}}, ids), number)
	return order, op.Reduce.Make(b, op.ReduceAttr{Kind: op.Sum, Axes: []int64{1}}, op.Cast(b, within, tensor.I32))
}

// count is 0, 1, ... n-1.
func count(b *ir.Builder, n int64) *ir.Value {
	return op.Iota.Make(b, op.IotaAttr{Type: tensor.Make(tensor.I32, n)})
}
