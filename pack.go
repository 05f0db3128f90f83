package tpuc

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"tpuc/cache"
	"tpuc/frontend/weights"
	"tpuc/internal/processor"
	"tpuc/ir"
	"tpuc/ir/tensor"
	"tpuc/ir/weight"
	"tpuc/lower"
	"tpuc/tpu"
	"tpuc/tpu/artifact"
)

// pack writes the programs, which are of one model, into one artifact where that is asked for, and reports what was done. keep is told
// what the artifact is made of; it may be nil.
func pack(ctx context.Context, all []*compilation, keep func(*artifact.Part, []cache.Key, *Report) error) (*Report, error) {
	first := all[0]
	report := first.report
	if len(all) > 1 {
		each := make([]*Report, len(all))
		for i, c := range all {
			each[i] = c.report
		}
		report = together(each)
	}
	if o := first.o; o.To != "" && o.To != PhasePack {
		return report, nil
	}
	if first.o.Notify != nil {
		first.o.Notify(PhasePack)
	}
	watch := startWatch()
	err := write(ctx, all, keep, report)
	report.Phases = append(report.Phases, watch.stop(PhasePack))
	if err != nil {
		return nil, err
	}
	return report, nil
}

func write(ctx context.Context, all []*compilation, keep func(*artifact.Part, []cache.Key, *Report) error, report *Report) error {
	o := all[0].o
	if o.Output == "" {
		return nil
	}
	parts := make([]artifact.Part, len(all))
	for i, c := range all {
		var err error
		if parts[i], err = c.part(); err != nil {
			return err
		}
	}
	digest, err := all[0].model.digest(all[0].path)
	if err != nil {
		return err
	}
	for i := range parts {
		parts[i].Manifest.Model.SHA256 = digest
	}
	p, err := artifact.Merge(parts)
	if err != nil {
		return err
	}
	if !o.runs { // further programs come from the model itself then
		if p.Contents.Graph, err = graph(all); err != nil {
			return err
		}
	}
	report.packed(&p.Manifest)
	keys := make([]cache.Key, len(all))
	for i, c := range all {
		keys[i] = c.key
	}
	if keep != nil {
		if err := keep(&p, keys, report); err != nil {
			return err
		}
	}
	return writeArtifact(ctx, all[0].path, &o, &p, report)
}

// writeArtifact writes the artifact p of the model, and reports that.
func writeArtifact(ctx context.Context, model string, o *CompileOptions, p *artifact.Part, report *Report) error {
	if err := o.addExamples(p); err != nil {
		return err
	}
	if o.DigestWeights {
		if err := digestWeights(ctx, model, &p.Manifest); err != nil {
			return err
		}
	}
	if err := artifact.Write(o.Output, p.Manifest, p.Contents); err != nil {
		return err
	}
	report.Output = o.Output
	if m := p.Manifest; m.Checkpoint != nil && !o.EmbedWeights && !o.runs && !beside(o.Output, model, m.Checkpoint) {
		report.Notes = append(report.Notes, fmt.Sprintf("%s holds no weights and %s is not in its folder: put it there, or run with --weights %s; --embed-weights puts the weights into the artifact",
			o.Output, m.Checkpoint.Name, model))
	}
	return nil
}

// beside says whether the folder of the artifact has the model's file under its name, which is where an artifact looks for its weights. An artifact as
// model has another file's.
func beside(output, model string, checkpoint *artifact.Source) bool {
	have, err := os.Stat(filepath.Join(filepath.Dir(output), checkpoint.Name))
	if err != nil || isArtifact(model) {
		return err == nil
	}
	want, err := os.Stat(model)
	return err == nil && os.SameFile(want, have)
}

// part is the artifact of this program alone.
func (c *compilation) part() (artifact.Part, error) {
	p := c.program
	m := artifact.Manifest{
		Tpuc:    Version,
		Model:   artifact.Model{Name: c.model.Name, Kind: c.model.Kind},
		Target:  artifact.Target{Name: c.o.Target.String(), Platform: c.o.Target.Platform(), Devices: c.o.Target.Devices()},
		Plugin:  artifact.Plugin{Name: c.plugin.Name, Version: c.plugin.Version, SHA256: c.plugin.Digest, PlatformVersion: c.result.Stats.PlatformVersion},
		Symbols: c.model.Symbols,
		Weights: []artifact.Weight{}, State: []artifact.Weight{}, Constants: []artifact.Weight{},
	}
	prog := artifact.Program{Dims: c.model.dims(), Numbers: c.model.Numbers, Results: make([][]artifact.Slot, len(p.Results)), Flops: c.report.Flops, Memory: memory(c.result), Pads: c.pads}
	for _, x := range c.model.Inputs {
		m.Inputs, prog.Inputs = append(m.Inputs, x.signature()), append(prog.Inputs, artifact.MakeType(x.Type))
	}
	for _, x := range c.model.Outputs {
		m.Outputs, prog.Outputs = append(m.Outputs, x.signature()), append(prog.Outputs, artifact.MakeType(x.Type))
	}
	args := make(map[string][]int) // of each kind the program's arguments, by place in the manifest's list
	for i, a := range p.Args {
		slot := artifact.Slot{Kind: string(a.Kind), Index: len(args[string(a.Kind)])}
		args[slot.Kind] = append(args[slot.Kind], i)
		prog.Args = append(prog.Args, slot)
		switch a.Kind {
		case lower.Weight:
			m.Weights = append(m.Weights, artifactWeight(a, i))
		case lower.State:
			m.State = append(m.State, artifactWeight(a, i))
		case lower.Constant:
			m.Constants = append(m.Constants, artifactWeight(a, i))
		}
		if a.Alias >= 0 {
			prog.Aliases = append(prog.Aliases, artifact.Alias{Result: a.Alias, Argument: i})
		}
	}
	for i, r := range p.Outputs {
		prog.Results[r] = append(prog.Results[r], artifact.Slot{Kind: artifact.KindOutput, Index: i})
	}
	for _, u := range p.Updates {
		prog.Results[u.Result] = append(prog.Results[u.Result], prog.Args[u.Arg])
	}
	for _, list := range [][]artifact.Weight{m.Weights, m.State} {
		for i := range list {
			list[i].SHA256 = c.model.recorded(list[i])
		}
	}
	if len(m.Weights)+len(m.State) > 0 {
		var err error
		if m.Checkpoint, err = c.checkpoint(); err != nil {
			return artifact.Part{}, err
		}
	}
	load := func(kind string) func(int) (*tensor.Tensor, error) {
		return func(i int) (*tensor.Tensor, error) { return c.contents(args[kind][i]) }
	}
	if c.key.Kind != "" {
		prog.Key = c.key.ID()
	}
	if s := c.result.Stats; len(s.Features) > 0 {
		m.CPU = &artifact.CPU{Processor: processor.Here(), Features: s.Features, Cores: runtime.NumCPU()}
	}
	m.Programs = []artifact.Program{prog}
	data := artifact.Contents{
		Programs:  []artifact.ProgramContents{{Program: p.Text, Executable: c.result.Executable}},
		Constants: load(artifact.KindConstant),
	}
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
	return artifact.Part{Manifest: m, Contents: data}, nil
}

// graph is what other programs of the model are compiled from, without the constants that the artifact of all has; nil where there is none.
func graph(all []*compilation) ([]byte, error) {
	from := all[0].model.program
	if from == nil {
		return nil, nil
	}
	held := make(map[string]bool)
	for _, c := range all {
		for _, a := range c.program.Args {
			if a.Weight == nil || a.Weight.Data == nil {
				continue
			}
			if x, ok := a.Weight.Source.(weight.Const); ok {
				held[x.Digest] = true
			}
		}
	}
	return from.Reduce(func(sum string) bool { return held[sum] })
}

// checkpoint describes the file that weights by reference are in; nil where there is none.
func (c *compilation) checkpoint() (*artifact.Source, error) {
	switch {
	case c.model.origin != nil:
		return c.model.origin.Manifest.Checkpoint, nil
	case c.model.Weights == nil:
		return nil, nil
	}
	st, err := os.Stat(c.path)
	if err != nil {
		return nil, err
	}
	return &artifact.Source{Name: filepath.Base(c.path), Size: st.Size(), Identity: c.model.program.Weights().Identity()}, nil
}

// contents is the contents of argument i, which is no input.
func (c *compilation) contents(i int) (*tensor.Tensor, error) {
	a := c.program.Args[i]
	switch {
	case a.Value != nil:
		return a.Value, nil
	case a.Weight.Data != nil:
		return a.Weight.Data, nil
	case c.model.origin != nil:
		return c.model.origin.Like(artifactWeight(a, i))
	case c.model.Weights == nil:
		return nil, fmt.Errorf("weight %s: a module in textual form holds no weights", a.Weight.Sym)
	}
	return weights.Lookup(c.model.Weights, a.Weight.Source)
}

func artifactPorts(ports []Port) []artifact.Port {
	out := make([]artifact.Port, len(ports))
	for i, p := range ports {
		out[i] = p.artifact()
	}
	return out
}

func (p Port) artifact() artifact.Port {
	return artifact.Port{Name: p.Name, Path: p.Path, Ordinal: p.Ordinal, Type: artifact.MakeType(p.Type)}
}

// signature is the port with its open dimensions as expressions.
func (p Port) signature() artifact.Signature {
	s := artifact.Fixed(p.artifact())
	if p.Open != nil {
		s.Dims = p.Open
	}
	return s
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
