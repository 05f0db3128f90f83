package reduce

import "tpuc/ir"

// edit is one way to make a module smaller. Fields say what goes; the zero edit only leaves out dead nodes.
type edit struct {
	truncate                bool
	body                    int       // with truncate: nodes that stay; what they leave unused are the results
	dropRoots               span      // of results and then updates
	cut                     span      // of nodes whose results become parameters
	bypass, by              *ir.Value // bypass is read from by
	lift                    span      // of weights that become parameters
	dropParams, dropWeights span      // of those, the unused ones
	noLocs, noShardings     bool
}

// span is a range of places, the second excluded.
type span struct{ from, to int }

func (s span) has(i int) bool { return s.from <= i && i < s.to }

// apply makes the edited copy of m's entry. Types, attributes with the functions that they name, and weight contents are shared.
func (e edit) apply(m *ir.Module) *ir.Module {
	c := &copier{edit: e, from: m, to: &ir.Module{Func: &ir.Func{Name: m.Func.Name}}, values: make(map[*ir.Value]*ir.Value)}
	c.noShardings = e.noShardings && len(m.Functions()) == 1
	if !c.noShardings {
		c.to.Mesh = m.Mesh
	}
	results, updates := c.roots()
	c.live(results, updates)
	c.calls()
	c.weights()
	c.params()
	c.nodes()
	for _, r := range results {
		c.to.Func.Results = append(c.to.Func.Results, c.values[c.source(r)])
	}
	for _, u := range updates {
		c.to.Func.Updates = append(c.to.Func.Updates, ir.Update{Target: c.values[u.Target], New: c.values[c.source(u.New)]})
	}
	return c.to
}

type copier struct {
	edit
	from, to *ir.Module
	values   map[*ir.Value]*ir.Value // old to new
	used     map[*ir.Value]bool      // old values that something live reads, and targets of updates
	cuts     map[*ir.Node]bool
	targets  map[*ir.Value]bool
	shared   map[*ir.Value]bool // weights that called functions read, which stay as they are
}

// source is the old value that v is read from.
func (c *copier) source(v *ir.Value) *ir.Value {
	if v == c.bypass {
		return c.by
	}
	return v
}

// roots are the old results and updates that stay.
func (c *copier) roots() (results []*ir.Value, updates []ir.Update) {
	f := c.from.Func
	if c.truncate {
		read := make(map[*ir.Value]bool)
		for _, n := range f.Body[:c.body] {
			for _, a := range n.Args {
				read[a] = true
			}
		}
		for _, n := range f.Body[:c.body] {
			for _, o := range n.Outs {
				if !read[o] {
					results = append(results, o)
				}
			}
		}
		return results, nil
	}
	for i, r := range f.Results {
		if !c.dropRoots.has(i) {
			results = append(results, r)
		}
	}
	for i, u := range f.Updates {
		if !c.dropRoots.has(len(f.Results) + i) {
			updates = append(updates, u)
		}
	}
	return results, updates
}

// live finds what the roots read, cut nodes not looked through.
func (c *copier) live(results []*ir.Value, updates []ir.Update) {
	c.used, c.cuts, c.targets = make(map[*ir.Value]bool), make(map[*ir.Node]bool), make(map[*ir.Value]bool)
	for i, n := range c.from.Func.Body {
		if c.cut.has(i) {
			c.cuts[n] = true
		}
	}
	for _, r := range results {
		c.used[c.source(r)] = true
	}
	for _, u := range updates {
		c.used[c.source(u.New)], c.used[u.Target], c.targets[u.Target] = true, true, true
	}
	for i := len(c.from.Func.Body) - 1; i >= 0; i-- {
		n := c.from.Func.Body[i]
		if c.cuts[n] || !c.reads(n) {
			continue
		}
		for _, a := range n.Args {
			c.used[c.source(a)] = true
		}
	}
}

// calls finds the weights that functions read.
func (c *copier) calls() {
	c.shared = make(map[*ir.Value]bool)
	read := func(v *ir.Value) {
		if v.Weight != nil {
			c.shared[v] = true
		}
	}
	for _, f := range c.from.Functions() {
		if f == c.from.Func {
			continue
		}
		for _, n := range f.Body {
			for _, a := range n.Args {
				read(a)
			}
		}
		f.Roots(func(v **ir.Value) { read(*v) })
	}
}

// reads reports a node with a result that is used.
func (c *copier) reads(n *ir.Node) bool {
	for _, o := range n.Outs {
		if c.used[o] {
			return true
		}
	}
	return false
}

func (c *copier) weights() {
	for i, w := range c.from.Weights {
		if !c.shared[w.Value] && (!c.used[w.Value] && c.dropWeights.has(i) || c.lift.has(i) && !c.targets[w.Value]) {
			continue
		}
		if c.shared[w.Value] {
			c.values[w.Value] = w.Value
			c.to.Weights = append(c.to.Weights, w)
			continue
		}
		n := *w
		n.Value = c.copy(w.Value)
		n.Value.Weight = &n
		c.to.Weights = append(c.to.Weights, &n)
	}
}

// params copies parameters, and makes new ones of lifted weights and of the results of cut nodes.
func (c *copier) params() {
	add := func(v *ir.Value, name string) {
		p := c.copy(v)
		p.Name, p.Def, p.Weight, p.Index = name, nil, nil, len(c.to.Func.Params)
		c.to.Func.Params = append(c.to.Func.Params, p)
	}
	for i, p := range c.from.Func.Params {
		if c.used[p] || !c.dropParams.has(i) {
			add(p, p.Name)
		}
	}
	for i, w := range c.from.Weights {
		if c.lift.has(i) && c.used[w.Value] && !c.targets[w.Value] && !c.shared[w.Value] {
			add(w.Value, w.Sym)
		}
	}
	for _, n := range c.from.Func.Body {
		for _, o := range n.Outs {
			if c.cuts[n] && c.used[o] {
				add(o, "") // not the operator's name, which a command may search for
			}
		}
	}
}

func (c *copier) nodes() {
	for _, n := range c.from.Func.Body {
		if c.cuts[n] || !c.reads(n) {
			continue
		}
		k := &ir.Node{Op: n.Op, Attr: n.Attr, Loc: n.Loc}
		if c.noLocs {
			k.Loc = nil
		}
		for _, a := range n.Args {
			k.Args = append(k.Args, c.values[c.source(a)])
		}
		for _, o := range n.Outs {
			v := c.copy(o)
			v.Def = k
			k.Outs = append(k.Outs, v)
		}
		c.to.Func.Body = append(c.to.Func.Body, k)
	}
}

func (c *copier) copy(v *ir.Value) *ir.Value {
	n := *v
	if c.noShardings {
		n.Sharding = nil
	}
	c.values[v] = &n
	return &n
}
