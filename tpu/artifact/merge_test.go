package artifact

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir/tensor"
)

// sized is the sample with its first dimension n and a literal of its own. One that changes no state reads it as a weight.
func sized(n int64, changes bool) Part {
	m, c := sample()
	x := Type{"f32", []int64{n, 3}}
	fixed := func(v ...float64) *tensor.Tensor {
		return tensor.FromFloats(tensor.Make(tensor.F32, int64(len(v))), v)
	}
	shared, own := fixed(1, 2), fixed(3, float64(n))
	literal := func(name string) Weight { return Weight{Name: name, Class: "constant", Type: Type{"f32", []int64{2}}} }
	m.Constants = []Weight{literal("literal_7"), literal("literal_8")}
	c.Constants = func(i int) (*tensor.Tensor, error) { return []*tensor.Tensor{own, shared}[i], nil }
	state := Weight{Name: "n", Names: []string{"n"}, Class: "buffer", Type: Type{"i64", []int64{}}, Expr: `"n"`}
	p := &m.Programs[0]
	p.Dims, p.Inputs, p.Outputs = []Dim{{"s0", n}}, []Type{x}, []Type{x}
	if changes {
		m.State = []Weight{state}
		return Part{m, c}
	}
	state.Name = "another_symbol"
	weights := c.Weights
	m.State, m.Weights = nil, []Weight{state, m.Weights[0]}
	c.Weights = func(i int) (*tensor.Tensor, error) {
		if i == 0 {
			return tensor.FromInts(tensor.Make(tensor.I64), []int64{0}), nil
		}
		return weights(i)
	}
	p.Args = []Slot{{KindInput, 0}, {KindWeight, 0}, {KindWeight, 1}, {KindConstant, 0}, {KindConstant, 1}}
	p.Results, p.Aliases = [][]Slot{{{KindOutput, 0}}, {{KindInput, 0}}}, nil
	return Part{m, c}
}

func TestMerge(t *testing.T) {
	p, err := Merge([]Part{sized(2, false), sized(4, true), sized(8, true)})
	require.NoError(t, err)
	a, err := Open(write(t, p.Manifest, p.Contents))
	require.NoError(t, err)
	defer a.Close()
	require.NoError(t, a.Verify())
	m := a.Manifest
	require.Len(t, m.Programs, 3)
	require.Len(t, m.Weights, 1)
	require.Len(t, m.State, 1)
	require.Len(t, m.Constants, 4, "one literal is shared, one is each program's own")
	for i, n := range []int64{2, 4, 8} {
		prog := &m.Programs[i]
		require.Equal(t, []Dim{{"s0", n}}, prog.Dims)
		weight := map[bool]int{true: 1, false: 2}[i > 0]
		require.Equal(t, Slot{KindWeight, 0}, prog.Args[weight])
		require.Equal(t, Slot{KindState, 0}, prog.Args[3-weight])
		own, err := a.Tensor(m.Constants[prog.Args[3].Index])
		require.NoError(t, err)
		require.Equal(t, []float64{3, float64(n)}, own.Floats())
		shared, err := a.Tensor(m.Constants[prog.Args[4].Index])
		require.NoError(t, err)
		require.Equal(t, []float64{1, 2}, shared.Floats())
		in, _ := m.Ports(prog)
		require.Equal(t, []int64{n, 3}, in[0].Dims)
	}
	require.Equal(t, m.Programs[0].Args[4], m.Programs[2].Args[4])
}

func TestMergeRefuses(t *testing.T) {
	_, err := Merge(nil)
	require.ErrorContains(t, err, "no programs")
	other := sized(4, true)
	other.Manifest.Model.Name = "another"
	_, err = Merge([]Part{sized(2, true), other})
	require.ErrorContains(t, err, "of different models")
	twice, err := Merge([]Part{sized(2, true), sized(2, true)})
	require.NoError(t, err)
	require.ErrorContains(t, Write(t.TempDir()+"/a.tpuc", twice.Manifest, twice.Contents), "programs 0 and 1 take inputs of the same shapes")
}
