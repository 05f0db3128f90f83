// Package stablehlo reads StableHLO, such as JAX, torch_xla and torchax export, into the IR: text in pretty and generic form, and bytecode, which the
// package bytecode turns into text; functions, control flow and regions. Operations that the IR has no word for travel as operators named opaque,
// which compile and are not evaluated. It never executes anything and never compiles.
package stablehlo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"tpuc/frontend/stablehlo/bytecode"
	"tpuc/ir"
	"tpuc/ir/diag"
	"tpuc/ir/tensor"
)

// Program is what a text holds.
type Program struct {
	Module  *ir.Module
	Inputs  []string // names of the entry's parameters, unique
	Outputs []string // names of its results
	Notes   []string // what was left out and does not change the numbers, sorted
}

// IsModule reports whether a file of a size holds a module, whatever its name: it begins like MLIR text or bytecode, or is an export of JAX.
func IsModule(r io.ReaderAt, size int64) bool {
	head := make([]byte, min(size, 4096))
	if _, err := r.ReadAt(head, 0); err != nil && err != io.EOF {
		return false
	}
	if bytecode.IsBytecode(head) {
		return true
	}
	_, _, ok := exportedModule(r, size)
	return ok || isText(head)
}

// isText reports whether data begins like MLIR text.
func isText(data []byte) bool {
	for len(data) > 0 {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		line = bytes.TrimSpace(line)
		for _, word := range []string{"module", "func.func", `"builtin.module"`, "#loc", "#map", "{-#"} {
			if bytes.HasPrefix(line, []byte(word)) {
				return true
			}
		}
		if len(line) > 0 && !bytes.HasPrefix(line, []byte("//")) {
			return false
		}
		data = rest
	}
	return false
}

// Import reads text, bytecode, or an export of JAX, which holds bytecode; name is its file's name in locations. The module passes ir.Verify, and literals of bytecode share memory with src. An
// error is a diag.List of all mistakes and of all operations that cannot be taken, each with line and column, or about the file as a whole. Lines of
// bytecode are those of the text that it is turned into. Import never panics.
func Import(name string, src []byte) (*Program, error) {
	if len(src) > maxSource {
		return nil, diag.Errorf(&diag.Loc{File: name}, "stablehlo/size", "%d bytes, wanted at most %d", len(src), maxSource)
	}
	if from, to, ok := exportedModule(bytes.NewReader(src), int64(len(src))); ok {
		src = src[from:to]
	}
	var text string
	var named map[string]*bytecode.Literal
	if bytecode.IsBytecode(src) {
		m, err := bytecode.Decode(src)
		if err != nil {
			e := diag.Errorf(&diag.Loc{File: name}, "stablehlo/bytecode", "%v", err).
				Note("a file that is damaged or newer is written again where it was made, or as text: jax.export's Exported.mlir_module(), or stablehlo-translate --deserialize")
			var fault *bytecode.Error
			if errors.As(err, &fault) && fault.Producer != "" {
				e.Note("written by %q", fault.Producer)
			}
			return nil, e
		}
		text, named = m.Text, m.Literals
	} else {
		text = string(src)
	}
	if !utf8.ValidString(text) {
		return nil, diag.Errorf(&diag.Loc{File: name}, "stablehlo/utf8", "bytes that are no UTF-8, wanted StableHLO text")
	}
	p := &importer{named: named, file: name, rules: allRules(), broken: make(map[string]bool), notes: make(map[string]bool), seen: make(map[string]bool), literals: make(map[*operation]*tensor.Tensor), locs: make(map[string]*diag.Loc), funcs: make(map[string]*function)}
	p.lexed = lex(text, func(t token, want string) {
		p.bad = append(p.bad, syntaxError{t, want})
	})
	for i := range p.bad {
		p.syntaxError(&p.bad[i])
	}
	p.syntax = &syntax{lexed: p.lexed, p: p, types: make(map[string]typ), dicts: make(map[string]dict), aliases: make(map[string]string)}
	p.syntax.file()
	prog := p.program()
	if len(p.errs) > 0 {
		return nil, p.errs.Err()
	}
	if err := ir.Verify(prog.Module); err != nil {
		return nil, err
	}
	return prog, nil
}

// importer holds what one import shares.
type importer struct {
	*lexed
	file     string
	syntax   *syntax
	rules    map[string]rule
	errs     diag.List
	full     bool            // maxErrors reached
	seen     map[string]bool // errors by text
	bad      []syntaxError
	broken   map[string]bool // values whose definitions had syntax errors
	funcs    map[string]*function
	notes    map[string]bool
	locs     map[string]*diag.Loc
	nodes    int   // made so far
	bytes    int64 // of literals and opaque text so far
	literals map[*operation]*tensor.Tensor
	named    map[string]*bytecode.Literal // by the name in dense_resource<name>
	depth    int                          // of regions and calls in work
}

// errorAt adds an error at an offset of the text.
func (p *importer) errorAt(off int32, code, format string, args ...any) *diag.Error {
	e := diag.Errorf(p.place(off), code, format, args...)
	p.add(e)
	return e
}

// add keeps maxErrors errors.
func (p *importer) add(e *diag.Error) {
	text := e.Error()
	if p.seen[text] { // in a function that is written out twice
		return
	}
	p.seen[text] = true
	if len(p.errs) < maxErrors {
		p.errs.Add(e)
		return
	}
	if !p.full {
		p.errs.Addf(&diag.Loc{File: p.file, Line: e.Loc.Line}, "stablehlo/errors", "more than %d errors, the rest of the file was not looked at", maxErrors)
	}
	p.full = true
}

// place is an offset as line and column.
func (p *importer) place(off int32) *diag.Loc {
	line := 1
	for lo, hi := 0, len(p.lines); lo < hi; {
		mid := (lo + hi) / 2
		if p.lines[mid] <= off {
			line, lo = mid+1, mid+1
		} else {
			hi = mid
		}
	}
	return &diag.Loc{File: p.file, Line: line, Col: p.column(off), Source: p.lineText(off)}
}

func (p *importer) syntaxError(e *syntaxError) {
	seen := "the end of the file"
	if e.t.kind != tEOF {
		seen = "\"" + clip(p.text(e.t)) + "\""
	}
	p.errorAt(e.t.off, "stablehlo/syntax", "%s, wanted %s", seen, e.want)
}

// literal is the one behind dense_resource<name>; nil for none.
func (p *importer) literal(angle string) *bytecode.Literal {
	return p.named[strings.TrimSuffix(strings.TrimPrefix(angle, "dense_resource<"), ">")]
}

// note remembers something that was left out.
func (p *importer) note(format string, args ...any) { p.notes[fmt.Sprintf(format, args...)] = true }

// baseName shortens a path as the front end of torch.export does: to what follows site-packages, or to the base name.
func baseName(path string) string {
	if _, rest, ok := strings.Cut(path, "site-packages/"); ok {
		return rest
	}
	return path[strings.LastIndexAny(path, `/\`)+1:]
}
