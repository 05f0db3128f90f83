package pt2

import (
	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// padRules continue a tensor beyond its ends. Padding lists give (low, high) from the last dimension backwards.
var padRules = map[string]rule{
	"pad":               value(pad),
	"constant_pad_nd":   value(func(c *call) *ir.Value { return c.padWith(c.scalar("value")) }),
	"reflection_pad1d":  value(func(c *call) *ir.Value { return c.edgePad(c.val("self"), c.ints("padding"), "reflect") }),
	"reflection_pad2d":  value(func(c *call) *ir.Value { return c.edgePad(c.val("self"), c.ints("padding"), "reflect") }),
	"reflection_pad3d":  value(func(c *call) *ir.Value { return c.edgePad(c.val("self"), c.ints("padding"), "reflect") }),
	"replication_pad1d": value(func(c *call) *ir.Value { return c.edgePad(c.val("self"), c.ints("padding"), "replicate") }),
	"replication_pad2d": value(func(c *call) *ir.Value { return c.edgePad(c.val("self"), c.ints("padding"), "replicate") }),
	"replication_pad3d": value(func(c *call) *ir.Value { return c.edgePad(c.val("self"), c.ints("padding"), "replicate") }),
}

// pad is torch.nn.functional.pad, by its mode.
func pad(c *call) *ir.Value {
	switch mode := c.str("mode"); mode {
	case "constant":
		v := intScalar(0)
		if c.has("value") {
			v = c.scalar("value")
		}
		return c.padWith(v)
	case "reflect", "replicate", "circular":
		return c.edgePad(c.val("self"), c.ints("pad"), mode)
	default:
		c.failf("mode is %q, wanted constant, reflect, replicate or circular", clip(mode))
	}
	return nil
}

// padWidths gives (low, high) by dimension.
func (c *call) padWidths(x *ir.Value, widths []int64) (low, high []int64) {
	rank := x.Type.Rank()
	if len(widths)%2 != 0 || len(widths)/2 > rank {
		c.failf("%d paddings for rank %d", len(widths), rank)
	}
	low, high = make([]int64, rank), make([]int64, rank)
	for i := range len(widths) / 2 {
		d := rank - 1 - i
		low[d], high[d] = widths[2*i], widths[2*i+1]
	}
	return low, high
}

// padWith pads self by the argument pad with v.
func (c *call) padWith(v scalar) *ir.Value {
	if y, open := c.openPad(v); open {
		return y
	}
	return c.constantPad(c.val("self"), c.ints("pad"), v)
}

// constantPad adds v around x; negative widths crop.
func (c *call) constantPad(x *ir.Value, widths []int64, v scalar) *ir.Value {
	low, high := c.padWidths(x, widths)
	return op.Pad.Make(c.b, op.PadAttr{Low: low, High: high, Interior: make([]int64, len(low))}, x, constant(c.b, x.Type.DType, v))
}

// edgePad continues x beyond its ends by mirroring, repeating the ends, or going around.
func (c *call) edgePad(x *ir.Value, widths []int64, mode string) *ir.Value {
	low, high := c.padWidths(x, widths)
	for d := range low {
		if low[d] == 0 && high[d] == 0 {
			continue
		}
		n := x.Type.Dims[d]
		limit := n
		switch mode {
		case "reflect":
			limit = n - 1
		case "replicate":
			limit = 1 << 40
		}
		if low[d] > limit || high[d] > limit || n == 0 && (low[d] > 0 || high[d] > 0) {
			c.failf("padding (%d, %d) of dimension %d with %d elements by mode %s", low[d], high[d], d, n, mode)
		}
		if mode == "replicate" && (low[d] < 0 || high[d] < 0) { // more may be cut than there is
			total := n + low[d] + high[d]
			if n == 0 || total < 0 || total > maxConstant {
				c.unsupported("padding (%d, %d) of dimension %d with %d elements", low[d], high[d], d, n)
			}
			ids := make([]int64, total)
			for i := range ids {
				ids[i] = min(max(int64(i)-low[d], 0), n-1)
			}
			x = op.Take.Make(c.b, op.TakeAttr{Axis: int64(d)}, x, literal(c.b, tensor.I64, []int64{total}, ids))
			continue
		}
		// Crop first, then add.
		x = slice(c.b, x, d, max(-low[d], 0), max(n-max(-high[d], 0), max(-low[d], 0)), 1)
		if low[d] <= 0 && high[d] <= 0 {
			continue
		}
		n = x.Type.Dims[d]
		parts := []*ir.Value{}
		axis := []int64{int64(d)}
		if w := low[d]; w > 0 {
			switch mode {
			case "reflect":
				parts = append(parts, reverse(c.b, slice(c.b, x, d, 1, w+1, 1), axis))
			case "circular":
				parts = append(parts, slice(c.b, x, d, n-w, n, 1))
			default:
				parts = append(parts, c.repeatEdge(x, d, 0, w))
			}
		}
		parts = append(parts, x)
		if w := high[d]; w > 0 {
			switch mode {
			case "reflect":
				parts = append(parts, reverse(c.b, slice(c.b, x, d, n-1-w, n-1, 1), axis))
			case "circular":
				parts = append(parts, slice(c.b, x, d, 0, w, 1))
			default:
				parts = append(parts, c.repeatEdge(x, d, n-1, w))
			}
		}
		x = concat(c.b, d, parts...)
	}
	return x
}

// repeatEdge repeats the slice at an index w times.
func (c *call) repeatEdge(x *ir.Value, axis int, at, w int64) *ir.Value {
	edge := slice(c.b, x, axis, at, at+1, 1)
	dims := append([]int64{}, edge.Type.Dims...)
	dims[axis] = w
	return op.BroadcastTo(c.b, edge, dims)
}
