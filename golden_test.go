package tpuc_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/internal/golden"
	"tpuc/ir"
	"tpuc/ir/diag"
	"tpuc/ir/op"
	"tpuc/ir/text"
	"tpuc/lower"
	"tpuc/passes"
)

var update = flag.Bool("update", false, "rewrite the want.* sections of the golden cases that run")

// families are the folders of testdata with golden cases, by name.
var families = map[string]golden.Family{
	"text": {
		Inputs: []string{"in.tpu"}, Wants: []string{"want.tpu", "want.err"},
		Run: runText,
	},
	"op": {
		Headers: []string{"seed"},
		Inputs:  []string{"in.tpu", "bad.tpu"}, Wants: []string{"want.eval", "want.tpu", "want.mlir", "want.err"},
		Run: runOp, Same: sameEval,
	},
	"pass": {
		Headers: []string{"pass", "packed", "seed"},
		Inputs:  []string{"in.tpu"}, Wants: []string{"want.tpu", "want.err"},
		Run: runPass,
	},
	"lower": {
		Headers: []string{"pass"},
		Inputs:  []string{"in.tpu"}, Wants: []string{"want.mlir", "want.args", "want.err"},
		Run: runLower,
	},
}

// otherTests are folders of testdata whose txtar files other tests read.
var otherTests = []string{"cli", "e2e", "xla"}

// TestGolden runs every case. Its subtests are named by path, as in -run Golden/pass/fold; with -update what runs is rewritten.
func TestGolden(t *testing.T) {
	ruleHits = make(map[string]int)
	entries, err := os.ReadDir("testdata")
	require.NoError(t, err)
	ran, all := 0, 0
	for _, e := range entries {
		f, ok := families[e.Name()]
		dir := filepath.Join("testdata", e.Name())
		if !ok && !slices.Contains(otherTests, e.Name()) {
			require.Empty(t, cases(t, dir), "golden cases in a folder that is no family")
		}
		if ok && e.IsDir() {
			all += len(cases(t, dir))
			t.Run(e.Name(), func(t *testing.T) { ran += runFolder(t, dir, f) })
		}
	}
	if ran == all && !t.Failed() {
		checkRules(t)
	}
}

// TestCasesAreComplete wants a case for every operator, and a folder for every pass and none for what is no longer there.
func TestCasesAreComplete(t *testing.T) {
	var ops, passNames []string
	for _, o := range op.All {
		ops = append(ops, o.Name)
		require.FileExists(t, filepath.Join("testdata", "op", o.Name+".txtar"), "every operator has a golden")
	}
	for _, p := range passes.All() {
		passNames = append(passNames, p.Name)
		require.NotEmpty(t, cases(t, filepath.Join("testdata", "pass", p.Name)), "pass %s has no golden", p.Name)
	}
	for _, f := range cases(t, filepath.Join("testdata", "op")) {
		require.Contains(t, ops, strings.TrimSuffix(filepath.Base(f), ".txtar"), "golden of an operator that is not in the table")
	}
	for _, f := range cases(t, filepath.Join("testdata", "pass")) {
		require.Contains(t, passNames, filepath.Base(filepath.Dir(f)), "golden of a pass that is not in the list")
	}
}

// runFolder runs the cases below dir, one subtest a level, and gives their number.
func runFolder(t *testing.T, dir string, f golden.Family) (ran int) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		file := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir():
			t.Run(e.Name(), func(t *testing.T) { ran += runFolder(t, file, f) })
		case filepath.Ext(file) == ".txtar":
			t.Run(strings.TrimSuffix(e.Name(), ".txtar"), func(t *testing.T) {
				ran++
				c, err := golden.Load(file, f)
				require.NoError(t, err)
				require.NoError(t, c.Run(f, *update))
			})
		default:
			t.Errorf("%s is no golden case, wanted .txtar files alone", file)
		}
	}
	return ran
}

// cases are the txtar files below dir, which may be missing.
func cases(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".txtar" {
			out = append(out, path)
		}
		return err
	})
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(t, err)
	}
	return out
}

// runText parses in.tpu and gives what prints, which must parse and print to itself, or the errors.
func runText(g *golden.Group) (map[string]string, error) {
	m, err := text.Parse("in.tpu", g.Sections["in.tpu"])
	if err != nil {
		return map[string]string{"want.err": err.Error()}, nil
	}
	once := text.Print(m)
	again, err := text.Parse("printed.tpu", once)
	if err != nil {
		return nil, fmt.Errorf("what was printed does not parse: %w", err)
	}
	if twice := text.Print(again); twice != once {
		return nil, fmt.Errorf("printing is no fixed point:\n%s\nthen:\n%s", once, twice)
	}
	return map[string]string{"want.tpu": once}, nil
}

// runOp evaluates in.tpu, which must hold the operator of the file's name, and gives the values with either the StableHLO text or,
// with composites, the expanded module, which must evaluate to the same. bad.tpu gives the errors.
func runOp(g *golden.Group) (map[string]string, error) {
	out := make(map[string]string)
	if src, ok := g.Sections["bad.tpu"]; ok {
		_, err := text.Parse("bad.tpu", src)
		if err == nil {
			return nil, errors.New("bad.tpu parses, wanted errors")
		}
		out["want.err"] = err.Error()
	}
	src, ok := g.Sections["in.tpu"]
	if !ok {
		return out, nil
	}
	m, err := text.Parse("in.tpu", src)
	if err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(filepath.Base(g.File), ".txtar")
	if !slices.ContainsFunc(m.Func.Body, func(n *ir.Node) bool { return n.Op.Name == name }) {
		return nil, fmt.Errorf("in.tpu does not apply %s", name)
	}
	before, err := golden.Eval(m, seed(g))
	if err != nil {
		return nil, err
	}
	if out["want.eval"], err = golden.Show(m, before); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(m.Func.Body, func(n *ir.Node) bool { return n.Op.Composite() }) {
		if _, err := passes.Run(context.Background(), m, passes.Options{Passes: []string{"expand"}, Verify: true}); err != nil {
			return nil, err
		}
		after, err := golden.Eval(m, seed(g))
		if err != nil {
			return nil, err
		}
		if err := golden.Equivalent(before, after); err != nil {
			return nil, fmt.Errorf("the decomposition computes something else: %w", err)
		}
		out["want.tpu"] = text.Print(m)
		return out, nil
	}
	p, err := lower.Lower(m)
	if err != nil {
		return nil, err
	}
	out["want.mlir"] = string(p.Text)
	return out, nil
}

// runPass runs the header's passes, or the one of the folder's name. Input and output must evaluate to the same.
func runPass(g *golden.Group) (map[string]string, error) {
	m, err := text.Parse("in.tpu", g.Sections["in.tpu"])
	if err != nil {
		return nil, err
	}
	before, err := golden.Eval(m, seed(g))
	if err != nil {
		return nil, err
	}
	r, err := runPasses(g, m, filepath.Base(filepath.Dir(g.File)))
	var bug *diag.Bug
	switch {
	case errors.As(err, &bug):
		return nil, fmt.Errorf("%w\n%s", err, bug.Stack)
	case err != nil:
		return map[string]string{"want.err": err.Error()}, nil
	}
	after, err := golden.Eval(m, seed(g))
	if err != nil {
		return nil, err
	}
	if err := golden.Equivalent(before, after); err != nil {
		return nil, fmt.Errorf("the result computes something else: %w\n%s", err, text.Print(m))
	}
	for _, s := range r.Passes {
		for _, h := range s.Hits {
			ruleHits[s.Pass+"/"+h.Rule] += h.Count
		}
	}
	return map[string]string{"want.tpu": text.Print(m)}, nil
}

// runPasses runs the passes that the header names, otherwise those of fallback, separated by commas.
func runPasses(g *golden.Group, m *ir.Module, fallback string) (*passes.Report, error) {
	names := g.Header["pass"]
	if names == "" {
		names = fallback
	}
	opt := passes.Options{Verify: true, Passes: []string{}, Packed: g.Header["packed"] == "true"}
	for name := range strings.SplitSeq(names, ",") {
		if name = strings.TrimSpace(name); name != "" {
			opt.Passes = append(opt.Passes, name)
		}
	}
	return passes.Run(context.Background(), m, opt)
}

// runLower gives the StableHLO text and a line for each argument of the program.
func runLower(g *golden.Group) (map[string]string, error) {
	m, err := text.Parse("in.tpu", g.Sections["in.tpu"])
	if err != nil {
		return nil, err
	}
	if _, err := runPasses(g, m, ""); err != nil {
		return nil, err
	}
	p, err := lower.Lower(m)
	if err != nil {
		return map[string]string{"want.err": err.Error()}, nil
	}
	var args strings.Builder
	for i, a := range p.Args {
		fmt.Fprintf(&args, "%d %s %s", i, a.Kind, a.Type)
		switch {
		case a.Kind == lower.Input:
			fmt.Fprintf(&args, " %%%s", m.Func.Params[a.Param].Name)
		case a.Weight != nil:
			fmt.Fprintf(&args, " @%s", a.Weight.Sym)
		}
		if a.Alias >= 0 {
			fmt.Fprintf(&args, " alias %d", a.Alias)
		}
		args.WriteByte('\n')
	}
	return map[string]string{"want.mlir": string(p.Text), "want.args": args.String()}, nil
}

// sameEval allows want.eval the tolerance of its dtypes.
func sameEval(section, want, got string) bool {
	return section == "want.eval" && golden.SameValues(want, got)
}

// seed is the header's, or 1.
func seed(g *golden.Group) uint64 {
	if n, err := strconv.ParseUint(g.Header["seed"], 10, 64); err == nil {
		return n
	}
	return 1
}

// ruleHits counts, over the pass goldens that ran, the hits by "pass/rule".
var ruleHits map[string]int

// checkRules wants every peephole rule to have fired in some golden.
func checkRules(t *testing.T) {
	for _, p := range passes.All() {
		for _, r := range p.Rules {
			require.NotZero(t, ruleHits[p.Name+"/"+r.Name], "rule %s of pass %s fires in no golden", r.Name, p.Name)
		}
	}
}
