package passes

import (
	"slices"

	"tpuc/ir"
)

// clone copies everything that a pass may change. Attributes, types, locations and weight contents are never changed and are shared.
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
	f := &ir.Func{Name: m.Func.Name}
	out.Func = f
	for _, p := range m.Func.Params {
		f.Params = append(f.Params, copyValue(p))
	}
	for _, n := range m.Func.Body {
		c := *n
		c.Args = slices.Clone(n.Args)
		for i, a := range c.Args {
			c.Args[i] = values[a]
		}
		c.Outs = make([]*ir.Value, len(n.Outs))
		for i, o := range n.Outs {
			c.Outs[i] = copyValue(o)
			c.Outs[i].Def = &c
		}
		f.Body = append(f.Body, &c)
	}
	for _, r := range m.Func.Results {
		f.Results = append(f.Results, values[r])
	}
	for _, u := range m.Func.Updates {
		f.Updates = append(f.Updates, ir.Update{Target: values[u.Target], New: values[u.New]})
	}
	return out
}
