package passes

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// cleanup removes operators that change nothing and joins those that move elements twice. All its rules are exact.
var cleanup = Pass{
	Name: "cleanup", Doc: "Removes and joins operators that only move or relabel elements.",
	Rules: cleanupRules,
	Run:   func(c *Context, m *ir.Module) error { return applyRules(c, m, cleanupRules) },
}

var cleanupRules = []Rule{
	{"identity_reshape", "reshape(x) to x's shape is x.", op.Reshape.Op, identity},
	{"identity_broadcast", "broadcast(x) to x's shape is x.", op.Broadcast.Op, identity},
	{"identity_convert", "convert(x) to x's dtype is x.", op.Convert.Op, identity},
	{"identity_slice", "slice(x) of everything is x.", op.Slice.Op, identity},
	{"identity_transpose", "transpose(x) in x's order is x.", op.Transpose.Op, identityTranspose},
	{"single_concat", "concat(x) is x.", op.Concat.Op, singleConcat},
	{"reshape_reshape", "reshape(reshape(x)) is reshape(x).", op.Reshape.Op, reshapeReshape},
	{"transpose_transpose", "transpose(transpose(x)) is one transpose.", op.Transpose.Op, transposeTranspose},
	{"unit_transpose", "transpose(x) that moves only dimensions of extent 1 is reshape(x).", op.Transpose.Op, unitTranspose},
	{"broadcast_broadcast", "broadcast(broadcast(x)) is broadcast(x).", op.Broadcast.Op, broadcastBroadcast},
	{"slice_slice", "slice(slice(x)) is one slice.", op.Slice.Op, sliceSlice},
	{"convert_back", "convert(convert(x)) is x where the wider dtype between holds every value of x's.", op.Convert.Op, convertBack},
}

// identity matches operators whose result can equal the argument's type only if it equals the argument. A broadcast of equal types
// has all dimensions in order, a slice of equal shapes starts at 0 with stride 1.
func identity(_ *ir.Builder, n *ir.Node) []*ir.Value {
	if x := n.Args[0]; x.Type.Equal(n.Outs[0].Type) {
		return one(x)
	}
	return nil
}

// identityTranspose looks at the order and not at the type: a transposed square has its argument's.
func identityTranspose(_ *ir.Builder, n *ir.Node) []*ir.Value {
	if slices.IsSorted(op.Transpose.Attr(n).Perm) {
		return one(n.Args[0])
	}
	return nil
}

// singleConcat is what a cache of one part or a list of one tensor leaves.
func singleConcat(_ *ir.Builder, n *ir.Node) []*ir.Value {
	if len(n.Args) == 1 {
		return one(n.Args[0])
	}
	return nil
}

// reshapeReshape goes to the last shape at once; row-major order makes the one between irrelevant.
func reshapeReshape(b *ir.Builder, n *ir.Node) []*ir.Value {
	in := n.Args[0].Def
	if !op.Reshape.Is(in) {
		return nil
	}
	return one(op.Reshape.Make(b, op.Reshape.Attr(n), in.Args[0]))
}

// transposeTranspose composes the permutations: result dimension i is dimension inner[outer[i]] of x.
func transposeTranspose(b *ir.Builder, n *ir.Node) []*ir.Value {
	in := n.Args[0].Def
	if !op.Transpose.Is(in) {
		return nil
	}
	inner := op.Transpose.Attr(in).Perm
	perm := make([]int64, len(inner))
	for i, d := range op.Transpose.Attr(n).Perm {
		perm[i] = inner[d]
	}
	return one(op.Transpose.Make(b, op.TransposeAttr{Perm: perm}, in.Args[0]))
}

// unitTranspose matches where the dimensions longer than 1 keep their order, so that no element moves. Decoders that work on one
// position at a time swap it with their heads in every layer.
func unitTranspose(b *ir.Builder, n *ir.Node) []*ir.Value {
	x := n.Args[0]
	var long []int64 // where the dimensions longer than 1 come from
	for _, d := range op.Transpose.Attr(n).Perm {
		if x.Type.Dims[d] != 1 {
			long = append(long, d)
		}
	}
	if !slices.IsSorted(long) {
		return nil
	}
	return one(op.Reshape.Make(b, op.ReshapeAttr{Shape: n.Outs[0].Type.Dims}, x))
}

// broadcastBroadcast looks the places of x's dimensions up in the outer broadcast. A dimension of extent 1 may grow in either.
func broadcastBroadcast(b *ir.Builder, n *ir.Node) []*ir.Value {
	in := n.Args[0].Def
	if !op.Broadcast.Is(in) {
		return nil
	}
	outer := op.Broadcast.Attr(n)
	dims := make([]int64, 0, len(outer.Dims))
	for _, d := range op.Broadcast.Attr(in).Dims {
		dims = append(dims, outer.Dims[d])
	}
	return one(op.Broadcast.Make(b, op.BroadcastAttr{Shape: outer.Shape, Dims: dims}, in.Args[0]))
}

// sliceSlice composes start + i*stride. Limits are tight; the stride of a single element is 1, or it could pass the extent.
func sliceSlice(b *ir.Builder, n *ir.Node) []*ir.Value {
	in := n.Args[0].Def
	if !op.Slice.Is(in) || n.Outs[0].Type.Elements() == 0 {
		return nil
	}
	outer, inner := op.Slice.Attr(n), op.Slice.Attr(in)
	var a op.SliceAttr
	for i, count := range n.Outs[0].Type.Dims {
		start := inner.Start[i] + outer.Start[i]*inner.Stride[i]
		stride := int64(1)
		if count > 1 {
			stride = inner.Stride[i] * outer.Stride[i]
		}
		a.Start = append(a.Start, start)
		a.Limit = append(a.Limit, start+(count-1)*stride+1)
		a.Stride = append(a.Stride, stride)
	}
	return one(op.Slice.Make(b, a, in.Args[0]))
}

// convertBack drops a detour through a dtype that loses nothing, such as bf16 through f32 between two composites.
func convertBack(_ *ir.Builder, n *ir.Node) []*ir.Value {
	in := n.Args[0].Def
	if !op.Convert.Is(in) {
		return nil
	}
	x := in.Args[0]
	if x.Type.DType != n.Outs[0].Type.DType || !holds(in.Outs[0].Type.DType, x.Type.DType) {
		return nil
	}
	return one(x)
}

// holds reports whether every value of narrow is one of wide, so that converting there and back changes nothing.
func holds(wide, narrow tensor.DType) bool {
	w, n := precision(wide), precision(narrow)
	switch {
	case narrow == tensor.Bool:
		return true
	case wide.IsFloat() && narrow.IsFloat():
		return w.digits >= n.digits && w.exponent >= n.exponent
	case wide.IsFloat() && narrow.IsInt():
		return w.digits >= n.digits && w.exponent >= 8 // 64-bit integers stay below 2^127
	case wide.IsInt() && narrow.IsInt():
		return w.digits >= n.digits && (wide.IsSigned() || narrow.IsUnsigned())
	}
	return false
}

// precision gives the significant bits, the implicit one counted and a sign not, and the exponent bits of a real dtype.
func precision(d tensor.DType) (p struct{ digits, exponent int }) {
	switch d {
	case tensor.F8E4M3FN:
		p.digits, p.exponent = 4, 4
	case tensor.F8E5M2:
		p.digits, p.exponent = 3, 5
	case tensor.BF16:
		p.digits, p.exponent = 8, 8
	case tensor.F16:
		p.digits, p.exponent = 11, 5
	case tensor.F32:
		p.digits, p.exponent = 24, 8
	case tensor.F64:
		p.digits, p.exponent = 53, 11
	default:
		p.digits = d.Bits()
		if d.IsSigned() {
			p.digits--
		}
	}
	return p
}
