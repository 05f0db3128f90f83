package artifact

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"tpuc/ir/tensor"
)

// Part is an artifact that is not written yet.
type Part struct {
	Manifest Manifest
	Contents Contents
}

// Merge puts the programs of parts, which are of one model, target and plugin, into one artifact, in their order. A tensor that several parts name
// alike is there once. What one program changes is state for all of them.
func Merge(parts []Part) (Part, error) {
	if len(parts) == 0 {
		return Part{}, errors.New("no programs to put into an artifact")
	}
	m := parts[0].Manifest
	m.Programs = nil
	var c Contents
	head, err := header(parts[0].Manifest)
	if err != nil {
		return Part{}, err
	}
	for _, p := range parts {
		h, err := header(p.Manifest)
		if err != nil {
			return Part{}, err
		}
		if !bytes.Equal(h, head) {
			return Part{}, errors.New("the programs are of different models, targets or plugins")
		}
		if m.Checkpoint == nil {
			m.Checkpoint = p.Manifest.Checkpoint
		}
		if len(c.Graph) == 0 {
			c.Graph = p.Contents.Graph
		}
	}
	u := union{index: make(map[string]Slot), places: make([]map[Slot]Slot, len(parts)), lists: make(map[string][]member)}
	for _, kind := range []string{KindState, KindWeight, KindConstant} { // state first: it is state in other programs too
		for i := range parts {
			if err := u.add(i, &parts[i], kind); err != nil {
				return Part{}, err
			}
		}
	}
	m.State, m.Weights, m.Constants = u.weights(KindState), u.weights(KindWeight), u.weights(KindConstant)
	for i := range m.Constants {
		if isLiteral(m.Constants[i], KindConstant) {
			m.Constants[i].Name = fmt.Sprintf("literal_%d", i)
		}
	}
	c.State, c.Weights, c.Constants = u.contents(KindState), u.contents(KindWeight), u.contents(KindConstant)
	for i := range parts {
		for _, p := range parts[i].Manifest.Programs {
			p.Args, p.Results = slices.Clone(p.Args), slices.Clone(p.Results)
			for k, s := range p.Args {
				p.Args[k] = u.place(i, s)
			}
			for k, slots := range p.Results {
				p.Results[k] = slices.Clone(slots)
				for n, s := range slots {
					p.Results[k][n] = u.place(i, s)
				}
			}
			m.Programs = append(m.Programs, p)
		}
		c.Programs = append(c.Programs, parts[i].Contents.Programs...)
	}
	return Part{m, c}, nil
}

// header is what the parts of one artifact have in common.
func header(m Manifest) ([]byte, error) {
	m.Weights, m.State, m.Constants, m.Programs, m.Checkpoint = nil, nil, nil, nil, nil
	return encode(m)
}

// union collects tensors of several parts, each once.
type union struct {
	index  map[string]Slot     // by identity
	places []map[Slot]Slot     // of each part, where its slots went
	lists  map[string][]member // by kind
}

// member is a tensor of a union and where its contents are.
type member struct {
	weight Weight
	from   func(int) (*tensor.Tensor, error) // nil: none
	at     int
}

// add adds one list of part n.
func (u *union) add(n int, p *Part, kind string) error {
	if u.places[n] == nil {
		u.places[n] = make(map[Slot]Slot)
	}
	var list []Weight
	var from func(int) (*tensor.Tensor, error)
	switch kind {
	case KindState:
		list, from = p.Manifest.State, p.Contents.State
	case KindWeight:
		list, from = p.Manifest.Weights, p.Contents.Weights
	case KindConstant:
		list, from = p.Manifest.Constants, p.Contents.Constants
	}
	for i, w := range list {
		id, err := identity(w, kind, from, i)
		if err != nil {
			return fmt.Errorf("%s %q: %w", kind, w.Name, err)
		}
		s, ok := u.index[id]
		if !ok {
			s = Slot{kind, len(u.lists[kind])}
			u.index[id] = s
			u.lists[kind] = append(u.lists[kind], member{w, from, i})
		}
		u.places[n][Slot{kind, i}] = s
	}
	return nil
}

// identity tells tensors apart: by what the checkpoint calls them, and literals by their elements.
func identity(w Weight, kind string, from func(int) (*tensor.Tensor, error), i int) (string, error) {
	if !isLiteral(w, kind) {
		name := w.Name
		if w.Expr != "" || len(w.Names) > 0 {
			name = "" // another program may call it otherwise
		}
		return fmt.Sprintf("%s %q %q %s %s", w.Class, name, w.Names, w.Type, w.Expr), nil
	}
	if from == nil {
		return "", errors.New("it has neither contents nor a name")
	}
	t, err := from(i)
	if err != nil {
		return "", err
	}
	if t == nil {
		return "", errors.New("it has neither contents nor a name")
	}
	return fmt.Sprintf("literal %s %s", w.Type, digest(t.Data)), nil
}

// isLiteral reports a constant that the model has no name for.
func isLiteral(w Weight, kind string) bool {
	return kind == KindConstant && len(w.Names) == 0 && w.Expr == ""
}

// place is where slot s of part n went. Inputs and outputs stay.
func (u *union) place(n int, s Slot) Slot {
	if to, ok := u.places[n][s]; ok {
		return to
	}
	return s
}

func (u *union) weights(kind string) []Weight {
	out := []Weight{}
	for _, m := range u.lists[kind] {
		out = append(out, m.weight)
	}
	return out
}

func (u *union) contents(kind string) func(int) (*tensor.Tensor, error) {
	list := u.lists[kind]
	return func(i int) (*tensor.Tensor, error) {
		if m := list[i]; m.from != nil {
			return m.from(m.at)
		}
		return nil, nil
	}
}
