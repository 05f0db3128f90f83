package pt2

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// schemaText holds the signatures of the aten operators of torch 2.15, one a line, without the variants that write to an
// argument named out. Archives leave out arguments that equal the default written here. to.dtype_layout is not registered
// with the others; its line is from native_functions.yaml.
//
//go:embed schemas.txt
var schemaText string

// schema is an operator's signature.
type schema struct {
	params  []schemaParam
	mutates bool // the first parameter is written to
}

type schemaParam struct {
	name string
	typ  string // such as "SymInt[2]?", without alias annotations
	dflt string // the default as written; empty: required
}

// schemaLines finds each signature by overload, such as "add.Tensor"; the default overload has no suffix.
var schemaLines = sync.OnceValue(func() map[string]string {
	out := make(map[string]string)
	for line := range strings.Lines(schemaText) {
		line = strings.TrimSpace(line)
		if name, _, ok := strings.Cut(line, "("); ok {
			out[name] = line
		}
	}
	return out
})

// lookupSchema parses the signature of an overload, such as "add.Tensor" or "relu.default".
func lookupSchema(overload string) (*schema, bool) {
	line, ok := schemaLines()[strings.TrimSuffix(overload, ".default")]
	if !ok {
		return nil, false
	}
	s, err := parseSchema(line)
	if err != nil {
		panic(err) // the embedded table is at fault; a test parses all of it
	}
	return s, true
}

// parseSchema reads one signature of the form name(Type name=default, *, ...) -> results.
func parseSchema(line string) (*schema, error) {
	_, rest, ok := strings.Cut(line, "(")
	if !ok {
		return nil, fmt.Errorf("signature %q has no parameters", line)
	}
	end := matching(rest)
	if end < 0 {
		return nil, fmt.Errorf("signature %q is not closed", line)
	}
	s := &schema{}
	for _, part := range splitTop(rest[:end]) {
		if part == "*" { // only keywords from here on
			continue
		}
		typ, name, ok := cutType(part)
		if !ok {
			return nil, fmt.Errorf("signature %q: parameter %q", line, part)
		}
		p := schemaParam{}
		p.name, p.dflt, _ = strings.Cut(name, "=")
		if i := strings.IndexByte(typ, '('); i >= 0 {
			j := strings.IndexByte(typ, ')')
			if strings.Contains(typ[i:j], "!") && len(s.params) == 0 {
				s.mutates = true
			}
			typ = typ[:i] + typ[j+1:]
		}
		p.typ = typ
		s.params = append(s.params, p)
	}
	return s, nil
}

// matching is the offset of the parenthesis that closes an open one before s.
func matching(s string) int {
	depth := 1
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// splitTop splits at the commas outside brackets.
func splitTop(s string) []string {
	var out []string
	depth, from := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, strings.TrimSpace(s[from:i]))
				from = i + 1
			}
		}
	}
	if last := strings.TrimSpace(s[from:]); last != "" {
		out = append(out, last)
	}
	return out
}

// cutType splits "Tensor(a -> *)[] self=x" after its type.
func cutType(s string) (typ, name string, ok bool) {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case ' ':
			if depth == 0 {
				return s[:i], s[i+1:], true
			}
		}
	}
	return "", "", false
}

// param finds a parameter by name, or nil.
func (s *schema) param(name string) *schemaParam {
	if s == nil {
		return nil
	}
	for i := range s.params {
		if s.params[i].name == name {
			return &s.params[i]
		}
	}
	return nil
}

// argument is the default as an archive would write it. Reductions, memory formats and layouts are the numbers of torch.
func (p *schemaParam) argument() argument {
	yes, no := true, false
	d := p.dflt
	switch {
	case d == "None" || d == "":
		return argument{None: &noneArg{}}
	case d == "True":
		return argument{Bool: &yes}
	case d == "False":
		return argument{Bool: &no}
	case d == "Mean":
		return intArg(1)
	case d == "Sum":
		return intArg(2)
	case d == "contiguous_format":
		f := 1
		return argument{MemoryFormat: &f}
	case d[0] == '"' || d[0] == '\'':
		s := strings.Trim(d, `"'`)
		return argument{String: &s}
	case d[0] == '[':
		list := []int64{}
		for _, f := range splitTop(strings.Trim(d, "[]")) {
			v, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				return argument{} // no integer list has such a default
			}
			list = append(list, v)
		}
		return argument{Ints: &list}
	}
	if v, err := strconv.ParseInt(d, 10, 64); err == nil {
		return intArg(v)
	}
	if v, err := strconv.ParseFloat(d, 64); err == nil {
		f := number(v)
		return argument{Float: &f}
	}
	return argument{String: &d}
}

func intArg(v int64) argument { return argument{Int: &v} }
