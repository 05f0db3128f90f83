package pt2

import (
	"slices"
	"strconv"
	"strings"

	"tpuc/ir"
	"tpuc/ir/eval"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// run_decompositions() makes graphs pure. Operators of users that write to arguments stay impure, so it wraps their calls in an operator that copies what they
// write to, calls them, and gives their results and then what the copies hold (torch/_higher_order_ops/auto_functionalize.py). There are two of these.
// The first one takes the operator's arguments under their own names and gives new contents of those that it writes to. The second one takes
// the tensors that these are views of, says of each argument which view of which tensor it is, and gives new contents of those tensors: then arguments may
// share memory. Both are undone here: the operator's own rule runs on copies, and writes to them as it does in a graph as captured.

// importFunctionalized is the first wrapper.
func importFunctionalized(c *call) []*ref {
	w := newWrapped(c)
	defer w.unbind()
	var copies []*ref
	for _, in := range c.node.Inputs[1:] {
		refs, list := w.tensorsOf(&in.Arg)
		if refs == nil {
			w.inner.node.Inputs = append(w.inner.node.Inputs, in)
			continue
		}
		for i, r := range refs {
			if r != nil {
				refs[i] = copyOf(c.b, r)
				copies = append(copies, refs[i])
			}
		}
		w.pass(in.Name, refs, list)
	}
	w.inner.wrapped = true
	w.inner.node.Outputs = c.node.Outputs
	results := w.run()
	written := slices.DeleteFunc(copies, func(r *ref) bool { return r.store.version == 0 })
	// What the operator returns comes first; an operator without results has None there.
	names := outputNames(c.node)
	at := len(results)
	if at == 0 && len(names) > 0 && names[0] == "" {
		results, at = append(results, nil), 1
	}
	want := 0
	for _, name := range names[min(at, len(names)):] {
		if name == "" { // of an argument that is None
			results = append(results, nil)
			continue
		}
		if want++; want <= len(written) {
			results = append(results, written[want-1])
		}
	}
	if want != len(written) {
		w.lack(message("the archive has new contents of %d arguments, the function for it updates %d: it returns those of each argument that the operator writes to", want, len(written)))
	}
	return results
}

// importFunctionalizedViews is the second wrapper.
func importFunctionalizedViews(c *call) []*ref {
	w := newWrapped(c)
	defer w.unbind()
	var bases []*ref
	for _, r := range c.refs("_all_bases") {
		if r == nil {
			c.failf("argument _all_bases holds None, wanted tensors")
		}
		bases = append(bases, copyOf(c.b, r))
	}
	given := make(map[string]argument, len(c.node.Inputs))
	for _, in := range c.node.Inputs[1:] {
		given[in.Name] = in.Arg
	}
	delete(given, "_all_bases")
	for _, in := range c.node.Inputs[1:] { // lists come first: their elements' names look like those of arguments
		arg, ok := between(in.Name, "_length")
		if !ok {
			continue
		}
		delete(given, in.Name)
		if in.Arg.None != nil {
			w.inner.node.Inputs = append(w.inner.node.Inputs, namedArg{arg, in.Arg})
			continue
		}
		n := c.number(in.Name, in.Arg).i
		if n < 0 || n > int64(len(c.node.Inputs)) {
			c.failf("argument %s is %d, wanted the number of the tensors that are described", clip(in.Name), n)
		}
		var refs []*ref
		for i := range n {
			refs = append(refs, w.viewOf(bases, given, "_"+arg+"_"+strconv.FormatInt(i, 10)))
		}
		w.pass(arg, refs, true)
	}
	for _, in := range c.node.Inputs[1:] {
		if arg, ok := between(in.Name, "_base_index"); ok {
			if _, single := given[in.Name]; single {
				w.pass(arg, []*ref{w.viewOf(bases, given, "_"+arg)}, false)
			}
		}
	}
	for _, in := range c.node.Inputs[1:] {
		if _, ok := given[in.Name]; ok { // what is left are the other arguments
			w.inner.node.Inputs = append(w.inner.node.Inputs, in)
		}
	}
	own := len(c.node.Outputs) - len(bases)
	if own < 0 {
		c.failf("%d results, wanted new contents of %d tensors among them", len(c.node.Outputs), len(bases))
	}
	nothing := own == 1 && c.node.Outputs[0].None != nil
	if !nothing {
		w.inner.node.Outputs = c.node.Outputs[:own]
	}
	results := w.run()
	if nothing {
		results = append(results, nil)
	}
	return append(results, bases...)
}

// viewFields are what describes an argument, by what stands behind an underscore and its name, with the names that the view operators give it.
var viewFields = []struct{ suffix, name string }{{"_base_index", "base"}, {"_alias", "alias"}, {"_size", "size"}, {"_stride", "stride"},
	{"_storage_offset", "storage_offset"}, {"_slice_dim", "dim"}, {"_slice_start", "start"}, {"_slice_end", "end"}}

// viewOf is the view that arguments with the prefix describe, which it takes out of those that are given; nil where the operator gets None.
func (w *wrapped) viewOf(bases []*ref, given map[string]argument, prefix string) *ref {
	v := &call{im: w.im, b: w.b, node: &node{}}
	has := make(map[string]bool)
	for _, f := range viewFields {
		if a, ok := given[prefix+f.suffix]; ok {
			delete(given, prefix+f.suffix)
			has[f.name] = true
			v.node.Inputs = append(v.node.Inputs, namedArg{f.name, a})
		}
	}
	if !has["base"] {
		w.failf("argument %s_base_index is missing", clip(prefix))
	}
	if !v.has("base") {
		return nil
	}
	i := v.int("base")
	if i < 0 || i >= int64(len(bases)) {
		w.failf("argument %s_base_index is %d, wanted one of %d tensors", clip(prefix), i, len(bases))
	}
	switch {
	case has["dim"]:
		v.op = "slice.Tensor"
	case has["storage_offset"]:
		v.op = "as_strided.default"
	default: // as it is, or as an alias
		return bases[i]
	}
	v.node.Target = "torch.ops.aten." + v.op
	name := w.bind(bases[i])
	v.node.Inputs = append(v.node.Inputs, namedArg{"self", argument{Tensor: &name}})
	return v.findRule()(v)[0]
}

// between is the name of the argument that _NAMEsuffix describes.
func between(name, suffix string) (string, bool) {
	arg, ok := strings.CutSuffix(name, suffix)
	if !ok || len(arg) < 2 || arg[0] != '_' {
		return "", false
	}
	return arg[1:], true
}

// copyOf has r's contents in memory of its own, with the same strides.
func copyOf(b *ir.Builder, r *ref) *ref {
	out := fresh(r.read(b))
	out.strides = r.strides
	return out
}

// wrapped is the call within a wrapper.
type wrapped struct {
	*call
	inner *call
	names []string // of tensors that were given a name for the call
}

// newWrapped begins a call of the operator in the first argument.
func newWrapped(c *call) *wrapped {
	a := c.position(0)
	if a.Operator == nil {
		c.failf("argument 0 is a %s, wanted an operator", a.kind())
	}
	return &wrapped{call: c, inner: &call{im: c.im, b: c.b, node: &node{Target: *a.Operator, Metadata: c.node.Metadata}, op: opName(*a.Operator)}}
}

// bind gives a tensor a name that no tensor of a graph has.
func (w *wrapped) bind(r *ref) nameRef {
	name := "tensor " + strconv.Itoa(len(w.names)) + " of a wrapped operator"
	w.names = append(w.names, name)
	w.im.tensors[name] = r
	return nameRef{name}
}

// unbind ends what bind began.
func (w *wrapped) unbind() {
	for _, name := range w.names {
		delete(w.im.tensors, name)
	}
}

// pass gives the operator a tensor, or a list of them; nil is None.
func (w *wrapped) pass(arg string, refs []*ref, list bool) {
	out := make([]argument, len(refs))
	for i, r := range refs {
		if r == nil {
			out[i] = argument{None: &noneArg{}}
			continue
		}
		name := w.bind(r)
		out[i] = argument{Tensor: &name}
	}
	a := argument{OptionalTensors: &out}
	if !list {
		a = out[0]
	}
	w.inner.node.Inputs = append(w.inner.node.Inputs, namedArg{arg, a})
}

// tensorsOf are the tensors of an argument, nil for None, and whether they are a list; nothing where it holds none.
func (w *wrapped) tensorsOf(a *argument) (out []*ref, list bool) {
	if a.OptionalTensor != nil {
		a = a.OptionalTensor
	}
	switch {
	case a.Tensor != nil:
		return []*ref{w.tensorNamed(a.Tensor.Name)}, false
	case a.Tensors != nil:
		out = make([]*ref, len(*a.Tensors))
		for i, t := range *a.Tensors {
			out[i] = w.tensorNamed(t.Name)
		}
		return out, true
	case a.OptionalTensors != nil:
		out = make([]*ref, len(*a.OptionalTensors))
		for i, t := range *a.OptionalTensors {
			if t.Tensor != nil {
				out[i] = w.tensorNamed(t.Tensor.Name)
			}
		}
		return out, true
	}
	return nil, false
}

// run runs the operator's own rule. What it lacks is reported under the operator's name.
func (w *wrapped) run() []*ref {
	rule := w.inner.findRule()
	if rule == nil || controlRule(w.inner.op) != nil {
		w.lack("")
	}
	defer func() {
		if r := recover(); r != nil {
			if e, ok := r.(*ruleError); ok && e.unsupported {
				w.lack(e.msg, e.notes...)
			}
			panic(r)
		}
	}()
	return rule(w.inner)
}

// lack ends the wrapper: the operator has no rule for this call.
func (w *wrapped) lack(reason string, notes ...string) {
	w.im.lacking.add(w.inner, reason, notes...)
	panic(spoiled{})
}

// overlap reports that two tensors share an element; known is false where that cannot be told.
func overlap(x, y *ref) (shared, known bool) {
	if x.store != y.store {
		return false, true
	}
	p, q := places(x), places(y)
	if p == nil || q == nil {
		return false, false
	}
	at := make(map[int64]bool, len(p))
	for _, i := range p {
		at[i] = true
	}
	return slices.ContainsFunc(q, func(i int64) bool { return at[i] }), true
}

// places are the elements of the storage that r shows, by their numbers; nil where there are too many, or where the view changes them.
func places(r *ref) []int64 {
	root := r
	for ; root.parent != nil; root = root.parent {
		if root.parent.typ.DType != r.typ.DType {
			return nil
		}
	}
	if root.typ.Elements() > maxViewed {
		return nil
	}
	f := &ir.Func{Name: "places"}
	b := &ir.Builder{}
	all := op.Iota.Make(b, op.IotaAttr{Type: tensor.Make(tensor.I64, root.typ.Elements())})
	var through func(r *ref) *ir.Value
	through = func(r *ref) *ir.Value {
		if r.parent == nil {
			return reshape(b, all, root.typ.Dims)
		}
		return r.view.read(b, through(r.parent))
	}
	f.Results = []*ir.Value{through(r)}
	f.Body = b.Body
	out, err := eval.Run(&ir.Module{Func: f}, nil, eval.Options{})
	if err != nil {
		return nil
	}
	return out.Outputs[0].Ints()
}
