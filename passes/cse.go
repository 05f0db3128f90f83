package passes

import (
	"encoding/binary"
	"slices"

	"tpuc/ir"
	"tpuc/ir/text"
)

// cse keeps the first of nodes that compute the same: equal operator, attributes, arguments (in any order where it commutes) and
// shardings. The first one's location stays.
var cse = Pass{
	Name: "cse", Doc: "Merges nodes that compute the same.",
	Run: func(c *Context, m *ir.Module) error {
		for _, f := range m.Functions() {
			merge(c, f)
		}
		return nil
	},
}

// merge is cse within f.
func merge(c *Context, f *ir.Func) {
	ids := make(map[*ir.Value]uint64)
	id := func(v *ir.Value) uint64 {
		n, ok := ids[v]
		if !ok {
			n = uint64(len(ids))
			ids[v] = n
		}
		return n
	}
	funcs := make(map[*ir.Func]uint64) // names need not be unique
	first := make(map[string]*ir.Node)
	var key []byte
	var args []uint64
	f.Rewrite(func(_ *ir.Builder, n *ir.Node) []*ir.Value {
		c.At(n)
		if n.HasEffect() {
			return nil
		}
		args = args[:0]
		for _, a := range n.Args {
			args = append(args, id(a))
		}
		if n.Op.Traits&ir.Commutative != 0 {
			slices.Sort(args)
		}
		key = append(key[:0], n.Op.Name...)
		for _, a := range args {
			key = binary.AppendUvarint(append(key, ' '), a)
		}
		key = append(key, text.Attrs(n.Attr)...)
		for _, g := range n.Funcs() {
			if _, ok := funcs[g]; !ok {
				funcs[g] = uint64(len(funcs))
			}
			key = binary.AppendUvarint(append(key, '@'), funcs[g])
		}
		for _, o := range n.Outs {
			key = append(key, text.Sharding(o.Sharding)...)
		}
		if same := first[string(key)]; same != nil {
			c.Hit(n.Op.Name)
			return same.Outs
		}
		first[string(key)] = n
		return nil
	})
}
