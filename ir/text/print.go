// Package text owns the textual form of the IR: Print writes a module, Parse reads it back, and print-parse-print is a fixed point.
// docs/ir.md describes the language. It never knows single operators: attributes are written and read through their struct tags.
// The contents of weights are not part of the text, so a parsed constant has a digest but no Data.
package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tpuc/ir"
	"tpuc/ir/diag"
	"tpuc/ir/weight"
)

// Print is m as text. Results of nodes are numbered in order, functions and parameters keep their names (made unique with a suffix where
// two are equal), equal locations share one entry of the table at the end. A value that the module does not define prints as "%?".
func Print(m *ir.Module) string {
	p := &printer{names: make(map[*ir.Value]string), locs: make(map[diag.Loc]int)}
	if m.Mesh != nil {
		p.mesh(m.Mesh)
	}
	for _, w := range m.Weights {
		p.weight(w)
	}
	funcs := m.Functions()
	p.nameFuncs(funcs)
	for _, f := range funcs {
		p.function(f)
	}
	for i, l := range p.table {
		p.loc(i+1, l)
	}
	return p.b.String()
}

// Node is n alone on one line, with the types of its arguments in place of their numbers. It is for messages and is not parsed.
func Node(n *ir.Node) string {
	var b strings.Builder
	b.WriteString(n.Op.Name)
	for i, a := range n.Args {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte(' ')
		switch {
		case a == nil:
			b.WriteString("%?")
		case a.Weight != nil:
			b.WriteString("@" + name(a.Weight.Sym) + ": " + a.Type.String())
		default:
			b.WriteString(a.Type.String())
		}
	}
	writeAttrs(&b, n.Attr, nil)
	for i, o := range n.Outs {
		b.WriteString([]string{" : ", ", "}[min(i, 1)] + o.Type.String())
	}
	return b.String()
}

// printer holds the names given so far and the table of locations, which grows with the nodes.
type printer struct {
	b     strings.Builder
	names map[*ir.Value]string // of parameters and results, with the %
	funcs map[*ir.Func]string
	next  int              // number of the function's next result
	locs  map[diag.Loc]int // number of each location, from 1
	table []diag.Loc
}

func (p *printer) mesh(m *ir.Mesh) {
	p.b.WriteString("mesh {")
	for i, a := range m.Axes {
		p.comma(i)
		p.b.WriteString(axisName(a.Name) + "=" + strconv.FormatInt(a.Size, 10))
	}
	p.b.WriteString("}\n")
}

// weight writes the declaration. The short source, a quoted name, stands for the first of the names too.
func (p *printer) weight(w *ir.Weight) {
	if w.Mutable {
		p.b.WriteString("state ")
	}
	p.b.WriteString(w.Class.String() + " @" + name(w.Sym) + " = ")
	names := w.Names
	switch s := w.Source.(type) {
	case nil:
		p.b.WriteString("none")
	case weight.Tensor:
		if len(names) > 0 && names[0] == s.Name {
			names = names[1:]
			p.b.WriteString(strconv.Quote(s.Name))
		} else {
			p.b.WriteString("tensor(" + strconv.Quote(s.Name) + ")")
		}
	default:
		p.b.WriteString(s.String())
	}
	for _, n := range names {
		p.b.WriteString(", " + strconv.Quote(n))
	}
	if w.Value != nil {
		p.b.WriteString(" : ")
		p.typ(w.Value)
	}
	p.b.WriteByte('\n')
}

// nameFuncs names the functions; the entry, the last of them, chooses first.
func (p *printer) nameFuncs(funcs []*ir.Func) {
	p.funcs = make(map[*ir.Func]string, len(funcs))
	entryFirst := slices.Clone(funcs)
	slices.Reverse(entryFirst)
	names := uniqueNames(len(funcs), "func", func(i int) string { return entryFirst[i].Name })
	for i, f := range entryFirst {
		p.funcs[f] = names[i]
	}
}

func (p *printer) function(f *ir.Func) {
	p.next = 0
	p.b.WriteString("func @" + name(p.funcs[f]) + "(")
	names := uniqueNames(len(f.Params), "arg", func(i int) string { return f.Params[i].Name })
	for i, v := range f.Params {
		p.comma(i)
		p.names[v] = "%" + name(names[i])
		p.b.WriteString(p.names[v] + ": ")
		p.typ(v)
	}
	p.b.WriteString(") {\n")
	for _, n := range f.Body {
		p.node(n)
	}
	p.b.WriteString("  return")
	for i, v := range f.Results {
		p.item(i)
		p.b.WriteString(p.ref(v))
	}
	for i, u := range f.Updates {
		p.item(len(f.Results) + i)
		p.b.WriteString(p.ref(u.Target) + " = " + p.ref(u.New))
	}
	p.b.WriteString("\n}\n")
}

func (p *printer) node(n *ir.Node) {
	p.b.WriteString("  ")
	for i, o := range n.Outs {
		p.names[o] = "%" + strconv.Itoa(p.next)
		p.next++
		p.comma(i)
		p.b.WriteString(p.names[o])
	}
	p.b.WriteString(" = " + n.Op.Name)
	for i, a := range n.Args {
		p.item(i)
		p.b.WriteString(p.ref(a))
	}
	writeAttrs(&p.b, n.Attr, p.funcs)
	p.b.WriteString(" : ")
	for i, o := range n.Outs {
		p.comma(i)
		p.typ(o)
	}
	if n.Loc != nil && *n.Loc != (diag.Loc{}) {
		at := *n.Loc
		if p.locs[at] == 0 {
			p.table = append(p.table, at)
			p.locs[at] = len(p.table)
		}
		p.b.WriteString(" #" + strconv.Itoa(p.locs[at]))
	}
	p.b.WriteByte('\n')
}

// loc leaves out what is unknown. Source text without a file keeps an empty file name, or it would read as the layer.
func (p *printer) loc(i int, l diag.Loc) {
	fmt.Fprintf(&p.b, "#%d =", i)
	if l.Layer != "" {
		p.b.WriteString(" " + strconv.Quote(l.Layer))
	}
	if l.File != "" || l.Line != 0 || l.Source != "" {
		p.b.WriteString(" at " + strconv.Quote(l.File))
		if l.Line != 0 {
			p.b.WriteString(":" + strconv.Itoa(l.Line))
		}
		if l.Col != 0 {
			p.b.WriteString(":" + strconv.Itoa(l.Col))
		}
		if l.Source != "" {
			p.b.WriteString(" " + strconv.Quote(l.Source))
		}
	}
	p.b.WriteByte('\n')
}

// typ writes the type of v and, where it has one, its sharding.
func (p *printer) typ(v *ir.Value) {
	p.b.WriteString(v.Type.String())
	if v.Sharding != nil {
		p.b.WriteString(" " + Sharding(v.Sharding))
	}
}

// ref is a value where it is used.
func (p *printer) ref(v *ir.Value) string {
	if v != nil && v.Weight != nil {
		return "@" + name(v.Weight.Sym)
	}
	if s, ok := p.names[v]; ok {
		return s
	}
	return "%?"
}

// comma separates list items, item also sets the first one off from a word.
func (p *printer) comma(i int) {
	if i > 0 {
		p.b.WriteString(", ")
	}
}

func (p *printer) item(i int) {
	p.b.WriteString([]string{" ", ", "}[min(i, 1)])
}

// Sharding is such as "<dp+tp,_>", empty for none.
func Sharding(s *ir.Sharding) string {
	if s == nil {
		return ""
	}
	parts := make([]string, len(s.Dims))
	for i, axes := range s.Dims {
		if len(axes) == 0 {
			parts[i] = "_"
			continue
		}
		for j, a := range axes {
			if j > 0 {
				parts[i] += "+"
			}
			parts[i] += axisName(a)
		}
	}
	return "<" + strings.Join(parts, ",") + ">"
}

// uniqueNames are texts for n things: the own name of the first that has it, otherwise one with the first free number. One without a
// name is called by kind and its position.
func uniqueNames(n int, kind string, nameOf func(i int) string) []string {
	own, taken := make(map[string]bool), make(map[string]bool)
	for i := range n {
		own[nameOf(i)] = true
	}
	out := make([]string, n)
	for i := range n {
		base := nameOf(i)
		if base == "" {
			base = kind + strconv.Itoa(i)
		}
		got := base
		for k := 1; taken[got] || got != nameOf(i) && own[got]; k++ {
			got = base + "_" + strconv.Itoa(k)
		}
		taken[got] = true
		out[i] = got
	}
	return out
}

// name is s as an identifier, quoted where it is none.
func name(s string) string {
	if isIdent(s) {
		return s
	}
	return strconv.Quote(s)
}

// axisName is a mesh axis in a sharding, where a lone underscore means "not split".
func axisName(s string) string {
	if s == "_" {
		return `"_"`
	}
	return name(s)
}

// isIdent reports what the lexer reads as one Ident: a letter or underscore, then letters, digits and underscores, in ASCII.
func isIdent(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
