package padproof

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir"
	"tpuc/ir/eval"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// scaled is a program of two sizes that multiplies by a number of both, where it is told to.
func scaled(a, b int64, number bool) *ir.Module {
	m := &ir.Module{Func: &ir.Func{Name: "main"}}
	t := tensor.Make(tensor.F32, a, b)
	x := m.Func.AddParam("x", t)
	builder := &ir.Builder{}
	by := int64(1)
	if number {
		by = a * b / 40
	}
	y := op.Mul.Make(builder, x, op.Splat(builder, t, float64(by)))
	m.Func.Body, m.Func.Results = builder.Body, []*ir.Value{y}
	return m
}

// Sizes may differ in several dimensions at once, and are proved or refused together: that each alone may be smaller says nothing of both.
func TestSizesTogether(t *testing.T) {
	require.NoError(t, Prove(scaled(8, 8, false), scaled(6, 5, false)))
	require.NoError(t, compare(scaled(8, 8, false), scaled(6, 5, false), 1, eval.Options{}))

	require.NoError(t, Prove(scaled(8, 8, true), scaled(6, 8, true)))
	require.NoError(t, Prove(scaled(8, 8, true), scaled(8, 5, true)))
	require.ErrorContains(t, Prove(scaled(8, 8, true), scaled(6, 5, true)), "the literal depends on the size")
	require.Error(t, compare(scaled(8, 8, true), scaled(6, 5, true), 1, eval.Options{}))
}
