package eval_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir"
	"tpuc/ir/eval"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

func f32(dims []int64, v ...float64) *tensor.Tensor {
	return tensor.FromFloats(tensor.Make(tensor.F32, dims...), v)
}

// module is y = softmax(x + w), with the state s updated to s + y.
func module(t *testing.T) (m *ir.Module, w, s *ir.Weight) {
	typ := tensor.Make(tensor.F32, 2)
	m = &ir.Module{Func: &ir.Func{Name: "main"}}
	w = &ir.Weight{Sym: "w", Class: ir.Constant, Data: f32([]int64{2}, 0, 1)}
	s = &ir.Weight{Sym: "s", Class: ir.Buffer, Mutable: true}
	wv, sv := m.AddWeight(w, typ), m.AddWeight(s, typ)
	x := m.Func.AddParam("x", typ)
	b := &ir.Builder{}
	y := op.Softmax.Make(b, op.SoftmaxAttr{}, op.Add.Make(b, x, wv))
	next := op.Add.Make(b, sv, y)
	m.Func.Body = b.Body
	m.Func.Results = []*ir.Value{y, x}
	m.Func.Updates = []ir.Update{{Target: sv, New: next}}
	require.NoError(t, ir.Verify(m))
	return m, w, s
}

func TestRun(t *testing.T) {
	m, w, s := module(t)
	x := f32([]int64{2}, 1, 0)
	before := append([]byte(nil), x.Data...)
	var asked []*ir.Weight
	var seen []string
	res, err := eval.Run(m, []*tensor.Tensor{x}, eval.Options{
		Weights: func(w *ir.Weight) (*tensor.Tensor, error) {
			asked = append(asked, w)
			if w == s {
				return f32([]int64{2}, 10, 20), nil
			}
			return nil, nil
		},
		Probe: func(n *ir.Node, outs []*tensor.Tensor) { seen = append(seen, n.Op.Name+" "+outs[0].String()) },
	})
	require.NoError(t, err)
	require.Equal(t, []*ir.Weight{w, s}, asked, "each weight is read once, when it is first used")
	require.Equal(t, []string{"add f32[2]", "softmax f32[2]", "add f32[2]"}, seen)
	require.Equal(t, []float64{0.5, 0.5}, res.Outputs[0].Floats())
	require.Equal(t, []float64{1, 0}, res.Outputs[1].Floats())
	require.Equal(t, []float64{10.5, 20.5}, res.Updates[0].Floats())
	require.Equal(t, before, x.Data)
}

func TestRunErrors(t *testing.T) {
	m, _, s := module(t)
	x := f32([]int64{2}, 1, 0)
	give := func(y *tensor.Tensor, err error) eval.Options {
		return eval.Options{Weights: func(w *ir.Weight) (*tensor.Tensor, error) {
			if w == s {
				return y, err
			}
			return nil, nil
		}}
	}
	for _, c := range []struct {
		name   string
		inputs []*tensor.Tensor
		opt    eval.Options
		want   string
	}{
		{"count", nil, eval.Options{}, "0 inputs, wanted 1 as the parameters of main"},
		{"missing", []*tensor.Tensor{nil}, eval.Options{}, `input 0 "x" is missing, wanted f32[2]`},
		{"type", []*tensor.Tensor{f32([]int64{1, 2}, 1, 0)}, eval.Options{}, `input 0 "x" is f32[1,2], wanted f32[2]`},
		{"bytes", []*tensor.Tensor{{Type: x.Type, Data: x.Data[:4]}}, eval.Options{}, `input 0 "x" has 4 bytes, wanted 8 for f32[2]`},
		{"no contents", []*tensor.Tensor{x}, eval.Options{}, "weight @s has no contents here, wanted f32[2]; name the file that holds the weights"},
		{"weight type", []*tensor.Tensor{x}, give(f32([]int64{1}, 1), nil), "weight @s is f32[1], wanted f32[2]"},
		{"weight error", []*tensor.Tensor{x}, give(nil, errors.New("file is gone")), "weight @s: file is gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := eval.Run(m, c.inputs, c.opt)
			require.EqualError(t, err, c.want)
		})
	}
}

// A composite without an evaluator runs by its decomposition, which may hold such composites and return an argument.
func TestNodeByDecomposition(t *testing.T) {
	keep := func(in []tensor.Type, _ any) ([]tensor.Type, error) { return in[:1], nil }
	inner := &ir.Op{Name: "inner", Args: []ir.Arg{{Name: "x"}}, Infer: keep,
		Decompose: func(b *ir.Builder, n *ir.Node, _ any) []*ir.Value { return []*ir.Value{op.Neg.Make(b, n.Args[0])} }}
	outer := &ir.Op{Name: "outer", Args: []ir.Arg{{Name: "x"}, {Name: "y"}}, Infer: func(in []tensor.Type, _ any) ([]tensor.Type, error) { return in, nil },
		Decompose: func(b *ir.Builder, n *ir.Node, _ any) []*ir.Value {
			x := b.Build(inner, nil, n.Args[0])[0]
			return []*ir.Value{op.Add.Make(b, x, n.Args[1]), n.Args[1]}
		}}
	typ := tensor.Make(tensor.F32, 1)
	m := &ir.Module{Func: &ir.Func{Name: "main"}}
	x := m.Func.AddParam("x", typ)
	b := &ir.Builder{}
	m.Func.Results = b.Build(outer, nil, x, x)
	m.Func.Body = b.Body
	res, err := eval.Run(m, []*tensor.Tensor{f32([]int64{1}, 3)}, eval.Options{})
	require.NoError(t, err)
	require.Equal(t, []float64{0}, res.Outputs[0].Floats())
	require.Equal(t, []float64{3}, res.Outputs[1].Floats())
}

// A program that is small as text may ask for more memory than there is: it is refused before anything is allocated.
func TestTooLarge(t *testing.T) {
	m := &ir.Module{Func: &ir.Func{Name: "main"}}
	b := &ir.Builder{}
	x := op.Splat(b, tensor.Make(tensor.F32), 1)
	m.Func.Results = []*ir.Value{op.BroadcastTo(b, x, []int64{1 << 40})}
	m.Func.Body = b.Body
	_, err := eval.Run(m, nil, eval.Options{})
	require.EqualError(t, err, "broadcast: a result is f32[1099511627776], wanted at most 16 GiB to evaluate [eval/broadcast]")

	m = &ir.Module{Func: &ir.Func{Name: "main"}}
	empty := tensor.Make(tensor.I8, 1<<40, 0)
	p := m.Func.AddParam("x", empty)
	m.Func.Results = []*ir.Value{p}
	_, err = eval.Run(m, []*tensor.Tensor{tensor.Zeros(empty)}, eval.Options{})
	require.EqualError(t, err, `input 0 "x" is i8[1099511627776,0], wanted at most 16 GiB to evaluate`)
}
