package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
)

// recurrentRules are recurrent layers, written out step by step: the number of steps is known. The products with the input are
// computed for all steps at once.
var recurrentRules = map[string]rule{
	"lstm.input":     values(func(c *call) []*ir.Value { return c.recurrent(4, lstmStep) }),
	"gru.input":      values(func(c *call) []*ir.Value { return c.recurrent(3, gruStep) }),
	"rnn_tanh.input": values(func(c *call) []*ir.Value { return c.recurrent(1, rnnStep(op.Tanh)) }),
	"rnn_relu.input": values(func(c *call) []*ir.Value { return c.recurrent(1, rnnStep(relu{})) }),
	"lstm_cell":      values(func(c *call) []*ir.Value { return c.oneStep(4, lstmStep) }),
	"gru_cell":       values(func(c *call) []*ir.Value { return c.oneStep(3, gruStep) }),
	"rnn_tanh_cell":  values(func(c *call) []*ir.Value { return c.oneStep(1, rnnStep(op.Tanh)) }),
	"rnn_relu_cell":  values(func(c *call) []*ir.Value { return c.oneStep(1, rnnStep(relu{})) }),
}

// maxSteps bounds what one recurrent operator is written out to.
const maxSteps = 1 << 12

// cell computes the state after one step: x and h are the input's and the state's products, [batch, gates*hidden].
type cell func(f fb, x, h *ir.Value, state []*ir.Value) []*ir.Value

// layerParams are the weights of one layer and direction.
type layerParams struct {
	ih, hh, bih, bhh, proj *ir.Value // biases and projection may be nil
}

// initial are the states that the argument hx holds: one, or two of an LSTM.
func (c *call) initial(gates int64) []*ir.Value {
	var init []*ir.Value
	if c.schema.param("hx").typ == "Tensor[]" {
		init = c.vals("hx")
	} else {
		init = append(init, c.val("hx"))
	}
	if len(init) != btoi(gates == 4)+1 {
		c.failf("%d initial states", len(init))
	}
	return init
}

// oneStep is a cell applied once, to an input [batch, features] and states [batch, hidden]. It gives the new states.
func (c *call) oneStep(gates int64, step cell) []*ir.Value {
	x, state := c.val("input"), c.initial(gates)
	for _, s := range append(slices.Clone(state), x) {
		if s.Type.Rank() != 2 || s.Type.Dims[0] != x.Type.Dims[0] {
			c.failf("the input is %s and a state %s, wanted rank 2 and one batch", x.Type, s.Type)
		}
	}
	xs, hs := c.linear(x, c.val("w_ih"), c.opt("b_ih")), c.linear(state[0], c.val("w_hh"), c.opt("b_hh"))
	if wanted := gates * state[0].Type.Dims[1]; xs.Type.Dims[1] != wanted || hs.Type.Dims[1] != wanted {
		c.failf("weights give %s and %s, wanted %d columns", xs.Type, hs.Type, wanted)
	}
	return step(fb{c.b, c}, xs, hs, state)
}

// recurrent runs all layers and directions. It gives the sequence of the last layer and the final states, stacked by layer and
// direction. The input is [steps, batch, features], or [batch, steps, features] with batch_first; without a batch it has rank 2.
func (c *call) recurrent(gates int64, step cell) []*ir.Value {
	if c.bool("train") && c.float("dropout") != 0 {
		c.unsupported("it is random with train=True; export the model in eval mode")
	}
	x := c.val("input")
	init := c.initial(gates) // [layers*directions, batch, hidden]
	batched := x.Type.Rank() == 3
	if !batched {
		if x.Type.Rank() != 2 {
			c.failf("input is %s, wanted rank 3", x.Type)
		}
		x = reshape(c.b, x, []int64{x.Type.Dims[0], 1, x.Type.Dims[1]})
		for i, s := range init {
			init[i] = reshape(c.b, s, slices.Insert(slices.Clone(s.Type.Dims), 1, 1))
		}
	} else if c.bool("batch_first") {
		x = swap(c.b, x, 0, 1)
	}
	layers, dirs := c.int("num_layers"), int64(1+btoi(c.bool("bidirectional")))
	params := c.layerParams(layers*dirs, len(init) == 2 && init[0].Type.Dims[2] != init[1].Type.Dims[2])
	for _, s := range init {
		if s.Type.Rank() != 3 || s.Type.Dims[0] != layers*dirs {
			c.failf("initial state is %s, wanted %d layers and directions", s.Type, layers*dirs)
		}
	}
	if steps := x.Type.Dims[0]; steps < 1 || steps > maxSteps/(layers*dirs) {
		c.unsupported("%d steps of %d layers", steps, layers*dirs)
	}
	final := make([][]*ir.Value, len(init)) // by state, then layer and direction
	for l := range layers {
		var outs []*ir.Value
		for d := range dirs {
			at := l*dirs + d
			state := make([]*ir.Value, len(init))
			for i, s := range init {
				state[i] = reshape(c.b, slice(c.b, s, 0, at, at+1, 1), s.Type.Dims[1:])
			}
			y, last := c.layer(x, params[at], state, step, d == 1)
			outs = append(outs, y)
			for i := range last {
				final[i] = append(final[i], reshape(c.b, last[i], slices.Concat([]int64{1}, last[i].Type.Dims)))
			}
		}
		x = concat(c.b, 2, outs...)
	}
	switch {
	case !batched:
		x = reshape(c.b, x, []int64{x.Type.Dims[0], x.Type.Dims[2]})
	case c.bool("batch_first"):
		x = swap(c.b, x, 0, 1)
	}
	out := []*ir.Value{x}
	for _, f := range final {
		s := concat(c.b, 0, f...)
		if !batched {
			s = reshape(c.b, s, []int64{s.Type.Dims[0], s.Type.Dims[2]})
		}
		out = append(out, s)
	}
	return out
}

// layerParams deals the flat list of weights out to layers and directions.
func (c *call) layerParams(n int64, proj bool) []layerParams {
	flat := c.vals("params")
	each := 2 + 2*btoi(c.bool("has_biases")) + btoi(proj)
	if n < 1 || n > maxSteps || len(flat) != int(n)*each {
		c.failf("%d weights for %d layers and directions, wanted %d for each", len(flat), n, each)
	}
	out := make([]layerParams, n)
	for i := range out {
		p := flat[i*each : (i+1)*each]
		out[i] = layerParams{ih: p[0], hh: p[1]}
		if c.bool("has_biases") {
			out[i].bih, out[i].bhh = p[2], p[3]
		}
		if proj {
			out[i].proj = p[each-1]
		}
	}
	return out
}

// layer runs one layer in one direction over x [steps, batch, features].
func (c *call) layer(x *ir.Value, p layerParams, state []*ir.Value, step cell, backwards bool) (seq *ir.Value, last []*ir.Value) {
	f := fb{c.b, c}
	xs := c.linear(x, p.ih, p.bih)
	steps := x.Type.Dims[0]
	outs := make([]*ir.Value, steps)
	for i := range steps {
		t := i
		if backwards {
			t = steps - 1 - i
		}
		xt := slice(c.b, xs, 0, t, t+1, 1)
		xt = reshape(c.b, xt, xt.Type.Dims[1:])
		state = step(f, xt, c.linear(state[0], p.hh, p.bhh), state)
		if p.proj != nil {
			state[0] = c.linear(state[0], p.proj, nil)
		}
		outs[t] = reshape(c.b, state[0], slices.Concat([]int64{1}, state[0].Type.Dims))
	}
	return concat(c.b, 0, outs...), state
}

// gate is part i of n along the last dimension.
func (f fb) gate(x *ir.Value, i, n int64) *ir.Value {
	size := x.Type.Dims[1] / n
	return slice(f.b, x, 1, i*size, (i+1)*size, 1)
}

// lstmStep has the gates input, forget, cell and output.
func lstmStep(f fb, x, h *ir.Value, state []*ir.Value) []*ir.Value {
	g := f.add(x, h)
	sigmoid := func(i int64) *ir.Value { return op.Sigmoid.Make(f.b, f.gate(g, i, 4)) }
	cell := f.add(f.mul(sigmoid(1), state[1]), f.mul(sigmoid(0), op.Tanh.Make(f.b, f.gate(g, 2, 4))))
	return []*ir.Value{f.mul(sigmoid(3), op.Tanh.Make(f.b, cell)), cell}
}

// gruStep has the gates reset, update and new.
func gruStep(f fb, x, h *ir.Value, state []*ir.Value) []*ir.Value {
	sigmoid := func(i int64) *ir.Value { return op.Sigmoid.Make(f.b, f.add(f.gate(x, i, 3), f.gate(h, i, 3))) }
	n := op.Tanh.Make(f.b, f.add(f.gate(x, 2, 3), f.mul(sigmoid(0), f.gate(h, 2, 3))))
	z := sigmoid(1)
	return []*ir.Value{f.add(n, f.mul(z, f.sub(state[0], n)))}
}

// activation is an operator of one tensor.
type activation interface {
	Make(b *ir.Builder, args ...*ir.Value) *ir.Value
}

// relu is max(x, 0).
type relu struct{}

func (relu) Make(b *ir.Builder, args ...*ir.Value) *ir.Value {
	return op.Maximum.Make(b, args[0], likeF(b, args[0], 0))
}

// rnnStep is the plain cell: an activation of the sum.
func rnnStep(a activation) cell {
	return func(f fb, x, h *ir.Value, _ []*ir.Value) []*ir.Value { return []*ir.Value{a.Make(f.b, f.add(x, h))} }
}
