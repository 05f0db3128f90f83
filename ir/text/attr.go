package text

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// Attrs is an attribute struct as the text writes it, such as "{contract=[[1],[0]], out=f32}", with fields in order of declaration
// and zero ones left out; empty where nothing is left. Equal text means equal attributes, but for functions, which stand by their names.
func Attrs(attr any) string {
	var b strings.Builder
	writeAttrs(&b, attr, nil)
	return strings.TrimPrefix(b.String(), " ")
}

// CheckAttr reports a field of an attribute struct that the text cannot hold: without an `ir` tag or of an unknown kind. It is nil for nil.
func CheckAttr(t reflect.Type) error {
	if t == nil {
		return nil
	}
	seen := make(map[string]bool)
	for i := range t.NumField() {
		f := t.Field(i)
		switch tag := f.Tag.Get("ir"); {
		case !isIdent(tag):
			return fmt.Errorf("%s.%s has the tag %q, wanted an identifier as in `ir:\"axis\"`", t.Name(), f.Name, tag)
		case seen[tag]:
			return fmt.Errorf("%s.%s: tag %q is used twice", t.Name(), f.Name, tag)
		default:
			seen[tag] = true
		}
		if kindName(f.Type) == "" {
			return fmt.Errorf("%s.%s is a %s, wanted bool, int, float, string, dtype, type, tensor, function or slices of these", t.Name(), f.Name, f.Type)
		}
	}
	return nil
}

// The struct or named types that are values of their own.
var (
	funcType   = reflect.TypeFor[*ir.Func]()
	dtypeType  = reflect.TypeFor[tensor.DType]()
	typeType   = reflect.TypeFor[tensor.Type]()
	tensorType = reflect.TypeFor[*tensor.Tensor]()
)

// kindName describes a field's type in messages, and is empty for one that attributes may not have.
func kindName(t reflect.Type) string {
	switch t {
	case dtypeType:
		return "a dtype"
	case typeType:
		return "a type"
	case tensorType:
		return "a tensor literal"
	case funcType:
		return "a function"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "an integer"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a word or string"
	case reflect.Slice:
		if kindName(t.Elem()) == "" {
			return ""
		}
		return "a list"
	}
	return ""
}

// writeAttrs appends " {...}", or nothing where every field is zero. Functions are called as funcs says, others by their own names.
func writeAttrs(b *strings.Builder, attr any, funcs map[*ir.Func]string) {
	if attr == nil {
		return
	}
	v := reflect.ValueOf(attr)
	open := " {"
	for i := range v.NumField() {
		f := v.Field(i)
		if f.IsZero() || f.Kind() == reflect.Slice && f.Len() == 0 {
			continue
		}
		b.WriteString(open + v.Type().Field(i).Tag.Get("ir") + "=")
		writeValue(b, f, funcs)
		open = ", "
	}
	if open == ", " {
		b.WriteByte('}')
	}
}

// writeValue appends one field or list element. Floats have the field's precision.
func writeValue(b *strings.Builder, v reflect.Value, funcs map[*ir.Func]string) {
	switch x := v.Interface().(type) {
	case tensor.DType:
		b.WriteString(x.String())
		return
	case tensor.Type:
		b.WriteString(x.String())
		return
	case *tensor.Tensor:
		writeLiteral(b, x)
		return
	case *ir.Func:
		n, ok := funcs[x]
		if !ok && x != nil {
			n = x.Name
		}
		b.WriteString("@" + name(n))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		b.WriteString(strconv.FormatBool(v.Bool()))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		b.WriteString(strconv.FormatInt(v.Int(), 10))
	case reflect.Float32, reflect.Float64:
		b.WriteString(number(v.Float(), v.Type().Bits()))
	case reflect.String:
		b.WriteString(name(v.String()))
	case reflect.Slice:
		b.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				b.WriteByte(',')
			}
			writeValue(b, v.Index(i), funcs)
		}
		b.WriteByte(']')
	default:
		panic(fmt.Sprintf("attribute of kind %s has no text", v.Type()))
	}
}
