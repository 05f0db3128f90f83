package pt2_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tpuc/frontend/pt2"
	"tpuc/ir"
)

// TestHeadline imports the true-size decode step that is compiled elsewhere: weight-free, so its zero-byte weights are not tied, with
// key and value caches as inputs that are written to and returned.
func TestHeadline(t *testing.T) {
	p := open(t, filepath.Join(casesDir(t), "headline", "llama31_8b_decode_b8_kv4096.pt2.gz"))
	start := time.Now()
	m, err := p.Import(context.Background(), nil)
	require.NoError(t, err)
	t.Logf("imported %d nodes in %v", p.Nodes, time.Since(start))
	require.NoError(t, ir.Verify(m.Module))
	params := 0
	for _, w := range m.Module.Weights {
		if w.Class == ir.Parameter {
			params++
			require.Len(t, w.Names, 1)
			require.Nil(t, w.Data)
		}
	}
	require.Equal(t, 32*9+3, params)
	require.Len(t, m.Module.Func.Updates, 32*3)
	for _, out := range m.Outputs[1:] {
		require.GreaterOrEqual(t, out.Updated, 0, "output %s is an input's new contents", out.Name)
	}
}

// BenchmarkOpen reads the largest graph of the cases, 56 MB of JSON.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(casesDir(b), "headline", "qwen35_9b_prefill_b1_s1024.pt2.gz")
	for b.Loop() {
		p, err := pt2.Open(context.Background(), path)
		require.NoError(b, err)
		require.NoError(b, p.Close())
	}
}

// BenchmarkImport imports the decode step of TestHeadline.
func BenchmarkImport(b *testing.B) {
	p := open(b, filepath.Join(casesDir(b), "headline", "llama31_8b_decode_b8_kv4096.pt2.gz"))
	for b.Loop() {
		_, err := p.Import(context.Background(), nil)
		require.NoError(b, err)
	}
}

func open(t testing.TB, path string) *pt2.Program {
	p, err := pt2.Open(context.Background(), path)
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}
