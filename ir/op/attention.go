package op

import (
	"math"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// AttentionAttr is the attribute struct of Attention.
type AttentionAttr struct {
	Scale   float64 `ir:"scale"`   // multiplies the scores
	Causal  bool    `ir:"causal"`  // query l takes part with keys 0 .. l (aligned top left)
	Window  int64   `ir:"window"`  // query l takes part with the keys less than so many places away, on either side; 0: with all
	Softcap float64 `ir:"softcap"` // scores s become Softcap tanh(s/Softcap) before masks; 0: they stay
	Sinks   bool    `ir:"sinks"`   // the last argument is sinks
	Plain   bool    `ir:"plain"`   // a row whose scores are all -inf gives NaN, as softmax does by itself
}

// Attention is softmax(cap(Scale q k') + mask) v (aten::scaled_dot_product_attention): q [B, Hq, L, E], k [B, Hk, S, E], v [B, Hk, S, Ev] of one
// float dtype give [B, Hq, L, Ev]. Hq is a multiple of Hk: query head h reads key head h / (Hq/Hk). The mask has rank 4 and shape
// [B, Hq, L, S] with any dimension 1; bool: true takes part; float: added to the scores. Sinks, floats [Hq], are a score more for every
// row of a head, which takes its share of the probability and adds no value. Scores and their exponentials
// are in f32 at least; the exponentials are rounded to v's dtype for the second product, whose result is divided by their sum and then rounded, as
// torch's fused kernels do. A row whose scores are all -inf, so without a key that takes part, gives 0,
// but for Plain.
var Attention = define(Def[AttentionAttr]{
	Name: "attention", Doc: "Averages values by the softmax of query and key products, with grouped heads.", Args: "q k v mask? sinks?",
	Infer: inferAttention, Decompose: decomposeAttention, Eval: evalAttention,
	Cost: func(n *ir.Node, a AttentionAttr) ir.Cost {
		q, v := n.Args[0].Type.Dims, n.Args[2].Type.Dims
		keys := v[2]
		if a.Window > 0 {
			keys = min(keys, 2*a.Window-1)
		}
		return ir.Cost{Flops: q[0] * q[1] * q[2] * keys * (2*q[3] + 2*v[3] + 6)}
	},
})

// places of mask and sinks among n arguments, -1 where there is none.
func (a AttentionAttr) places(n int) (mask, sinks int) {
	mask, sinks = -1, -1
	if a.Sinks && n > 3 {
		n--
		sinks = n
	}
	if n == 4 {
		mask = 3
	}
	return mask, sinks
}

// inferAttention checks q, k and v in 1 to 6, numbers in 7, the mask in 8 and 9, the number of arguments in 10 and sinks in 11.
func inferAttention(in []tensor.Type, a AttentionAttr) ([]tensor.Type, error) {
	q, k, v := in[0], in[1], in[2]
	for i, t := range in[:3] {
		if t.Rank() != 4 {
			return nil, fail(1, "argument %d is %s, wanted rank 4", i, t)
		}
		if !t.DType.IsFloat() || t.DType != q.DType {
			return nil, fail(2, "argument %d is %s, wanted one float dtype for q, k and v", i, t)
		}
		if t.Dims[0] != q.Dims[0] {
			return nil, fail(3, "argument %d is %s, wanted batch %d as q", i, t, q.Dims[0])
		}
	}
	switch {
	case k.Dims[3] != q.Dims[3]:
		return nil, fail(4, "k is %s, q is %s, wanted equal last dimensions", k, q)
	case v.Dims[1] != k.Dims[1] || v.Dims[2] != k.Dims[2]:
		return nil, fail(5, "v is %s, k is %s, wanted equal heads and positions", v, k)
	case q.Dims[1] != k.Dims[1] && (k.Dims[1] == 0 || q.Dims[1]%k.Dims[1] != 0):
		return nil, fail(6, "%d query heads for %d key heads, wanted a multiple", q.Dims[1], k.Dims[1])
	case math.IsNaN(a.Scale-a.Scale) || math.IsNaN(a.Softcap-a.Softcap) || a.Softcap < 0 || a.Window < 0:
		return nil, fail(7, "scale %v, softcap %v and window %d, wanted finite numbers, the last two not negative", a.Scale, a.Softcap, a.Window)
	}
	mask, sinks := a.places(len(in))
	if want := 3 + btoi(mask >= 0) + btoi(a.Sinks); len(in) != want {
		return nil, fail(10, "%d arguments with sinks=%t, wanted q, k, v, a mask if any, and sinks if so", len(in), a.Sinks)
	}
	if sinks >= 0 {
		if s := in[sinks]; !s.DType.IsFloat() || s.Rank() != 1 || s.Dims[0] != q.Dims[1] {
			return nil, fail(11, "sinks are %s, wanted floats, one for each of %d query heads", s, q.Dims[1])
		}
	}
	if mask >= 0 {
		m, full := in[mask], []int64{q.Dims[0], q.Dims[1], q.Dims[2], k.Dims[2]}
		if !(bools | floats).has(m.DType) || m.Rank() != 4 {
			return nil, fail(8, "mask is %s, wanted rank 4 and bool or float", m)
		}
		for d := range full {
			if m.Dims[d] != 1 && m.Dims[d] != full[d] {
				return nil, fail(9, "mask is %s, wanted 1 or the full extent of %v in every dimension", m, full)
			}
		}
	}
	return one(q.WithDims(q.Dims[0], q.Dims[1], q.Dims[2], v.Dims[3]))
}

// decomposeAttention folds the query heads of a group into positions, so that every key and value is read once and none is repeated.
func decomposeAttention(b *ir.Builder, n *ir.Node, a AttentionAttr) []*ir.Value {
	q, k, v, out := n.Args[0], n.Args[1], n.Args[2], n.Outs[0].Type
	batch, heads, l, s := q.Type.Dims[0], k.Type.Dims[1], q.Type.Dims[2], k.Type.Dims[2]
	if out.Elements() == 0 { // no heads to group
		return []*ir.Value{Splat(b, out, 0)}
	}
	group := q.Type.Dims[1] / heads
	acc := tensor.F32
	if q.Type.DType == tensor.F64 {
		acc = tensor.F64
	}
	folded := []int64{batch, heads, group * l, s}
	both := [][]int64{{0, 1}, {0, 1}}

	qf := reshape(b, q, batch, heads, group*l, q.Type.Dims[3])
	x := Dot.Make(b, DotAttr{Batch: both, Contract: [][]int64{{3}, {3}}, Out: acc}, qf, k)
	if a.Scale != 1 {
		x = Mul.Make(b, x, Splat(b, x.Type, a.Scale))
	}
	if a.Softcap != 0 {
		x = Mul.Make(b, Tanh.Make(b, Div.Make(b, x, Splat(b, x.Type, a.Softcap))), Splat(b, x.Type, a.Softcap))
	}
	maskAt, sinksAt := a.places(len(n.Args))
	var keep *ir.Value // bool, where a query may see a key; nil: everywhere
	if maskAt >= 0 {
		if mask := foldMask(b, n.Args[maskAt], heads, group, l, folded); mask.Type.DType == tensor.Bool {
			keep = mask
		} else {
			x = Add.Make(b, x, Cast(b, mask, acc))
		}
	}
	if near := reachable(b, a, group, l, folded); near != nil {
		if keep != nil {
			near = And.Make(b, keep, near)
		}
		keep = near
	}
	if keep != nil {
		x = Select.Make(b, keep, x, Splat(b, x.Type, math.Inf(-1)))
	}
	row := free(4, []int64{3})
	top := Reduce.Make(b, ReduceAttr{Kind: Max, Axes: []int64{3}}, x)
	var sink *ir.Value // a score for every row
	if sinksAt >= 0 {
		sink = Cast(b, n.Args[sinksAt], acc)
		sink = Broadcast.Make(b, BroadcastAttr{Shape: []int64{batch, heads, group, l}, Dims: []int64{1, 2}}, reshape(b, sink, heads, group))
		sink = reshape(b, sink, top.Type.Dims...)
		top = Maximum.Make(b, top, sink)
	}
	var none *ir.Value // rows of -inf only: their exponentials and sum are made 0, and they are divided by 1
	if !a.Plain {
		none = Compare.Make(b, CompareAttr{Dir: EQ}, top, Splat(b, top.Type, math.Inf(-1)))
		top = Select.Make(b, none, Splat(b, top.Type, 0), top)
	}
	e := Exp.Make(b, Sub.Make(b, x, Broadcast.Make(b, BroadcastAttr{Shape: folded, Dims: row}, top)))
	sum := Reduce.Make(b, ReduceAttr{Kind: Sum, Axes: []int64{3}}, e)
	if sink != nil {
		sum = Add.Make(b, sum, Exp.Make(b, Sub.Make(b, sink, top)))
	}
	if none != nil {
		sum = Select.Make(b, none, Splat(b, sum.Type, 1), sum)
	}
	y := Dot.Make(b, DotAttr{Batch: both, Contract: [][]int64{{3}, {2}}, Out: acc}, Cast(b, e, v.Type.DType), v)
	y = Div.Make(b, y, Broadcast.Make(b, BroadcastAttr{Shape: y.Type.Dims, Dims: row}, sum))
	return []*ir.Value{reshape(b, Cast(b, y, out.DType), out.Dims...)}
}

// foldMask gives a mask [B|1, Hq|1, L|1, S|1] the dimensions of folded scores [B, heads, group*L, S]. The scores themselves are never
// reshaped: on TPU that would move them all.
func foldMask(b *ir.Builder, m *ir.Value, heads, group, l int64, folded []int64) *ir.Value {
	if d := m.Type.Dims; group > 1 && (d[1] != 1 || d[2] != 1) {
		h, g := heads, group
		if d[1] == 1 {
			h, g = 1, 1
		}
		m = reshape(b, m, d[0], h, g, d[2], d[3])
		m = Stretch(b, m, []int64{d[0], h, group, l, d[3]})
		m = reshape(b, m, d[0], h, group*l, d[3])
	}
	return Stretch(b, m, folded)
}

// reachable holds where the key's position is one that the query's may see, for folded scores; nil: everywhere.
func reachable(b *ir.Builder, a AttentionAttr, group, l int64, folded []int64) *ir.Value {
	if !a.Causal && a.Window == 0 {
		return nil
	}
	t := tensor.Make(tensor.I32, group, l, folded[3])
	at := func(axis int64) *ir.Value { return Iota.Make(b, IotaAttr{Type: t, Axis: axis}) }
	i, j := at(1), at(2)
	var keep *ir.Value
	both := func(v *ir.Value) {
		if keep != nil {
			v = And.Make(b, keep, v)
		}
		keep = v
	}
	if a.Causal {
		both(Compare.Make(b, CompareAttr{Dir: GE}, i, j))
	}
	if a.Window > 0 && a.Window < max(l, folded[3]) {
		width := Splat(b, t, float64(a.Window))
		both(Compare.Make(b, CompareAttr{Dir: LT}, Sub.Make(b, i, j), width))
		if !a.Causal {
			both(Compare.Make(b, CompareAttr{Dir: LT}, Sub.Make(b, j, i), width))
		}
	}
	if keep == nil {
		return nil
	}
	return BroadcastTo(b, reshape(b, keep, group*l, folded[3]), folded)
}

// sees reports that query i may see key j.
func (a AttentionAttr) sees(i, j int64) bool {
	return !(a.Causal && j > i) && (a.Window == 0 || within(i-j, a.Window-1))
}

// evalAttention works row by row of scores in float64. Only the probabilities are rounded to the dtype, as the decomposition does.
func evalAttention(in []*tensor.Tensor, a AttentionAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
	q, k, v, t := in[0], in[1], in[2], out[0]
	qv, kv, vv := q.Floats(), k.Floats(), v.Floats()
	heads, keyHeads, l, s := q.Dims[1], k.Dims[1], q.Dims[2], k.Dims[2]
	e, ev := q.Dims[3], v.Dims[3]
	mask := func(score float64, _, _, _, _ int64) float64 { return score }
	maskAt, sinksAt := a.places(len(in))
	if maskAt >= 0 {
		mask = masker(in[maskAt])
	}
	capped := func(score float64) float64 {
		if a.Softcap == 0 {
			return score
		}
		return a.Softcap * math.Tanh(score/a.Softcap)
	}
	var sinks []float64
	if sinksAt >= 0 {
		sinks = in[sinksAt].Floats()
	}
	y := make([]float64, t.Elements())
	scores := make([]float64, s)
	for row := range q.Dims[0] * heads * l {
		i, h, b := row%l, row/l%heads, row/l/heads
		kh := b*keyHeads + h/(heads/keyHeads)
		for j := range s {
			scores[j] = mask(capped(a.Scale*dotProduct(qv[row*e:(row+1)*e], kv[(kh*s+j)*e:(kh*s+j+1)*e])), b, h, i, j)
			if !a.sees(i, j) {
				scores[j] = math.Inf(-1)
			}
		}
		top, sum := rowMax(scores), 0.0
		if sinksAt >= 0 {
			top = max(top, sinks[h])
			sum = math.Exp(sinks[h] - top)
		}
		if math.IsInf(top, -1) && !a.Plain {
			continue
		}
		for j := range scores {
			scores[j] = math.Exp(scores[j] - top)
			sum += scores[j]
		}
		rounded := tensor.FromFloats(tensor.Make(t.DType, s), scores).Floats()
		of := y[row*ev : (row+1)*ev]
		for j, ej := range rounded {
			from := (kh*s + int64(j)) * ev
			for c, x := range vv[from : from+ev] {
				of[c] += ej * x
			}
		}
		for c := range of {
			of[c] /= sum
		}
	}
	return result(tensor.FromFloats(t, y))
}

// masker applies a mask to the score of a place.
func masker(m *tensor.Tensor) func(score float64, batch, head, i, j int64) float64 {
	v, strides := m.Floats(), tensor.Strides(m.Dims)
	for d := range strides {
		if m.Dims[d] == 1 {
			strides[d] = 0
		}
	}
	return func(score float64, b, h, i, j int64) float64 {
		x := v[b*strides[0]+h*strides[1]+i*strides[2]+j*strides[3]]
		switch {
		case m.DType != tensor.Bool:
			return score + x
		case x == 0:
			return math.Inf(-1)
		}
		return score
	}
}
