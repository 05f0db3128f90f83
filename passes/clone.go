package passes

import (
	"slices"

	"tpuc/ir"
)

// clone copies everything that a pass may change. Attributes but for functions, types, locations and weight contents are never changed and are shared.
func clone(m *ir.Module) *ir.Module {
	out := &ir.Module{Mesh: m.Mesh}
	values := make(map[*ir.Value]*ir.Value)
	copyValue := func(v *ir.Value) *ir.Value {
		c := *v
		values[v] = &c
		return &c
	}
	for _, w := range m.Weights {
		c := *w
		c.Value = copyValue(w.Value)
		c.Value.Weight = &c
		out.Weights = append(out.Weights, &c)
	}
	funcs := make(map[*ir.Func]*ir.Func)
	for _, f := range m.Functions() { // callees first
		out.Func = cloneFunc(f, values, copyValue, funcs)
		funcs[f] = out.Func
	}
	return out
}

// cloneFunc copies f. values maps the module's weights and gets f's values; funcs maps the functions that f calls.
func cloneFunc(f *ir.Func, values map[*ir.Value]*ir.Value, copyValue func(*ir.Value) *ir.Value, funcs map[*ir.Func]*ir.Func) *ir.Func {
	out := &ir.Func{Name: f.Name}
	for _, p := range f.Params {
		out.Params = append(out.Params, copyValue(p))
	}
	for _, n := range f.Body {
		c := *n
		c.MapFuncs(func(g *ir.Func) *ir.Func { return funcs[g] })
		c.Args = slices.Clone(n.Args)
		for i, a := range c.Args {
			c.Args[i] = values[a]
		}
		c.Outs = make([]*ir.Value, len(n.Outs))
		for i, o := range n.Outs {
			c.Outs[i] = copyValue(o)
			c.Outs[i].Def = &c
		}
		out.Body = append(out.Body, &c)
	}
	for _, r := range f.Results {
		out.Results = append(out.Results, values[r])
	}
	for _, u := range f.Updates {
		out.Updates = append(out.Updates, ir.Update{Target: values[u.Target], New: values[u.New]})
	}
	return out
}
