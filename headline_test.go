package tpuc_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
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

// BenchmarkDepth reads, optimises and lowers the largest graph of the cases, and the first half and quarter of its nodes: CPU time and peak memory grow
// with the nodes. Peaks are of the process, the archive that it maps included.
func BenchmarkDepth(b *testing.B) {
	entries := unzip(b, uncompressed(b, filepath.Join(needCases(b), "headline", "qwen35_9b_prefill_b1_s1024.pt2.gz")))
	target, err := chip.Parse("v6e:1x1")
	require.NoError(b, err)
	for _, part := range []int{4, 2, 1} {
		path := filepath.Join(b.TempDir(), "model.pt2")
		nodes := 0
		cut := make([]zipEntry, len(entries))
		for i, e := range entries {
			if cut[i] = e; strings.HasSuffix(e.name, "models/model.json") {
				cut[i].data, nodes = firstNodes(b, e.data, part)
			}
		}
		require.NoError(b, os.WriteFile(path, zipOf(b, cut, 64), 0o600))
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			cpu := make(map[string]float64)
			peak := 0.0
			for b.Loop() {
				debug.FreeOSMemory()
				resetPeak(b)
				r, err := tpuc.Compile(b.Context(), path, tpuc.CompileOptions{Target: target, To: tpuc.PhaseLower, Text: io.Discard, CrashDir: b.TempDir()})
				require.NoError(b, err)
				peak = max(peak, float64(statusBytes(b, "VmHWM:")))
				for _, p := range r.Phases {
					cpu[p.Phase] += p.CPU
					cpu["all"] += p.CPU
				}
			}
			for phase, s := range cpu {
				b.ReportMetric(s/float64(b.N), phase+"-cpu-s/op")
			}
			b.ReportMetric(cpu["all"]/float64(b.N)/float64(nodes)*1e6, "us/node")
			b.ReportMetric(peak/(1<<20), "peak-MB")
		})
	}
}

// firstNodes is a graph of the first nodes, one part of all: its outputs are those that they make, and the last one's result.
func firstNodes(t testing.TB, data []byte, part int) (out []byte, n int) {
	var ep map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	require.NoError(t, d.Decode(&ep))
	module := ep["graph_module"].(map[string]any)
	graph := module["graph"].(map[string]any)
	nodes := graph["nodes"].([]any)
	n = len(nodes) / part
	if part == 1 {
		return data, n
	}
	graph["nodes"] = nodes[:n]
	made := make(map[string]bool)
	var last any
	for _, node := range nodes[:n] {
		for _, o := range node.(map[string]any)["outputs"].([]any) {
			if x, ok := o.(map[string]any)["as_tensor"]; ok {
				made[x.(map[string]any)["name"].(string)], last = true, o
			}
		}
	}
	outputs := []any{last}
	for _, o := range graph["outputs"].([]any) {
		if made[at(o, "as_tensor", "name").(string)] {
			outputs = append(outputs, o)
		}
	}
	var specs []any
	for _, o := range outputs {
		specs = append(specs, map[string]any{"user_output": map[string]any{"arg": o}})
	}
	graph["outputs"] = outputs
	at(module, "signature").(map[string]any)["output_specs"] = specs
	leaf := `{"type": null, "context": null, "children_spec": []}`
	at(module["module_call_graph"].([]any)[0], "signature").(map[string]any)["out_spec"] =
		`[1, {"type": "builtins.tuple", "context": "null", "children_spec": [` + strings.Repeat(leaf+", ", len(outputs)-1) + leaf + `]}]`
	out, err := json.Marshal(ep)
	require.NoError(t, err)
	return out, n
}

// resetPeak makes the peak of this process's memory what it has now.
func resetPeak(t testing.TB) {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Skip("left out: this system does not tell the peak of a process's memory")
	}
}
