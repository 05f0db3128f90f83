package runtime

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"tpuc/frontend/weights"
	"tpuc/internal/processor"
	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
	"tpuc/tpu/pjrt"
)

func TestCounter(t *testing.T) {
	m, c := counter()
	model := open(t, build(t, t.TempDir(), counterProgram, m, c), Options{})
	a, b := session(t, model), session(t, model)
	for i := range 3 {
		out, err := a.Run(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, []int64{int64(i + 1)}, out[0].Ints())
	}
	// Another session has its own state.
	out, err := b.Run(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, []int64{1}, out[0].Ints())

	state, err := a.State(t.Context())
	require.NoError(t, err)
	require.Equal(t, "n", state[0].Name)
	require.Equal(t, []int64{3}, state[0].Ints())
	require.NoError(t, a.Reset(t.Context()))
	out, err = a.Run(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, []int64{1}, out[0].Ints())
}

// One result may be an output and the new state at once; the output is read before a later call takes its memory.
func TestOutputIsState(t *testing.T) {
	program := strings.NewReplacer("= 1 : i32", "= 0 : i32", "(tensor<i64>, tensor<i64>) {", "tensor<i64> {", "%next, %next : tensor<i64>, tensor<i64>", "%next : tensor<i64>").
		Replace(counterProgram)
	m, c := counter()
	m.Results = [][]artifact.Slot{{slot(artifact.KindOutput, 0), slot(artifact.KindState, 0)}}
	m.Aliases = []artifact.Alias{{Result: 0, Argument: 0}}
	s := session(t, open(t, build(t, t.TempDir(), program, m, c), Options{}))
	var outs []*tensor.Tensor
	for range 3 {
		out, err := s.Run(t.Context(), nil)
		require.NoError(t, err)
		outs = append(outs, out[0])
	}
	for i, x := range outs {
		require.Equal(t, []int64{int64(i + 1)}, x.Ints())
	}
}

// A cache stays in its device memory: the buffer is donated from call to call.
func TestCacheDonated(t *testing.T) {
	m := single{
		Inputs:  []artifact.Port{port("row", tensor.F32, 1, 16), port("pos", tensor.I32)},
		Outputs: []artifact.Port{port("sum", tensor.F32, 16)},
		State:   []artifact.Weight{{Name: "cache", Class: "constant", Type: artifact.MakeType(tensor.Make(tensor.F32, 64, 16))}},
		Args:    []artifact.Slot{slot(artifact.KindInput, 1), slot(artifact.KindState, 0), slot(artifact.KindInput, 0)},
		Results: [][]artifact.Slot{{slot(artifact.KindState, 0)}, {slot(artifact.KindOutput, 0)}},
		Aliases: []artifact.Alias{{Result: 0, Argument: 1}},
	}
	initial := tensor.Zeros(tensor.Make(tensor.F32, 64, 16))
	model := open(t, build(t, t.TempDir(), cacheProgram, m, artifact.Contents{State: only(initial)}), Options{})
	s := session(t, model)
	first := s.state[0]
	at, err := first.DataPointer()
	require.NoError(t, err)
	row := make([]float64, 16)
	for step := range 5 {
		for i := range row {
			row[i] = float64(step + 1)
		}
		out, err := s.Run(t.Context(), []*tensor.Tensor{tensor.FromFloats(tensor.Make(tensor.F32, 1, 16), row), tensor.ScalarInt(tensor.I32, int64(step))})
		require.NoError(t, err)
		require.Equal(t, float64((step+1)*(step+2)/2), out[0].Floats()[3])
		now, err := s.state[0].DataPointer()
		require.NoError(t, err)
		require.Equal(t, at, now, "call %d moved the cache", step)
	}
	state, err := s.State(t.Context())
	require.NoError(t, err)
	require.Equal(t, 5.0, state[0].Floats()[4*16])
	require.Equal(t, 0.0, state[0].Floats()[5*16])
	require.Equal(t, make([]float64, 64*16), initial.Floats(), "the initial contents are not written to")
}

func TestWeightsEmbedded(t *testing.T) {
	m, w, c := linear()
	model := open(t, build(t, t.TempDir(), linearProgram, m, artifact.Contents{Constants: only(c), Weights: only(w)}), Options{})
	inPlace(t, model, 0)
	inPlace(t, model, 1)
	x := ones()
	out, err := session(t, model).Run(t.Context(), []*tensor.Tensor{x})
	require.NoError(t, err)
	require.Equal(t, wantLinear(x, w, c), out[0].Floats())
}

// fixedOf is the buffer of the first argument of a kind.
func fixedOf(m *Model, kind string) *pjrt.Buffer {
	p := (*m.programs.Load())[0]
	return p.fixed[slices.IndexFunc(p.Args, func(s artifact.Slot) bool { return s.Kind == kind })]
}

// inPlace demands that the plugin uses the mapped bytes of the first weight (list 0) or constant (list 1) themselves.
func inPlace(t *testing.T, m *Model, list int) {
	t.Helper()
	w := [][]artifact.Weight{m.Manifest().Weights, m.Manifest().Constants}[list][0]
	mapped, err := m.art.Tensor(w)
	if w.Section == "" {
		mapped, err = m.source.Load(w.Names[0])
	}
	require.NoError(t, err)
	at, err := fixedOf(m, []string{artifact.KindWeight, artifact.KindConstant}[list]).DataPointer()
	require.NoError(t, err)
	require.Equal(t, uintptr(unsafe.Pointer(unsafe.SliceData(mapped.Data))), at, "%s was copied", w.Name)
}

func TestWeightsBesideTheArtifact(t *testing.T) {
	m, w, c := linear()
	dir := t.TempDir()
	ckpt := filepath.Join(dir, "ckpt.safetensors")
	require.NoError(t, weights.WriteSafetensors(ckpt, []weights.Named{{Name: "tied.weight", Tensor: w}}))
	st, err := os.Stat(ckpt)
	require.NoError(t, err)
	m.Checkpoint = &artifact.Source{Name: "ckpt.safetensors", Size: st.Size()}
	m.Weights[0].SHA256 = sum(w.Data)
	path := build(t, dir, linearProgram, m, artifact.Contents{Constants: only(c)})
	model := open(t, path, Options{})
	x := ones()
	out, err := session(t, model).Run(t.Context(), []*tensor.Tensor{x})
	require.NoError(t, err)
	require.Equal(t, wantLinear(x, w, c), out[0].Floats())

	// The same name with other contents is another checkpoint, unless the caller means it.
	other := tensor.Zeros(w.Type)
	require.NoError(t, weights.WriteSafetensors(ckpt, []weights.Named{{Name: "lin.weight", Tensor: other}, {Name: "x", Tensor: tensor.Zeros(tensor.Make(tensor.Bool))}}))
	_, err = Open(t.Context(), path, Options{})
	require.ErrorContains(t, err, "wanted the ")
	require.NoError(t, weights.WriteSafetensors(ckpt, []weights.Named{{Name: "tied.weight", Tensor: other}}))
	_, err = Open(t.Context(), path, Options{})
	require.ErrorContains(t, err, "has other contents")
	src, err := weights.Open(ckpt)
	require.NoError(t, err)
	defer src.Close()
	model, err = Open(t.Context(), path, Options{Weights: src})
	require.NoError(t, err)
	s := session(t, model)
	inPlaceSource(t, model, src)
	out, err = s.Run(t.Context(), []*tensor.Tensor{x})
	require.NoError(t, err)
	require.Equal(t, c.Floats(), out[0].Floats())
	require.NoError(t, model.Close())

	require.NoError(t, os.Remove(ckpt))
	_, err = Open(t.Context(), path, Options{})
	require.ErrorContains(t, err, "ckpt.safetensors is not beside it")
}

func inPlaceSource(t *testing.T, m *Model, src weights.Source) {
	t.Helper()
	x, err := src.Load("tied.weight")
	require.NoError(t, err)
	at, err := fixedOf(m, artifact.KindWeight).DataPointer()
	require.NoError(t, err)
	require.Equal(t, uintptr(unsafe.Pointer(unsafe.SliceData(x.Data))), at)
}

// Given weights replace embedded ones, and all that do not fit are named at once.
func TestWeightsGiven(t *testing.T) {
	m, w, c := linear()
	path := build(t, t.TempDir(), linearProgram, m, artifact.Contents{Constants: only(c), Weights: only(w)})
	ckpt := filepath.Join(t.TempDir(), "other.safetensors")
	require.NoError(t, weights.WriteSafetensors(ckpt, []weights.Named{{Name: "lin.weight", Tensor: tensor.Zeros(tensor.Make(tensor.BF16, 16, 32))}}))
	src, err := weights.Open(ckpt)
	require.NoError(t, err)
	defer src.Close()
	_, err = Open(t.Context(), path, Options{Weights: src})
	require.ErrorContains(t, err, `tensor "lin.weight" has dtype bf16, wanted f32`)
}

// A copy is made of memory that the plugin cannot use in place, and the numbers are the same.
func TestWeightsUnaligned(t *testing.T) {
	m, w, c := linear()
	path := build(t, t.TempDir(), linearProgram, m, artifact.Contents{Constants: only(c)})
	src := memory{"lin.weight": misaligned(w)}
	model := open(t, path, Options{Weights: src})
	x := ones()
	out, err := session(t, model).Run(t.Context(), []*tensor.Tensor{x})
	require.NoError(t, err)
	require.Equal(t, wantLinear(x, w, c), out[0].Floats())
}

// State that the model was exported without comes from the weights that the caller gives.
func TestStateGiven(t *testing.T) {
	m, c := counter()
	m.State[0].Expr, m.State[0].Names = `"n"`, []string{"n"}
	c.State = nil
	path := build(t, t.TempDir(), counterProgram, m, c)
	_, err := Open(t.Context(), path, Options{})
	require.ErrorContains(t, err, "the weights are not in the artifact: name the checkpoint")
	out, err := session(t, open(t, path, Options{Weights: memory{"n": tensor.ScalarInt(tensor.I64, 41)}})).Run(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, []int64{42}, out[0].Ints())

	m.State[0].Expr = `const("1234")`
	path = build(t, t.TempDir(), counterProgram, m, c)
	_, err = Open(t.Context(), path, Options{Weights: memory{}})
	require.ErrorContains(t, err, `constant "n" has no contents in the artifact, and its source expression const("1234") reads no tensor of a checkpoint`)
}

func TestInputsAfter(t *testing.T) {
	m := single{
		Inputs:  []artifact.Port{port("x", tensor.F32, 4), port("mask", tensor.Bool, 2)},
		Args:    []artifact.Slot{slot(artifact.KindInput, 0), slot(artifact.KindInput, 1)},
		Results: [][]artifact.Slot{{slot(artifact.KindInput, 0)}},
		Aliases: []artifact.Alias{{Result: 0, Argument: 0}},
	}
	model := open(t, build(t, t.TempDir(), mutateProgram, m, artifact.Contents{}), Options{})
	s := session(t, model)
	x := tensor.FromFloats(tensor.Make(tensor.F32, 4), []float64{1, 2, 3, 4})
	out, err := s.Run(t.Context(), []*tensor.Tensor{x, tensor.Zeros(tensor.Make(tensor.Bool, 2))})
	require.NoError(t, err)
	require.Empty(t, out)
	after, err := s.InputsAfter(t.Context())
	require.NoError(t, err)
	require.Len(t, after, 1)
	require.Equal(t, "x", after[0].Name)
	require.Equal(t, []float64{2, 4, 6, 8}, after[0].Floats())
	require.Equal(t, []float64{1, 2, 3, 4}, x.Floats(), "the caller's tensor is not written to")
}

// Calls that do not fit leave the state alone; the program is not run.
func TestWrongInputs(t *testing.T) {
	m, w, c := linear()
	model := open(t, build(t, t.TempDir(), linearProgram, m, artifact.Contents{Constants: only(c), Weights: only(w)}), Options{})
	s := session(t, model)
	_, err := s.Run(t.Context(), nil)
	require.ErrorContains(t, err, `0 inputs, wanted 1`)
	require.ErrorContains(t, err, `input 0 is "x" : f32[2,16]`)
	_, err = s.Run(t.Context(), []*tensor.Tensor{tensor.Zeros(tensor.Make(tensor.F32, 2, 17))})
	require.ErrorContains(t, err, `input 0 ("x") has shape [2 17], wanted [2 16]: dimension 1 is 17, wanted 16`)
	_, err = s.Run(t.Context(), []*tensor.Tensor{ones()})
	require.NoError(t, err)
}

// The end of ctx before a call changes nothing; a call that was started and failed loses the state until Reset.
func TestCancelled(t *testing.T) {
	m, c := counter()
	model := open(t, build(t, t.TempDir(), counterProgram, m, c), Options{})
	s := session(t, model)
	run := func(want int64) {
		t.Helper()
		out, err := s.Run(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, []int64{want}, out[0].Ints())
	}
	run(1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Run(ctx, nil)
	require.ErrorIs(t, err, context.Canceled)
	run(2)

	require.ErrorIs(t, s.fail(ctx, errors.New("the device failed"), s.generation), context.Canceled)
	_, err = s.Run(t.Context(), nil)
	require.ErrorIs(t, err, ErrLost)
	_, err = s.State(t.Context())
	require.ErrorIs(t, err, ErrLost)
	require.NoError(t, s.Reset(t.Context()))
	run(1)
}

func TestClosed(t *testing.T) {
	m, c := counter()
	model, err := Open(t.Context(), build(t, t.TempDir(), counterProgram, m, c), Options{})
	require.NoError(t, err)
	s := session(t, model)
	require.NoError(t, model.Close())
	require.NoError(t, model.Close())
	_, err = s.Run(t.Context(), nil)
	require.ErrorIs(t, err, errClosed)
	require.ErrorIs(t, s.Reset(t.Context()), errClosed)
	_, err = model.NewSession(t.Context())
	require.ErrorContains(t, err, "the model is closed")
	s.Close()
}

// Sessions of one model run side by side.
func TestSideBySide(t *testing.T) {
	m, c := counter()
	model := open(t, build(t, t.TempDir(), counterProgram, m, c), Options{})
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	for range 8 {
		wg.Go(func() {
			s, err := model.NewSession(context.Background())
			for i := 0; i < 20 && err == nil; i++ {
				var out []*tensor.Tensor
				if out, err = s.Run(context.Background(), nil); err == nil && out[0].Ints()[0] != int64(i+1) {
					err = errors.New("a session counted another's calls")
				}
			}
			errs <- err
		})
	}
	wg.Wait()
	for range 8 {
		require.NoError(t, <-errs)
	}
}

type fakeCompiler struct {
	code []byte
	got  CompileRequest
}

func (f *fakeCompiler) Specialize(context.Context, SpecializeRequest) (string, error) {
	return "", errors.New("no further programs here")
}

func (f *fakeCompiler) Compile(_ context.Context, req CompileRequest) ([]byte, error) {
	f.got = req
	f.got.Program = append([]byte{}, req.Program...)
	return f.code, nil
}

func TestOtherPlugin(t *testing.T) {
	lib := cpuPlugin(t)
	m, c := counter()
	m.Plugin = artifact.Plugin{Name: "older", Version: "0.1", SHA256: sum([]byte("older"))}
	m.Options = []artifact.Option{{Name: "level", Value: "3"}}
	c.Programs = []artifact.ProgramContents{{Program: []byte(counterProgram), Executable: []byte("machine code of another plugin")}}
	path := build(t, t.TempDir(), counterProgram, m, c)
	_, err := Open(t.Context(), path, Options{})
	require.ErrorIs(t, err, ErrCompileForbidden)
	require.ErrorContains(t, err, m.Plugin.SHA256)
	require.ErrorContains(t, err, lib.Digest)

	var told []string
	fake := &fakeCompiler{code: compile(t, lib, counterProgram)}
	model := open(t, path, Options{Compiler: fake, Notify: func(s string) { told = append(told, s) }})
	require.Len(t, told, 1)
	require.Contains(t, told[0], "compiling again: ")
	require.Equal(t, counterProgram, string(fake.got.Program))
	require.Equal(t, m.Options, fake.got.Options)
	require.Equal(t, lib.Path, fake.got.Plugin.Path)
	out, err := session(t, model).Run(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, []int64{1}, out[0].Ints())
}

// An executable that uses what this processor lacks is never run; one for another processor whose features are all here is.
func TestOtherProcessor(t *testing.T) {
	lib := cpuPlugin(t)
	m, c := counter()
	code := compile(t, lib, counterProgram)
	_, features := processor.Of(code)
	require.NotEmpty(t, features)
	m.CPU = &artifact.CPU{Processor: "another", Features: append([]string{"+fantasy", "+fiction", "-none"}, features...), Cores: 3}
	path := build(t, t.TempDir(), counterProgram, m, c)
	_, err := Open(t.Context(), path, Options{})
	require.ErrorIs(t, err, ErrCompileForbidden)
	require.ErrorContains(t, err, "the executable uses features of a processor (another) that this one lacks: fantasy, fiction")
	var told []string
	model := open(t, path, Options{Compiler: &fakeCompiler{code: code}, Notify: func(s string) { told = append(told, s) }})
	require.Len(t, told, 1)
	require.Contains(t, told[0], "compiling again: the executable uses features")
	_, err = session(t, model).Run(t.Context(), nil)
	require.NoError(t, err)

	// The processor that it was made on is not asked, and another one that has them all runs it.
	open(t, path, Options{processor: func() string { return "another" }})
	m.CPU.Features = features[:len(features)-1]
	open(t, build(t, t.TempDir(), counterProgram, m, c), Options{})
}

// The plugin never sees a damaged executable.
func TestDamagedExecutable(t *testing.T) {
	m, c := counter()
	path := build(t, t.TempDir(), counterProgram, m, c)
	a, err := artifact.Open(path)
	require.NoError(t, err)
	code, err := a.Section(artifact.ExecutableSection(0))
	require.NoError(t, err)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	at := strings.Index(string(data), string(code[:64]))
	require.NoError(t, a.Close())
	data[at+40] ^= 1
	bad := filepath.Join(t.TempDir(), "bad.tpuc")
	require.NoError(t, os.WriteFile(bad, data, 0o644))
	_, err = Open(t.Context(), bad, Options{})
	require.ErrorContains(t, err, "section executable-0.bin is damaged")
}

// A manifest that does not describe the executable is refused before anything runs.
func TestManifestOfAnotherProgram(t *testing.T) {
	m, w, c := linear()
	m.Outputs[0] = port("y", tensor.F32, 32, 2)
	path := build(t, t.TempDir(), linearProgram, m, artifact.Contents{Constants: only(c), Weights: only(w)})
	_, err := Open(t.Context(), path, Options{})
	require.ErrorContains(t, err, `output "y" is f32[2 32] in the executable, wanted f32[32,2]`)
}

func TestNoTPU(t *testing.T) {
	m, c := counter()
	m.Target = artifact.Target{Name: "v6e:1x1", Platform: "tpu", Devices: 1}
	m.Plugin = artifact.Plugin{Name: "libtpu", Version: "0", SHA256: sum(nil)}
	c.Programs = []artifact.ProgramContents{{Program: []byte(counterProgram), Executable: []byte("for a TPU")}}
	path := filepath.Join(t.TempDir(), "model.tpuc")
	require.NoError(t, artifact.Write(path, m.manifest(), c))
	_, err := Open(t.Context(), path, Options{hasTPU: func() bool { return false }})
	require.ErrorContains(t, err, "the program is for v6e:1x1 and this machine has no TPU")

	m.Target.Devices = 4
	require.NoError(t, artifact.Write(path, m.manifest(), c))
	_, err = Open(t.Context(), path, Options{})
	require.ErrorContains(t, err, "4 devices (v6e:1x1), wanted one")
}
