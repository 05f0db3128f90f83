package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tpuc/frontend/weights"
	"tpuc/ir/diag"
	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
	"tpuc/tpu/pjrt"
)

// program is an executable on the device with the weights that it takes.
type program struct {
	*artifact.Program
	art             *artifact.Artifact // that it is of: the model's own, or one that a miss made
	number          int                // in art
	exe             *pjrt.LoadedExecutable
	inputs, outputs []tensor.Type
	fixed           []*pjrt.Buffer    // by argument: weights and constants; nil for others
	slots           []artifact.Slot   // Args, with state by the model's list
	results         [][]artifact.Slot // Results, likewise
	layouts         []pjrt.Layout     // by argument; empty: row-major, as inputs are

	sizes    string // of a further program: what it was made for, as flags; empty: one of the model's own artifact
	held     int    // calls that are about to start it; this and what follows are guarded by the model's mu
	used     int64  // the model's uses when a call chose it last
	released bool
}

// newProgram takes over a loaded executable of a program of art, and puts what it takes onto the device. It closes exe where it fails.
func (m *Model) newProgram(ctx context.Context, art *artifact.Artifact, i int, exe *pjrt.LoadedExecutable) (*program, error) {
	p := &program{Program: &art.Manifest.Programs[i], art: art, number: i, exe: exe}
	err := p.types()
	if err == nil {
		err = p.check()
	}
	if err == nil {
		err = m.place(ctx, p)
	}
	if err != nil {
		exe.Close()
		return nil, err
	}
	return p, nil
}

func (p *program) types() error {
	for _, l := range []struct {
		from []artifact.Type
		to   *[]tensor.Type
	}{{p.Inputs, &p.inputs}, {p.Outputs, &p.outputs}} {
		for _, t := range l.from {
			x, err := t.Tensor()
			if err != nil {
				return err
			}
			*l.to = append(*l.to, x)
		}
	}
	return nil
}

// check compares the executable with the manifest, and notes the layouts of arguments. Inputs and outputs are row-major; weights, constants and state
// are as the executable wants them, state the same on both sides.
func (p *program) check() error {
	man, exe := &p.art.Manifest, p.exe.Executable()
	params, err := exe.ParameterLayouts()
	if err != nil {
		return err
	}
	results, err := exe.OutputLayouts()
	if err != nil {
		return err
	}
	types, err := exe.OutputTypes()
	if err != nil {
		return err
	}
	dims, err := exe.OutputDims()
	if err != nil {
		return err
	}
	var errs diag.List
	if len(params) != len(p.Args) {
		errs.Addf(nil, "runtime/arguments", "the executable takes %d arguments, wanted %d as in the manifest", len(params), len(p.Args))
	}
	if len(results) != len(p.Results) || len(types) != len(p.Results) || len(dims) != len(p.Results) {
		errs.Addf(nil, "runtime/results", "the executable has %d results, wanted %d as in the manifest", len(types), len(p.Results))
	}
	if len(errs) > 0 {
		return errs.Err()
	}
	layouts := make(map[artifact.Slot]pjrt.Layout) // of state and changed inputs
	p.layouts = make([]pjrt.Layout, len(params))
	for i, l := range params {
		layouts[p.Args[i]] = l
		order, err := l.MinorToMajor()
		switch {
		case err != nil || len(order) != len(man.ArgumentType(p.Program, i).Dims):
			errs.Addf(nil, "runtime/layout", "%s has layout %s in the executable, wanted an order of %d dimensions", man.SlotName(p.Args[i]), l, len(man.ArgumentType(p.Program, i).Dims))
		case l.RowMajor():
		case p.Args[i].Kind == artifact.KindInput:
			errs.Addf(nil, "runtime/layout", "%s has layout %s in the executable, wanted row-major", man.SlotName(p.Args[i]), l)
		default:
			p.layouts[i] = l
		}
	}
	for i, l := range results {
		for _, s := range p.Results[i] {
			if want, ok := layouts[s]; ok && want != l {
				errs.Addf(nil, "runtime/layout", "%s has layout %s as a result, wanted %s as the argument", man.SlotName(s), l, want)
			}
		}
		if len(p.Results[i]) == 1 && p.Results[i][0].Kind == artifact.KindOutput && !l.RowMajor() {
			errs.Addf(nil, "runtime/layout", "%s has layout %s in the executable, wanted row-major", man.SlotName(p.Results[i][0]), l)
		}
		want, err := man.ResultType(p.Program, i).Tensor()
		if err != nil {
			return err
		}
		if types[i].String() != want.DType.MLIR() || !slices.Equal(dims[i], want.Dims) {
			errs.Addf(nil, "runtime/results", "%s is %s%v in the executable, wanted %s", man.SlotName(p.Results[i][0]), types[i], dims[i], want)
		}
	}
	return errs.Err()
}

// place finds p's weights and constants on the device, or puts them there, and numbers state by the model's list.
func (m *Model) place(ctx context.Context, p *program) error {
	man := &p.art.Manifest
	p.fixed, p.slots = make([]*pjrt.Buffer, len(p.Args)), slices.Clone(p.Args)
	var missing []int
	for i, s := range p.Args {
		w := weightOf(man, s)
		if w == nil {
			continue
		}
		if k := m.stateOf(*w); k >= 0 {
			p.slots[i] = artifact.Slot{Kind: artifact.KindState, Index: k}
			continue
		}
		if s.Kind == artifact.KindState {
			return fmt.Errorf("the program changes %s : %s, which is no state of %s", man.SlotName(s), w.Type, m.art.Path())
		}
		if b := m.fixed[m.keyOf(p, i)]; b != nil {
			p.fixed[i] = b
			continue
		}
		missing = append(missing, i)
	}
	for _, slots := range p.Results {
		slots = slices.Clone(slots)
		for k, s := range slots {
			if s.Kind == artifact.KindState {
				slots[k].Index = m.stateOf(man.State[s.Index]) // it is an argument too
			}
		}
		p.results = append(p.results, slots)
	}
	bound, err := m.boundOf(p, missing)
	if err != nil {
		return err
	}
	for k, i := range missing {
		w := weightOf(man, p.Args[i])
		t, err := m.contents(p.art, *w, bound[k])
		if err != nil {
			return err
		}
		var inPlace bool
		if p.fixed[i], inPlace, err = m.putFixed(ctx, t, p.layouts[i], m.artifacts[p.art]); err != nil {
			return fmt.Errorf("%s %q: %w", w.Class, w.Name, err)
		}
		m.inPlace = m.inPlace || inPlace && bound[k].Name != ""
		m.fixed[m.keyOf(p, i)] = p.fixed[i]
	}
	return nil
}

// weightOf is the tensor that a slot stands for, or nil.
func weightOf(man *artifact.Manifest, s artifact.Slot) *artifact.Weight {
	switch s.Kind {
	case artifact.KindWeight:
		return &man.Weights[s.Index]
	case artifact.KindState:
		return &man.State[s.Index]
	case artifact.KindConstant:
		return &man.Constants[s.Index]
	}
	return nil
}

// stateOf is the place of w among the model's state, or -1.
func (m *Model) stateOf(w artifact.Weight) int {
	return slices.IndexFunc(m.Manifest().State, func(s artifact.Weight) bool {
		return s.Name == w.Name && s.Expr == w.Expr && s.Class == w.Class && s.Type.String() == w.Type.String()
	})
}

// fixedKey tells buffers of weights and constants apart. Weights of all programs are the same where they are named and read alike; constants
// belong to their artifact.
type fixedKey struct {
	art             *artifact.Artifact // nil for weights
	name, expr, typ string
	section         string // where the contents of a constant are
	offset          int64
	layout          pjrt.Layout
}

func (m *Model) keyOf(p *program, i int) fixedKey {
	w := weightOf(&p.art.Manifest, p.Args[i])
	k := fixedKey{name: w.Name, expr: w.Expr, typ: w.Type.String(), layout: p.layouts[i]}
	if p.Args[i].Kind == artifact.KindConstant {
		k.art, k.section, k.offset = p.art, w.Section, w.Offset
	}
	return k
}

// boundOf finds the contents of arguments that a checkpoint holds. Those of the model's own artifact are bound already.
func (m *Model) boundOf(p *program, args []int) ([]weights.Bound, error) {
	out := make([]weights.Bound, len(args))
	if p.art == m.art {
		for k, i := range args {
			switch s := p.Args[i]; s.Kind {
			case artifact.KindWeight:
				out[k] = m.bound.weights[s.Index]
			case artifact.KindConstant:
				out[k] = m.bound.constants[s.Index]
			}
		}
		return out, nil
	}
	list := make([]artifact.Weight, len(args))
	for k, i := range args {
		list[k] = *weightOf(&p.art.Manifest, p.Args[i])
	}
	b := &binder{model: m}
	out = b.collect(list)
	return out, b.bind()
}

// loadPrograms finds the plugin and loads the artifact's executables into it, or others that the Compiler makes.
func (m *Model) loadPrograms(ctx context.Context) error {
	man := &m.art.Manifest
	reason := m.unfit(man)
	if reason != "" && m.opts.Compiler == nil {
		return fmt.Errorf("%w: %s", ErrCompileForbidden, reason)
	}
	p, err := pjrt.Open(m.lib.Path)
	if err != nil {
		return err
	}
	if m.client, err = p.NewClient(); err != nil {
		return fmt.Errorf("%s client: %w", man.Target.Platform, err)
	}
	if reason == "" {
		if reason, err = m.unfitProcessor(man); err != nil {
			return err
		}
		if reason != "" && m.opts.Compiler == nil {
			return fmt.Errorf("%w: %s", ErrCompileForbidden, reason)
		}
	}
	var programs []*program
	for i := range man.Programs {
		exe, err := m.load(ctx, m.art, i, reason)
		if err != nil {
			return err
		}
		q, err := m.newProgram(ctx, m.art, i, exe)
		if err != nil {
			return err
		}
		programs = append(programs, q)
		m.programs.Store(&programs)
	}
	return nil
}

// unfit says why executables of an artifact cannot be loaded into the plugin at hand, or nothing.
func (m *Model) unfit(man *artifact.Manifest) string {
	if m.lib.Digest == man.Plugin.SHA256 {
		return ""
	}
	return fmt.Sprintf("the executable was made by plugin %s %s (sha256 %s), and the one here is %s %s (sha256 %s)",
		man.Plugin.Name, man.Plugin.Version, man.Plugin.SHA256, m.lib.Name, m.lib.Version, m.lib.Digest)
}

// unloadable is why a program is compiled in this process, which nothing but the plugin's lack is a reason for.
const unloadable = "the plugin cannot load serialized executables: programs are compiled in this process"

// load loads the executable of program i, or compiles it anew for the reason given, if any.
func (m *Model) load(ctx context.Context, art *artifact.Artifact, i int, reason string) (*pjrt.LoadedExecutable, error) {
	if reason == "" {
		code, err := art.Section(artifact.ExecutableSection(i))
		if err != nil {
			return nil, err
		}
		exe, err := m.client.Load(code)
		if err == nil {
			return exe, nil
		}
		if !unimplemented(err) {
			return nil, fmt.Errorf("executable: %w", err)
		}
		reason = unloadable
	}
	if m.opts.Compiler == nil {
		return nil, fmt.Errorf("%w: %s", ErrCompileForbidden, reason)
	}
	if !m.told[reason] { // once, whatever the number of programs
		m.told[reason] = true
		m.notify("compiling again: " + reason)
	}
	text, err := art.Section(artifact.ProgramSection(i))
	if err != nil {
		return nil, err
	}
	if reason == unloadable {
		return m.compileHere(text)
	}
	man := &art.Manifest
	code, err := m.opts.Compiler.Compile(ctx, CompileRequest{Path: art.Path(), Dims: man.Programs[i].Dims, Program: text, Target: man.Target, Options: man.Options, Plugin: m.lib})
	if err != nil {
		return nil, fmt.Errorf("compiling again (%s): %w", reason, err)
	}
	exe, err := m.client.Load(code)
	switch {
	case unimplemented(err):
		return m.load(ctx, art, i, unloadable)
	case err != nil:
		return nil, fmt.Errorf("executable compiled anew: %w", err)
	}
	m.stats.recompiled.Add(1)
	return exe, nil
}

// compileHere compiles a program for a plugin that cannot load what a compile child made.
func (m *Model) compileHere(text []byte) (*pjrt.LoadedExecutable, error) {
	cpu := m.art.Manifest.Target.Platform == "cpu"
	exe, err := m.client.Compile(text, pjrt.OptionsFor(m.client.Devices()[:1], cpu))
	if err != nil {
		return nil, fmt.Errorf("compiling in this process: %w", err)
	}
	m.stats.recompiled.Add(1)
	return exe, nil
}

func unimplemented(err error) bool {
	var perr *pjrt.Error
	return errors.As(err, &perr) && perr.Code == pjrt.Unimplemented
}
