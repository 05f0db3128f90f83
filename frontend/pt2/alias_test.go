package pt2

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir"
	"tpuc/ir/eval"
	"tpuc/ir/tensor"
)

// viewTest runs reads and writes of refs in the evaluator.
type viewTest struct {
	t *testing.T
	b *ir.Builder
	f *ir.Func
}

func (v *viewTest) input(dims ...int64) *ref {
	return fresh(v.f.AddParam("x", tensor.Make(tensor.F32, dims...)))
}

// floats evaluates a ref for an input of 0, 1, 2, ...
func (v *viewTest) floats(r *ref) []float64 {
	v.f.Results = []*ir.Value{r.read(v.b)}
	v.f.Body = v.b.Body
	m := &ir.Module{Func: v.f}
	require.NoError(v.t, ir.Verify(m))
	var inputs []*tensor.Tensor
	for _, p := range v.f.Params {
		data := make([]float64, p.Type.Elements())
		for i := range data {
			data[i] = float64(i)
		}
		inputs = append(inputs, tensor.FromFloats(p.Type, data))
	}
	out, err := eval.Run(m, inputs, eval.Options{})
	require.NoError(v.t, err)
	return out.Outputs[0].Floats()
}

func newViewTest(t *testing.T) *viewTest {
	return &viewTest{t: t, b: &ir.Builder{}, f: &ir.Func{Name: "main"}}
}

// A write through each kind of view changes exactly the elements that the view shows.
func TestWriteThroughViews(t *testing.T) {
	for name, c := range map[string]struct {
		view view
		want []float64
	}{
		"reshape":  {reshapeView([]int64{2, 3}, []int64{6}), []float64{-1, -1, -1, -1, -1, -1}},
		"slice":    {sliceView(1, 1, 3, 1), []float64{0, -1, -1, 3, -1, -1}},
		"step":     {sliceView(1, 0, 3, 2), []float64{-1, 1, -1, -1, 4, -1}},
		"step 2":   {sliceView(1, 1, 3, 3), []float64{0, -1, 2, 3, -1, 5}},
		"nothing":  {sliceView(1, 2, 2, 1), []float64{0, 1, 2, 3, 4, 5}},
		"permute":  {permuteView([]int64{1, 0}), []float64{-1, -1, -1, -1, -1, -1}},
		"identity": {identityView(), []float64{-1, -1, -1, -1, -1, -1}},
		"expand":   {expandView([]int64{2, 3}, []int64{1, 2, 3}), []float64{-1, -1, -1, -1, -1, -1}},
	} {
		t.Run(name, func(t *testing.T) {
			v := newViewTest(t)
			x := v.input(2, 3)
			seen := x.through(v.b, c.view)
			seen.write(v.b, likeF(v.b, seen.read(v.b), -1))
			require.Equal(t, c.want, v.floats(x))
		})
	}
}

// Two aliases of one storage see each other's writes, whenever they were made; fresh memory does not.
func TestAliases(t *testing.T) {
	v := newViewTest(t)
	x := v.input(2, 3)
	before := fresh(x.read(v.b))
	early := x.through(v.b, permuteView([]int64{1, 0}))
	row := x.through(v.b, sliceView(0, 1, 2, 1)).through(v.b, reshapeView([]int64{1, 3}, []int64{3}))
	row.write(v.b, likeF(v.b, row.read(v.b), 9))
	late := x.through(v.b, reshapeView([]int64{2, 3}, []int64{6}))
	require.Equal(t, []float64{0, 9, 1, 9, 2, 9}, v.floats(early))
	require.Equal(t, []float64{0, 1, 2, 9, 9, 9}, v.floats(late))
	require.Equal(t, []float64{0, 1, 2, 3, 4, 5}, v.floats(before))

	corner := early.through(v.b, sliceView(0, 2, 3, 1))
	corner.write(v.b, likeF(v.b, corner.read(v.b), 7))
	require.Equal(t, []float64{0, 1, 7, 9, 9, 7}, v.floats(x))
	require.Equal(t, []float64{9, 9, 7}, v.floats(row))
}

// Values of torch: reshape of these tensors is a view, or a copy.
func TestViewable(t *testing.T) {
	for _, c := range []struct {
		dims, strides, to []int64
		want              bool
	}{
		{[]int64{2, 3}, []int64{3, 1}, []int64{6}, true},
		{[]int64{3, 2}, []int64{1, 3}, []int64{6}, false},
		{[]int64{3, 2}, []int64{1, 3}, []int64{3, 1, 2}, true},
		{[]int64{2, 2, 3}, []int64{12, 3, 1}, []int64{2, 6}, true},
		{[]int64{2, 2, 3}, []int64{12, 3, 1}, []int64{4, 3}, false},
		{[]int64{4, 1}, []int64{1, 9}, []int64{2, 2}, true},
		{[]int64{0, 3}, []int64{3, 1}, []int64{3, 0}, true},
		{nil, nil, []int64{1, 1}, true},
		{[]int64{4}, []int64{0}, []int64{2, 2}, true},
	} {
		require.Equal(t, c.want, viewable(c.dims, c.strides, c.to), "%v %v to %v", c.dims, c.strides, c.to)
	}
}

// The order of memory is a permutation of dimensions where elements fill it.
func TestMemoryOrder(t *testing.T) {
	for _, c := range []struct{ dims, strides, want []int64 }{
		{[]int64{2, 3}, []int64{3, 1}, []int64{0, 1}},
		{[]int64{2, 3}, nil, []int64{0, 1}},
		{[]int64{2, 3}, []int64{1, 2}, []int64{1, 0}},
		{[]int64{2, 3, 4, 5}, []int64{60, 1, 15, 3}, []int64{0, 2, 3, 1}}, // channels last
		{[]int64{2, 1, 3}, []int64{1, 1, 2}, []int64{2, 0, 1}},
		{[]int64{2, 3}, []int64{4, 1}, nil},
		{[]int64{2, 3}, []int64{0, 1}, nil},
	} {
		require.Equal(t, c.want, memoryOrder(c.dims, c.strides), "%v %v", c.dims, c.strides)
	}
}
