package op_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// Every operator is complete: documented, evaluable, lowered or decomposed, with tagged attributes that text can write.
func TestTable(t *testing.T) {
	var groups [2][]string
	seen := map[string]bool{}
	for _, o := range op.All {
		t.Run(o.Name, func(t *testing.T) {
			require.Regexp(t, `^[a-z][a-z0-9]*(_[a-z0-9]+)*$`, o.Name)
			require.False(t, seen[o.Name], "the name is taken")
			require.Regexp(t, `^[A-Z].*\.$`, o.Doc, "a doc is a sentence")
			require.NotNil(t, o.Infer)
			require.NotEqual(t, o.Lower == nil, o.Decompose == nil, "either lowered or decomposed")
			require.True(t, o.Eval != nil || o.Decompose != nil || o.Control != nil, "it can be evaluated")
			require.Equal(t, len(o.Funcs) > 0, o.Control != nil, "control flow, and nothing else, calls functions")
			if o.Attr == nil {
				return
			}
			for i := range o.Attr.NumField() {
				f := o.Attr.Field(i)
				require.Regexp(t, `^[a-z][a-z0-9_]*$`, f.Tag.Get("ir"), "field %s", f.Name)
				require.True(t, writable(f.Type), "field %s has type %s, which the text cannot write", f.Name, f.Type)
			}
			found, ok := op.Lookup(o.Name)
			require.True(t, ok)
			require.Same(t, o, found)
		})
		seen[o.Name] = true
		group := 0
		if o.Composite() {
			group = 1
		}
		require.True(t, group == 1 || len(groups[1]) == 0, "primitive %s stands among the composites", o.Name)
		groups[group] = append(groups[group], o.Name)
	}
	for _, g := range groups {
		require.True(t, slices.IsSorted(g), "%s", strings.Join(g, " "))
	}
	_, ok := op.Lookup("nothing")
	require.False(t, ok)
}

func writable(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[tensor.DType](), reflect.TypeFor[tensor.Type](), reflect.TypeFor[*tensor.Tensor](), reflect.TypeFor[*ir.Func](),
		reflect.TypeFor[[]int64](), reflect.TypeFor[[]float64](), reflect.TypeFor[[][]int64]():
		return true
	}
	return slices.Contains([]reflect.Kind{reflect.Int64, reflect.Float64, reflect.Bool, reflect.String}, t.Kind())
}

// A trait is a promise to passes: elementwise operators keep the shape, commutative ones have two arguments.
func TestTraits(t *testing.T) {
	require.True(t, op.Add.Traits != 0 && op.Dot.Traits == 0)
	for _, o := range op.All {
		if o.Traits&ir.Commutative != 0 {
			require.Len(t, o.Args, 2, o.Name)
		}
	}
}
