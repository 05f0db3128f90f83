package pt2

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"tpuc/frontend/weights"
	"tpuc/ir"
	"tpuc/ir/diag"
	"tpuc/ir/tensor"
)

// Imported is a program with all dimensions fixed.
type Imported struct {
	Module  *ir.Module
	Binding Binding
	Inputs  []BoundLeaf // all flattened inputs; the tensors among them are the module's parameters, in order
	Outputs []BoundLeaf // all flattened outputs; the tensors among them are the module's results, in order
}

// BoundLeaf is a flattened input or output with its dimensions fixed.
type BoundLeaf struct {
	Leaf
	Type    tensor.Type // of a tensor
	Index   int         // among the module's parameters or results; -1 for what is no tensor
	Updated int         // an input that is written to, or an output that is such an input's or state's new contents: the index among the updates; otherwise -1
}

// maxConstant is the size in bytes up to which a lifted constant becomes a literal of the program.
const maxConstant = 64 << 10

// Import builds the module for one binding. Everything that cannot be imported is reported in one list: unsupported operators with
// their places and counts, and faults of the archive.
func (p *Program) Import(ctx context.Context, bound Binding) (*Imported, error) {
	sizes := make(Binding, len(bound)) // grows by sizes that the contents of constants decide
	maps.Copy(sizes, bound)
	im := &importer{
		p: p, bound: sizes, g: &p.ep.GraphModule.Graph,
		m:        &ir.Module{Func: &ir.Func{Name: "main"}},
		b:        &ir.Builder{},
		tensors:  make(map[string]*ref, len(p.ep.GraphModule.Graph.TensorValues)),
		scalars:  make(map[string]scalar),
		poison:   make(map[string]bool),
		unknown:  make(map[string]bool),
		computed: make(map[string]*ir.Value),
		byView:   make(map[string]*origin),
		syms:     make(map[string]bool),
		funcs:    make(map[string]bool),
		nested:   new(int),

		knowledge: &knowledge{values: make(map[*ir.Value]*tensor.Tensor)},
	}
	im.extents = newExtents(im.b)
	im.placeholders()
	if err := im.errs.Err(); err != nil {
		return nil, err
	}
	for i := range im.g.Nodes {
		if i%1024 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		if err := im.node(&im.g.Nodes[i]); err != nil {
			return nil, err
		}
	}
	im.openOutputs()
	im.checkDrawn()
	im.errs = append(im.errs, im.lacking.list()...)
	if err := im.errs.Err(); err != nil {
		return nil, err
	}
	out := &Imported{Module: im.m, Binding: bound}
	if err := im.finish(out); err != nil {
		return nil, err
	}
	if err := im.knowledge.check(); err != nil {
		return nil, err
	}
	if err := im.checkOpen(); err != nil {
		return nil, err
	}
	return out, nil
}

// importer builds one module.
type importer struct {
	p     *Program
	bound Binding
	g     *graph
	m     *ir.Module
	b     *ir.Builder

	tensors  map[string]*ref
	scalars  map[string]scalar
	poison   map[string]bool      // numbers that an operator made that could not be imported
	unknown  map[string]bool      // numbers that depend on the data
	computed map[string]*ir.Value // those of them that the program computes, 0-d
	origins  []*origin            // in the order of the signature
	byView   map[string]*origin
	syms     map[string]bool // symbols of weights in use
	funcs    map[string]bool // names of functions in use

	autocast *autocast // nil: off
	vmaps    []*vmap   // regions that have begun, outermost first
	nesting  int       // of the graph in work
	nested   *int      // nodes of graphs within graphs imported so far

	knowledge *knowledge // shared with graphs within graphs
	extents   *extents   // the same
	drawn     []drawn    // nodes that drew numbers which nothing depends on so far

	locs    locs
	lacking lacking
	errs    diag.List
}

// node imports one node. The error is a fault of this package; faults of the archive and missing rules go to the lists.
func (im *importer) node(n *node) (err error) {
	loc := im.locs.of(n)
	im.b.Loc = loc
	c := &call{im: im, b: im.b, node: n, op: opName(n.Target)}
	rule := c.findRule()
	if rule == nil {
		if !im.draw(c) {
			im.lacking.add(c, c.drawing())
			im.spoil(n)
		}
		return nil
	}
	if im.spoiled(n) {
		im.spoiledWrite(c)
		im.spoil(n)
		return nil
	}
	if im.dataDependent(c) || im.symbolic(c) {
		return nil
	}
	defer func() {
		r := recover()
		switch e := r.(type) {
		case nil:
			return
		case *ruleError:
			if e.unsupported {
				im.lacking.add(c, e.msg, e.notes...)
			} else {
				im.errs.Addf(loc, "pt2/node", "%s (%%%s): %s", clip(n.Target), c.result(), e.msg)
			}
		case spoiled:
		case *diag.Bug: // within a graph of the node
			err = e
			return
		case *ir.ShapeError:
			if c.complex() {
				im.lacking.add(c, "complex tensors")
				break
			}
			im.errs.Add(e.Diag(loc).Note("imported from %s (%%%s)", clip(n.Target), c.result()))
		default:
			err = &diag.Bug{Pass: "import", Node: im.describe(c), Cause: r, Stack: string(debug.Stack())}
		}
		im.spoil(n)
	}()
	undo := c.underAutocast()
	results := rule(c)
	undo()
	im.bindResults(c, results)
	return nil
}

// dataDependent handles a node that computes with a number read from a tensor. It reports a node that needs no rule: assertions, which are dropped,
// and arithmetic.
func (im *importer) dataDependent(c *call) bool {
	found := false
	for i := range c.node.Inputs {
		c.node.Inputs[i].Arg.visit(func(string) {}, func(name string) { found = found || im.unknown[name] })
	}
	_, assertion := checkRules[strings.TrimSuffix(c.op, ".default")]
	switch {
	case !found:
		return false
	case assertion:
		im.asserted(c)
	case strings.HasPrefix(c.op, "_operator.") || strings.HasPrefix(c.op, "torch.") || strings.HasPrefix(c.op, "math."):
		im.markUnknown(c.node)
		im.compute(c)
	default: // the rule refuses what it cannot take as a tensor
		return false
	}
	return true
}

// markUnknown says that the node's numbers depend on the data.
func (im *importer) markUnknown(n *node) {
	for i := range n.Outputs {
		n.Outputs[i].visit(func(string) {}, func(name string) { im.unknown[name] = true })
	}
}

// result names the node's first result, for messages.
func (c *call) result() string {
	for _, o := range c.node.Outputs {
		switch {
		case o.Tensor != nil:
			return clip(o.Tensor.Name)
		case o.Tensors != nil && len(*o.Tensors) > 0:
			return clip((*o.Tensors)[0].Name)
		case o.SymInt != nil && o.SymInt.Name != nil:
			return clip(*o.SymInt.Name)
		}
	}
	return "?"
}

// complex reports an argument of complex numbers, for which most rules do not hold.
func (c *call) complex() bool {
	found := false
	look := func(name string) {
		if r := c.im.tensors[name]; r != nil && r.typ.DType.IsComplex() {
			found = true
		}
	}
	for i := range c.node.Inputs {
		c.node.Inputs[i].Arg.visit(look, func(string) {})
	}
	return found
}

// describe is a node for a report of a fault of this package.
func (im *importer) describe(c *call) string {
	return fmt.Sprintf("%s (%%%s) at %s", clip(c.node.Target), c.result(), c.b.Loc)
}

// opName strips the namespace of ATen's operators.
func opName(target string) string {
	if op, ok := strings.CutPrefix(target, "torch.ops.aten."); ok {
		return op
	}
	return target
}

// outputNames are the names of the node's results with lists flattened; "" for None.
func outputNames(n *node) []string {
	var out []string
	for i := range n.Outputs {
		switch o := &n.Outputs[i]; {
		case o.Tensor != nil:
			out = append(out, o.Tensor.Name)
		case o.Tensors != nil:
			for _, t := range *o.Tensors {
				out = append(out, t.Name)
			}
		case o.SymInt == nil && o.SymFloat == nil && o.SymBool == nil:
			out = append(out, "")
		}
	}
	return out
}

// bindResults names a rule's results and checks them against the types that the archive records. A difference goes to the list of errors.
func (im *importer) bindResults(c *call, results []*ref) {
	names := outputNames(c.node)
	if len(names) != len(results) && len(names) > 0 {
		c.failf("the node has %d results, wanted %d", len(names), len(results))
	}
	for i, name := range names {
		r := results[i]
		if name == "" || r == nil {
			continue
		}
		meta, ok := im.g.TensorValues[name]
		if !ok {
			c.failf("the graph does not describe tensor %q", clip(name))
		}
		im.bindSizes(&meta, r.typ)
		want, strides, err := im.typeOf(&meta)
		if err != nil {
			c.failf("tensor %q: %v", clip(name), err)
		}
		if !r.typ.Equal(want) {
			if c.complex() {
				c.unsupported("complex tensors")
			}
			// A rule that is wrong looks the same; for the user it is the archive and tpuc that disagree.
			im.errs.Addf(c.b.Loc, "pt2/type", "%s (%%%s): result %d is %s by the operator's rule, the archive says %s", clip(c.node.Target), clip(name), i, r.typ, want).
				Note("the archive is damaged, or tpuc reads this operator wrongly: if torch.export.load and a call of the model work, please report it")
			im.spoil(c.node)
			return
		}
		im.bindExtent(c, r, &meta)
		r.strides = strides
		if _, ok := im.tensors[name]; ok {
			c.failf("tensor %q is made twice", clip(name))
		}
		im.tensors[name] = r
	}
}

// bindSizes gives the symbols of sizes that depend on the data the values that a rule found.
func (im *importer) bindSizes(meta *tensorMeta, t tensor.Type) {
	if len(meta.Sizes) != t.Rank() {
		return
	}
	for i, s := range meta.Sizes {
		if s.Expr == nil {
			continue
		}
		if e, err := im.p.parse(s.Expr.Expr); err == nil && e.fn == "Symbol" {
			if _, ok := im.bound[e.name]; !ok {
				im.bound[e.name] = t.Dims[i]
			}
		}
	}
}

// typeOf is a tensor's recorded type and strides with the symbols bound.
func (im *importer) typeOf(meta *tensorMeta) (tensor.Type, []int64, error) {
	d, err := weights.TorchDType(meta.DType)
	if err != nil {
		return tensor.Type{}, nil, err
	}
	if len(meta.Sizes) > tensor.MaxRank {
		return tensor.Type{}, nil, fmt.Errorf("%d dimensions, wanted at most %d", len(meta.Sizes), tensor.MaxRank)
	}
	t := tensor.Type{DType: d, Dims: make([]int64, len(meta.Sizes))}
	for i, s := range meta.Sizes {
		v, unbacked, err := im.sizeOf(s)
		if err != nil {
			return t, nil, err
		}
		if unbacked {
			panic(&ruleError{unsupported: true, msg: "the shape of its result depends on the data"})
		}
		t.Dims[i] = v
	}
	if err := t.Check(); err != nil {
		return t, nil, err
	}
	strides := make([]int64, 0, len(meta.Strides))
	for _, s := range meta.Strides {
		v, unbacked, err := im.sizeOf(s)
		if err != nil || unbacked {
			break
		}
		strides = append(strides, v)
	}
	if len(strides) != len(t.Dims) {
		strides = tensor.Strides(t.Dims)
	}
	return t, strides, nil
}

// resultType is the recorded type of the first result.
func (c *call) resultType() tensor.Type {
	names := outputNames(c.node)
	if len(names) == 0 {
		c.failf("the node has no result")
	}
	meta, ok := c.im.g.TensorValues[names[0]]
	if !ok {
		c.failf("the graph does not describe the result")
	}
	t, _, err := c.im.typeOf(&meta)
	if err != nil {
		c.failf("tensor %q: %v", clip(names[0]), err)
	}
	return t
}

// symValue evaluates a symbolic integer or float by its recorded expression.
func (im *importer) symValue(name string) (scalar, bool) {
	if s, ok := im.g.SymIntValues[name]; ok {
		if v, unbacked, err := im.sizeOf(s); err == nil && !unbacked {
			return intScalar(v), true
		}
	}
	if s, ok := im.g.SymFloatValues[name]; ok {
		switch {
		case s.Float != nil:
			return floatScalar(float64(*s.Float)), true
		case s.Expr != nil:
			if e, err := im.p.parse(s.Expr.Expr); err == nil {
				if v, err := e.eval(im.bound); err == nil {
					return floatScalar(v.value()), true
				}
			}
		}
	}
	return scalar{}, false
}

// spoiled reports a node that reads the result of one that could not be imported.
func (im *importer) spoiled(n *node) bool {
	bad := false
	for i := range n.Inputs {
		n.Inputs[i].Arg.visit(func(tensorName string) { bad = bad || im.spoiledTensor(tensorName) }, func(symName string) { bad = bad || im.poison[symName] })
	}
	return bad
}

// spoil marks the results of a node that was not imported, so that the import goes on and finds what else is missing.
func (im *importer) spoil(n *node) {
	for i := range n.Outputs {
		n.Outputs[i].visit(
			func(name string) { im.tensors[name] = &ref{store: &storage{}, poison: true} },
			func(name string) { im.poison[name] = true })
	}
}

// visit calls the functions with the names of all tensors and symbolic numbers in the argument.
func (a *argument) visit(tensorName, symName func(string)) {
	sym := func(s *symRef) {
		if s != nil && s.Name != nil {
			symName(*s.Name)
		}
	}
	sym(a.SymInt)
	sym(a.SymFloat)
	sym(a.SymBool)
	switch {
	case a.Tensor != nil:
		tensorName(a.Tensor.Name)
	case a.Tensors != nil:
		for _, t := range *a.Tensors {
			tensorName(t.Name)
		}
	case a.OptionalTensor != nil:
		a.OptionalTensor.visit(tensorName, symName)
	case a.OptionalTensors != nil:
		for i := range *a.OptionalTensors {
			(*a.OptionalTensors)[i].visit(tensorName, symName)
		}
	case a.SymInts != nil:
		for i := range *a.SymInts {
			sym(&(*a.SymInts)[i])
		}
	}
}

// IsUnsupported reports an error list that holds only operators without rules.
func IsUnsupported(err error) bool {
	var l diag.List
	if !errors.As(err, &l) {
		return false
	}
	return !slices.ContainsFunc(l, func(e *diag.Error) bool { return e.Code != codeUnsupported })
}
