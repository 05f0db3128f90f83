// Package stablehlo reads StableHLO text, such as JAX, torch_xla and torchax export, into the IR: pretty and generic forms, functions,
// control flow and regions. Operations that the IR has no word for travel as operators named opaque, which compile and are not evaluated.
// It never reads MLIR bytecode, never executes anything and never compiles.
package stablehlo

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

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

// Bytecode begins MLIR bytecode, the form of portable artifacts.
const Bytecode = "ML\xefR"

// IsText reports whether data begins like MLIR text or bytecode, whatever the file's name.
func IsText(data []byte) bool {
	if bytes.HasPrefix(data, []byte(Bytecode)) {
		return true
	}
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

// Import reads a text; name is its file's name in locations. The module passes ir.Verify. An error is a diag.List of all mistakes and of
// all operations that cannot be taken, each with line and column, or about the text as a whole. Import never panics.
func Import(name string, src []byte) (*Program, error) {
	switch {
	case bytes.HasPrefix(src, []byte(Bytecode)):
		return nil, diag.Errorf(&diag.Loc{File: name}, "stablehlo/bytecode", "MLIR bytecode, wanted StableHLO text").
			Note("a portable artifact is turned into text where it was made: jax.export's Exported.mlir_module(), or stablehlo-translate --deserialize")
	case len(src) > maxSource:
		return nil, diag.Errorf(&diag.Loc{File: name}, "stablehlo/size", "%d bytes, wanted at most %d", len(src), maxSource)
	case !utf8.Valid(src):
		return nil, diag.Errorf(&diag.Loc{File: name}, "stablehlo/utf8", "bytes that are no UTF-8, wanted StableHLO text")
	}
	p := &importer{file: name, rules: allRules(), broken: make(map[string]bool), notes: make(map[string]bool), seen: make(map[string]bool), literals: make(map[*operation]*tensor.Tensor), locs: make(map[string]*diag.Loc), funcs: make(map[string]*function)}
	p.lexed = lex(string(src), func(t token, want string) {
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
	depth    int // of regions and calls in work
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

// note remembers something that was left out.
func (p *importer) note(format string, args ...any) { p.notes[fmt.Sprintf(format, args...)] = true }

// baseName shortens a path as the front end of torch.export does: to what follows site-packages, or to the base name.
func baseName(path string) string {
	if _, rest, ok := strings.Cut(path, "site-packages/"); ok {
		return rest
	}
	return path[strings.LastIndexAny(path, `/\`)+1:]
}
