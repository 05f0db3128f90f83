package tpuc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"tpuc/cache"
	"tpuc/frontend/weights"
	"tpuc/internal/atomicfile"
	"tpuc/ir"
	"tpuc/ir/text"
	"tpuc/lower"
	"tpuc/passes"
	"tpuc/tpu"
	"tpuc/tpu/artifact"
	"tpuc/tpu/chip"
	"tpuc/tpu/plugin"
)

// Phases of a compile, in order. Each leaves something that can be looked at: text of the IR, StableHLO text, an artifact.
const (
	PhaseImport   = "import"   // front end
	PhaseSimplify = "simplify" // passes
	PhaseLower    = "lower"    // StableHLO
	PhaseCompile  = "compile"  // plugin, in a child process
	PhasePack     = "pack"     // artifact
)

// Phases lists the phases in order.
var Phases = []string{PhaseImport, PhaseSimplify, PhaseLower, PhaseCompile, PhasePack}

// CompileOptions steer Compile. The zero value compiles for one CPU device.
type CompileOptions struct {
	Target       chip.Target
	Shapes       Shapes
	Dims         map[string][]int64 // instead of Shapes.Dims: the sizes of symbolic dimensions, each with each a program; several need PhasePack
	Output       string             // file to write; empty: nothing is written
	Text         io.Writer          // gets the text that an early phase leaves where Output is empty; may be nil
	To           string             // last phase to run; empty: PhasePack
	DumpDir      string             // folder for the text after import, every pass and lowering; empty: nowhere
	CrashDir     string             // folder for reproducers of crashes; empty: the present one
	EmbedWeights bool               // put the weights into the artifact; otherwise it names the model's file
	Timeout      time.Duration      // of the plugin's compile of a program, or of waiting for another process's; 0: none
	Plugin       plugin.Options     // where the plugin is looked for
	Verify       bool               // check the module after every pass
	Notify       func(phase string) // told when a phase begins, and on other goroutines of the child's: compile/load, compile/compile, ...; may be nil
	Exe          string             // program that can be a compile child; empty: this one
	Examples     []Example          // calls that the artifact keeps, which give the sizes of symbolic dimensions where nothing else does
	Cache        *Cache             // where executables come from and are kept; nil: each is compiled
	Jobs         int                // programs to compile side by side; 0: one

	DigestWeights bool // record the SHA-256 of the weights that stay in the model's file, which is read whole for that; loading checks them

	runs  bool             // what is compiled runs here at once
	below map[string]int64 // of one program of several: for a symbol the next smaller size that another one serves
}

// Compile compiles the model at path and writes what the last phase leaves to o.Output. A model that the cache has whole is packed from there.
func Compile(ctx context.Context, path string, o CompileOptions) (_ *Report, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if err := o.useExamples(); err != nil {
		return nil, err
	}
	if r, ok, err := o.Cache.unchanged(ctx, path, &o); ok || err != nil {
		return r, err
	}
	seen := identityOf(path)
	each, err := o.programs(ctx, path)
	if err != nil {
		return nil, err
	}
	var all []*compilation
	defer func() {
		for _, c := range all {
			err = errors.Join(err, c.model.Close())
		}
	}()
	for _, o := range each {
		c, err := newCompile(path, o)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	if err := side(all, o.Jobs, func(c *compilation) error { return c.run(ctx, PhaseImport) }); err != nil {
		return nil, err
	}
	if err := o.checkExamples(all); err != nil {
		return nil, err
	}
	if err := side(all, o.Jobs, func(c *compilation) error { return c.run(ctx, PhaseCompile) }); err != nil {
		return nil, err
	}
	return pack(ctx, all, func(p *artifact.Part, keys []cache.Key, r *Report) error {
		return o.Cache.keep(ctx, path, &o, seen, p, keys, r)
	})
}

// side does something with all programs, so many side by side.
func side(all []*compilation, jobs int, do func(*compilation) error) error {
	g := new(errgroup.Group)
	g.SetLimit(max(jobs, 1))
	errs := make([]error, len(all)) // the first in order is told, whichever came first
	var failed atomic.Bool
	for i, c := range all {
		g.Go(func() error {
			if !failed.Load() {
				errs[i] = do(c)
				failed.CompareAndSwap(false, errs[i] != nil)
			}
			return nil
		})
	}
	_ = g.Wait() // errors are in errs
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// run takes the model through the phases that are left, up to last or to the options' own. The model stays open.
func (c *compilation) run(ctx context.Context, last string) error {
	steps := []struct {
		phase string
		run   func(context.Context) error
	}{{PhaseImport, c.load}, {PhaseSimplify, c.simplify}, {PhaseLower, c.lower}, {PhaseCompile, c.compile}}
	for c.ran < len(steps) {
		step := steps[c.ran]
		c.ran++
		if step.phase == c.o.To {
			c.ran = len(steps)
		}
		if c.o.Notify != nil {
			c.o.Notify(step.phase)
		}
		watch := startWatch()
		err := step.run(ctx)
		spent := watch.stop(step.phase)
		if step.phase == PhaseCompile {
			spent.Wall, spent.CPU = spent.Wall-c.report.Locate.Wall, spent.CPU-c.report.Locate.CPU
		}
		c.report.Phases = append(c.report.Phases, spent)
		if err != nil {
			return err
		}
		if step.phase == last {
			break
		}
	}
	return nil
}

// compilation is one run of Compile.
type compilation struct {
	path    string
	o       CompileOptions
	model   *Model
	program *lower.Program
	plugin  *plugin.Plugin
	result  *tpu.Result
	key     cache.Key // of the result; zero without a cache
	report  *Report
	pads    []artifact.Pad // of the program
	ran     int            // phases that it has been through

	given weights.Source // the weights that it runs with; nil: the model's own
}

// check refuses options that no model is needed for.
func (o *CompileOptions) check() error {
	if o.To != "" && !slices.Contains(Phases, o.To) {
		return fmt.Errorf("phase %q, wanted one of %v", o.To, Phases)
	}
	if o.Target.Devices() != 1 {
		return fmt.Errorf("target %s has %d devices: models are compiled for one device, such as cpu or v6e:1x1", o.Target, o.Target.Devices())
	}
	return CheckOutput(o.Output)
}

func newCompile(path string, o CompileOptions) (*compilation, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return &compilation{path: path, o: o, model: &Model{}, report: &Report{Target: o.Target.String()}}, nil
}

func (c *compilation) load(ctx context.Context) error {
	m, err := Load(ctx, c.path, c.o.Shapes)
	if err != nil {
		return err
	}
	c.model = m
	c.report.describe(m)
	if c.o.Output != "" && !c.o.runs && (c.o.To == "" || c.o.To == PhasePack) {
		if c.pads, err = m.pads(ctx, c.o.below); err != nil {
			return err
		}
	}
	return c.leave(PhaseImport, func() []byte { return []byte(text.Print(m.Module)) })
}

func (c *compilation) simplify(ctx context.Context) error {
	r, err := passes.Run(ctx, c.model.Module, passes.Options{
		Target: c.o.Target, Packed: c.packs(), DumpDir: c.o.DumpDir, CrashDir: crashDir(c.o.CrashDir), Verify: c.o.Verify,
	})
	if err != nil {
		return err
	}
	c.report.Passes = r.Passes
	return c.leave(PhaseSimplify, func() []byte { return []byte(text.Print(c.model.Module)) })
}

// packs reports that weights lie as the program likes: they are written into the artifact, or the model's own artifact holds them so already and a
// program for other sizes has to find them there.
func (c *compilation) packs() bool {
	if c.o.EmbedWeights || c.model.origin == nil {
		return c.o.EmbedWeights
	}
	return slices.ContainsFunc(c.model.origin.Manifest.Weights, func(w artifact.Weight) bool {
		return w.Section != "" && strings.HasPrefix(w.Expr, "permute(")
	})
}

func (c *compilation) lower(context.Context) error {
	p, err := lower.Lower(c.model.Module)
	if err != nil {
		return err
	}
	c.program = p
	c.report.arguments(p, c.model.Module)
	if c.o.DumpDir != "" {
		if err := os.MkdirAll(c.o.DumpDir, 0o777); err != nil {
			return err
		}
		if err := writeFile(filepath.Join(c.o.DumpDir, "program.mlir"), p.Text); err != nil {
			return err
		}
	}
	return c.leave(PhaseLower, func() []byte { return p.Text })
}

func (c *compilation) compile(ctx context.Context) error {
	if absent := c.absent(); absent != nil {
		return absent
	}
	var err error
	watch := startWatch()
	c.plugin, err = plugin.Locate(ctx, plugin.Kind(c.o.Target.Platform()), c.o.Plugin)
	c.report.Locate = watch.stop("locate")
	if err != nil {
		return err
	}
	b, err := c.o.Cache.build(ctx, c.o.request(c.plugin, c.program.Text), c.plugin)
	if err != nil {
		return err
	}
	c.result, c.key = b.Result, b.key
	c.report.compiled(c.plugin, b)
	return c.leave(PhaseCompile, func() []byte { return c.result.Executable })
}

// absent refuses weights that are to be embedded, digested or run with and are not to be had, before anything is compiled.
func (c *compilation) absent() error {
	if !c.o.EmbedWeights && !c.o.runs && !c.o.DigestWeights {
		return nil
	}
	var wants []weights.Want
	for i, a := range c.program.Args {
		if a.Kind != lower.Weight && a.Kind != lower.State {
			continue
		}
		if c.given != nil && a.Weight.Class != ir.Constant {
			wants = append(wants, weights.Want{Names: a.Weight.Names, Expr: a.Weight.Source})
			continue
		}
		if c.o.DigestWeights && c.model.recorded(artifactWeight(a, i)) != "" {
			continue
		}
		if _, err := c.contents(i); err != nil {
			return fmt.Errorf("weights are needed: %w", err)
		}
	}
	if len(wants) == 0 {
		return nil
	}
	_, err := weights.Bind(c.given, wants)
	return err
}

// leave writes what a phase leaves, where the compile ends with it.
func (c *compilation) leave(phase string, data func() []byte) error {
	switch {
	case c.o.To != phase:
		return nil
	case c.o.Output == "" && c.o.Text != nil:
		_, err := c.o.Text.Write(data())
		return err
	case c.o.Output == "":
		return nil
	}
	c.report.Output = c.o.Output
	return writeFile(c.o.Output, data())
}

// CheckOutput refuses a file that cannot be written for want of its folder, before work is done for it. An empty name is no file.
func CheckOutput(path string) error {
	if path == "" {
		return nil
	}
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return fmt.Errorf("output %s is a folder, wanted a file", path)
	}
	st, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("output %s: %w", path, err)
	}
	if !st.IsDir() {
		return fmt.Errorf("output %s: %s is no folder", path, filepath.Dir(path))
	}
	return nil
}

// crashDir is where reproducers go: the present folder unless the user names one.
func crashDir(dir string) string {
	if dir == "" {
		return "."
	}
	return dir
}

// onPhase passes the child's phases on as parts of the compile's.
func onPhase(notify func(string)) func(tpu.Phase) {
	if notify == nil {
		return nil
	}
	return func(p tpu.Phase) { notify(PhaseCompile + "/" + string(p)) }
}

func writeFile(path string, data []byte) error {
	return atomicfile.Write(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}
