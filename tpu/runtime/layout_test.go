package runtime

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
)

// Weights go to the device in the layout that the executable wants: a row-major buffer would run without an error and give other numbers.
func TestWeightLayout(t *testing.T) {
	m, w, c := linear()
	program := strings.NewReplacer("%w: tensor<16x32xf32>", `%w: tensor<16x32xf32> {mhlo.layout_mode = "{0,1}"}`,
		"%c: tensor<2x32xf32>", `%c: tensor<2x32xf32> {mhlo.layout_mode = "{0,1}"}`).Replace(linearProgram)
	model := open(t, build(t, t.TempDir(), program, m, artifact.Contents{Constants: only(c), Weights: only(w)}), Options{})
	l, err := fixedOf(model, artifact.KindWeight).Layout()
	require.NoError(t, err)
	require.Equal(t, "{0,1}", string(l))
	x := ones()
	out, err := session(t, model).Run(t.Context(), []*tensor.Tensor{x})
	require.NoError(t, err)
	require.Equal(t, wantLinear(x, w, c), out[0].Floats())
}

// Inputs and outputs are row-major: a program that wants them otherwise is refused.
func TestLayoutRefused(t *testing.T) {
	m, w, c := linear()
	for name, change := range map[string][2]string{
		`input "x" has layout {0,1} in the executable, wanted row-major`:  {"%x: tensor<2x16xf32>", `%x: tensor<2x16xf32> {mhlo.layout_mode = "{0,1}"}`},
		`output "y" has layout {0,1} in the executable, wanted row-major`: {"-> tensor<2x32xf32> {\n", "-> (tensor<2x32xf32> {mhlo.layout_mode = \"{0,1}\"}) {\n"},
	} {
		path := build(t, t.TempDir(), strings.Replace(linearProgram, change[0], change[1], 1), m, artifact.Contents{Constants: only(c), Weights: only(w)})
		_, err := Open(t.Context(), path, Options{})
		require.ErrorContains(t, err, name)
	}
}

// gridProgram adds x, along rows, to a grid that is state, in a layout of its own.
const gridProgram = `module @grid {
  func.func public @main(%x: tensor<Nxf32>, %g: tensor<2x3xf32> {mhlo.layout_mode = "ORDER", tf.aliasing_output = 1 : i32}) -> (tensor<2x3xf32>, tensor<2x3xf32> {mhlo.layout_mode = "ORDER"}) {
    %s = stablehlo.slice %x [0:3] : (tensor<Nxf32>) -> tensor<3xf32>
    %b = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
    %y = stablehlo.add %g, %b : tensor<2x3xf32>
    return %y, %y : tensor<2x3xf32>, tensor<2x3xf32>
  }
}`

// State keeps a program's layout from call to call in its own memory, and changes it on the way to a program that wants another.
func TestStateLayout(t *testing.T) {
	lib := cpuPlugin(t)
	var parts []artifact.Part
	for i, order := range []string{"{0,1}", "{1,0}"} {
		size := int64(3 + i)
		program := strings.NewReplacer("ORDER", order, "N", fmt.Sprint(size)).Replace(gridProgram)
		m := single{
			Inputs: []artifact.Port{port("x", tensor.F32, size)}, Outputs: []artifact.Port{port("y", tensor.F32, 2, 3)},
			State:   []artifact.Weight{{Name: "g", Class: "constant", Type: artifact.MakeType(tensor.Make(tensor.F32, 2, 3))}},
			Args:    []artifact.Slot{slot(artifact.KindInput, 0), slot(artifact.KindState, 0)},
			Results: [][]artifact.Slot{{slot(artifact.KindOutput, 0)}, {slot(artifact.KindState, 0)}},
			Aliases: []artifact.Alias{{Result: 1, Argument: 1}},
			Target:  artifact.Target{Name: "cpu", Platform: "cpu", Devices: 1},
			Plugin:  artifact.Plugin{Name: lib.Name, Version: lib.Version, SHA256: lib.Digest},
		}
		man := m.manifest()
		man.Symbols = []artifact.Symbol{{Name: "s0", Min: 3}}
		man.Inputs[0].Dims = []string{"s0"}
		man.Programs[0].Dims = []artifact.Dim{{Name: "s0", Value: size}}
		parts = append(parts, artifact.Part{Manifest: man, Contents: artifact.Contents{
			Programs: []artifact.ProgramContents{{Program: []byte(program), Executable: compile(t, lib, program)}},
			State:    only(tensor.FromFloats(tensor.Make(tensor.F32, 2, 3), []float64{0, 10, 20, 30, 40, 50})),
		}})
	}
	p, err := artifact.Merge(parts)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "grid.tpuc")
	require.NoError(t, artifact.Write(path, p.Manifest, p.Contents))

	model := open(t, path, Options{})
	s := session(t, model)
	sum := []float64{0, 10, 20, 30, 40, 50}
	for i, x := range [][]float64{{1, 2, 3}, {1, 2, 3}, {1, 2, 3, 9}, {4, 4, 4, 9}, {1, 0, 0}} {
		out, err := s.Run(t.Context(), vector(x...))
		require.NoError(t, err)
		for k := range sum {
			sum[k] += x[k%3]
		}
		require.Equal(t, sum, out[0].Floats(), "call %d", i)
		state, err := s.State(t.Context())
		require.NoError(t, err)
		require.Equal(t, sum, state[0].Floats(), "call %d", i)
	}
	require.Equal(t, int64(3), model.Stats().Relaid)
}
