package runtime

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
	"tpuc/tpu/pjrt"
)

// wide is a program that adds 4 numbers of an input to as many weights of 4 numbers: its arguments cost more than its arithmetic.
func wide(b testing.TB, weights int) string {
	var params, body strings.Builder
	m := single{
		Inputs: []artifact.Port{port("x", tensor.F32, 4)}, Outputs: []artifact.Port{port("y", tensor.F32, 4)},
		Args: []artifact.Slot{slot(artifact.KindInput, 0)}, Results: [][]artifact.Slot{{slot(artifact.KindOutput, 0)}},
	}
	for i := range weights {
		fmt.Fprintf(&params, ", %%w%d: tensor<4xf32>", i)
		last := "%x"
		if i > 0 {
			last = fmt.Sprintf("%%%d", i-1)
		}
		fmt.Fprintf(&body, "    %%%d = stablehlo.add %s, %%w%d : tensor<4xf32>\n", i, last, i)
		m.Weights = append(m.Weights, artifact.Weight{Name: fmt.Sprintf("w%d", i), Class: "weight", Type: artifact.MakeType(tensor.Make(tensor.F32, 4))})
		m.Args = append(m.Args, slot(artifact.KindWeight, i))
	}
	program := fmt.Sprintf("module @wide {\n  func.func public @main(%%x: tensor<4xf32>%s) -> tensor<4xf32> {\n%s    return %%%d : tensor<4xf32>\n  }\n}", params.String(), body.String(), weights-1)
	return build(b, b.TempDir(), program, m, artifact.Contents{Weights: only(tensor.FromFloats(tensor.Make(tensor.F32, 4), []float64{1, 2, 3, 4}))})
}

// BenchmarkRun is a whole call of a program that does next to nothing, with few and with many weights, beside the plugin's part of it alone: upload,
// execution, download. They alternate, so that what else runs on the machine meets both; the figures are medians.
func BenchmarkRun(b *testing.B) {
	for _, weights := range []int{1, 400} {
		b.Run(fmt.Sprintf("weights=%d", weights), func(b *testing.B) {
			s := benchSession(b, wide(b, weights))
			x := vector(1, 2, 3, 4)
			bare := bareCall(b, s, x[0])
			var run, plugin []time.Duration
			for b.Loop() {
				start := time.Now()
				if _, err := s.Run(b.Context(), x); err != nil {
					b.Fatal(err)
				}
				run = append(run, time.Since(start))
				start = time.Now()
				bare()
				plugin = append(plugin, time.Since(start))
			}
			slices.Sort(run)
			slices.Sort(plugin)
			r, p := run[len(run)/2], plugin[len(plugin)/2]
			b.ReportMetric(float64(r), "median-ns")
			b.ReportMetric(float64(p), "plugin-ns")
			b.ReportMetric(float64(r-p), "added-ns")
		})
	}
}

// bareCall makes the calls of the plugin that s's Run makes.
func bareCall(b *testing.B, s *Session, x *tensor.Tensor) func() {
	p := (*s.model.programs.Load())[0]
	args := append([]*pjrt.Buffer{}, p.fixed...)
	h, err := hostBuffer(x, "")
	require.NoError(b, err)
	h.Semantics = pjrt.ImmutableOnlyDuringCall
	dst := make([]byte, 16)
	return func() {
		var err error
		if args[0], err = s.model.client.BufferFromHost(h); err != nil {
			b.Fatal(err)
		}
		out, err := p.exe.Execute(b.Context(), args, pjrt.ExecuteOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if err := out[0].ToHost(b.Context(), dst); err != nil {
			b.Fatal(err)
		}
		out[0].Close()
		args[0].Close()
	}
}

// BenchmarkPadded is a call that is filled up and cut.
func BenchmarkPadded(b *testing.B) {
	model, err := Open(b.Context(), rows(b, 1, 8), Options{OnMiss: Pad})
	require.NoError(b, err)
	defer model.Close()
	s, err := model.NewSession(b.Context())
	require.NoError(b, err)
	x := rowsInput(5)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Run(b.Context(), x); err != nil {
			b.Fatal(err)
		}
	}
}

func benchSession(b *testing.B, path string) *Session {
	model, err := Open(b.Context(), path, Options{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, model.Close()) })
	s, err := model.NewSession(b.Context())
	require.NoError(b, err)
	return s
}

// A call allocates as often for many weights as for one.
func TestAllocations(t *testing.T) {
	var allocs [2]float64
	for i, weights := range []int{1, 400} {
		model := open(t, wide(t, weights), Options{})
		s := session(t, model)
		x := vector(1, 2, 3, 4)
		want := make([]float64, 4)
		for k := range want {
			want[k] = x[0].Floats()[k] + float64(weights*(k+1))
		}
		allocs[i] = testing.AllocsPerRun(200, func() {
			out, err := s.Run(t.Context(), x)
			require.NoError(t, err)
			require.Equal(t, want, out[0].Floats())
		})
	}
	require.InDelta(t, allocs[0], allocs[1], 2)
}
