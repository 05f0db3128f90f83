package pt2

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"tpuc/frontend/weights"
	"tpuc/ir"
	"tpuc/ir/diag"
	"tpuc/ir/tensor"
)

// Reduce writes what an import of the program needs, for any sizes: the graph without stack traces, the tensors that its signature names, and the
// constants among them, but no weights. have, if not nil, says of which constants, by the hex SHA-256 of their row-major elements, the reader
// gets the elements elsewhere. An import of what OpenReduced reads gives the same module, but for files and lines of locations.
func (p *Program) Reduce(have func(sum string) bool) ([]byte, error) {
	r := weights.Reduced{Identity: p.archive.Identity()}
	data, err := p.archive.Entry(p.archive.Graph())
	if err != nil {
		return nil, err
	}
	if r.Graph, err = slim(data); err != nil {
		return nil, fmt.Errorf("%s: %w", p.archive.Label(), err)
	}
	if p.custom != nil {
		r.CustomOps = []byte(p.custom.Text)
	}
	if r.Tensors, err = p.reducedTensors(have); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := weights.WriteReduced(&out, r); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// reducedTensors are the tensors of the signature, each once, with the elements of those that no checkpoint has.
func (p *Program) reducedTensors(have func(sum string) bool) ([]weights.ReducedTensor, error) {
	var out []weights.ReducedTensor
	index := make(map[string]int)
	learned := make(map[string]bool) // views that a checkpoint has under one of their names
	constant := make(map[int]bool)
	var errs diag.List
	for _, s := range p.ep.GraphModule.Signature.Inputs {
		_, fqn, class, ok := s.tensor()
		if !ok {
			continue
		}
		stored, err := p.archive.Find(fqn)
		if err == nil {
			err = stored.Err
		}
		if err != nil {
			errs.Addf(nil, "pt2/weight", "tensor %q: %v", clip(fqn), err)
			continue
		}
		if class != ir.Constant {
			learned[stored.View()] = true
		}
		i, ok := index[fqn]
		if !ok {
			i = len(out)
			index[fqn] = i
			out = append(out, weights.ReducedTensor{Stored: stored})
		}
		if class == ir.Constant {
			constant[i] = true
		}
	}
	for i := range out {
		t := &out[i]
		if !constant[i] || t.Absent || learned[t.View()] {
			continue
		}
		sum, err := p.archive.Digest(t.Name)
		if err == nil && have != nil && have(sum) {
			t.External = sum
			continue
		}
		if err == nil {
			t.Value, err = p.archive.LoadStored(t.Stored)
		}
		if err != nil {
			errs.Addf(nil, "pt2/weight", "constant %q: %v", clip(t.Name), err)
		}
	}
	return out, errs.Err()
}

// OpenReduced reads what Reduce wrote, which is kept and must not change. Names in messages begin with label. find gives constants that Reduce left
// out, by the hex SHA-256 of their row-major elements; it may be nil where there are none.
func OpenReduced(ctx context.Context, label string, data []byte, find func(sum string, t tensor.Type) (*tensor.Tensor, error)) (*Program, error) {
	archive, err := weights.OpenReduced(label, data, find)
	if err != nil {
		return nil, err
	}
	return read(ctx, archive)
}

// errSlim says that JSON, which was read before, is none.
var errSlim = errors.New("the graph's JSON is damaged")

// slim is the graph's JSON without white space and, of the nodes' metadata, without all but the path of the layer.
func slim(data []byte) ([]byte, error) {
	if !json.Valid(data) {
		return nil, errSlim
	}
	s := &slimmer{in: data, out: make([]byte, 0, len(data)/2)}
	if err := s.value(anywhere); err != nil {
		return nil, err
	}
	return s.out, nil
}

// slimmer copies valid JSON.
type slimmer struct {
	in, out []byte
	at      int
}

// place is where a value stands.
type slimPlace int

const (
	anywhere slimPlace = iota
	nodeList           // the value of a key "nodes"
	nodeItem           // a member of it, if it is an array
)

func (s *slimmer) value(where slimPlace) error {
	switch s.space(); s.in[s.at] {
	case '{':
		return s.object(where)
	case '[':
		member := anywhere
		if where == nodeList {
			member = nodeItem
		}
		return s.list(']', func() error { return s.value(member) })
	case '"':
		s.out = append(s.out, s.text()...)
	default:
		from := s.at
		for s.at < len(s.in) && !bytes.ContainsRune([]byte(",]} \t\r\n"), rune(s.in[s.at])) {
			s.at++
		}
		s.out = append(s.out, s.in[from:s.at]...)
	}
	return nil
}

func (s *slimmer) object(where slimPlace) error {
	return s.list('}', func() error {
		key := s.text()
		s.out = append(append(s.out, key...), ':')
		s.space()
		s.at++ // the colon
		switch {
		case where == nodeItem && string(key) == `"metadata"`:
			return s.metadata()
		case string(key) == `"nodes"`:
			return s.value(nodeList)
		}
		return s.value(anywhere)
	})
}

// list copies what lies between brackets, part by part.
func (s *slimmer) list(end byte, part func() error) error {
	s.out = append(s.out, s.in[s.at])
	s.at++
	for s.space(); s.in[s.at] != end; s.space() {
		if s.in[s.at] == ',' {
			s.out = append(s.out, ',')
			s.at++
			s.space()
		}
		if err := part(); err != nil {
			return err
		}
	}
	s.out = append(s.out, end)
	s.at++
	return nil
}

// metadata copies what locations need of a node's metadata: the path of the innermost layer, as layerOf reads it.
func (s *slimmer) metadata() error {
	if s.space(); s.in[s.at] != '{' {
		return s.value(anywhere)
	}
	begin := len(s.out)
	stack := ""
	err := s.list('}', func() error {
		key := s.text()
		s.space()
		s.at++ // the colon
		from := len(s.out)
		err := s.value(anywhere)
		if err == nil && string(key) == `"nn_module_stack"` {
			err = json.Unmarshal(s.out[from:], &stack)
		}
		s.out = s.out[:from]
		return err
	})
	if err != nil {
		return err
	}
	s.out = append(s.out[:begin], "{}"...)
	if layer := layerOf(stack); layer != "" {
		data, err := json.Marshal(map[string]string{"nn_module_stack": "," + layer + ","})
		if err != nil {
			return err
		}
		s.out = append(s.out[:begin], data...)
	}
	return nil
}

func (s *slimmer) space() {
	for s.in[s.at] == ' ' || s.in[s.at] == '\n' || s.in[s.at] == '\t' || s.in[s.at] == '\r' {
		s.at++
	}
}

// text is the string at hand, as it is written.
func (s *slimmer) text() []byte {
	from := s.at
	for s.at++; s.in[s.at] != '"'; s.at++ {
		if s.in[s.at] == '\\' {
			s.at++
		}
	}
	s.at++
	return s.in[from:s.at]
}
