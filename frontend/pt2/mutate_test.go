package pt2

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tpuc/frontend/weights"
	"tpuc/ir"
	"tpuc/ir/diag"
	"tpuc/ir/text"
)

// mutations is how many changed graphs of each kind are tried.
const mutations = 250

// TestMutations changes one or two leaves, lists or keys of honest graphs at random, with a fixed seed, and imports them: the answer is
// a module that verifies or an error, soon, and never a panic inside a rule.
func TestMutations(t *testing.T) {
	for _, name := range []string{"views/model", "views/decomposed", "T2/model", "T8_cache/model", "T10/decomposed", "T11/model", "R4/decomposed", "T13/model",
		"cond_writes/model", "cond_size/model", "while_writes/model", "scan_short/model", "scan_long/decomposed", "map/model", "vmap/model", "autocast/model", "no_grad/model",
		"../custom/mutating/model", "../custom/mutating/decomposed", "../custom/mutating_2_9/decomposed"} {
		t.Run(name, func(t *testing.T) {
			a, err := weights.OpenArchive(filepath.Join("..", "..", "testdata", "cases", name+".pt2.gz"))
			require.NoError(t, err)
			t.Cleanup(func() { a.Close() })
			data, err := a.Entry("models/" + a.Model() + ".json")
			require.NoError(t, err)
			custom := customOps(t, filepath.Join("..", "..", "testdata", "custom", "mutating", "ops.tpu"))
			m := mutator{rand.New(rand.NewPCG(1, 2))}
			imported := 0
			for i := range mutations {
				var tree map[string]any
				d := json.NewDecoder(bytes.NewReader(data))
				d.UseNumber() // 64-bit integers stay whole
				require.NoError(t, d.Decode(&tree))
				for range 1 + m.IntN(2) {
					m.mutate(tree["graph_module"])
				}
				changed, err := json.Marshal(tree)
				require.NoError(t, err)
				start := time.Now()
				imported += btoi(tryImport(t, a, custom, changed, i))
				require.Less(t, time.Since(start), 5*time.Second, "mutation %d", i)
			}
			t.Logf("%d of %d changed graphs were imported", imported, mutations)
		})
	}
}

// tryImport imports a graph beside the tensors of an archive and reports whether that gave a module.
func tryImport(t *testing.T, a *weights.Archive, custom *CustomOps, graph []byte, i int) bool {
	p := &Program{archive: a, exprs: make(map[string]*expr), custom: custom}
	if p.decode(graph) != nil {
		return false
	}
	b, err := p.Hints()
	if err != nil {
		return false
	}
	m, err := p.Import(context.Background(), b)
	var bug *diag.Bug
	if errors.As(err, &bug) && bug.Stack != "" {
		t.Fatalf("mutation %d: %v\n%s", i, bug, bug.Stack)
	}
	if err == nil {
		require.NoError(t, ir.Verify(m.Module), "mutation %d", i)
	}
	return err == nil
}

// customOps reads functions of operators.
func customOps(t *testing.T, file string) *CustomOps {
	t.Helper()
	src, err := os.ReadFile(file)
	require.NoError(t, err)
	funcs, err := text.ParseLibrary(filepath.Base(file), string(src))
	require.NoError(t, err)
	var list []CustomOp
	for _, f := range funcs {
		list = append(list, CustomOp{Func: f.Func, Loc: f.Loc})
	}
	ops, err := NewCustomOps(list)
	require.NoError(t, err)
	return ops
}

// mutator changes a JSON tree in place.
type mutator struct{ *rand.Rand }

// mutate walks down at random and changes what it ends at.
func (m mutator) mutate(v any) {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			if k != "metadata" && k != "module_call_graph" {
				keys = append(keys, k)
			}
		}
		if len(keys) == 0 {
			return
		}
		slices.Sort(keys)
		k := keys[m.IntN(len(keys))]
		if m.inside(v[k]) {
			m.mutate(v[k])
			return
		}
		switch m.IntN(8) {
		case 0:
			delete(v, k)
		case 1: // an argument of another kind
			v[[]string{"as_int", "as_ints", "as_tensor", "as_none", "as_float", "as_bool"}[m.IntN(6)]] = v[k]
		default:
			v[k] = m.other(v[k])
		}
	case []any:
		if len(v) == 0 {
			return
		}
		i := m.IntN(len(v))
		switch {
		case m.inside(v[i]):
			m.mutate(v[i])
		case m.IntN(3) == 0:
			v[i] = v[m.IntN(len(v))]
		default:
			v[i] = m.other(v[i])
		}
	}
}

// inside says whether to go on into a value.
func (m mutator) inside(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) > 0 && m.IntN(12) > 0
	case []any:
		return len(v) > 0 && m.IntN(12) > 0
	}
	return false
}

// other is a value of the same JSON type that nobody expects.
func (m mutator) other(v any) any {
	switch v := v.(type) {
	case json.Number:
		return json.Number([]string{"-1", "0", "1", "2", "7", "1048576", "1099511627776", "-9223372036854775808", "9223372036854775807", "1.5"}[m.IntN(10)])
	case string:
		return []string{"", "x", "mul", "add", "torch.ops.aten.cat.default", "torch.ops.aten.slice.Tensor", "torch.ops.aten.sum.dim_IntList",
			"torch.ops.aten.unfold.default", "torch.ops.aten.embedding.default", "Infinity", v + "_"}[m.IntN(11)]
	case bool:
		return !v
	case []any:
		return []any{[]any{}, append(slices.Clone(v), v...), nil}[m.IntN(3)]
	case map[string]any:
		return []any{map[string]any{}, nil}[m.IntN(2)]
	}
	return "x"
}
