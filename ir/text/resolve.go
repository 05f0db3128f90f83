package text

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/alecthomas/participle/v2/lexer"

	"tpuc/ir"
	"tpuc/ir/diag"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
	"tpuc/ir/weight"
)

// resolver turns parsed lines into a module. It goes on after errors: a name whose line was wrong is known as broken, and its
// uses are not reported again.
type resolver struct {
	*parser
	m      *ir.Module
	locs   map[string]*diag.Loc // by text, such as "#1"
	syms   map[string]*ir.Value // weights by key with the @; nil: broken
	values map[string]*ir.Value // the function's parameters and results by key with the %; nil: broken
	funcs  map[string]*ir.Func  // by key; nil: broken
	called map[*ir.Func]bool
	roots  *[]Function // of a library: functions with operators' names, which nothing calls; nil: a module
	cur    parsed      // the line in work, where errors are
	state  int         // where the line stands
}

// Places of a line relative to the functions.
const (
	before = iota
	inside
	returned
	after
)

func newResolver(p *parser) *resolver {
	return &resolver{parser: p, m: &ir.Module{}, locs: make(map[string]*diag.Loc), syms: make(map[string]*ir.Value), values: make(map[string]*ir.Value),
		funcs: make(map[string]*ir.Func), called: make(map[*ir.Func]bool)}
}

// module reads the table of locations first, since it stands at the end, then all other lines in order.
func (r *resolver) module(lines []parsed) *ir.Module {
	for _, l := range lines { // the table stands at the end
		if r.cur = l; l.ast != nil && l.ast.Loc != nil {
			r.location(l.ast.Loc)
		}
	}
	for _, l := range lines {
		r.cur = l
		switch a := l.ast; {
		case a == nil:
			r.broken(l.text)
		case a.Loc != nil:
		case a.Mesh != nil:
			r.mesh(a.Mesh)
		case a.Weight != nil:
			r.weight(a.Weight)
		case a.Func != nil:
			r.function(a.Func)
		case a.Node != nil && r.in(inside, a.Node.Pos):
			r.node(a.Node)
		case a.Return != nil && r.in(inside, a.Return.Pos):
			r.results(a.Return)
			r.state = returned
		case a.Close && r.in(returned, lexer.Position{}):
			r.state = after
		}
	}
	if r.state != after && len(r.errs) == 0 {
		r.errorf(r.cur, lexer.Position{}, "text/end", "the text ends %s", [...]string{"without a function", "inside the function, wanted return", "inside the function, wanted }"}[r.state])
	}
	for _, l := range lines {
		if r.cur = l; l.ast == nil || l.ast.Func == nil || len(r.errs) > 0 || r.isRoot(l.ast.Func) {
			continue
		}
		if f := r.funcs[r.key(l.ast.Func.Pos, l.ast.Func.Name[1:])]; f != r.m.Func && !r.called[f] {
			r.errorf(l, l.ast.Func.Pos, "text/unused", "function %s is never called, wanted it used or left out; the last function is the entry", l.ast.Func.Name)
		}
	}
	return r.m
}

// in reports a statement in the wrong place.
func (r *resolver) in(want int, at lexer.Position) bool {
	if r.state == want {
		return true
	}
	where := [...]string{"before the first function", "inside a function, before its return", "after the return", "after a function"}
	r.errorf(r.cur, at, "text/place", "statement %s, wanted it %s", where[r.state], where[want])
	return false
}

// What a line with a syntax error would have defined.
var (
	resultNames = regexp.MustCompile(`^(?:%(?:\w+|"(?:[^"\\]|\\.)*")\s*,?\s*)+=`)
	anyName     = regexp.MustCompile(`[%@](?:\w+|"(?:[^"\\]|\\.)*")`)
	firstWord   = regexp.MustCompile(`^\w+`)
)

// broken makes the names of a line that was not understood known, so that their uses are no errors.
func (r *resolver) broken(text string) {
	values := resultNames.FindString(text)
	switch firstWord.FindString(text) {
	case "func":
		values, r.state, r.m.Func = text, inside, &ir.Func{}
		clear(r.values)
		if s := anyName.FindString(text); s != "" {
			r.funcs[r.key(lexer.Position{}, s[1:])] = nil
		}
	case "return":
		r.state = max(r.state, returned)
	case "state", "weight", "buffer", "constant":
		if s := anyName.FindString(text); s != "" {
			r.syms["@"+r.key(lexer.Position{}, s[1:])] = nil
		}
	}
	for _, s := range anyName.FindAllString(values, -1) {
		r.values["%"+r.key(lexer.Position{}, s[1:])] = nil
	}
}

// location fills the table. A file, line or column left out is unknown.
func (r *resolver) location(d *locDecl) {
	l := &diag.Loc{Layer: r.unquote(d.Pos, d.Layer), File: r.unquote(d.Pos, d.File), Source: r.unquote(d.Pos, d.Source)}
	l.Line = int(r.integer(d.Pos, d.Line, 0, 1<<31-1))
	l.Col = int(r.integer(d.Pos, d.Col, 0, 1<<31-1))
	if r.locs[d.ID] != nil {
		r.errorf(r.cur, d.Pos, "text/location", "location %s is declared twice", d.ID)
	}
	r.locs[d.ID] = l
}

// mesh takes the first statement alone: shardings are checked against it as they come.
func (r *resolver) mesh(d *meshDecl) {
	if r.m.Mesh != nil || r.state != before || len(r.m.Weights) > 0 {
		r.errorf(r.cur, lexer.Position{}, "text/place", "mesh in this place, wanted one at the beginning")
		return
	}
	r.m.Mesh = &ir.Mesh{}
	for _, a := range d.Axes {
		n := r.ident(a.Pos, a.Name)
		if slices.ContainsFunc(r.m.Mesh.Axes, func(b ir.Axis) bool { return b.Name == n }) {
			r.errorf(r.cur, a.Pos, "text/mesh", "mesh axis %q is declared twice", n)
		}
		r.m.Mesh.Axes = append(r.m.Mesh.Axes, ir.Axis{Name: n, Size: r.integer(a.Pos, a.Size, 1, 1<<31-1)})
	}
}

// weight declares a weight and its value. A quoted source is also the first of the names.
func (r *resolver) weight(d *weightDecl) {
	if !r.in(before, d.Pos) {
		return
	}
	w := &ir.Weight{Sym: r.ident(d.Pos, d.Sym[1:]), Mutable: d.State}
	for _, c := range []ir.Class{ir.Parameter, ir.Buffer, ir.Constant} {
		if c.String() == d.Class {
			w.Class = c
		}
	}
	t, ok := r.typ(d.Type)
	if ok {
		w.Source = r.source(d.Source, t)
	}
	if s, named := w.Source.(weight.Tensor); named && d.Source.Text[0] == '"' {
		w.Names = append(w.Names, s.Name)
	}
	for _, n := range d.Names {
		w.Names = append(w.Names, r.unquote(d.Pos, n))
	}
	key := "@" + r.key(d.Pos, d.Sym[1:])
	if _, dup := r.syms[key]; dup {
		r.errorf(r.cur, d.Pos, "text/name", "weight @%s is declared twice", name(w.Sym))
		return
	}
	v := r.m.AddWeight(w, t)
	v.Sharding = r.sharding(d.Sharding, t)
	if !ok {
		v = nil
	}
	r.syms[key] = v
}

// source reads a source expression, which gives what the weight is.
func (r *resolver) source(s *source, t tensor.Type) weight.Expr {
	if s.Text == "none" {
		return nil
	}
	e, err := weight.Parse(s.Text, t)
	if err != nil {
		r.errorf(r.cur, s.Pos, "text/source", "%v", err)
		return nil
	}
	return e
}

// function makes a function and its parameters. The last one is the entry; values of the one before are out of sight.
func (r *resolver) function(d *funcDecl) {
	if r.state != after && !r.in(before, d.Pos) {
		return
	}
	r.state = inside
	f := &ir.Func{Name: r.ident(d.Pos, d.Name[1:])}
	r.m.Func = f
	clear(r.values)
	key := r.key(d.Pos, d.Name[1:])
	if r.isRoot(d) {
		*r.roots = append(*r.roots, Function{f, &diag.Loc{File: r.file, Line: r.cur.num, Source: clip(r.cur.text)}})
	} else {
		if _, twice := r.funcs[key]; twice {
			r.errorf(r.cur, d.Pos, "text/name", "function %s is defined twice", d.Name)
		}
		r.funcs[key] = f
	}
	for _, p := range d.Params {
		t, ok := r.typ(p.Type)
		v := f.AddParam(r.ident(p.Pos, p.Name[1:]), t)
		v.Sharding = r.sharding(p.Sharding, t)
		if !ok {
			v = nil
		}
		r.define(p.Pos, p.Name, v)
	}
}

// node checks everything that a node's line says, independently where it can, and appends the node if all of it holds. Its results are
// defined by their declared types in any case, so that one wrong node does not spoil those that use it.
func (r *resolver) node(d *nodeStmt) {
	n := &ir.Node{Loc: r.locOf(d.Loc)}
	types := make([]tensor.Type, len(d.Types))
	ok := true
	for i, t := range d.Types {
		good := false
		types[i], good = r.typ(t.Type)
		ok = ok && good
	}
	if len(d.Types) != len(d.Outs) {
		r.errorf(r.cur, d.Pos, "text/results", "%d results with %d types, wanted one type for each", len(d.Outs), len(d.Types))
		ok = false
	}
	for i, o := range d.Outs {
		var v *ir.Value // broken where the types are
		if ok {
			v = &ir.Value{Type: types[i], Sharding: r.sharding(d.Types[i].Sharding, types[i]), Def: n, Index: i}
			n.Outs = append(n.Outs, v)
		}
		defer r.define(o.Pos, o.Name, v) // after the arguments: a node cannot use its own results
	}
	args := make([]tensor.Type, len(d.Args))
	for i, a := range d.Args {
		v, found := r.use(a)
		if v == nil || !found {
			ok = false
			continue
		}
		n.Args = append(n.Args, v)
		args[i] = v.Type
	}
	o, found := op.Lookup(d.Op.Text)
	if !found {
		r.errorf(r.cur, d.Op.Pos, "text/op", "unknown operator %q%s", d.Op.Text, near(d.Op.Text))
		return
	}
	n.Op = o
	attrsOK := false
	if n.Attr, attrsOK = r.attrs(o, d); !attrsOK || !ok {
		return
	}
	out, err := infer(o, args, n.Attr)
	if err != nil {
		e := r.errorf(r.cur, d.Op.Pos, "", "%v", err)
		if s, is := err.(*ir.ShapeError); is {
			e.Code, e.Msg, e.Cause = s.Code(), s.Op+": "+s.Msg, err
		}
		if at := n.Loc.String(); at != "" {
			e.Note("the node comes from %s", at)
		}
		return
	}
	if len(out) != len(types) {
		r.errorf(r.cur, d.Pos, "text/results", "%s: %d results, its shape rule gives %d", o.Name, len(types), len(out))
		return
	}
	for i, t := range out {
		if !t.Equal(types[i]) {
			r.errorf(r.cur, d.Types[i].Pos, "text/type", "%s: result %d is declared %s, its shape rule gives %s", o.Name, i, types[i], t)
		}
	}
	r.m.Func.Body = append(r.m.Func.Body, n)
}

// infer runs the shape rule. Its rules must stand any attributes; where one does not, that is an error here and not a crash.
func infer(o *ir.Op, args []tensor.Type, attr any) (out []tensor.Type, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: %s %v [%s/rule]", o.Name, rulePanic, p, o.Name)
		}
	}()
	return o.InferTypes(args, attr)
}

// rulePanic marks a panicking rule in the message; fuzzing looks for it.
const rulePanic = "internal error: its shape rule panicked:"

// results reads the return statement: values first, then updates, each checked as ir.Verify would but with its column.
func (r *resolver) results(d *returnStmt) {
	f := r.m.Func
	if f == nil {
		return
	}
	for _, item := range d.Items {
		v, found := r.use(item.Value)
		if item.New == nil {
			if len(f.Updates) > 0 {
				r.errorf(r.cur, item.Value.Pos, "text/return", "result %s after an update, wanted results first", item.Value.Name)
			}
			f.Results = append(f.Results, v)
			continue
		}
		u, ok := r.use(item.New)
		if !found || !ok || u == nil || v == nil {
			continue
		}
		switch {
		case v.Def != nil:
			r.errorf(r.cur, item.Value.Pos, "text/update", "update of %s, wanted a parameter or a weight", item.Value.Name)
		case v.Weight != nil && !v.Weight.Mutable:
			r.errorf(r.cur, item.Value.Pos, "text/update", "update of %s, which is not declared as state", item.Value.Name)
		case slices.ContainsFunc(f.Updates, func(x ir.Update) bool { return x.Target == v }):
			r.errorf(r.cur, item.Value.Pos, "text/update", "%s is updated twice", item.Value.Name)
		case !u.Type.Equal(v.Type):
			r.errorf(r.cur, item.New.Pos, "text/update", "update of %s, which is %s, with %s, which is %s", item.Value.Name, v.Type, item.New.Name, u.Type)
		}
		f.Updates = append(f.Updates, ir.Update{Target: v, New: u})
	}
}

// use finds a value. found is false after an error here; a broken value is nil and found.
func (r *resolver) use(a *ref) (v *ir.Value, found bool) {
	key := a.Name[:1] + r.key(a.Pos, a.Name[1:])
	if a.Name[0] == '@' {
		v, found = r.syms[key]
	} else {
		v, found = r.values[key]
	}
	if !found {
		r.errorf(r.cur, a.Pos, "text/name", "%s is not defined", a.Name)
	}
	return v, found
}

// define makes a value known; nil makes its name known as broken.
func (r *resolver) define(at lexer.Position, text string, v *ir.Value) {
	key := "%" + r.key(at, text[1:])
	if old, dup := r.values[key]; dup && old != nil {
		r.errorf(r.cur, at, "text/name", "%s is defined twice", text)
	}
	r.values[key] = v
}

// key makes the plain and the quoted spelling of a name one. A number stays apart from a name of digits, which is always quoted.
func (r *resolver) key(at lexer.Position, s string) string {
	if s[0] >= '0' && s[0] <= '9' {
		return s
	}
	return strconv.Quote(r.ident(at, s))
}

// locOf looks a reference up in the table; no reference is no location.
func (r *resolver) locOf(l *locRef) *diag.Loc {
	if l == nil {
		return nil
	}
	if r.locs[l.ID] == nil {
		r.errorf(r.cur, l.Pos, "text/location", "location %s is not in the table", l.ID)
	}
	return r.locs[l.ID]
}

// typ reads a type. It is false after an error: unknown dtype, extent out of range, more bytes than an int64 holds.
func (r *resolver) typ(t *typ) (tensor.Type, bool) {
	d, err := tensor.ParseDType(t.DType)
	if err != nil {
		r.errorf(r.cur, t.Pos, "text/type", "%v", err)
		return tensor.Type{}, false
	}
	out := tensor.Type{DType: d}
	n := len(r.errs)
	for _, s := range t.Dims {
		out.Dims = append(out.Dims, r.integer(t.Pos, s, 0, 1<<63-1))
	}
	if len(r.errs) > n {
		return out, false
	}
	if err := out.Check(); err != nil {
		r.errorf(r.cur, t.Pos, "text/type", "%v", err)
		return out, false
	}
	return out, true
}

// sharding reads the sharding of a value of type t and checks it against the mesh. nil stays nil: not sharded.
func (r *resolver) sharding(s *shardRef, t tensor.Type) *ir.Sharding {
	if s == nil {
		return nil
	}
	out := &ir.Sharding{}
	for _, d := range s.Dims {
		var axes []string
		if len(d.Axes) != 1 || d.Axes[0] != "_" {
			for _, a := range d.Axes {
				axes = append(axes, r.ident(s.Pos, a))
			}
		}
		out.Dims = append(out.Dims, axes)
	}
	if err := out.Check(r.m.Mesh, t); err != nil {
		r.errorf(r.cur, s.Pos, "text/sharding", "%v", err)
	}
	return out
}

// ident is a name, whether quoted or not.
func (r *resolver) ident(at lexer.Position, s string) string {
	if s == "" || s[0] != '"' {
		return s
	}
	return r.unquote(at, s)
}

// unquote undoes strconv.Quote. The lexer has found the closing quote; escapes are checked here.
func (r *resolver) unquote(at lexer.Position, s string) string {
	if s == "" {
		return ""
	}
	out, err := strconv.Unquote(s)
	if err != nil {
		r.errorf(r.cur, at, "text/string", "string %s has an unknown escape, wanted those of Go", clip(s))
	}
	return out
}

// integer reads a decimal within bounds; the empty text is 0.
func (r *resolver) integer(at lexer.Position, s string, lo, hi int64) int64 {
	if s == "" {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < lo || n > hi {
		r.errorf(r.cur, at, "text/number", "%s, wanted an integer from %d to %d", clip(s), lo, hi)
		return lo
	}
	return n
}
