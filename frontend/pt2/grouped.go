package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
)

// groupedFallback is the operator of Transformers for the experts of a mixture: rows of input sorted by expert, each expert's rows times its
// matrix of weight [experts, in, out]; offs are the rows up to the end of each expert. It is registered without a schema in torch.
func groupedFallback(c *call) *ir.Value {
	return c.groupedDot(c.val("input"), c.val("weight"), c.val("offs"))
}

// groupedMM is a product in groups: of rows (2-d by 3-d), of columns (3-d by 2-d), of what is summed over (2-d by 2-d), or of whole
// matrices (3-d by 3-d).
func groupedMM(c *call) *ir.Value {
	x, w, offs := c.val("self"), c.val("mat2"), c.opt("offs")
	d := c.dtype("out_dtype", x.Type.DType)
	var y *ir.Value
	switch rx, rw := x.Type.Rank(), w.Type.Rank(); {
	case rx == 3 && rw == 3 && offs == nil:
		y = c.matmul(x, w)
	case offs == nil:
		c.failf("self is %s and mat2 %s without offs, wanted rank 3 of both", x.Type, w.Type)
	case rx == 2 && rw == 3:
		y = c.groupedDot(x, w, offs)
	case rx == 3 && rw == 2: // columns of mat2 in groups: the transpose is rows in groups
		y = swap(c.b, c.groupedDot(swap(c.b, w, 0, 1), swap(c.b, x, 1, 2), offs), 0, 1)
	default:
		c.unsupported("groups of what is summed over, self %s and mat2 %s", x.Type, w.Type)
	}
	if bias := c.opt("bias"); bias != nil {
		c.unsupported("a bias")
	}
	return c.cast(y, d)
}

// groupedDot reads a transposed w where it lies.
func (c *call) groupedDot(x, w, offs *ir.Value) *ir.Value {
	var a op.GroupedDotAttr
	if n := w.Def; n != nil && op.Transpose.Is(n) && slices.Equal(op.Transpose.Attr(n).Perm, []int64{0, 2, 1}) {
		w, a.Transposed = n.Args[0], true
	}
	return op.GroupedDot.Make(c.b, a, x, w, offs)
}
