package runtime

import (
	"testing"

	"tpuc/tpu/pjrt"
)

// BenchmarkRun is a whole call of a program that does next to nothing, and BenchmarkExecute the plugin's part of it alone.
func BenchmarkRun(b *testing.B) {
	m, c := counter()
	model, err := Open(b.Context(), build(b, b.TempDir(), counterProgram, m, c), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer model.Close()
	s, err := model.NewSession(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Run(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkExecute(b *testing.B) {
	m, c := counter()
	model, err := Open(b.Context(), build(b, b.TempDir(), counterProgram, m, c), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer model.Close()
	s, err := model.NewSession(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	dst := make([]byte, 8)
	for b.Loop() {
		out, err := (*model.programs.Load())[0].exe.Execute(b.Context(), []*pjrt.Buffer{s.state[0].Buffer}, pjrt.ExecuteOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if err := out[0].ToHost(b.Context(), dst); err != nil {
			b.Fatal(err)
		}
		out[0].Close()
		s.state[0].Close()
		s.state[0].Buffer = out[1]
	}
}
