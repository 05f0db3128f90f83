package passes

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir"
	"tpuc/ir/eval"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
	"tpuc/ir/text"
)

// integers is a random program on i64, with literals small and large, inputs, wraps, clamps, choices and gathers.
func integers(r *rand.Rand) *ir.Module {
	m := &ir.Module{Func: &ir.Func{Name: "main"}}
	b := &ir.Builder{}
	t := tensor.Make(tensor.I64, 4)
	pool := []*ir.Value{m.Func.AddParam("x", t), m.Func.AddParam("y", t), op.Iota.Make(b, op.IotaAttr{Type: t})}
	any := func() *ir.Value { return pool[r.IntN(len(pool))] }
	for range 24 {
		var v *ir.Value
		switch r.IntN(14) {
		case 0, 1, 2:
			e := []int64{0, 1, -1, 2, 7, 1000, -1000, math.MaxInt32, math.MinInt32, 1 << 40, math.MaxInt64, math.MinInt64}
			v = op.Constant.Make(b, op.ConstantAttr{Value: tensor.FromInts(t, []int64{e[r.IntN(len(e))], e[r.IntN(6)], e[r.IntN(6)], e[r.IntN(len(e))]})})
		case 3:
			v = op.Add.Make(b, any(), any())
		case 4:
			v = op.Sub.Make(b, any(), any())
		case 5:
			v = op.Mul.Make(b, any(), any())
		case 6:
			v = op.Maximum.Make(b, any(), any())
		case 7:
			v = op.Minimum.Make(b, any(), any())
		case 8:
			v = []op.Plain{op.Div, op.Rem, op.And}[r.IntN(3)].Make(b, any(), any())
		case 9:
			v = []op.Plain{op.Neg, op.Abs}[r.IntN(2)].Make(b, any())
		case 10:
			dir := []op.CompareDir{op.EQ, op.NE, op.LT, op.LE, op.GT, op.GE}[r.IntN(6)]
			v = op.Select.Make(b, op.Compare.Make(b, op.CompareAttr{Dir: dir}, any(), any()), any(), any())
		case 11:
			narrower := []tensor.DType{tensor.I32, tensor.I8, tensor.U32, tensor.U8, tensor.Bool}[r.IntN(5)]
			v = op.Convert.Make(b, op.ConvertAttr{To: tensor.I64}, op.Convert.Make(b, op.ConvertAttr{To: narrower}, any()))
		case 12:
			s := op.Reduce.Make(b, op.ReduceAttr{Kind: []op.Reducer{op.Sum, op.Max, op.Min}[r.IntN(3)], Axes: []int64{0}}, any())
			wide := op.Broadcast.Make(b, op.BroadcastAttr{Shape: t.Dims}, s)
			c := op.Compare.Make(b, op.CompareAttr{Dir: []op.CompareDir{op.EQ, op.LT, op.GE}[r.IntN(3)]}, any(), wide)
			v = op.Convert.Make(b, op.ConvertAttr{To: tensor.I64}, c)
		case 13:
			v = op.Gather.Make(b, op.GatherAttr{CollapsedSliceDims: []int64{0}, StartIndexMap: []int64{0}, IndexVectorDim: 1, SliceSizes: []int64{1}}, any(), any())
		}
		pool = append(pool, v)
	}
	m.Func.Body = b.Body
	m.Func.Results = pool[len(pool)-8:]
	return m
}

// Every element that the evaluator finds lies in its value's range, and what narrow leaves gives the same, whatever the inputs.
func TestRangesHold(t *testing.T) {
	inputs := func(r *rand.Rand) (out []*tensor.Tensor) {
		for range 2 {
			v := make([]int64, 4)
			for i := range v {
				v[i] = int64(r.Uint64()) >> r.IntN(64)
			}
			out = append(out, tensor.FromInts(tensor.Make(tensor.I64, 4), v))
		}
		return out
	}
	narrowed := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 7))
		m := integers(r)
		before := text.Print(m)
		in := inputs(r)
		known := make(ranges)
		want, err := eval.Run(m, in, eval.Options{Probe: func(n *ir.Node, outs []*tensor.Tensor) {
			s, ok := known.of(n.Outs[0])
			require.True(t, ok)
			for _, v := range outs[0].Ints() {
				require.True(t, s.lo <= v && v <= s.hi || outs[0].DType == tensor.U64, "seed %d: %s is %d, its range %v\n%s", seed, text.Node(n), v, s, before)
			}
		}})
		require.NoError(t, err)
		report, err := Run(context.Background(), m, Options{Verify: true, Passes: []string{"narrow", "simplify"}})
		require.NoError(t, err)
		for _, h := range report.Passes[0].Hits {
			narrowed += h.Count
		}
		got, err := eval.Run(m, in, eval.Options{})
		require.NoError(t, err)
		for i := range want.Outputs {
			require.Equal(t, want.Outputs[i].Ints(), got.Outputs[i].Ints(), "seed %d, output %d\n%s\n%s", seed, i, before, text.Print(m))
		}
	}
	require.Greater(t, narrowed, 5000, "the programs are worth narrowing")
}
