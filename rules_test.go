package tpuc_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"tpuc"
	"tpuc/passes"
)

// The table of docs/passes.md stands between these lines.
const (
	rulesFile  = "docs/passes.md"
	rulesBegin = "<!-- rules: written by go test . -run TestRules -update -->\n"
	rulesEnd   = "<!-- end of rules -->\n"
)

// ruleCount is how often a rule fired, and in how many models.
type ruleCount struct{ hits, models int }

// TestRules runs the passes over every model of first and zoo that can be read. Every rule must fire in one: what no model needs is not
// worth its lines. With -update it writes the table of docs/passes.md.
func TestRules(t *testing.T) {
	root := needCases(t)
	counts := map[string]map[string]ruleCount{}
	for _, set := range []string{"first", "zoo"} {
		files, err := filepath.Glob(filepath.Join(root, set, "*", "*.pt2*"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		counts[set] = make(map[string]ruleCount)
		for _, r := range passReports(t, files) {
			if r == nil {
				continue
			}
			fired := make(map[string]int)
			for _, s := range r.Passes {
				for _, h := range s.Hits {
					fired[s.Pass+"/"+h.Rule] += h.Count
				}
			}
			for rule, n := range fired {
				c := counts[set][rule]
				counts[set][rule] = ruleCount{c.hits + n, c.models + 1}
			}
		}
	}
	var table strings.Builder
	table.WriteString(rulesBegin + "\n| rule | what it does | first: hits (models) | zoo: hits (models) |\n|---|---|---|---|\n")
	for _, p := range passes.All() {
		for _, r := range p.Rules {
			first, zoo := counts["first"][p.Name+"/"+r.Name], counts["zoo"][p.Name+"/"+r.Name]
			fmt.Fprintf(&table, "| `%s/%s` | %s | %d (%d) | %d (%d) |\n", p.Name, r.Name, r.Doc, first.hits, first.models, zoo.hits, zoo.models)
			if first.hits+zoo.hits == 0 {
				t.Errorf("rule %s of pass %s fires in no model", r.Name, p.Name)
			}
		}
	}
	table.WriteString("\n" + rulesEnd)
	data, err := os.ReadFile(rulesFile)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(data), rulesBegin)
	require.True(t, ok, "%s has no line %s", rulesFile, rulesBegin)
	old, after, ok := strings.Cut(rest, rulesEnd)
	require.True(t, ok, "%s has no line %s", rulesFile, rulesEnd)
	if *update {
		require.NoError(t, os.WriteFile(rulesFile, []byte(before+table.String()+after), 0o666))
		return
	}
	// Counts change with whatever the front end learns to read; rules and their sentences do not.
	require.Equal(t, ruleNames(table.String()), ruleNames(old), "%s is behind, run with -update", rulesFile)
}

// ruleNames are the first two columns of the table.
func ruleNames(table string) (out []string) {
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, " | "); len(cells) == 4 {
			out = append(out, cells[0]+" | "+cells[1])
		}
	}
	return out
}

// passReports runs the passes over the models, in order; nil for one that the front end refuses.
func passReports(t *testing.T, files []string) []*passes.Report {
	out := make([]*passes.Report, len(files))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, file := range files {
		g.Go(func() error {
			input := filepath.Join(filepath.Dir(file), "inputs.safetensors")
			calls, err := tpuc.OpenCalls(tpuc.CallOptions{Inputs: []string{input}})
			if err != nil {
				return nil // some inputs are no tensors
			}
			defer calls.Close()
			m, err := tpuc.Load(t.Context(), file, calls.Shapes(nil))
			if err != nil {
				return nil // unsupported: other tests are about that
			}
			defer m.Close()
			out[i], err = passes.Run(t.Context(), m.Module, passes.Options{Packed: true})
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	return out
}
