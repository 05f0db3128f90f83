package bytecode

import (
	"slices"
	"strconv"
	"strings"
)

// attribute is what an attribute's encoding holds. VHLO's attributes are those of builtin and stablehlo that they become.
type attribute any

type (
	arrayAttr  []attribute
	dictAttr   []named
	stringAttr string
	symbolAttr []string // @a::@b
	unitAttr   struct{}
	placement  struct{} // where the parts of a tensor lie: an attribute of the dialect sdy, which is left out
	boolAttr   bool
	textAttr   string // an attribute of a dialect, an enum, or any attribute that the file holds as text
	intAttr    struct {
		typ   *typ
		value int64
	}
	floatAttr struct {
		typ  *typ
		bits uint64
	}
	numbersAttr struct { // array<i64: 1, 2>
		elem  string
		words []string
	}
)

// named is an attribute with its name.
type named struct {
	name  string
	value attribute
}

// typ is a type: its text, and what reading elements of it needs.
type typ struct {
	text   string
	bits   int // of a number, or of a part of a complex one; 0: none
	float  bool
	signed bool    // integers that print with a sign: signless ones too
	parts  int     // of an element: 2 for complex numbers
	dims   []int64 // of a tensor
	elem   *typ    // of a tensor
	inner  []*typ  // of a function: its parameters
	outer  []*typ  // its results
}

// dynamic is an extent that is not fixed.
const dynamic = -1 << 63

// entry is an attribute or a type of the file, read where something needs it.
type entry struct {
	dialect  string
	pos, end int
	custom   bool // encoded by its dialect, otherwise text
	busy     bool // while it is read: it cannot contain itself
	height   int  // how deep it is nested inside
	attr     attribute
	typ      *typ
}

// codec reads the encodings of a dialect's attributes and types.
type codec struct {
	attr func(d *decoder, r *reader) attribute
	typ  func(d *decoder, r *reader) *typ // nil: the dialect has none
}

// codecOf is the codec of a dialect.
func codecOf(dialect string) (codec, bool) {
	switch dialect {
	case "builtin":
		return codec{builtinAttr, builtinType}, true
	case "vhlo":
		return codec{vhloAttr, vhloType}, true
	case "stablehlo":
		return codec{stablehloAttr, stablehloType}, true
	case "chlo":
		return codec{chloAttr, nil}, true
	case "sdy":
		return codec{sdyAttr, nil}, true
	}
	return codec{}, false
}

// attr reads the number of an attribute and gives the attribute.
func (d *decoder) attr(r *reader) attribute {
	return d.attrAt(uint64(r.index("attribute", len(d.attrs))))
}

func (d *decoder) attrAt(i uint64) attribute {
	e := &d.attrs[i]
	if e.attr == nil {
		d.read(e, func(r *reader) {
			if !e.custom {
				e.attr = textAttr(d.asm(r))
				return
			}
			k, ok := codecOf(e.dialect)
			if !ok {
				r.fail("an attribute of dialect %s, wanted one of builtin, vhlo, stablehlo, chlo and sdy", quote(e.dialect))
			}
			e.attr = k.attr(d, r)
		})
	}
	d.height = max(d.height, e.height)
	return e.attr
}

// typ reads the number of a type and gives the type.
func (d *decoder) typ(r *reader) *typ {
	return d.typeAt(r.index("type", len(d.types)))
}

func (d *decoder) typeAt(i int) *typ {
	e := &d.types[i]
	if e.typ == nil {
		d.read(e, func(r *reader) {
			if !e.custom {
				e.typ = scalar(d.asm(r))
				return
			}
			k, _ := codecOf(e.dialect)
			if k.typ == nil {
				r.fail("a type of dialect %s, wanted one of builtin, vhlo and stablehlo", quote(e.dialect))
			}
			e.typ = k.typ(d, r)
		})
		d.spend(len(e.typ.text))
	}
	d.height = max(d.height, e.height)
	return e.typ
}

// read runs f on an entry's bytes, all of which it must take.
func (d *decoder) read(e *entry, f func(r *reader)) {
	r := &reader{data: d.attrTypes.data, pos: e.pos, end: e.end, section: d.attrTypes.section, start: d.attrTypes.start}
	if e.busy {
		r.fail("an attribute or type that contains itself, wanted an end")
	}
	d.depth++
	deep := func(n int) {
		if n > maxDepth {
			r.fail("attributes and types that are nested more than %d deep, wanted less", maxDepth)
		}
	}
	deep(d.depth)
	e.busy = true
	at, height := d.at, d.height
	d.at, d.height = r, 0
	f(r)
	if r.left() > 0 {
		r.fail("%d bytes behind an attribute or a type, wanted none", r.left())
	}
	e.height = d.height + 1 // what it contains may have been read before
	deep(e.height)
	d.at, d.height = at, height
	e.busy = false
	d.depth--
}

// asm is an attribute or a type in MLIR's own syntax.
func (d *decoder) asm(r *reader) string {
	s := r.text()
	d.spend(len(s))
	return s
}

// all reads a list of elements.
func all[T any](r *reader, what string, one func(r *reader) T) []T {
	out := make([]T, r.count(what))
	for i := range out {
		out[i] = one(r)
	}
	return out
}

// stringOf reads an attribute that must be a string.
func (d *decoder) stringOf(r *reader) string {
	a, ok := d.attr(r).(stringAttr)
	if !ok {
		r.fail("an attribute that is no string, wanted one")
	}
	return string(a)
}

// print is an attribute in MLIR's generic form.
func (d *decoder) print(a attribute) string {
	s := d.text(a)
	d.spend(len(s))
	return s
}

func (d *decoder) text(a attribute) string {
	switch a := a.(type) {
	case arrayAttr:
		return "[" + list(a, d.print) + "]"
	case dictAttr:
		return "{" + d.dict(a) + "}"
	case stringAttr:
		return quote(string(a))
	case symbolAttr:
		return strings.ReplaceAll(list(a, func(s string) string { return "@" + word(s) }), ", ", "::")
	case *typ:
		return a.text
	case unitAttr, placement:
		return "unit"
	case boolAttr:
		return strconv.FormatBool(bool(a))
	case textAttr:
		return string(a)
	case intAttr:
		return a.typ.integer(uint64(a.value)) + " : " + a.typ.text
	case floatAttr:
		return a.typ.decimal(a.bits) + " : " + a.typ.text
	case numbersAttr:
		if len(a.words) == 0 {
			return "array<" + a.elem + ">"
		}
		return "array<" + a.elem + ": " + strings.Join(a.words, ", ") + ">"
	case *Literal:
		d.spend(len(a.Data))
		return a.Text() + " : " + a.typ.text
	}
	d.at.fail("a location as an attribute, wanted another one")
	return ""
}

// dict is a = 1 : i32, b, for named attributes in the order given, without those that are left out.
func (d *decoder) dict(a []named) string {
	a = slices.DeleteFunc(slices.Clone(a), func(n named) bool { return n.value == placement{} })
	return list(a, func(n named) string {
		if _, ok := n.value.(unitAttr); ok {
			return word(n.name)
		}
		return word(n.name) + " = " + d.print(n.value)
	})
}
