package pt2

import (
	"fmt"
	"slices"
	"strings"

	"tpuc/ir/diag"
)

const codeUnsupported = "pt2/unsupported"

// DoNote begins the note of an error that says what to do.
const DoNote = "to do: "

// maxPlaces is how many further places of one operator an error lists.
const maxPlaces = 3

// lacking gathers the nodes without a rule: one entry for an operator, its reason and its line of source, with a count and the
// first places.
type lacking struct {
	entries []*lack
	byKey   map[string]*lack
}

type lack struct {
	target, reason string
	loc            *diag.Loc
	types          string
	notes          []string
	count          int
	places         []string
}

// add counts a node that cannot be imported; reason is empty for an operator without any rule.
func (l *lacking) add(c *call, reason string, notes ...string) {
	loc := c.b.Loc
	key := fmt.Sprintf("%s\x00%s\x00%s\x00%d", c.node.Target, reason, loc.File, loc.Line)
	e := l.byKey[key]
	if e == nil {
		if l.byKey == nil {
			l.byKey = make(map[string]*lack)
		}
		e = &lack{target: clip(c.node.Target), reason: reason, loc: loc, types: c.signature(), notes: notes}
		l.byKey[key] = e
		l.entries = append(l.entries, e)
	} else if len(e.places) < maxPlaces && loc.Layer != "" && loc.Layer != e.loc.Layer && !slices.Contains(e.places, loc.Layer) {
		e.places = append(e.places, loc.Layer)
	}
	e.count++
}

// signature is the operator's arguments by type, such as "(self: f32[4,4], some: bool)".
func (c *call) signature() string {
	var parts []string
	one := func(name string) string {
		meta, ok := c.im.g.TensorValues[name]
		if !ok {
			if r := c.im.tensors[name]; r != nil && !r.poison {
				return r.typ.String()
			}
			return "tensor"
		}
		leaf, err := c.im.p.leaf(&argument{Tensor: &nameRef{name}})
		if err != nil {
			return fmt.Sprintf("tensor of dtype number %d", meta.DType)
		}
		dims := make([]string, len(leaf.Dims))
		for i, d := range leaf.Dims {
			dims[i] = d.String()
		}
		return leaf.DType.String() + "[" + strings.Join(dims, ",") + "]"
	}
	for _, in := range c.node.Inputs {
		a := in.Arg
		text := a.kind()
		switch {
		case a.Tensor != nil:
			text = one(a.Tensor.Name)
		case a.Tensors != nil:
			types := make([]string, 0, len(*a.Tensors))
			for _, t := range *a.Tensors {
				types = append(types, one(t.Name))
			}
			text = "(" + strings.Join(types, ", ") + ")"
		case a.OptionalTensors != nil:
			types := make([]string, 0, len(*a.OptionalTensors))
			for _, t := range *a.OptionalTensors {
				if t.Tensor == nil {
					types = append(types, "None")
					continue
				}
				types = append(types, one(t.Tensor.Name))
			}
			text = "(" + strings.Join(types, ", ") + ")"
		case a.None != nil:
			continue
		case a.String != nil:
			text = fmt.Sprintf("%q", clip(*a.String))
		case a.Int != nil:
			text = fmt.Sprint(*a.Int)
		case a.Bool != nil:
			text = fmt.Sprint(*a.Bool)
		case a.Float != nil:
			text = fmt.Sprint(float64(*a.Float))
		case a.Ints != nil:
			text = strings.ReplaceAll(fmt.Sprint(*a.Ints), " ", ",")
		}
		if in.Name != "" {
			text = in.Name + ": " + text
		}
		parts = append(parts, text)
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// list renders the entries as errors.
func (l *lacking) list() diag.List {
	var errs diag.List
	for _, e := range l.entries {
		msg := fmt.Sprintf("operator %s is not supported", e.target)
		if e.reason != "" {
			msg += ": " + e.reason
		}
		err := errs.Addf(e.loc, codeUnsupported, "%s", msg)
		err.Note("arguments %s", e.types)
		err.Notes = append(err.Notes, e.notes...)
		if e.count > 1 {
			more := fmt.Sprintf("%d times from this line", e.count)
			if len(e.places) > 0 {
				more += ", also in " + strings.Join(e.places, ", ")
			}
			err.Note("%s", more)
		}
		if do := advice(e.target, e.reason); do != "" {
			err.Note("%s%s", DoNote, do)
		}
	}
	return errs
}

// String is the number as Python writes it.
func (s scalar) String() string {
	switch s.kind {
	case kindBool:
		return map[bool]string{false: "False", true: "True"}[s.i != 0]
	case kindInt:
		return fmt.Sprint(s.i)
	case kindComplex:
		return fmt.Sprint(complex(s.f, s.im))
	}
	return fmt.Sprint(s.f)
}
