package stablehlo

import (
	"strconv"
	"strings"

	"tpuc/ir/diag"
)

// locate gives the place of an operation in the model: names of scopes, and the innermost file and line of its call stack. Without
// debug information it is the operation's line of the text.
func (p *importer) locate(o *operation) *diag.Loc {
	if o.loc != "" {
		if l := p.location(o.loc); l != nil {
			return l
		}
	}
	key := "\n" + strconv.Itoa(int(o.line))
	l, ok := p.locs[key]
	if !ok {
		l = &diag.Loc{File: baseName(p.file), Line: int(o.line)}
		p.locs[key] = l
	}
	return l
}

// location reads what stands in loc(...); nil is unknown. Equal texts share a Loc.
func (p *importer) location(text string) *diag.Loc {
	key := "(" + text // names of aliases have keys of their own
	l, ok := p.locs[key]
	if !ok {
		l = &diag.Loc{}
		if p.fill(l, text, 0); *l == (diag.Loc{}) {
			l = nil
		}
		p.locs[key] = l
	}
	return l
}

// fill adds to l what text says: #alias, unknown, "name", "name"(location), "file":line:column [to ...], callsite(callee at caller),
// fused[...].
func (p *importer) fill(l *diag.Loc, text string, depth int) {
	text = strings.TrimSpace(text)
	switch {
	case depth > maxDepth || text == "" || text == "unknown":
	case text[0] == '#':
		body, ok := strings.CutPrefix(p.syntax.aliases[text], "loc(")
		if !ok {
			return
		}
		known, done := p.locs[text]
		if !done { // once for all that use it
			p.locs[text] = nil // ends a location that contains itself
			known = &diag.Loc{}
			p.fill(known, strings.TrimSuffix(body, ")"), depth+1)
			p.locs[text] = known
		}
		if known != nil {
			merge(l, known)
		}
	case text[0] == '"':
		_, end, _ := (&lexed{src: text}).quoted(0)
		name, rest := unquote(text[:end]), text[end:]
		switch {
		case strings.HasPrefix(rest, ":"):
			if l.File == "" {
				line, _, _ := strings.Cut(rest[1:], ":")
				l.File = baseName(name)
				l.Line, _ = strconv.Atoi(strings.TrimSpace(line))
				if l.Line <= 0 {
					l.Line = 0
				}
			}
		default:
			if l.Layer == "" {
				l.Layer = layer(name)
			}
			if strings.HasPrefix(rest, "(") {
				p.fill(l, strings.TrimSuffix(rest[1:], ")"), depth+1)
			}
		}
	case strings.HasPrefix(text, "callsite("):
		body := strings.TrimSuffix(text[len("callsite("):], ")")
		callee, caller := splitTop(body, " at ")
		file := *l
		p.fill(&file, callee, depth+1)
		l.File, l.Line = file.File, file.Line
		if l.Layer == "" {
			l.Layer = file.Layer
		}
		if l.File == "" {
			p.fill(l, caller, depth+1)
		}
	case strings.HasPrefix(text, "fused"):
		_, body, _ := strings.Cut(text, "[")
		for body = strings.TrimSuffix(body, "]"); body != ""; {
			first, rest := splitTop(body, ",")
			p.fill(l, first, depth+1)
			body = rest
		}
	}
}

func merge(l, from *diag.Loc) {
	if l.Layer == "" {
		l.Layer = from.Layer
	}
	if l.File == "" {
		l.File, l.Line = from.File, from.Line
	}
}

// splitTop cuts at the first sep outside brackets and strings.
func splitTop(s, sep string) (before, after string) {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			_, end, _ := (&lexed{src: s}).quoted(i)
			i = end - 1
		case '(', '[', '<':
			depth++
		case ')', ']', '>':
			depth--
		default:
			if depth == 0 && strings.HasPrefix(s[i:], sep) {
				return s[:i], s[i+len(sep):]
			}
		}
	}
	return s, ""
}

// layer is the path of JAX's name stack without the transformations around it: "jit(f)/jit(main)/mlp/dot_general" is "mlp/dot_general".
func layer(name string) string {
	name = strings.TrimSuffix(name, ":")
	for {
		head, rest, ok := strings.Cut(name, "/")
		if !ok || !strings.HasPrefix(head, "jit(") || !strings.HasSuffix(head, ")") {
			return name
		}
		name = rest
	}
}
