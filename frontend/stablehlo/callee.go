package stablehlo

import (
	"strings"

	"tpuc/ir"
)

// callRules call functions, which are written out in the caller, and custom code.
var callRules = map[string]rule{
	"func.call":             callFunction,
	"stablehlo.composite":   composite,
	"stablehlo.custom_call": customCall,

	"sdy.sharding_constraint": identity,
	"sdy.reshard":             identity,
}

// tupleRules go without the check of result types: tuples are lists of values here and nothing in the IR.
var tupleRules = map[string]rule{
	"stablehlo.tuple":             makeTuple,
	"stablehlo.get_tuple_element": tupleElement,
}

func callFunction(c *call) []*ir.Value { return c.inlineFunction(c.o.attrs.word("callee")) }

// inlineFunction writes out a function's body with the operands as its parameters.
func (c *call) inlineFunction(name string) []*ir.Value {
	f := c.p.funcs[name]
	if f == nil {
		c.fail("function @%s is not defined, wanted one that is", clip(name))
	}
	if f.busy {
		c.fail("function @%s calls itself, wanted no recursion", name)
	}
	f.busy = true
	defer func() { f.busy = false }()
	if len(f.params) != len(c.o.args) {
		c.fail("%d operands, wanted %d as function @%s", len(c.o.args), len(f.params), name)
	}
	s := newScope(nil)
	args := c.args
	for i, p := range f.params {
		types := p.typ.elements
		if types == nil {
			types = []typ{p.typ}
		}
		if len(types) > len(args) {
			c.fail("operand %d has %d elements, wanted %d as function @%s", i, len(args), len(types), name)
		}
		for j, t := range types {
			if t.bad != "" || !t.Equal(args[j].Type) {
				c.fail("operand %d is %s, wanted %s as function @%s", i, args[j].Type, clip(t.text), name)
			}
		}
		if p.typ.elements == nil {
			s.set(p.name, args[0])
		} else {
			s.tuples[p.name] = args[:len(types)]
		}
		args = args[len(types):]
	}
	loc := c.b.Loc
	out := c.p.inline(c.b, s, f.body)
	c.b.Loc = loc
	if out == nil {
		panic(abandoned{})
	}
	if out = append([]*ir.Value{}, out...); len(out) != len(elementsOf(f.results)) {
		c.fail("function @%s returns %d values, wanted %d as it says", name, len(out), len(elementsOf(f.results)))
	}
	return out
}

// composite is its decomposition, for the name is a hint. But an operation of CHLO, which an export for portable artifacts wraps so, is itself where the IR
// has a word for it.
func composite(c *call) []*ir.Value {
	const wrapped = 1 // the version of what is wrapped so
	if name := c.o.attrs.word("name"); strings.HasPrefix(name, "chlo.") && c.int("version", 0) == wrapped {
		if out := c.unwrapped(name); out != nil {
			return out
		}
	}
	return c.inlineFunction(c.o.attrs.word("decomposition"))
}

// unwrapped applies the rule of the operation that a composite is named after; nothing where there is none, or none for this form.
func (c *call) unwrapped(name string) []*ir.Value {
	var attrs dict
	if a, ok := c.o.attrs.find("composite_attributes"); ok {
		attrs = a.Dict.entries()
	}
	return c.as(name, attrs)
}

// as applies the rule of the operation name with other attributes; nothing where there is none, or none for this form.
func (c *call) as(name string, attrs dict) []*ir.Value {
	f := c.p.rules[name]
	if f == nil {
		return nil
	}
	o, before := c.o, len(c.b.Body)
	c.o = &operation{name: name, at: o.at, line: o.line, args: o.args, in: o.in, out: o.out, attrs: attrs}
	out := f(c)
	c.o = o
	if out == nil {
		c.b.Body = c.b.Body[:before]
	}
	return out
}

// identity leaves shardings out: the program is for one device.
func identity(c *call) []*ir.Value {
	c.arity(1)
	c.p.note("shardings are left out, the program is compiled for one device")
	return one(c.args[0])
}

func makeTuple(c *call) []*ir.Value {
	out := []*ir.Value{}
	for _, a := range c.o.args {
		v := c.p.value(c.s, a)
		if v == nil {
			return nil
		}
		out = append(out, v)
	}
	c.tuple = out
	return nil
}

func tupleElement(c *call) []*ir.Value {
	if len(c.o.args) != 1 {
		c.fail("%d operands, wanted 1", len(c.o.args))
	}
	t, ok := c.s.tuple(c.o.args[0].name)
	if !ok {
		if v := c.p.value(c.s, c.o.args[0]); v == nil {
			panic(abandoned{}) // what would have made it failed
		}
		c.fail("operand 0 is no tuple, wanted one")
	}
	i := c.int("index", 0)
	if i < 0 || i >= int64(len(t)) {
		c.fail("index is %d, wanted one of %d elements", i, len(t))
	}
	return one(t[i])
}
