package tpuc_test

import (
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

// compileDynamic compiles the Llama of two symbolic dimensions, its batch s72 and its sequence s70, for some sizes.
func compileDynamic(t *testing.T, dims map[string][]int64) string {
	t.Helper()
	needPlugin(t, plugin.CPU)
	path := filepath.Join(t.TempDir(), "llama.tpuc")
	_, err := tpuc.Compile(t.Context(), filepath.Join("testdata", "models", "llama_prefill_dynamic", "model.pt2"),
		tpuc.CompileOptions{Dims: dims, EmbedWeights: true, Output: path})
	require.NoError(t, err)
	return path
}

// The batch of a Llama is safe to pad down to the next smaller program, its sequence is not, and the artifact says why.
func TestPads(t *testing.T) {
	a, err := artifact.Open(compileDynamic(t, map[string][]int64{"s72": {2, 5}, "s70": {8}}))
	require.NoError(t, err)
	defer a.Close()
	require.Len(t, a.Manifest.Programs, 2)
	for i, from := range []int64{1, 3} {
		pads := a.Manifest.Programs[i].Pads
		require.Len(t, pads, 2)
		require.Equal(t, "s70", pads[0].Symbol)
		require.False(t, pads[0].Safe(8))
		require.Contains(t, pads[0].Reason, "attention: reduce: it takes the max along dimension 3")
		require.Contains(t, pads[0].Reason, "modeling_llama.py")
		require.Equal(t, artifact.Pad{Symbol: "s72", Min: from, Inputs: []artifact.PadAxis{{Scale: 1}}, Outputs: []artifact.PadAxis{{Scale: 1}}}, pads[1])
	}
}

// Shapes that an artifact has no program for are refused, padded to a larger one, or compiled from its graph; what comes out is torch's.
func TestOnMiss(t *testing.T) {
	dir := filepath.Join("testdata", "models", "llama_prefill_dynamic")
	tolerance := &compare.Tolerance{RelToMax: 2e-5}
	run := func(path string, o tpuc.OpenOptions, calls ...string) (runtime.Stats, error) {
		o.NoCompile = o.OnMiss != runtime.Compile
		m, err := tpuc.Open(t.Context(), path, o)
		require.NoError(t, err)
		defer func() { require.NoError(t, m.Close()) }()
		co := tpuc.CallOptions{Tolerance: tolerance}
		for _, suffix := range calls {
			co.Inputs = append(co.Inputs, filepath.Join(dir, "inputs"+suffix+".safetensors"))
			co.Expected = append(co.Expected, filepath.Join(dir, "outputs"+suffix+".safetensors"))
		}
		c, err := tpuc.OpenCalls(co)
		require.NoError(t, err)
		defer c.Close()
		s, err := m.Session(t.Context())
		require.NoError(t, err)
		defer s.Close()
		_, err = c.Run(t.Context(), s)
		return m.Stats(), err
	}
	// The artifact has a larger batch of the first call's sequence, and nothing for the second call.
	first, second := dimsOf(t, filepath.Join(dir, "inputs.safetensors")), dimsOf(t, filepath.Join(dir, "inputs_2.safetensors"))
	require.NotEqual(t, first, second)
	path := compileDynamic(t, map[string][]int64{"s72": {first[0] + 2}, "s70": {first[1]}})

	stats, err := run(path, tpuc.OpenOptions{}, "")
	require.ErrorContains(t, err, "dimension 0 is")
	require.Equal(t, int64(1), stats.Refused)

	stats, err = run(path, tpuc.OpenOptions{OnMiss: runtime.Pad}, "", "")
	require.NoError(t, err)
	require.Equal(t, runtime.Stats{Calls: 2, Padded: 2}, stats)
	_, err = run(path, tpuc.OpenOptions{OnMiss: runtime.Pad}, "_2")
	require.ErrorContains(t, err, "no padding along s70: attention")

	var told []string
	stats, err = run(path, tpuc.OpenOptions{OnMiss: runtime.Compile, Note: func(line string) { told = append(told, line) }}, "_2", "_2")
	require.NoError(t, err)
	require.Equal(t, runtime.Stats{Calls: 2, Exact: 2, Compiled: 1}, stats)
	require.Contains(t, strings.Join(told, "\n"), "compiling a program for s70 = ")
}

// A model's file that changed since it was opened is another model: no program of it serves this one.
func TestChangedModel(t *testing.T) {
	needPlugin(t, plugin.CPU)
	path := filepath.Join(t.TempDir(), "model.pt2")
	data, err := os.ReadFile(filepath.Join("testdata", "models", "mlp_dynamic", "model.pt2"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, data, 0o666))
	m, err := tpuc.Open(t.Context(), path, tpuc.OpenOptions{OnMiss: runtime.Compile, Shapes: tpuc.Shapes{Dims: map[string]int64{"x.0": 2}}})
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	s, err := m.NewSession(t.Context())
	require.NoError(t, err)
	call := func(n int64) error {
		_, err := s.Run(t.Context(), []*tensor.Tensor{tensor.Zeros(tensor.Make(tensor.F32, n, 16)), tensor.Zeros(tensor.Make(tensor.F32, 2*n, 8))})
		return err
	}
	require.NoError(t, call(2))
	require.NoError(t, call(3))
	require.NoError(t, os.WriteFile(path+".next", data, 0o666))
	require.NoError(t, os.Rename(path+".next", path))
	require.ErrorContains(t, call(4), path+" was changed since it was opened: open it again")
	require.NoError(t, call(3))
}

func dimsOf(t *testing.T, path string) []int64 {
	t.Helper()
	src, err := weights.Open(path)
	require.NoError(t, err)
	defer src.Close()
	typ, err := src.Type(src.Names()[0])
	require.NoError(t, err)
	return typ.Dims
}
