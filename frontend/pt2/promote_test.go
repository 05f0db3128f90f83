package pt2

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// Values of torch.promote_types.
func TestPromote(t *testing.T) {
	for _, c := range []struct{ a, b, want tensor.DType }{
		{tensor.Bool, tensor.Bool, tensor.Bool},
		{tensor.Bool, tensor.U8, tensor.U8},
		{tensor.U8, tensor.I8, tensor.I16},
		{tensor.U8, tensor.I32, tensor.I32},
		{tensor.I32, tensor.I64, tensor.I64},
		{tensor.I64, tensor.F16, tensor.F16},
		{tensor.F16, tensor.BF16, tensor.F32},
		{tensor.BF16, tensor.F32, tensor.F32},
		{tensor.F32, tensor.F64, tensor.F64},
		{tensor.I64, tensor.C64, tensor.C64},
		{tensor.F64, tensor.C64, tensor.C128},
		{tensor.F16, tensor.C64, tensor.C64},
		{tensor.C64, tensor.C128, tensor.C128},
	} {
		require.Equal(t, c.want, promote(c.a, c.b), "%s with %s", c.a, c.b)
		require.Equal(t, c.want, promote(c.b, c.a), "%s with %s", c.b, c.a)
	}
}

// Values of torch.result_type; case T11 has many more, computed by torch.
func TestResultType(t *testing.T) {
	x := func(d tensor.DType, dims ...int64) operand {
		return operand{x: &ir.Value{Type: tensor.Make(d, dims...)}}
	}
	i, f := operand{s: intScalar(1)}, operand{s: floatScalar(1)}
	for _, c := range []struct {
		ops  []operand
		want tensor.DType
	}{
		{[]operand{x(tensor.I32, 2), i}, tensor.I32},
		{[]operand{x(tensor.I32, 2), f}, tensor.F32},
		{[]operand{x(tensor.Bool, 2), i}, tensor.I64},
		{[]operand{x(tensor.BF16, 2), f}, tensor.BF16},
		{[]operand{x(tensor.BF16, 2), x(tensor.F32)}, tensor.BF16},
		{[]operand{x(tensor.BF16, 2), x(tensor.F32, 1)}, tensor.F32},
		{[]operand{x(tensor.I32, 2), x(tensor.F64)}, tensor.F64},
		{[]operand{x(tensor.I32, 2), x(tensor.I64)}, tensor.I32},
		{[]operand{x(tensor.I32), x(tensor.I64)}, tensor.I64},
		{[]operand{x(tensor.F64), f}, tensor.F64},
		{[]operand{x(tensor.F32, 2), x(tensor.C128)}, tensor.C64},
		{[]operand{i, f}, tensor.F32},
	} {
		require.Equal(t, c.want, resultType(c.ops...), "%v", c.ops)
	}
}
