package runtime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
	"tpuc/tpu/pjrt"
	"tpuc/tpu/plugin"
)

// Hand-written programs; each comes with the manifest that describes it.
const (
	counterProgram = `module @counter {
  func.func public @main(%n: tensor<i64> {tf.aliasing_output = 1 : i32}) -> (tensor<i64>, tensor<i64>) {
    %one = stablehlo.constant dense<1> : tensor<i64>
    %next = stablehlo.add %n, %one : tensor<i64>
    return %next, %next : tensor<i64>, tensor<i64>
  }
}`
	cacheProgram = `module @cache {
  func.func public @main(%pos: tensor<i32>, %cache: tensor<64x16xf32> {tf.aliasing_output = 0 : i32}, %row: tensor<1x16xf32>) -> (tensor<64x16xf32>, tensor<16xf32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %new = stablehlo.dynamic_update_slice %cache, %row, %pos, %zero : (tensor<64x16xf32>, tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> tensor<64x16xf32>
    %init = stablehlo.constant dense<0.0> : tensor<f32>
    %sum = stablehlo.reduce(%new init: %init) applies stablehlo.add across dimensions = [0] : (tensor<64x16xf32>, tensor<f32>) -> tensor<16xf32>
    return %new, %sum : tensor<64x16xf32>, tensor<16xf32>
  }
}`
	linearProgram = `module @linear {
  func.func public @main(%w: tensor<16x32xf32>, %x: tensor<2x16xf32>, %c: tensor<2x32xf32>) -> tensor<2x32xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x16xf32>, tensor<16x32xf32>) -> tensor<2x32xf32>
    %1 = stablehlo.add %0, %c : tensor<2x32xf32>
    return %1 : tensor<2x32xf32>
  }
}`
	mutateProgram = `module @mutate {
  func.func public @main(%x: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %unused: tensor<2xi1>) -> tensor<4xf32> {
    %0 = stablehlo.add %x, %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}`
)

// cpuPlugin is the CPU plugin, fetched only where the test run demands it.
func cpuPlugin(t testing.TB) *plugin.Plugin {
	t.Helper()
	required := false
	for _, k := range strings.FieldsFunc(os.Getenv("TPUC_REQUIRE"), func(r rune) bool { return r == ',' || r == ' ' }) {
		required = required || k == "cpu"
	}
	lib, err := plugin.Locate(t.Context(), plugin.CPU, plugin.Options{Offline: !required})
	if err != nil && !required {
		t.Skipf("no CPU plugin (TPUC_REQUIRE=cpu demands it): %v", err)
	}
	require.NoError(t, err)
	return lib
}

func compile(t testing.TB, lib *plugin.Plugin, program string) []byte {
	t.Helper()
	p, err := pjrt.Open(lib.Path)
	require.NoError(t, err)
	c, err := p.NewClient()
	require.NoError(t, err)
	defer c.Close()
	exe, err := c.Compile([]byte(program), pjrt.CompileOptions{})
	require.NoError(t, err)
	defer exe.Close()
	code, err := exe.Executable().Serialize()
	require.NoError(t, err)
	return code
}

// single describes an artifact of one program.
type single struct {
	Target                    artifact.Target
	Plugin                    artifact.Plugin
	CPU                       *artifact.CPU
	Options                   []artifact.Option
	Inputs, Outputs           []artifact.Port
	Weights, State, Constants []artifact.Weight
	Args                      []artifact.Slot
	Results                   [][]artifact.Slot
	Aliases                   []artifact.Alias
	Checkpoint                *artifact.Source
}

func (s single) manifest() artifact.Manifest {
	p := artifact.Program{Args: s.Args, Results: s.Results, Aliases: s.Aliases}
	split := func(ports []artifact.Port) (signatures []artifact.Signature, types []artifact.Type) {
		for _, p := range ports {
			signatures, types = append(signatures, artifact.Fixed(p)), append(types, p.Type)
		}
		return signatures, types
	}
	m := artifact.Manifest{
		Tpuc: "test", Model: artifact.Model{Name: "test", Kind: "stablehlo"}, Target: s.Target, Plugin: s.Plugin, CPU: s.CPU, Options: s.Options,
		Weights: s.Weights, State: s.State, Constants: s.Constants, Checkpoint: s.Checkpoint,
	}
	m.Inputs, p.Inputs = split(s.Inputs)
	m.Outputs, p.Outputs = split(s.Outputs)
	m.Programs = []artifact.Program{p}
	return m
}

// build writes an artifact of the program into dir.
func build(t testing.TB, dir, program string, m single, c artifact.Contents) string {
	t.Helper()
	lib := cpuPlugin(t)
	if m.Target.Name == "" {
		m.Target = artifact.Target{Name: "cpu", Platform: "cpu", Devices: 1}
	}
	if m.Plugin.SHA256 == "" {
		m.Plugin = artifact.Plugin{Name: lib.Name, Version: lib.Version, SHA256: lib.Digest}
	}
	if c.Programs == nil {
		c.Programs = []artifact.ProgramContents{{Program: []byte(program), Executable: compile(t, lib, program)}}
	}
	path := filepath.Join(dir, "model.tpuc")
	require.NoError(t, artifact.Write(path, m.manifest(), c))
	return path
}

func port(name string, d tensor.DType, dims ...int64) artifact.Port {
	return artifact.Port{Name: name, Type: artifact.MakeType(tensor.Make(d, dims...))}
}

func slot(kind string, i int) artifact.Slot { return artifact.Slot{Kind: kind, Index: i} }

func only(x *tensor.Tensor) func(int) (*tensor.Tensor, error) {
	return func(int) (*tensor.Tensor, error) { return x, nil }
}

func counter() (single, artifact.Contents) {
	return single{
			Outputs: []artifact.Port{port("y", tensor.I64)},
			State:   []artifact.Weight{{Name: "n", Class: "constant", Type: artifact.MakeType(tensor.Make(tensor.I64))}},
			Args:    []artifact.Slot{slot(artifact.KindState, 0)},
			Results: [][]artifact.Slot{{slot(artifact.KindOutput, 0)}, {slot(artifact.KindState, 0)}},
			Aliases: []artifact.Alias{{Result: 1, Argument: 0}},
		}, artifact.Contents{
			State: only(tensor.ScalarInt(tensor.I64, 0)),
		}
}

func linear() (single, *tensor.Tensor, *tensor.Tensor) {
	w := make([]float64, 16*32)
	for i := range w {
		w[i] = float64(i%7) - 3
	}
	c := make([]float64, 2*32)
	for i := range c {
		c[i] = float64(i)
	}
	return single{
		Inputs:  []artifact.Port{port("x", tensor.F32, 2, 16)},
		Outputs: []artifact.Port{port("y", tensor.F32, 2, 32)},
		Weights: []artifact.Weight{{Name: "lin_weight", Names: []string{"lin.weight", "tied.weight"}, Class: "weight",
			Type: artifact.MakeType(tensor.Make(tensor.F32, 16, 32)), Expr: `"lin.weight"`}},
		Constants: []artifact.Weight{{Name: "c", Class: "constant", Type: artifact.MakeType(tensor.Make(tensor.F32, 2, 32))}},
		Args:      []artifact.Slot{slot(artifact.KindWeight, 0), slot(artifact.KindInput, 0), slot(artifact.KindConstant, 0)},
		Results:   [][]artifact.Slot{{slot(artifact.KindOutput, 0)}},
	}, tensor.FromFloats(tensor.Make(tensor.F32, 16, 32), w), tensor.FromFloats(tensor.Make(tensor.F32, 2, 32), c)
}

// wantLinear is x @ w + c in plain Go.
func wantLinear(x, w, c *tensor.Tensor) []float64 {
	xs, ws, out := x.Floats(), w.Floats(), c.Floats()
	for i := range 2 {
		for j := range 32 {
			for k := range 16 {
				out[i*32+j] += xs[i*16+k] * ws[k*32+j]
			}
		}
	}
	return out
}

func ones() *tensor.Tensor {
	x := make([]float64, 2*16)
	for i := range x {
		x[i] = float64(i%5) + 1
	}
	return tensor.FromFloats(tensor.Make(tensor.F32, 2, 16), x)
}

func open(t *testing.T, path string, opts Options) *Model {
	t.Helper()
	m, err := Open(t.Context(), path, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

func session(t *testing.T, m *Model) *Session {
	t.Helper()
	s, err := m.NewSession(t.Context())
	require.NoError(t, err)
	return s
}
