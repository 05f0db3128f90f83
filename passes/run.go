package passes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"tpuc/internal/atomicfile"
	"tpuc/ir"
	"tpuc/ir/diag"
	"tpuc/ir/text"
	"tpuc/tpu/chip"
)

// Options steer Run.
type Options struct {
	Target   chip.Target // what the program is compiled for; guard and layout ask
	Packed   bool        // the weights are written anew, into an artifact, and may lie there as the program likes; layout asks
	Passes   []string    // names in the order to run; nil: List
	Verify   bool        // check the module before the first and after every pass
	DumpDir  string      // where the text after every pass goes, as 00-import.tpu, 01-simplify.tpu, ...; empty: nowhere
	CrashDir string      // where the reproducer of a crash goes; empty: nowhere
	Shuffle  uint64      // not 0: seed of another valid order, for tests
}

// Report says what Run did. Only Times differs between two runs on one module.
type Report struct {
	Passes []Stats
	Times  []time.Duration // of each of Passes
}

// Stats is the deterministic part of a report on one pass.
type Stats struct {
	Pass    string `json:"pass"`
	Nodes   int    `json:"nodes"`          // in all functions afterwards
	Weights int    `json:"weights"`        // declared afterwards
	Hits    []Hit  `json:"hits,omitempty"` // by rule name, rules without hits left out
}

// Hit counts the applications of a named rule.
type Hit struct {
	Rule  string `json:"rule"`
	Count int    `json:"count"`
}

// Run transforms m by the passes in order. It is the only way in which passes run.
//
// A pass that panics or leaves an invalid module is a fault of tpuc and gives a *diag.Bug, with the module before that pass in
// CrashDir/tpuc-crash-<pass>.tpu; m is then of no use. Other errors are the input's or the context's.
func Run(ctx context.Context, m *ir.Module, opt Options) (*Report, error) {
	list, err := opt.list()
	if err != nil {
		return nil, err
	}
	return run(ctx, m, list, opt)
}

// run is Run over any passes.
func run(ctx context.Context, m *ir.Module, list []Pass, opt Options) (*Report, error) {
	if opt.Verify {
		if err := ir.Verify(m); err != nil {
			return nil, err
		}
	}
	if err := opt.dump(m, 0, "import"); err != nil {
		return nil, err
	}
	var before *ir.Module // as it was at the start, for the reproducer
	if opt.CrashDir != "" {
		before = clone(m)
	}
	r := &Report{}
	stage := Imported
	for i, p := range list {
		if err := ctx.Err(); err != nil {
			return r, context.Cause(ctx)
		}
		start := time.Now()
		c := &Context{Context: ctx, target: opt.Target, packed: opt.Packed, hits: make(map[string]int)}
		stage = max(stage, p.Leaves)
		err := runOne(c, p, m)
		if err == nil && opt.Verify {
			err = verify(p, m, stage)
		}
		if err != nil {
			var bug *diag.Bug
			if errors.As(err, &bug) && before != nil {
				reproduce(ctx, before, list[:i], opt, bug)
			}
			return r, err
		}
		r.Times = append(r.Times, time.Since(start))
		r.Passes = append(r.Passes, c.stats(p, m))
		if err := opt.dump(m, i+1, p.Name); err != nil {
			return r, err
		}
	}
	return r, nil
}

// list resolves the names and shuffles.
func (o Options) list() ([]Pass, error) {
	list := List
	if o.Passes != nil {
		list = nil
		for _, name := range o.Passes {
			p, err := Lookup(name)
			if err != nil {
				return nil, err
			}
			list = append(list, p)
		}
	}
	if o.Shuffle != 0 {
		list = shuffle(list, o.Shuffle)
	}
	return list, nil
}

// dump writes the text of m, or nothing without a folder.
func (o Options) dump(m *ir.Module, i int, name string) error {
	if o.DumpDir == "" {
		return nil
	}
	if err := os.MkdirAll(o.DumpDir, 0o777); err != nil {
		return err
	}
	return write(filepath.Join(o.DumpDir, fmt.Sprintf("%02d-%s.tpu", i, name)), m)
}

// write makes a file of the module's text, whole or not at all.
func write(file string, m *ir.Module) error {
	return atomicfile.Write(file, func(w io.Writer) error {
		_, err := io.WriteString(w, text.Print(m))
		return err
	})
}

// runOne runs p, with a panic made a *diag.Bug.
func runOne(c *Context, p Pass, m *ir.Module) (err error) {
	defer func() {
		if r := recover(); r != nil {
			bug := &diag.Bug{Pass: p.Name, Cause: r, Stack: string(debug.Stack())}
			if c.node != nil {
				bug.Node = text.Node(c.node)
			}
			err = bug
		}
	}()
	return p.Run(c, m)
}

// verify checks what p left. What it finds is p's fault.
func verify(p Pass, m *ir.Module, s Stage) error {
	err := ir.Verify(m)
	if err == nil && s >= Expanded {
		for _, f := range m.Functions() {
			for _, n := range f.Body {
				if n.Op.Composite() {
					err = fmt.Errorf("composite operator %s after expand, wanted primitives alone", n.Op.Name)
					break
				}
			}
		}
	}
	if err != nil {
		return &diag.Bug{Pass: p.Name, Cause: fmt.Errorf("invalid module left behind: %w", err)}
	}
	return nil
}

// stats sorts the counts, which come out of a map.
func (c *Context) stats(p Pass, m *ir.Module) Stats {
	s := Stats{Pass: p.Name, Weights: len(m.Weights)}
	for _, f := range m.Functions() {
		s.Nodes += len(f.Body)
	}
	for _, rule := range slices.Sorted(maps.Keys(c.hits)) {
		s.Hits = append(s.Hits, Hit{rule, c.hits[rule]})
	}
	return s
}

// reproduce runs the passes that went well once more on the module of the start, which gives the input of the one that crashed, and
// writes it. A failure to do so is left out of the bug's report: the crash itself matters more.
func reproduce(ctx context.Context, m *ir.Module, done []Pass, opt Options, bug *diag.Bug) {
	for _, p := range done {
		if err := runOne(&Context{Context: ctx, target: opt.Target, packed: opt.Packed, hits: make(map[string]int)}, p, m); err != nil {
			return
		}
	}
	file := filepath.Join(opt.CrashDir, "tpuc-crash-"+bug.Pass+".tpu")
	if err := os.MkdirAll(opt.CrashDir, 0o777); err != nil {
		return
	}
	if err := write(file, m); err != nil {
		return
	}
	bug.Reproducer = file
	bug.Command = "tpuc opt --pass " + bug.Pass + " " + shellWord(file)
}

// shellWord quotes a path that a shell would split.
func shellWord(s string) string {
	if strings.ContainsAny(s, " \t\n'\"\\$&;|<>()*?`!#~[]{}") {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}
