package pt2

import (
	"slices"
	"strconv"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// slot is what a function's graph gets for an input.
type slot struct {
	typ     tensor.Type
	strides []int64
	value   *ir.Value // read as it is, such as a weight; nil: a parameter
	number  scalar    // where typ is none
}

// slots describes the caller's arguments to a function: weights are read by the function itself.
func (c *call) slots(args []passed) []slot {
	var out []slot
	for _, a := range args {
		s := slot{number: a.number}
		if a.ref != nil {
			s.typ, s.strides = a.ref.typ, a.ref.strides
			if v := a.ref.read(c.b); v.Weight != nil {
				s.value = v
			}
		}
		out = append(out, s)
	}
	return out
}

// params are the caller's values for the slots that are parameters.
func (c *call) params(args []passed, slots []slot) []*ir.Value {
	var out []*ir.Value
	for i, s := range slots {
		if s.isParam() {
			out = append(out, args[i].ref.read(c.b))
		}
	}
	return out
}

func (s slot) isParam() bool { return s.typ.DType != tensor.Invalid && s.value == nil }

// function is an imported graph as a function of the slots that are parameters.
type function struct {
	*ir.Func
	outputs []passed    // of the graph; the tensors among them are the results
	stores  []*storage  // of each slot; nil for a number
	initial []*ir.Value // the contents of each at the start
}

// written reports a slot whose argument the function changes in place.
func (f *function) written(i int) bool {
	return f.stores[i] != nil && f.stores[i].cur != f.initial[i]
}

// writes reports a function that changes any argument.
func (f *function) writes() bool {
	for i := range f.stores {
		if f.written(i) {
			return true
		}
	}
	return false
}

// tensorsOnly refuses a graph that gives anything else.
func (c *call) tensorsOnly(f *function) *function {
	if len(f.outputs) != len(f.Results) {
		c.unsupported("graph %s gives a number or None, wanted tensors alone", clip(f.Name))
	}
	return f
}

// importFunc makes a function of a graph. Its results are the tensors that the graph gives.
func (c *call) importFunc(a *argument, slots []slot) *function {
	g := c.graphOf(a)
	f := &function{Func: &ir.Func{Name: c.im.funcName(a.Graph.Name)}}
	b := &ir.Builder{Loc: c.b.Loc}
	var args []passed
	for i, s := range slots {
		if s.typ.DType == tensor.Invalid {
			f.stores, f.initial = append(f.stores, nil), append(f.initial, nil)
			args = append(args, passed{number: s.number})
			continue
		}
		v := s.value
		if v == nil {
			name := ""
			if i < len(g.Inputs) && g.Inputs[i].Tensor != nil {
				name = g.Inputs[i].Tensor.Name
			}
			v = f.AddParam(name, s.typ)
		}
		store := &storage{cur: v}
		f.stores, f.initial = append(f.stores, store), append(f.initial, v)
		args = append(args, passed{ref: &ref{store: store, typ: s.typ, strides: s.strides}})
	}
	f.outputs = c.importGraph(g, args, b, c.im.autocast)
	for _, o := range f.outputs {
		if o.ref != nil {
			f.Results = append(f.Results, o.ref.read(b))
		}
	}
	f.Body = b.Body
	return f
}

// funcName makes the graph's name unique, for readers of the text.
func (im *importer) funcName(base string) string {
	name := base
	for i := 1; im.funcs[name] || name == im.m.Func.Name || name == ""; i++ {
		name = base + "_" + strconv.Itoa(i)
	}
	im.funcs[name] = true
	return name
}

// checkAliases refuses a function that writes to an argument whose memory another argument shares: within it they are apart.
func (c *call) checkAliases(args []passed, written func(i int) bool) {
	for i, a := range args {
		if a.ref == nil || !written(i) {
			continue
		}
		if slices.ContainsFunc(args, func(b passed) bool { return b.ref != nil && b.ref != a.ref && b.ref.store == a.ref.store }) {
			c.unsupported("its graph writes to a tensor that shares memory with another argument")
		}
	}
}
