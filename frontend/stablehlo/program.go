package stablehlo

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tpuc/ir"
	"tpuc/ir/diag"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// program builds the module of the entry function. With errors the result is of no use.
func (p *importer) program() *Program {
	m := &ir.Module{Func: &ir.Func{Name: "main"}}
	prog := &Program{Module: m}
	entry := p.entry()
	if entry == nil {
		return prog
	}
	p.moduleAttributes()
	f := m.Func
	s := newScope(nil)
	used := make(map[string]int)
	for i, q := range entry.params {
		if q.typ.bad != "" {
			e := p.errorAt(entry.at, "stablehlo/type", "parameter %d is %s, wanted %s", i, clip(q.typ.text), q.typ.bad)
			if q.typ.instead != "" {
				e.Note("%s", q.typ.instead)
			}
			s.set(q.name, nil)
			continue
		}
		name := unique(used, p.paramName(q, i))
		s.set(q.name, f.AddParam(name, q.typ.Type))
		prog.Inputs = append(prog.Inputs, name)
	}
	b := &ir.Builder{}
	results := p.inline(b, s, entry.body)
	entry.results = elementsOf(entry.results)
	if results == nil || len(p.errs) > 0 {
		return prog
	}
	if len(results) != len(entry.results) {
		p.errorAt(entry.at, "stablehlo/results", "%d values returned, wanted %d as the function says", len(results), len(entry.results))
		return prog
	}
	f.Body, f.Results = b.Body, results
	used = make(map[string]int)
	for i, r := range entry.results {
		if r.bad != "" || !r.Equal(results[i].Type) {
			p.errorAt(entry.at, "stablehlo/results", "result %d is %s, wanted %s as the function says", i, results[i].Type, r.text)
			return prog
		}
		name := fmt.Sprintf("output_%d", i)
		if i < len(entry.names) {
			if info := entry.names[i].word("jax.result_info"); info != "" {
				name = info
			}
		}
		prog.Outputs = append(prog.Outputs, unique(used, name))
	}
	p.aliases(f, entry)
	prog.Notes = slices.Sorted(maps.Keys(p.notes))
	return prog
}

// entry is the function main, or the only public one.
func (p *importer) entry() *function {
	var public []*function
	for _, f := range p.syntax.funcs {
		if p.funcs[f.name] != nil {
			p.errorAt(f.at, "stablehlo/function", "function @%s is defined twice, wanted once", f.name)
		}
		p.funcs[f.name] = f
		if f.public {
			public = append(public, f)
		}
	}
	if f := p.funcs["main"]; f != nil {
		return f
	}
	if len(public) == 1 {
		return public[0]
	}
	if len(p.errs) == 0 {
		p.add(diag.Errorf(&diag.Loc{File: p.file}, "stablehlo/function", "%d public functions, wanted one, or one named main", len(public)))
	}
	return nil
}

// moduleAttributes looks at what the module says of devices.
func (p *importer) moduleAttributes() {
	for _, name := range []string{"mhlo.num_partitions", "mhlo.num_replicas"} {
		if a, ok := p.syntax.module.find(name); ok && a.Num != nil && *a.Num != "1" {
			p.note("%s is %s: shardings are left out, the program is compiled for one device", name, *a.Num)
		}
	}
}

// paramName is the name that JAX gives an argument, in its attributes or its location.
func (p *importer) paramName(q param, i int) string {
	for _, key := range []string{"jax.arg_info", "tf_saved_model.index_path", "name"} {
		if s := q.attrs.word(key); s != "" {
			return s
		}
	}
	if strings.HasPrefix(q.loc, `"`) || strings.HasPrefix(q.loc, "#") {
		if l := p.location(q.loc); l != nil && l.Layer != "" && l.File == "" {
			return l.Layer
		}
	}
	return fmt.Sprintf("input_%d", i)
}

// unique makes a name that is not used.
func unique(used map[string]int, name string) string {
	out := name
	for used[out] > 0 {
		out = fmt.Sprintf("%s_%d", name, used[name])
		used[name]++
	}
	used[out]++
	return out
}

// aliases makes results that take a donated argument's memory its new contents.
func (p *importer) aliases(f *ir.Func, entry *function) {
	taken := make(map[int]bool)
	for i, q := range entry.params {
		a, ok := q.attrs.find("tf.aliasing_output")
		if !ok || a.Num == nil {
			continue
		}
		var r int
		if _, err := fmt.Sscan(*a.Num, &r); err != nil || r < 0 || r >= len(f.Results) || taken[r] {
			p.errorAt(entry.at, "stablehlo/alias", "parameter %d takes the memory of output %s, wanted one of %d, each once", i, *a.Num, len(f.Results))
			continue
		}
		taken[r] = true
		if f.Results[r].Type.Equal(f.Params[i].Type) {
			f.Updates = append(f.Updates, ir.Update{Target: f.Params[i], New: f.Results[r]})
		}
	}
}

// scope are the values that operations see, by name. A region's scope is inside the one around it.
type scope struct {
	values map[string]*ir.Value // nil: an operation that failed
	tuples map[string][]*ir.Value
	outer  *scope
}

func newScope(outer *scope) *scope {
	return &scope{values: make(map[string]*ir.Value), tuples: make(map[string][]*ir.Value), outer: outer}
}

// tuple gives the elements of a tuple.
func (s *scope) tuple(name string) ([]*ir.Value, bool) {
	for ; s != nil; s = s.outer {
		if t, ok := s.tuples[name]; ok {
			return t, true
		}
	}
	return nil, false
}

func (s *scope) set(name string, v *ir.Value) { s.values[name] = v }

func (s *scope) get(name string) (*ir.Value, bool) {
	for ; s != nil; s = s.outer {
		if v, ok := s.values[name]; ok {
			return v, true
		}
	}
	return nil, false
}

// inline appends a region's operations to b and gives what it returns, or nil where an operation failed. Parameters are bound already.
func (p *importer) inline(b *ir.Builder, s *scope, r *region) []*ir.Value {
	if p.depth++; p.depth > 4*maxDepth {
		if len(r.body) > 0 {
			p.errorAt(r.body[0].at, "stablehlo/depth", "calls and regions are nested more than %d deep, wanted less", 4*maxDepth)
		}
		return nil
	}
	defer func() { p.depth-- }()
	for i, o := range r.body {
		if p.full {
			return nil
		}
		if o.name == "stablehlo.return" || o.name == "func.return" {
			if i != len(r.body)-1 {
				p.errorAt(o.at, "stablehlo/return", "operations behind a return, wanted it last")
				return nil
			}
			out := make([]*ir.Value, 0, len(o.args))
			for _, a := range o.args {
				if t, ok := s.tuple(a.name); ok {
					out = append(out, t...)
					continue
				}
				v := p.value(s, a)
				if v == nil {
					return nil
				}
				out = append(out, v)
			}
			return out
		}
		p.apply(b, s, o)
	}
	if len(p.errs) == 0 {
		at := int32(0)
		if len(r.body) > 0 {
			at = r.body[len(r.body)-1].at
		}
		p.errorAt(at, "stablehlo/return", "a region ends without a return, wanted one")
	}
	return nil
}

// value resolves a use. Values of operations that failed are nil without another error.
func (p *importer) value(s *scope, a operand) *ir.Value {
	v, ok := s.get(a.name)
	if !ok {
		name, _, _ := strings.Cut(a.name, "#")
		if zero, found := s.get(name + "#0"); found && name == a.name {
			return zero // %0 of %0:1
		}
		if single, found := s.get(name); found && a.name == name+"#0" {
			return single
		}
		if _, ok := s.tuple(a.name); ok {
			p.errorAt(a.at, "stablehlo/value", "value %s is a tuple, wanted a tensor", a.name)
			return nil
		}
		if !p.broken[name] {
			p.errorAt(a.at, "stablehlo/value", "value %s is not defined here, wanted one that is", a.name)
		}
		return nil
	}
	return v
}

// opError is thrown by a rule: the operation cannot be taken.
type opError struct {
	code, msg string
	notes     []string
}

// apply builds one operation. What goes wrong is reported at its place, and its results are values that failed.
func (p *importer) apply(b *ir.Builder, s *scope, o *operation) {
	c := &call{p: p, b: b, s: s, o: o}
	before := len(b.Body)
	b.Loc = p.locate(o)
	out, err := c.run()
	if err != nil {
		b.Body = b.Body[:before]
		err.Loc = p.place(o.at)
		if l := b.Loc; l != nil && (l.Layer != "" || l.File != baseName(p.file)) {
			err.Note("the operation comes from %s", l)
		}
		p.add(err)
	}
	for i, name := range o.results {
		switch {
		case c.tuple != nil && len(o.results) == 1:
			s.tuples[name] = c.tuple
		case i < len(out):
			s.set(name, out[i])
		default:
			s.set(name, nil)
		}
	}
}

// constantOf is the literal behind a value, looking through what repeats one element; nil for none.
func constantOf(v *ir.Value) *tensor.Tensor {
	for v != nil && v.Def != nil {
		switch n := v.Def; {
		case op.Constant.Is(n):
			return op.Constant.Attr(n).Value
		case op.Broadcast.Is(n) && n.Args[0].Type.Elements() == 1, op.Reshape.Is(n) && n.Args[0].Type.Elements() == 1, op.Convert.Is(n) && n.Args[0].Type.Equal(v.Type):
			v = n.Args[0]
		default:
			return nil
		}
	}
	return nil
}
