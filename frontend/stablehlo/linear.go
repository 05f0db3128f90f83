package stablehlo

import (
	"slices"
	"strconv"
	"strings"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// linearRules are products and convolutions. The IR computes them in at least the precision that is asked for.
var linearRules = map[string]rule{
	"stablehlo.dot_general": dotGeneral,
	"stablehlo.dot":         dot,
	"stablehlo.convolution": convolution,
	"stablehlo.fft":         fourier,
	"chlo.ragged_dot":       raggedDot,
}

// dotGeneral reads the dimension numbers of either form. Operands of different dtypes, and algorithms that are named, go on opaquely.
func dotGeneral(c *call) []*ir.Value {
	c.arity(2)
	if _, ok := c.o.attrs.find("algorithm"); ok {
		return nil
	}
	a := op.DotAttr{}
	if _, ok := c.o.attrs.find("dot_dimension_numbers"); ok {
		lists := make([][]int64, 4)
		for i, name := range []string{"lhs_batching_dimensions", "rhs_batching_dimensions", "lhs_contracting_dimensions", "rhs_contracting_dimensions"} {
			lists[i] = c.numbers("dot_dimension_numbers", name)
		}
		a.Batch, a.Contract = pairs(lists[0], lists[1]), pairs(lists[2], lists[3])
	} else {
		a.Batch, a.Contract = c.pair("batching_dims"), c.pair("contracting_dims")
	}
	return c.product(a)
}

// pair reads name = [0] x [1].
func (c *call) pair(name string) [][]int64 {
	e, ok := c.o.attrs.find(name)
	if !ok {
		return nil
	}
	if len(e.List) != 2 || !e.List[0].IsList || !e.List[1].IsList {
		c.fail("%s, wanted [..] x [..]", name)
	}
	l, ok1 := e.List[0].integers()
	r, ok2 := e.List[1].integers()
	if !ok1 || !ok2 {
		c.fail("%s, wanted integers", name)
	}
	return pairs(l, r)
}

func pairs(l, r []int64) [][]int64 {
	if len(l) == 0 && len(r) == 0 {
		return nil
	}
	return [][]int64{l, r}
}

// product makes the dot, with the declared element type as the result's.
func (c *call) product(a op.DotAttr) []*ir.Value {
	l, r, d := c.args[0], c.args[1], c.out().DType
	if l.Type.DType != r.Type.DType {
		return nil
	}
	switch from := l.Type.DType; {
	case from == d:
	case from.IsFloat() && d.IsFloat() || from.IsInt() && d.IsInt():
		a.Out = d
	default:
		return nil
	}
	return one(op.Dot.Make(c.b, a, l, r))
}

// dot multiplies vectors and matrices: the last dimension of the first with the first one of the second.
func dot(c *call) []*ir.Value {
	c.arity(2)
	n := c.args[0].Type.Rank()
	if n == 0 {
		c.fail("operand 0 is a scalar, wanted a vector or matrix")
	}
	return c.product(op.DotAttr{Contract: [][]int64{{int64(n) - 1}, {0}}})
}

// convolution transposes to batch, feature, spatial and output, input, spatial, and back.
func convolution(c *call) []*ir.Value {
	c.arity(2)
	x, w := c.args[0], c.args[1]
	n := x.Type.Rank() - 2
	if n < 0 || w.Type.Rank() != n+2 {
		c.fail("operands are %s and %s, wanted one rank of 2 or more", x.Type, w.Type)
	}
	if n == 0 || c.int("batch_group_count", 1) != 1 || x.Type.DType != w.Type.DType {
		return nil
	}
	parts := strings.FieldsFunc(c.hash("dimension_numbers"), func(r rune) bool { return r == '[' || r == ']' })
	var layouts [][]int64
	for _, p := range parts {
		if perm, ok := layout(p, n); ok {
			layouts = append(layouts, perm)
		}
	}
	if len(layouts) != 3 {
		c.fail("dimension_numbers are %s, wanted such as [b, f, 0]x[o, i, 0]->[b, f, 0]", clip(c.hash("dimension_numbers")))
	}
	x, w = transposeBy(c.b, x, layouts[0]), transposeBy(c.b, w, layouts[1])
	if a, ok := c.o.attrs.find("window_reversal"); ok {
		var axes []int64
		for i, b := range a.bools() {
			if b && i < n {
				axes = append(axes, int64(i)+2)
			}
		}
		if axes != nil {
			w = op.Reverse.Make(c.b, op.ReverseAttr{Axes: axes}, w)
		}
	}
	out := c.out()
	if x.Type.DType != out.DType { // a wider result: widening the operands loses nothing
		if !(x.Type.DType.IsFloat() && out.DType.IsFloat() || x.Type.DType.IsInt() && out.DType.IsInt()) || x.Type.DType.Bits() > out.DType.Bits() {
			return nil
		}
		x, w = c.cast(x, out.DType), c.cast(w, out.DType)
	}
	pads := c.list("padding", make([]int64, 2*n))
	if len(pads) != 2*n {
		c.fail("padding has %d values, wanted %d", len(pads), 2*n)
	}
	a := op.ConvAttr{Strides: c.list("window_strides", ones(n)), LhsDilation: c.list("lhs_dilation", ones(n)),
		RhsDilation: c.list("rhs_dilation", ones(n)), Groups: c.int("feature_group_count", 1)}
	for p := range slices.Chunk(pads, 2) {
		a.Padding = append(a.Padding, p)
	}
	y := op.Conv.Make(c.b, a, x, w)
	back := make([]int64, n+2)
	for i, d := range layouts[2] {
		back[d] = int64(i)
	}
	return one(transposeBy(c.b, y, back))
}

// fourier transforms the last dimensions.
func fourier(c *call) []*ir.Value {
	c.arity(1)
	a := op.FFTAttr{Kind: op.FFTKind(strings.ToLower(c.o.attrs.word("fft_type"))), Length: c.list("fft_length", nil)}
	return one(op.FFT.Make(c.b, a, c.args[0]))
}

// raggedDot takes consecutive groups of rows, by their sizes, times one matrix each.
func raggedDot(c *call) []*ir.Value {
	c.arity(3)
	const numbers = "ragged_dot_dimension_numbers"
	x, w, sizes := c.args[0], c.args[1], c.args[2]
	is := func(name string, want ...int64) bool { return slices.Equal(c.numbers(numbers, name), want) }
	d := c.out().DType
	if x.Type.Rank() != 2 || w.Type.Rank() != 3 || !is("lhs_batching_dimensions") || !is("rhs_batching_dimensions") || !is("lhs_contracting_dimensions", 1) ||
		!is("lhs_ragged_dimensions", 0) || !is("rhs_group_dimensions", 0) || !x.Type.DType.IsFloat() || !w.Type.DType.IsFloat() || !d.IsFloat() || !sizes.Type.DType.IsInt() {
		return nil
	}
	transposed := is("rhs_contracting_dimensions", 2)
	if !transposed && !is("rhs_contracting_dimensions", 1) || x.Type.DType.Bits() > d.Bits() || w.Type.DType.Bits() > d.Bits() {
		return nil
	}
	ends := op.CumSum.Make(c.b, op.CumSumAttr{}, c.cast(sizes, tensor.I64))
	return one(op.GroupedDot.Make(c.b, op.GroupedDotAttr{Transposed: transposed}, c.cast(x, d), c.cast(w, d), ends))
}

// layout gives, for batch (or output), feature (or input) and every spatial dimension, its place in such as "b, 0, 1, f".
func layout(s string, spatial int) ([]int64, bool) {
	names := strings.Split(s, ",")
	if len(names) != spatial+2 {
		return nil, false
	}
	perm := slices.Repeat([]int64{-1}, spatial+2)
	for at, name := range names {
		i := -1
		switch name = strings.TrimSpace(name); name {
		case "b", "o":
			i = 0
		case "f", "i":
			i = 1
		default:
			v, err := strconv.Atoi(name)
			if err != nil || v < 0 || v >= spatial {
				return nil, false
			}
			i = v + 2
		}
		// The filter's input comes second, its output first, as feature and batch do.
		if perm[i] != -1 {
			return nil, false
		}
		perm[i] = int64(at)
	}
	return perm, !slices.Contains(perm, -1)
}
