package pt2

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"tpuc/frontend/weights"
	"tpuc/ir"
	"tpuc/ir/diag"
	"tpuc/ir/tensor"
	"tpuc/ir/weight"
)

// origin is where memory comes from: a parameter, buffer, constant or user input. Names that share memory share one origin.
type origin struct {
	store   *storage
	initial *ir.Value // its contents at the start of a call
	file    string    // the entry of the archive that holds the storage; empty for inputs and for tensors without bytes
	names   []string
}

// placeholders declares the module's parameters and weights in the order of the signature.
func (im *importer) placeholders() {
	for _, s := range im.p.ep.GraphModule.Signature.Inputs {
		name, fqn, class, ok := s.tensor()
		switch {
		case ok:
			im.weight(name, fqn, class)
		case s.UserInput != nil:
			im.userInput(&s.UserInput.Arg)
		case s.ConstantInput != nil:
		case s.CustomObj != nil:
			im.errs.Addf(nil, "pt2/input", "input %q is a custom object, which is not supported", clip(s.CustomObj.Arg.Name))
		case s.Token != nil:
			im.errs.Addf(nil, "pt2/input", "the graph takes an effect token, which is not supported")
		default:
			im.errs.Addf(nil, "pt2/input", "the graph has an input of an unknown kind, wanted a parameter, buffer, constant or user input")
		}
	}
}

// tensor is an input of the graph that is a tensor of the archive: its name in the graph and in the archive, and its class.
func (s *inputSpec) tensor() (name, fqn string, class ir.Class, ok bool) {
	switch {
	case s.Parameter != nil:
		return s.Parameter.Arg.Name, s.Parameter.Name, ir.Parameter, true
	case s.Buffer != nil && s.Buffer.Persistent:
		return s.Buffer.Arg.Name, s.Buffer.Name, ir.Buffer, true
	case s.Buffer != nil:
		return s.Buffer.Arg.Name, s.Buffer.Name, ir.Constant, true
	case s.TensorConstant != nil:
		return s.TensorConstant.Arg.Name, s.TensorConstant.Name, ir.Constant, true
	}
	return "", "", 0, false
}

// placeholderType is the recorded type of an input of the graph.
func (im *importer) placeholderType(name string) (t tensor.Type, strides []int64, ok bool) {
	meta, found := im.g.TensorValues[name]
	if !found {
		im.errs.Addf(nil, "pt2/input", "the graph does not describe its input %q", clip(name))
		return t, nil, false
	}
	if _, twice := im.tensors[name]; twice {
		im.errs.Addf(nil, "pt2/input", "the graph has two inputs named %q", clip(name))
		return t, nil, false
	}
	defer func() { // sizes that depend on the data
		if e, unsupported := recover().(*ruleError); unsupported {
			im.errs.Addf(nil, "pt2/input", "input %q: %s", clip(name), e.msg)
			ok = false
		}
	}()
	t, strides, err := im.typeOf(&meta)
	if err != nil {
		im.errs.Addf(nil, "pt2/input", "input %q: %v", clip(name), err)
		return t, nil, false
	}
	return t, strides, true
}

// userInput declares a parameter; numbers are known from the binding.
func (im *importer) userInput(a *argument) {
	switch {
	case a.Tensor != nil:
		t, strides, ok := im.placeholderType(a.Tensor.Name)
		if !ok {
			return
		}
		v := im.m.Func.AddParam(a.Tensor.Name, t)
		o := &origin{store: &storage{cur: v}, initial: v, names: []string{v.Name}}
		im.define(v.Name, o, strides)
	case a.SymInt != nil && a.SymInt.Name != nil:
		if s, ok := im.symValue(*a.SymInt.Name); ok {
			im.scalars[*a.SymInt.Name] = s
		}
	}
}

// define makes the tensor of an input of the graph.
func (im *importer) define(name string, o *origin, strides []int64) {
	o.store.origin = o
	if !slices.Contains(im.origins, o) {
		im.origins = append(im.origins, o)
	}
	im.tensors[name] = &ref{store: o.store, typ: o.initial.Type, strides: strides}
}

// weight declares a tensor of the archive, or another name of one that is declared already.
func (im *importer) weight(name, fqn string, class ir.Class) {
	t, strides, ok := im.placeholderType(name)
	if !ok {
		return
	}
	stored, err := im.stored(fqn, class)
	if err != nil {
		im.errs.Add(err)
		return
	}
	if !stored.Type.Equal(t) {
		im.errs.Addf(nil, "pt2/weight", "tensor %q is %s in the archive, wanted %s as in its graph", clip(fqn), stored.Type, t)
		return
	}
	if o := im.byView[stored.View()]; o != nil && stored.View() != "" {
		im.alias(o, fqn, class)
		im.define(name, o, strides)
		return
	}
	w := &ir.Weight{Sym: im.symbol(fqn), Names: []string{fqn}, Class: class}
	w.Source = weight.Tensor{Name: fqn, T: t}
	if class == ir.Constant && !stored.Absent && !stored.Elsewhere {
		data, err := im.p.archive.LoadStored(stored)
		if err != nil {
			im.errs.Addf(nil, "pt2/weight", "constant %q: %v", clip(fqn), err)
			return
		}
		w.Data = data
		if t.Bytes() > maxConstant { // smaller ones become literals, unless the program writes to them
			digest, err := im.p.archive.Digest(fqn)
			if err != nil {
				im.errs.Addf(nil, "pt2/weight", "constant %q: %v", clip(fqn), err)
				return
			}
			w.Source = weight.Const{Digest: digest, T: t}
		}
	}
	v := im.m.AddWeight(w, t)
	o := &origin{store: &storage{cur: v}, initial: v, names: []string{fqn}}
	if !stored.Absent {
		o.file = stored.Storage
	}
	if view := stored.View(); view != "" {
		im.byView[view] = o
	}
	im.define(name, o, strides)
}

// stored finds a tensor in the section that its class is saved in, then in the other.
func (im *importer) stored(fqn string, class ir.Class) (weights.Stored, *diag.Error) {
	s, err := im.p.archive.Find(fqn)
	if err != nil {
		return s, diag.Errorf(nil, "pt2/weight", "the graph reads tensor %q, which the archive does not hold", clip(fqn))
	}
	if s.Err != nil {
		var d *diag.Error
		if !errors.As(s.Err, &d) {
			return s, diag.Errorf(nil, "pt2/weight", "tensor %q: %v", clip(fqn), s.Err)
		}
		e := *d
		e.Msg = strings.TrimPrefix(d.Msg, im.p.archive.Label()+": ") // the list is below the file's name already
		return s, &e
	}
	return s, nil
}

// alias adds a name to a weight. A buffer's own name goes before those of constants that were lifted from it, so that state is
// known by it; what is learned or saved by a checkpoint under one of its names is no constant.
func (im *importer) alias(o *origin, fqn string, class ir.Class) {
	w := o.initial.Weight
	if slices.Contains(w.Names, fqn) {
		return
	}
	if class < w.Class {
		w.Class = class
		w.Data = nil
		w.Names = append([]string{fqn}, w.Names...)
		w.Source = weight.Tensor{Name: fqn, T: w.Value.Type}
	} else {
		w.Names = append(w.Names, fqn)
	}
	o.names = w.Names
}

// symbol makes a unique symbol of the textual IR from a name.
func (im *importer) symbol(fqn string) string {
	base := strings.Map(func(r rune) rune {
		if r == '.' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, fqn)
	if base == "" || base[0] >= '0' && base[0] <= '9' || base[0] == '.' {
		base = "w" + base
	}
	sym := base
	for i := 2; im.syms[sym]; i++ {
		sym = fmt.Sprintf("%s_%d", base, i)
	}
	im.syms[sym] = true
	return sym
}

// byName finds the tensor of a weight or user input by the name that a mutation uses.
func (im *importer) byName(name string) *ref {
	for _, o := range im.origins {
		if slices.Contains(o.names, name) {
			return &ref{store: o.store, typ: o.initial.Type}
		}
	}
	return nil
}

// checkOverlap refuses writes to memory that tensors of other shapes or places in one storage may share: their reads would be stale.
func (im *importer) checkOverlap() error {
	var errs diag.List
	first := make(map[string]*origin)
	other := make(map[string]*origin)
	for _, o := range im.origins {
		if o.file == "" {
			continue
		}
		if first[o.file] == nil {
			first[o.file] = o
		} else if other[o.file] == nil {
			other[o.file] = o
		}
	}
	for _, o := range im.origins {
		if o.store.cur == o.initial || o.file == "" || other[o.file] == nil {
			continue
		}
		with := first[o.file]
		if with == o {
			with = other[o.file]
		}
		errs.Addf(nil, "pt2/overlap", "the program writes to %q, which shares its storage with %q under another shape or place; this is not supported",
			o.names[0], with.names[0]).Note("clone one of them before exporting")
	}
	return errs.Err()
}
