package tpuc_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc"
	"tpuc/frontend/weights"
	"tpuc/internal/compare"
	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
	"tpuc/tpu/plugin"
	"tpuc/tpu/runtime"
)

func f32(v ...float64) *tensor.Tensor {
	return tensor.FromFloats(tensor.Make(tensor.F32, int64(len(v))), v)
}

func i64(v int64) *tensor.Tensor { return tensor.ScalarInt(tensor.I64, v) }

// accumulator adds its input to a sum, gives the sum, and overwrites its second input by the first. The leaf between them is no tensor.
type accumulator struct {
	sum, last *tensor.Tensor
	fail      error
}

func (a *accumulator) Ports() (in, out []artifact.Port) {
	t := artifact.MakeType(tensor.Make(tensor.F32, 2))
	return []artifact.Port{{Name: "x", Ordinal: 0, Type: t}, {Name: "buf", Path: "[1]['buf']", Ordinal: 2, Type: t}}, []artifact.Port{{Name: "sum", Ordinal: 0, Type: t}}
}

func (a *accumulator) Numbers() []artifact.Number {
	return []artifact.Number{{Name: "n", Ordinal: 1, Value: "2"}, {Name: "half", Ordinal: 2, Value: "0.5"}, {Name: "yes", Ordinal: 3, Value: "True"}}
}

func (a *accumulator) Call(_ context.Context, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
	if a.fail != nil {
		return nil, a.fail
	}
	v := in[0].Floats()
	if a.sum != nil {
		for i, x := range a.sum.Floats() {
			v[i] += x
		}
	}
	a.sum, a.last = f32(v...), in[0]
	return []*tensor.Tensor{a.sum}, nil
}

func (a *accumulator) Changed(context.Context) ([]tpuc.Changed, error) {
	return []tpuc.Changed{{Names: []string{"m.sum", "sum_sym"}, Input: -1, Tensor: a.sum}, {Input: 1, Tensor: a.last}}, nil
}

// safetensors writes a file of the named tensors.
func safetensors(t *testing.T, name string, list ...weights.Named) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, weights.WriteSafetensors(path, list))
	return path
}

func named(name string, x *tensor.Tensor) weights.Named { return weights.Named{Name: name, Tensor: x} }

func TestRunCalls(t *testing.T) {
	inputs := safetensors(t, "in.safetensors", named("input_2", f32(0, 0)), named("x", f32(1, 2)))
	// Files that number the tensors alone are taken as well.
	tensorsAlone := safetensors(t, "in2.safetensors", named("input_0", f32(10, 20)), named("input_1", f32(0, 0)))
	for _, c := range []struct {
		name            string
		expected, state []weights.Named // of the second call
		failed          []string        // names of results that differ
		problem         string
		unnamed         []string
	}{
		{name: "equal", expected: []weights.Named{named("output_0", f32(11, 22)), named("output_1", i64(2)), named("half", tensor.Scalar(tensor.F32, 0.5)), named("output_3", tensor.ScalarInt(tensor.Bool, 1))},
			state: []weights.Named{named("sum_sym", f32(11, 22)), named("[1]['buf']", f32(10, 20))}},
		{name: "by name", expected: []weights.Named{named("sum", f32(11, 22))}, state: []weights.Named{named("m.sum", f32(11, 22))}, unnamed: []string{"input_1 buf"}},
		{name: "input as its file counts", expected: []weights.Named{named("sum", f32(11, 22))}, state: []weights.Named{named("input_1", f32(10, 20))}, unnamed: []string{"m.sum"}},
		{name: "differs", expected: []weights.Named{named("output_0", f32(11, 23))}, state: []weights.Named{named("m.sum", f32(11, 22)), named("buf", f32(0, 0))},
			failed: []string{"output_0 sum", "input_1 buf"}},
		{name: "missing and extra", expected: []weights.Named{named("output_9", f32(1))}, failed: []string{"output_0 sum", "output_9"}, problem: "no such output"},
		{name: "twice", expected: []weights.Named{named("output_0", f32(11, 22)), named("sum", f32(11, 22))}, failed: []string{"sum"}, problem: "two names"},
		{name: "number", expected: []weights.Named{named("sum", f32(11, 22)), named("output_1", i64(3)), named("output_2", i64(1))}, failed: []string{"output_1 n", "output_2 half"}, problem: "wanted a number of dtype i64"},
		{name: "type", expected: []weights.Named{named("sum", f32(11, 22, 33))}, failed: []string{"output_0 sum"}, problem: "it is f32[2], wanted f32[3]"},
		{name: "unknown state", expected: []weights.Named{named("sum", f32(11, 22))}, state: []weights.Named{named("x", f32(1, 2))}, failed: []string{"x"}, problem: "changes no state", unnamed: []string{"m.sum", "input_1 buf"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			first := safetensors(t, "out.safetensors", named("output_0", f32(1, 2)))
			o := tpuc.CallOptions{Inputs: []string{inputs, tensorsAlone}, Expected: []string{first, safetensors(t, "out_2.safetensors", c.expected...)}}
			if c.state != nil {
				o.ExpectedState = []string{safetensors(t, "after.safetensors", named("m.sum", f32(1, 2)), named("buf", f32(1, 2))), safetensors(t, "after_2.safetensors", c.state...)}
			}
			calls, err := tpuc.OpenCalls(o)
			require.NoError(t, err)
			defer calls.Close()
			r, err := calls.Run(t.Context(), &accumulator{})
			var failed []string
			var text strings.Builder
			for _, x := range r.Calls[1].Compared {
				if !x.OK {
					failed = append(failed, x.Name)
				}
			}
			require.NoError(t, r.Write(&text))
			require.Equal(t, c.failed, failed)
			require.Equal(t, c.unnamed, r.Calls[1].NotCompared)
			require.Contains(t, text.String(), c.problem)
			var differ *tpuc.DifferError
			if c.failed == nil {
				require.NoError(t, err)
				require.Contains(t, text.String(), "everything is as expected")
			} else {
				require.ErrorAs(t, err, &differ)
				require.Equal(t, len(c.failed), differ.Failed)
			}
		})
	}
}

func TestRunOutputs(t *testing.T) {
	inputs := safetensors(t, "in.safetensors", named("x", f32(1, 2)), named("buf", f32(0, 0)))
	out := filepath.Join(t.TempDir(), "out.safetensors")
	calls, err := tpuc.OpenCalls(tpuc.CallOptions{Inputs: []string{inputs, inputs}, Output: out})
	require.NoError(t, err)
	defer calls.Close()
	r, err := calls.Run(t.Context(), &accumulator{})
	require.NoError(t, err)
	require.Equal(t, []float64{1, 2, 1.5}, []float64{*r.Calls[0].Outputs[0].Min, *r.Calls[0].Outputs[0].Max, *r.Calls[0].Outputs[0].Mean})
	for file, want := range map[string]*tensor.Tensor{out: f32(1, 2), strings.TrimSuffix(out, ".safetensors") + "_2.safetensors": f32(2, 4)} {
		src, err := weights.Open(file)
		require.NoError(t, err)
		got, err := src.Load("output_0")
		require.NoError(t, err)
		require.True(t, compare.Compare(got, want, compare.Tolerance{}).OK)
		require.NoError(t, src.Close())
	}

	// The calls before a failure are in the report.
	boom := errors.New("boom")
	r, err = calls.Run(t.Context(), &accumulator{fail: boom})
	require.ErrorIs(t, err, boom)
	require.ErrorContains(t, err, "call 1: ")
	require.Empty(t, r.Calls)
}

func TestOpenCallsRefuses(t *testing.T) {
	in := safetensors(t, "in.safetensors", named("x", f32(1, 2)))
	seed := uint64(1)
	for _, c := range []struct {
		o    tpuc.CallOptions
		want string
	}{
		{tpuc.CallOptions{}, "wanted one of both"},
		{tpuc.CallOptions{Inputs: []string{in}, Random: &seed}, "wanted one of both"},
		{tpuc.CallOptions{Inputs: []string{in}, Expected: []string{in, in}}, "2 files of expected outputs"},
		{tpuc.CallOptions{Random: &seed, ExpectedState: []string{in, in}}, "2 of expected state"},
		{tpuc.CallOptions{Inputs: []string{"absent-a", in}, Expected: []string{"absent-b"}}, "absent-b"},
	} {
		_, err := tpuc.OpenCalls(c.o)
		require.ErrorContains(t, err, c.want)
	}
}

func TestRandom(t *testing.T) {
	port := func(d tensor.DType, n int64) artifact.Port {
		return artifact.Port{Name: "x", Type: artifact.MakeType(tensor.Make(d, n))}
	}
	ports := []artifact.Port{port(tensor.F32, 4096), port(tensor.I64, 64), port(tensor.Bool, 64), port(tensor.C64, 8), port(tensor.F32, 4096)}
	a, err := tpuc.Random(ports, 7)
	require.NoError(t, err)
	b, err := tpuc.Random(ports, 7)
	require.NoError(t, err)
	require.Equal(t, a, b)
	c, err := tpuc.Random(ports, 8)
	require.NoError(t, err)
	require.NotEqual(t, a[0], c[0])
	require.NotEqual(t, a[0], a[4], "inputs of one type differ")
	mean, square := 0.0, 0.0
	for _, x := range a[0].Floats() {
		mean, square = mean+x/4096, square+x*x/4096
	}
	require.InDelta(t, 0, mean, 0.1)
	require.InDelta(t, 1, square, 0.1)
	require.Subset(t, []int64{0, 1}, a[1].Ints())
	require.Contains(t, a[2].Ints(), int64(1))
	// The very numbers, so that recorded runs stay comparable.
	require.InDeltaSlice(t, []float64{1.0329, -0.3914}, a[0].Floats()[:2], 1e-4, "a change of the generator changes every recorded run")
}

const doubler = `func @main(%x: f32[4]) {
  %0 = add %x, %x : f32[4]
  return %0
}
`

// Opening a model leaves no file behind; an artifact for another plugin is compiled again, unless that is forbidden.
func TestOpen(t *testing.T) {
	lib := needPlugin(t, plugin.CPU)
	dir := t.TempDir()
	model := filepath.Join(dir, "double.tpu")
	require.NoError(t, os.WriteFile(model, []byte(doubler), 0o600))
	cache := filepath.Join(dir, "cache")
	o := tpuc.OpenOptions{Plugin: plugin.Options{CacheDir: cache, Library: lib.Path}, CrashDir: dir}
	run := func(path string, o tpuc.OpenOptions) (*tpuc.Opened, error) {
		m, err := tpuc.Open(t.Context(), path, o)
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { require.NoError(t, m.Close()) })
		s, err := m.Session(t.Context())
		require.NoError(t, err)
		out, err := s.Call(t.Context(), []*tensor.Tensor{f32(1, 2, 3, 4)})
		require.NoError(t, err)
		require.Equal(t, []float64{2, 4, 6, 8}, out[0].Floats())
		return m, nil
	}
	m, err := run(model, o)
	require.NoError(t, err)
	require.Equal(t, "double", m.Report.Model)
	left, err := os.ReadDir(filepath.Join(cache, "tmp"))
	require.NoError(t, err)
	require.Empty(t, left)

	file := filepath.Join(dir, "double.tpuc")
	_, err = tpuc.Compile(t.Context(), model, tpuc.CompileOptions{Output: file, Plugin: o.Plugin, CrashDir: dir})
	require.NoError(t, err)
	o.NoCompile = true
	_, err = run(file, o)
	require.NoError(t, err)
	_, err = run(model, o)
	require.ErrorIs(t, err, runtime.ErrCompileForbidden)

	// The same plugin with a byte more at its end, which its loader does not see.
	data, err := os.ReadFile(lib.Path)
	require.NoError(t, err)
	o.Plugin.Library = filepath.Join(dir, "other.so")
	require.NoError(t, os.WriteFile(o.Plugin.Library, append(data, 0), 0o600))
	_, err = run(file, o)
	require.ErrorIs(t, err, runtime.ErrCompileForbidden)
	var notes []string
	o.NoCompile, o.Note = false, func(s string) { notes = append(notes, s) }
	_, err = run(file, o)
	require.NoError(t, err)
	require.Len(t, notes, 1)
	require.Contains(t, notes[0], "compiling again: ")
}

// A constant whose contents the text does not hold is found by its name, and must have the recorded contents.
func TestEvaluatorConstants(t *testing.T) {
	x := f32(1, 2, 3, 4)
	file := safetensors(t, "w.safetensors", named("lifted", x), named("w", x))
	call := func(digest string) error {
		model := filepath.Join(t.TempDir(), "m.tpu")
		text := fmt.Sprintf(`constant @c = const(%q), "lifted" : f32[4]
weight @w = "w" : f32[4]
func @main(%%x: f32[4]) {
  %%0 = add %%x, @w : f32[4]
  %%1 = add %%0, @c : f32[4]
  return %%1
}
`, digest)
		require.NoError(t, os.WriteFile(model, []byte(text), 0o600))
		m, err := tpuc.Load(t.Context(), model, tpuc.Shapes{})
		require.NoError(t, err)
		e, err := tpuc.NewEvaluator(m, file)
		require.NoError(t, err)
		defer e.Close()
		out, err := e.Call(t.Context(), []*tensor.Tensor{x})
		if err == nil {
			require.Equal(t, []float64{3, 6, 9, 12}, out[0].Floats())
		}
		return err
	}
	require.NoError(t, call(fmt.Sprintf("%x", sha256.Sum256(x.Data))))
	require.ErrorContains(t, call(strings.Repeat("0", 64)), `tensor "lifted"`)
}
