package op

import "tpuc/ir"

// All is the operator table, sorted by name within each group.
var All = []*ir.Op{
	// Primitives.
	Add.Op, Broadcast.Op, Constant.Op, Dot.Op, Reduce.Op,
	// Composites.
	Softmax.Op,
}
