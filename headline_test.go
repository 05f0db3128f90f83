package tpuc_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc"
	"tpuc/tpu/chip"
	"tpuc/tpu/plugin"
)

// headline compiles a true-size graph without weights for one v6e chip.
func headline(t testing.TB, name string) *tpuc.Report {
	t.Helper()
	root := needCases(t)
	needPlugin(t, plugin.TPU)
	target, err := chip.Parse("v6e:1x1")
	require.NoError(t, err)
	r, err := tpuc.Compile(t.Context(), filepath.Join(root, "headline", name+".pt2.gz"), tpuc.CompileOptions{
		Target: target, Output: filepath.Join(t.TempDir(), name+".tpuc"), CrashDir: t.TempDir(),
	})
	require.NoError(t, err)
	return r
}

// TestHeadlineMemory compiles a decode step of Llama-3.1-8B. Its KV caches are inputs that are updated in place: the plugin must need
// no temporary memory of a cache's size, one of 64 of 67 MB, and give their memory back as outputs.
func TestHeadlineMemory(t *testing.T) {
	const cache = 8 * 8 * 4096 * 128 * 2 // bytes
	r := headline(t, "llama31_8b_decode_b8_kv4096")
	require.Less(t, r.Memory.Temp, int64(cache))
	require.GreaterOrEqual(t, r.Memory.Alias, int64(64*cache))
	t.Logf("temporary %s, peak %s, aliased %s, executable %s", tpuc.Bytes(r.Memory.Temp), tpuc.Bytes(r.Memory.Peak), tpuc.Bytes(r.Memory.Alias), tpuc.Bytes(int64(r.Executable)))
}

// BenchmarkHeadline prints tpuc's own CPU time beside the plugin's.
func BenchmarkHeadline(b *testing.B) {
	for _, name := range []string{"llama31_8b_decode_b8_kv4096", "llama31_8b_prefill_b1_s2048_2layer"} {
		b.Run(name, func(b *testing.B) {
			var own, plugin float64
			for b.Loop() {
				r := headline(b, name)
				own += r.CPU()
				plugin += r.PluginTime.CPU
			}
			b.ReportMetric(own/float64(b.N), "tpuc-cpu-s/op")
			b.ReportMetric(plugin/float64(b.N), "plugin-cpu-s/op")
			b.ReportMetric(100*own/plugin, "tpuc/plugin-%")
		})
	}
}
