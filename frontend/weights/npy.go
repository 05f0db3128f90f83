package weights

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"tpuc/ir/tensor"
)

// npyDTypes are the array-interface type strings that have an element type. npy has none for bfloat16 and float8.
var npyDTypes = map[string]tensor.DType{
	"|b1": tensor.Bool, "|i1": tensor.I8, "|u1": tensor.U8, "<i1": tensor.I8, "<u1": tensor.U8,
	"<i2": tensor.I16, "<i4": tensor.I32, "<i8": tensor.I64, "<u2": tensor.U16, "<u4": tensor.U32, "<u8": tensor.U64,
	"<f2": tensor.F16, "<f4": tensor.F32, "<f8": tensor.F64, "<c8": tensor.C64, "<c16": tensor.C128,
}

// ParseNPY reads an array in numpy's .npy format, versions 1 to 3 (numpy.lib.format): little endian, C or Fortran order. The result is
// row-major and aliases data where the array is.
func ParseNPY(data []byte) (*tensor.Tensor, error) {
	header, body, err := splitNPY(data)
	if err != nil {
		return nil, err
	}
	h, err := parseNPYHeader(header)
	if err != nil {
		return nil, fmt.Errorf("npy header: %w", err)
	}
	d, ok := npyDTypes[h.descr]
	switch {
	case ok:
	case strings.HasPrefix(h.descr, ">"):
		return nil, fmt.Errorf("dtype %q is big endian, wanted little endian: convert with a.astype(a.dtype.newbyteorder('<'))", h.descr)
	case strings.HasPrefix(h.descr, "|V"), strings.HasPrefix(h.descr, "<V"):
		return nil, fmt.Errorf("dtype %q is raw bytes: npy has no dtype for bfloat16 and float8: save such tensors as safetensors", h.descr)
	case strings.HasPrefix(h.descr, "|O"):
		return nil, fmt.Errorf("dtype %q is Python objects, wanted numbers", h.descr)
	default:
		return nil, fmt.Errorf("dtype %q is not supported, wanted bool, int8-64, uint8-64, float16-64 or complex64-128", h.descr)
	}
	t := tensor.Make(d, h.shape...)
	if err := t.Check(); err != nil {
		return nil, err
	}
	if t.Bytes() != int64(len(body)) {
		return nil, fmt.Errorf("%d bytes for %s, wanted %d", len(body), t, t.Bytes())
	}
	if h.fortran && t.Elements() > 0 {
		strides := make([]int64, len(h.shape))
		n := int64(1)
		for i, d := range h.shape {
			strides[i] = n
			n *= d
		}
		return tensor.Gather(t, body, 0, strides), nil
	}
	return tensor.New(t, body)
}

// splitNPY cuts a file into its header, a Python dictionary, and its elements.
func splitNPY(data []byte) (header string, body []byte, err error) {
	const magic = "\x93NUMPY"
	if len(data) < 10 || string(data[:6]) != magic {
		return "", nil, fmt.Errorf("starts with %.6q, wanted %q: this is no npy array", data, magic)
	}
	var n, at uint64
	switch version := data[6]; version {
	case 1:
		n, at = uint64(binary.LittleEndian.Uint16(data[8:])), 10
	case 2, 3:
		if len(data) < 12 {
			return "", nil, fmt.Errorf("npy file is cut short")
		}
		n, at = uint64(binary.LittleEndian.Uint32(data[8:])), 12
	default:
		return "", nil, fmt.Errorf("npy version %d, wanted 1 to 3", version)
	}
	if n > uint64(len(data))-at {
		return "", nil, fmt.Errorf("npy header length is %d bytes, wanted at most %d", n, uint64(len(data))-at)
	}
	return string(data[at : at+n]), data[at+n:], nil
}

type npyHeader struct {
	descr   string
	fortran bool
	shape   []int64
}

// parseNPYHeader reads the literal {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }; each key once, in any order.
func parseNPYHeader(s string) (npyHeader, error) {
	var h npyHeader
	p := &literal{rest: s}
	seen := make(map[string]bool)
	p.expect("{")
	for p.err == nil && !p.accept("}") {
		key := p.str()
		p.expect(":")
		if p.err != nil {
			break
		}
		if seen[key] {
			return h, fmt.Errorf("key %q is there twice", key)
		}
		seen[key] = true
		switch key {
		case "descr":
			if p.peek("[") {
				return h, fmt.Errorf("structured dtype, wanted one of numbers")
			}
			h.descr = p.str()
		case "fortran_order":
			h.fortran = p.accept("True")
			if !h.fortran {
				p.expect("False")
			}
		case "shape":
			h.shape = p.ints()
		default:
			return h, fmt.Errorf("key %.40q, wanted descr, fortran_order and shape", key)
		}
		if !p.peek("}") {
			p.expect(",")
		}
	}
	p.space()
	switch {
	case p.err != nil:
		return h, p.err
	case p.rest != "":
		return h, fmt.Errorf("%.20q after the dictionary", p.rest)
	case len(seen) != 3:
		return h, fmt.Errorf("%d keys, wanted descr, fortran_order and shape", len(seen))
	}
	return h, nil
}

// literal scans a Python literal; after the first error it reads nothing more.
type literal struct {
	rest string
	err  error
}

func (p *literal) space() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

func (p *literal) peek(tok string) bool {
	p.space()
	return p.err == nil && strings.HasPrefix(p.rest, tok)
}

func (p *literal) accept(tok string) bool {
	if !p.peek(tok) {
		return false
	}
	p.rest = p.rest[len(tok):]
	return true
}

func (p *literal) expect(tok string) {
	if !p.accept(tok) && p.err == nil {
		p.err = fmt.Errorf("%.20q, wanted %q", p.rest, tok)
	}
}

// str reads a quoted string. Backslashes do not occur in what numpy writes and are refused.
func (p *literal) str() string {
	quote := "'"
	if p.peek(`"`) {
		quote = `"`
	}
	p.expect(quote)
	s, rest, ok := strings.Cut(p.rest, quote)
	if p.err == nil && (!ok || strings.Contains(s, `\`)) {
		p.err = fmt.Errorf("%.20q, wanted a plain string", p.rest)
	}
	if p.err != nil {
		return ""
	}
	p.rest = rest
	return s
}

// ints reads a tuple of integers; Python 2's long suffix is allowed as numpy does.
func (p *literal) ints() []int64 {
	var out []int64
	p.expect("(")
	for p.err == nil && !p.accept(")") {
		p.space()
		n := 0
		for n < len(p.rest) && p.rest[n] >= '0' && p.rest[n] <= '9' {
			n++
		}
		v, err := strconv.ParseInt(p.rest[:n], 10, 64)
		if err != nil {
			p.err = fmt.Errorf("%.20q, wanted an extent", p.rest)
			return nil
		}
		p.rest = p.rest[n:]
		p.accept("L")
		if out = append(out, v); len(out) > tensor.MaxRank {
			p.err = fmt.Errorf("more than %d dimensions", tensor.MaxRank)
			return nil
		}
		if !p.peek(")") {
			p.expect(",")
		}
	}
	return out
}
