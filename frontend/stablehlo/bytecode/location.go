package bytecode

import (
	"slices"
	"strconv"
)

// locationKind is a kind of location.
type locationKind uint8

const (
	unknownLoc locationKind = iota
	fileLoc
	nameLoc
	callSiteLoc
	fusedLoc
)

// locationAttr says where an operation comes from. It refers to others by their numbers: chains of calls are long, and most are never looked at.
type locationAttr struct {
	kind         locationKind
	name         string // of a file or a scope
	line, column uint64
	inner        []uint64 // callee and caller, what a name stands for, or what is fused
}

// locationIndex reads the number of an attribute that is a location.
func (d *decoder) locationIndex(r *reader) uint64 {
	return uint64(r.index("attribute", len(d.attrs)))
}

// loc is loc(#loc1) with a space before it, or nothing where the location is unknown.
func (d *decoder) loc(i uint64) string {
	switch l := d.attrAt(i).(type) {
	case locationAttr:
		if l.kind == unknownLoc {
			return ""
		}
	case textAttr:
	default:
		d.at.fail("an attribute that is no location, wanted one")
	}
	return " loc(" + d.alias(i) + ")"
}

// alias is #loc1 for a location, which is written at the end.
func (d *decoder) alias(i uint64) string {
	n, ok := d.aliases[i]
	if !ok {
		n = len(d.aliases)
		d.aliases[i] = n
		d.located = append(d.located, i)
	}
	return "#loc" + strconv.Itoa(n)
}

// writeLocations writes the locations that are used, each behind those that it refers to, as MLIR wants them.
func (d *decoder) writeLocations() {
	done := make(map[uint64]bool)
	for todo := slices.Clone(d.located); len(todo) > 0; {
		i := todo[len(todo)-1]
		before := len(todo)
		if _, entered := done[i]; !entered {
			done[i] = false
			if l, ok := d.attrAt(i).(locationAttr); ok {
				for _, n := range l.inner {
					if _, entered := done[n]; !entered {
						todo = append(todo, n)
					}
				}
			}
		}
		if len(todo) > before {
			continue
		}
		todo = todo[:before-1]
		if !done[i] {
			done[i] = true
			d.write(d.alias(i), " = loc(", d.locationText(i), ")\n")
		}
	}
}

// locationText is what stands in loc(...).
func (d *decoder) locationText(i uint64) string {
	l, ok := d.attrAt(i).(locationAttr)
	if !ok {
		return "unknown" // in a syntax of its own
	}
	switch l.kind {
	case fileLoc:
		return quote(l.name) + ":" + strconv.FormatUint(l.line, 10) + ":" + strconv.FormatUint(l.column, 10)
	case nameLoc:
		if inner, ok := d.attrAt(l.inner[0]).(locationAttr); ok && inner.kind == unknownLoc {
			return quote(l.name)
		}
		return quote(l.name) + "(" + d.alias(l.inner[0]) + ")"
	case callSiteLoc:
		return "callsite(" + d.alias(l.inner[0]) + " at " + d.alias(l.inner[1]) + ")"
	case fusedLoc:
		return "fused[" + list(l.inner, d.alias) + "]"
	}
	return "unknown"
}
