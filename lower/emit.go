package lower

import (
	"fmt"
	"strconv"
	"strings"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// maxAgain bounds what stands in a program more than once: functions that call others twice would make the text grow without end.
const maxAgain = 1 << 17

// emitter writes the body of the entry function; it implements ir.Emitter.
type emitter struct {
	values  map[*ir.Value]ir.Ref // of a function that is called more than once: those of the call in work
	lifted  map[*ir.Node]bool    // constants that became arguments
	body    strings.Builder
	indent  string
	called  map[*ir.Func]bool
	again   int // nodes of functions that stand in the program already
	next    int // number of the next value
	loc     string
	locs    map[string]int // layer paths in order of first use
	layers  []string
	returns []ir.Ref
}

func newEmitter() *emitter {
	return &emitter{values: make(map[*ir.Value]ir.Ref), lifted: make(map[*ir.Node]bool), called: make(map[*ir.Func]bool), locs: make(map[string]int), indent: "    "}
}

func (e *emitter) bind(v *ir.Value, r ir.Ref) { e.values[v] = r }

// Value implements ir.Emitter.
func (e *emitter) Value(v *ir.Value) ir.Ref {
	r, ok := e.values[v]
	if !ok {
		panic(fmt.Sprintf("value of type %s is used before it is emitted", v.Type))
	}
	return r
}

// nodeError ends a lowering. It is thrown as a panic, because nodes also stand in regions, which operators' rules emit.
type nodeError struct{ msg string }

func (e *nodeError) Error() string { return e.msg }

func throw(format string, args ...any) { panic(&nodeError{fmt.Sprintf(format, args...)}) }

// Call implements ir.Emitter.
func (e *emitter) Call(f *ir.Func, args []ir.Ref) []ir.Ref {
	if e.called[f] {
		e.again += 1 + len(f.Body)
	}
	if e.called[f] = true; e.again > maxAgain {
		throw("more than %d operations of functions that are called more than once, wanted fewer calls", maxAgain)
	}
	for i, p := range f.Params {
		e.bind(p, args[i])
	}
	loc := e.loc
	e.nodes(f)
	e.loc = loc
	out := make([]ir.Ref, len(f.Results))
	for i, r := range f.Results {
		out[i] = e.Value(r)
	}
	return out
}

// nodes lowers f's body.
func (e *emitter) nodes(f *ir.Func) {
	for _, n := range f.Body {
		if !e.lifted[n] {
			e.node(n)
		}
	}
}

// node lowers one node. A rule that returns other types than the node's is a bug of that rule.
func (e *emitter) node(n *ir.Node) {
	if n.Op.Lower == nil {
		throw("%s is composite: run expand first", n.Op.Name)
	}
	e.loc = ""
	if n.Loc != nil && n.Loc.Layer != "" {
		e.loc = fmt.Sprintf(" loc(#loc%d)", e.layer(n.Loc.Layer))
	}
	refs := n.Op.Lower(e, n, n.Attr)
	if len(refs) != len(n.Outs) {
		throw("%s lowers to %d results, wanted %d", n.Op.Name, len(refs), len(n.Outs))
	}
	for i, o := range n.Outs {
		if !refs[i].Type.Equal(o.Type) {
			throw("%s lowers result %d to %s, wanted %s", n.Op.Name, i, refs[i].Type, o.Type)
		}
		e.bind(o, refs[i])
	}
}

func (e *emitter) layer(path string) int {
	i, ok := e.locs[path]
	if !ok {
		i = len(e.layers)
		e.locs[path] = i
		e.layers = append(e.layers, path)
	}
	return i
}

// Emit implements ir.Emitter. Attributes are written as inherent properties in the generic form.
func (e *emitter) Emit(h ir.HLO) []ir.Ref {
	name := "%" + strconv.Itoa(e.next)
	e.next++
	refs := make([]ir.Ref, len(h.Out))
	if len(h.Out) == 1 {
		refs[0] = ir.Ref{Name: name, Type: h.Out[0]}
	} else {
		for i, t := range h.Out {
			refs[i] = ir.Ref{Name: name + "#" + strconv.Itoa(i), Type: t}
		}
		name += ":" + strconv.Itoa(len(h.Out))
	}
	w := &e.body
	if h.Verbatim != "" {
		w.WriteString(e.indent + name + " = " + strings.ReplaceAll(h.Verbatim, "%$", "%v"+strconv.Itoa(e.next)+"_") + e.loc + "\n")
		return refs
	}
	w.WriteString(e.indent + name + " = \"" + h.Name + "\"(" + names(h.Args) + ")")
	if len(h.Regions) > 0 {
		w.WriteString(" (")
		for i, r := range h.Regions {
			if i > 0 {
				w.WriteString(", ")
			}
			e.region(r)
		}
		w.WriteString(")")
	}
	if len(h.Attrs) > 0 {
		w.WriteString(" {" + strings.Join(h.Attrs, ", ") + "}")
	}
	w.WriteString(" : " + signature(refTypes(h.Args), h.Out) + e.loc + "\n")
	return refs
}

func (e *emitter) region(r ir.Region) {
	w := &e.body
	args := make([]ir.Ref, len(r.Args))
	params := make([]string, len(r.Args))
	for i, t := range r.Args {
		args[i] = ir.Ref{Name: fmt.Sprintf("%%r%d_%d", e.next, i), Type: t}
		params[i] = args[i].Name + ": " + t.MLIR()
	}
	w.WriteString("{\n")
	if len(params) > 0 {
		w.WriteString(e.indent + "^bb0(" + strings.Join(params, ", ") + "):\n")
	}
	outer := e.indent
	e.indent += "  "
	out := r.Body(e, args)
	w.WriteString(e.indent + "\"stablehlo.return\"(" + names(out) + ") : " + signature(refTypes(out), nil) + e.loc + "\n")
	e.indent = outer
	w.WriteString(e.indent + "}")
}

// module is the whole text around the body.
func (e *emitter) module(p *Program) []byte {
	var b strings.Builder
	b.WriteString("module @tpuc attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {\n")
	b.WriteString("  func.func public @main(")
	for i, a := range p.Args {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%%arg%d: %s", i, a.Type.MLIR())
		if a.Alias >= 0 {
			fmt.Fprintf(&b, " {tf.aliasing_output = %d : i32}", a.Alias)
		}
	}
	b.WriteString(") -> (" + types(p.Results) + ") {\n")
	b.WriteString(e.body.String())
	b.WriteString("    \"func.return\"(" + names(e.returns) + ") : " + signature(p.Results, nil) + "\n  }\n}\n")
	for i, l := range e.layers {
		fmt.Fprintf(&b, "#loc%d = loc(%s)\n", i, quote(l))
	}
	return []byte(b.String())
}

// quote is an MLIR string: quotes, backslashes and bytes outside printable ASCII as \XX.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			fmt.Fprintf(&b, "\\%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func names(refs []ir.Ref) string {
	s := make([]string, len(refs))
	for i, r := range refs {
		s[i] = r.Name
	}
	return strings.Join(s, ", ")
}

func refTypes(refs []ir.Ref) []tensor.Type {
	t := make([]tensor.Type, len(refs))
	for i, r := range refs {
		t[i] = r.Type
	}
	return t
}

func types(ts []tensor.Type) string {
	s := make([]string, len(ts))
	for i, t := range ts {
		s[i] = t.MLIR()
	}
	return strings.Join(s, ", ")
}

func signature(in, out []tensor.Type) string {
	if len(out) == 1 {
		return "(" + types(in) + ") -> " + out[0].MLIR()
	}
	return "(" + types(in) + ") -> (" + types(out) + ")"
}
