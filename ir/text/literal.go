package text

import (
	"bytes"
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"tpuc/ir/tensor"
)

// maxListed is the number of elements up to which a literal is written element by element.
const maxListed = 32

// Literal is x as the text writes it: its type, then a nested list of elements, one element where all have the same bits, or a
// string of the bytes in hex. Bits survive exactly.
func Literal(x *tensor.Tensor) string {
	var b strings.Builder
	writeLiteral(&b, x)
	return b.String()
}

// writeLiteral chooses the form: one element for equal ones, a list for few, hex where words would be many or inexact.
func writeLiteral(b *strings.Builder, x *tensor.Tensor) {
	b.WriteString(x.Type.String() + " ")
	listed := x
	splat, same := x.Splat()
	if same {
		listed = splat
	}
	if listed.Elements() <= maxListed {
		if words, ok := elements(listed); ok {
			writeNested(b, words, listed.Dims)
			return
		}
	}
	b.WriteString(`"0x` + hex.EncodeToString(listed.Data) + `"`)
}

// elements are the words for all elements of x, or false where some element has no word that reads back as the same bits.
func elements(x *tensor.Tensor) ([]string, bool) {
	words := make([]string, 0, x.Elements())
	switch {
	case x.DType.IsComplex():
		return nil, false
	case x.DType.IsFloat():
		for i, f := range x.Floats() {
			w, ok := floatWord(f, x.DType, x.Data[i*x.DType.Size():])
			if !ok {
				return nil, false
			}
			words = append(words, w)
		}
	default:
		for _, n := range x.Ints() {
			switch {
			case x.DType == tensor.Bool:
				words = append(words, strconv.FormatBool(n != 0))
			case x.DType == tensor.U64:
				words = append(words, strconv.FormatUint(uint64(n), 10))
			default:
				words = append(words, strconv.FormatInt(n, 10))
			}
		}
		if !bytes.Equal(tensor.FromInts(x.Type, x.Ints()).Data, x.Data) { // a bool that is neither 0 nor 1
			return nil, false
		}
	}
	return words, true
}

// floatWord is the shortest decimal that rounds to f, whose bits in d are the first bytes of data.
func floatWord(f float64, d tensor.DType, data []byte) (string, bool) {
	exact := func(w string) bool {
		g, err := parseFloat(w)
		return err == nil && bytes.Equal(tensor.Scalar(d, g).Data, data[:d.Size()])
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		w := number(f, 64)
		return w, exact(w)
	}
	if d == tensor.F32 || d == tensor.F64 {
		w := number(f, d.Bits())
		return w, exact(w)
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<20 { // 448 and not 450, though that would round to it
		w := number(f, 64)
		return w, exact(w)
	}
	for digits := 1; digits <= 8; digits++ { // at most 11 significant bits
		if w := strconv.FormatFloat(f, 'g', digits, 64); exact(w) {
			return strconv.FormatFloat(mustFloat(w), 'g', -1, 64), true
		}
	}
	w := number(f, 64)
	return w, exact(w)
}

// writeNested appends words as lists nested by dims.
func writeNested(b *strings.Builder, words []string, dims []int64) {
	switch {
	case len(words) == 0: // whatever the shape
		b.WriteString("[]")
		return
	case len(dims) == 0:
		b.WriteString(words[0])
		return
	}
	b.WriteByte('[')
	for i := range dims[0] {
		if i > 0 {
			b.WriteByte(',')
		}
		step := int64(len(words)) / dims[0]
		writeNested(b, words[i*step:(i+1)*step], dims[1:])
	}
	b.WriteByte(']')
}

// number is the shortest decimal of f, with "inf" and "nan" for what has none.
func number(f float64, bits int) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	return strconv.FormatFloat(f, 'g', -1, bits)
}

// parseFloat reads what number writes. A finite decimal beyond float64's range is an error.
func parseFloat(s string) (float64, error) {
	switch s {
	case "nan":
		return math.NaN(), nil
	case "inf":
		return math.Inf(1), nil
	case "-inf":
		return math.Inf(-1), nil
	}
	return strconv.ParseFloat(s, 64)
}

// mustFloat reads what strconv wrote.
func mustFloat(s string) float64 {
	f, _ := strconv.ParseFloat(s, 64)
	return f
}
