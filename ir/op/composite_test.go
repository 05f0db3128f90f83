package op_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// composites are applications of every composite operator; f stands for a float dtype.
var composites = []struct {
	op   *ir.Op
	attr any
	args []string
}{
	{op.Attention.Op, op.AttentionAttr{Scale: 0.5, Plain: true}, []string{"f[1,4,3,8]", "f[1,2,5,8]", "f[1,2,5,4]", "f[1,1,3,5]"}},
	{op.Attention.Op, op.AttentionAttr{Scale: 0.5}, []string{"f[2,4,3,8]", "f[2,2,5,8]", "f[2,2,5,6]"}},
	{op.Attention.Op, op.AttentionAttr{Scale: 0.5, Causal: true}, []string{"f[1,4,5,8]", "f[1,1,5,8]", "f[1,1,5,8]"}},
	{op.Attention.Op, op.AttentionAttr{Scale: 1, Causal: true}, []string{"f[1,2,5,4]", "f[1,2,3,4]", "f[1,2,3,4]", "bool[1,1,5,3]"}},
	{op.Attention.Op, op.AttentionAttr{Scale: 0.3}, []string{"f[2,4,3,4]", "f[2,2,5,4]", "f[2,2,5,4]", "bool[2,4,3,5]"}},
	{op.Attention.Op, op.AttentionAttr{Scale: 0.3}, []string{"f[2,4,3,4]", "f[2,2,5,4]", "f[2,2,5,4]", "f[1,4,1,5]"}},
	{op.Attention.Op, op.AttentionAttr{Scale: 0.3}, []string{"f[2,4,3,4]", "f[2,4,5,4]", "f[2,4,5,4]", "f32[2,1,3,1]"}},
	{op.Attention.Op, op.AttentionAttr{Scale: 0.5, Causal: true, Window: 2}, []string{"f[1,4,6,4]", "f[1,2,6,4]", "f[1,2,6,4]"}},
	{op.Attention.Op, op.AttentionAttr{Scale: 0.5, Window: 3, Softcap: 2}, []string{"f[1,2,3,4]", "f[1,2,7,4]", "f[1,2,7,4]", "bool[1,1,3,7]"}},
	{op.Attention.Op, op.AttentionAttr{Scale: 1, Causal: true, Sinks: true}, []string{"f[2,4,3,4]", "f[2,2,3,4]", "f[2,2,3,4]", "f[4]"}},
	{op.Attention.Op, op.AttentionAttr{Scale: 1, Sinks: true, Softcap: 0.5}, []string{"f[2,4,3,4]", "f[2,2,3,4]", "f[2,2,3,4]", "f[1,4,1,3]", "f32[4]"}},
	{op.Attention.Op, op.AttentionAttr{Scale: 0.3}, []string{"f[1,2,3,4]", "f[1,1,0,4]", "f[1,1,0,4]"}},
	{op.Attention.Op, op.AttentionAttr{Scale: 0.3}, []string{"f[1,0,3,4]", "f[1,0,5,4]", "f[1,0,5,4]"}},
	{op.CumMax.Op, op.CumMaxAttr{Axis: 1}, []string{"f[2,7,3]"}},
	{op.CumMax.Op, op.CumMaxAttr{Axis: 0, Smallest: true}, []string{"i32[20]"}},
	{op.CumMax.Op, op.CumMaxAttr{Axis: 0}, []string{"bool[20]"}},
	{op.CumMax.Op, op.CumMaxAttr{Axis: 0}, []string{"f[0,2]"}},
	{op.CumProd.Op, op.CumProdAttr{Axis: 1, Reverse: true}, []string{"f[2,7,3]"}},
	{op.CumProd.Op, op.CumProdAttr{Axis: 0}, []string{"i32[9]"}},
	{op.CumProd.Op, op.CumProdAttr{Axis: 0}, []string{"c64[3]"}},
	{op.CumSum.Op, op.CumSumAttr{Axis: 1}, []string{"f[2,7,3]"}},
	{op.CumSum.Op, op.CumSumAttr{Axis: 0, Reverse: true}, []string{"f[9]"}},
	{op.CumSum.Op, op.CumSumAttr{Axis: 0}, []string{"i8[70]"}},
	{op.CumSum.Op, op.CumSumAttr{Axis: 0}, []string{"c64[3]"}},
	{op.CumSum.Op, op.CumSumAttr{Axis: 0}, []string{"f[0,2]"}},
	{op.Embedding.Op, nil, []string{"f[5,3]", "i64[2,4]"}},
	{op.Embedding.Op, nil, []string{"f[0,3]", "i64[0]"}},
	{op.Gelu.Op, op.GeluAttr{}, []string{"f[40]"}},
	{op.Gelu.Op, op.GeluAttr{Tanh: true}, []string{"f[40]"}},
	{op.GroupNorm.Op, op.GroupNormAttr{Groups: 2, Eps: 1e-5}, []string{"f[2,4,3,2]", "f[4]", "f[4]"}},
	{op.GroupNorm.Op, op.GroupNormAttr{Groups: 4, Eps: 1e-5}, []string{"f[3,4,5]"}},
	{op.GroupNorm.Op, op.GroupNormAttr{Groups: 1, Eps: 1e-5}, []string{"f[3,4]", "f[4]"}},
	{op.GroupedDot.Op, op.GroupedDotAttr{}, []string{"f[7,4]", "f[3,4,5]", "i32[3]"}},
	{op.GroupedDot.Op, op.GroupedDotAttr{Transposed: true}, []string{"f[40,4]", "f[3,5,4]", "i64[3]"}},
	{op.GroupedDot.Op, op.GroupedDotAttr{}, []string{"f[0,4]", "f[3,4,5]", "i64[3]"}},
	{op.GroupedDot.Op, op.GroupedDotAttr{}, []string{"f[2,4]", "f[0,4,5]", "i64[0]"}},
	{op.Resize.Op, op.ResizeAttr{Filter: op.NearestFilter, Sizes: []int64{6, 5}, Scale: []float64{0.5, 0.8}}, []string{"f[2,3,4]"}},
	{op.Resize.Op, op.ResizeAttr{Filter: op.ExactFilter, Sizes: []int64{2}, Scale: []float64{2.5}}, []string{"f[2,5]"}},
	{op.Resize.Op, op.ResizeAttr{Filter: op.LinearFilter, Sizes: []int64{7, 3}, Scale: []float64{3. / 7, 5. / 3}}, []string{"f[2,3,5]"}},
	{op.Resize.Op, op.ResizeAttr{Filter: op.LinearFilter, Sizes: []int64{7}, Scale: []float64{2. / 6}, Align: true}, []string{"f[2,3]"}},
	{op.Resize.Op, op.ResizeAttr{Filter: op.CubicFilter, Sizes: []int64{4, 6, 9}, Scale: []float64{0.5, 0.5, 0.5}}, []string{"f[2,3,5]"}},
	{op.Resize.Op, op.ResizeAttr{Filter: op.LinearAAFilter, Sizes: []int64{3, 8}, Scale: []float64{2, 0.5}}, []string{"f[6,4]"}},
	{op.Resize.Op, op.ResizeAttr{Filter: op.CubicAAFilter, Sizes: []int64{2, 3}, Scale: []float64{3, 5. / 3}}, []string{"u8[6,5]"}},
	{op.Resize.Op, op.ResizeAttr{Filter: op.LinearFilter, Sizes: []int64{0, 3}, Scale: []float64{1, 5. / 3}}, []string{"f[6,5]"}},
	{op.Resize.Op, op.ResizeAttr{Filter: op.LinearFilter}, []string{"f[6,5]"}},
	{op.LayerNorm.Op, op.LayerNormAttr{Rank: 1, Eps: 1e-5}, []string{"f[2,3,8]", "f[8]", "f[8]"}},
	{op.LayerNorm.Op, op.LayerNormAttr{Rank: 2, Eps: 1e-5}, []string{"f[2,3,8]", "f32[3,8]"}},
	{op.LayerNorm.Op, op.LayerNormAttr{Rank: 3, Eps: 1e-5}, []string{"f[2,3,8]"}},
	{op.LayerNorm.Op, op.LayerNormAttr{Rank: 1, Eps: 1e-5}, []string{"f[3,0]", "f[0]"}},
	{op.Linear.Op, nil, []string{"f[2,3,8]", "f[5,8]", "f[5]"}},
	{op.Linear.Op, nil, []string{"f[8]", "f[5,8]"}},
	{op.Linear.Op, nil, []string{"i32[2,8]", "i32[5,8]", "i32[5]"}},
	{op.Linear.Op, nil, []string{"c64[2,8]", "c64[5,8]", "c64[5]"}},
	{op.Linear.Op, nil, []string{"f[0,8]", "f[5,8]", "f[5]"}},
	{op.LogSoftmax.Op, op.LogSoftmaxAttr{Axis: 1}, []string{"f[2,7,2]"}},
	{op.LogSoftmax.Op, op.LogSoftmaxAttr{Axis: 0}, []string{"f[0,2]"}},
	{op.LogCumSumExp.Op, op.LogCumSumExpAttr{Axis: 1}, []string{"f[2,7,3]"}},
	{op.RMSNorm.Op, op.RMSNormAttr{Rank: 1, Eps: 1e-6}, []string{"f[2,3,8]", "f[8]"}},
	{op.RMSNorm.Op, op.RMSNormAttr{Rank: 2, Eps: 1e-6}, []string{"f[2,3,8]"}},
	{op.Rope.Op, op.RopeAttr{}, []string{"f[2,3,8]", "f[1,3,8]", "f[2,1,8]"}},
	{op.Rope.Op, op.RopeAttr{Interleaved: true}, []string{"f[3,6]", "f[3,6]", "f[1,6]"}},
	{op.Silu.Op, nil, []string{"f[40]"}},
	{op.Softmax.Op, op.SoftmaxAttr{Axis: 0}, []string{"f[7,3]"}},
	{op.Softmax.Op, op.SoftmaxAttr{Axis: 1}, []string{"f[7,0]"}},
	{op.Take.Op, op.TakeAttr{Axis: 1}, []string{"f[2,5,3]", "i32[2,2]"}},
	{op.Take.Op, op.TakeAttr{Axis: 0}, []string{"f[5]", "u8[]"}},
	{op.Take.Op, op.TakeAttr{Axis: 1}, []string{"f[2,0]", "i32[0,3]"}},
	{op.TopK.Op, op.TopKAttr{K: 3, Axis: 1, Largest: true}, []string{"f[2,9,2]"}},
	{op.TopK.Op, op.TopKAttr{K: 4, Axis: 0}, []string{"i32[20]"}},
	{op.TopK.Op, op.TopKAttr{K: 0, Axis: 0}, []string{"f[3]"}},
}

// Evaluator and decomposition of every composite agree on random arguments in every float dtype.
func TestDecompositions(t *testing.T) {
	covered := map[*ir.Op]bool{}
	for _, c := range composites {
		covered[c.op] = true
		for _, d := range []string{"f64", "f32", "f16", "bf16"} {
			t.Run(fmt.Sprint(c.op.Name, c.attr, c.args, d), func(t *testing.T) {
				r := rand.New(rand.NewPCG(7, 8))
				var args []*tensor.Tensor
				for _, a := range c.args {
					if a[:2] == "f[" {
						a = d + a[1:]
					}
					args = append(args, random(r, typ(a)))
				}
				want, got := run(t, c.op, c.attr, args...), runDecomposed(t, c.op, c.attr, args...)
				require.Len(t, got, len(want))
				for i := range want {
					tol := tolerances[want[i].DType]
					if c.op == op.Embedding.Op || c.op == op.Take.Op || c.op == op.TopK.Op {
						tol = 0
					}
					requireClose(t, want[i], got[i], tol, c.op.Name)
				}
			})
		}
	}
	for _, o := range op.All {
		require.True(t, !o.Composite() || o.Eval == nil || covered[o], "%s has two evaluations and no case here", o.Name)
	}
}

// both evaluates a composite in its two ways, which must agree within f32's tolerance, and gives the evaluator's first result.
func both(t *testing.T, o *ir.Op, attr any, args ...*tensor.Tensor) *tensor.Tensor {
	t.Helper()
	want, got := run(t, o, attr, args...), runDecomposed(t, o, attr, args...)
	for i := range want {
		requireClose(t, want[i], got[i], 3e-6, o.Name)
	}
	return want[0]
}

// Grouped heads equal heads repeated in memory.
func TestAttentionGroups(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	q, k, v := random(r, typ("f32[2,6,3,4]")), random(r, typ("f32[2,2,5,4]")), random(r, typ("f32[2,2,5,3]"))
	mask := random(r, typ("f32[2,6,3,5]"))
	repeat := func(x *tensor.Tensor) *tensor.Tensor {
		d := x.Dims
		y := run(t, op.Broadcast.Op, op.BroadcastAttr{Shape: []int64{d[0], d[1], 3, d[2], d[3]}, Dims: []int64{0, 1, 3, 4}}, x)[0]
		return run(t, op.Reshape.Op, op.ReshapeAttr{Shape: []int64{d[0], 6, d[2], d[3]}}, y)[0]
	}
	a := op.AttentionAttr{Scale: 0.5}
	requireClose(t, run(t, op.Attention.Op, a, q, repeat(k), repeat(v), mask)[0], both(t, op.Attention.Op, a, q, k, v, mask), 1e-6, "grouped")
}

func TestAttentionMasks(t *testing.T) {
	q, k := fl("f32[1,1,2,1]", 0, 0), fl("f32[1,1,3,1]", 1, 2, 3)
	v := fl("f32[1,1,3,1]", 1, 10, 100)
	a := op.AttentionAttr{Scale: 1}
	require.Equal(t, []float64{37, 37}, both(t, op.Attention.Op, a, q, k, v).Floats())
	require.Equal(t, []float64{5.5, 100}, both(t, op.Attention.Op, a, q, k, v, in("bool[1,1,2,3]", 1, 1, 0, 0, 0, 1)).Floats())
	require.Equal(t, []float64{0, 10}, both(t, op.Attention.Op, a, q, k, v, in("bool[1,1,2,3]", 0, 0, 0, 0, 1, 0)).Floats(), "a row without a key gives 0")
	require.Equal(t, []float64{0, 0}, both(t, op.Attention.Op, a, q, k, v, fl("f32[1,1,1,1]", -inf)).Floats())
	require.Equal(t, []float64{10, 55}, both(t, op.Attention.Op, a, q, k, v, fl("f32[1,1,2,3]", -inf, 0, -inf, -inf, 3, 3)).Floats())
	capped := op.AttentionAttr{Scale: 1, Softcap: 1e-9, Window: 2}
	require.InDeltaSlice(t, []float64{5.5, 37}, both(t, op.Attention.Op, capped, q, k, v).Floats(), 1e-4, "query 0 sees keys 0 and 1, query 1 all")
	sink := op.AttentionAttr{Scale: 1, Sinks: true}
	require.InDeltaSlice(t, []float64{27.75, 27.75}, both(t, op.Attention.Op, sink, q, k, v, fl("f32[1]", 0)).Floats(), 1e-4, "a sink takes a fourth")
	require.Equal(t, []float64{0, 0}, both(t, op.Attention.Op, sink, q, k, v, fl("f32[1,1,1,1]", -inf), fl("f32[1]", 3)).Floats())
	require.Equal(t, []float64{37, 37}, both(t, op.Attention.Op, sink, q, k, v, fl("f32[1]", -inf)).Floats())
	low := -math.MaxFloat32 // a row of the smallest finite number is as no mask: softmax does not see a constant
	require.Equal(t, []float64{37, 37}, both(t, op.Attention.Op, a, q, k, v, fl("f32[1,1,1,1]", low)).Floats())

	a.Causal = true // aligned top left: the last key is out of reach
	require.Equal(t, []float64{1, 5.5}, both(t, op.Attention.Op, a, q, k, v).Floats())
	require.Equal(t, []float64{0, 10}, both(t, op.Attention.Op, a, q, k, v, in("bool[1,1,1,3]", 0, 1, 1)).Floats())
	sameFloats(t, []float64{nan, 5.5}, run(t, op.Attention.Op, op.AttentionAttr{Scale: 1, Causal: true},
		fl("f32[1,1,2,1]", nan, 0), k, v)[0].Floats())
}

// Every shape that a mask may have, of bool and float, with grouped and single heads, causal or not.
func TestAttentionMaskShapes(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, heads := range []int64{0, 2, 6} {
		q, k, v := random(r, tensor.Make(tensor.F32, 2, heads, 3, 4)), random(r, typ("f32[2,2,5,4]")), random(r, typ("f32[2,2,5,3]"))
		for bits := range 64 {
			dims := []int64{2, heads, 3, 5}
			for d := range dims {
				if bits>>d&1 == 0 {
					dims[d] = 1
				}
			}
			mask := tensor.Make(tensor.F32, dims...)
			if bits>>4&1 == 0 {
				mask.DType = tensor.Bool
			}
			a := op.AttentionAttr{Scale: 0.5, Causal: bits>>5 == 1}
			both(t, op.Attention.Op, a, q, k, v, random(r, mask))
		}
	}
}

func TestAttentionRules(t *testing.T) {
	a := op.AttentionAttr{Scale: 1}
	q, k := "f32[2,4,3,8]", "f32[2,2,5,8]"
	for id, args := range map[string][]string{
		"[attention/1]": {q, k, "f32[2,5,8]"},
		"[attention/2]": {q, k, "f16[2,2,5,8]"},
		"[attention/3]": {q, k, "f32[1,2,5,8]"},
		"[attention/4]": {q, "f32[2,2,5,4]", k},
		"[attention/5]": {q, k, "f32[2,2,6,8]"},
		"[attention/6]": {q, "f32[2,3,5,8]", "f32[2,3,5,8]"},
		"[attention/8]": {q, k, k, "i32[1,1,1,1]"},
		"[attention/9]": {q, k, k, "bool[2,2,3,5]"},
	} {
		require.ErrorContains(t, infer(op.Attention.Op, a, args...), id)
	}
	require.ErrorContains(t, infer(op.Attention.Op, op.AttentionAttr{Scale: nan}, q, k, k), "[attention/7]")
}

// No value of the decomposition holds keys or values once per query head.
func TestAttentionReadsKeysOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	args := []*tensor.Tensor{random(r, typ("bf16[1,8,1,16]")), random(r, typ("bf16[1,2,64,16]")), random(r, typ("bf16[1,2,64,16]"))}
	n := node(t, op.Attention.Op, op.AttentionAttr{Scale: 0.25, Causal: true}, args)
	b := &ir.Builder{}
	n.Op.Decompose(b, n, n.Attr)
	for _, d := range b.Body {
		for _, o := range d.Outs {
			require.Less(t, o.Type.Elements(), int64(8*64*16), "%s makes %s", d.Op.Name, o.Type)
		}
	}
}

func TestNormsByHand(t *testing.T) {
	x, w, b := fl("f32[2,2]", 1, 3, -8, 0), fl("f32[2]", 2, 10), fl("f32[2]", 5, 7)
	require.Equal(t, []float64{3, 17, 3, 17}, both(t, op.LayerNorm.Op, op.LayerNormAttr{Rank: 1}, x, w, b).Floats())
	require.Equal(t, []float64{-1.5, 1.5}, both(t, op.LayerNorm.Op, op.LayerNormAttr{Rank: 1, Eps: 3}, fl("f32[1,2]", 0, 2), fl("f32[2]", 3, 3)).Floats())
	require.Equal(t, []float64{0.5, 7}, both(t, op.RMSNorm.Op, op.RMSNormAttr{Rank: 1}, fl("f32[2]", 1, 7), fl("f32[2]", 2.5, 5)).Floats())
	// Channels 0 and 1 are one group, over both positions: mean 2, deviation 2.
	got := both(t, op.GroupNorm.Op, op.GroupNormAttr{Groups: 1}, fl("f32[1,2,2]", 0, 4, 4, 0), fl("f32[2]", 1, 3), fl("f32[2]", 0, 1))
	require.Equal(t, []float64{-1, 1, 4, -2}, got.Floats())

	require.ErrorContains(t, infer(op.LayerNorm.Op, op.LayerNormAttr{}, "f32[2]"), "[layer_norm/1]")
	require.ErrorContains(t, infer(op.RMSNorm.Op, op.RMSNormAttr{Rank: 2}, "f32[2]"), "[rms_norm/1]")
	require.ErrorContains(t, infer(op.LayerNorm.Op, op.LayerNormAttr{Rank: 1}, "i32[2]"), "[layer_norm/2]")
	require.ErrorContains(t, infer(op.LayerNorm.Op, op.LayerNormAttr{Rank: 1}, "f32[2]", "f32[2]", "f32[1]"), "[layer_norm/3]")
	require.ErrorContains(t, infer(op.GroupNorm.Op, op.GroupNormAttr{Groups: 1}, "f32[2]"), "[group_norm/1]")
	require.ErrorContains(t, infer(op.GroupNorm.Op, op.GroupNormAttr{Groups: 3}, "f32[2,4]"), "[group_norm/2]")
	require.ErrorContains(t, infer(op.GroupNorm.Op, op.GroupNormAttr{Groups: 1}, "f32[2,4]", "i32[4]"), "[group_norm/3]")
	require.ErrorContains(t, infer(op.GroupNorm.Op, op.GroupNormAttr{Groups: 1}, "f32[2,4]", "f32[2]"), "[group_norm/4]")
}

func TestSoftmaxCorners(t *testing.T) {
	x := fl("f32[3,2]", 1000, 1000, -inf, 0, -inf, -inf)
	sameFloats(t, []float64{0.5, 0.5, 0, 1, nan, nan}, both(t, op.Softmax.Op, op.SoftmaxAttr{Axis: 1}, x).Floats())
	log2 := float64(float32(-math.Ln2))
	sameFloats(t, []float64{log2, log2, -inf, 0, nan, nan}, both(t, op.LogSoftmax.Op, op.LogSoftmaxAttr{Axis: 1}, x).Floats())
	require.ErrorContains(t, infer(op.Softmax.Op, op.SoftmaxAttr{}, "i32[2]"), "[softmax/1]")
	require.ErrorContains(t, infer(op.LogSoftmax.Op, op.LogSoftmaxAttr{Axis: -1}, "f32[2]"), "[log_softmax/2]")
}

func TestActivationsByHand(t *testing.T) {
	x := fl("f32[5]", 0, 1, -1, 20, -20)
	want := func(f func(float64) float64) []float64 {
		v := x.Floats()
		for i := range v {
			v[i] = f(v[i])
		}
		return tensor.FromFloats(x.Type, v).Floats()
	}
	phi := func(x float64) float64 { return x * math.Erfc(-x/math.Sqrt2) / 2 }
	require.InDeltaSlice(t, want(phi), both(t, op.Gelu.Op, op.GeluAttr{}, x).Floats(), 1e-7)
	require.InDelta(t, 0.841192, both(t, op.Gelu.Op, op.GeluAttr{Tanh: true}, x).Floats()[1], 1e-6)
	require.InDeltaSlice(t, want(func(x float64) float64 { return x / (1 + math.Exp(-x)) }), both(t, op.Silu.Op, nil, x).Floats(), 1e-7)
	require.ErrorContains(t, infer(op.Silu.Op, nil, "i32[2]"), "[silu/2]")
	require.ErrorContains(t, infer(op.Gelu.Op, op.GeluAttr{}, "c64[2]"), "[gelu/2]")
}

func TestLinearByHand(t *testing.T) {
	x, w := fl("f32[2,2]", 1, 2, 3, 4), fl("f32[3,2]", 1, 0, 0, 1, 1, 1)
	require.Equal(t, []float64{1, 2, 3, 3, 4, 7}, both(t, op.Linear.Op, nil, x, w).Floats())
	require.Equal(t, []float64{11, 22, 33, 13, 24, 37}, both(t, op.Linear.Op, nil, x, w, fl("f32[3]", 10, 20, 30)).Floats())
	// 256 + 1 and the bias 1 round once in bf16, to 258.
	require.Equal(t, []float64{258}, both(t, op.Linear.Op, nil, fl("bf16[2]", 256, 1), fl("bf16[1,2]", 1, 1), fl("bf16[1]", 1)).Floats())
	// An empty sum still gets its bias.
	require.Equal(t, []float64{5, 6, 5, 6}, both(t, op.Linear.Op, nil, fl("f32[2,0]"), fl("f32[2,0]"), fl("f32[2]", 5, 6)).Floats())
	for id, args := range map[string][]string{
		"[linear/1]": {"bool[2]", "bool[3,2]"}, "[linear/2]": {"f32[2]", "f32[2]"}, "[linear/3]": {"f32[2]", "f16[3,2]"},
		"[linear/4]": {"f32[2]", "f32[2,3]"}, "[linear/5]": {"f32[2]", "f32[3,2]", "f32[2]"},
	} {
		require.ErrorContains(t, infer(op.Linear.Op, nil, args...), id)
	}
}

func TestCumSumByHand(t *testing.T) {
	require.Equal(t, []float64{1, 3, 6, 10, 15}, both(t, op.CumSum.Op, op.CumSumAttr{}, fl("f32[5]", 1, 2, 3, 4, 5)).Floats())
	require.Equal(t, []float64{15, 14, 12, 9, 5}, both(t, op.CumSum.Op, op.CumSumAttr{Reverse: true}, fl("f32[5]", 1, 2, 3, 4, 5)).Floats())
	require.Equal(t, []int64{100, -56, 44}, both(t, op.CumSum.Op, op.CumSumAttr{}, in("i8[3]", 100, 100, 100)).Ints())
	require.Equal(t, []int64{1, 2, 4, 6}, both(t, op.CumSum.Op, op.CumSumAttr{}, in("i64[2,2]", 1, 2, 3, 4)).Ints())
	require.ErrorContains(t, infer(op.CumSum.Op, op.CumSumAttr{}, "bool[2]"), "[cumsum/1]")
	require.ErrorContains(t, infer(op.CumSum.Op, op.CumSumAttr{}, "f32[]"), "[cumsum/2]")
}

func TestTopKByHand(t *testing.T) {
	x := fl("f32[6]", 2, nan, 5, 2, -inf, 5)
	for _, run := range []func(testing.TB, *ir.Op, any, ...*tensor.Tensor) []*tensor.Tensor{run, runDecomposed} {
		got := run(t, op.TopK.Op, op.TopKAttr{K: 4, Largest: true}, x)
		sameFloats(t, []float64{nan, 5, 5, 2}, got[0].Floats())
		require.Equal(t, []int64{1, 2, 5, 0}, got[1].Ints(), "of equal elements the lower index comes first")
		got = run(t, op.TopK.Op, op.TopKAttr{K: 6}, x)
		sameFloats(t, []float64{-inf, 2, 2, 5, 5, nan}, got[0].Floats())
		require.Equal(t, []int64{4, 0, 3, 2, 5, 1}, got[1].Ints())
	}
	require.ErrorContains(t, infer(op.TopK.Op, op.TopKAttr{K: 1}, "bool[2]"), "[topk/1]")
	require.ErrorContains(t, infer(op.TopK.Op, op.TopKAttr{K: 1, Axis: 1}, "f32[2]"), "[topk/2]")
	require.ErrorContains(t, infer(op.TopK.Op, op.TopKAttr{K: 3}, "f32[2]"), "[topk/3]")
}
