package bytecode

// Sections of a file, by their numbers.
const (
	stringSection = iota
	dialectSection
	attrTypeSection
	attrTypeOffsetSection
	irSection
	resourceSection
	resourceOffsetSection
	dialectVersionSection
	propertiesSection
	numSections
)

var sectionNames = [numSections]string{"section String", "section Dialect", "section AttrType", "section AttrTypeOffset", "section IR", "section Resource",
	"section ResourceOffset", "section DialectVersions", "section Properties"}

// What versions of the container brought.
const (
	versionedDialects = 1 // dialects carry a version
	regionSections    = 2 // regions that see nothing around them are sections
	useListOrders     = 3 // the order of uses
	elidedLocations   = 4 // arguments of blocks without a location; the number of names of operations
	nativeProperties  = 5 // properties apart from attributes
)

// file reads everything but the operations.
func (d *decoder) file(data []byte) {
	r := &reader{data: data, end: len(data), section: "the file"}
	d.at = r
	if !IsBytecode(data) {
		r.fail("other bytes, wanted %q", Magic)
	}
	r.pos = len(Magic)
	version := r.varint()
	if version > maxVersion {
		r.fail("bytecode of version %d, wanted one up to %d: write the artifact for an older version", version, maxVersion)
	}
	d.version = int(version)
	d.producer = clip(r.text())
	var sections [numSections]*reader
	for r.left() > 0 {
		id, s := d.section(r)
		if sections[id] != nil {
			r.fail("a second %s, wanted one", sectionNames[id])
		}
		sections[id] = s
	}
	for id, s := range sections {
		switch {
		case s != nil:
		case id <= irSection:
			r.fail("no %s, wanted one", sectionNames[id])
		default:
			sections[id] = &reader{data: data, section: sectionNames[id]}
		}
	}
	d.stringTable(sections[stringSection])
	d.propertyTable(sections[propertiesSection])
	d.dialectTable(sections[dialectSection])
	d.resourceTable(sections[resourceSection], sections[resourceOffsetSection])
	d.entries(sections[attrTypeSection], sections[attrTypeOffsetSection])
	d.ir = sections[irSection]
}

// section is the header of a section; its contents are skipped.
func (d *decoder) section(r *reader) (int, *reader) {
	head := r.byte()
	id, aligned := head&0x7F, head&0x80 != 0
	if id >= numSections {
		r.pos--
		r.fail("section %d, wanted one of %d", id, numSections)
	}
	size := r.varint()
	if aligned {
		r.align(r.varint())
	}
	s := r.within(size)
	s.section, s.start = sectionNames[id], s.pos
	return int(id), s
}

// stringTable has the sizes of all strings, with a zero each, from the last to the first, and then their bytes from the first to the last.
func (d *decoder) stringTable(r *reader) {
	n := r.count("strings")
	d.strings = make([]string, n)
	for i := n - 1; i >= 0; i-- {
		size := r.varint()
		if size == 0 || size > uint64(r.left()) {
			r.fail("a string of %d bytes where %d are left, wanted 1 or more and no more than that", size, r.left())
		}
		r.end -= int(size)
		d.strings[i] = string(r.data[r.end : r.end+int(size)-1])
	}
	if r.left() > 0 {
		r.fail("%d bytes between the sizes of strings and their bytes, wanted none", r.left())
	}
}

func (d *decoder) string(r *reader) string { return d.strings[r.index("string", len(d.strings))] }

// propertyTable finds where the properties of operations lie.
func (d *decoder) propertyTable(r *reader) {
	d.props = r
	if r.left() == 0 {
		return
	}
	n := r.count("properties")
	d.properties = make([][2]int, n)
	for i := range d.properties {
		p := r.within(r.varint())
		d.properties[i] = [2]int{p.pos, p.end}
	}
	if r.left() > 0 {
		r.fail("%d bytes behind the last properties, wanted none", r.left())
	}
}

// dialectTable has the names of dialects, and of operations grouped by dialect.
func (d *decoder) dialectTable(r *reader) {
	n := r.count("dialects")
	for range n {
		if d.version < versionedDialects {
			d.dialects = append(d.dialects, d.string(r))
			continue
		}
		name, versioned := r.flagged()
		d.dialects = append(d.dialects, d.strings[r.among(name, "string", len(d.strings))])
		if versioned {
			if id, _ := d.section(r); id != dialectVersionSection { // none of the dialects that are read changes by version
				r.fail("%s as a dialect's version, wanted %s", sectionNames[id], sectionNames[dialectVersionSection])
			}
		}
	}
	if d.version >= elidedLocations {
		r.count("operations")
	}
	for r.left() > 0 {
		d.group(r, func(dialect string) {
			o := opName{dialect: dialect, registered: true}
			name := r.varint()
			if d.version >= nativeProperties {
				o.registered = name&1 == 1
				name >>= 1
			}
			o.name = d.strings[r.among(name, "string", len(d.strings))]
			d.opNames = append(d.opNames, o)
		})
	}
}

// group is a dialect and a number of elements that f reads.
func (d *decoder) group(r *reader, f func(dialect string)) {
	dialect := d.dialects[r.index("dialect", len(d.dialects))]
	for range r.count("elements") {
		f(dialect)
	}
}

// resourceTable has blobs: first those of providers outside of MLIR, which are left out, then those of dialects.
func (d *decoder) resourceTable(r, offsets *reader) {
	if offsets.left() == 0 {
		return
	}
	const blob = 0
	one := func() resource {
		out := resource{key: d.string(offsets)}
		body := r.within(offsets.varint())
		if kind := offsets.byte(); kind != blob || body.left() == 0 {
			return out // a bool, a string, or a declaration alone
		}
		alignment, size := body.varint(), body.varint()
		body.align(alignment)
		if out.data = body.bytes(size); body.left() > 0 {
			body.fail("%d bytes behind a resource, wanted none", body.left())
		}
		return out
	}
	for range offsets.count("groups") {
		d.string(offsets)
		for range offsets.count("resources") {
			one()
		}
	}
	for offsets.left() > 0 {
		d.group(offsets, func(string) { d.resources = append(d.resources, one()) })
	}
}

// entries finds where attributes and types lie. They are read where something needs them.
func (d *decoder) entries(r, offsets *reader) {
	attrs, types := offsets.count("attributes"), offsets.count("types")
	for _, table := range []struct {
		what string
		n    int
		out  *[]entry
	}{{"attributes", attrs, &d.attrs}, {"types", types, &d.types}} {
		*table.out = make([]entry, 0, table.n)
		for len(*table.out) < table.n {
			d.group(offsets, func(dialect string) {
				size, custom := offsets.flagged()
				body := r.within(size)
				*table.out = append(*table.out, entry{dialect: dialect, custom: custom, pos: body.pos, end: body.end})
			})
			if len(*table.out) > table.n {
				offsets.fail("more than %d %s, wanted that many", table.n, table.what)
			}
		}
	}
	if offsets.left() > 0 {
		offsets.fail("%d bytes behind the last size, wanted none", offsets.left())
	}
	d.attrTypes = r
}
