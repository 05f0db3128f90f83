package text

import (
	"strings"

	"github.com/alecthomas/participle/v2/lexer"

	"tpuc/ir"
	"tpuc/ir/diag"
)

// Function is a function of a library, with the line that it begins at.
type Function struct {
	*ir.Func
	Loc *diag.Loc
}

// ParseLibrary reads functions for operators of users: those whose names hold "::", such as @"mylib::scale.default", in the file's order. Several
// may have one name. Functions with other names are called by control flow. A function may update its parameters, as an entry does.
// There are no weights. Errors are those of Parse.
func ParseLibrary(name, src string) ([]Function, error) {
	p := &parser{file: name}
	if !p.accept(src) {
		return nil, p.errs.Err()
	}
	lines := p.lines(src)
	r := newResolver(p)
	roots := []Function{}
	r.roots = &roots
	r.module(lines)
	for _, l := range lines {
		if l.ast != nil && (l.ast.Weight != nil || l.ast.Mesh != nil) {
			p.errorf(l, lexer.Position{Column: 1}, "text/library", "a weight or mesh in a library, wanted functions: give the tensor to the operator as an argument, or write it as a constant")
		}
	}
	for _, f := range roots {
		if len(p.errs) > 0 {
			break
		}
		if err := ir.Verify(&ir.Module{Func: f.Func}); err != nil {
			p.verify(err)
		}
	}
	if len(p.errs) == 0 && len(roots) == 0 {
		p.errs.Addf(&diag.Loc{File: name}, "text/library", "no function of an operator, wanted some with names such as @\"mylib::scale.default\"")
	}
	if len(p.errs) > 0 {
		return nil, p.errs.Err()
	}
	return roots, nil
}

// isRoot reports an operator's function in a library.
func (r *resolver) isRoot(d *funcDecl) bool {
	return r.roots != nil && strings.Contains(d.Name, "::")
}
