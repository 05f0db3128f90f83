package stablehlo

import (
	"sort"
	"strings"
	"unicode/utf8"
)

// Limits of one text: what a generated file of a large model stays below, and what untrusted text cannot exceed.
const (
	maxSource  = 512 << 20 // bytes
	maxDepth   = 64        // nested brackets, and nested regions and calls
	maxErrors  = 100       // reported
	maxLiteral = 2 << 30   // bytes of all literals and of opaque operations' text
	maxNodes   = 4 << 20   // applied operations and captured values: calls are written out, which can double them at every level
)

// kind is a kind of token. Types, literals, dialect attributes and locations are one token each, brackets included: their insides are read
// only where something needs them, and once for all equal ones.
type kind uint8

const (
	tEOF    kind = iota
	tPunct       // one of ( ) { } [ ] , = : ? * + - / | ! > and <, or -> <{ }> ::
	tValue       // %name or %name#1
	tSym         // @name or @"name"
	tString      // "text"
	tNumber      // -1, 2.5e-3, 0x7F
	tIdent       // word with dots
	tAngle       // word<...>, such as tensor<2xf32>, dense<0>, array<i64: 1>
	tBang        // !dialect.type, !dialect.type<...>
	tHash        // #alias, #dialect.attr<...>, #dialect<...>, or <...> alone, such as a sharding
	tBlock       // ^bb0
	tLoc         // loc(...)
	tMeta        // {-# ... #-}
	tBad
)

// token is a piece of the source.
type token struct {
	kind     kind
	off, end int32
	line     int32 // from 1
}

// lexed is a text in tokens, ending with tEOF.
type lexed struct {
	src    string
	tokens []token
	lines  []int32 // offset of every line's start
}

// text is the token's spelling.
func (l *lexed) text(t token) string { return l.src[t.off:t.end] }

// column counts characters from 1.
func (l *lexed) column(off int32) int {
	i := sort.Search(len(l.lines), func(i int) bool { return l.lines[i] > off }) - 1
	return utf8.RuneCountInString(l.src[l.lines[i]:off]) + 1
}

// lineText is the line of an offset without its indentation, clipped.
func (l *lexed) lineText(off int32) string {
	i := sort.Search(len(l.lines), func(i int) bool { return l.lines[i] > off }) - 1
	s := l.src[l.lines[i]:]
	const most = 160
	if len(s) > most {
		s = s[:most]
	}
	s, _, _ = strings.Cut(s, "\n")
	return strings.TrimSpace(strings.ToValidUTF8(s, ""))
}

// lex splits src. bad is called for what is no token, with what was wanted.
func lex(src string, bad func(t token, want string)) *lexed {
	l := &lexed{src: src, tokens: make([]token, 0, len(src)/32+1), lines: []int32{0}}
	for i := 0; i < len(src); {
		c := src[i]
		switch {
		case c == '\n':
			i++
			l.lines = append(l.lines, int32(i))
			continue
		case c == ' ' || c == '\t' || c == '\r':
			i++
			continue
		case c == '/' && strings.HasPrefix(src[i:], "//"):
			for i < len(src) && src[i] != '\n' {
				i++
			}
			continue
		}
		t := token{off: int32(i), line: int32(len(l.lines))}
		var want string
		t.kind, i, want = l.next(i)
		t.end = int32(i)
		for at := t.off; at < t.end; at++ { // strings and literals may span lines
			if src[at] == '\n' {
				l.lines = append(l.lines, at+1)
			}
		}
		if t.kind == tBad {
			bad(t, want)
			continue
		}
		l.tokens = append(l.tokens, t)
	}
	l.tokens = append(l.tokens, token{kind: tEOF, off: int32(len(src)), end: int32(len(src)), line: int32(len(l.lines))})
	return l
}

// next gives kind and end of the token at i, and what was wanted where it is bad.
func (l *lexed) next(i int) (kind, int, string) {
	src := l.src
	switch c := src[i]; {
	case c == '"':
		return l.quoted(i)
	case c == '%' || c == '@' || c == '^':
		j := i + 1
		if c == '@' && j < len(src) && src[j] == '"' {
			k, end, want := l.quoted(j)
			if k == tBad {
				return k, end, want
			}
			return tSym, end, ""
		}
		for j < len(src) && isSuffix(src[j]) {
			j++
		}
		if j == i+1 {
			return tBad, j, "a name behind " + string(c)
		}
		switch c {
		case '@':
			return tSym, j, ""
		case '^':
			return tBlock, j, ""
		}
		if j+1 < len(src) && src[j] == '#' && isDigit(src[j+1]) {
			for j++; j < len(src) && isDigit(src[j]); j++ {
			}
		}
		return tValue, j, ""
	case c == '#' || c == '!':
		j := i + 1
		for j < len(src) && isSuffix(src[j]) {
			j++
		}
		if j == i+1 {
			return tPunct, j, ""
		}
		k := tHash
		if c == '!' {
			k = tBang
		}
		if j < len(src) && src[j] == '<' {
			return l.balanced(k, j)
		}
		return k, j, ""
	case isDigit(c) || c == '-' && i+1 < len(src) && isDigit(src[i+1]):
		return tNumber, number(src, i), ""
	case isLetter(c):
		j := i
		for j < len(src) && isSuffix(src[j]) {
			j++
		}
		if j < len(src) && src[j] == '<' && (j+1 >= len(src) || src[j+1] != '{') {
			return l.balanced(tAngle, j)
		}
		if src[i:j] == "loc" && j < len(src) && src[j] == '(' {
			return l.balanced(tLoc, j)
		}
		return tIdent, j, ""
	case c == '<' && !strings.HasPrefix(src[i:], "<{"):
		return l.balanced(tHash, i)
	case strings.HasPrefix(src[i:], "{-#"):
		if n := strings.Index(src[i:], "#-}"); n >= 0 {
			return tMeta, i + n + 3, ""
		}
		return tBad, len(src), `"#-}" at the end of the resources`
	}
	for _, p := range []string{"->", "<{", "}>", "::"} {
		if strings.HasPrefix(src[i:], p) {
			return tPunct, i + 2, ""
		}
	}
	if strings.IndexByte("(){}[],=:?*+-/|<>", src[i]) >= 0 {
		return tPunct, i + 1, ""
	}
	_, size := utf8.DecodeRuneInString(src[i:])
	return tBad, i + size, "an operation, a value or an attribute"
}

// quoted is the string at i. It ends with its line where it does not end before.
func (l *lexed) quoted(i int) (kind, int, string) {
	for j := i + 1; j < len(l.src); j++ {
		switch l.src[j] {
		case '"':
			return tString, j + 1, ""
		case '\\':
			j++
		case '\n':
			return tBad, j, `a string that ends with "`
		}
	}
	return tBad, len(l.src), `a string that ends with "`
}

// balanced is the token of kind k that ends with the bracket that closes the one at j.
func (l *lexed) balanced(k kind, j int) (kind, int, string) {
	var open [maxDepth]byte
	depth := 0
	for src := l.src; j < len(src); j++ {
		switch c := src[j]; c {
		case '"':
			kind, end, want := l.quoted(j)
			if kind == tBad {
				return kind, end, want
			}
			j = end - 1
		case '<', '(', '[', '{':
			if depth == maxDepth {
				return tBad, len(src), "brackets that are nested less deep"
			}
			open[depth] = c
			depth++
		case '-':
			if j+1 < len(src) && src[j+1] == '>' {
				j++ // an arrow
			}
		case '>', ')', ']', '}':
			if depth--; opening[c] != open[depth] {
				return tBad, j + 1, "the bracket that closes " + string(open[depth])
			}
			if depth == 0 {
				return k, j + 1, ""
			}
		}
	}
	return tBad, len(l.src), "the bracket that closes the last one"
}

// opening gives for a closing bracket its partner.
var opening = [128]byte{'>': '<', ')': '(', ']': '[', '}': '{'}

// number is the end of the number at i.
func number(src string, i int) int {
	if src[i] == '-' {
		i++
	}
	if strings.HasPrefix(src[i:], "0x") && i+2 < len(src) && isHex(src[i+2]) {
		for i += 2; i < len(src) && isHex(src[i]); i++ {
		}
		return i
	}
	for i < len(src) && isDigit(src[i]) {
		i++
	}
	if i+1 < len(src) && src[i] == '.' {
		for i++; i < len(src) && isDigit(src[i]); i++ {
		}
	}
	if j := i + 1; i < len(src) && (src[i] == 'e' || src[i] == 'E') && j < len(src) {
		if src[j] == '-' || src[j] == '+' {
			j++
		}
		if j < len(src) && isDigit(src[j]) {
			for i = j; i < len(src) && isDigit(src[i]); i++ {
			}
		}
	}
	return i
}

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isHex(c byte) bool    { return isDigit(c) || 'a' <= c|32 && c|32 <= 'f' }
func isLetter(c byte) bool { return 'a' <= c|32 && c|32 <= 'z' || c == '_' }

// isSuffix is what names go on with.
func isSuffix(c byte) bool { return isLetter(c) || isDigit(c) || c == '.' || c == '$' }
