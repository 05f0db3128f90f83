package pt2

import (
	"fmt"
	"strconv"
)

// Archives of schema major version 7 hold symbolic expressions as sympy prints them, such as 2*s0 + 1 or (s0//2)**2, where later ones
// hold an srepr. One parser reads both: an srepr is an expression without operators. The operators have Python's precedence.

// maxExprTerms bounds the operators of one expression, and so the depth of what a chain of them makes.
const maxExprTerms = 1000

// expr reads a sum.
func (p *exprParser) expr(depth int) (*expr, error) {
	e, err := p.product(depth)
	for err == nil {
		var b *expr
		switch {
		case p.take('+'):
			b, err = p.product(depth)
		case p.take('-'):
			if b, err = p.product(depth); err == nil {
				b = negate(b)
			}
		default:
			return e, nil
		}
		if err == nil {
			e, err = p.chain("Add", e, b)
		}
	}
	return nil, err
}

// product reads factors, quotients and remainders.
func (p *exprParser) product(depth int) (*expr, error) {
	e, err := p.power(depth)
	for err == nil {
		fn := ""
		switch {
		case p.takeTwo('/'):
			fn = "FloorDiv"
		case p.take('/'):
			fn = "IntTrueDiv"
		case p.take('%'):
			fn = "PythonMod"
		case p.peekTwo('*'): // a power's exponent was read with it
			return nil, fmt.Errorf("unexpected ** at offset %d", p.at)
		case p.take('*'):
			fn = "Mul"
		default:
			return e, nil
		}
		var b *expr
		if b, err = p.power(depth); err == nil {
			e, err = p.chain(fn, e, b)
		}
	}
	return nil, err
}

// power reads an operand with its sign and exponent: -a**b is -(a**b), and a**b**c is a**(b**c).
func (p *exprParser) power(depth int) (*expr, error) {
	if depth > maxExprDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxExprDepth)
	}
	if p.take('-') {
		e, err := p.power(depth + 1)
		if err != nil {
			return nil, err
		}
		return negate(e), nil
	}
	e, err := p.primary(depth)
	if err != nil || !p.takeTwo('*') {
		return e, err
	}
	b, err := p.power(depth + 1)
	if err != nil {
		return nil, err
	}
	return p.chain("Pow", e, b)
}

// chain is a function of two arguments.
func (p *exprParser) chain(fn string, a, b *expr) (*expr, error) {
	if p.terms++; p.terms > maxExprTerms {
		return nil, fmt.Errorf("more than %d operators", maxExprTerms)
	}
	return &expr{fn: fn, args: []*expr{a, b}}, nil
}

// negate folds the sign into a number.
func negate(e *expr) *expr {
	if e.fn == "Integer" {
		return &expr{fn: "Integer", num: num{i: -e.num.i}}
	}
	return &expr{fn: "Mul", args: []*expr{{fn: "Integer", num: num{i: -1}}, e}}
}

func (p *exprParser) peekTwo(c byte) bool {
	p.skip()
	return p.at+1 < len(p.in) && p.in[p.at] == c && p.in[p.at+1] == c
}

func (p *exprParser) takeTwo(c byte) bool {
	if !p.peekTwo(c) {
		return false
	}
	p.at += 2
	return true
}

// literal reads a number whose digits before the point or exponent are whole.
func (p *exprParser) literal(whole string) (*expr, error) {
	text := whole
	if p.at < len(p.in) && p.in[p.at] == '.' {
		p.at++
		text += "." + p.word()
		if last := text[len(text)-1]; (last == 'e' || last == 'E') && p.at < len(p.in) && (p.in[p.at] == '-' || p.in[p.at] == '+') {
			sign := p.in[p.at : p.at+1]
			p.at++
			text += sign + p.word()
		}
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("float %q is no number", clip(text))
		}
		return &expr{fn: "Float", num: num{f: f, float: true}}, nil
	}
	i, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("integer %s is out of range", clip(text))
	}
	return &expr{fn: "Integer", num: num{i: i}}, nil
}
