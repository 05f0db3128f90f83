// Package bytecode decodes MLIR bytecode: portable artifacts of StableHLO, which hold its versioned form VHLO, and modules of the dialects
// builtin, func, stablehlo, chlo and sdy themselves. It gives the module as text in MLIR's generic form, so that everything behind the text is shared with
// modules that come as text. It never looks at what operations compute.
//
// The container is described in MLIR's BytecodeFormat.md; what VHLO's attributes and types are encoded as, in StableHLO's VhloBytecode.cpp; and
// what becomes of VHLO's operations, in VhloLegalizeToStablehlo.cpp.
package bytecode

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Magic begins every file of MLIR bytecode.
const Magic = "ML\xefR"

// Limits of one file. Every element takes a byte of it at the least, and is refused where there is none left.
const (
	maxTable   = 16 << 20  // elements of a table: strings, attributes, types, operands of an operation
	maxDepth   = 64        // nested regions, and nested attributes and types
	maxText    = 512 << 20 // bytes of text
	growth     = 256       // bytes of text for a byte of the file: shared types and attributes are written out where they are used
	maxInline  = 256       // bytes of a literal that stands in the text; larger ones of constants are named there
	maxVersion = 6         // of the container
)

// Module is a decoded file.
type Module struct {
	Text     string              // in MLIR's generic form, locations as aliases at the end
	Literals map[string]*Literal // by the name in dense_resource<name>
}

// Error is a fault at a byte of a section of the file.
type Error struct {
	Section  string
	Offset   int // from the section's start
	Msg      string
	Producer string // who wrote the file, such as StableHLO_v1.15.0; empty where that is not known
}

// Error says what was seen, what was wanted, and where.
func (e *Error) Error() string {
	return fmt.Sprintf("%s, at byte %d of %s", e.Msg, e.Offset, e.Section)
}

// Decode reads a file. An error is an *Error. Literals share memory with data.
func Decode(data []byte) (m *Module, err error) {
	d := newDecoder(data)
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			e.Producer = d.producer
			m, err = nil, e
		}
	}()
	d.file(data)
	d.module()
	return &Module{Text: d.out.String(), Literals: d.literals}, nil
}

func newDecoder(data []byte) *decoder {
	limit := min(maxText, 1<<20+growth*len(data))
	return &decoder{literals: make(map[string]*Literal), aliases: make(map[uint64]int), limit: limit, left: limit}
}

// decoder holds what one file is made of, and the text so far.
type decoder struct {
	version    int
	producer   string
	strings    []string
	dialects   []string
	opNames    []opName
	properties [][2]int // start and end in the file
	resources  []resource
	attrs      []entry // attributes by number
	types      []entry
	ir         *reader
	attrTypes  *reader // the section of attributes and types
	props      *reader

	out      strings.Builder
	limit    int     // bytes of text that may be made
	left     int     // of these
	depth    int     // of attributes and types in work
	height   int     // of those that the one in work contains
	at       *reader // where faults are reported that no reader meets
	literals map[string]*Literal
	aliases  map[uint64]int // locations that are used, by attribute: their numbers
	located  []uint64       // those of operations and arguments, in order
	values   int            // named so far
	live     int            // values of the regions in work
}

// opName is an operation's name in the file.
type opName struct {
	dialect, name string
	registered    bool
}

// resource is a blob that attributes refer to by number; nil where the file only declares it.
type resource struct {
	key  string
	data []byte
}

// spend counts text towards the limit.
func (d *decoder) spend(n int) {
	if d.left -= n; d.left < 0 {
		d.at.fail("operations, attributes and types of more than %d bytes where they are written out, wanted at most that", d.limit)
	}
}

func (d *decoder) write(parts ...string) {
	for _, s := range parts {
		d.spend(len(s))
		d.out.WriteString(s)
	}
}

// module writes the operations of the file, then the locations that they use.
func (d *decoder) module() {
	d.at = d.ir
	d.block(d.ir, &scope{}, "", 0)
	if d.ir.left() > 0 {
		d.ir.fail("%d bytes behind the last operation, wanted none", d.ir.left())
	}
	d.writeLocations()
}

// list joins what f gives for every element.
func list[T any](v []T, f func(T) string) string {
	parts := make([]string, len(v))
	for i, x := range v {
		parts[i] = f(x)
	}
	return strings.Join(parts, ", ")
}

// integers is 1, 2, 3.
func integers(v []int64) string {
	return list(v, func(x int64) string { return strconv.FormatInt(x, 10) })
}

// quote writes a string as MLIR does: other bytes than printable ones of UTF-8 as two hex digits.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		if r < ' ' || r == '"' || r == '\\' || r == 0x7f || r == '\uFFFD' {
			return quoteBytes(s)
		}
	}
	b.WriteString(s)
	b.WriteByte('"')
	return b.String()
}

func quoteBytes(s string) string {
	b := []byte{'"'}
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			b = fmt.Appendf(b, `\%02X`, c)
		} else {
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}

// word is a name as it may stand without quotes, otherwise quoted.
func word(s string) string {
	plain := func(i int, c byte) bool {
		return 'a' <= c|32 && c|32 <= 'z' || c == '_' || i > 0 && ('0' <= c && c <= '9' || c == '.' || c == '$')
	}
	for i := range len(s) {
		if !plain(i, s[i]) {
			return quote(s)
		}
	}
	if s == "" {
		return quote(s)
	}
	return s
}

// IsBytecode reports whether data begins like MLIR bytecode.
func IsBytecode(data []byte) bool { return bytes.HasPrefix(data, []byte(Magic)) }
