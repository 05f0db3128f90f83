package bytecode

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// reader is a range of the file. What is wrong is thrown as an *Error.
type reader struct {
	data     []byte // the whole file: alignment counts from its start
	pos, end int
	section  string
	start    int // of the section, which offsets in errors count from
}

// within is the part of r from pos of size bytes, which is skipped.
func (r *reader) within(size uint64) *reader {
	n := r.size(size, "bytes")
	sub := &reader{data: r.data, pos: r.pos, end: r.pos + n, section: r.section, start: r.start}
	r.pos += n
	return sub
}

func (r *reader) left() int { return r.end - r.pos }

func (r *reader) fail(format string, args ...any) {
	panic(&Error{Section: r.section, Offset: r.pos - r.start, Msg: fmt.Sprintf(format, args...)})
}

// size holds a number of bytes, or of elements of a byte or more, to what is left.
func (r *reader) size(n uint64, what string) int {
	if n > uint64(r.left()) {
		r.fail("%d %s where %d bytes are left, wanted no more", n, what, r.left())
	}
	return int(n)
}

func (r *reader) byte() byte {
	if r.left() == 0 {
		r.fail("the end, wanted a byte")
	}
	r.pos++
	return r.data[r.pos-1]
}

func (r *reader) bytes(n uint64) []byte {
	sub := r.within(n)
	return r.data[sub.pos:sub.end:sub.end]
}

// varint is a PrefixVarInt: as many zeros as there are bytes behind the first stand in its low bits, then a one.
func (r *reader) varint() uint64 {
	first := r.byte()
	n := bits.TrailingZeros8(first) // 8 for 0
	if n > r.left() {
		r.pos--
		r.fail("a number of %d bytes where %d are left, wanted all of it", n+1, r.left())
	}
	var raw [8]byte
	if n == 8 {
		copy(raw[:], r.data[r.pos:r.pos+8])
		r.pos += 8
		return binary.LittleEndian.Uint64(raw[:])
	}
	raw[0] = first
	copy(raw[1:], r.data[r.pos:r.pos+n])
	r.pos += n
	return binary.LittleEndian.Uint64(raw[:]) >> (n + 1)
}

// signed is a varint whose low bit is the sign.
func (r *reader) signed() int64 {
	v := r.varint()
	return int64(v>>1) ^ -int64(v&1)
}

// flagged is a varint with a flag in its low bit.
func (r *reader) flagged() (uint64, bool) {
	v := r.varint()
	return v >> 1, v&1 == 1
}

// count is a number of elements, each of which takes a byte or more.
func (r *reader) count(what string) int {
	n := r.size(r.varint(), what)
	if n > maxTable {
		r.fail("%d %s, wanted at most %d", n, what, maxTable)
	}
	return n
}

// signeds is a list of signed numbers.
func (r *reader) signeds() []int64 {
	out := make([]int64, r.count("numbers"))
	for i := range out {
		out[i] = r.signed()
	}
	return out
}

// bool is a byte, 0 or 1.
func (r *reader) bool() bool {
	b := r.byte()
	if b > 1 {
		r.pos--
		r.fail("%d as a bool, wanted 0 or 1", b)
	}
	return b == 1
}

// apint is an integer of a number of bits that is known, of 64 at the most.
func (r *reader) apint(bits int) uint64 {
	switch {
	case bits <= 8:
		return uint64(r.byte())
	case bits <= 64:
		return uint64(r.signed())
	}
	r.fail("a number of %d bits, wanted 64 at the most", bits)
	return 0
}

// align skips padding up to a multiple of a power of two.
func (r *reader) align(to uint64) {
	if to == 0 || to&(to-1) != 0 || to > 1<<30 {
		r.fail("an alignment of %d, wanted a power of two up to %d", to, 1<<30)
	}
	const padding = 0xCB
	for uint64(r.pos)&(to-1) != 0 {
		if b := r.byte(); b != padding {
			r.pos--
			r.fail("byte 0x%02X as padding, wanted 0x%02X", b, padding)
		}
	}
}

// text is a string up to a zero, which is taken.
func (r *reader) text() string {
	from := r.pos
	for r.byte() != 0 {
	}
	return string(r.data[from : r.pos-1])
}

// index is the number of an element of a table.
func (r *reader) index(what string, n int) int {
	return r.among(r.varint(), what, n)
}

// among holds a number to a table of n elements.
func (r *reader) among(i uint64, what string, n int) int {
	if i >= uint64(n) {
		r.fail("%s %d, wanted one of %d", what, i, n)
	}
	return int(i)
}
