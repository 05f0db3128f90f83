package op_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

func TestConvByHand(t *testing.T) {
	a := op.ConvAttr{Strides: []int64{1}, Padding: [][]int64{{1, 1}}, LhsDilation: []int64{1}, RhsDilation: []int64{1}, Groups: 1}
	x, w := fl("f32[1,1,4]", 1, 2, 3, 4), fl("f32[1,1,3]", 1, 10, 100)
	require.Equal(t, fl("f32[1,1,4]", 210, 321, 432, 43), run(t, op.Conv.Op, a, x, w)[0])
	a.Strides, a.Padding = []int64{2}, [][]int64{{-1, 1}} // the first element is cropped
	require.Equal(t, fl("f32[1,1,1]", 432), run(t, op.Conv.Op, a, x, w)[0])
	a.Strides, a.Padding, a.LhsDilation = []int64{1}, [][]int64{{0, 0}}, []int64{2} // 1 0 2 0 3 0 4
	require.Equal(t, fl("f32[1,1,5]", 201, 20, 302, 30, 403), run(t, op.Conv.Op, a, x, w)[0])
	a.LhsDilation, a.RhsDilation = []int64{1}, []int64{2} // the window spans five
	require.Equal(t, fl("f32[1,1,0]"), run(t, op.Conv.Op, a, x, w)[0])
	require.Equal(t, in("i32[1,1,1]", 8), run(t, op.Conv.Op, a, in("i32[1,1,1]", 4), in("i32[1,1,1]", 2))[0])
}

// A naive convolution over an explicitly dilated and padded copy agrees for random geometries, groups and one to three dimensions.
func TestConvNaive(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 60 {
		spatial := 1 + r.IntN(3)
		a := op.ConvAttr{Groups: int64(1 + r.IntN(2))}
		x, w := []int64{int64(1 + r.IntN(2)), a.Groups * int64(1+r.IntN(2))}, []int64{a.Groups * int64(1+r.IntN(2)), 0}
		w[1] = x[1] / a.Groups
		for range spatial {
			x, w = append(x, int64(2+r.IntN(4))), append(w, int64(1+r.IntN(3)))
			a.Strides = append(a.Strides, int64(1+r.IntN(2)))
			a.LhsDilation = append(a.LhsDilation, int64(1+r.IntN(2)))
			a.RhsDilation = append(a.RhsDilation, int64(1+r.IntN(2)))
			a.Padding = append(a.Padding, []int64{int64(r.IntN(4) - 1), int64(r.IntN(4) - 1)})
		}
		t.Run(fmt.Sprint(x, w, a), func(t *testing.T) {
			xt, wt := random(r, tensor.Make(tensor.F64, x...)), random(r, tensor.Make(tensor.F64, w...))
			got := run(t, op.Conv.Op, a, xt, wt)[0]
			require.InDeltaSlice(t, naiveConv(t, xt, wt, got.Dims, a), got.Floats(), 1e-12)
		})
	}
}

func naiveConv(t *testing.T, x, w *tensor.Tensor, out []int64, a op.ConvAttr) []float64 {
	pad := op.PadAttr{Low: []int64{0, 0}, High: []int64{0, 0}, Interior: []int64{0, 0}}
	for i, p := range a.Padding {
		pad.Low, pad.High, pad.Interior = append(pad.Low, p[0]), append(pad.High, p[1]), append(pad.Interior, a.LhsDilation[i]-1)
	}
	p := run(t, op.Pad.Op, pad, x, fl("f64[]", 0))[0]
	pv, wv, ps, ws := p.Floats(), w.Floats(), tensor.Strides(p.Dims), tensor.Strides(w.Dims)
	var y []float64
	each(out, func(o []int64) {
		sum := 0.0
		each(w.Dims[1:], func(k []int64) {
			group := o[1] / (w.Dims[0] / a.Groups)
			at, wo := o[0]*ps[0]+(group*w.Dims[1]+k[0])*ps[1], o[1]*ws[0]+k[0]*ws[1]
			for d, tap := range k[1:] {
				at += (o[2+d]*a.Strides[d] + tap*a.RhsDilation[d]) * ps[2+d]
				wo += tap * ws[2+d]
			}
			sum += pv[at] * wv[wo]
		})
		y = append(y, sum)
	})
	return y
}

// each visits every index of dims in row-major order.
func each(dims []int64, visit func(ix []int64)) {
	if len(dims) == 0 {
		visit(nil)
		return
	}
	for i := range dims[0] {
		each(dims[1:], func(rest []int64) { visit(append([]int64{i}, rest...)) })
	}
}

func TestConvRules(t *testing.T) {
	good := op.ConvAttr{Strides: []int64{1}, Padding: [][]int64{{0, 0}}, LhsDilation: []int64{1}, RhsDilation: []int64{1}, Groups: 2}
	for id, change := range map[string]func(a *op.ConvAttr){
		"[conv/3]": func(a *op.ConvAttr) { a.Strides = nil },
		"[conv/4]": func(a *op.ConvAttr) { a.Groups = 3 },
		"[conv/5]": func(a *op.ConvAttr) { a.Groups = 1 },
		"[conv/6]": func(a *op.ConvAttr) { a.Padding = [][]int64{{1}} },
		"[conv/7]": func(a *op.ConvAttr) { a.Strides = []int64{0} },
		"[conv/9]": func(a *op.ConvAttr) { a.Padding = [][]int64{{-9, 0}} },
	} {
		a := good
		change(&a)
		require.ErrorContains(t, infer(op.Conv.Op, a, "f32[1,4,8]", "f32[6,2,3]"), id)
	}
	require.NoError(t, infer(op.Conv.Op, good, "f32[1,4,8]", "f32[6,2,3]"))
	require.ErrorContains(t, infer(op.Conv.Op, good, "f32[1,4,8]", "f16[6,2,3]"), "[conv/1]")
	require.ErrorContains(t, infer(op.Conv.Op, good, "f32[4,8]", "f32[6,2]"), "[conv/2]")
	require.ErrorContains(t, infer(op.Conv.Op, good, "f32[1,4,2147483648]", "f32[6,2,3]"), "[conv/8]")
}

func TestCosts(t *testing.T) {
	conv := op.ConvAttr{Strides: []int64{1, 1}, Padding: [][]int64{{1, 1}, {1, 1}}, LhsDilation: []int64{1, 1}, RhsDilation: []int64{1, 1}, Groups: 1}
	x, w := fl("f32[1,3,8,8]", make([]float64, 192)...), fl("f32[4,3,3,3]", make([]float64, 108)...)
	require.Equal(t, ir.Cost{Flops: 2 * 27 * 256, Bytes: 4 * (192 + 108 + 256)}, ir.CostOf(node(t, op.Conv.Op, conv, []*tensor.Tensor{x, w})))

	dot := op.DotAttr{Contract: [][]int64{{1}, {0}}}
	l, r := fl("bf16[2,8]", make([]float64, 16)...), fl("bf16[8,4]", make([]float64, 32)...)
	require.Equal(t, ir.Cost{Flops: 2 * 8 * 8, Bytes: 2 * (16 + 32 + 8)}, ir.CostOf(node(t, op.Dot.Op, dot, []*tensor.Tensor{l, r})))

	zeros := func(s string) *tensor.Tensor { return tensor.Zeros(typ(s)) }
	att := []*tensor.Tensor{zeros("bf16[1,4,2,8]"), zeros("bf16[1,2,16,8]"), zeros("bf16[1,2,16,8]")}
	require.Equal(t, int64(4*2*16*(2*8+2*8+6)), ir.CostOf(node(t, op.Attention.Op, op.AttentionAttr{Scale: 1}, att)).Flops)
	require.Zero(t, ir.CostOf(node(t, op.Reshape.Op, op.ReshapeAttr{Shape: []int64{16}}, []*tensor.Tensor{l})).Flops)
	require.Equal(t, int64(8), ir.CostOf(node(t, op.Exp.Op, nil, []*tensor.Tensor{zeros("f32[8]")})).Flops)
}
