package op

import (
	"encoding/hex"
	"strings"

	"tpuc/ir/tensor"
)

// Dense is x as an MLIR dense elements attribute with its type: hex of the elements, one of them where all are equal.
// Bits survive exactly, NaN payloads included.
func Dense(x *tensor.Tensor) string {
	if len(x.Data) == 0 {
		return "dense<> : " + x.MLIR()
	}
	data := x.Data
	if s, ok := x.Splat(); ok {
		data = s.Data
		if x.DType == tensor.Bool { // a splat of i1 is written as a word
			return "dense<" + map[byte]string{0: "false", 1: "true"}[data[0]] + "> : " + x.MLIR()
		}
	} else if x.DType == tensor.Bool { // MLIR packs i1 elements eight a byte, least significant first
		packed := make([]byte, (len(data)+7)/8)
		for i, b := range data {
			packed[i/8] |= b << (i % 8)
		}
		data = packed
	}
	var b strings.Builder
	b.WriteString(`dense<"0x`)
	b.WriteString(strings.ToUpper(hex.EncodeToString(data)))
	b.WriteString(`"> : `)
	b.WriteString(x.MLIR())
	return b.String()
}
