package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
	"tpuc/tpu/plugin"
)

// rowsProgram multiplies rows by a weight and adds the number of calls, and gives half a row more than a row each: an output of N*2 rows of 4.
const rowsProgram = `module @rows {
  func.func public @main(%w: tensor<4x4xf32>, %x: tensor<Nx4xf32>, %n: tensor<f32> {tf.aliasing_output = 1 : i32}) -> (tensor<Mx4xf32>, tensor<f32>) {
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %next = stablehlo.add %n, %one : tensor<f32>
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<Nx4xf32>, tensor<4x4xf32>) -> tensor<Nx4xf32>
    %1 = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<f32>) -> tensor<Nx4xf32>
    %2 = stablehlo.add %0, %1 : tensor<Nx4xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0, 2] : (tensor<Nx4xf32>) -> tensor<Nx2x4xf32>
    %4 = stablehlo.reshape %3 : (tensor<Nx2x4xf32>) -> tensor<Mx4xf32>
    return %4, %next : tensor<Mx4xf32>, tensor<f32>
  }
}`

// rowsPart is an artifact of one size. from is the smallest size that padding is proved for; 0: refused.
func rowsPart(t testing.TB, lib *plugin.Plugin, size, from int64) artifact.Part {
	t.Helper()
	program := strings.NewReplacer("N", fmt.Sprint(size), "M", fmt.Sprint(2*size)).Replace(rowsProgram)
	m := single{
		Inputs: []artifact.Port{port("x", tensor.F32, size, 4)}, Outputs: []artifact.Port{port("y", tensor.F32, 2*size, 4)},
		Weights: []artifact.Weight{{Name: "w", Names: []string{"w"}, Class: "weight", Type: artifact.MakeType(tensor.Make(tensor.F32, 4, 4)), Expr: `"w"`}},
		State:   []artifact.Weight{{Name: "n", Class: "constant", Type: artifact.MakeType(tensor.Make(tensor.F32))}},
		Args:    []artifact.Slot{slot(artifact.KindWeight, 0), slot(artifact.KindInput, 0), slot(artifact.KindState, 0)},
		Results: [][]artifact.Slot{{slot(artifact.KindOutput, 0)}, {slot(artifact.KindState, 0)}},
		Aliases: []artifact.Alias{{Result: 1, Argument: 2}},
		Target:  artifact.Target{Name: "cpu", Platform: "cpu", Devices: 1},
		Plugin:  artifact.Plugin{Name: lib.Name, Version: lib.Version, SHA256: lib.Digest},
	}
	man := m.manifest()
	most := int64(64)
	man.Symbols = []artifact.Symbol{{Name: "batch", Min: 1, Max: &most}}
	man.Inputs[0].Dims, man.Outputs[0].Dims = []string{"batch", "4"}, []string{"2*batch", "4"}
	p := &man.Programs[0]
	p.Dims = []artifact.Dim{{Name: "batch", Value: size}}
	p.Pads = []artifact.Pad{{Symbol: "batch", Min: size, Reason: "softmax over it"}}
	if from > 0 {
		p.Pads[0] = artifact.Pad{Symbol: "batch", Min: from, Inputs: []artifact.PadAxis{{Scale: 1}}, Outputs: []artifact.PadAxis{{Scale: 2}}}
	}
	w := make([]float64, 16)
	for i := range w {
		w[i] = float64(i) - 7
	}
	return artifact.Part{Manifest: man, Contents: artifact.Contents{
		Programs: []artifact.ProgramContents{{Program: []byte(program), Executable: compile(t, lib, program)}},
		State:    only(tensor.FromFloats(tensor.Make(tensor.F32), []float64{0})), Weights: only(tensor.FromFloats(tensor.Make(tensor.F32, 4, 4), w)),
	}}
}

// rows writes an artifact of several sizes, with padding proved from size from on.
func rows(t testing.TB, from int64, sizes ...int64) string {
	t.Helper()
	lib := cpuPlugin(t)
	var parts []artifact.Part
	for _, size := range sizes {
		parts = append(parts, rowsPart(t, lib, size, min(from, size)))
	}
	p, err := artifact.Merge(parts)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "rows.tpuc")
	require.NoError(t, artifact.Write(path, p.Manifest, p.Contents))
	return path
}

// rowsInput is rows of ascending numbers, and wantRows what the program gives for them in call n, from 0.
func rowsInput(size int64) []*tensor.Tensor {
	v := make([]float64, size*4)
	for i := range v {
		v[i] = float64(i%11) - 5
	}
	return []*tensor.Tensor{tensor.FromFloats(tensor.Make(tensor.F32, size, 4), v)}
}

func wantRows(inputs []*tensor.Tensor, n int) (out []float64) {
	x := inputs[0].Floats()
	for r := range inputs[0].Dims[0] {
		row := make([]float64, 4)
		for j := range 4 {
			row[j] = float64(n)
			for k := range 4 {
				row[j] += x[int(r)*4+k] * (float64(k*4+j) - 7)
			}
		}
		out = append(append(out, row...), row...)
	}
	return out
}

// notes collects what a model tells.
type notes struct {
	mu    sync.Mutex
	lines []string
}

func (n *notes) add(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, line)
}

func (n *notes) text() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.lines, "\n")
}

// maker is a Compiler of further sizes of rows.
type maker struct {
	t    testing.TB
	lib  *plugin.Plugin
	gate chan struct{} // if not nil, each waits for one
	err  error
	mu   sync.Mutex
	made []int64
}

func (m *maker) Compile(context.Context, CompileRequest) ([]byte, error) {
	return nil, errors.New("no executables here")
}

func (m *maker) Specialize(ctx context.Context, req SpecializeRequest) (string, error) {
	if m.gate != nil {
		select {
		case <-m.gate:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made = append(m.made, req.Dims["batch"])
	if m.err != nil {
		return "", m.err
	}
	p := rowsPart(m.t, m.lib, req.Dims["batch"], 0)
	p.Contents.Weights = nil // by reference, as the model has them
	f, err := os.CreateTemp(m.t.TempDir(), "further-*.tpuc")
	if err != nil {
		return "", err
	}
	return f.Name(), errors.Join(f.Close(), artifact.Write(f.Name(), p.Manifest, p.Contents))
}

func runRows(t *testing.T, s *Session, size int64, call int) {
	t.Helper()
	x := rowsInput(size)
	out, err := s.Run(t.Context(), x)
	require.NoError(t, err)
	require.Equal(t, []int64{2 * size, 4}, out[0].Dims)
	require.Equal(t, wantRows(x, call), out[0].Floats())
	require.Equal(t, []int64{2 * size, 4}, s.Program().Outputs[0].Dims)
	require.Equal(t, size, s.Program().Dim("batch"))
}

func TestStrict(t *testing.T) {
	model := open(t, rows(t, 1, 2, 8), Options{})
	s := session(t, model)
	runRows(t, s, 2, 0)
	_, err := s.Run(t.Context(), rowsInput(5))
	require.ErrorContains(t, err, `no program takes inputs (f32[5,4]): dimension 0 (batch) of input 0 ("x") is 5, wanted 2 or 8`)
	require.ErrorContains(t, err, "program 1 takes (f32[8,4])")
	require.ErrorContains(t, err, "tpuc compile --dim batch=5")
	runRows(t, s, 8, 1)
	require.Equal(t, Stats{Calls: 3, Exact: 2, Refused: 1}, model.Stats())

	// What is wrong whatever the size is said by itself.
	_, err = s.Run(t.Context(), []*tensor.Tensor{tensor.Zeros(tensor.Make(tensor.F32, 2, 5))})
	require.ErrorContains(t, err, `input 0 ("x") has shape [2 5], wanted [2 4]: dimension 1 is 5, wanted 4`)
	_, err = s.Run(t.Context(), []*tensor.Tensor{tensor.Zeros(tensor.Make(tensor.F32, 2))})
	require.ErrorContains(t, err, `input 0 ("x") has shape [2], wanted f32[batch,4]: 1 dimension, wanted 2`)
}

func TestPad(t *testing.T) {
	var n notes
	model := open(t, rows(t, 2, 4, 8), Options{OnMiss: Pad, Notify: n.add})
	s := session(t, model)
	for i, size := range []int64{4, 3, 2, 8, 5, 3, 7} {
		runRows(t, s, size, i)
	}
	_, err := s.Run(t.Context(), rowsInput(1))
	require.ErrorContains(t, err, "is 1, wanted 4 or 8")
	_, err = s.Run(t.Context(), rowsInput(9))
	require.ErrorContains(t, err, "is 9, wanted 4 or 8")
	require.Equal(t, Stats{Calls: 9, Exact: 2, Padded: 5, Refused: 2}, model.Stats())
	require.Equal(t, 1, strings.Count(n.text(), "padding: a call with batch = 3 runs the program for batch = 4"))

	// What is not proved is not done, and the reason is said.
	model = open(t, rows(t, 0, 4, 8), Options{OnMiss: Pad})
	_, err = session(t, model).Run(t.Context(), rowsInput(3))
	require.ErrorContains(t, err, "no padding along batch: softmax over it")
}

func TestCompileOnMiss(t *testing.T) {
	var n notes
	c := &maker{t: t, lib: cpuPlugin(t)}
	model := open(t, rows(t, 0, 4, 8), Options{OnMiss: Compile, Compiler: c, Notify: n.add})
	s := session(t, model)
	for i, size := range []int64{4, 3, 3, 8, 9, 3} {
		runRows(t, s, size, i)
	}
	require.Equal(t, []int64{3, 9}, c.made)
	require.Equal(t, Stats{Calls: 6, Exact: 6, Compiled: 2}, model.Stats())
	require.Contains(t, n.text(), `compiling a program for batch = 3: dimension 0 (batch) of input 0 ("x") is 3, wanted 4 or 8`)
	// The weights are those that are there already.
	require.Len(t, model.fixed, 1)

	// A size that the model does not allow is refused without a compile.
	_, err := s.Run(t.Context(), rowsInput(65))
	require.ErrorContains(t, err, `dimension 0 of input 0 ("x") is batch = 65, wanted 1 to 64`)
	require.Len(t, c.made, 2)

	// A failure is told to who waits, and the next call tries again.
	c.err = errors.New("the plugin crashed")
	_, err = s.Run(t.Context(), rowsInput(6))
	require.ErrorContains(t, err, "no program for batch = 6: the plugin crashed")
	c.err = nil
	runRows(t, s, 6, 6)
	stats := model.Stats()
	require.Equal(t, Stats{Calls: 9, Exact: 7, Refused: 2, Compiled: 3, CompileFailures: 1}, stats)
}

// A larger program serves while the one of the right size is compiled.
func TestCompileBehind(t *testing.T) {
	c := &maker{t: t, lib: cpuPlugin(t), gate: make(chan struct{})}
	model := open(t, rows(t, 1, 8), Options{OnMiss: Compile, Compiler: c})
	s := session(t, model)
	runRows(t, s, 3, 0)
	runRows(t, s, 3, 1)
	require.Equal(t, Stats{Calls: 2, Padded: 2, Compiling: 1}, model.Stats())
	c.gate <- struct{}{}
	model.background.Wait()
	runRows(t, s, 3, 2)
	require.Equal(t, Stats{Calls: 3, Padded: 2, Exact: 1, Compiled: 1}, model.Stats())

	// One that fails is not begun again by calls that are served.
	c.err = errors.New("the plugin crashed")
	runRows(t, s, 5, 3)
	c.gate <- struct{}{}
	model.background.Wait()
	runRows(t, s, 5, 4)
	require.Equal(t, Stats{Calls: 5, Padded: 4, Exact: 1, Compiled: 1, CompileFailures: 1}, model.Stats())

	// The end of a context ends the wait and not the compile; Close ends the compile.
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := s.Run(ctx, rowsInput(20))
		failed <- err
	}()
	for model.Stats().Compiling == 0 {
	}
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	require.Equal(t, int64(1), model.Stats().Compiling)
	require.NoError(t, model.Close())
	require.Equal(t, int64(0), model.Stats().Compiling)
}

// One symbol has one size in a call.
func TestSymbolOfTwoSizes(t *testing.T) {
	program := `module @two {
  func.func public @main(%x: tensor<4xf32>, %y: tensor<4x2xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}`
	m := single{
		Inputs: []artifact.Port{port("x", tensor.F32, 4), port("y", tensor.F32, 4, 2)}, Outputs: []artifact.Port{port("z", tensor.F32, 4)},
		Args:    []artifact.Slot{slot(artifact.KindInput, 0), slot(artifact.KindInput, 1)},
		Results: [][]artifact.Slot{{slot(artifact.KindOutput, 0)}},
	}
	lib := cpuPlugin(t)
	m.Target, m.Plugin = artifact.Target{Name: "cpu", Platform: "cpu", Devices: 1}, artifact.Plugin{Name: lib.Name, Version: lib.Version, SHA256: lib.Digest}
	man := m.manifest()
	man.Symbols = []artifact.Symbol{{Name: "s0", Min: 2}}
	man.Programs[0].Dims = []artifact.Dim{{Name: "s0", Value: 4}}
	man.Inputs[0].Dims, man.Inputs[1].Dims = []string{"s0"}, []string{"s0", "2"}
	path := filepath.Join(t.TempDir(), "two.tpuc")
	require.NoError(t, artifact.Write(path, man, artifact.Contents{Programs: []artifact.ProgramContents{{Program: []byte(program), Executable: compile(t, lib, program)}}}))
	model := open(t, path, Options{OnMiss: Compile, Compiler: &maker{t: t, lib: lib}})
	s := session(t, model)
	call := func(a, b int64) error {
		_, err := s.Run(t.Context(), []*tensor.Tensor{tensor.Zeros(tensor.Make(tensor.F32, a)), tensor.Zeros(tensor.Make(tensor.F32, b, 2))})
		return err
	}
	require.NoError(t, call(4, 4))
	require.ErrorContains(t, call(4, 5), `dimension 0 of input 1 ("y") and dimension 0 of input 0 ("x") are one size, s0, and here 5 and 4`)
	require.ErrorContains(t, call(1, 1), `dimension 0 of input 0 ("x") is s0 = 1, wanted 2 or more`)
}

// Calls may be started ahead; the device does them in order, with the state that each leaves to the next.
func TestStart(t *testing.T) {
	model := open(t, rows(t, 1, 8), Options{OnMiss: Pad})
	s := session(t, model)
	var calls []*Call
	var inputs [][]*tensor.Tensor
	for i := range int64(8) {
		x := rowsInput(i + 1)
		c, err := s.Start(t.Context(), x)
		require.NoError(t, err)
		calls, inputs = append(calls, c), append(inputs, x)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range calls {
		k := len(calls) - 1 - i // in any order
		out, err := calls[k].Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, wantRows(inputs[k], k), out[0].Floats())
	}
	// A wait that ends early loses the outputs and nothing else.
	c, err := s.Start(t.Context(), rowsInput(4))
	require.NoError(t, err)
	if _, err := c.Wait(ended); err != nil {
		require.ErrorIs(t, err, context.Canceled)
	}
	runRows(t, s, 2, 9)
}

func TestSaveState(t *testing.T) {
	model := open(t, rows(t, 1, 2, 4), Options{})
	s := session(t, model)
	runRows(t, s, 2, 0)
	runRows(t, s, 4, 1)
	path := filepath.Join(t.TempDir(), "state.safetensors")
	require.NoError(t, s.SaveState(t.Context(), path))
	runRows(t, s, 2, 2)
	require.NoError(t, s.LoadState(t.Context(), path))
	runRows(t, s, 2, 2)
	other := session(t, model)
	require.NoError(t, other.LoadState(t.Context(), path))
	runRows(t, other, 4, 2)

	// What does not fit changes nothing.
	m, c := counter()
	wrong := session(t, open(t, build(t, t.TempDir(), counterProgram, m, c), Options{}))
	require.ErrorContains(t, wrong.LoadState(t.Context(), path), "n")
	out, err := wrong.Run(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, []int64{1}, out[0].Ints())
}

func TestParsePolicy(t *testing.T) {
	p, err := ParsePolicy("pad")
	require.NoError(t, err)
	require.Equal(t, Pad, p)
	_, err = ParsePolicy("guess")
	require.ErrorContains(t, err, `policy "guess", wanted one of [strict compile pad]`)
	_, err = Open(t.Context(), "none.tpuc", Options{OnMiss: "guess"})
	require.ErrorContains(t, err, `policy "guess"`)
}

// Nothing of a file that took the artifact's place gets into the model.
func TestReplaced(t *testing.T) {
	c := &maker{t: t, lib: cpuPlugin(t)}
	path := rows(t, 0, 8)
	model := open(t, path, Options{OnMiss: Compile, Compiler: c})
	s := session(t, model)
	runRows(t, s, 3, 0)
	next := path + ".next"
	p := rowsPart(t, c.lib, 4, 0)
	require.NoError(t, artifact.Write(next, p.Manifest, p.Contents))
	require.NoError(t, os.Rename(next, path))
	_, err := s.Run(t.Context(), rowsInput(5))
	require.ErrorContains(t, err, "no program for batch = 5: "+path+" was replaced since it was opened: open it again")
	runRows(t, s, 3, 1)
}

// Programs are made one after the other, whatever the number of calls that want some.
func TestOneAtATime(t *testing.T) {
	c := &maker{t: t, lib: cpuPlugin(t), gate: make(chan struct{})}
	var n notes
	model := open(t, rows(t, 0, 8), Options{OnMiss: Compile, Compiler: c, Notify: n.add})
	var calls sync.WaitGroup
	for size := range int64(4) {
		s := session(t, model)
		calls.Go(func() {
			_, err := s.Run(t.Context(), rowsInput(size+1))
			assert.NoError(t, err)
		})
	}
	for made := range 4 {
		for model.Stats().Compiled < int64(made) || model.Stats().Compiling < int64(4-made) {
			time.Sleep(time.Millisecond)
		}
		require.LessOrEqual(t, strings.Count(n.text(), "compiling a program"), made+1)
		c.gate <- struct{}{}
	}
	calls.Wait()
	require.Equal(t, int64(4), model.Stats().Compiled)
}
