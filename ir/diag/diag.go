// Package diag owns source locations and the errors that carry them: one located error, sorted lists of them, and their rendering.
// It never decides whether something is an error and never prints by itself.
package diag

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Loc says where a value of a program comes from in the user's model. The zero Loc is "unknown".
// Locs are shared by pointer and never changed after they are made.
type Loc struct {
	Layer  string // module path, such as "model.layers.0.mlp.down_proj"
	File   string // source file as the user knows it, such as "modeling_llama.py"
	Line   int    // line in File, from 1; 0 if unknown
	Col    int    // column in Line, from 1; 0 if unknown, as it is in models
	Source string // the text of that line
}

// String is "file:line:col: layer", leaving out what is unknown.
func (l *Loc) String() string {
	if l == nil {
		return ""
	}
	var parts []string
	if l.File != "" {
		switch {
		case l.Line > 0 && l.Col > 0:
			parts = append(parts, fmt.Sprintf("%s:%d:%d", l.File, l.Line, l.Col))
		case l.Line > 0:
			parts = append(parts, fmt.Sprintf("%s:%d", l.File, l.Line))
		default:
			parts = append(parts, l.File)
		}
	}
	if l.Layer != "" {
		parts = append(parts, l.Layer)
	}
	return strings.Join(parts, ": ")
}

// Error is one mistake in the user's input. Msg is lower case without a full stop and says the value seen, then the value wanted.
type Error struct {
	Code  string // stable id such as "dot/2", printed in brackets; may be empty
	Loc   *Loc   // may be nil
	Msg   string
	Notes []string // further facts and what to do
	Cause error    // wrapped, not printed
}

// Errorf makes an Error without notes.
func Errorf(loc *Loc, code, format string, args ...any) *Error {
	return &Error{Code: code, Loc: loc, Msg: fmt.Sprintf(format, args...)}
}

// Note adds a fact below the message and returns e.
func (e *Error) Note(format string, args ...any) *Error {
	e.Notes = append(e.Notes, fmt.Sprintf(format, args...))
	return e
}

// Error renders location, message, code, source text and notes; it has several lines where there is more than the message.
func (e *Error) Error() string {
	var b strings.Builder
	if l := e.Loc.String(); l != "" {
		b.WriteString(l + ": ")
	}
	b.WriteString(e.Msg)
	if e.Code != "" {
		b.WriteString(" [" + e.Code + "]")
	}
	if e.Loc != nil && e.Loc.Source != "" {
		b.WriteString("\n    " + e.Loc.Source)
	}
	for _, n := range e.Notes {
		b.WriteString("\n  note: " + n)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// List collects errors so that a user sees all of them at once.
type List []*Error

// Add appends one error.
func (l *List) Add(e *Error) { *l = append(*l, e) }

// Addf appends an error made from its parts and returns it for notes.
func (l *List) Addf(loc *Loc, code, format string, args ...any) *Error {
	e := Errorf(loc, code, format, args...)
	l.Add(e)
	return e
}

// Err returns nil for an empty list, otherwise the list sorted by place and without repeats.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	s := slices.Clone(l)
	slices.SortStableFunc(s, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(file(a), file(b)), cmp.Compare(line(a), line(b)), cmp.Compare(col(a), col(b)), cmp.Compare(a.Error(), b.Error()))
	})
	return slices.CompactFunc(s, func(a, b *Error) bool { return a.Error() == b.Error() })
}

// Error renders every error, one after another.
func (l List) Error() string {
	parts := make([]string, len(l))
	for i, e := range l {
		parts[i] = e.Error()
	}
	return strings.Join(parts, "\n")
}

// Unwrap gives errors.Is and errors.As access to the members.
func (l List) Unwrap() []error {
	out := make([]error, len(l))
	for i, e := range l {
		out[i] = e
	}
	return out
}

// Bug is a fault of tpuc itself, found while it worked on a valid input.
type Bug struct {
	Pass       string // pass or phase
	Node       string // the node in work, as text; may be empty
	Cause      any    // what was recovered
	Stack      string
	Reproducer string // path of a file that shows it again; may be empty
	Command    string // the command that runs the reproducer; may be empty
}

// Error names the pass and, where one was written, how to run the reproducer.
func (b *Bug) Error() string {
	s := fmt.Sprintf("internal error in %s: %v", b.Pass, b.Cause)
	if b.Node != "" {
		s += "\n  at: " + b.Node
	}
	if b.Command != "" {
		s += "\n  to see it again: " + b.Command
	}
	return s
}

// IsBug reports whether err is, or wraps, a Bug.
func IsBug(err error) bool {
	var b *Bug
	return errors.As(err, &b)
}

func file(e *Error) string {
	if e.Loc == nil {
		return ""
	}
	return e.Loc.File
}

func line(e *Error) int {
	if e.Loc == nil {
		return 0
	}
	return e.Loc.Line
}

func col(e *Error) int {
	if e.Loc == nil {
		return 0
	}
	return e.Loc.Col
}
