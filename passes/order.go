package passes

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"

	"tpuc/ir"
	"tpuc/ir/text"
)

// order puts every body into the order in which a walk from the results meets its nodes, arguments first, so that a program's text does not
// depend on the order in which a model wrote independent statements. Nodes with effects keep their order among themselves, and what nothing
// needs comes last.
//
// Updates follow the results: those of parameters by place, then those of weights in the order in which the walk met these. A target that
// nothing has read so far has no place yet; of such the one goes first whose new contents have the smaller structural digest. Where
// two digests are equal the module's own order decides, which can cost a cache hit and nothing else.
var order = Pass{
	Name: "order", Doc: "Puts nodes into an order that the computation alone decides.",
	Run: func(c *Context, m *ir.Module) error {
		met := make(map[*ir.Weight]int) // by all functions so far
		for _, f := range m.Functions() {
			o := &orderer{c: c, weights: met, placed: make(map[*ir.Node]bool, len(f.Body)), before: make(map[*ir.Node]*ir.Node)}
			f.Body = o.function(f)
		}
		return nil
	},
}

// orderer is order within a function.
type orderer struct {
	c       *Context
	weights map[*ir.Weight]int // those that were met, by place
	placed  map[*ir.Node]bool
	before  map[*ir.Node]*ir.Node // of a node with an effect: the one before it
	body    []*ir.Node
	digests map[*ir.Value][sha256.Size]byte
}

func (o *orderer) function(f *ir.Func) []*ir.Node {
	o.body = make([]*ir.Node, 0, len(f.Body))
	var last *ir.Node
	for _, n := range f.Body {
		if n.HasEffect() {
			if last != nil {
				o.before[n] = last
			}
			last = n
		}
	}
	for _, r := range f.Results {
		o.value(r)
	}
	for rest := slices.Clone(f.Updates); len(rest) > 0; {
		i := o.first(rest)
		o.value(rest[i].Target)
		o.value(rest[i].New)
		rest = slices.Delete(rest, i, i+1)
	}
	if last != nil {
		o.node(last)
	}
	for _, n := range f.Body { // what nothing needs, for dce
		o.node(n)
	}
	return o.body
}

// value places what makes v.
func (o *orderer) value(v *ir.Value) {
	if v.Weight != nil {
		if _, ok := o.weights[v.Weight]; !ok {
			o.weights[v.Weight] = len(o.weights)
		}
	}
	if v.Def != nil {
		o.node(v.Def)
	}
}

// node places n after its arguments, with a stack of its own: a model's chains are long.
func (o *orderer) node(n *ir.Node) {
	type frame struct {
		n    *ir.Node
		next int // the argument to look at; -1 is the effect before
	}
	stack := []frame{{n, -1}}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		switch {
		case o.placed[top.n]:
			stack = stack[:len(stack)-1]
		case top.next < 0:
			top.next = 0
			if b := o.before[top.n]; b != nil {
				stack = append(stack, frame{b, -1})
			}
		case top.next < len(top.n.Args):
			a := top.n.Args[top.next]
			top.next++
			if a.Def != nil {
				stack = append(stack, frame{a.Def, -1})
			} else {
				o.value(a)
			}
		default:
			o.c.At(top.n)
			o.placed[top.n] = true
			o.body = append(o.body, top.n)
		}
	}
}

// first is the place of the update that is next.
func (o *orderer) first(updates []ir.Update) int {
	best := 0
	for i := range updates[1:] {
		if o.less(updates[i+1], updates[best]) {
			best = i + 1
		}
	}
	return best
}

func (o *orderer) less(a, b ir.Update) bool {
	x, y := o.rank(a.Target), o.rank(b.Target)
	if x != y || x != unmet {
		return x < y
	}
	p, q := o.digest(a.New), o.digest(b.New)
	return slices.Compare(p[:], q[:]) < 0
}

// unmet is the rank of a target that nothing has read.
const unmet = math.MaxInt

func (o *orderer) rank(v *ir.Value) int {
	if v.Weight == nil {
		return v.Index - unmet // before all weights
	}
	if i, ok := o.weights[v.Weight]; ok {
		return i
	}
	return unmet
}

// digest is of what v computes, with weights told apart as far as the walk had met them when it was first asked.
func (o *orderer) digest(v *ir.Value) [sha256.Size]byte {
	if o.digests == nil {
		o.digests = make(map[*ir.Value][sha256.Size]byte)
	}
	stack := []*ir.Value{v}
	for len(stack) > 0 {
		top := stack[len(stack)-1]
		if _, ok := o.digests[top]; !ok && top.Def != nil {
			waits := len(stack)
			for _, a := range top.Def.Args {
				if _, ok := o.digests[a]; !ok {
					stack = append(stack, a)
				}
			}
			if len(stack) > waits {
				continue
			}
		}
		stack = stack[:len(stack)-1]
		if _, ok := o.digests[top]; !ok {
			o.digests[top] = o.digestOf(top)
		}
	}
	return o.digests[v]
}

// digestOf is digest where those of the arguments are known.
func (o *orderer) digestOf(v *ir.Value) [sha256.Size]byte {
	var key []byte
	if n := v.Def; n != nil {
		key = append(key, n.Op.Name+" "+text.Attrs(n.Attr)...)
		for _, a := range n.Args {
			d := o.digests[a]
			key = append(key, d[:]...)
		}
	} else {
		key = binary.AppendVarint(append(key, v.Type.String()...), int64(o.rank(v)))
	}
	return sha256.Sum256(binary.AppendVarint(key, int64(v.Index)))
}
