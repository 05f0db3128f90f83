package pt2

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir/diag"
)

func TestLoc(t *testing.T) {
	trace := `File "/home/u/v/lib/python3.11/site-packages/transformers/integrations/executorch.py", line 575, in forward
    outs = self.model(
  File "/home/u/v/lib/python3.11/site-packages/transformers/models/gemma2/modeling_gemma2.py", line 418, in forward
    position_ids = position_ids.unsqueeze(0)
  File "/home/u/v/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 134, in forward
    return F.linear(input, self.weight, self.bias)`
	stack := "L__self__,,a.b.Wrapper;L__self__model,model,a.b.Model;L__self__model.model,model.layers.0,a.b.Layer"
	n := func(trace, stack string) *node {
		n := &node{}
		n.Metadata.StackTrace, n.Metadata.NNModuleStack = trace, stack
		return n
	}
	var l locs
	got := l.of(n(trace, stack))
	require.Equal(t, diag.Loc{Layer: "model.layers.0", File: "transformers/models/gemma2/modeling_gemma2.py", Line: 418,
		Source: "position_ids = position_ids.unsqueeze(0)"}, *got)
	require.Same(t, got, l.of(n(trace, stack)), "equal places are shared")

	for _, c := range []struct {
		trace, file string
		line        int
		source      string
	}{
		{"", "", 0, ""},
		{"  File \"C:\\\\work\\\\model.py\", line 7, in forward\n    x = y", "model.py", 7, "x = y"},
		{"File \"model.py\", line 7, in forward", "model.py", 7, ""},
		{"File \"/a/site-packages/torch/nn/a.py\", line 1, in f\n    inner\n", "torch/nn/a.py", 1, "inner"},
		{"File \"x.py\", line notanumber, in f", "", 0, ""},
		{"File \"x.py", "", 0, ""},
	} {
		file, line, source := lastFrame(c.trace)
		require.Equal(t, c.file, file, c.trace)
		require.Equal(t, c.line, line)
		require.Equal(t, c.source, source)
	}
	for stack, want := range map[string]string{"": "", "a": "", "a,b": "", "k,layers.0,cls": "layers.0", "getattr(L['self'], 'x,y'),layers.0,cls": "layers.0", "k,,cls": ""} {
		require.Equal(t, want, layerOf(stack), stack)
	}
}
