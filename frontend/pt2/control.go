package pt2

// Higher-order operators hold graphs of their own. Graphs that run exactly once, where they stand, become part of the graph around them:
// regions of autocast and no_grad, and the branch of a cond whose predicate is known. The others become functions of the module.
//
// A function reads its parameters and the module's weights alone. What the caller passes is a parameter, but for weights that it passes
// as they are, which the function reads itself. Writes in place within a branch or a loop's body become further results, which the
// caller writes where the argument lies.

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

const hop = "torch.ops.higher_order."

// maxNesting bounds graphs in graphs.
const maxNesting = 32

// maxNestedNodes bounds the nodes of graphs in graphs, which are imported twice where a loop writes to a weight.
const maxNestedNodes = 1 << 20

// controlTargets are the operators that controlRule knows, without the namespace torch.
var controlTargets = []string{
	"ops.higher_order.associative_scan", "ops.higher_order.auto_functionalized", "ops.higher_order.auto_functionalized_v2", "ops.higher_order.cond", "ops.higher_order.map_impl", "ops.higher_order.scan",
	"ops.higher_order.while_loop", "ops.higher_order.wrap_with_autocast", "ops.higher_order.wrap_with_set_grad_enabled",
	"_functorch.predispatch._add_batch_dim", "_functorch.predispatch._remove_batch_dim",
	"_functorch.predispatch._vmap_decrement_nesting", "_functorch.predispatch._vmap_increment_nesting",
	"_functorch.predispatch.lazy_load_decompositions",
}

// controlRule is the rule of an operator that holds graphs, or that belongs to a region of vmap. It is no table: its rules import nodes,
// which look into the tables.
func controlRule(target string) rule {
	switch target {
	case hop + "cond":
		return importCond
	case hop + "while_loop":
		return importWhile
	case hop + "scan":
		return importScan
	case hop + "map_impl":
		return importMap
	case hop + "associative_scan":
		return importAssociativeScan
	case hop + "wrap_with_set_grad_enabled":
		return func(c *call) []*ref { return c.inlineGraph(c.position(1), c.passedFrom(2), c.im.autocast) }
	case hop + "wrap_with_autocast":
		return importAutocast
	case hop + "auto_functionalized":
		return importFunctionalized
	case hop + "auto_functionalized_v2":
		return importFunctionalizedViews
	}
	return vmapRule(target)
}

// graphArg is a graph as an argument.
type graphArg struct {
	Name  string `json:"name"`
	Graph graph  `json:"graph"`
}

// position is an argument of an operator without a schema.
func (c *call) position(i int) *argument {
	if i >= len(c.node.Inputs) {
		c.failf("argument %d is missing", i)
	}
	return &c.node.Inputs[i].Arg
}

// passed is what a graph gets for an input, or gives: a tensor or a number, or neither for None.
type passed struct {
	ref     *ref
	number  scalar
	none    bool
	unknown bool // a number that depends on the data
}

// passedAt reads one argument, lists flattened.
func (c *call) passedAt(a *argument) []passed {
	var out []passed
	switch {
	case a.Tensor != nil:
		out = append(out, passed{ref: c.tensorNamed(a.Tensor.Name)})
	case a.Tensors != nil:
		for _, t := range *a.Tensors {
			out = append(out, passed{ref: c.tensorNamed(t.Name)})
		}
	case a.SymInts != nil:
		for i := range *a.SymInts {
			out = append(out, passed{number: c.sym(&(*a.SymInts)[i])})
		}
	case a.Ints != nil:
		for _, v := range *a.Ints {
			out = append(out, passed{number: intScalar(v)})
		}
	case a.None != nil:
		out = append(out, passed{none: true})
	case a.SymInt != nil && a.SymInt.Name != nil && c.im.unknown[*a.SymInt.Name]:
		out = append(out, passed{unknown: true})
	default:
		out = append(out, passed{number: c.number("of the graph", *a)})
	}
	return out
}

// passedFrom are all arguments from a position on.
func (c *call) passedFrom(from int) []passed {
	var out []passed
	for i := from; i < len(c.node.Inputs); i++ {
		out = append(out, c.passedAt(&c.node.Inputs[i].Arg)...)
	}
	return out
}

// tensorsAt are the tensors of an argument that holds nothing else.
func (c *call) tensorsAt(i int) []*ref {
	var out []*ref
	for _, o := range c.passedAt(c.position(i)) {
		if o.ref == nil {
			c.unsupported("a number goes from step to step, wanted tensors alone")
		}
		out = append(out, o.ref)
	}
	return out
}

// graphOf is the graph in an argument.
func (c *call) graphOf(a *argument) *graph {
	if a.Graph == nil {
		c.failf("an argument is a %s, wanted a graph", a.kind())
	}
	return &a.Graph.Graph
}

// spoiled ends a rule whose graph holds nodes that could not be imported. They are in the lists already.
type spoiled struct{}

// importGraph imports g's nodes with its inputs bound to args, and gives its outputs. Nodes go to b.
func (c *call) importGraph(g *graph, args []passed, b *ir.Builder, cast *autocast) (outputs []passed) {
	im := c.im
	child := &importer{}
	*child = *im
	child.g, child.b, child.autocast, child.nesting, child.vmaps = g, b, cast, im.nesting+1, nil
	child.tensors, child.scalars = make(map[string]*ref), make(map[string]scalar)
	child.computed = make(map[string]*ir.Value)
	child.poison, child.unknown = make(map[string]bool), make(map[string]bool)
	before := len(im.errs) + im.lacking.size()
	defer func() { im.errs, im.lacking, im.locs = child.errs, child.lacking, child.locs }()
	if *im.nested += len(g.Nodes); *im.nested > maxNestedNodes {
		c.unsupported("more than %d nodes in graphs within graphs", maxNestedNodes)
	}
	if child.nesting > maxNesting {
		c.unsupported("graphs nested deeper than %d", maxNesting)
	}
	if len(g.Inputs) != len(args) {
		c.failf("a graph takes %d inputs, wanted %d", len(g.Inputs), len(args))
	}
	for i := range g.Inputs {
		c.bindInput(child, &g.Inputs[i], args[i])
	}
	for i := range g.Nodes {
		if err := child.node(&g.Nodes[i]); err != nil {
			panic(err) // a fault of this package; the caller's node passes it on
		}
	}
	if len(child.errs)+child.lacking.size() > before {
		panic(spoiled{})
	}
	if len(child.vmaps) > 0 {
		c.failf("a graph ends within a region of vmap")
	}
	inner := &call{im: child, b: b, node: c.node, op: c.op}
	for i := range g.Outputs {
		outputs = append(outputs, inner.passedAt(&g.Outputs[i])...)
	}
	return outputs
}

// bindInput names an input of a graph and checks a tensor against the recorded type.
func (c *call) bindInput(child *importer, in *argument, arg passed) {
	switch {
	case in.Tensor != nil && arg.ref != nil:
		meta, ok := child.g.TensorValues[in.Tensor.Name]
		if !ok {
			c.failf("a graph does not describe its input %q", clip(in.Tensor.Name))
		}
		want, _, err := child.typeOf(&meta)
		switch {
		case err != nil:
			c.failf("input %q of a graph: %v", clip(in.Tensor.Name), err)
		case !arg.ref.typ.Equal(want):
			c.failf("input %q of a graph gets %s, wanted %s", clip(in.Tensor.Name), arg.ref.typ, want)
		}
		child.tensors[in.Tensor.Name] = arg.ref
	case in.SymInt != nil && in.SymInt.Name != nil && arg.ref == nil && !arg.none:
		if arg.unknown {
			child.unknown[*in.SymInt.Name] = true
		} else {
			child.scalars[*in.SymInt.Name] = arg.number
		}
	case in.Tensor != nil || arg.ref != nil:
		c.failf("an input of a graph is a %s and gets something else", in.kind())
	}
}

// inlineGraph imports a graph where it stands: its inputs are the caller's own tensors, so that views and writes reach them.
func (c *call) inlineGraph(a *argument, args []passed, cast *autocast) []*ref {
	return c.bindNumbers(c.importGraph(c.graphOf(a), args, c.b, cast))
}

// bindNumbers names the node's results that are numbers and gives the others.
func (c *call) bindNumbers(outputs []passed) []*ref {
	var results []*ref
	i := 0
	for k := range c.node.Outputs {
		o := &c.node.Outputs[k]
		n := 1
		if o.Tensors != nil {
			n = len(*o.Tensors)
		}
		if i+n > len(outputs) {
			c.failf("the graph has %d outputs, wanted those of the node", len(outputs))
		}
		if o.SymInt != nil || o.SymFloat != nil || o.SymBool != nil {
			x := outputs[i]
			if x.ref != nil || x.none {
				c.failf("output %d of the graph is a tensor or None, the node has a number", i)
			}
			o.visit(func(string) {}, func(name string) {
				if c.im.scalars[name] = x.number; x.unknown {
					delete(c.im.scalars, name)
					c.im.unknown[name] = true
				}
			})
		} else {
			for _, x := range outputs[i : i+n] {
				results = append(results, x.ref)
			}
		}
		i += n
	}
	return results
}

// importCond imports cond(pred, true_graph, false_graph, operands).
func importCond(c *call) []*ref {
	args := c.passedFrom(3)
	pred := c.position(0)
	if pred.Tensor == nil {
		branch := c.position(2)
		if c.number("predicate", *pred).i != 0 {
			branch = c.position(1)
		}
		return c.inlineGraph(branch, args, c.im.autocast)
	}
	p := c.tensorNamed(pred.Tensor.Name).read(c.b)
	if p.Type.Elements() != 1 {
		c.failf("the predicate is %s, wanted one element", p.Type)
	}
	p = reshape(c.b, c.isTrue(p), nil)
	slots := c.slots(args)
	then, els := c.importFunc(c.position(1), slots), c.importFunc(c.position(2), slots)
	outputs := c.joinOutputs(then, els)
	results := len(then.Results)
	written := func(i int) bool { return then.written(i) || els.written(i) }
	c.checkAliases(args, written)
	var targets []*ref
	for i := range args {
		if written(i) {
			targets = append(targets, args[i].ref)
			then.Results, els.Results = append(then.Results, then.stores[i].cur), append(els.Results, els.stores[i].cur)
		}
	}
	if len(then.Results) == 0 {
		return c.bindNumbers(outputs)
	}
	outs := op.Cond.MakeAll(c.b, op.CondAttr{Then: then.Func, Else: els.Func}, slices.Concat([]*ir.Value{p}, c.params(args, slots))...)
	for i, t := range targets {
		t.write(c.b, outs[results+i])
	}
	k := 0
	for i := range outputs {
		if outputs[i].ref != nil {
			outputs[i].ref = fresh(outs[k])
			k++
		}
	}
	return c.bindNumbers(outputs)
}

// joinOutputs gives the outputs of a cond: tensors are those of then, and a number is known where both branches give it.
func (c *call) joinOutputs(then, els *function) []passed {
	if len(then.outputs) != len(els.outputs) {
		c.failf("one branch gives %d results, the other %d", len(then.outputs), len(els.outputs))
	}
	out := slices.Clone(then.outputs)
	for i, x := range els.outputs {
		switch {
		case (x.ref != nil) != (out[i].ref != nil) || x.none != out[i].none:
			c.unsupported("the branches' result %d is a tensor in one of them alone", i)
		case x.ref == nil && !x.none:
			out[i].unknown = out[i].unknown || x.unknown || x.number != out[i].number
		}
	}
	return out
}

// isTrue is x != 0.
func (c *call) isTrue(x *ir.Value) *ir.Value {
	if x.Type.DType == tensor.Bool {
		return x
	}
	return compare(c.b, op.NE, x, like(c.b, x, intScalar(0)))
}

func freshAll(values []*ir.Value) []*ref {
	var out []*ref
	for _, v := range values {
		out = append(out, fresh(v))
	}
	return out
}

// importWhile imports while_loop(cond_graph, body_graph, carried, additional). Carried tensors are replaced by the body's results;
// additional ones stay, unless the body writes to them in place, which makes them state too.
func importWhile(c *call) []*ref {
	carried, more := c.tensorsAt(2), c.passedAt(c.position(3))
	var args []passed
	for _, r := range carried {
		args = append(args, passed{ref: r})
	}
	args = append(args, more...)
	slots := c.slots(args)
	for i := range carried {
		slots[i].value = nil
	}
	body := c.tensorsOnly(c.importFunc(c.position(1), slots))
	if forceParams(body, slots) { // a weight that the body writes is state, not a weight
		body = c.importFunc(c.position(1), slots)
	}
	for i := range carried {
		if body.written(i) {
			c.unsupported("the loop's body writes to its state in place, wanted new tensors")
		}
	}
	cond := c.tensorsOnly(c.importFunc(c.position(0), slots))
	if cond.writes() {
		c.unsupported("the loop's condition writes to a tensor")
	}
	if len(cond.Results) != 1 || len(body.Results) != len(carried) {
		c.failf("the condition gives %d tensors and the body %d, wanted 1 and %d", len(cond.Results), len(body.Results), len(carried))
	}
	c.checkAliases(args, body.written)
	var targets []*ref
	var places []int
	for i := len(carried); i < len(args); i++ {
		if body.written(i) {
			targets, places = append(targets, args[i].ref), append(places, len(body.Results))
		}
		if slots[i].isParam() {
			body.Results = append(body.Results, body.stores[i].cur)
		}
	}
	inner := &ir.Builder{Loc: c.b.Loc, Body: cond.Body}
	cond.Results[0] = reshape(inner, cond.Results[0], nil)
	cond.Body = inner.Body
	outs := op.While.MakeAll(c.b, op.WhileAttr{Cond: cond.Func, Body: body.Func}, c.params(args, slots)...)
	for i, t := range targets {
		t.write(c.b, outs[places[i]])
	}
	return freshAll(outs[:len(carried)])
}

// forceParams makes parameters of the slots that f writes to, and reports whether there were any that were none.
func forceParams(f *function, slots []slot) (changed bool) {
	for i := range slots {
		if f.written(i) && slots[i].value != nil {
			slots[i].value, changed = nil, true
		}
	}
	return changed
}

// size counts the nodes in all entries.
func (l *lacking) size() (n int) {
	for _, e := range l.entries {
		n += e.count
	}
	return n
}
