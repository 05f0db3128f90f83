package pt2

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Every line of the embedded table parses, with defaults that an argument can hold.
func TestSchemas(t *testing.T) {
	require.Greater(t, len(schemaLines()), 1000)
	for name, line := range schemaLines() {
		s, err := parseSchema(line)
		require.NoError(t, err, name)
		for _, p := range s.params {
			require.NotEmpty(t, p.name, line)
			require.NotEmpty(t, p.typ, line)
			a := p.argument()
			require.NotEqual(t, "unknown", a.kind(), "%s: default %q", line, p.dflt)
		}
	}
}

func TestSchemaDefaults(t *testing.T) {
	s, ok := lookupSchema("add.Tensor")
	require.True(t, ok)
	require.False(t, s.mutates)
	require.Equal(t, []schemaParam{{"self", "Tensor", ""}, {"other", "Tensor", ""}, {"alpha", "Scalar", "1"}}, s.params)
	require.EqualValues(t, 1, *s.params[2].argument().Int)

	s, ok = lookupSchema("add_.Tensor")
	require.True(t, ok)
	require.True(t, s.mutates)

	s, ok = lookupSchema("conv2d.default")
	require.True(t, ok)
	require.Equal(t, []int64{0, 0}, *s.param("padding").argument().Ints)
	_, ok = lookupSchema("no_such_operator.default")
	require.False(t, ok)

	s, _ = lookupSchema("split.Tensor")
	require.Equal(t, "Tensor", s.params[0].typ) // without the alias annotation (a -> *)
	s, _ = lookupSchema("hardtanh.default")
	require.EqualValues(t, -1, *s.param("min_val").argument().Int)
	s, _ = lookupSchema("layer_norm.default")
	require.InDelta(t, 1e-5, float64(*s.param("eps").argument().Float), 0)
	s, _ = lookupSchema("gelu.default")
	require.Equal(t, "none", *s.param("approximate").argument().String)
}

// Every rule is of an operator that the table of schemas knows, or of another namespace.
func TestRulesHaveSchemas(t *testing.T) {
	for name := range rules() {
		if _, ok := lookupSchema(name); !ok {
			require.Regexp(t, `^(_operator|torch|math)\.`, name)
		}
	}
}

func TestFunctional(t *testing.T) {
	for in, want := range map[string]string{"add_.Tensor": "add.Tensor", "relu_": "relu", "__ior__.Scalar": "__or__.Scalar", "add.Tensor": "",
		"__or__.Tensor": "", "resize_": "", "squeeze_.dim": "squeeze.dim", "index_put_": "index_put", "pow_.Tensor": "pow.Tensor_Tensor",
		"floor_divide_.Tensor": "floor_divide"} {
		got, ok := functional(in)
		require.Equal(t, want != "", ok, in)
		require.Equal(t, want, got, in)
	}
	require.True(t, Supported("torch.ops.aten.add_.Tensor"))
	require.True(t, Supported("torch.ops.aten.linear.default"))
	require.True(t, Supported("torch.ops.aten.t_.default"))
	require.True(t, Supported("torch.ops.aten.resize_.default"))
	require.False(t, Supported("torch.ops.aten.set_.source_Tensor"))
	require.False(t, Supported("torch.ops.mylib.linear.default"))
	require.True(t, Supported("torch.ops.higher_order.cond"))
	require.False(t, Supported("torch.ops.higher_order.flex_attention"))
}
