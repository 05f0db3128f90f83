package stablehlo

import (
	"fmt"
	"strconv"
	"strings"

	"tpuc/ir/tensor"
)

// dtypes are the element types by their spelling in MLIR.
var dtypes = func() map[string]tensor.DType {
	out := make(map[string]tensor.DType)
	for _, d := range tensor.DTypes() {
		out[d.MLIR()] = d
	}
	for _, d := range []tensor.DType{tensor.I4, tensor.I8, tensor.I16, tensor.I32, tensor.I64} {
		out["s"+d.MLIR()] = d
	}
	return out
}()

// parseType reads a type. Every text is one: what is no static tensor says in bad what was wanted.
func parseType(text string) typ {
	t := typ{text: text}
	body, ok := strings.CutPrefix(text, "tensor<")
	if !ok || !strings.HasSuffix(body, ">") {
		t.bad = "a tensor"
		switch {
		case strings.HasPrefix(text, "!stablehlo.token"):
			t.bad = "no token: side effects in an order are not supported"
		case strings.HasPrefix(text, "tuple<"):
			t.bad = "a tensor: tuples are results of calls alone, and hold tensors"
		case strings.HasPrefix(text, "memref<"):
			t.bad = "a tensor: references are not supported"
		}
		return t
	}
	body = strings.TrimSpace(strings.TrimSuffix(body, ">"))
	if i := strings.IndexByte(body, ','); i >= 0 && !strings.HasPrefix(body[max(0, strings.LastIndexByte(body[:i], 'x')+1):], "!") { // an encoding, such as bounds
		if strings.Contains(body[i:], "bounds") {
			t.bad, t.instead = "fixed sizes", fixSizes
			return t
		}
		body = strings.TrimSpace(body[:i])
	}
	for body != "" && (isDigit(body[0]) || body[0] == '?' || body[0] == '*') {
		dim, rest, ok := strings.Cut(body, "x")
		if !ok {
			t.bad = "an element type behind the extents"
			return t
		}
		n, err := strconv.ParseInt(dim, 10, 64)
		if err != nil {
			t.bad, t.instead = "fixed sizes", fixSizes
			return t
		}
		t.Dims = append(t.Dims, n)
		body = rest
	}
	t.DType, ok = dtypes[body]
	switch {
	case strings.HasPrefix(body, "!quant."):
		t.bad = "an element type that is not quantised: store integers and scales apart"
	case !ok:
		t.bad = fmt.Sprintf("an element type other than %s", body)
	default:
		if err := t.Check(); err != nil {
			t.bad = "a tensor that fits: " + err.Error()
		}
	}
	return t
}

// unquote takes quotes and escapes off a string.
func unquote(q string) string {
	q = strings.TrimSuffix(strings.TrimPrefix(q, `"`), `"`)
	if !strings.Contains(q, `\`) {
		return q
	}
	var b strings.Builder
	for i := 0; i < len(q); i++ {
		if q[i] != '\\' || i+1 >= len(q) {
			b.WriteByte(q[i])
			continue
		}
		i++
		if i+1 < len(q) && isHex(q[i]) && isHex(q[i+1]) {
			v, _ := strconv.ParseUint(q[i:i+2], 16, 8)
			b.WriteByte(byte(v))
			i++
			continue
		}
		switch q[i] {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		default:
			b.WriteByte(q[i])
		}
	}
	return b.String()
}
