package stablehlo

import (
	"math"
	"strings"

	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

var negInf = math.Inf(-1)

// comparator recognises the region of a sort that orders by the first keys. Floats are in the order of the IR, NaN above all else and zeros of both signs
// equal, or in their total order. A plain comparison, which says nothing of NaN, is the IR's.
type comparator struct {
	c      *call
	r      *region
	defs   map[string]*operation
	params map[string]int
}

func newComparator(c *call, r *region) *comparator {
	m := &comparator{c: c, r: r, defs: make(map[string]*operation), params: make(map[string]int)}
	for i, p := range r.params {
		m.params[p.name] = i
	}
	for _, o := range r.body {
		if len(o.results) == 1 {
			m.defs[o.results[0]] = o
		}
	}
	return m
}

// order is what a comparator does.
type order struct {
	descending bool
	keys       int64
	total      []bool // of each key: floats are in their total order
}

// less is the comparison of the elements of operand key.
type less struct {
	key        int
	descending bool
	equal      bool // the comparison is EQ
	total      bool // floats are compared in their total order
}

// order accepts a comparison of the first operand, or a lexicographic one of several.
func (m *comparator) order() (order, bool) {
	if len(m.r.body) == 0 {
		return order{}, false
	}
	ret := m.r.body[len(m.r.body)-1]
	if ret.name != "stablehlo.return" && ret.name != "func.return" || len(ret.args) != 1 {
		return order{}, false
	}
	key := 0
	var out order
	name := ret.args[0].name
	// less(0) or equal(0) and (less(1) or equal(1) and ...)
	for {
		if l, ok := m.less(m.def(name)); ok && !l.equal && l.key == key && (key == 0 || l.descending == out.descending) {
			out.descending, out.keys, out.total = l.descending, int64(key)+1, append(out.total, l.total)
			return out, true
		}
		either := m.named(name, "stablehlo.or", 2)
		if either == nil {
			return order{}, false
		}
		l, ok := m.less(m.def(either.args[0].name))
		rest := m.named(either.args[1].name, "stablehlo.and", 2)
		if !ok || l.equal || l.key != key || key > 0 && l.descending != out.descending || rest == nil {
			return order{}, false
		}
		eq, ok := m.less(m.def(rest.args[0].name))
		if !ok || !eq.equal || eq.key != key || eq.total != l.total {
			return order{}, false
		}
		out.descending, out.total = l.descending, append(out.total, l.total)
		name = rest.args[1].name
		key++
	}
}

// def is the operation of the region that defines a value.
func (m *comparator) def(name string) *operation { return m.defs[name] }

// named is def where it is that operation of so many operands, otherwise nil.
func (m *comparator) named(name, operation string, operands int) *operation {
	if d := m.def(name); d != nil && d.name == operation && len(d.args) == operands {
		return d
	}
	return nil
}

// less reads a comparison of both parameters of one operand, which may have made NaNs and zeros alike.
func (m *comparator) less(o *operation) (less, bool) {
	if o == nil || o.name != "stablehlo.compare" || len(o.args) != 2 {
		return less{}, false
	}
	dir := directions[o.attrs.word("comparison_direction")]
	if dir != op.LT && dir != op.GT && dir != op.EQ {
		return less{}, false
	}
	x, y := m.param(o.args[0].name), m.param(o.args[1].name)
	key := min(x, y) / 2
	if x < 0 || y < 0 || x == y || max(x, y)/2 != key {
		return less{}, false
	}
	d := m.r.params[2*key].typ.DType
	if d.IsComplex() {
		return less{}, false
	}
	out := less{key: key, descending: (dir == op.GT) != (x > y), equal: dir == op.EQ}
	if d.IsFloat() && !(m.alike(o.args[0].name) && m.alike(o.args[1].name)) {
		if !m.plain(o.args[0].name) || !m.plain(o.args[1].name) {
			return less{}, false
		}
		out.total = o.attrs.word("compare_type") == "TOTALORDER"
	}
	return out, true
}

// param is the place of the parameter behind a value, looking through what makes NaNs and zeros alike; -1 for none.
func (m *comparator) param(name string) int {
	for range 3 {
		if i, ok := m.params[name]; ok {
			return i
		}
		d := m.named(name, "stablehlo.select", 3)
		if d == nil {
			return -1
		}
		name = d.args[2].name
	}
	return -1
}

// plain reports a parameter as it is.
func (m *comparator) plain(name string) bool {
	_, ok := m.params[name]
	return ok
}

// alike reports select(x != x, NaN, select(x == 0, 0, x)).
func (m *comparator) alike(name string) bool {
	nan := m.named(name, "stablehlo.select", 3)
	if nan == nil {
		return false
	}
	zero := m.named(nan.args[2].name, "stablehlo.select", 3)
	if zero == nil {
		return false
	}
	x := zero.args[2].name
	isNaN, isZero := m.named(nan.args[0].name, "stablehlo.compare", 2), m.named(zero.args[0].name, "stablehlo.compare", 2)
	return isNaN != nil && isNaN.attrs.word("comparison_direction") == "NE" && isNaN.args[0].name == x && isNaN.args[1].name == x &&
		isZero != nil && isZero.attrs.word("comparison_direction") == "EQ" && isZero.args[0].name == x &&
		m.is(isZero.args[1].name, func(v float64) bool { return v == 0 }) &&
		m.is(zero.args[1].name, func(v float64) bool { return v == 0 }) && m.is(nan.args[1].name, math.IsNaN)
}

// is reports a scalar literal, inside the region or around it, with a property.
func (m *comparator) is(name string, f func(v float64) bool) bool {
	var x *tensor.Tensor
	if d := m.def(name); d != nil {
		a, ok := d.attrs.find("value")
		if ok && d.name == "stablehlo.constant" && a.Angle != nil && strings.HasPrefix(*a.Angle, "dense<") && len(d.out) == 1 && d.out[0].bad == "" {
			x, _ = denseLiteral((*a.Angle)[len("dense<"):len(*a.Angle)-1], d.out[0].Type.WithDims())
		}
	} else if v, ok := m.c.s.get(name); ok && v != nil {
		x = constantOf(v)
	}
	return x != nil && x.DType.IsFloat() && x.Elements() == 1 && f(x.Floats()[0])
}
