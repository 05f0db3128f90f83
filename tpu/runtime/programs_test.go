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

// Programs of one model at the shape X.
const (
	countingProgram = `module @shaped {
  func.func public @main(%x: X, %n: tensor<f32> {tf.aliasing_output = 1 : i32}) -> (X, tensor<f32>) {
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %next = stablehlo.add %n, %one : tensor<f32>
    %b = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<f32>) -> X
    %y = stablehlo.add %x, %b : X
    return %y, %next : X, tensor<f32>
  }
}`
	readingProgram = `module @shaped {
  func.func public @main(%x: X, %n: tensor<f32>) -> X {
    %b = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<f32>) -> X
    %y = stablehlo.add %x, %b : X
    return %y : X
  }
}`
)

// shaped writes an artifact of a program for each size: x f32[size] gives x+n, and the state n counts calls. The last program only reads n.
func shaped(t *testing.T, sizes ...int64) string {
	t.Helper()
	lib := cpuPlugin(t)
	n := artifact.Weight{Name: "n", Names: []string{"n"}, Class: "buffer", Type: artifact.MakeType(tensor.Make(tensor.F32)), Expr: `"n"`}
	var parts []artifact.Part
	for i, size := range sizes {
		text := countingProgram
		if i > 0 && i == len(sizes)-1 {
			text = readingProgram
		}
		program := strings.ReplaceAll(text, "X", fmt.Sprintf("tensor<%dxf32>", size))
		m := single{
			Inputs: []artifact.Port{port("x", tensor.F32, size)}, Outputs: []artifact.Port{port("y", tensor.F32, size)},
			State:   []artifact.Weight{n},
			Args:    []artifact.Slot{slot(artifact.KindInput, 0), slot(artifact.KindState, 0)},
			Results: [][]artifact.Slot{{slot(artifact.KindOutput, 0)}, {slot(artifact.KindState, 0)}},
			Aliases: []artifact.Alias{{Result: 1, Argument: 1}},
			Target:  artifact.Target{Name: "cpu", Platform: "cpu", Devices: 1},
			Plugin:  artifact.Plugin{Name: lib.Name, Version: lib.Version, SHA256: lib.Digest},
		}
		if text == readingProgram {
			m.State, m.Weights = nil, []artifact.Weight{n}
			m.Args[1] = slot(artifact.KindWeight, 0)
			m.Results, m.Aliases = m.Results[:1], nil
		}
		man := m.manifest()
		man.Symbols = []artifact.Symbol{{Name: "s0", Min: 1}}
		man.Inputs[0].Dims, man.Outputs[0].Dims = []string{"s0"}, []string{"s0"}
		man.Programs[0].Dims = []artifact.Dim{{Name: "s0", Value: size}}
		zero := only(tensor.FromFloats(tensor.Make(tensor.F32), []float64{0}))
		parts = append(parts, artifact.Part{Manifest: man, Contents: artifact.Contents{
			Programs: []artifact.ProgramContents{{Program: []byte(program), Executable: compile(t, lib, program)}}, State: zero, Weights: zero,
		}})
	}
	p, err := artifact.Merge(parts)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "shaped.tpuc")
	require.NoError(t, artifact.Write(path, p.Manifest, p.Contents))
	return path
}

func vector(v ...float64) []*tensor.Tensor {
	return []*tensor.Tensor{tensor.FromFloats(tensor.Make(tensor.F32, int64(len(v))), v)}
}

// A call runs the program of its shapes, and state goes from program to program, also to one that only reads it.
func TestPrograms(t *testing.T) {
	model := open(t, shaped(t, 2, 3, 4), Options{})
	s := session(t, model)
	require.Equal(t, int64(2), s.Program().Dims[0].Value)
	for i, call := range [][]float64{{1, 2}, {1, 2, 3}, {5, 6}, {0, 0, 0, 0}, {1, 1, 1}} {
		out, err := s.Run(t.Context(), vector(call...))
		require.NoError(t, err)
		before := float64([]int{0, 1, 2, 3, 3}[i]) // the fourth call does not count
		for k := range call {
			call[k] += before
		}
		require.Equal(t, call, out[0].Floats(), "call %d", i)
		require.Equal(t, int64(len(call)), s.Program().Dims[0].Value)
	}
	state, err := s.State(t.Context())
	require.NoError(t, err)
	require.Equal(t, []float64{4}, state[0].Floats())

	_, err = s.Run(t.Context(), vector(1, 2, 3, 4, 5))
	require.ErrorContains(t, err, "no program takes inputs (f32[5])")
	require.ErrorContains(t, err, "program 1 takes (f32[3])")
}

// All tensors that a checkpoint lacks or has otherwise are named in one message; what else it holds is nobody's business.
func TestWeightsDiffer(t *testing.T) {
	m, w, c := linear()
	other := func(name string, dims ...int64) artifact.Weight {
		return artifact.Weight{Name: name, Names: []string{name}, Class: "weight", Type: artifact.MakeType(tensor.Make(tensor.F32, dims...)), Expr: fmt.Sprintf("%q", name)}
	}
	// Three more weights, which no program reads.
	m.Weights = append(m.Weights, other("a.bias", 4), other("b.scale", 2, 2), other("c.gone", 3))
	path := build(t, t.TempDir(), linearProgram, m, artifact.Contents{Constants: only(c)})
	_, err := Open(t.Context(), path, Options{Weights: memory{
		"tied.weight": tensor.Zeros(tensor.Make(tensor.F32, 32, 16)), "a.bias": tensor.Zeros(tensor.Make(tensor.BF16, 4)),
		"b.scale": tensor.Zeros(tensor.Make(tensor.I8, 3)), "more": w,
	}})
	for _, want := range []string{
		`tensor "tied.weight" has shape [32 16], wanted [16 32]`, `tensor "a.bias" has dtype bf16, wanted f32`,
		`tensor "b.scale" is i8[3], wanted f32[2,2]`, `no tensor "c.gone", wanted f32[3]`,
	} {
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, err.Error(), "more")
}
