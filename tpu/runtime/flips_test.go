package runtime

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
)

// A changed byte never changes what an artifact gives: it is noticed, or it is one that running does not read.
func TestFlips(t *testing.T) {
	m, w, c := linear()
	path := build(t, t.TempDir(), linearProgram, m, artifact.Contents{Constants: only(c), Weights: only(w)})
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	want := wantLinear(ones(), w, c)
	bad := filepath.Join(t.TempDir(), "bad.tpuc")
	random := rand.New(rand.NewPCG(3, 1))
	noticed := 0
	for range 100 {
		at, bit := random.IntN(len(data)), byte(1)<<random.IntN(8)
		data[at] ^= bit
		require.NoError(t, os.WriteFile(bad, data, 0o644))
		data[at] ^= bit
		model, err := Open(t.Context(), bad, Options{})
		if err != nil {
			noticed++
			continue
		}
		out, err := session(t, model).Run(t.Context(), []*tensor.Tensor{ones()})
		require.NoError(t, err)
		require.Equal(t, want, out[0].Floats(), "byte %d", at)
		require.NoError(t, model.Close())
	}
	require.Greater(t, noticed, 50)
}
