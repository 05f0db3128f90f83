// Package jsonerr words errors of encoding/json for users: what stands in the file, and what was wanted there. It never reads JSON itself.
package jsonerr

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// Describe words an error that encoding/json gave for text of a file. Errors of other kinds, such as those of an UnmarshalJSON, are kept.
func Describe(err error) error {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("JSON is cut short")
	case errors.As(err, &kind):
		field := kind.Field
		if field == "" {
			field = "the whole"
		}
		return fmt.Errorf("bad JSON: %s is %s, wanted %s (byte %d)", field, article(kind.Value), name(kind.Type), kind.Offset)
	case errors.As(err, &syntax) && syntax.Error() == "unexpected end of JSON input":
		return errors.New("JSON is cut short")
	case errors.As(err, &syntax):
		return fmt.Errorf("bad JSON: %w (byte %d)", syntax, syntax.Offset)
	}
	return fmt.Errorf("bad JSON: %w", err)
}

// article words the kind of a JSON value: "object", "array", "string", "bool", "null", or "number 1.5".
func article(value string) string {
	switch {
	case value == "array":
		return "a list"
	case value == "object":
		return "an object"
	case value == "null", strings.HasPrefix(value, "number "):
		if len(value) > 60 {
			return value[:60] + "..."
		}
		return value
	}
	return "a " + value
}

// name words the JSON that a Go type is read from.
func name(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return name(t.Elem())
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return fmt.Sprintf("an integer of %d bits", t.Bits())
}
