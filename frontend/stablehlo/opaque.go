package stablehlo

import (
	"strconv"
	"strings"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// opaque carries an operation through the IR as its text: operands by place, values of its regions by names that the lowering makes
// unique, aliases written out, locations left out.
func (c *call) opaque() []*ir.Value {
	dialect, _, _ := strings.Cut(c.o.name, ".")
	if dialect != "stablehlo" && dialect != "chlo" {
		c.unsupportedBut("the dialects stablehlo, chlo and func are read", "an operation of another dialect, wanted StableHLO")
	}
	if len(c.o.out) == 0 {
		c.unsupported("no results, wanted a value")
	}
	w := &opaqueText{c: c, places: make(map[string]int), args: nil}
	text := w.write()
	if c.p.bytes += int64(len(text)); c.p.bytes > maxLiteral {
		c.fail("more than %d bytes of constants and text, wanted at most that", int64(maxLiteral))
	}
	a := op.OpaqueAttr{Name: c.o.name, Text: text}
	types := make([]tensor.Type, len(c.o.out))
	for i, t := range c.o.out {
		types[i] = t.Type
	}
	a.Out = op.TypeList(types)
	if c.flag("has_side_effect") {
		return op.OpaqueEffect.MakeAll(c.b, a, w.args...)
	}
	return op.Opaque.MakeAll(c.b, a, w.args...)
}

// opaqueText rewrites the tokens of an operation.
type opaqueText struct {
	c      *call
	places map[string]int // operands by name
	args   []*ir.Value
	b      strings.Builder
}

func (w *opaqueText) write() string {
	c, s := w.c, w.c.p.syntax
	inner := definedIn(c.o.regions)
	for i, a := range c.o.args {
		if _, ok := w.places[a.name]; !ok {
			w.places[a.name] = len(w.args)
			w.args = append(w.args, c.args[i])
		}
	}
	var last token
	for i := c.o.first; i < c.o.last; i++ {
		t := s.tokens[i]
		if t.kind == tLoc {
			last = t
			continue
		}
		if i > c.o.first {
			if t.line != last.line {
				w.b.WriteByte('\n')
			} else if t.off > last.end {
				w.b.WriteByte(' ')
			}
		}
		last = t
		text := s.text(t)
		switch {
		case t.kind == tIdent && text == "call" || t.kind == tSym && !strings.Contains(c.o.name, "custom_call"):
			c.unsupported("a call inside of an operation that the IR has no word for, wanted operations")
		case t.kind == tValue && inner[nameOf(text)]:
			w.b.WriteString("%$" + text[1:])
		case t.kind == tValue:
			w.b.WriteString("%{" + strconv.Itoa(w.place(text)) + "}")
		case t.kind == tAngle && c.p.literal(text) != nil:
			w.b.WriteString(c.p.literal(text).Text())
		case c.o.tuple && i == c.o.last-1 && t.kind == tAngle: // its elements are the results
			w.b.WriteString("(" + strings.TrimSuffix(strings.TrimPrefix(text, "tuple<"), ">") + ")")
		case t.kind == tHash && s.aliases[text] != "":
			w.b.WriteString(s.aliases[text])
		default:
			w.b.WriteString(strings.ReplaceAll(text, "%", `\25`)) // in strings alone
		}
	}
	return w.b.String()
}

// place is the number of an operand, which a region may read too.
func (w *opaqueText) place(name string) int {
	i, ok := w.places[name]
	if !ok {
		v := w.c.p.value(w.c.s, operand{name, w.c.o.at})
		if v == nil {
			w.c.fail("value %s is not defined here, wanted one that is", name)
		}
		i = len(w.args)
		w.places[name] = i
		w.args = append(w.args, v)
	}
	return i
}

// definedIn are the values that regions define, without the numbers of results.
func definedIn(regions []*region) map[string]bool {
	out := make(map[string]bool)
	var visit func(r *region)
	visit = func(r *region) {
		for _, p := range r.params {
			out[nameOf(p.name)] = true
		}
		for _, o := range r.body {
			for _, name := range o.results {
				out[nameOf(name)] = true
			}
			for _, r := range o.regions {
				visit(r)
			}
		}
	}
	for _, r := range regions {
		visit(r)
	}
	return out
}

// nameOf is a value's name without the number of a result.
func nameOf(s string) string {
	name, _, _ := strings.Cut(s, "#")
	return name
}
