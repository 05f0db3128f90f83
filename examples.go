package tpuc

import (
	"errors"
	"fmt"

	"tpuc/frontend/weights"
	"tpuc/internal/compare"
	"tpuc/ir/diag"
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

// addExamples puts the compile's examples into an artifact, whose programs must take them.
func (o *CompileOptions) addExamples(p *artifact.Part) error {
	if len(o.Examples) == 0 {
		return nil
	}
	c, err := o.examples()
	if err != nil {
		return err
	}
	ports, _ := p.Manifest.Ports(&p.Manifest.Programs[0])
	for i, in := range c.inputs {
		var x artifact.ExampleContents
		x.Inputs, err = exampleInputs(&p.Manifest, in, in.numbering(ports, artifact.KindInput))
		if out := c.expected[i]; err == nil && out != nil {
			x.Outputs, err = weights.EncodeSafetensors(out.tensors)
		}
		if err != nil {
			return errors.Join(err, c.Close())
		}
		p.Contents.Examples = append(p.Contents.Examples, x)
	}
	return c.Close()
}

// exampleInputs is the file as a safetensors file whose names are the inputs'.
func exampleInputs(m *artifact.Manifest, f *tensorFile, ports []artifact.Port) ([]byte, error) {
	inputs, err := f.arrange(ports)
	if err != nil {
		return nil, err
	}
	var problems diag.List
	for i := range m.Programs {
		own, _ := m.Ports(&m.Programs[i])
		err := runtime.CheckInputs(own, inputs)
		if err == nil {
			problems = nil
			break
		}
		var list diag.List
		if !errors.As(err, &list) {
			return nil, err
		}
		if len(m.Programs) > 1 {
			list[0].Note("so says program %d of %d", i, len(m.Programs))
		}
		problems = append(problems, list...)
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("%s:\n%w", f.path, problems)
	}
	named := make([]weights.Named, len(inputs))
	for i, x := range inputs {
		named[i] = weights.Named{Name: fmt.Sprintf("input_%d", m.Inputs[i].Ordinal), Tensor: x}
	}
	return weights.EncodeSafetensors(named)
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
