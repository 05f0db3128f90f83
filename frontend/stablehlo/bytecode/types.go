package bytecode

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// floatBits are the sizes of floats whose names do not say them.
var floatBits = map[string]int{"bf16": 16, "f16": 16, "f32": 32, "f64": 64, "f80": 80, "f128": 128, "tf32": 19}

// scalar is the type of that name: integers and floats have a size, others none.
func scalar(name string) *typ {
	t := &typ{text: name, parts: 1, signed: true}
	if n, ok := floatBits[name]; ok {
		t.bits, t.float = n, true
		return t
	}
	if name == "index" {
		t.bits = 64
		return t
	}
	for _, prefix := range []string{"f8E", "f6E", "f4E"} {
		if strings.HasPrefix(name, prefix) {
			t.bits, t.float = int(prefix[1]-'0'), true
			return t
		}
	}
	digits := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(name, "s"), "u"), "i")
	if n, err := strconv.ParseUint(digits, 10, 16); err == nil && strings.HasSuffix(name, "i"+digits) && n > 0 {
		t.bits, t.signed = int(n), name[0] != 'u'
	}
	return t
}

// complexOf is complex<elem>.
func complexOf(elem *typ) *typ {
	return &typ{text: "complex<" + elem.text + ">", bits: elem.bits, float: elem.float, signed: elem.signed, parts: 2}
}

// extents are those of a tensor.
func (r *reader) extents() []int64 {
	dims := r.signeds()
	if len(dims) > maxDepth {
		r.fail("a tensor of rank %d, wanted at most %d", len(dims), maxDepth)
	}
	return dims
}

// shaped is tensor<2x3xelem>, memref<..> or vector<..>, with what may follow, such as an encoding.
func shaped(kind string, dims []int64, elem *typ, behind string) *typ {
	var b strings.Builder
	b.WriteString(kind + "<")
	for _, n := range dims {
		if n == dynamic {
			b.WriteString("?x")
		} else {
			b.WriteString(strconv.FormatInt(n, 10) + "x")
		}
	}
	b.WriteString(elem.text + behind + ">")
	return &typ{text: b.String(), dims: dims, elem: elem}
}

// tensor reads the extents and the element type of a ranked tensor; behind follows them in its text.
func (d *decoder) tensor(r *reader, behind string) *typ {
	dims := r.extents()
	return shaped("tensor", dims, d.typ(r), behind)
}

// listed is kind<a, b>.
func (d *decoder) listed(kind string, inner []*typ) *typ {
	return &typ{text: kind + "<" + d.typeList(inner) + ">"}
}

// function is (a, b) -> (c).
func (d *decoder) function(in, out []*typ) *typ {
	return &typ{text: d.signature(in, out), inner: in, outer: out}
}

func (d *decoder) signature(in, out []*typ) string {
	results := "(" + d.typeList(out) + ")"
	if len(out) == 1 && out[0].outer == nil && out[0].inner == nil {
		results = out[0].text
	}
	return "(" + d.typeList(in) + ") -> " + results
}

// typeList is a, b.
func (d *decoder) typeList(types []*typ) string {
	for _, t := range types { // before it is made
		d.spend(len(t.text))
	}
	return list(types, func(t *typ) string { return t.text })
}

// size is the number of bytes that an element takes in memory; 0 where the type has no elements of a fixed size.
func (t *typ) size() int { return (t.bits + 7) / 8 * t.parts }

// elements is how many there are, or -1 where that is not fixed or beyond counting.
func (t *typ) elements() int64 {
	n := int64(1)
	for _, d := range t.dims {
		switch {
		case d < 0 || d > 0 && n > math.MaxInt64/d:
			return -1
		}
		n *= d
	}
	return n
}

// integer is a value of an integer type.
func (t *typ) integer(v uint64) string {
	if t.bits < 64 {
		v &= 1<<t.bits - 1
		if t.signed && t.bits > 1 && v>>(t.bits-1) != 0 {
			return strconv.FormatInt(int64(v)-1<<t.bits, 10)
		}
	}
	switch {
	case t.bits == 1 && t.text == "i1":
		return strconv.FormatBool(v == 1)
	case t.signed:
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatUint(v, 10)
}

// decimal is a value of a float type as MLIR prints attributes: decimal where that is exact and short, otherwise its bits.
func (t *typ) decimal(v uint64) string {
	var f float64
	switch t.text {
	case "f32":
		f = float64(math.Float32frombits(uint32(v)))
	case "f64":
		f = math.Float64frombits(v)
	default:
		return t.number(v)
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return t.number(v)
	}
	digits, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, t.bits), "e")
	if !strings.Contains(digits, ".") {
		digits += ".0"
	}
	return digits + "e" + exponent
}

// number is a value of a scalar type. Floats are their bits, which every reader takes exactly.
func (t *typ) number(v uint64) string {
	if t.float {
		return fmt.Sprintf("0x%0*X", (t.bits+3)/4, v&(math.MaxUint64>>(64-min(t.bits, 64))))
	}
	return t.integer(v)
}
