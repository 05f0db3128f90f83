package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
	"tpuc/tpu/pjrt"
)

// ErrLost says that a session's state is unknown, because a call was started and did not end well. Reset and LoadState make the session usable again.
var ErrLost = errors.New("the state of the session is lost: reset it")

var errClosed = errors.New("the session is closed")

// Session is one sequence of calls with its own state. Calls of one session run one after another; sessions of a model run side by side.
type Session struct {
	model *Model

	mu         sync.Mutex
	state      []held                       // by manifest index; nil when lost or closed
	mutated    []mutated                    // new contents of inputs that the last call changed
	lost       error                        // why state is nil
	generation int                          // of state: counts what replaces it as a whole
	last       *artifact.Program            // of the last call, with the types of that call
	args       map[*program]*pjrt.Arguments // with the weights in place
}

// held is a piece of state on the device.
type held struct {
	*pjrt.Buffer
	layout pjrt.Layout // empty: row-major
}

// mutated is an input's new contents, on the device.
type mutated struct {
	input  int
	buffer *pjrt.Buffer
	full   tensor.Type // of the buffer
	typ    tensor.Type // of the call's input
}

// NewSession makes a session whose state has its initial contents.
func (m *Model) NewSession(ctx context.Context) (*Session, error) {
	s := &Session{model: m, args: make(map[*program]*pjrt.Arguments)}
	m.mu.Lock()
	closed := m.closed
	if !closed {
		m.sessions[s] = true
	}
	m.mu.Unlock()
	if closed {
		return nil, fmt.Errorf("%s: the model is closed", m.art.Path())
	}
	s.last = (*m.programs.Load())[0].Program
	if err := s.Reset(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Reset gives the state its initial contents again and forgets the last call.
func (s *Session) Reset(ctx context.Context) error {
	m := s.model
	return s.replace(func(i int) (*tensor.Tensor, error) {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		return m.contents(m.art, m.Manifest().State[i], m.bound.state[i])
	})
}

// replace gives the state other contents as a whole. Where that fails the state is lost.
func (s *Session) replace(contents func(i int) (*tensor.Tensor, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == errClosed {
		return errClosed
	}
	s.drop(ErrLost)
	man := s.model.Manifest()
	state := make([]held, 0, len(man.State))
	for i, w := range man.State {
		t, err := contents(i)
		var b *pjrt.Buffer
		if err == nil {
			b, err = s.model.putCopy(t, "")
		}
		if err != nil {
			for _, h := range state {
				h.Close()
			}
			return fmt.Errorf("state %q: %w", w.Name, err)
		}
		state = append(state, held{b, ""})
	}
	s.state, s.lost = state, nil
	s.generation++
	return nil
}

// Close releases the session's state. It is safe to call twice.
func (s *Session) Close() {
	s.mu.Lock()
	s.drop(errClosed)
	for p, a := range s.args {
		a.Close()
		delete(s.args, p)
	}
	s.mu.Unlock()
	s.model.mu.Lock()
	delete(s.model.sessions, s)
	s.model.mu.Unlock()
}

// forget drops what the session keeps for calls of p, which is released and not held.
func (s *Session) forget(p *program) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.args[p]; a != nil {
		a.Close()
		delete(s.args, p)
	}
}

// Program describes the last call that was started, its types those of the call, and before the first call the artifact's first program.
func (s *Session) Program() *artifact.Program {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// Call is a call that was started. Wait gives its outputs, once.
type Call struct {
	session    *Session
	program    *program
	outputs    []fetching
	types      []tensor.Type // of the call's outputs
	done       *pjrt.Event   // of a program without outputs to wait for
	generation int           // of the session's state
}

// Run makes one call, of the program whose inputs have these shapes, or else as the policy says: inputs in the manifest's order, row-major, not
// changed and not kept; outputs in the manifest's order. Every input that does not fit is named in one diag.List. State moves on with every call
// that is started; when such a call fails or ctx ends it first, the state is lost (ErrLost) until Reset. A session without state just goes on.
func (s *Session) Run(ctx context.Context, inputs []*tensor.Tensor) ([]*tensor.Tensor, error) {
	c, err := s.Start(ctx, inputs)
	if err != nil {
		return nil, err
	}
	out, err := c.wait(ctx)
	if err != nil {
		return nil, s.fail(ctx, err, c.generation)
	}
	return out, nil
}

// Start begins a call and returns when it is on its way: further ones of the session may be started before its outputs are there, as the device does
// them in order. inputs are the caller's again. Outputs are copied to the host from the start on.
func (s *Session) Start(ctx context.Context, inputs []*tensor.Tensor) (*Call, error) {
	return s.begin(ctx, inputs, nil)
}

// begin is Start, which waits for each part of the call where timing is not nil.
func (s *Session) begin(ctx context.Context, inputs []*tensor.Tensor, timing *Timing) (*Call, error) {
	s.model.stats.calls.Add(1)
	if ctx.Err() != nil {
		s.model.stats.failed.Add(1)
		return nil, context.Cause(ctx) // nothing is started, so nothing is lost
	}
	s.mu.Lock()
	lost := s.lost
	s.mu.Unlock()
	if lost != nil { // also below; a session that is lost asks for no compile
		s.model.stats.failed.Add(1)
		return nil, lost
	}
	p, how, err := s.model.choose(ctx, inputs)
	if err != nil {
		return nil, err
	}
	defer s.model.letGo(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != nil {
		return nil, s.lost
	}
	return s.start(ctx, p, how, inputs, timing)
}

// Wait waits for the outputs. When ctx ends first its cause is returned and the outputs are gone; the call goes on and its state with it. When the
// call failed the session's state is lost (ErrLost) until Reset.
func (c *Call) Wait(ctx context.Context) ([]*tensor.Tensor, error) {
	out, err := c.wait(ctx)
	if err != nil && ctx.Err() == nil {
		return nil, c.session.fail(ctx, err, c.generation)
	}
	return out, err
}

func (c *Call) wait(ctx context.Context) ([]*tensor.Tensor, error) {
	out := make([]*tensor.Tensor, len(c.outputs))
	for i, f := range c.outputs {
		x, err := f.wait(ctx)
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", c.program.art.Manifest.Outputs[i].Name, err)
		}
		out[i] = cut(x, c.types[i])
	}
	if c.done != nil {
		if err := c.done.Wait(ctx); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// start runs p; s is locked.
func (s *Session) start(ctx context.Context, p *program, how *padding, inputs []*tensor.Tensor, timing *Timing) (*Call, error) {
	began := time.Now()
	args, err := s.arguments(ctx, p, inputs, timing)
	defer s.releaseInputs(p, args)
	if err != nil {
		return nil, err
	}
	s.dropMutated()
	s.last = p.Program
	types := p.outputs
	if how != nil {
		types = how.types(p.outputs, how.Outputs)
		s.last = how.describe(p, types)
	}
	uploaded := time.Now()
	results, err := p.exe.ExecuteArguments(ctx, args, pjrt.ExecuteOptions{})
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	if timing != nil {
		timing.Upload, timing.Dispatch = uploaded.Sub(began), time.Since(uploaded)
		for i := 0; i < len(results) && err == nil; i++ {
			err = results[i].Ready(ctx)
		}
		timing.Execute = time.Since(uploaded)
		timing.ended = time.Now()
	}
	c := &Call{session: s, program: p, types: types, outputs: make([]fetching, len(p.outputs)), generation: s.generation}
	for i, slots := range p.results {
		for _, slot := range slots {
			if slot.Kind == artifact.KindOutput && err == nil {
				c.outputs[slot.Index], err = fetch(results[i], p.outputs[slot.Index])
			}
		}
	}
	if len(p.outputs) == 0 && len(results) > 0 && err == nil {
		// Nothing is copied to the host, which would wait: all results of a call are there at once.
		c.done, err = results[0].ReadyEvent()
	}
	s.take(p, how, results)
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	return c, nil
}

// describe is p with the types of a padded call.
func (how *padding) describe(p *program, outputs []tensor.Type) *artifact.Program {
	q := *p.Program
	q.Inputs, q.Outputs = nil, nil
	for _, t := range how.types(p.inputs, how.Inputs) {
		q.Inputs = append(q.Inputs, artifact.MakeType(t))
	}
	for _, t := range outputs {
		q.Outputs = append(q.Outputs, artifact.MakeType(t))
	}
	q.Dims = slices.Clone(p.Dims)
	for i, d := range q.Dims {
		if d.Name == how.Symbol {
			q.Dims[i].Value = how.size
		}
	}
	return &q
}

// arguments are p's arguments with inputs and state set, also after an error. Uploads are waited for where timing is not nil.
func (s *Session) arguments(ctx context.Context, p *program, inputs []*tensor.Tensor, timing *Timing) (*pjrt.Arguments, error) {
	args := s.args[p]
	if args == nil {
		args = p.exe.NewArguments(len(p.Args))
		s.args[p] = args
		for i, b := range p.fixed {
			if b != nil {
				if err := args.Set(i, b); err != nil {
					return args, err
				}
			}
		}
	}
	for i, slot := range p.slots {
		switch slot.Kind {
		case artifact.KindState:
			h := &s.state[slot.Index]
			if h.layout != p.layouts[i] {
				if err := s.relay(h, slot.Index, p.layouts[i]); err != nil {
					return args, err
				}
			}
			if err := args.Set(i, h.Buffer); err != nil {
				return args, err
			}
		case artifact.KindInput:
			b, err := s.model.putCopy(fill(inputs[slot.Index], p.inputs[slot.Index]), "")
			if err == nil {
				if err = args.Set(i, b); err == nil && timing != nil {
					err = b.Ready(ctx)
				}
				b.Close() // args holds it
			}
			if err != nil {
				return args, fmt.Errorf("input %q: %w", s.model.Manifest().Inputs[slot.Index].Name, err)
			}
		}
	}
	return args, nil
}

// releaseInputs lets go of what belongs to one call.
func (s *Session) releaseInputs(p *program, args *pjrt.Arguments) {
	for i, slot := range p.slots {
		if slot.Kind == artifact.KindInput || slot.Kind == artifact.KindState {
			_ = args.Set(i, nil) // emptying does not fail
		}
	}
}

// take files the results of a call of p: state replaces the old, whose memory the call has taken, changed inputs are kept, and the rest is closed.
func (s *Session) take(p *program, how *padding, results []*pjrt.Buffer) {
	inputs := p.inputs
	if how != nil && len(p.Results) > 0 {
		inputs = how.types(p.inputs, how.Inputs)
	}
	for i, slots := range p.results {
		kept := false
		for _, slot := range slots {
			switch slot.Kind {
			case artifact.KindState:
				h := &s.state[slot.Index]
				h.Close()
				h.Buffer, kept = results[i], true
			case artifact.KindInput:
				s.mutated = append(s.mutated, mutated{slot.Index, results[i], p.inputs[slot.Index], inputs[slot.Index]})
				kept = true
			}
		}
		if !kept {
			results[i].Close()
		}
	}
}

// fail ends a call that did not end well, unless the state was replaced since it began.
func (s *Session) fail(ctx context.Context, err error, generation int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if generation != s.generation {
		return err
	}
	return s.failed(ctx, err)
}

// failed ends a call that did not end well; s is locked. Where there is state it may have moved on or not, so it is given up; the same holds for
// ctx's end.
func (s *Session) failed(ctx context.Context, err error) error {
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
	for _, h := range s.state {
		h.Close()
	}
	s.state, s.lost = nil, reason
	s.dropMutated()
}

func (s *Session) dropMutated() {
	for _, m := range s.mutated {
		m.buffer.Close()
	}
	s.mutated = nil
}
