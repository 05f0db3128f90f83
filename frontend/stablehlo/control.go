package stablehlo

import (
	"fmt"
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// controlRules make functions of regions. What a region reads from around it becomes an argument of its function; literals are repeated
// inside instead.
var controlRules = map[string]rule{
	"stablehlo.while": while,
	"stablehlo.if":    ifRule,
	"stablehlo.case":  caseRule,
}

// free lists the values that regions read from around them, in order of first use.
func free(regions ...*region) (out []operand) {
	seen, defined := make(map[string]bool), make(map[string]int)
	var visit func(r *region)
	visit = func(r *region) {
		for _, p := range r.params {
			defined[p.name]++
		}
		for _, o := range r.body {
			for _, a := range o.args {
				if defined[a.name] == 0 && !seen[a.name] {
					seen[a.name] = true
					out = append(out, a)
				}
			}
			for _, inner := range o.regions {
				visit(inner)
			}
			for _, name := range o.results {
				defined[name]++
			}
		}
		for _, p := range r.params {
			defined[p.name]--
		}
		for _, o := range r.body {
			for _, name := range o.results {
				defined[name]--
			}
		}
	}
	for _, r := range regions {
		visit(r)
	}
	return out
}

// captured are the values that regions read from around them, in order of first use: tensors become arguments, literals are repeated.
type captured struct {
	names        []string
	values       []*ir.Value
	literalNames []string
	literals     []*ir.Value
}

// capture resolves what the regions read.
func (c *call) capture(regions ...*region) captured {
	var k captured
	whole := true
	for _, a := range free(regions...) {
		v := c.p.value(c.s, a)
		switch {
		case v == nil:
			whole = false
		case isLiteral(v):
			k.literalNames, k.literals = append(k.literalNames, a.name), append(k.literals, v)
		default:
			k.names, k.values = append(k.names, a.name), append(k.values, v)
		}
	}
	if !whole {
		panic(abandoned{})
	}
	return k
}

// isLiteral reports a small literal, or one element repeated.
func isLiteral(v *ir.Value) bool {
	if v.Def == nil {
		return false
	}
	if op.Broadcast.Is(v.Def) {
		v = v.Def.Args[0]
	}
	return v.Def != nil && op.Constant.Is(v.Def) && v.Type.Elements() <= 16
}

// repeatLiteral makes the literal again in b.
func repeatLiteral(b *ir.Builder, v *ir.Value) *ir.Value {
	if op.Broadcast.Is(v.Def) {
		x := op.Constant.Make(b, op.Constant.Attr(v.Def.Args[0].Def))
		return op.Broadcast.Make(b, op.Broadcast.Attr(v.Def), x)
	}
	return op.Constant.Make(b, op.Constant.Attr(v.Def))
}

// function makes a function of a region: its parameters, then the captured values.
func (c *call) function(name string, r *region, k captured) *ir.Func {
	c.spend(1 + len(k.names))
	f := &ir.Func{Name: name}
	s := newScope(nil)
	b := &ir.Builder{Loc: c.b.Loc}
	for _, p := range r.params {
		if p.typ.bad != "" {
			c.unsupported("a parameter of a region is %s, wanted %s", clip(p.typ.text), p.typ.bad)
		}
		s.set(p.name, f.AddParam("", p.typ.Type))
	}
	for i, name := range k.names {
		s.set(name, f.AddParam("", k.values[i].Type))
	}
	for i, name := range k.literalNames {
		s.set(name, repeatLiteral(b, k.literals[i]))
	}
	f.Results = c.p.inline(b, s, r)
	f.Body = b.Body
	if f.Results == nil {
		panic(abandoned{})
	}
	return f
}

// while carries captured values as state that the body returns as it is.
func while(c *call) []*ir.Value {
	n := len(c.args)
	cond, body := c.region(0, n), c.region(1, n)
	for i := range cond.params { // the pretty form may leave the types out
		if cond.params[i].typ.text == "" {
			cond.params[i].typ = typ{Type: c.args[i].Type}
		}
	}
	k := c.capture(cond, body)
	more, step := c.function("cond", cond, k), c.function("body", body, k)
	step.Results = append(slices.Clone(step.Results), step.Params[n:]...)
	args := append(slices.Clone(c.args), k.values...)
	if len(args) == 0 {
		c.unsupported("a loop without state, wanted one or more values")
	}
	return op.While.MakeAll(c.b, op.WhileAttr{Cond: more, Body: step}, args...)[:n]
}

// ifRule chooses between two regions without parameters.
func ifRule(c *call) []*ir.Value {
	c.arity(1)
	yes, no := c.region(0, 0), c.region(1, 0)
	k := c.capture(yes, no)
	return c.cond(c.args[0], c.function("then", yes, k), c.function("else", no, k), k.values)
}

// cond makes the operator, or nothing where there is no result.
func (c *call) cond(pred *ir.Value, f, g *ir.Func, args []*ir.Value) []*ir.Value {
	if len(f.Results) == 0 {
		return []*ir.Value{}
	}
	return op.Cond.MakeAll(c.b, op.CondAttr{Then: f, Else: g}, append([]*ir.Value{pred}, args...)...)
}

// caseRule chooses between regions by an index; one out of range takes the last. More than two become a tree of choices.
func caseRule(c *call) []*ir.Value {
	c.arity(1)
	regions := c.o.regions
	index := c.args[0]
	if len(regions) == 0 || index.Type.Rank() != 0 || !index.Type.DType.IsInt() {
		c.fail("index %s and %d regions, wanted a scalar integer and one region or more", index.Type, len(regions))
	}
	k := c.capture(regions...)
	branches := make([]*ir.Func, len(regions))
	for i := range regions {
		branches[i] = c.function(fmt.Sprintf("branch_%d", i), c.region(i, 0), k)
	}
	switch last := int64(len(branches) - 1); {
	case last == 0:
		return c.b.Inline(branches[0], k.values...)
	case last == 1:
		if n := index.Def; n != nil && op.Convert.Is(n) && n.Args[0].Type.DType == tensor.Bool {
			return c.cond(n.Args[0], branches[1], branches[0], k.values)
		}
		zero := op.Splat(c.b, index.Type, 0)
		first := op.Compare.Make(c.b, op.CompareAttr{Dir: op.EQ}, index, zero)
		return c.cond(first, branches[0], branches[1], k.values)
	default:
		lo, hi := op.Splat(c.b, index.Type, 0), c.integer(c.b, index.Type.DType, last)
		bad := op.Or.Make(c.b, op.Compare.Make(c.b, op.CompareAttr{Dir: op.LT}, index, lo), op.Compare.Make(c.b, op.CompareAttr{Dir: op.GT}, index, hi))
		index = op.Select.Make(c.b, bad, hi, index)
		f := c.tree(branches, 0, index.Type, k)
		return c.b.Inline(f, append([]*ir.Value{index}, k.values...)...)
	}
}

func (c *call) integer(b *ir.Builder, d tensor.DType, v int64) *ir.Value {
	return op.Constant.Make(b, op.ConstantAttr{Value: tensor.ScalarInt(d, v)})
}

// tree is a function of the index and the captured values that calls one of the branches, which begin with number from.
func (c *call) tree(branches []*ir.Func, from int64, index tensor.Type, k captured) *ir.Func {
	c.spend(1 + len(k.values))
	f := &ir.Func{Name: "choose"}
	b := &ir.Builder{Loc: c.b.Loc}
	at := f.AddParam("", index)
	args := []*ir.Value{at}
	for _, v := range k.values {
		args = append(args, f.AddParam("", v.Type))
	}
	if len(branches) == 1 {
		f.Results = b.Inline(branches[0], args[1:]...)
	} else {
		half := len(branches) / 2
		pred := op.Compare.Make(b, op.CompareAttr{Dir: op.LT}, at, c.integer(b, index.DType, from+int64(half)))
		f.Results = op.Cond.MakeAll(b, op.CondAttr{Then: c.tree(branches[:half], from, index, k), Else: c.tree(branches[half:], from+int64(half), index, k)},
			append([]*ir.Value{pred}, args...)...)
	}
	f.Body = b.Body
	return f
}
