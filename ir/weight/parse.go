package weight

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"tpuc/ir/tensor"
)

// maxText is the size in bytes up to which an expression is read.
const maxText = 1 << 20

// Parse reads what String writes of an expression that gives type t; blanks do not matter. "name" and tensor("name") are the same.
//
//	source = leaf | apply
//	leaf   = string | "tensor" "(" string ")" | "const" "(" string ")"
//	apply  = ( "permute" | "reshape" | "slice" ) "(" ( leaf ":" type | apply ) { "," "[" [ n { "," n } ] "]" } ")"
func Parse(s string, t tensor.Type) (Expr, error) {
	if len(s) > maxText {
		return nil, fmt.Errorf("source of %d bytes, wanted at most %d", len(s), maxText)
	}
	p := &parser{rest: s}
	e, err := p.source(&t, 0)
	if err == nil && p.peek() != 0 {
		err = errors.New("wanted its end")
	}
	switch {
	case err != nil && p.rest == "":
		return nil, fmt.Errorf("%w, at its end", err)
	case err != nil:
		return nil, fmt.Errorf("%w, at %q", err, clip(p.rest))
	case !e.Type().Equal(t):
		return nil, fmt.Errorf("the source gives %s, wanted %s", e.Type(), t)
	}
	return e, nil
}

// clip shortens what an error shows.
func clip(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}

// parser holds what is not read yet.
type parser struct{ rest string }

// peek is the next byte that is no blank, 0 at the end.
func (p *parser) peek() byte {
	p.rest = strings.TrimLeft(p.rest, " \t")
	if p.rest == "" {
		return 0
	}
	return p.rest[0]
}

// source reads an expression. A leaf has type t, or where t is nil the one behind it.
func (p *parser) source(t *tensor.Type, depth int) (Expr, error) {
	if depth > MaxDepth {
		return nil, fmt.Errorf("more than %d operations on one tensor", MaxDepth)
	}
	if p.peek() == '"' {
		return p.leaf("", t)
	}
	n := strings.IndexFunc(p.rest, func(r rune) bool { return r < 'a' || r > 'z' })
	if n <= 0 {
		return nil, errors.New(`wanted "name", tensor("name"), const("digest"), permute(...), reshape(...) or slice(...)`)
	}
	word := p.rest[:n]
	if word == "tensor" || word == "const" {
		p.rest = p.rest[n:]
		return p.leaf(word, t)
	}
	for _, m := range moves {
		if m.name == word {
			p.rest = p.rest[n:]
			return p.moved(m, depth)
		}
	}
	return nil, fmt.Errorf("source %s, wanted a quoted name, tensor, const, permute, reshape or slice", word)
}

// leaf reads a quoted name, in brackets behind a word, and the type where t is nil.
func (p *parser) leaf(word string, t *tensor.Type) (Expr, error) {
	if word != "" {
		if err := p.take('('); err != nil {
			return nil, err
		}
	}
	p.peek()
	quoted, err := strconv.QuotedPrefix(p.rest)
	if err != nil || quoted[0] != '"' {
		return nil, errors.New("wanted a string in double quotes")
	}
	name, err := strconv.Unquote(quoted)
	if err != nil {
		return nil, err
	}
	p.rest = p.rest[len(quoted):]
	if word != "" {
		if err := p.take(')'); err != nil {
			return nil, err
		}
	}
	if t == nil {
		typ, err := p.typ()
		if err != nil {
			return nil, err
		}
		t = &typ
	}
	if word == "const" {
		return Const{name, *t}, nil
	}
	return Tensor{name, *t}, nil
}

// typ reads a colon and a type.
func (p *parser) typ() (tensor.Type, error) {
	if err := p.take(':'); err != nil {
		return tensor.Type{}, err
	}
	p.peek()
	end := strings.IndexByte(p.rest, ']')
	if end < 0 {
		return tensor.Type{}, errors.New("wanted a type such as f32[2,3]")
	}
	t, err := tensor.ParseType(strings.NewReplacer(" ", "", "\t", "").Replace(p.rest[:end+1]))
	if err == nil {
		p.rest = p.rest[end+1:]
	}
	return t, err
}

// moved reads the arguments of m.
func (p *parser) moved(m *move, depth int) (Expr, error) {
	if err := p.take('('); err != nil {
		return nil, err
	}
	of, err := p.source(nil, depth+1)
	if err != nil {
		return nil, err
	}
	lists := make([][]int64, m.lists)
	for i := range lists {
		if err := p.take(','); err != nil {
			return nil, err
		}
		if lists[i], err = p.list(); err != nil {
			return nil, err
		}
	}
	if err := p.take(')'); err != nil {
		return nil, err
	}
	return apply(m, of, lists...)
}

// list reads integers in brackets.
func (p *parser) list() ([]int64, error) {
	if err := p.take('['); err != nil {
		return nil, err
	}
	body, rest, ok := strings.Cut(p.rest, "]")
	if !ok {
		return nil, errors.New("wanted a ] behind the list")
	}
	list := []int64{}
	if strings.Trim(body, " \t") != "" {
		for _, s := range strings.Split(body, ",") {
			n, err := strconv.ParseInt(strings.Trim(s, " \t"), 10, 64)
			if err != nil || len(list) == tensor.MaxRank {
				return nil, fmt.Errorf("wanted at most %d integers", tensor.MaxRank)
			}
			list = append(list, n)
		}
	}
	p.rest = rest
	return list, nil
}

// take reads one byte.
func (p *parser) take(c byte) error {
	if p.peek() != c {
		return fmt.Errorf("wanted %q", c)
	}
	p.rest = p.rest[1:]
	return nil
}
