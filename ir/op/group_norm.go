package op

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// GroupNormAttr is the attribute struct of GroupNorm.
type GroupNormAttr struct {
	Groups int64   `ir:"groups"`
	Eps    float64 `ir:"eps"`
}

// GroupNorm normalises mean and variance over each group of channels of x [N, C, ...] with all their positions, then scales by w [C]
// and shifts by b [C] (aten::group_norm). Floats; all is computed in f32 at least and rounded once, to x's dtype.
var GroupNorm = define(Def[GroupNormAttr]{
	Name: "group_norm", Doc: "Normalises mean and variance over groups of channels, then scales and shifts channels.", Args: "x w? b?",
	Infer: inferGroupNorm, Decompose: decomposeGroupNorm, Eval: evalGroupNorm,
	Cost: func(n *ir.Node, _ GroupNormAttr) ir.Cost { return ir.Cost{Flops: 8 * n.Outs[0].Type.Elements()} },
})

// inferGroupNorm checks rank and groups in 1 and 2, dtypes in 3 and the channels' vectors in 4.
func inferGroupNorm(in []tensor.Type, a GroupNormAttr) ([]tensor.Type, error) {
	x := in[0]
	if x.Rank() < 2 {
		return nil, fail(1, "x is %s, wanted rank 2 or more", x)
	}
	if a.Groups < 1 || x.Dims[1]%a.Groups != 0 {
		return nil, fail(2, "%d groups, wanted 1 or more that divide %d channels", a.Groups, x.Dims[1])
	}
	for i, t := range in {
		if !t.DType.IsFloat() {
			return nil, fail(3, "argument %d is %s, wanted float", i, t)
		}
		if i > 0 && (t.Rank() != 1 || t.Dims[0] != x.Dims[1]) {
			return nil, fail(4, "argument %d is %s, wanted shape [%d] as the channels of x", i, t, x.Dims[1])
		}
	}
	return one(x)
}

func decomposeGroupNorm(b *ir.Builder, n *ir.Node, a GroupNormAttr) []*ir.Value {
	x, t := widen(b, n.Args[0]), n.Outs[0].Type
	// Only the channels are split: the other dimensions keep the layout that convolutions give them.
	grouped := slices.Concat([]int64{t.Dims[0], a.Groups, t.Dims[1] / a.Groups}, t.Dims[2:])
	y := standardize(b, reshape(b, x, grouped...), count(2, len(grouped)), a.Eps)
	y = reshape(b, y, t.Dims...)
	for i, v := range n.Args[1:] {
		v = Broadcast.Make(b, BroadcastAttr{Shape: t.Dims, Dims: []int64{1}}, Cast(b, v, y.Type.DType))
		if i == 0 {
			y = Mul.Make(b, y, v)
		} else {
			y = Add.Make(b, y, v)
		}
	}
	return []*ir.Value{Cast(b, y, t.DType)}
}

// evalGroupNorm relies on the order of elements: a group is a contiguous run, and so is a channel's plane.
func evalGroupNorm(in []*tensor.Tensor, a GroupNormAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
	v, t := in[0].Floats(), out[0]
	for row := range chunks(v, int(product(t.Dims[1:])/a.Groups)) {
		standardizeRow(row, a.Eps)
	}
	for k, x := range in[1:] {
		f, c := x.Floats(), 0
		for plane := range chunks(v, int(product(t.Dims[2:]))) {
			for i := range plane {
				if k == 0 {
					plane[i] *= f[c]
				} else {
					plane[i] += f[c]
				}
			}
			c = (c + 1) % len(f)
		}
	}
	return result(tensor.FromFloats(t, v))
}
