package tpuc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tpuc/frontend/weights"
	"tpuc/internal/atomicfile"
	"tpuc/ir"
	"tpuc/ir/tensor"
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
	Output       string             // file to write; empty: nothing is written
	Text         io.Writer          // gets the text that an early phase leaves where Output is empty; may be nil
	To           string             // last phase to run; empty: PhasePack
	DumpDir      string             // folder for the text after import, every pass and lowering; empty: nowhere
	CrashDir     string             // folder for reproducers of crashes; empty: the present one
	EmbedWeights bool               // put the weights into the artifact; otherwise it names the model's file
	Timeout      time.Duration      // of the plugin's compile; 0: none
	Plugin       plugin.Options     // where the plugin is looked for
	Verify       bool               // check the module after every pass
	Notify       func(phase string) // told when a phase begins, and on other goroutines of the child's: compile/load, compile/compile, ...; may be nil
	Exe          string             // program that can be a compile child; empty: this one
}

// Compile compiles the model at path and writes what the last phase leaves to o.Output.
func Compile(ctx context.Context, path string, o CompileOptions) (*Report, error) {
	c, err := newCompile(path, o)
	if err != nil {
		return nil, err
	}
	err = c.run(ctx)
	if err := errors.Join(err, c.model.Close()); err != nil {
		return nil, err
	}
	return c.report, nil
}

// run takes the model through the phases. The model stays open.
func (c *compilation) run(ctx context.Context) error {
	for _, step := range []struct {
		phase string
		run   func(context.Context) error
	}{{PhaseImport, c.load}, {PhaseSimplify, c.simplify}, {PhaseLower, c.lower}, {PhaseCompile, c.compile}, {PhasePack, c.pack}} {
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
		if step.phase == c.o.To {
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
	report  *Report

	runs  bool           // what is compiled runs here at once
	given weights.Source // the weights that it runs with; nil: the model's own
}

func newCompile(path string, o CompileOptions) (*compilation, error) {
	if o.To != "" && !slices.Contains(Phases, o.To) {
		return nil, fmt.Errorf("phase %q, wanted one of %v", o.To, Phases)
	}
	if o.Target.Devices() != 1 {
		return nil, fmt.Errorf("target %s has %d devices: models are compiled for one device, such as cpu or v6e:1x1", o.Target, o.Target.Devices())
	}
	if err := CheckOutput(o.Output); err != nil {
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
	return c.leave(PhaseImport, func() []byte { return []byte(text.Print(m.Module)) })
}

func (c *compilation) simplify(ctx context.Context) error {
	r, err := passes.Run(ctx, c.model.Module, passes.Options{
		Target: c.o.Target, DumpDir: c.o.DumpDir, CrashDir: crashDir(c.o.CrashDir), Verify: c.o.Verify,
	})
	if err != nil {
		return err
	}
	c.report.Passes = r.Passes
	return c.leave(PhaseSimplify, func() []byte { return []byte(text.Print(c.model.Module)) })
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
	c.result, err = tpu.Compile(ctx, tpu.Request{
		Program: c.program.Text, PluginPath: c.plugin.Path, Target: tpu.TargetOf(c.o.Target),
		Timeout: c.o.Timeout, CrashDir: crashDir(c.o.CrashDir), Exe: c.o.Exe, OnPhase: onPhase(c.o.Notify),
	})
	if err != nil {
		return err
	}
	c.report.compiled(c.plugin, c.result)
	return c.leave(PhaseCompile, func() []byte { return c.result.Executable })
}

// absent refuses weights that are to be embedded or run with and are not to be had, before anything is compiled.
func (c *compilation) absent() error {
	if !c.o.EmbedWeights && !c.runs {
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

func (c *compilation) pack(context.Context) error {
	if c.o.Output == "" {
		return nil
	}
	m, data, err := c.artifact()
	if err != nil {
		return err
	}
	if err := artifact.Write(c.o.Output, m, data); err != nil {
		return err
	}
	c.report.Output = c.o.Output
	if m.Checkpoint != nil && !c.o.EmbedWeights && !c.runs && !beside(c.o.Output, c.path) {
		c.report.Notes = append(c.report.Notes, fmt.Sprintf("%s holds no weights and %s is not in its folder: put it there, or run with --weights %s; --embed-weights puts the weights into the artifact",
			c.o.Output, m.Checkpoint.Name, c.path))
	}
	return nil
}

// beside says whether the folder of the artifact has the model's file under its name, which is where an artifact looks for its weights.
func beside(output, model string) bool {
	want, err := os.Stat(model)
	if err != nil {
		return false
	}
	have, err := os.Stat(filepath.Join(filepath.Dir(output), filepath.Base(model)))
	return err == nil && os.SameFile(want, have)
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

// artifact is the manifest and the contents of the compiled program.
func (c *compilation) artifact() (artifact.Manifest, artifact.Contents, error) {
	p := c.program
	m := artifact.Manifest{
		Tpuc:    Version,
		Model:   artifact.Model{Name: c.model.Name, Kind: c.model.Kind},
		Target:  artifact.Target{Name: c.o.Target.String(), Platform: c.o.Target.Platform(), Devices: c.o.Target.Devices()},
		Plugin:  artifact.Plugin{Name: c.plugin.Name, Version: c.plugin.Version, SHA256: c.plugin.Digest, PlatformVersion: c.result.Stats.PlatformVersion},
		Inputs:  artifactPorts(c.model.Inputs),
		Outputs: artifactPorts(c.model.Outputs),
		Numbers: c.model.Numbers,
		Weights: []artifact.Weight{}, State: []artifact.Weight{}, Constants: []artifact.Weight{},
		Results: make([][]artifact.Slot, len(p.Results)),
		Aliases: []artifact.Alias{},
		Memory:  memory(c.result),
	}
	for _, name := range slices.Sorted(maps.Keys(c.model.Dims)) {
		m.Dims = append(m.Dims, artifact.Dim{Name: name, Value: c.model.Dims[name]})
	}
	args := make(map[string][]int) // of each kind the program's arguments, by place in the manifest's list
	for i, a := range p.Args {
		slot := artifact.Slot{Kind: string(a.Kind), Index: len(args[string(a.Kind)])}
		args[slot.Kind] = append(args[slot.Kind], i)
		m.Args = append(m.Args, slot)
		switch a.Kind {
		case lower.Weight:
			m.Weights = append(m.Weights, artifactWeight(a, i))
		case lower.State:
			m.State = append(m.State, artifactWeight(a, i))
		case lower.Constant:
			m.Constants = append(m.Constants, artifactWeight(a, i))
		}
		if a.Alias >= 0 {
			m.Aliases = append(m.Aliases, artifact.Alias{Result: a.Alias, Argument: i})
		}
	}
	for i, r := range p.Outputs {
		m.Results[r] = append(m.Results[r], artifact.Slot{Kind: artifact.KindOutput, Index: i})
	}
	for _, u := range p.Updates {
		m.Results[u.Result] = append(m.Results[u.Result], m.Args[u.Arg])
	}
	if c.model.Weights != nil && len(m.Weights)+len(m.State) > 0 {
		st, err := os.Stat(c.path)
		if err != nil {
			return m, artifact.Contents{}, err
		}
		m.Checkpoint = &artifact.Source{Name: filepath.Base(c.path), Size: st.Size(), Identity: c.model.program.Weights().Identity()}
	}
	load := func(kind string) func(int) (*tensor.Tensor, error) {
		return func(i int) (*tensor.Tensor, error) { return c.contents(args[kind][i]) }
	}
	data := artifact.Contents{Program: p.Text, Executable: c.result.Executable, Constants: load(artifact.KindConstant)}
	if c.o.EmbedWeights {
		data.Weights, data.State = load(artifact.KindWeight), load(artifact.KindState)
	} else {
		data.State = func(i int) (*tensor.Tensor, error) { // state outside of the checkpoint has nowhere else to be
			if p.Args[args[artifact.KindState][i]].Weight.Class != ir.Constant {
				return nil, nil
			}
			return c.contents(args[artifact.KindState][i])
		}
	}
	return m, data, nil
}

// contents is the contents of argument i, which is no input.
func (c *compilation) contents(i int) (*tensor.Tensor, error) {
	a := c.program.Args[i]
	switch {
	case a.Value != nil:
		return a.Value, nil
	case a.Weight.Data != nil:
		return a.Weight.Data, nil
	case c.model.Weights == nil:
		return nil, fmt.Errorf("weight %s: a module in textual form holds no weights", a.Weight.Sym)
	}
	return weights.Lookup(c.model.Weights, a.Weight.Source)
}

func artifactPorts(ports []Port) []artifact.Port {
	out := make([]artifact.Port, len(ports))
	for i, p := range ports {
		out[i] = artifact.Port{Name: p.Name, Path: p.Path, Ordinal: p.Ordinal, Type: artifact.MakeType(p.Type)}
	}
	return out
}

// artifactWeight describes a weight, or a literal that became an argument.
func artifactWeight(a lower.Arg, arg int) artifact.Weight {
	if a.Weight == nil {
		return artifact.Weight{Name: fmt.Sprintf("literal_%d", arg), Class: ir.Constant.String(), Type: artifact.MakeType(a.Type)}
	}
	w := artifact.Weight{Name: a.Weight.Sym, Names: a.Weight.Names, Class: a.Weight.Class.String(), Type: artifact.MakeType(a.Type)}
	if a.Weight.Source != nil {
		w.Expr = a.Weight.Source.String()
	}
	return w
}

func memory(r *tpu.Result) *artifact.Memory {
	s := r.Stats.Memory
	return &artifact.Memory{Code: s.GeneratedCode, Argument: s.Argument, Output: s.Output, Alias: s.Alias, Temp: s.Temp, Peak: s.Peak}
}
