package tpuc

import (
	"errors"
	"fmt"

	"tpuc/frontend/weights"
	"tpuc/internal/compare"
	"tpuc/ir/diag"
	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
	"tpuc/tpu/runtime"
)

// Example is a call that an artifact keeps, in two files of tensors: safetensors or npz.
type Example struct {
	Inputs  string // keyed input_<i> or by name or path
	Outputs string // what is expected, keyed output_<i> or by name or path; empty: nothing
}

// examples opens the files of a compile's examples as calls, one after another.
func (o *CompileOptions) examples() (*Calls, error) {
	c := &Calls{}
	var errs []error
	for i, e := range o.Examples {
		if e.Inputs == "" {
			errs = append(errs, fmt.Errorf("example %d has no file of inputs", i))
			continue
		}
		for _, l := range []struct {
			path string
			to   *[]*tensorFile
		}{{e.Inputs, &c.inputs}, {e.Outputs, &c.expected}} {
			var f *tensorFile
			if l.path != "" {
				var err error
				if f, err = openTensors(l.path); err != nil {
					errs = append(errs, err)
					continue
				}
			}
			*l.to = append(*l.to, f)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(append(errs, c.Close())...)
	}
	return c, nil
}

// useExamples sees that the examples can be read, and takes the sizes of symbolic dimensions from the first where nothing else gives them.
func (o *CompileOptions) useExamples() error {
	if len(o.Examples) == 0 {
		return nil
	}
	c, err := o.examples()
	if err != nil {
		return err
	}
	if len(o.Dims) == 0 && len(o.Shapes.Dims) == 0 && o.Shapes.Inputs == nil {
		s := c.Shapes(nil)
		s.Custom = o.Shapes.Custom
		o.Shapes = s
	}
	return c.Close()
}

// callTypes are what a program takes and gives.
type callTypes struct {
	inputs, outputs []artifact.Port
	numbers         []artifact.Number
}

// checkExamples refuses examples that none of the programs takes, or that expect other outputs than it has, before anything is compiled.
func (o *CompileOptions) checkExamples(all []*compilation) error {
	if len(o.Examples) == 0 {
		return nil
	}
	c, err := o.examples()
	if err != nil {
		return err
	}
	programs := make([]callTypes, len(all))
	for i, x := range all {
		programs[i] = callTypes{artifactPorts(x.model.Inputs), artifactPorts(x.model.Outputs), x.model.Numbers}
	}
	_, err = c.arrange(programs)
	return errors.Join(err, c.Close())
}

// addExamples puts the compile's examples into an artifact, whose programs must take them.
func (o *CompileOptions) addExamples(p *artifact.Part) (err error) {
	if len(o.Examples) == 0 {
		return nil
	}
	c, err := o.examples()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	m := &p.Manifest
	programs := make([]callTypes, len(m.Programs))
	for i := range m.Programs {
		programs[i].numbers = m.Programs[i].Numbers
		programs[i].inputs, programs[i].outputs = m.Ports(&m.Programs[i])
	}
	inputs, err := c.arrange(programs)
	if err != nil {
		return err
	}
	for i, list := range inputs {
		named := make([]weights.Named, len(list))
		for k, x := range list {
			named[k] = weights.Named{Name: fmt.Sprintf("input_%d", m.Inputs[k].Ordinal), Tensor: x}
		}
		var x artifact.ExampleContents
		if x.Inputs, err = weights.EncodeSafetensors(named); err != nil {
			return err
		}
		if out := c.expected[i]; out != nil {
			if x.Outputs, err = weights.EncodeSafetensors(out.tensors); err != nil {
				return err
			}
		}
		p.Contents.Examples = append(p.Contents.Examples, x)
	}
	return nil
}

// arrange gives the inputs of each call in the ports' order. Calls that no program takes, and expected outputs that are not those of the program
// that takes the call, are refused together, by file.
func (c *Calls) arrange(programs []callTypes) ([][]*tensor.Tensor, error) {
	out := make([][]*tensor.Tensor, len(c.inputs))
	var errs []error
	for i, f := range c.inputs {
		inputs, p, err := f.inputsOf(programs)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out[i] = inputs
		if want := c.expected[i]; want != nil {
			errs = append(errs, want.checkOutputs(p))
		}
	}
	return out, errors.Join(errs...)
}

// inputsOf are the file's tensors as inputs of the first program that takes them.
func (f *tensorFile) inputsOf(programs []callTypes) ([]*tensor.Tensor, *callTypes, error) {
	first := programs[0].inputs // all have them, of other shapes
	inputs, err := f.arrange(f.numbering(first, artifact.KindInput))
	if err != nil {
		return nil, nil, err
	}
	var problems diag.List
	for i := range programs {
		err := runtime.CheckInputs(programs[i].inputs, inputs)
		if err == nil {
			return inputs, &programs[i], nil
		}
		var list diag.List
		if !errors.As(err, &list) {
			return nil, nil, err
		}
		if len(programs) > 1 {
			list[0].Note("so says program %d of %d", i, len(programs))
		}
		problems = append(problems, list...)
	}
	return nil, nil, fmt.Errorf("%s:\n%w", f.path, problems)
}

// checkOutputs compares names and types of the file with a program's outputs: all but what their elements show.
func (f *tensorFile) checkOutputs(p *callTypes) error {
	types := func(i int, want *tensor.Tensor) compare.Result {
		t, err := p.outputs[i].Tensor()
		if err != nil {
			return compare.Result{Problem: err.Error()}
		}
		return compare.Result{Problem: compare.Types(t, want.Type)}
	}
	var errs diag.List
	for _, c := range compareOutputs(f, p.outputs, p.numbers, types, nil) {
		if c.Problem != "" {
			errs.Addf(nil, "example/output", "%s: %s", c.Name, c.Problem)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%s:\n%w", f.path, errs)
}

// OpenExamples gives the calls that the artifact at path keeps, to be compared with tolerance (nil: the default of each dtype). Close them after Run.
func OpenExamples(path string, tolerance *compare.Tolerance) (*Calls, error) {
	if !isArtifact(path) {
		return nil, fmt.Errorf("%s is no artifact: a model keeps no examples", path)
	}
	a, err := artifact.Open(path)
	if err != nil {
		return nil, err
	}
	c := &Calls{o: CallOptions{Tolerance: tolerance}, from: a}
	if len(a.Manifest.Examples) == 0 {
		return nil, errors.Join(fmt.Errorf("%s keeps no examples to test itself with: compile the model with --examples", path), a.Close())
	}
	for _, e := range a.Manifest.Examples {
		for _, l := range []struct {
			section string
			to      *[]*tensorFile
		}{{e.Inputs, &c.inputs}, {e.Outputs, &c.expected}} {
			var f *tensorFile
			if l.section != "" {
				if f, err = exampleFile(a, l.section); err != nil {
					return nil, errors.Join(err, c.Close())
				}
			}
			*l.to = append(*l.to, f)
		}
	}
	return c, nil
}

// exampleFile is a section of tensors.
func exampleFile(a *artifact.Artifact, section string) (*tensorFile, error) {
	data, err := a.Section(section)
	if err != nil {
		return nil, err
	}
	s, err := weights.ReadSafetensors(section, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.Path(), err)
	}
	return readTensors(section, s)
}
