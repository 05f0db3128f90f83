package ir_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
	"tpuc/ir/text"
	"tpuc/lower"
	"tpuc/passes"
)

var f32 = tensor.Make(tensor.F32, 2)

// branch is a function of x that calls build for its result.
func branch(name string, build func(b *ir.Builder, x *ir.Value) *ir.Value) *ir.Func {
	f := &ir.Func{Name: name}
	x := f.AddParam("x", f32)
	b := &ir.Builder{}
	f.Results = []*ir.Value{build(b, x)}
	f.Body = b.Body
	return f
}

// entry calls then and els.
func entry(then, els *ir.Func) *ir.Module {
	m := &ir.Module{Func: &ir.Func{Name: "main"}}
	p, x := m.Func.AddParam("p", tensor.Make(tensor.Bool)), m.Func.AddParam("x", f32)
	b := &ir.Builder{}
	m.Func.Results = []*ir.Value{op.Cond.Make(b, op.CondAttr{Then: then, Else: els}, p, x)}
	m.Func.Body = b.Body
	return m
}

func neg(b *ir.Builder, x *ir.Value) *ir.Value { return op.Neg.Make(b, x) }

// Functions come callees first, each once, and are gone with the node that names them.
func TestFunctions(t *testing.T) {
	inner := branch("inner", neg)
	pred := op.ConstantAttr{Value: tensor.ScalarInt(tensor.Bool, 1)}
	then := branch("then", func(b *ir.Builder, x *ir.Value) *ir.Value {
		return op.Cond.Make(b, op.CondAttr{Then: inner, Else: inner}, op.Constant.Make(b, pred), x)
	})
	m := entry(then, inner)
	require.NoError(t, ir.Verify(m))
	require.Equal(t, []*ir.Func{inner, then, m.Func}, m.Functions())
	m.Func.Body, m.Func.Results = nil, m.Func.Params[1:]
	require.Equal(t, []*ir.Func{m.Func}, m.Functions())
	require.Empty(t, (&ir.Module{}).Functions())
}

// Inlining copies: the function stays as it is, and the copy reads the caller's values.
func TestInline(t *testing.T) {
	f := branch("f", func(b *ir.Builder, x *ir.Value) *ir.Value { return op.Add.Make(b, neg(b, x), x) })
	b := &ir.Builder{}
	x := &ir.Value{Type: f32}
	out := b.Inline(f, x)
	require.Len(t, b.Body, 2)
	require.Same(t, x, b.Body[0].Args[0])
	require.Same(t, b.Body[1].Outs[0], out[0])
	require.NotSame(t, f.Body[0], b.Body[0])
	require.Same(t, f.Params[0], f.Body[0].Args[0])
}

// The verifier refuses recursion, values of another function, nodes in two places, and updates outside of the entry.
func TestVerifyFunctions(t *testing.T) {
	b := &ir.Builder{}
	for name, c := range map[string]struct {
		make func() *ir.Module
		want string
	}{
		"captured": {func() *ir.Module {
			m := entry(branch("then", neg), branch("else", neg))
			f := m.Functions()[0]
			f.Body[0].Args[0] = m.Func.Params[1]
			return m
		}, "not defined before its use [verify/use]"},
		"shared node": {func() *ir.Module {
			then, els := branch("then", neg), branch("else", neg)
			els.Params, els.Body, els.Results = then.Params, then.Body, then.Results
			return entry(then, els)
		}, "verify/param"},
		"update": {func() *ir.Module {
			then := branch("then", neg)
			then.Updates = []ir.Update{{Target: then.Params[0], New: then.Results[0]}}
			return entry(then, branch("else", neg))
		}, "function @then updates state"},
		"recursion": {func() *ir.Module {
			then := branch("then", neg)
			pred := op.Constant.Make(b, op.ConstantAttr{Value: tensor.ScalarInt(tensor.Bool, 1)})
			then.Results[0] = op.Cond.Make(b, op.CondAttr{Then: then, Else: branch("else", neg)}, pred, then.Params[0])
			then.Body = b.Body
			return entry(then, branch("else", neg))
		}, "function @then calls itself [verify/recursion]"},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, ir.Verify(c.make()), c.want)
		})
	}
}

// Functions that each call the one before twice make calls without end: what walks over functions does not follow calls, and a
// program that would be too long is refused.
func TestDoublingCalls(t *testing.T) {
	var src strings.Builder
	src.WriteString("func @f0(%p: bool[], %x: f32[2]) {\n  %0 = neg %x : f32[2]\n  return %0\n}\n")
	const depth = 60
	for i := range depth {
		fmt.Fprintf(&src, "func @f%d(%%p: bool[], %%x: f32[2]) {\n  %%0 = cond %%p, %%p, %%x {then=@f%d, else=@f%d} : f32[2]\n  return %%0\n}\n", i+1, i, i)
	}
	m, err := text.Parse("test.tpu", src.String()[:strings.LastIndex(src.String(), "func @")]+
		"func @main(%p: bool[], %x: f32[2]) {\n  %0 = cond %p, %p, %x {then=@f59, else=@f59} : f32[2]\n  return %0\n}\n")
	require.NoError(t, err)
	require.Len(t, m.Functions(), depth+1)
	require.False(t, m.Func.Body[0].HasEffect())
	require.Positive(t, ir.CostOf(m.Func.Body[0]).Flops)
	_, err = lower.Lower(m)
	require.ErrorContains(t, err, "wanted fewer calls")
}

// A branch with an effect keeps the node that names it, though nothing reads its results.
func TestEffectInFunction(t *testing.T) {
	m, err := text.Parse("test.tpu", `
func @loud(%x: f32[2]) {
  %0 = opaque_effect %x {name="stablehlo.foo", text="stablehlo.foo %{0} : tensor<2xf32>", out="f32[2]"} : f32[2]
  return %x
}
func @quiet(%x: f32[2]) {
  return %x
}
func @main(%p: bool[], %x: f32[2]) {
  %0 = cond %p, %x {then=@loud, else=@quiet} : f32[2]
  %1 = cond %p, %x {then=@loud, else=@quiet} : f32[2]
  %2 = cond %p, %x {then=@quiet, else=@quiet} : f32[2]
  return %x
}
`)
	require.NoError(t, err)
	_, err = passes.Run(t.Context(), m, passes.Options{Passes: []string{"cse", "dce"}, Verify: true})
	require.NoError(t, err)
	require.Len(t, m.Func.Body, 2)
	require.Len(t, m.Functions()[0].Body, 1)
}
