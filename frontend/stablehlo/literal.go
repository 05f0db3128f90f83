package stablehlo

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"tpuc/ir/tensor"
)

// denseLiteral reads the body of dense<...> as a tensor of type t: one element for all, nested lists, or a string of the little-endian bytes in hex.
// It gives what was wanted where the body is none.
func denseLiteral(body string, t tensor.Type) (*tensor.Tensor, string) {
	body = strings.TrimSpace(body)
	n := t.Elements()
	switch {
	case body == "" && n == 0:
		return tensor.Zeros(t), ""
	case body == "":
		return nil, "an element"
	case strings.HasPrefix(body, `"`):
		return denseBytes(body, t)
	}
	d := &denseReader{body: body, t: t}
	splat := body[0] != '['
	if splat {
		n = 1
	} else if int64(len(body)) < n { // every element is a character at the least
		return nil, fmt.Sprintf("%d elements", n)
	}
	d.init(n)
	if splat {
		d.element()
	} else {
		d.list(0)
	}
	if d.want == "" && strings.TrimSpace(d.body[d.at:]) != "" {
		d.want = "the literal's end"
	}
	if d.want != "" {
		return nil, d.want
	}
	x := d.tensor(n)
	if splat {
		return repeat(x, t), ""
	}
	return x, ""
}

// repeat is the only element of x everywhere in t.
func repeat(x *tensor.Tensor, t tensor.Type) *tensor.Tensor {
	y := tensor.Zeros(t)
	if len(y.Data) == 0 {
		return y
	}
	for at := copy(y.Data, x.Data); at < len(y.Data); at *= 2 {
		copy(y.Data[at:], y.Data[:at])
	}
	return y
}

// denseBytes reads "0x..." with the elements' bytes, or those of one element for all. Bools are packed eight to a byte; 4-bit integers take a
// byte each.
func denseBytes(body string, t tensor.Type) (*tensor.Tensor, string) {
	digits, ok := strings.CutPrefix(strings.Trim(body, `"`), "0x")
	if !ok {
		return nil, `"0x and hex digits"`
	}
	data, err := hex.DecodeString(digits)
	if err != nil {
		return nil, "hex digits, two a byte"
	}
	if t.DType == tensor.Bool {
		n := t.Elements()
		switch {
		case int64(len(data)) == (n+7)/8:
			y := tensor.Zeros(t)
			for i := range y.Data {
				y.Data[i] = data[i/8] >> (i % 8) & 1
			}
			return y, ""
		case len(data) == 1: // all or none
			return repeat(&tensor.Tensor{Type: tensor.Make(tensor.Bool), Data: []byte{data[0] & 1}}, t), ""
		}
		return nil, fmt.Sprintf("%d bytes for %s", (n+7)/8, t)
	}
	return rawLiteral(data, t)
}

// rawLiteral takes elements as they lie in memory, each in whole bytes, or one for all.
func rawLiteral(data []byte, t tensor.Type) (*tensor.Tensor, string) {
	switch int64(len(data)) {
	case t.Bytes():
	case int64(t.DType.Size()):
		return repeat(&tensor.Tensor{Type: t.WithDims(), Data: data}, t), ""
	default:
		return nil, fmt.Sprintf("%d bytes for %s", t.Bytes(), t)
	}
	y := &tensor.Tensor{Type: t, Data: data}
	if t.DType.IsInt() && t.DType.Bits() < 8 {
		return tensor.FromInts(t, y.Ints()), ""
	}
	return y, ""
}

// denseReader reads elements one after another.
type denseReader struct {
	body      string
	t         tensor.Type
	at        int
	want      string
	ints      []int64
	floats    []float64
	complexes []complex128
	exact     map[int]uint64 // elements that were written as bits, by place
}

func (d *denseReader) init(n int64) {
	switch dt := d.t.DType; {
	case dt.IsFloat():
		d.floats = make([]float64, 0, n)
	case dt.IsComplex():
		d.complexes = make([]complex128, 0, n)
	default:
		d.ints = make([]int64, 0, n)
	}
}

func (d *denseReader) fail(want string) {
	if d.want == "" {
		d.want = want
	}
}

func (d *denseReader) space() {
	for d.at < len(d.body) && strings.IndexByte(" \n\t\r", d.body[d.at]) >= 0 {
		d.at++
	}
}

func (d *denseReader) eat(c byte) bool {
	d.space()
	if d.at < len(d.body) && d.body[d.at] == c {
		d.at++
		return true
	}
	return false
}

// list reads [ ... ] of dimension dim.
func (d *denseReader) list(dim int) {
	if dim >= d.t.Rank() || !d.eat('[') {
		d.fail(fmt.Sprintf("lists nested as in %s", d.t))
		return
	}
	for i := range d.t.Dims[dim] {
		if i > 0 && !d.eat(',') {
			d.fail(fmt.Sprintf("%d elements in dimension %d", d.t.Dims[dim], dim))
			return
		}
		if dim == d.t.Rank()-1 {
			d.element()
		} else {
			d.list(dim + 1)
		}
		if d.want != "" {
			return
		}
	}
	if !d.eat(']') {
		d.fail(fmt.Sprintf("%d elements in dimension %d", d.t.Dims[dim], dim))
	}
}

// element reads one element.
func (d *denseReader) element() {
	d.space()
	if d.t.DType.IsComplex() {
		if !d.eat('(') {
			d.fail("(real, imaginary)")
			return
		}
		re := d.float(d.word())
		if !d.eat(',') {
			d.fail("(real, imaginary)")
		}
		d.space()
		im := d.float(d.word())
		if !d.eat(')') {
			d.fail("(real, imaginary)")
		}
		d.complexes = append(d.complexes, complex(re, im))
		return
	}
	w := d.word()
	if d.t.DType.IsFloat() {
		if bits, ok := d.bits(w); ok {
			if d.exact == nil {
				d.exact = make(map[int]uint64)
			}
			d.exact[len(d.floats)] = bits
			d.floats = append(d.floats, 0)
			return
		}
		d.floats = append(d.floats, d.float(w))
		return
	}
	switch w {
	case "true":
		d.ints = append(d.ints, 1)
		return
	case "false":
		d.ints = append(d.ints, 0)
		return
	}
	v, err := strconv.ParseInt(w, 0, 64)
	if err != nil {
		u, uerr := strconv.ParseUint(w, 0, 64)
		if uerr != nil {
			d.fail(fmt.Sprintf("an element of %s instead of %q", d.t.DType, clip(w)))
		}
		v = int64(u)
	}
	d.ints = append(d.ints, v)
}

// word is the text up to the next comma or bracket.
func (d *denseReader) word() string {
	from := d.at
	for d.at < len(d.body) && strings.IndexByte(",])( \n\t\r", d.body[d.at]) < 0 {
		d.at++
	}
	return d.body[from:d.at]
}

// bits reads 0x7F800000 as an element's bits.
func (d *denseReader) bits(w string) (uint64, bool) {
	digits, ok := strings.CutPrefix(w, "0x")
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseUint(digits, 16, d.t.DType.Real().Bits())
	if err != nil {
		d.fail(fmt.Sprintf("%d bits in hex instead of %q", d.t.DType.Real().Bits(), clip(w)))
	}
	return v, true
}

// float reads a decimal, or bits as a part of a complex number.
func (d *denseReader) float(w string) float64 {
	if v, ok := d.bits(w); ok {
		if d.t.DType == tensor.C64 {
			return float64(math.Float32frombits(uint32(v)))
		}
		return math.Float64frombits(v)
	}
	v, err := strconv.ParseFloat(w, 64)
	if err != nil && !math.IsInf(v, 0) {
		d.fail(fmt.Sprintf("an element of %s instead of %q", d.t.DType, clip(w)))
	}
	return v
}

// tensor is what was read: of type t, or a scalar where n is 1 for all elements.
func (d *denseReader) tensor(n int64) *tensor.Tensor {
	t := d.t
	if n != t.Elements() {
		t = t.WithDims()
	}
	switch {
	case d.t.DType.IsComplex():
		return tensor.FromComplexes(t, d.complexes)
	case !d.t.DType.IsFloat():
		return tensor.FromInts(t, d.ints)
	}
	x := tensor.FromFloats(t, d.floats)
	size := t.DType.Size()
	for i, bits := range d.exact {
		var raw [8]byte
		binary.LittleEndian.PutUint64(raw[:], bits)
		copy(x.Data[i*size:(i+1)*size], raw[:])
	}
	return x
}

// clip shortens a text for a message.
func clip(s string) string {
	const most = 60
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
