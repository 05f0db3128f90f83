package tpuc_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc"
)

// resaved are ways to save one model again: each leaves the same program in another file. They change the graph's JSON, the configuration of
// the payloads, or the entries.
var resaved = []struct {
	name    string
	graph   func(r *rand.Rand, g map[string]any)
	config  func(r *rand.Rand, c map[string]any)
	entries func(r *rand.Rand, e []zipEntry) []zipEntry
	encode  func(r *rand.Rand, v any) []byte
}{
	{name: "keys in another order", encode: shuffledJSON},
	{name: "indented", encode: func(_ *rand.Rand, v any) []byte { b, _ := json.MarshalIndent(v, "", "   "); return b }},
	{name: "without stack traces", graph: eachNode(func(n map[string]any) { delete(n["metadata"].(map[string]any), "stack_trace") })},
	{name: "sources moved", graph: eachNode(func(n map[string]any) {
		if m := n["metadata"].(map[string]any); m["stack_trace"] != nil {
			m["stack_trace"] = strings.ReplaceAll(m["stack_trace"].(string), `File "`, `File "/opt/elsewhere/v2`)
		}
	})},
	{name: "values renamed", graph: func(_ *rand.Rand, g map[string]any) { renameValues(g) }},
	{name: "weights declared in another order", graph: permuteWeights},
	{name: "payloads renumbered", config: renumber, entries: renumberEntries},
	{name: "entries in another order, below another root", entries: func(r *rand.Rand, e []zipEntry) []zipEntry {
		r.Shuffle(len(e), func(i, j int) { e[i], e[j] = e[j], e[i] })
		for i := range e {
			_, rest, _ := strings.Cut(e[i].name, "/")
			e[i].name = "another_root/" + rest
		}
		return e
	}},
}

// TestResavedArchives saves models again in other ways, under another name, plain and compressed: the lowered program must not change by a byte.
func TestResavedArchives(t *testing.T) {
	for _, file := range []string{
		"models/llama_prefill/model.pt2", "models/qwen3_decode/model.pt2", "models/mlp_dynamic/decomposed.pt2", "cases/views/model.pt2.gz",
		"cases/views/decomposed.pt2.gz", "cases/T8_cache/model.pt2.gz", "cases/T2/model.pt2.gz", "cases/T1/decomposed.pt2.gz",
	} {
		t.Run(file, func(t *testing.T) {
			path := filepath.Join("testdata", file)
			shapes := inputShapes(t, filepath.Dir(path))
			data := uncompressed(t, path)
			want := loweredText(t, path, shapes)
			require.Contains(t, want, "func.func public @main")
			for i, c := range resaved {
				r := rand.New(rand.NewPCG(7, uint64(i)))
				entries := unzip(t, data)
				for j := range entries {
					e := &entries[j]
					change := func(f func(*rand.Rand, map[string]any)) {
						var v map[string]any
						d := json.NewDecoder(bytes.NewReader(e.data))
						d.UseNumber() // 64-bit integers stay whole
						require.NoError(t, d.Decode(&v))
						if f != nil {
							f(r, v)
						}
						if e.data, _ = json.Marshal(v); c.encode != nil {
							e.data = c.encode(r, v)
						}
					}
					switch {
					case strings.Contains(e.name, "/models/"):
						change(c.graph)
					case strings.HasSuffix(e.name, "_config.json"):
						change(c.config)
					}
				}
				if c.entries != nil {
					entries = c.entries(r, entries)
				}
				saved := zipOf(t, entries, 64)
				other := filepath.Join(t.TempDir(), "renamed.pt2")
				if i%2 == 1 {
					var b bytes.Buffer
					w := gzip.NewWriter(&b)
					_, err := w.Write(saved)
					require.NoError(t, err)
					require.NoError(t, w.Close())
					other, saved = other+".gz", b.Bytes()
				}
				require.NoError(t, os.WriteFile(other, saved, 0o600))
				require.Equal(t, want, loweredText(t, other, shapes), c.name)
			}
		})
	}
}

func uncompressed(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(data))
		require.NoError(t, err)
		data, err = io.ReadAll(z)
		require.NoError(t, err)
	}
	return data
}

func loweredText(t *testing.T, path string, shapes [][]int64) string {
	t.Helper()
	var b bytes.Buffer
	_, err := tpuc.Compile(t.Context(), path, tpuc.CompileOptions{
		To: tpuc.PhaseLower, Text: &b, CrashDir: t.TempDir(),
		Shapes: tpuc.Shapes{Inputs: func([]tpuc.Port) ([][]int64, error) { return shapes, nil }},
	})
	require.NoError(t, err)
	return b.String()
}

// shuffledJSON encodes v with the keys of every object in random order.
func shuffledJSON(r *rand.Rand, v any) []byte {
	var b bytes.Buffer
	var write func(v any)
	write = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			keys := make([]string, 0, len(v))
			for k := range v {
				keys = append(keys, k)
			}
			slices.Sort(keys)
			r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
			b.WriteByte('{')
			for i, k := range keys {
				if i > 0 {
					b.WriteByte(',')
				}
				fmt.Fprintf(&b, "%s:", marshal(k))
				write(v[k])
			}
			b.WriteByte('}')
		case []any:
			b.WriteByte('[')
			for i, x := range v {
				if i > 0 {
					b.WriteByte(',')
				}
				write(x)
			}
			b.WriteByte(']')
		default:
			b.Write(marshal(v))
		}
	}
	write(v)
	return b.Bytes()
}

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// at follows keys into nested objects.
func at(v any, keys ...string) any {
	for _, k := range keys {
		v = v.(map[string]any)[k]
	}
	return v
}

func eachNode(f func(map[string]any)) func(*rand.Rand, map[string]any) {
	return func(_ *rand.Rand, g map[string]any) {
		for _, n := range at(g, "graph_module", "graph", "nodes").([]any) {
			f(n.(map[string]any))
		}
	}
}

// renameValues gives every value that a node makes another name. Arguments, such as {"as_tensor": {"name": N}}, and specifications name values
// below a key "arg" or one that begins with "as_"; the types of values are keyed by name.
func renameValues(g map[string]any) {
	names := make(map[string]string)
	collect := func(v any) {
		eachName(v, func(m map[string]any) {
			if n := m["name"].(string); names[n] == "" {
				names[n] = fmt.Sprintf("v%d", len(names))
			}
		})
	}
	graph := at(g, "graph_module", "graph").(map[string]any)
	for _, n := range graph["nodes"].([]any) {
		collect(n.(map[string]any)["outputs"])
	}
	rename := func(m map[string]any) {
		if to, ok := names[m["name"].(string)]; ok {
			m["name"] = to
		}
	}
	for _, n := range graph["nodes"].([]any) {
		eachName(n, rename)
		delete(n.(map[string]any), "name")
	}
	eachName(graph["outputs"], rename)
	eachName(at(g, "graph_module", "signature", "output_specs"), rename)
	for _, kind := range []string{"tensor_values", "sym_int_values", "sym_float_values", "sym_bool_values"} {
		out := make(map[string]any)
		values, _ := graph[kind].(map[string]any)
		for k, v := range values {
			if to, ok := names[k]; ok {
				k = to
			}
			out[k] = v
		}
		graph[kind] = out
	}
}

// eachName visits the objects of v that name a value.
func eachName(v any, f func(map[string]any)) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			eachName(x, f)
		}
	case map[string]any:
		for k, x := range v {
			if k != "arg" && !strings.HasPrefix(k, "as_") {
				if _, object := x.(string); !object && k != "metadata" {
					eachName(x, f)
				}
				continue
			}
			items, list := x.([]any)
			if !list {
				items = []any{x}
			}
			for _, item := range items {
				if m, ok := item.(map[string]any); ok {
					if _, ok := m["name"].(string); ok {
						f(m)
					}
				}
			}
			eachName(x, f)
		}
	}
}

// permuteWeights declares parameters, buffers and constants in another order; user inputs keep their places.
func permuteWeights(r *rand.Rand, g map[string]any) {
	inputs := at(g, "graph_module", "graph", "inputs").([]any)
	specs := at(g, "graph_module", "signature", "input_specs").([]any)
	var places []int
	for i, s := range specs {
		if at(s, "user_input") == nil {
			places = append(places, i)
		}
	}
	r.Shuffle(len(places), func(i, j int) {
		a, b := places[i], places[j]
		inputs[a], inputs[b] = inputs[b], inputs[a]
		specs[a], specs[b] = specs[b], specs[a]
	})
}

const renumbered = 1000 // the number that payload 0 gets

// renumber gives the payloads of weights other numbers.
func renumber(_ *rand.Rand, c map[string]any) {
	for _, w := range at(c, "config").(map[string]any) {
		m := w.(map[string]any)
		if n, ok := strings.CutPrefix(m["path_name"].(string), "weight_"); ok {
			m["path_name"] = fmt.Sprintf("weight_%d", renumbered-number(n))
		}
	}
}

func renumberEntries(_ *rand.Rand, entries []zipEntry) []zipEntry {
	for i, e := range entries {
		if dir, n, ok := strings.Cut(e.name, "/data/weights/weight_"); ok {
			entries[i].name = fmt.Sprintf("%s/data/weights/weight_%d", dir, renumbered-number(n))
		}
	}
	return entries
}

func number(s string) (n int) {
	if _, err := fmt.Sscan(s, &n); err != nil {
		panic(err)
	}
	return n
}
