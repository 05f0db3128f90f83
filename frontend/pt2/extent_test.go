package pt2

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// Elements beyond an extent reach no others, or the value is spoilt.
func TestFlow(t *testing.T) {
	b := &ir.Builder{}
	f := &ir.Func{}
	count := f.AddParam("count", tensor.Make(tensor.I64))
	x := f.AddParam("x", tensor.Make(tensor.F32, 4, 3, 6))
	w := f.AddParam("w", tensor.Make(tensor.F32, 6, 5))
	ids := f.AddParam("ids", tensor.Make(tensor.I64, 3))
	first := extent{0, 1, count}
	dot := func(contract int64) *ir.Value {
		return op.Dot.Make(b, op.DotAttr{Contract: [][]int64{{2}, {contract}}}, x, w)
	}
	for name, row := range map[string]struct {
		make func() *ir.Value
		from extent
		want extent // spoilt: refused
	}{
		"elementwise":             {func() *ir.Value { return op.Add.Make(b, x, x) }, first, first},
		"reshape that joins":      {func() *ir.Value { return reshape(b, x, []int64{12, 6}) }, first, extent{0, 3, count}},
		"reshape that splits":     {func() *ir.Value { return reshape(b, x, []int64{2, 2, 3, 6}) }, first, spoilt},
		"reshape of an inner one": {func() *ir.Value { return reshape(b, x, []int64{4, 18}) }, extent{1, 1, count}, extent{1, 6, count}},
		"reshape across":          {func() *ir.Value { return reshape(b, x, []int64{12, 6}) }, extent{1, 1, count}, spoilt},
		"transpose":               {func() *ir.Value { return transpose(b, x, []int64{1, 2, 0}) }, first, extent{2, 1, count}},
		"reduce others":           {func() *ir.Value { return reduce(b, op.Sum, x, []int64{0, 2}, false) }, extent{1, 1, count}, extent{0, 1, count}},
		"reduce over it":          {func() *ir.Value { return reduce(b, op.Sum, x, []int64{0}, false) }, first, spoilt},
		"slice of others":         {func() *ir.Value { return slice(b, x, 1, 1, 2, 1) }, first, first},
		"the first elements":      {func() *ir.Value { return slice(b, x, 0, 0, 1, 1) }, first, whole},
		"later elements":          {func() *ir.Value { return slice(b, x, 0, 1, 4, 1) }, first, spoilt},
		"reverse":                 {func() *ir.Value { return reverse(b, x, []int64{0}) }, first, spoilt},
		"concat beside":           {func() *ir.Value { return concat(b, 1, x, x) }, first, first},
		"concat after":            {func() *ir.Value { return concat(b, 0, x, x) }, first, spoilt},
		"softmax along":           {func() *ir.Value { return op.Softmax.Make(b, op.SoftmaxAttr{Axis: 0}, x) }, first, spoilt},
		"softmax of others":       {func() *ir.Value { return op.Softmax.Make(b, op.SoftmaxAttr{Axis: 2}, x) }, first, first},
		"sums up to":              {func() *ir.Value { return op.CumSum.Make(b, op.CumSumAttr{}, x) }, first, first},
		"sums from the end":       {func() *ir.Value { return op.CumSum.Make(b, op.CumSumAttr{Reverse: true}, x) }, first, spoilt},
		"product of rows":         {func() *ir.Value { return dot(0) }, extent{1, 1, count}, extent{1, 1, count}},
		"product over it":         {func() *ir.Value { return dot(0) }, extent{2, 1, count}, spoilt},
		"take of others":          {func() *ir.Value { return op.Take.Make(b, op.TakeAttr{Axis: 1}, x, ids) }, first, first},
		"take of it":              {func() *ir.Value { return op.Take.Make(b, op.TakeAttr{Axis: 0}, x, ids) }, first, spoilt},
		"sort along":              {func() *ir.Value { return op.Sort.Make(b, op.SortAttr{Axis: 0}, x) }, first, spoilt},
	} {
		b.Body = nil
		e := newExtents(b)
		e.of[x] = row.from
		y := row.make()
		e.follow(b)
		got, open := e.of[y]
		if !open {
			got = whole
		}
		require.Equal(t, row.want, got, name)
	}
}
