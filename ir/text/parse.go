package text

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"

	"tpuc/ir"
	"tpuc/ir/diag"
)

// Limits of one source: what a generated file of a large model stays far below, and what untrusted text cannot exceed.
const (
	maxSource = 128 << 20 // bytes
	maxLine   = 16 << 20  // bytes
	maxCommas = 8 << 20   // in the whole text; a list element takes a hundred times its text in memory
	maxDepth  = 32        // nested brackets
	maxErrors = 100       // reported
	maxValue  = 512 << 20 // bytes of all literals' elements, which one word can make many
)

// Parse reads a module as Print writes it. name is the file's name in locations. The module passes ir.Verify.
// An error is a diag.List of all mistakes found, each with line and column and the offending line; result types that differ from the
// shape rule's are among them. Parse never panics.
func Parse(name, src string) (*ir.Module, error) {
	p := &parser{file: name}
	if !p.accept(src) {
		return nil, p.errs.Err()
	}
	lines := p.lines(src)
	r := newResolver(p)
	m := r.module(lines)
	if len(p.errs) == 0 {
		if err := ir.Verify(m); err != nil {
			p.verify(err)
		}
	}
	if len(p.errs) > 0 {
		return nil, p.errs.Err()
	}
	return m, nil
}

// accept refuses what is not looked into at all.
func (p *parser) accept(src string) bool {
	switch {
	case len(src) > maxSource:
		p.errs.Addf(&diag.Loc{File: p.file}, "text/size", "%d bytes, wanted at most %d", len(src), maxSource)
	case !utf8.ValidString(src):
		p.errs.Addf(&diag.Loc{File: p.file, Line: 1 + strings.Count(src[:invalidAt(src)], "\n")}, "text/utf8", "bytes that are no UTF-8, wanted text")
	}
	return len(p.errs) == 0
}

// parser holds what locates and collects errors.
type parser struct {
	file string
	errs diag.List
	full bool  // maxErrors reached
	size int64 // bytes of literals so far
}

// parsed is a line with its number and text. ast is nil where it had a syntax error.
type parsed struct {
	num  int
	text string
	ast  *line
}

// lines parses every line on its own. Those without a statement are left out.
func (p *parser) lines(src string) []parsed {
	var out []parsed
	num, commas := 0, 0
	for text := range strings.SplitSeq(src, "\n") {
		num++
		l := parsed{num: num, text: strings.TrimSpace(text)}
		if l.text == "" || strings.HasPrefix(l.text, "//") {
			continue
		}
		deepest, n := shape(text)
		commas += n
		switch {
		case p.full:
			return out
		case commas > maxCommas:
			p.errorf(l, lexer.Position{}, "text/size", "more than %d list elements, the rest of the text was not looked at", maxCommas)
			return out
		case len(text) > maxLine:
			p.errorf(l, lexer.Position{}, "text/size", "line of %d bytes, wanted at most %d", len(text), maxLine)
		case deepest > maxDepth:
			p.errorf(l, lexer.Position{}, "text/size", "brackets nested deeper than %d", maxDepth)
		default:
			ast, err := grammar().ParseString("", text)
			if err == nil {
				l.ast = ast
				break
			}
			var at participle.Error
			if errors.As(err, &at) {
				p.errorf(l, at.Position(), "text/syntax", "%s", clean(at.Message()))
			} else {
				p.errorf(l, lexer.Position{}, "text/syntax", "%v", err)
			}
		}
		out = append(out, l)
	}
	return out
}

// errorf adds an error at a column of line l; the zero position is the whole line.
func (p *parser) errorf(l parsed, at lexer.Position, code, format string, args ...any) *diag.Error {
	loc := &diag.Loc{File: p.file, Line: l.num, Col: at.Column, Source: clip(l.text)}
	e := diag.Errorf(loc, code, format, args...)
	if len(p.errs) >= maxErrors {
		if !p.full {
			p.errs.Addf(&diag.Loc{File: p.file, Line: l.num}, "text/errors", "more than %d errors, the rest of the file was not looked at", maxErrors)
		}
		p.full = true
		return e
	}
	p.errs.Add(e)
	return e
}

// verify takes over what ir.Verify finds beyond the parser's own checks, such as a sharding without a mesh. Its errors carry the
// model's locations; they become notes.
func (p *parser) verify(err error) {
	var list diag.List
	if !errors.As(err, &list) {
		p.errs.Addf(&diag.Loc{File: p.file}, "text/verify", "%v", err)
	}
	for _, e := range list {
		p.errs.Addf(&diag.Loc{File: p.file}, e.Code, "%s", e.Msg)
	}
}

// clip shortens a line for a message.
func clip(s string) string {
	const most = 160
	if len(s) <= most {
		return s
	}
	cut := most
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + fmt.Sprintf("... (%d bytes)", len(s))
}

// clean rewords participle's messages: token names of the grammar as a reader of docs/ir.md knows them.
func clean(msg string) string {
	msg = tokenNames.ReplaceAllStringFunc(msg, func(t string) string {
		switch t {
		case "<value>":
			return "%value"
		case "<sym>":
			return "@symbol"
		case "<loc>":
			return "#location"
		case "<EOF>":
			return "end of line"
		}
		return t
	})
	return strings.ReplaceAll(clip(msg), `"<EOF>"`, "end of line")
}

// tokenNames are the grammar's tokens in participle's messages.
var tokenNames = regexp.MustCompile(`<(?:value|sym|loc|EOF)>`)

// shape gives the deepest nesting of brackets and the number of commas outside strings.
func shape(s string) (deepest, commas int) {
	now := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		case '[', '(', '{':
			now++
			deepest = max(deepest, now)
		case ']', ')', '}':
			now--
		case ',':
			commas++
		}
	}
	return deepest, commas
}

// invalidAt is the offset of the first byte that is no UTF-8.
func invalidAt(s string) int {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return i
			}
		}
	}
	return len(s)
}
