package bytecode

import (
	"encoding/binary"
	"slices"
	"strings"
)

// Literal is a tensor of the file: the elements in a row, little-endian, each in whole bytes, or one element that stands for all.
type Literal struct {
	Data []byte // bools take a byte each, 0 or 1
	typ  *typ
}

// literal holds data to the type t: all elements, one for all, or bools packed eight to a byte.
func (d *decoder) literal(r *reader, t *typ, data []byte) *Literal {
	if t.elem == nil || t.elem.bits == 0 || t.elem.bits > 64 {
		r.fail("a literal of type %s, wanted a tensor of numbers", clip(t.text))
	}
	n, size := t.elements(), int64(t.elem.size())
	got := int64(len(data))
	if t.elem.text == "i1" {
		packed := n/8 + (n%8+7)/8
		switch {
		case got == packed && got != n:
			out := make([]byte, n)
			for i := range out {
				out[i] = data[i/8] >> (i % 8) & 1
			}
			data = out
		case got == n || got == 1:
			data = slices.Clone(data)
			for i := range data {
				data[i] &= 1
			}
		}
		got = int64(len(data))
	}
	if n < 0 || got%size != 0 || got/size != n && got != size {
		r.fail("%d bytes as a literal of type %s, wanted all elements or one", got, clip(t.text))
	}
	return &Literal{Data: data, typ: t}
}

// Text is dense<...>, all of it.
func (l *Literal) Text() string {
	var b strings.Builder
	b.WriteString("dense<")
	at := 0
	elem := l.typ.elem
	part := elem.size() / elem.parts
	number := func() {
		var raw [8]byte
		copy(raw[:], l.Data[at:at+part])
		b.WriteString(elem.number(binary.LittleEndian.Uint64(raw[:])))
		at += part
	}
	element := func() {
		if elem.parts == 1 {
			number()
			return
		}
		b.WriteByte('(')
		number()
		b.WriteString(", ")
		number()
		b.WriteByte(')')
	}
	var rows func(dims []int64)
	rows = func(dims []int64) {
		if len(dims) == 0 {
			element()
			return
		}
		b.WriteByte('[')
		for i := range dims[0] {
			if i > 0 {
				b.WriteString(", ")
			}
			rows(dims[1:])
		}
		b.WriteByte(']')
	}
	switch n := l.typ.elements(); {
	case n == 0:
	case len(l.Data) == elem.size():
		element()
	default:
		rows(l.typ.dims)
	}
	b.WriteByte('>')
	return b.String()
}

// ints are the elements of a list of integers, which one element may stand for.
func (d *decoder) ints(l *Literal) []int64 {
	size, n := l.typ.elem.size(), l.typ.elements()
	const most = 1 << 16
	if n > most {
		d.at.fail("a list of %d numbers, wanted at most %d", n, most)
	}
	d.spend(int(n))
	if n == 0 {
		return nil
	}
	out := make([]int64, 0, n)
	for at := 0; at < len(l.Data); at += size {
		var raw [8]byte
		copy(raw[:], l.Data[at:at+size])
		v := int64(binary.LittleEndian.Uint64(raw[:]))
		if shift := 64 - min(8*size, 64); l.typ.elem.signed {
			v = v << shift >> shift
		}
		out = append(out, v)
	}
	if len(out) == 1 {
		out = slices.Repeat(out, int(n))
	}
	return out
}

// clip shortens a text for a message.
func clip(s string) string {
	const most = 60
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
