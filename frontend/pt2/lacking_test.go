package pt2

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir"
	"tpuc/ir/diag"
)

// Nodes of one operator, reason and line are one error, with a count and the further layers.
func TestLackingMerges(t *testing.T) {
	var l lacking
	add := func(layer, reason string, line int) {
		loc := &diag.Loc{Layer: layer, File: "model.py", Line: line}
		l.add(&call{b: &ir.Builder{Loc: loc}, node: &node{Target: "torch.ops.aten.linalg_svd.default"}}, reason)
	}
	add("first", "", 3)
	add("second", "", 3)
	add("second", "", 3)
	add("second", "a reason", 3)
	add("third", "", 4)
	errs := l.list()
	require.Len(t, errs, 3)
	require.Contains(t, errs[0].Notes, "3 times from this line, also in second")
	for _, e := range errs[1:] {
		for _, n := range e.Notes {
			require.NotContains(t, n, "times from this line")
		}
	}
}
