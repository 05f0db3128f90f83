package stablehlo

import (
	"slices"
	"strings"

	"tpuc/frontend/stablehlo/bytecode"
	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// moveRules make, move and join elements without computing on them.
var moveRules = map[string]rule{
	"stablehlo.constant":                 constant,
	"stablehlo.iota":                     counter,
	"stablehlo.dynamic_iota":             dynamicIota,
	"stablehlo.reshape":                  reshape,
	"stablehlo.dynamic_reshape":          reshape,
	"stablehlo.broadcast_in_dim":         broadcast,
	"stablehlo.dynamic_broadcast_in_dim": broadcast,
	"stablehlo.broadcast":                prepend,
	"stablehlo.transpose":                transpose,
	"stablehlo.reverse":                  reverse,
	"stablehlo.concatenate":              concatenate,
	"stablehlo.slice":                    slice,
	"stablehlo.pad":                      pad,
	"stablehlo.optimization_barrier":     barrier,
	"stablehlo.get_dimension_size":       dimensionSize,
}

// constant is a literal. One element for all is stored once.
func constant(c *call) []*ir.Value {
	a, ok := c.o.attrs.find("value")
	if !ok || a.Angle == nil {
		c.fail("no value, wanted dense<...>")
	}
	t := c.out()
	body, ok := strings.CutPrefix(*a.Angle, "dense<")
	if !ok {
		if l := c.p.literal(*a.Angle); l != nil {
			return one(c.namedLiteral(l, t))
		}
		c.unsupportedBut("print the module with its constants in the text: large_elements_limit must not cut them, resources must not hold them",
			"the value is %s, wanted dense<...>", clip(*a.Angle))
	}
	body = strings.TrimSuffix(body, ">")
	as := t
	splat := body != "" && body[0] != '[' && body[0] != '"'
	if splat {
		as = t.WithDims()
	}
	if x := c.p.literals[c.o]; x != nil { // in a function that is called again
		return one(c.spread(op.Constant.Make(c.b, op.ConstantAttr{Value: x}), t.Dims))
	}
	if c.p.bytes += as.Bytes(); c.p.bytes > maxLiteral {
		c.fail("more than %d bytes of constants, wanted at most that", int64(maxLiteral))
	}
	if !splat && int64(len(body)) < as.Elements() && !strings.HasPrefix(body, `"`) {
		c.fail("literal of %d bytes, wanted %d elements for %s", len(body), as.Elements(), t)
	}
	if strings.HasPrefix(body, `"`) && int64(len(body)) < as.Bytes()/4 { // one element in hex, or cut off
		as = t.WithDims()
	}
	x, want := denseLiteral(body, as)
	if want != "" {
		c.fail("literal, wanted %s", want)
	}
	c.p.literals[c.o] = x
	return one(c.spread(op.Constant.Make(c.b, op.ConstantAttr{Value: x}), t.Dims))
}

// namedLiteral is a literal whose elements do not stand in the text: all of them, as one that stands for all is never long.
func (c *call) namedLiteral(l *bytecode.Literal, t tensor.Type) *ir.Value {
	x := c.p.literals[c.o]
	if x == nil { // otherwise in a function that is called again
		if c.p.bytes += t.Bytes(); c.p.bytes > maxLiteral {
			c.fail("more than %d bytes of constants, wanted at most that", int64(maxLiteral))
		}
		if int64(len(l.Data)) != t.Bytes() {
			c.fail("literal of %d bytes, wanted %d for %s", len(l.Data), t.Bytes(), t)
		}
		x, _ = rawLiteral(l.Data, t)
		c.p.literals[c.o] = x
	}
	return op.Constant.Make(c.b, op.ConstantAttr{Value: x})
}

func counter(c *call) []*ir.Value {
	c.arity(0)
	if t := c.out(); t.DType.IsInt() || t.DType.IsFloat() || t.DType.IsComplex() {
		return one(op.Iota.Make(c.b, op.IotaAttr{Type: t, Axis: c.int("iota_dimension", 0)}))
	}
	return nil
}

// dynamicIota has a static result by its declared type.
func dynamicIota(c *call) []*ir.Value {
	c.args = nil
	return counter(c)
}

// reshape goes to the declared shape; a second operand repeats it.
func reshape(c *call) []*ir.Value {
	if len(c.args) != 2 || c.o.name != "stablehlo.dynamic_reshape" {
		c.arity(1)
	}
	return one(reshapeTo(c.b, c.args[0], c.out().Dims))
}

func reshapeTo(b *ir.Builder, x *ir.Value, dims []int64) *ir.Value {
	if slices.Equal(x.Type.Dims, dims) {
		return x
	}
	return op.Reshape.Make(b, op.ReshapeAttr{Shape: dims}, x)
}

// broadcast places x's dimensions among the result's. The IR wants them ascending, so x is transposed where they are not.
func broadcast(c *call) []*ir.Value {
	if len(c.args) != 2 || c.o.name != "stablehlo.dynamic_broadcast_in_dim" {
		c.arity(1)
	}
	x, dims, shape := c.args[0], c.list("broadcast_dimensions", nil), c.out().Dims
	if len(dims) != x.Type.Rank() {
		c.fail("broadcast_dimensions are %v, wanted %d", dims, x.Type.Rank())
	}
	if !slices.IsSorted(dims) {
		perm := count(len(dims))
		slices.SortFunc(perm, func(i, j int64) int { return int(dims[i] - dims[j]) })
		x = op.Transpose.Make(c.b, op.TransposeAttr{Perm: perm}, x)
		dims = slices.Sorted(slices.Values(dims))
	}
	if slices.Equal(x.Type.Dims, shape) && slices.Equal(dims, count(len(shape))) {
		return one(x)
	}
	return one(op.Broadcast.Make(c.b, op.BroadcastAttr{Shape: shape, Dims: dims}, x))
}

// prepend is broadcast with new dimensions in front.
func prepend(c *call) []*ir.Value {
	c.arity(1)
	return one(op.BroadcastTo(c.b, c.args[0], c.out().Dims))
}

func transpose(c *call) []*ir.Value {
	c.arity(1)
	return one(transposeBy(c.b, c.args[0], c.list("permutation", nil)))
}

func transposeBy(b *ir.Builder, x *ir.Value, perm []int64) *ir.Value {
	if len(perm) == x.Type.Rank() && slices.Equal(perm, count(len(perm))) {
		return x
	}
	return op.Transpose.Make(b, op.TransposeAttr{Perm: perm}, x)
}

func reverse(c *call) []*ir.Value {
	c.arity(1)
	axes := slices.Clone(c.list("dimensions", nil))
	slices.Sort(axes)
	if len(axes) == 0 {
		return one(c.args[0])
	}
	return one(op.Reverse.Make(c.b, op.ReverseAttr{Axes: axes}, c.args[0]))
}

func concatenate(c *call) []*ir.Value {
	if len(c.args) == 1 {
		return one(c.args[0])
	}
	return one(op.Concat.Make(c.b, op.ConcatAttr{Axis: c.int("dimension", 0)}, c.args...))
}

func slice(c *call) []*ir.Value {
	c.arity(1)
	n := c.args[0].Type.Rank()
	a := op.SliceAttr{Start: c.list("start_indices", nil), Limit: c.list("limit_indices", nil), Stride: c.list("strides", ones(n))}
	return one(op.Slice.Make(c.b, a, c.args[0]))
}

func pad(c *call) []*ir.Value {
	c.arity(2)
	zeros := make([]int64, c.args[0].Type.Rank())
	a := op.PadAttr{Low: c.list("edge_padding_low", zeros), High: c.list("edge_padding_high", zeros), Interior: c.list("interior_padding", zeros)}
	return one(op.Pad.Make(c.b, a, c.args[0], c.args[1]))
}

func barrier(c *call) (out []*ir.Value) {
	for _, a := range c.args {
		out = append(out, op.Barrier.Make(c.b, a))
	}
	return out
}

func dimensionSize(c *call) []*ir.Value {
	c.arity(1)
	d := c.int("dimension", 0)
	if d < 0 || d >= int64(c.args[0].Type.Rank()) {
		c.fail("dimension is %d, wanted one of rank %d", d, c.args[0].Type.Rank())
	}
	return one(op.Constant.Make(c.b, op.ConstantAttr{Value: tensor.ScalarInt(c.out().DType, c.args[0].Type.Dims[d])}))
}
