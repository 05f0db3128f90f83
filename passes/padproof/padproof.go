// Package padproof proves that a program may serve calls of smaller sizes: that inputs filled up at the ends of their dimensions, with whatever
// numbers, NaN included, give outputs whose first elements are those of the program for the smaller sizes.
//
// It compares the two programs, both as a front end gives them, node by node. For every value it keeps which elements of the large program are
// those of the small one, a dimension at a time; a rule an operator says where the results' are, or refuses. Where a rule does not show that
// padding stays apart from what counts, values that depend on no input are computed in both programs and compared: masks and positions are
// often made from sizes and come out equal. Anything else is a refusal: a proof never guesses. Of the operators it knows no more than that
// they are functions of the elements that they read, in their order.
package padproof

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"tpuc/ir"
	"tpuc/ir/diag"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// Prove returns nil where every output and every new contents of state and inputs of small is the beginning, along every dimension, of large's,
// for inputs of large that begin with those of small along every dimension; what else they hold does not matter. Otherwise it is a *diag.Error
// that names the operator that keeps this from being proved, and its place in the model. Both modules are verified ones of one model.
func Prove(large, small *ir.Module) error {
	p := &prover{states: make(map[*ir.Value]state), pairs: make(map[*ir.Value]*ir.Value), differing: make(map[*ir.Value]error),
		known: make(map[*ir.Value]*tensor.Tensor)}
	if len(large.Weights) != len(small.Weights) {
		return refusal(nil, "the programs read %d and %d weights", len(large.Weights), len(small.Weights))
	}
	for i, w := range large.Weights {
		if err := p.weight(w, small.Weights[i]); err != nil {
			return err
		}
	}
	if len(large.Func.Params) != len(small.Func.Params) {
		return refusal(nil, "the programs have %d and %d inputs", len(large.Func.Params), len(small.Func.Params))
	}
	states := make([]state, len(large.Func.Params))
	for i, v := range large.Func.Params {
		var err error
		if states[i], err = prefixes(nil, fmt.Sprintf("input %q", v.Name), v.Type, small.Func.Params[i].Type); err != nil {
			return err
		}
	}
	results, err := p.call(large.Func, small.Func, states)
	if err != nil {
		return err
	}
	for i, v := range large.Func.Results {
		if err := p.wantPrefix(v, fmt.Sprintf("output %d", i), results[i]); err != nil {
			return err
		}
	}
	if len(large.Func.Updates) != len(small.Func.Updates) {
		return refusal(nil, "the programs update %d and %d tensors", len(large.Func.Updates), len(small.Func.Updates))
	}
	for i, u := range large.Func.Updates {
		v := small.Func.Updates[i]
		if p.pairs[u.Target] != v.Target || p.pairs[u.New] != v.New {
			return refusal(loc(u.New), "the programs update other tensors")
		}
		if err := p.wantPrefix(u.New, "an updated tensor", p.states[u.New]); err != nil {
			return err
		}
	}
	return nil
}

// prover holds what is known of the values of the large program, the weights' included.
type prover struct {
	states map[*ir.Value]state
	pairs  map[*ir.Value]*ir.Value // the value of the small program that it stands for
	// differing values depend on no input, and on the size: why no state fits them. Only what is computed from known values may read them.
	differing map[*ir.Value]error
	known     map[*ir.Value]*tensor.Tensor // of both programs; nil: not known
}

func refusal(l *diag.Loc, format string, args ...any) *diag.Error {
	return diag.Errorf(l, "padproof", format, args...)
}

// loc is the place where v is made, if known.
func loc(v *ir.Value) *diag.Loc {
	if v.Def == nil {
		return nil
	}
	return v.Def.Loc
}

// prefixes is the state of tensors of which small is the beginning of large.
func prefixes(l *diag.Loc, what string, large, small tensor.Type) (state, error) {
	out := make(state, large.Rank())
	ok := large.DType == small.DType && large.Rank() == small.Rank()
	for d := 0; ok && d < len(out); d++ {
		ok = large.Dims[d] >= small.Dims[d]
		out[d] = prefix(large.Dims[d], small.Dims[d])
	}
	if !ok {
		return nil, refusal(l, "%s is %s, and %s in the smaller program", what, large, small)
	}
	return out, nil
}

// wantPrefix refuses a value that is given out and whose elements are not the first along every dimension.
func (p *prover) wantPrefix(v *ir.Value, what string, s state) error {
	if err := p.differing[v]; err != nil {
		return err
	}
	for d, a := range s {
		if !a.isPrefix() {
			return refusal(loc(v), "%s has padding among its elements along dimension %d, not behind them", what, d)
		}
	}
	return nil
}

// weight pairs weights. Contents that are not at hand are equal where their source is.
func (p *prover) weight(w, v *ir.Weight) error {
	l, s := w.Value.Type, v.Value.Type
	same := w.Class == v.Class && w.Mutable == v.Mutable && slices.Equal(w.Names, v.Names) && reflect.DeepEqual(w.Source, v.Source)
	st, err := prefixes(nil, fmt.Sprintf("weight %q", w.Sym), l, s)
	switch {
	case err != nil:
		return err
	case !l.Equal(s) && (w.Data == nil || v.Data == nil || w.Mutable):
		return refusal(nil, "weight %q is %s, and %s in the smaller program", w.Sym, l, s)
	case w.Data != nil && v.Data != nil:
		same = w.Class == v.Class && w.Mutable == v.Mutable && begins(w.Data, v.Data)
	}
	if !same {
		return refusal(nil, "weight %q differs between the programs", w.Sym)
	}
	p.pairs[w.Value], p.states[w.Value] = v.Value, st
	return nil
}

// begins reports whether small is the beginning of large along every dimension.
func begins(large, small *tensor.Tensor) bool {
	if large.Type.Equal(small.Type) {
		return bytes.Equal(large.Data, small.Data)
	}
	if large.Rank() == 0 || large.DType != small.DType || large.Rank() != small.Rank() {
		return false
	}
	for d, n := range small.Dims {
		if n > large.Dims[d] {
			return false
		}
	}
	size := int64(large.DType.Size())
	var same func(d int, l, s []byte) bool
	same = func(d int, l, s []byte) bool {
		if d == large.Rank()-1 {
			return bytes.Equal(l[:small.Dims[d]*size], s)
		}
		for i := range small.Dims[d] {
			nl, ns := int64(len(l))/large.Dims[d], int64(len(s))/small.Dims[d]
			if !same(d+1, l[i*nl:(i+1)*nl], s[i*ns:(i+1)*ns]) {
				return false
			}
		}
		return true
	}
	return same(0, large.Data, small.Data)
}

// call walks the bodies of two functions side by side and gives the states of the results.
func (p *prover) call(large, small *ir.Func, args []state) ([]state, error) {
	if len(large.Params) != len(small.Params) || len(large.Results) != len(small.Results) {
		return nil, refusal(nil, "function %s has other parameters or results in the smaller program", large.Name)
	}
	for i, v := range large.Params {
		p.pairs[v], p.states[v] = small.Params[i], args[i]
		delete(p.differing, v)
	}
	if err := p.body(large.Body, small.Body); err != nil {
		return nil, err
	}
	return p.results(large.Results, small.Results)
}

func (p *prover) results(large, small []*ir.Value) ([]state, error) {
	out := make([]state, len(large))
	for i, v := range large {
		if p.pairs[v] != small[i] {
			return nil, refusal(loc(v), "the smaller program gives another value as result %d", i)
		}
		if err := p.differing[v]; err != nil {
			return nil, err
		}
		out[i] = p.states[v]
	}
	return out, nil
}

// body pairs nodes. A broadcast may be missing in the small program, where it would repeat nothing.
func (p *prover) body(large, small []*ir.Node) error {
	for len(large) > 0 {
		n := large[0]
		large = large[1:]
		if (len(small) == 0 || small[0].Op != n.Op || !p.reads(n, small[0])) && p.extra(n) {
			continue
		}
		if len(small) == 0 {
			return refusal(n.Loc, "%s is not in the smaller program", n.Op.Name)
		}
		if err := p.node(n, small[0]); err != nil {
			return err
		}
		small = small[1:]
	}
	if len(small) > 0 {
		return refusal(small[0].Loc, "%s is in the smaller program alone", small[0].Op.Name)
	}
	return nil
}

// extra takes a broadcast of the large program that repeats along dimensions of extent 1 as its argument, in place.
func (p *prover) extra(n *ir.Node) bool {
	if !op.Broadcast.Is(n) || n.Args[0].Type.Rank() != n.Outs[0].Type.Rank() || p.pairs[n.Args[0]] == nil {
		return false
	}
	out, small := slices.Clone(p.states[n.Args[0]]), p.pairs[n.Args[0]]
	for d := range out {
		if l, was := n.Outs[0].Type.Dims[d], n.Args[0].Type.Dims[d]; l != was {
			out[d] = constantAlong(l, small.Type.Dims[d])
		}
	}
	p.pairs[n.Outs[0]], p.states[n.Outs[0]] = small, out
	return true
}

// reads reports whether the arguments of m stand for those of n.
func (p *prover) reads(n, m *ir.Node) bool {
	return slices.EqualFunc(n.Args, m.Args, func(v, w *ir.Value) bool { return p.pairs[v] == w })
}

// node applies the rule of n's operator.
func (p *prover) node(n, m *ir.Node) error {
	if n.Op != m.Op || len(n.Outs) != len(m.Outs) {
		return refusal(n.Loc, "%s is %s in the smaller program", n.Op.Name, m.Op.Name)
	}
	a := &application{prover: p, large: n, small: m, equal: true}
	if !p.reads(n, m) {
		return refusal(n.Loc, "%s reads another value in the smaller program", n.Op.Name)
	}
	var err error
	for i, v := range n.Args {
		err = cmp.Or(err, p.differing[v])
		a.in = append(a.in, p.states[v])
		a.equal = a.equal && v.Type.Equal(m.Args[i].Type)
	}
	for i, v := range n.Outs {
		// A rule relies on this: the smaller program's results are nowhere larger.
		if _, e := prefixes(n.Loc, n.Op.Name+": result", v.Type, m.Outs[i].Type); e != nil {
			err = cmp.Or(err, e)
		}
		a.equal = a.equal && v.Type.Equal(m.Outs[i].Type)
	}
	var out []state
	if err == nil {
		out, err = a.apply()
	}
	for i, v := range n.Outs {
		p.pairs[v] = m.Outs[i]
		delete(p.differing, v)
		if err == nil {
			p.states[v] = out[i]
			continue
		}
		known, same := p.compute(v, m.Outs[i])
		switch {
		case !known:
			return err
		case same == nil:
			p.differing[v] = err
		default:
			p.states[v] = same
		}
	}
	return nil
}

// application is an operator at work in both programs.
type application struct {
	*prover
	large, small *ir.Node
	in           []state
	equal        bool // arguments and results have equal types, so equal contents where the operator does the same
}

func (a *application) apply() ([]state, error) {
	n := a.large
	if a.equal && len(n.Op.Funcs) == 0 && n.Op.Traits&ir.Effect == 0 && sameAttr(n, a.small) {
		return a.whole(), nil
	}
	switch rule := rules[n.Op]; {
	case rule != nil:
		return rule(a)
	case n.Op.Traits&ir.Elementwise != 0:
		return elementwise(a)
	case n.Op.Composite():
		return a.decompose()
	}
	return nil, a.refuse("no rule says what padding does to it")
}

func (a *application) refuse(format string, args ...any) error {
	return refusal(a.large.Loc, "%s: %s", a.large.Op.Name, fmt.Sprintf(format, args...))
}

// whole are the states of results that are prefixes.
func (a *application) whole() []state {
	out := make([]state, len(a.large.Outs))
	for i, v := range a.large.Outs {
		for d, n := range v.Type.Dims {
			out[i] = append(out[i], prefix(n, a.small.Outs[i].Type.Dims[d]))
		}
	}
	return out
}

// decompose applies the rules of a composite's parts.
func (a *application) decompose() ([]state, error) {
	lb, sb := &ir.Builder{Loc: a.large.Loc}, &ir.Builder{Loc: a.small.Loc}
	large, small := a.large.Op.Decompose(lb, a.large, a.large.Attr), a.small.Op.Decompose(sb, a.small, a.small.Attr)
	err := a.body(lb.Body, sb.Body)
	var out []state
	if err == nil {
		out, err = a.results(large, small)
	}
	if e, ok := err.(*diag.Error); ok {
		e.Msg = a.large.Op.Name + ": " + e.Msg
	}
	return out, err
}

// sameAttr compares the attributes of two nodes of one operator that names no functions.
func sameAttr(n, m *ir.Node) bool {
	if x, ok := n.Attr.(op.ConstantAttr); ok {
		y := m.Attr.(op.ConstantAttr).Value
		return x.Value.Type.Equal(y.Type) && bytes.Equal(x.Value.Data, y.Data)
	}
	return reflect.DeepEqual(n.Attr, m.Attr)
}

// dims are the extents of argument i along dimension d.
func (a *application) dims(i, d int) factor {
	return factor{a.large.Args[i].Type.Dims[d], a.small.Args[i].Type.Dims[d]}
}

// outDims are the extents of result i along dimension d.
func (a *application) outDims(i, d int) factor {
	return factor{a.large.Outs[i].Type.Dims[d], a.small.Outs[i].Type.Dims[d]}
}

// wantEqual refuses an argument that is padded along a dimension, for a reason.
func (a *application) wantEqual(i, d int, reason string) error {
	if f := a.dims(i, d); !f.equal() {
		return a.refuse("%s along dimension %d of %s, where %d of %d elements are padding", reason, d, a.large.Args[i].Type, f.large-f.small, f.large)
	}
	return nil
}
