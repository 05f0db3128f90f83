package bytecode

import (
	"slices"
	"strconv"
	"strings"
)

// What an operation has, by bits of its mask.
const (
	hasAttrs = 1 << iota
	hasResults
	hasOperands
	hasSuccessors
	hasRegions
	hasUseListOrders
	hasProperties
)

// value is an operand or a result: the i-th of the values that are named n.
type value struct {
	n, i int32 // n from 1; i is -1 for the only one
	typ  *typ
}

func (v value) String() string {
	s := "%" + strconv.Itoa(int(v.n)-1)
	if v.i >= 0 {
		s += "#" + strconv.Itoa(int(v.i))
	}
	return s
}

// scope are the values that operations see, by number. A region that sees nothing around it has one of its own.
type scope struct {
	values []value
	next   int // place of the next value that is defined
}

// operation is one operation before it is written.
type operation struct {
	name     string
	inherent []named // attributes that belong to the operation
	others   []named
	results  []*typ
	operands []value
}

// block reads a block's arguments and operations. Those of the file itself stand in no region and define no values.
func (d *decoder) block(r *reader, s *scope, parent string, depth int) {
	ops, args := r.flagged()
	r.size(ops, "operations")
	indent := strings.Repeat("  ", depth)
	if args {
		if depth == 0 {
			r.fail("arguments of the file's operations, wanted none")
		}
		before := s.next
		d.write(strings.Repeat("  ", depth-1), "^bb0(", d.arguments(r, s), "):\n")
		if d.version >= useListOrders && r.byte() != 0 {
			d.skipUseLists(r, s.next-before)
		}
	}
	for range ops {
		d.operation(r, s, parent, indent, depth)
	}
}

// arguments reads those of a block.
func (d *decoder) arguments(r *reader, s *scope) string {
	n := r.count("arguments")
	types, locs := make([]*typ, n), make([]string, n)
	for i := range n {
		located := true
		t := r.varint()
		if d.version >= elidedLocations {
			located = t&1 == 1
			t >>= 1
		}
		types[i] = d.typeAt(r.among(t, "type", len(d.types)))
		if located {
			locs[i] = d.loc(d.locationIndex(r))
		}
	}
	parts := make([]string, n)
	for i, t := range types {
		v := d.define(r, s, []*typ{t})
		parts[i] = v.String() + ": " + t.text + locs[i]
		d.spend(len(t.text))
	}
	return strings.Join(parts, ", ")
}

// define gives values of the types the next places of the scope, and a name.
func (d *decoder) define(r *reader, s *scope, types []*typ) value {
	if len(types) > len(s.values)-s.next {
		r.fail("%d values more, wanted the %d that the region says it defines", len(types), len(s.values)-s.next)
	}
	d.values++
	v := value{n: int32(d.values), i: -1}
	for i, t := range types {
		v.typ = t
		if len(types) > 1 {
			v.i = int32(i)
		}
		s.values[s.next] = v
		s.next++
	}
	return value{n: v.n, i: -1}
}

// skipUseLists skips the orders of uses of n values, which no text has.
func (d *decoder) skipUseLists(r *reader, n int) {
	lists := 1
	if n > 1 {
		lists = r.count("orders of uses")
	}
	for range lists {
		if n > 1 {
			r.varint()
		}
		uses, _ := r.flagged()
		for range r.size(uses, "uses") {
			r.varint()
		}
	}
}

// region is { operations } of one block at most.
func (d *decoder) region(r *reader, s *scope, parent string, depth int) {
	if depth > maxDepth {
		r.fail("regions that are nested more than %d deep, wanted less", maxDepth)
	}
	d.write("{\n")
	if blocks := r.count("blocks"); blocks > 1 {
		r.fail("a region of %d blocks, wanted one: branches and loops as operations of StableHLO", blocks)
	} else if blocks == 1 {
		n := r.count("values")
		if d.live += n; d.live > len(r.data) {
			r.fail("regions that define %d values, wanted no more than the file has bytes", d.live)
		}
		base, next := len(s.values), s.next
		s.values = append(s.values, make([]value, n)...)
		s.next = base
		d.block(r, s, parent, depth)
		if s.next != len(s.values) {
			r.fail("a region that defines %d values, wanted %d as it says", s.next-base, n)
		}
		s.values, s.next = s.values[:base], next
		d.live -= n
	}
	d.write(strings.Repeat("  ", depth-1), "}")
}

// operation reads an operation and writes it.
func (d *decoder) operation(r *reader, s *scope, parent, indent string, depth int) {
	name := d.opNames[r.index("operation", len(d.opNames))]
	mask := r.byte()
	if mask&^(hasAttrs|hasResults|hasOperands|hasSuccessors|hasRegions|hasUseListOrders|hasProperties) != 0 {
		r.pos--
		r.fail("0x%02X as what an operation has, wanted bits that are known", mask)
	}
	d.at = r
	loc := d.loc(d.locationIndex(r))
	o := &operation{name: name.dialect + "." + name.name}
	if name.name == "" {
		o.name = name.dialect
	}
	if name.dialect == "vhlo" && inherentOf(o.name) == nil {
		r.fail("operation %s, wanted one of VHLO up to 1.20: write the artifact for an older version of StableHLO", quote(clip(o.name)))
	}
	if mask&hasAttrs != 0 {
		o.others = d.dictOf(r)
	}
	if mask&hasProperties != 0 {
		d.propertiesOf(r, o, name)
	}
	if mask&hasResults != 0 {
		o.results = all(r, "results", d.typ)
	}
	if mask&hasOperands != 0 {
		o.operands = all(r, "operands", func(r *reader) value {
			v := s.values[r.index("value", len(s.values))]
			if v.n == 0 {
				r.fail("a value that is not defined before, wanted one that is")
			}
			return v
		})
	}
	if mask&hasSuccessors != 0 {
		r.fail("a branch to another block, wanted branches and loops as operations of StableHLO")
	}
	if mask&hasUseListOrders != 0 && d.version >= useListOrders {
		d.skipUseLists(r, len(o.results))
	}
	if o.name == "builtin.unrealized_conversion_cast" && mask&hasRegions == 0 && d.identity(s, o) {
		return
	}
	d.rewrite(o, name, parent)
	d.write(indent)
	if len(o.results) > 0 {
		v := d.define(r, s, o.results)
		d.write(v.String())
		if len(o.results) > 1 {
			d.write(":", strconv.Itoa(len(o.results)))
		}
		d.write(" = ")
	}
	d.write(quote(o.name), "(", list(o.operands, value.String), ")")
	if attrs := d.dict(o.inherent); attrs != "" {
		d.write(" <{", attrs, "}>")
	}
	if mask&hasRegions != 0 {
		d.regions(r, s, o.name, depth)
	}
	if attrs := d.dict(o.others); attrs != "" {
		d.write(" {", attrs, "}")
	}
	in := make([]*typ, len(o.operands))
	for i, v := range o.operands {
		in[i] = v.typ
	}
	d.write(" : ", d.signature(in, o.results), loc, "\n")
}

// identity gives the results of a conversion their operands' names. An artifact has conversions between the types of VHLO and those that they become here
// where it holds operations of another dialect.
func (d *decoder) identity(s *scope, o *operation) bool {
	if len(o.operands) != len(o.results) || len(o.results) > len(s.values)-s.next {
		return false
	}
	for i, v := range o.operands {
		if v.typ.text != o.results[i].text {
			return false
		}
		s.values[s.next+i] = v
	}
	s.next += len(o.results)
	return true
}

// regions are ({ ... }, { ... }). Those that see nothing around them lie in a section of their own.
func (d *decoder) regions(r *reader, s *scope, name string, depth int) {
	n, isolated := r.flagged()
	r.size(n, "regions")
	if n == 0 {
		return
	}
	in := r
	if isolated {
		s = &scope{}
		if d.version >= regionSections {
			id, body := d.section(r)
			if id != irSection {
				r.fail("%s as a region, wanted %s", sectionNames[id], sectionNames[irSection])
			}
			body.start = r.start
			in = body
		}
	}
	d.write(" (")
	for i := range n {
		if i > 0 {
			d.write(", ")
		}
		d.region(in, s, name, depth+1)
	}
	d.write(")")
	if in != r && in.left() > 0 {
		in.fail("%d bytes behind the last region, wanted none", in.left())
	}
}

// dictOf reads an attribute that must be a dictionary.
func (d *decoder) dictOf(r *reader) []named {
	a, ok := d.attr(r).(dictAttr)
	if !ok {
		r.fail("an attribute that is no dictionary, wanted one")
	}
	return slices.Clone(a)
}

// propertiesOf reads the attributes that belong to an operation: the numbers of one attribute after another, as the operation's own table has them,
// or of one dictionary where whoever wrote the file did not know the operation.
func (d *decoder) propertiesOf(r *reader, o *operation, name opName) {
	at := d.properties[r.index("properties", len(d.properties))]
	p := &reader{data: r.data, pos: at[0], end: at[1], section: d.props.section, start: d.props.start}
	if !name.registered {
		o.inherent = d.dictOf(p)
		return
	}
	var numbers []uint64
	for p.left() > 0 {
		numbers = append(numbers, p.varint())
	}
	tables := inherentOf(o.name)
	i := slices.IndexFunc(tables, func(t inherentTable) bool { return len(t) == len(numbers) })
	if i < 0 {
		if _, ours := codecOf(name.dialect); ours || name.dialect == "func" {
			p.fail("%d attributes of operation %s, wanted as many as are known", len(numbers), quote(clip(o.name)))
		}
		return // it is refused by its name
	}
	for j, a := range tables[i] {
		n := numbers[j]
		if a.optional {
			if n&1 == 0 {
				continue
			}
			n >>= 1
		}
		o.inherent = append(o.inherent, named{a.name, d.attrAt(uint64(p.among(n, "attribute", len(d.attrs))))})
	}
}

// rewrite turns an operation of VHLO into one of StableHLO, and puts the contents of large constants beside the text.
func (d *decoder) rewrite(o *operation, name opName, parent string) {
	if name.dialect == "vhlo" {
		d.stableHLO(o, name.name, parent)
	} else if tables := inherentOf(o.name); tables != nil && d.version < nativeProperties { // all attributes are in one dictionary
		o.split(tables[0])
	}
	if o.name != "stablehlo.constant" {
		return
	}
	for i, a := range o.inherent {
		if l, ok := a.value.(*Literal); ok && len(l.Data) > maxInline {
			key := "literal_" + strconv.Itoa(len(d.literals))
			d.literals[key] = l
			o.inherent[i].value = textAttr("dense_resource<" + key + "> : " + l.typ.text)
		}
	}
}

// split takes the attributes that belong to the operation out of the others.
func (o *operation) split(table inherentTable) {
	var rest []named
	for _, a := range o.others {
		if table.has(a.name) {
			o.inherent = append(o.inherent, a)
		} else {
			rest = append(rest, a)
		}
	}
	o.others = rest
}
