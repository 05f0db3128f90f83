package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// adaptiveRules take maxima under windows that divide dimensions into a number of parts.
var adaptiveRules = map[string]rule{
	"adaptive_max_pool1d": values(func(c *call) []*ir.Value { return c.adaptiveMax(1) }),
	"adaptive_max_pool2d": values(func(c *call) []*ir.Value { return c.adaptiveMax(2) }),
	"adaptive_max_pool3d": values(func(c *call) []*ir.Value { return c.adaptiveMax(3) }),
}

// adaptiveMax gives the maxima of windows floor(i n/o) to ceil((i+1) n/o) of the last dimensions, and their places in the flattened ones.
func (c *call) adaptiveMax(spatial int) []*ir.Value {
	x := c.val("self")
	out := c.resultType().Dims
	rank := x.Type.Rank()
	if rank < spatial || len(out) != rank {
		c.failf("self is %s, wanted %d dimensions", x.Type, spatial)
	}
	first := rank - spatial
	plane := x.Type.Dims[first:]
	places := reshape(c.b, counting(c.b, tensor.I64, []int64{x.Type.WithDims(plane...).Elements()}, 0), plane)
	places = op.BroadcastTo(c.b, places, x.Type.Dims)
	taps := int64(1)
	for i := range spatial { // the windows of dimension i become dimension first+i and, for now, the last but those before
		axis := first + i
		n, o := x.Type.Dims[axis], out[axis]
		if n < 1 || o < 1 {
			if o == 0 {
				empty := splat(c.b, x.Type.DType, intScalar(0), out)
				return []*ir.Value{empty, splat(c.b, tensor.I64, intScalar(0), out)}
			}
			c.failf("dimension %d is %d, wanted 1 or more", axis, n)
		}
		size := int64(1)
		for k := range o {
			size = max(size, ((k+1)*n+o-1)/o-k*n/o)
		}
		if taps *= size; o*size > maxConstant || taps > maxMatrix {
			c.unsupported("pooling %d to %d", n, o)
		}
		var ids []int64
		for k := range o {
			from, to := k*n/o, ((k+1)*n+o-1)/o
			for j := range size { // shorter windows repeat their last element
				ids = append(ids, min(from+j, to-1))
			}
		}
		at := literal(c.b, tensor.I64, []int64{o, size}, ids)
		spread := func(v *ir.Value) *ir.Value {
			v = op.Take.Make(c.b, op.TakeAttr{Axis: int64(axis)}, v, at)
			perm := iotaInts(v.Type.Rank())
			perm = append(slices.Delete(perm, axis+1, axis+2), int64(axis+1))
			return transpose(c.b, v, perm)
		}
		x, places = spread(x), spread(places)
	}
	all := slices.Concat(out, []int64{taps})
	if tensor.Make(x.Type.DType, all...).Elements() != x.Type.Elements() {
		c.failf("windows of %s, wanted results of %v", x.Type, out)
	}
	x, places = reshape(c.b, x, all), reshape(c.b, places, all)
	top, at := c.firstExtreme(op.Max, x, rank)
	return []*ir.Value{reshape(c.b, top, out), reshape(c.b, c.gatherAlong(places, at, rank), out)}
}
