package text

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// attrs fills the operator's attribute struct from the text, by the fields' tags. Every field left out is zero.
func (r *resolver) attrs(o *ir.Op, d *nodeStmt) (any, bool) {
	if o.Attr == nil {
		if len(d.Attrs) > 0 {
			r.errorf(r.cur, d.Attrs[0].Pos, "text/attr", "%s: attribute %q, wanted none", o.Name, d.Attrs[0].Name)
			return nil, false
		}
		return nil, true
	}
	ok := true
	v := reflect.New(o.Attr).Elem()
	seen := make(map[string]bool)
	for _, a := range d.Attrs {
		var tags []string
		field := -1
		for i := range o.Attr.NumField() {
			tags = append(tags, o.Attr.Field(i).Tag.Get("ir"))
			if tags[i] == a.Name {
				field = i
			}
		}
		switch {
		case field < 0:
			r.errorf(r.cur, a.Pos, "text/attr", "%s: unknown attribute %q, wanted one of %s", o.Name, a.Name, strings.Join(tags, ", "))
			ok = false
			continue
		case seen[a.Name]:
			r.errorf(r.cur, a.Pos, "text/attr", "%s: attribute %q is given twice", o.Name, a.Name)
			ok = false
			continue
		}
		seen[a.Name] = true
		if !r.value(v.Field(field), a.Value, o.Name+": "+a.Name) {
			ok = false
		}
	}
	return v.Interface(), ok
}

// value reads x into dst as dst's type wants it. what names the attribute in messages.
func (r *resolver) value(dst reflect.Value, x *value, what string) bool {
	wrong := func() bool {
		r.errorf(r.cur, x.Pos, "text/attr", "%s is %s, wanted %s", what, x.describe(), kindName(dst.Type()))
		return false
	}
	switch dst.Type() {
	case dtypeType:
		if x.Word == nil {
			return wrong()
		}
		d, err := tensor.ParseDType(*x.Word)
		if err != nil {
			r.errorf(r.cur, x.Pos, "text/attr", "%s: %v", what, err)
			return false
		}
		dst.Set(reflect.ValueOf(d))
		return true
	case typeType:
		if x.Type == nil || x.Lit != nil {
			return wrong()
		}
		t, ok := r.typ(x.Type)
		dst.Set(reflect.ValueOf(t))
		return ok
	case funcType:
		if x.Sym == nil {
			return wrong()
		}
		f, found := r.funcs[r.key(x.Pos, (*x.Sym)[1:])]
		if !found || f != nil && f == r.m.Func {
			r.errorf(r.cur, x.Pos, "text/name", "%s: function %s is not defined above", what, *x.Sym)
			return false
		}
		if f == nil {
			return false
		}
		r.called[f] = true
		dst.Set(reflect.ValueOf(f))
		return true
	case tensorType:
		if x.Type == nil || x.Lit == nil {
			return wrong()
		}
		t, ok := r.literal(x)
		if ok {
			dst.Set(reflect.ValueOf(t))
		}
		return ok
	}
	switch dst.Kind() {
	case reflect.Bool:
		if x.Word == nil || *x.Word != "true" && *x.Word != "false" {
			return wrong()
		}
		dst.SetBool(*x.Word == "true")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if x.Num == nil {
			return wrong()
		}
		n, err := strconv.ParseInt(*x.Num, 10, dst.Type().Bits())
		if err != nil {
			return wrong()
		}
		dst.SetInt(n)
	case reflect.Float32, reflect.Float64:
		s := x.Num
		if s == nil {
			s = x.Word // inf and nan are words
		}
		if s == nil {
			return wrong()
		}
		f, err := parseFloat(*s)
		if err != nil {
			return wrong()
		}
		dst.SetFloat(f)
	case reflect.String:
		switch {
		case x.Word != nil:
			dst.SetString(*x.Word)
		case x.Str != nil:
			dst.SetString(r.unquote(x.Pos, *x.Str))
		default:
			return wrong()
		}
	case reflect.Slice:
		if !x.IsList {
			return wrong()
		}
		if len(x.List) == 0 {
			return true // nil and empty are one
		}
		s := reflect.MakeSlice(dst.Type(), len(x.List), len(x.List))
		for i, e := range x.List {
			if !r.value(s.Index(i), e, fmt.Sprintf("%s[%d]", what, i)) {
				return false
			}
		}
		dst.Set(s)
	default:
		return wrong()
	}
	return true
}

// describe says in a message what was written.
func (x *value) describe() string {
	switch {
	case x.Type != nil && x.Lit != nil:
		return "a tensor literal"
	case x.Type != nil:
		return "a type"
	case x.IsList:
		return "a list"
	case x.Str != nil:
		return "the string " + clip(*x.Str)
	case x.Num != nil:
		return clip(*x.Num)
	case x.Sym != nil:
		return "the function " + clip(*x.Sym)
	case x.Word != nil:
		return clip(*x.Word)
	}
	return "nothing"
}

// literal reads a type and its elements: a nested list of the type's shape, one element for all, or a hex string of the bytes of
// all elements or of one for all. An empty list is the literal of any type without elements.
func (r *resolver) literal(x *value) (*tensor.Tensor, bool) {
	t, ok := r.typ(x.Type)
	if !ok {
		return nil, false
	}
	if t.Bytes() > maxValue-r.size {
		r.errorf(r.cur, x.Pos, "text/size", "literal of %d bytes, wanted at most %d in all literals of the text", t.Bytes(), maxValue)
		return nil, false
	}
	r.size += t.Bytes()
	l := x.Lit
	if l.Str != nil {
		return r.hexLiteral(t, l)
	}
	if t.Elements() == 0 && l.IsList && len(l.List) == 0 {
		return tensor.Zeros(t), true
	}
	one := tensor.Make(t.DType)
	size := t.DType.Size()
	if l.Word != nil {
		data, err := elementBytes(one, *l.Word)
		if err != nil {
			r.errorf(r.cur, l.Pos, "text/literal", "%v", err)
			return nil, false
		}
		out := tensor.Zeros(t)
		for i := 0; i < len(out.Data); i += size {
			copy(out.Data[i:], data)
		}
		return out, true
	}
	out := &tensor.Tensor{Type: t, Data: make([]byte, 0, min(t.Bytes(), 1<<16))} // a list that is too short costs little
	// walk appends in row-major order; the nesting must be the shape's.
	var walk func(l *elems, dims []int64) bool
	walk = func(l *elems, dims []int64) bool {
		switch {
		case len(dims) == 0 && l.Word != nil:
			data, err := elementBytes(one, *l.Word)
			if err != nil {
				r.errorf(r.cur, l.Pos, "text/literal", "%v", err)
				return false
			}
			out.Data = append(out.Data, data...)
			return true
		case len(dims) == 0:
			r.errorf(r.cur, l.Pos, "text/literal", "a list or string as an element, wanted a number")
			return false
		case !l.IsList:
			r.errorf(r.cur, l.Pos, "text/literal", "an element, wanted a list of %d", dims[0])
			return false
		case int64(len(l.List)) != dims[0]:
			r.errorf(r.cur, l.Pos, "text/literal", "a list of %d, wanted %d for %s", len(l.List), dims[0], t)
			return false
		}
		return !slices.ContainsFunc(l.List, func(e *elems) bool { return !walk(e, dims[1:]) })
	}
	return out, walk(l, t.Dims)
}

// hexLiteral reads the bytes of all elements, or of one that all are equal to. Any bits are taken, so NaN payloads survive.
func (r *resolver) hexLiteral(t tensor.Type, l *elems) (*tensor.Tensor, bool) {
	s := r.unquote(l.Pos, *l.Str)
	digits, prefix := strings.CutPrefix(s, "0x")
	data, err := hex.DecodeString(digits)
	switch {
	case !prefix || err != nil:
		r.errorf(r.cur, l.Pos, "text/literal", "%s, wanted an even number of hex digits after 0x", clip(*l.Str))
		return nil, false
	case int64(len(data)) == t.Bytes():
		return &tensor.Tensor{Type: t, Data: data}, true
	case len(data) != t.DType.Size():
		r.errorf(r.cur, l.Pos, "text/literal", "%d bytes for %s, wanted %d, or %d for equal elements", len(data), t, t.Bytes(), t.DType.Size())
		return nil, false
	}
	out := tensor.Zeros(t)
	for i := 0; i < len(out.Data); i += len(data) {
		copy(out.Data[i:], data)
	}
	return out, true
}

// elementBytes gives the bytes of one element. Decimals are rounded to the element type, integers must be in its range.
func elementBytes(t tensor.Type, s string) ([]byte, error) {
	d := t.DType
	switch {
	case d == tensor.Bool:
		if s != "true" && s != "false" {
			return nil, fmt.Errorf("%s, wanted true or false", clip(s))
		}
		return []byte{byte(strings.Count(s, "true"))}, nil
	case d.IsFloat():
		f, err := parseFloat(s)
		if err != nil {
			return nil, fmt.Errorf("%s, wanted a number", clip(s))
		}
		return tensor.FromFloats(t, []float64{f}).Data, nil
	case d == tensor.U64:
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s, wanted an integer in the range of u64", clip(s))
		}
		return tensor.FromInts(t, []int64{int64(n)}).Data, nil
	case d.IsInt():
		n, err := strconv.ParseInt(s, 10, 64)
		if lo, hi := d.IntRange(); err != nil || n < lo || n > hi {
			return nil, fmt.Errorf("%s, wanted an integer in the range of %s", clip(s), d)
		}
		return tensor.FromInts(t, []int64{n}).Data, nil
	}
	return nil, fmt.Errorf("%s, wanted the bytes of %s in hex", clip(s), d)
}

// near suggests the operator whose name is closest, where one is close.
func near(s string) string {
	best, dist := "", 3
	for _, o := range op.All {
		if d := editDistance(s, o.Name, dist); d < dist {
			best, dist = o.Name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", wanted such as %q", best)
}

// editDistance is Levenshtein's, or limit where it would be more.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return min(row[len(b)], limit)
}
