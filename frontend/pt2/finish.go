package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/diag"
	"tpuc/ir/op"
)

// finish reads the outputs, declares the updates, and turns small constants into literals.
func (im *importer) finish(out *Imported) error {
	f := im.m.Func
	im.b.Loc = nil
	if len(im.vmaps) > 0 {
		return diag.Errorf(nil, "pt2/vmap", "the graph ends within a region of vmap, wanted its end")
	}
	results, err := im.userOutputs(out)
	if err != nil {
		return err
	}
	if err := im.explicitMutations(); err != nil {
		return err
	}
	updates := make(map[*ir.Value]int)
	written := make(map[*storage]int)
	if err := im.checkOverlap(); err != nil {
		return err
	}
	for _, o := range im.origins {
		s := o.store
		if s.cur == o.initial {
			continue
		}
		if w := o.initial.Weight; w != nil {
			w.Mutable = true
		}
		updates[s.cur] = len(f.Updates)
		written[s] = len(f.Updates)
		f.Updates = append(f.Updates, ir.Update{Target: o.initial, New: s.cur})
	}
	f.Body = im.b.Body
	for i := range out.Inputs {
		if r := im.tensors[out.Inputs[i].Name]; out.Inputs[i].Index >= 0 && r != nil {
			if u, ok := written[r.store]; ok {
				out.Inputs[i].Updated = u
			}
		}
	}
	for i := range out.Outputs {
		if x := out.Outputs[i].Index; x >= 0 {
			if u, ok := updates[results[x]]; ok {
				out.Outputs[i].Updated = u
			}
		}
	}
	im.inlineConstants()
	return nil
}

// userOutputs fills in the module's results and the leaves of the signature.
func (im *importer) userOutputs(out *Imported) ([]*ir.Value, error) {
	f := im.m.Func
	for _, leaf := range im.p.Inputs {
		b := BoundLeaf{Leaf: leaf, Index: -1, Updated: -1}
		if leaf.Kind == Tensor {
			for _, v := range f.Params {
				if v.Name == leaf.Name {
					b.Index, b.Type = v.Index, v.Type
				}
			}
		}
		out.Inputs = append(out.Inputs, b)
	}
	for _, leaf := range im.p.Outputs {
		b := BoundLeaf{Leaf: leaf, Index: -1, Updated: -1}
		switch leaf.Kind {
		case Tensor:
			r, ok := im.tensors[leaf.Name]
			if !ok {
				return nil, diag.Errorf(nil, "pt2/output", "output %d is tensor %%%s, which the graph does not make", leaf.Ordinal, clip(leaf.Name))
			}
			v := r.read(im.b)
			b.Index, b.Type = len(f.Results), v.Type
			f.Results = append(f.Results, v)
		case Number:
			if _, _, open := im.openNumber(leaf.Name); open {
				return nil, diag.Errorf(nil, "pt2/output", "output %d is a number that depends on the data, which is not supported", leaf.Ordinal)
			} else if s, ok := im.scalars[leaf.Name]; ok && leaf.Name != "" {
				b.Value = s.String()
			} else if s, ok := im.symValue(leaf.Name); ok {
				b.Value = s.String()
			} else if im.poison[leaf.Name] || im.unknown[leaf.Name] {
				return nil, diag.Errorf(nil, "pt2/output", "output %d is a number that depends on the data, which is not supported", leaf.Ordinal)
			}
		}
		out.Outputs = append(out.Outputs, b)
	}
	return slices.Clone(f.Results), nil
}

// explicitMutations applies the output specifications of a functional graph, whose user outputs are already read.
func (im *importer) explicitMutations() error {
	var errs diag.List
	var writes []func() // after all reads: a new value may be another target's old one
	set := func(target, arg string) {
		r, ok := im.tensors[arg]
		t := im.byName(target)
		switch {
		case !ok || t == nil:
			errs.Addf(nil, "pt2/mutation", "the graph updates %q by %%%s, but one of them does not exist", clip(target), clip(arg))
		case r.typ.DType.IsComplex() != t.typ.DType.IsComplex() || !broadcasts(r.typ.Dims, t.typ.Dims):
			errs.Addf(nil, "pt2/mutation", "the graph updates %q of type %s by %%%s of type %s", clip(target), t.typ, clip(arg), r.typ)
		default: // as copy_ does, which decomposes to nothing
			v := op.BroadcastTo(im.b, op.Cast(im.b, r.read(im.b), t.typ.DType), t.typ.Dims)
			writes = append(writes, func() { t.write(im.b, v) })
		}
	}
	for _, s := range im.p.ep.GraphModule.Signature.Outputs {
		switch {
		case s.BufferMutation != nil:
			set(s.BufferMutation.Name, s.BufferMutation.Arg.Name)
		case s.ParameterMutation != nil:
			set(s.ParameterMutation.Name, s.ParameterMutation.Arg.Name)
		case s.UserInputMutation != nil:
			set(s.UserInputMutation.Name, s.UserInputMutation.Arg.Name)
		}
	}
	for _, w := range writes {
		w()
	}
	return errs.Err()
}

// broadcasts reports that a tensor of dims from can be repeated to dims to.
func broadcasts(from, to []int64) bool {
	lead := len(to) - len(from)
	if lead < 0 {
		return false
	}
	for i, n := range from {
		if n != 1 && n != to[lead+i] {
			return false
		}
	}
	return true
}

// inlineConstants replaces small constants that the program never writes by literals at the front of the bodies that read them.
func (im *importer) inlineConstants() {
	var literals []*ir.Weight
	kept := im.m.Weights[:0]
	for _, w := range im.m.Weights {
		if w.Class != ir.Constant || w.Mutable || w.Data == nil || w.Value.Type.Bytes() > maxConstant {
			kept = append(kept, w)
			continue
		}
		literals = append(literals, w)
	}
	im.m.Weights = kept
	if len(literals) == 0 {
		return
	}
	for _, f := range im.m.Functions() {
		inlineInto(f, literals)
	}
}

// inlineInto puts those of the literals that f reads at the front of its body.
func inlineInto(f *ir.Func, literals []*ir.Weight) {
	uses := f.Uses()
	repl := make(map[*ir.Value]*ir.Value)
	front := &ir.Builder{}
	for _, w := range literals {
		if uses[w.Value] > 0 {
			repl[w.Value] = op.Constant.Make(front, op.ConstantAttr{Value: w.Data})
		}
	}
	for _, n := range f.Body {
		for i, a := range n.Args {
			if r, ok := repl[a]; ok {
				n.Args[i] = r
			}
		}
	}
	f.Roots(func(v **ir.Value) {
		if r, ok := repl[*v]; ok {
			*v = r
		}
	})
	f.Body = append(front.Body, f.Body...)
}
