package pt2

import (
	"math"

	"tpuc/ir/tensor"
)

// symRules compute with sizes, whose values are known once the symbols are bound. They give no tensors.
var symRules = map[string]rule{
	"sym_size.int":        number1(func(c *call) scalar { t := c.ref("self"); return c.dimOf(t.typ.Dims) }),
	"sym_stride.int":      number1(func(c *call) scalar { t := c.ref("self"); return c.dimOf(t.strides) }),
	"item":                item,
	"_local_scalar_dense": item,
	"sym_numel":           number1(func(c *call) scalar { return intScalar(c.ref("self").typ.Elements()) }),
	"sym_storage_offset":  func(c *call) []*ref { c.im.markUnknown(c.node); return nil }, // occurs in assertions
	"_operator.add":       symBinary(func(a, b num) (num, error) { return exprFuncs["Add"].eval([]num{a, b}) }),
	"_operator.sub": symBinary(func(a, b num) (num, error) {
		return exprFuncs["Add"].eval([]num{a, {i: -b.i, f: -b.f, float: b.float}})
	}),
	"_operator.mul":      symBinary(func(a, b num) (num, error) { return exprFuncs["Mul"].eval([]num{a, b}) }),
	"_operator.floordiv": symBinary(func(a, b num) (num, error) { return exprFuncs["FloorDiv"].eval([]num{a, b}) }),
	"_operator.truediv":  symBinary(func(a, b num) (num, error) { return exprFuncs["IntTrueDiv"].eval([]num{a, b}) }),
	"_operator.mod":      symBinary(func(a, b num) (num, error) { return exprFuncs["Mod"].eval([]num{a, b}) }),
	"_operator.pow":      symBinary(func(a, b num) (num, error) { return exprFuncs["Pow"].eval([]num{a, b}) }),
	"_operator.neg":      symUnary(func(a num) (num, error) { return num{i: -a.i, f: -a.f, float: a.float}, nil }),
	"_operator.eq":       symBool("Equality"),
	"_operator.ne":       symBool("Unequality"),
	"_operator.lt":       symBool("StrictLessThan"),
	"_operator.le":       symBool("LessThan"),
	"_operator.gt":       symBool("StrictGreaterThan"),
	"_operator.ge":       symBool("GreaterThan"),
	"_operator.and_":     logic(func(a, b bool) bool { return a && b }),
	"_operator.or_":      logic(func(a, b bool) bool { return a || b }),
	"torch.sym_max":      symBinary(func(a, b num) (num, error) { return exprFuncs["Max"].eval([]num{a, b}) }),
	"torch.sym_min":      symBinary(func(a, b num) (num, error) { return exprFuncs["Min"].eval([]num{a, b}) }),
	"torch.sym_float":    symUnary(func(a num) (num, error) { return num{f: a.value(), float: true}, nil }),
	"torch.sym_int":      symUnary(func(a num) (num, error) { return exprFuncs["TruncToInt"].eval([]num{a}) }),
	"torch.sym_not":      number1(func(c *call) scalar { return boolScalar(c.symArg(0).float() == 0) }),
	"torch.sym_ite":      number1(func(c *call) scalar { return c.symArg(1 + btoi(c.symArg(0).float() == 0)) }),
	"torch._sym_sqrt":    symUnary(func(a num) (num, error) { return num{f: math.Sqrt(a.value()), float: true}, nil }),
	"math.ceil":          symUnary(func(a num) (num, error) { return exprFuncs["CeilToInt"].eval([]num{a}) }),
	"math.floor":         symUnary(func(a num) (num, error) { return exprFuncs["FloorToInt"].eval([]num{a}) }),
	"math.trunc":         symUnary(func(a num) (num, error) { return exprFuncs["TruncToInt"].eval([]num{a}) }),
}

// item is a number of a tensor. It is known where the tensor is a constant; otherwise it depends on the data, and may go into assertions alone.
func item(c *call) []*ref {
	x := c.known(c.val("self"))
	if x == nil || x.Elements() != 1 || x.DType.IsComplex() {
		if !c.openItem() {
			c.im.markUnknown(c.node)
			if v := c.val("self"); v.Type.Elements() == 1 && !v.Type.DType.IsComplex() && len(c.node.Outputs) == 1 {
				c.node.Outputs[0].visit(func(string) {}, func(name string) { c.im.computed[name] = reshape(c.b, v, nil) })
			}
		}
		return nil
	}
	return number1(func(c *call) scalar {
		switch d := x.DType; {
		case d == tensor.Bool:
			return boolScalar(x.Ints()[0] != 0)
		case d.IsFloat():
			return floatScalar(x.Floats()[0])
		}
		return intScalar(x.Ints()[0])
	})(c)
}

func boolScalar(v bool) scalar { return scalar{kind: kindBool, i: btoi64(v)} }

// dimOf is the entry of dims that argument dim names.
func (c *call) dimOf(dims []int64) scalar {
	d := c.axis("dim", len(dims))
	if d >= len(dims) {
		c.failf("self has rank 0, wanted 1 or more")
	}
	return intScalar(dims[d])
}

// symArg is a positional argument of an operator without a schema.
func (c *call) symArg(i int) scalar {
	if i >= len(c.node.Inputs) {
		c.failf("%d arguments, wanted more than %d", len(c.node.Inputs), i)
	}
	in := c.node.Inputs[i]
	return c.number(in.Name, in.Arg)
}

// number1 is a rule whose one result is a number.
func number1(f func(c *call) scalar) rule {
	return func(c *call) []*ref {
		s := f(c)
		for i := range c.node.Outputs {
			o := &c.node.Outputs[i]
			for _, r := range []*symRef{o.SymInt, o.SymFloat, o.SymBool} {
				if r != nil && r.Name != nil {
					c.im.scalars[*r.Name] = s
					c.im.bindNumber(*r.Name, s)
				}
			}
		}
		return nil
	}
}

// openItem takes a number of a tensor for a size where the archive records how large it can be. It reports whether it does.
func (c *call) openItem() bool {
	v := c.val("self")
	if len(c.node.Outputs) != 1 || c.node.Outputs[0].SymInt == nil || c.node.Outputs[0].SymInt.Name == nil || !v.Type.DType.IsInt() || v.Type.Elements() != 1 {
		return false
	}
	sym := c.im.symbolOf(*c.node.Outputs[0].SymInt.Name)
	if _, bound := c.im.bound[sym]; bound || sym == "" {
		return false
	}
	r, ok := c.im.p.ep.RangeConstraints[sym]
	if !ok || r.Max == nil || *r.Max < 0 || *r.Max > maxViewed || r.Min == nil || *r.Min < 0 {
		return false
	}
	c.im.bound[sym] = max(*r.Max, minOpen)
	c.im.extents.declare(sym, c.cast(reshape(c.b, v, nil), tensor.I64), c)
	return true
}

// bindNumber gives the symbol of a number that depends on the data its value.
func (im *importer) bindNumber(name string, s scalar) {
	if v, ok := im.g.SymIntValues[name]; ok && v.Expr != nil {
		if e, err := im.p.parse(v.Expr.Expr); err == nil && e.fn == "Symbol" {
			if _, ok := im.bound[e.name]; !ok {
				im.bound[e.name] = s.i
			}
		}
	}
}

// num is a real number for an expression.
func (s scalar) num() num { return num{i: s.i, f: s.float(), float: s.kind >= kindFloat} }

// fromNum ends the rule where an expression has no value.
func (c *call) fromNum(n num, err error) scalar {
	switch {
	case err != nil:
		c.failf("%v", err)
	case n.float:
		return floatScalar(n.f)
	}
	return intScalar(n.i)
}

// symUnary computes with one number.
func symUnary(f func(a num) (num, error)) rule {
	return number1(func(c *call) scalar { return c.fromNum(f(c.symArg(0).num())) })
}

// symBinary computes with two numbers.
func symBinary(f func(a, b num) (num, error)) rule {
	return number1(func(c *call) scalar { return c.fromNum(f(c.symArg(0).num(), c.symArg(1).num())) })
}

// symBool compares two numbers.
func symBool(name string) rule {
	return number1(func(c *call) scalar {
		n, err := exprFuncs[name].eval([]num{c.symArg(0).num(), c.symArg(1).num()})
		return boolScalar(c.fromNum(n, err).i != 0)
	})
}

// logic combines two truth values.
func logic(f func(a, b bool) bool) rule {
	return number1(func(c *call) scalar { return boolScalar(f(c.symArg(0).float() != 0, c.symArg(1).float() != 0)) })
}

// checkRules are assertions. What is known while compiling is checked here; what depends on the data is not.
var checkRules = map[string]rule{
	"_assert_tensor_metadata":      assertMetadata,
	"_assert_scalar":               assertScalar,
	"_assert_async.msg":            nothing,
	"_assert_async":                nothing,
	"sym_constrain_range":          nothing,
	"sym_constrain_range_for_size": nothing,
	"_functional_assert_async.msg": nothing,
}

// assertMetadata compares a tensor's dtype and size with the ones that the program was exported for.
func assertMetadata(c *call) []*ref {
	x := c.ref("a")
	if d := c.dtype("dtype", x.typ.DType); d != x.typ.DType {
		c.failf("the tensor is %s, the program asserts %s", x.typ, d)
	}
	if c.has("size") {
		size := c.ints("size")
		if t := x.typ.WithDims(size...); !t.Equal(x.typ) {
			c.failf("the tensor is %s, the program asserts %s", x.typ, t)
		}
	}
	return nil
}

// assertScalar checks an assertion on sizes while importing.
func assertScalar(c *call) []*ref {
	if s := c.scalar("self"); s.float() == 0 {
		c.failf("the program asserts %q, which does not hold for these sizes", clip(c.str("assert_msg")))
	}
	return nil
}
