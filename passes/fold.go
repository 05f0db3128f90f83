package passes

import (
	"fmt"
	"math"
	"slices"

	"tpuc/ir"
	"tpuc/ir/eval"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// Limits of folding.
const (
	maxLiteral = 64 << 10 // bytes of one result; lowering keeps larger constants out of the program
	maxGrowth  = 1 << 10  // bytes by which a literal may exceed the literals it is made from
	maxFlops   = 1 << 24  // of one node, in an evaluator that is not fast
	maxWork    = 64 << 20 // bytes and operations of all results computed, so that the pass is bounded
)

// fold evaluates nodes whose arguments are all known and whose results have the same bits on every processor (ir.IsExact): literals and the contents of constant weights, never those of parameters, of
// persistent buffers or of state. Equal elements become a scalar and a broadcast. Iota and broadcasts stay as they are, since their
// elements would take more room; but what is computed from them counts as known, so a small result at the end of a chain is folded.
var fold = Pass{
	Name: "fold", Doc: "Evaluates nodes whose arguments are constants.",
	Run: func(c *Context, m *ir.Module) error {
		f := folder{c: c, known: make(map[*ir.Value]known)}
		for _, w := range m.Weights {
			if w.Class == ir.Constant && !w.Mutable && w.Data != nil {
				f.known[w.Value] = known{w.Data, w.Data.Bytes()}
			}
		}
		for _, g := range m.Functions() {
			g.Rewrite(f.node)
		}
		return nil
	},
}

// known is a value's contents and the bytes of the literals and constant weights behind it.
type known struct {
	data  *tensor.Tensor
	bytes int64
}

// folder is the state of one run.
type folder struct {
	c     *Context
	known map[*ir.Value]known
	work  int64
}

// node registers what is known of n's results, and replaces them where the literals are short enough.
func (f *folder) node(b *ir.Builder, n *ir.Node) []*ir.Value {
	f.c.At(n)
	if op.Constant.Is(n) {
		x := op.Constant.Attr(n).Value
		return f.literal(b, n, x)
	}
	out, bytes := f.eval(n)
	if out == nil {
		return nil
	}
	// Generators are shorter than what they generate, and known only to those who use them.
	keep := op.Iota.Is(n) || op.Broadcast.Is(n) && n.Args[0].Type.Rank() == 0
	size := int64(0)
	for i, o := range n.Outs {
		f.known[o] = known{out[i], bytes}
		size += out[i].Bytes()
		if s, ok := out[i].Splat(); ok {
			size += s.Bytes() - out[i].Bytes()
		}
		keep = keep || o.Sharding != nil
	}
	if keep || size > bytes+maxGrowth {
		return nil
	}
	f.c.Hit(n.Op.Name)
	repl := make([]*ir.Value, len(out))
	for i, x := range out {
		repl[i] = f.make(b, x)
	}
	return repl
}

// literal registers a constant node. One of many equal elements becomes a scalar and a broadcast.
func (f *folder) literal(b *ir.Builder, n *ir.Node, x *tensor.Tensor) []*ir.Value {
	if _, ok := x.Splat(); ok && x.Elements() > 1 && n.Outs[0].Sharding == nil {
		f.c.Hit("splat")
		return one(f.make(b, x))
	}
	f.known[n.Outs[0]] = known{x, x.Bytes()}
	return nil
}

// make builds the shortest form of x.
func (f *folder) make(b *ir.Builder, x *tensor.Tensor) *ir.Value {
	s, splat := x.Splat()
	if !splat || x.Elements() == 1 {
		v := op.Constant.Make(b, op.ConstantAttr{Value: x})
		f.known[v] = known{x, x.Bytes()}
		return v
	}
	v := op.Constant.Make(b, op.ConstantAttr{Value: s})
	f.known[v] = known{s, s.Bytes()}
	w := op.BroadcastTo(b, v, x.Dims)
	f.known[w] = known{x, s.Bytes()}
	return w
}

// eval computes n's results where that is possible and cheap enough, and gives the bytes of literals behind them.
func (f *folder) eval(n *ir.Node) (out []*tensor.Tensor, bytes int64) {
	if !ir.IsExact(n) || op.Opaque.Is(n) || op.OpaqueEffect.Is(n) { // what an opaque operation gives is known to plugins alone
		return nil, 0
	}
	args := make([]*tensor.Tensor, len(n.Args))
	for i, a := range n.Args {
		k, ok := f.known[a]
		if !ok {
			return nil, 0
		}
		args[i] = k.data
		bytes += k.bytes
	}
	size := int64(0)
	for _, o := range n.Outs {
		size += o.Type.Bytes()
	}
	flops := ir.CostOf(n).Flops
	if size > maxLiteral || flops > maxFlops || f.work+size+flops > maxWork {
		return nil, 0
	}
	f.work += size + flops
	out, err := eval.Node(n, args)
	if err != nil {
		panic(fmt.Sprintf("evaluating %s: %v", n.Op.Name, err))
	}
	if n.Op.Traits&ir.Elementwise != 0 && slices.ContainsFunc(out, hasNaN) {
		return nil, 0
	}
	return out, bytes
}

// hasNaN finds the one result of arithmetic whose bits IEEE 754 leaves to the processor.
func hasNaN(x *tensor.Tensor) bool {
	return x.DType.IsFloat() && slices.ContainsFunc(x.Floats(), math.IsNaN)
}
