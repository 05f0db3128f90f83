package passes

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
)

// layout lets products read their arguments as they lie: dot names the dimensions that it multiplies over, so a transpose before it and
// a flattening around it say nothing that its attributes cannot. What is left of moves of weights is done when they are loaded.
var layout = Pass{
	Name: "layout", Doc: "Folds transposes and flattenings of products' arguments into the products, and those of weights into their sources.",
	After: []string{"expand"}, // products of composites are there
	Rules: slices.Concat(layoutRules, layoutWeightRules, layoutPackedRules),
	Run: func(c *Context, m *ir.Module) error {
		if err := applyRules(c, m, layoutRules); err != nil {
			return err
		}
		foldWeights(c, m)
		if c.packed && !c.target.IsTPU() {
			packWeights(c, m)
		}
		return nil
	},
}

var layoutRules = []Rule{
	rule("dot_transpose", "dot(transpose(x), y) names x's dimensions, where those that stay keep their order.", op.Dot.Op, dotTranspose),
	rule("dot_broadcast", "dot(x, broadcast(y)) along batch dimensions that y is repeated along is dot(x, y).", op.Dot.Op, dotBroadcast),
	counted("transpose_dot", "transpose(dot(x, y)) that swaps what is left of x and y is dot(y, x).", op.Transpose.Op, transposeDot),
	counted("dot_flatten", "reshape(dot(reshape(x), y)) that flattens x's rows and splits them again is reshape(dot(x, y)) or dot(x, y).", op.Reshape.Op, dotFlatten),
}

// dotSide are the dimension lists of one argument of a dot; free dimensions are the others, in order.
type dotSide struct{ batch, contract []int64 }

// sides reads both arguments' lists.
func sides(n *ir.Node) [2]dotSide {
	a := op.Dot.Attr(n)
	var s [2]dotSide
	for i := range s {
		if len(a.Batch) == 2 {
			s[i].batch = a.Batch[i]
		}
		if len(a.Contract) == 2 {
			s[i].contract = a.Contract[i]
		}
	}
	return s
}

// makeDot builds a dot of the result dtype that n has.
func makeDot(b *ir.Builder, n *ir.Node, s [2]dotSide, x, y *ir.Value) *ir.Value {
	a := op.DotAttr{Out: op.Dot.Attr(n).Out}
	if len(s[0].batch) > 0 {
		a.Batch = [][]int64{s[0].batch, s[1].batch}
	}
	if len(s[0].contract) > 0 {
		a.Contract = [][]int64{s[0].contract, s[1].contract}
	}
	return op.Dot.Make(b, a, x, y)
}

// freeDims are the dimensions of x that s names in neither list.
func freeDims(x *ir.Value, s dotSide) (out []int64) {
	for d := range int64(x.Type.Rank()) {
		if !slices.Contains(s.batch, d) && !slices.Contains(s.contract, d) {
			out = append(out, d)
		}
	}
	return out
}

// at maps dimensions through a list.
func at(list, dims []int64) []int64 {
	out := make([]int64, len(dims))
	for i, d := range dims {
		out[i] = list[d]
	}
	return out
}

// dotTranspose looks through a transpose of either argument, such as that of a weight [out, in] for x @ w.T.
func dotTranspose(b *ir.Builder, n *ir.Node) []*ir.Value {
	s := sides(n)
	for i, x := range n.Args {
		if !op.Transpose.Is(x.Def) {
			continue
		}
		perm := op.Transpose.Attr(x.Def).Perm
		if !slices.IsSorted(at(perm, freeDims(x, s[i]))) {
			continue
		}
		s[i] = dotSide{at(perm, s[i].batch), at(perm, s[i].contract)}
		args := slices.Clone(n.Args)
		args[i] = x.Def.Args[0]
		return one(makeDot(b, n, s, args[0], args[1]))
	}
	return nil
}

// dotBroadcast matches a second argument that is the same for all batches, such as a weight that a decomposed linear repeats for bmm, where
// x's batch dimensions come first anyway: they become free ones.
func dotBroadcast(b *ir.Builder, n *ir.Node) []*ir.Value {
	s := sides(n)
	x, y := n.Args[0], n.Args[1]
	if len(s[1].batch) == 0 || !slices.IsSorted(slices.Concat(s[0].batch, freeDims(x, s[0]))) {
		return nil
	}
	from, places := y, upTo(0, int64(y.Type.Rank())) // where the dimensions of from stand in y
	if op.Broadcast.Is(y.Def) {
		from, places = y.Def.Args[0], op.Broadcast.Attr(y.Def).Dims
	}
	var shape, kept []int64       // extents of from's dimensions that no batch dimension is, and their places in what is left of y
	left := func(d int64) int64 { // the place of y's dimension d without the batch dimensions
		before := int64(0)
		for _, batch := range s[1].batch {
			if batch < d {
				before++
			}
		}
		return d - before
	}
	for i, d := range places {
		switch {
		case !slices.Contains(s[1].batch, d):
			shape, kept = append(shape, from.Type.Dims[i]), append(kept, left(d))
		case from.Type.Dims[i] != 1:
			return nil
		}
	}
	var dims []int64
	for d, extent := range y.Type.Dims {
		if !slices.Contains(s[1].batch, int64(d)) {
			dims = append(dims, extent)
		}
	}
	contract := slices.Clone(s[1].contract)
	for i, d := range contract {
		contract[i] = left(d)
	}
	y = reshapeTo(b, from, shape)
	if !slices.Equal(shape, dims) {
		y = op.Broadcast.Make(b, op.BroadcastAttr{Shape: dims, Dims: kept}, y)
	}
	return one(makeDot(b, n, [2]dotSide{{nil, s[0].contract}, {nil, contract}}, x, y))
}

// transposeDot matches a permutation that keeps the batch dimensions and puts what is left of y before what is left of x.
func transposeDot(b *ir.Builder, n *ir.Node, u uses) []*ir.Value {
	in := n.Args[0].Def
	if !u.sole(n.Args[0]) || !op.Dot.Is(in) {
		return nil
	}
	s := sides(in)
	batch, left := int64(len(s[0].batch)), int64(len(freeDims(in.Args[0], s[0])))
	rank := int64(n.Outs[0].Type.Rank())
	want := slices.Concat(upTo(0, batch), upTo(batch+left, rank), upTo(batch, batch+left))
	if !slices.Equal(op.Transpose.Attr(n).Perm, want) {
		return nil
	}
	return one(makeDot(b, in, [2]dotSide{s[1], s[0]}, in.Args[1], in.Args[0]))
}

// dotFlatten matches x [..., k] made [rows, k] for a product without batch dimensions and its result [rows, n] given x's rows again, as a
// decomposed linear does; n may be split at once, into heads.
func dotFlatten(b *ir.Builder, n *ir.Node, u uses) []*ir.Value {
	in := n.Args[0].Def
	if !u.sole(n.Args[0]) || !op.Dot.Is(in) || !op.Reshape.Is(in.Args[0].Def) {
		return nil
	}
	s := sides(in)
	flat, x := in.Args[0], in.Args[0].Def.Args[0]
	last := int64(x.Type.Rank()) - 1
	if flat.Type.Rank() != 2 || last < 0 || len(s[0].batch) > 0 || !slices.Equal(s[0].contract, []int64{1}) ||
		x.Type.Dims[last] != flat.Type.Dims[1] || flat.Type.Dims[1] == 0 {
		return nil
	}
	out := n.Outs[0].Type
	if out.Rank() <= int(last) || !slices.Equal(out.Dims[:last], x.Type.Dims[:last]) || x.Type.Elements() == 0 {
		return nil
	}
	s[0].contract = []int64{last}
	y := makeDot(b, in, s, x, in.Args[1])
	if !y.Type.Equal(out) {
		y = op.Reshape.Make(b, op.ReshapeAttr{Shape: out.Dims}, y)
	}
	return one(y)
}

// upTo are the integers from lo up to, not including, hi.
func upTo(lo, hi int64) (out []int64) {
	for i := lo; i < hi; i++ {
		out = append(out, i)
	}
	return out
}
