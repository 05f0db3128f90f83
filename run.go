package tpuc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tpuc/frontend/weights"
	"tpuc/internal/compare"
	"tpuc/internal/plural"
	"tpuc/ir/diag"
	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
	"tpuc/tpu/runtime"
)

// Caller makes calls of one model, one after another, with its state carried over: a session on a device, or the evaluator.
type Caller interface {
	// Ports are the model's inputs and outputs that are tensors. Where it has programs of several shapes they are those of the last call, and before
	// the first call any.
	Ports() (inputs, outputs []artifact.Port)
	// Numbers are the outputs of the last call that are no tensors.
	Numbers() []artifact.Number
	// Call makes one call: inputs and outputs in the ports' order. It refuses inputs of wrong types.
	Call(ctx context.Context, inputs []*tensor.Tensor) ([]*tensor.Tensor, error)
	// Changed is the present contents of all state, and of the inputs that the last call changed.
	Changed(ctx context.Context) ([]Changed, error)
}

// Changed is the contents of a piece of state, or of a changed input.
type Changed struct {
	Names []string // all names of state, its symbol last; nil for an input
	Input int      // place among the input ports; -1 for state
	*tensor.Tensor
}

// CallOptions say what to call with and what to compare with. Files are safetensors or npz.
type CallOptions struct {
	Inputs        []string           // one file a call, keyed input_<i> or by name or path
	Random        *uint64            // seed of the inputs of one call, instead of Inputs; see Random
	Expected      []string           // one file a call, as far as there are any, keyed output_<i> or by name or path
	ExpectedState []string           // one file a call, as far as there are any, keyed by names of state, or as Inputs for changed inputs
	Tolerance     *compare.Tolerance // nil: compare.Default of each dtype
	Output        string             // safetensors file for the outputs, keyed output_<i>; further calls get _2, _3 before the extension
}

// Calls are calls whose files are open.
type Calls struct {
	o                       CallOptions
	inputs, expected, state []*tensorFile // nil where a call has none
	from                    io.Closer     // holds their bytes; may be nil
}

// OpenCalls opens all files, so that a missing one is known before anything is compiled. Close them after Run.
func OpenCalls(o CallOptions) (*Calls, error) {
	if (o.Random != nil) == (len(o.Inputs) > 0) {
		return nil, errors.New("inputs come from files or from a random seed, wanted one of both")
	}
	calls := max(len(o.Inputs), 1)
	if len(o.Expected) > calls || len(o.ExpectedState) > calls {
		return nil, fmt.Errorf("%s of expected outputs and %d of expected state, wanted at most one for each of %s", plural.Of(len(o.Expected), "file"), len(o.ExpectedState), plural.Of(calls, "call"))
	}
	if err := CheckOutput(o.Output); err != nil {
		return nil, err
	}
	c := &Calls{o: o}
	var errs [3]error
	c.inputs, errs[0] = openAll(o.Inputs)
	c.expected, errs[1] = openAll(o.Expected)
	c.state, errs[2] = openAll(o.ExpectedState)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Close closes the files.
func (c *Calls) Close() error {
	err := errors.Join(closeFiles(c.inputs), closeFiles(c.expected), closeFiles(c.state))
	if c.from != nil {
		err = errors.Join(err, c.from.Close())
	}
	return err
}

// Shapes binds symbolic dimensions by dims, or where there are none by the shapes of the first call's inputs.
func (c *Calls) Shapes(dims map[string]int64) Shapes {
	s := Shapes{Dims: dims}
	if len(c.inputs) > 0 {
		s.Inputs, s.Given = c.inputs[0].shapes, c.inputs[0].given()
	}
	return s
}

// Run makes the calls and compares. Where something differs from what is expected the report is complete and the error is a *DifferError; other
// errors end the calls, and the report has those before.
func (c *Calls) Run(ctx context.Context, caller Caller) (*RunReport, error) {
	report := &RunReport{Calls: []CallReport{}}
	for i := range max(len(c.inputs), 1) {
		r, err := c.call(ctx, caller, i)
		if err != nil {
			if len(c.inputs) > 1 {
				err = fmt.Errorf("call %d: %w", i+1, err)
			}
			return report, err
		}
		report.Calls = append(report.Calls, *r)
	}
	return report, report.differ()
}

func (c *Calls) call(ctx context.Context, caller Caller, i int) (*CallReport, error) {
	in, _ := caller.Ports()
	inputs, from, err := c.inputsOf(i, in)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	outputs, err := caller.Call(ctx, inputs)
	var list diag.List
	switch {
	case errors.As(err, &list) && c.o.Random == nil: // it is about the file's tensors
		return nil, fmt.Errorf("%s:\n%w", from, err)
	case err != nil:
		return nil, err
	}
	in, out := caller.Ports()
	r := &CallReport{Inputs: from, Wall: time.Since(start).Seconds(), Numbers: caller.Numbers()}
	for k, x := range outputs {
		r.Outputs = append(r.Outputs, summarize(out[k], x))
	}
	if c.o.Output != "" {
		r.Output = numbered(c.o.Output, i)
		if err := writeOutputs(r.Output, out, outputs); err != nil {
			return nil, err
		}
	}
	if i < len(c.expected) && c.expected[i] != nil {
		one := func(k int, want *tensor.Tensor) compare.Result {
			return compareTensors(outputs[k], want, c.o.Tolerance)
		}
		r.Compared = compareOutputs(c.expected[i], out, caller.Numbers(), one, c.o.Tolerance)
	}
	if i < len(c.state) {
		changed, err := caller.Changed(ctx)
		if err != nil {
			return nil, err
		}
		compared, unnamed := compareState(c.state[i], c.numbering(i, in), changed, c.o.Tolerance)
		r.Compared = append(r.Compared, compared...)
		r.NotCompared = unnamed
	}
	return r, nil
}

// inputsOf are the inputs of call i in the ports' order, and where they come from.
func (c *Calls) inputsOf(i int, ports []artifact.Port) ([]*tensor.Tensor, string, error) {
	if c.o.Random != nil {
		inputs, err := Random(ports, *c.o.Random)
		return inputs, fmt.Sprintf("random %d", *c.o.Random), err
	}
	inputs, err := c.inputs[i].arrange(c.numbering(i, ports))
	if err != nil {
		return nil, "", err
	}
	return inputs, c.inputs[i].path, nil
}

// numbering are the input ports as the file of call i numbers them.
func (c *Calls) numbering(i int, ports []artifact.Port) []artifact.Port {
	if c.o.Random != nil {
		return ports
	}
	return c.inputs[i].numbering(ports, artifact.KindInput)
}

// numbered is the file's name for call i: F, F_2, F_3, before the extension.
func numbered(file string, i int) string {
	if i == 0 {
		return file
	}
	ext := filepath.Ext(file)
	return fmt.Sprintf("%s_%d%s", strings.TrimSuffix(file, ext), i+1, ext)
}

func writeOutputs(file string, ports []artifact.Port, outputs []*tensor.Tensor) error {
	named := make([]weights.Named, len(outputs))
	for i, x := range outputs {
		named[i] = weights.Named{Name: fmt.Sprintf("output_%d", ports[i].Ordinal), Tensor: x}
	}
	return weights.WriteSafetensors(file, named)
}

// Session is a Caller on the device.
type Session struct {
	*runtime.Session
	model *runtime.Model
	first *artifact.Program // stands for the program of the last call before there is one; may be nil
}

// Session makes a session whose state has its initial contents.
func (m *Opened) Session(ctx context.Context) (*Session, error) {
	s, err := m.NewSession(ctx)
	if err != nil {
		return nil, err
	}
	return &Session{s, m.Model, m.first}, nil
}

// Ports implements Caller.
func (s *Session) Ports() (inputs, outputs []artifact.Port) {
	p := s.Program()
	if s.first != nil {
		p = s.first
	}
	return s.model.Manifest().Ports(p)
}

// Numbers implements Caller.
func (s *Session) Numbers() []artifact.Number { return s.Program().Numbers }

// Call implements Caller.
func (s *Session) Call(ctx context.Context, inputs []*tensor.Tensor) ([]*tensor.Tensor, error) {
	s.first = nil
	return s.Run(ctx, inputs)
}

// Changed implements Caller.
func (s *Session) Changed(ctx context.Context) ([]Changed, error) {
	man := s.model.Manifest()
	state, err := s.State(ctx)
	if err != nil {
		return nil, err
	}
	var out []Changed
	for i, x := range state { // in the manifest's order
		names := append(slices.Clone(man.State[i].Names), man.State[i].Name)
		out = append(out, Changed{names, -1, x.Tensor})
	}
	inputs, err := s.InputsAfter(ctx)
	if err != nil {
		return nil, err
	}
	for _, x := range inputs {
		i := slices.IndexFunc(man.Inputs, func(p artifact.Signature) bool { return p.Name == x.Name })
		out = append(out, Changed{nil, i, x.Tensor})
	}
	return out, nil
}
