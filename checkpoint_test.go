package tpuc_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc"
	"tpuc/frontend/weights"
	"tpuc/internal/compare"
	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
	"tpuc/tpu/plugin"
)

// One program serves every checkpoint of its model, and every weight of a checkpoint counts: with any of them changed the outputs are others.
func TestCheckpoints(t *testing.T) {
	needPlugin(t, plugin.CPU)
	for _, name := range []string{"mlp", "llama_prefill", "qwen3_decode"} {
		t.Run(name, func(t *testing.T) {
			model := filepath.Join("testdata", "models", name, "model.pt2")
			src, err := weights.Open(filepath.Join("testdata", "models", name, "inputs.safetensors"))
			require.NoError(t, err)
			defer src.Close()
			var inputs []*tensor.Tensor
			for i := range src.Names() {
				x, err := src.Load(fmt.Sprintf("input_%d", i))
				require.NoError(t, err)
				inputs = append(inputs, x)
			}
			file := filepath.Join(t.TempDir(), "model.tpuc")
			_, err = tpuc.Compile(t.Context(), model, tpuc.CompileOptions{Output: file, CrashDir: t.TempDir()})
			require.NoError(t, err)
			saved := checkpointOf(t, file, model)
			require.NotEmpty(t, saved)

			base := onDevice(t, file, safetensors(t, "base.safetensors", saved...), inputs)
			closeTo(t, evaluated(t, model, "", inputs), base)
			for i := range saved {
				changed := slices.Clone(saved)
				changed[i].Tensor = shifted(saved[i].Tensor)
				path := safetensors(t, "changed.safetensors", changed...)
				got := onDevice(t, file, path, inputs)
				if i%7 == 0 { // the evaluator is slow
					closeTo(t, evaluated(t, model, path, inputs), got)
				}
				require.False(t, slices.EqualFunc(base, got, func(a, b *tensor.Tensor) bool { return slices.Equal(a.Data, b.Data) }),
					"%s is another and the outputs are the same", saved[i].Name)
			}
		})
	}
}

// checkpointOf is what the model's own file holds of the tensors that the artifact takes from a checkpoint, each once.
func checkpointOf(t *testing.T, file, model string) []weights.Named {
	a, err := artifact.Open(file)
	require.NoError(t, err)
	defer a.Close()
	src, err := weights.Open(model)
	require.NoError(t, err)
	t.Cleanup(func() { src.Close() })
	var out []weights.Named
	for _, w := range slices.Concat(a.Manifest.Weights, a.Manifest.State) {
		if w.Class == "constant" || slices.ContainsFunc(out, func(n weights.Named) bool { return n.Name == w.Names[0] }) {
			continue
		}
		x, err := src.Load(w.Names[0])
		require.NoError(t, err)
		out = append(out, named(w.Names[0], x))
	}
	return out
}

// shifted is x with other elements.
func shifted(x *tensor.Tensor) *tensor.Tensor {
	if !x.DType.IsFloat() {
		v := x.Ints()
		for i := range v {
			v[i]++
		}
		return tensor.FromInts(x.Type, v)
	}
	v := x.Floats()
	for i := range v {
		v[i] += 0.25 + float64(i%3)
	}
	return tensor.FromFloats(x.Type, v)
}

// onDevice is what the artifact gives with the checkpoint; compiling is forbidden.
func onDevice(t *testing.T, file, checkpoint string, inputs []*tensor.Tensor) []*tensor.Tensor {
	m, err := tpuc.Open(t.Context(), file, tpuc.OpenOptions{Weights: checkpoint, NoCompile: true})
	require.NoError(t, err)
	defer m.Close()
	s, err := m.Session(t.Context())
	require.NoError(t, err)
	defer s.Close()
	out, err := s.Call(t.Context(), inputs)
	require.NoError(t, err)
	return out
}

// evaluated is what the evaluator gives with the checkpoint, or with the model's own where that is empty.
func evaluated(t *testing.T, model, checkpoint string, inputs []*tensor.Tensor) []*tensor.Tensor {
	m, err := tpuc.Load(t.Context(), model, tpuc.Shapes{})
	require.NoError(t, err)
	e, err := tpuc.NewEvaluator(m, checkpoint)
	require.NoError(t, err)
	defer e.Close()
	out, err := e.Call(t.Context(), inputs)
	require.NoError(t, err)
	return out
}

func closeTo(t *testing.T, want, got []*tensor.Tensor) {
	require.Len(t, got, len(want))
	for i := range want {
		r := compare.Compare(got[i], want[i], compare.Default(want[i].DType))
		require.True(t, r.OK, "output %d: worst %v: got %s, wanted %s", i, r.Worst, r.Got, r.Want)
	}
}
