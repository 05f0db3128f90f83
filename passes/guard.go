package passes

import (
	"tpuc/ir"
	"tpuc/ir/op"
)

// guard puts a barrier before a slice that is written into a tensor which something has read already, as in x[7:] = rotate(x[7:]).
// XLA's CPU compiler updates in place and may fuse the slice's computation into the update; that then reads elements which
// the same loop has overwritten (seen with lammps-jax-pjrt-cpu 0.11.2). A cache that is written before it is read needs no barrier,
// and gets none; neither does a program for a TPU: the fault is the CPU compiler's.
var guard = Pass{
	Name: "guard", Doc: "Keeps the computation of a slice apart from its update in place where it may read what is updated, on the CPU.",
	Required: true,
	After:    []string{"expand"}, // composites hide what reads what
	Run: func(c *Context, m *ir.Module) error {
		if c.target.IsTPU() {
			return nil
		}
		for _, f := range m.Functions() {
			guardUpdates(c, f)
		}
		return nil
	},
}

// guardUpdates is guard within f.
func guardUpdates(c *Context, f *ir.Func) {
	read := make(map[*ir.Value]int) // reads by nodes so far
	var body []*ir.Node
	for _, n := range f.Body {
		if op.DynamicUpdateSlice.Is(n) && readBefore(n.Args[0], read) && !op.Barrier.Is(n.Args[1].Def) {
			b := &ir.Builder{Loc: n.Loc}
			n.Args[1] = op.Barrier.Make(b, n.Args[1])
			body = append(body, b.Body...)
			c.Hit("update")
		}
		for _, a := range n.Args {
			read[a]++
		}
		body = append(body, n)
	}
	f.Body = body
}

// readBefore reports whether something other than the reshapes that lead to x has read x or what x is a reshape of.
func readBefore(x *ir.Value, read map[*ir.Value]int) bool {
	own := 0 // reads by the chain itself
	for {
		if read[x] > own {
			return true
		}
		if x.Def == nil || !op.Reshape.Is(x.Def) && !op.Transpose.Is(x.Def) && !op.Broadcast.Is(x.Def) {
			return false
		}
		x, own = x.Def.Args[0], 1
	}
}
