package runtime

import (
	"context"
	"errors"
	"fmt"

	"tpuc/frontend/weights"
	"tpuc/ir/tensor"
	"tpuc/ir/weight"
	"tpuc/tpu/pjrt"
)

// State is the present contents of all state, in the manifest's order, copied to the host.
func (s *Session) State(ctx context.Context) ([]weights.Named, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != nil {
		return nil, s.lost
	}
	man := s.model.Manifest()
	out := make([]weights.Named, len(s.state))
	for i, h := range s.state {
		w := man.State[i]
		t, err := w.Tensor()
		if err != nil {
			return nil, err
		}
		x, err := fetchNow(ctx, h.Buffer, t)
		if err != nil {
			return nil, fmt.Errorf("state %q: %w", w.Name, err)
		}
		out[i] = weights.Named{Name: w.Name, Tensor: x}
	}
	return out, nil
}

// SaveState writes the present contents of all state to a safetensors file, under the manifest's names.
func (s *Session) SaveState(ctx context.Context, path string) error {
	state, err := s.State(ctx)
	if err != nil {
		return err
	}
	return weights.WriteSafetensors(path, state)
}

// LoadState gives the state the contents of a file of SaveState, or of a checkpoint that has its names. Tensors that are missing or have another
// type are in one diag.List, and then nothing is changed.
func (s *Session) LoadState(ctx context.Context, path string) (err error) {
	src, err := weights.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	man := s.model.Manifest()
	wants := make([]weights.Want, len(man.State))
	for i, w := range man.State {
		t, err := w.Tensor()
		if err != nil {
			return err
		}
		wants[i] = weights.Want{Names: w.Names, Expr: weight.Tensor{Name: w.Name, T: t}}
	}
	bound, err := weights.Bind(src, wants)
	if err != nil {
		return err
	}
	return s.replace(func(i int) (*tensor.Tensor, error) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return bound[i].Load()
	})
}

// InputsAfter is the new contents of the inputs that the last call changed, in the program's order and by the inputs' names. The caller's own
// tensors are never written to.
func (s *Session) InputsAfter(ctx context.Context) ([]weights.Named, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	man := s.model.Manifest()
	var out []weights.Named
	for _, m := range s.mutated {
		name := man.Inputs[m.input].Name
		x, err := fetchNow(ctx, m.buffer, m.full)
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", name, err)
		}
		out = append(out, weights.Named{Name: name, Tensor: cut(x, m.typ)})
	}
	return out, nil
}

// relay puts a piece of state into another layout, through the host.
func (s *Session) relay(h *held, index int, layout pjrt.Layout) error {
	w := s.model.Manifest().State[index]
	t, err := w.Tensor()
	if err != nil {
		return err
	}
	x, err := fetchNow(context.Background(), h.Buffer, t) // short, and ending it would lose the state
	if err != nil {
		return fmt.Errorf("state %q: %w", w.Name, err)
	}
	b, err := s.model.putCopy(x, layout)
	if err != nil {
		return fmt.Errorf("state %q: %w", w.Name, err)
	}
	s.model.stats.relaid.Add(1)
	h.Close()
	*h = held{b, layout}
	return nil
}
