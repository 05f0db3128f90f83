package passes

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
	"tpuc/tpu/chip"
)

// A program for the CPU gets the barrier that its compiler needs; one for a TPU gets none.
func TestGuardIsForCPU(t *testing.T) {
	for target, want := range map[string]int{"cpu": 1, "cpu:4": 1, "v6e:1x1": 0, "v4:1x1x1": 0} {
		t.Run(target, func(t *testing.T) {
			m := &ir.Module{Func: &ir.Func{Name: "main"}}
			b := &ir.Builder{}
			x, at := m.Func.AddParam("x", tensor.Make(tensor.F32, 4)), m.Func.AddParam("at", tensor.Make(tensor.I32))
			part := op.Slice.Make(b, op.SliceAttr{Start: []int64{0}, Limit: []int64{2}, Stride: []int64{1}}, x)
			m.Func.Results = []*ir.Value{op.DynamicUpdateSlice.Make(b, x, op.Exp.Make(b, part), at)}
			m.Func.Body = b.Body

			to, err := chip.Parse(target)
			require.NoError(t, err)
			_, err = Run(context.Background(), m, Options{Target: to, Verify: true})
			require.NoError(t, err)
			got := 0
			for _, n := range m.Func.Body {
				if op.Barrier.Is(n) {
					got++
				}
			}
			require.Equal(t, want, got)
		})
	}
}
