package op

import (
	"encoding/hex"
	"strings"

	"tpuc/ir/tensor"
)

// Dense is x as an MLIR dense elements attribute with its type: hex of the elements, one of them where all are equal.
// Bits survive exactly, NaN payloads included. Bools are written as words: how MLIR packs them in hex has changed over its versions.
func Dense(x *tensor.Tensor) string {
	var b strings.Builder
	b.WriteString("dense<")
	switch s, splat := x.Splat(); {
	case len(x.Data) == 0:
	case x.DType == tensor.Bool && splat:
		writeBools(&b, s.Data, nil)
	case x.DType == tensor.Bool:
		writeBools(&b, x.Data, x.Dims)
	default:
		data := x.Data
		if splat {
			data = s.Data
		}
		b.WriteString(`"0x`)
		b.WriteString(strings.ToUpper(hex.EncodeToString(data)))
		b.WriteString(`"`)
	}
	b.WriteString("> : ")
	b.WriteString(x.MLIR())
	return b.String()
}

// writeBools writes elements of shape dims as nested lists.
func writeBools(b *strings.Builder, data []byte, dims []int64) {
	if len(dims) == 0 {
		b.WriteString([]string{"false", "true"}[data[0]])
		return
	}
	part := len(data) / int(dims[0])
	b.WriteByte('[')
	for i := range int(dims[0]) {
		if i > 0 {
			b.WriteString(", ")
		}
		writeBools(b, data[i*part:(i+1)*part], dims[1:])
	}
	b.WriteByte(']')
}
