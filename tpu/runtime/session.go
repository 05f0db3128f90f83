package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"tpuc/frontend/weights"
	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
	"tpuc/tpu/pjrt"
)

// ErrLost says that a session's state is unknown, because a call was started and did not end well. Reset makes the session usable again.
var ErrLost = errors.New("the state of the session is lost: reset it")

var errClosed = errors.New("the session is closed")

// Session is one sequence of calls with its own state. Calls of one session run one after another; sessions of a model run side by side.
type Session struct {
	model *Model

	mu      sync.Mutex
	state   []*pjrt.Buffer // by manifest index; nil when lost or closed
	mutated []mutated      // new contents of inputs that the last call changed
	lost    error          // why state is nil
	program int            // of the last call
}

// mutated is an input's new contents, on the device.
type mutated struct {
	input  int
	buffer *pjrt.Buffer
	typ    artifact.Type
}

// NewSession makes a session whose state has its initial contents.
func (m *Model) NewSession(ctx context.Context) (*Session, error) {
	s := &Session{model: m}
	m.mu.Lock()
	closed := m.closed
	if !closed {
		m.sessions[s] = true
	}
	m.mu.Unlock()
	if closed {
		return nil, fmt.Errorf("%s: the model is closed", m.art.Path())
	}
	if err := s.Reset(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Reset gives the state its initial contents again and forgets the last call.
func (s *Session) Reset(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == errClosed {
		return errClosed
	}
	s.drop(ErrLost)
	man := s.model.Manifest()
	state := make([]*pjrt.Buffer, 0, len(man.State))
	for i, w := range man.State {
		b, err := s.initial(ctx, w, s.model.bound.state[i])
		if err != nil {
			closeAll(state)
			return fmt.Errorf("state %q: %w", w.Name, err)
		}
		state = append(state, b)
	}
	s.state, s.lost = state, nil
	return nil
}

func (s *Session) initial(ctx context.Context, w artifact.Weight, b weights.Bound) (*pjrt.Buffer, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	t, err := s.model.contents(w, b)
	if err != nil {
		return nil, err
	}
	return s.model.putCopy(t)
}

// Close releases the session's state. It is safe to call twice.
func (s *Session) Close() {
	s.mu.Lock()
	s.drop(errClosed)
	s.mu.Unlock()
	s.model.mu.Lock()
	delete(s.model.sessions, s)
	s.model.mu.Unlock()
}

// Program is the program of the last call that was started, and before the first call the artifact's first.
func (s *Session) Program() *artifact.Program {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &s.model.Manifest().Programs[s.program]
}

// Run makes one call, of the program whose inputs have these shapes: inputs in the manifest's order, row-major, not changed and not kept; outputs
// in the manifest's order. Every input that does not fit is named in one diag.List. State moves on with every call that is started; when such a call fails or ctx ends it first, the state is
// lost (ErrLost) until Reset. A session without state just goes on.
func (s *Session) Run(ctx context.Context, inputs []*tensor.Tensor) ([]*tensor.Tensor, error) {
	program, err := s.model.pick(inputs)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != nil {
		return nil, s.lost
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // nothing is started, so nothing is lost
	}
	man := s.model.Manifest()
	prog := &man.Programs[program]
	args, uploads, err := s.arguments(prog, inputs)
	defer func() { closeAll(uploads) }()
	if err != nil {
		return nil, err
	}
	s.dropMutated()
	s.program = program
	results, err := s.model.loaded[program].Execute(ctx, args, pjrt.ExecuteOptions{})
	if err != nil {
		return nil, s.fail(ctx, err)
	}
	outputs, temporary := s.take(prog, results)
	defer func() { closeAll(temporary) }()
	out := make([]*tensor.Tensor, len(outputs))
	for i, b := range outputs {
		t, err := prog.Outputs[i].Tensor()
		if err == nil {
			out[i], err = fetch(ctx, b, t)
		}
		if err != nil {
			return nil, s.fail(ctx, fmt.Errorf("output %q: %w", man.Outputs[i].Name, err))
		}
	}
	if len(outputs) == 0 && len(results) > 0 {
		// Nothing was copied to the host, which would have waited: all results of a call are there at once.
		if err := results[0].Ready(ctx); err != nil {
			return nil, s.fail(ctx, err)
		}
	}
	return out, nil
}

// State is the present contents of all state, in the manifest's order, copied to the host.
func (s *Session) State(ctx context.Context) ([]weights.Named, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != nil {
		return nil, s.lost
	}
	man := s.model.Manifest()
	out := make([]weights.Named, len(s.state))
	for i, b := range s.state {
		w := man.State[i]
		t, err := w.Tensor()
		if err != nil {
			return nil, err
		}
		x, err := fetch(ctx, b, t)
		if err != nil {
			return nil, fmt.Errorf("state %q: %w", w.Name, err)
		}
		out[i] = weights.Named{Name: w.Name, Tensor: x}
	}
	return out, nil
}

// InputsAfter is the new contents of the inputs that the last call changed, in the program's order and by the inputs' names. The caller's own
// tensors are never written to.
func (s *Session) InputsAfter(ctx context.Context) ([]weights.Named, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	man := s.model.Manifest()
	var out []weights.Named
	for _, m := range s.mutated {
		p := man.Inputs[m.input]
		t, err := m.typ.Tensor()
		if err != nil {
			return nil, err
		}
		x, err := fetch(ctx, m.buffer, t)
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", p.Name, err)
		}
		out = append(out, weights.Named{Name: p.Name, Tensor: x})
	}
	return out, nil
}

// arguments are prog's arguments; uploads are those that belong to this call, also after an error.
func (s *Session) arguments(prog *artifact.Program, inputs []*tensor.Tensor) (args, uploads []*pjrt.Buffer, err error) {
	man := s.model.Manifest()
	args = make([]*pjrt.Buffer, len(prog.Args))
	for i, slot := range prog.Args {
		switch slot.Kind {
		case artifact.KindWeight:
			args[i] = s.model.fixed[0][slot.Index]
		case artifact.KindConstant:
			args[i] = s.model.fixed[1][slot.Index]
		case artifact.KindState:
			args[i] = s.state[slot.Index]
		case artifact.KindInput:
			b, err := s.model.putCopy(inputs[slot.Index])
			if err != nil {
				return nil, uploads, fmt.Errorf("input %q: %w", man.Inputs[slot.Index].Name, err)
			}
			uploads = append(uploads, b)
			args[i] = b
		}
	}
	return args, uploads, nil
}

// take files the results of a call of prog: state replaces the old, whose memory the call has taken, and changed inputs are kept. outputs are by index, and
// may be state as well; temporary are the results that nothing keeps, for the caller to close.
func (s *Session) take(prog *artifact.Program, results []*pjrt.Buffer) (outputs, temporary []*pjrt.Buffer) {
	outputs = make([]*pjrt.Buffer, len(prog.Outputs))
	for i, slots := range prog.Results {
		kept := false
		for _, slot := range slots {
			switch slot.Kind {
			case artifact.KindOutput:
				outputs[slot.Index] = results[i]
			case artifact.KindState:
				s.state[slot.Index].Close()
				s.state[slot.Index] = results[i]
				kept = true
			case artifact.KindInput:
				s.mutated = append(s.mutated, mutated{slot.Index, results[i], prog.Inputs[slot.Index]})
				kept = true
			}
		}
		if !kept {
			temporary = append(temporary, results[i])
		}
	}
	return outputs, temporary
}

// fail ends a call that did not end well. Where there is state it may have moved on or not, so it is given up; the same holds for
// ctx's end.
func (s *Session) fail(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if len(s.state) > 0 {
		s.drop(ErrLost)
	} else {
		s.dropMutated()
	}
	return err
}

// drop releases state and changed inputs for the reason given.
func (s *Session) drop(reason error) {
	closeAll(s.state)
	s.state, s.lost = nil, reason
	s.dropMutated()
}

func (s *Session) dropMutated() {
	for _, m := range s.mutated {
		m.buffer.Close()
	}
	s.mutated = nil
}
