// Package weight owns source expressions: where the elements of a weight come from, without their bytes. An expression is a leaf, a tensor of
// the checkpoint or of the program, and what is done to it: its text is that of the textual IR and of artifacts, and Eval computes it.
// The package never opens a file; readers bind an expression's leaf to bytes.
package weight

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tpuc/ir/tensor"
)

// MaxDepth is the number of operations that an expression may have.
const MaxDepth = 32

// Expr is a source expression. Its String is canonical: equal text and type mean equal elements for the same checkpoint.
type Expr interface {
	// Type is the element type and shape of the elements that the expression gives.
	Type() tensor.Type
	// String is the expression as the textual IR writes it, without the type of what it gives.
	String() string
}

// Tensor is a tensor of the checkpoint by its name, in row-major order whatever the strides it has in its file.
type Tensor struct {
	Name string // fully qualified name, such as "model.layers.0.mlp.down_proj.weight"
	T    tensor.Type
}

// Type implements Expr.
func (t Tensor) Type() tensor.Type { return t.T }

// String implements Expr.
func (t Tensor) String() string { return strconv.Quote(t.Name) }

// Const is a tensor that belongs to the program, not to the checkpoint: its identity is its contents.
type Const struct {
	Digest string // hex SHA-256 of the row-major little-endian elements
	T      tensor.Type
}

// Type implements Expr.
func (c Const) Type() tensor.Type { return c.T }

// String implements Expr.
func (c Const) String() string { return "const(" + strconv.Quote(c.Digest) + ")" }

// Moved is an expression whose elements are those of another one in other places. Permute, Reshape and Slice make it.
type Moved struct {
	Of    Expr
	move  *move
	lists [][]int64
	t     tensor.Type
}

// Type implements Expr.
func (m Moved) Type() tensor.Type { return m.t }

// String implements Expr. A leaf has its type behind it here, which the type of the result does not tell.
func (m Moved) String() string {
	var b strings.Builder
	b.WriteString(m.move.name + "(" + m.Of.String())
	if _, inner := m.Of.(Moved); !inner {
		b.WriteString(": " + m.Of.Type().String())
	}
	for _, list := range m.lists {
		b.WriteString(", [")
		for i, n := range list {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strconv.FormatInt(n, 10))
		}
		b.WriteByte(']')
	}
	b.WriteByte(')')
	return b.String()
}

// Permute reorders dimensions: dimension i of the result is dimension perm[i] of e.
func Permute(e Expr, perm []int64) (Expr, error) { return apply(&permute, e, perm) }

// Reshape gives e another shape of as many elements, in row-major order.
func Reshape(e Expr, shape []int64) (Expr, error) { return apply(&reshape, e, shape) }

// Slice takes every stride-th element from start up to, not including, limit along every dimension of e.
func Slice(e Expr, start, limit, stride []int64) (Expr, error) {
	return apply(&slice, e, start, limit, stride)
}

// Between is the permutation that makes what from gives into what to gives, where one is the other permuted: dimension i of the result is dimension
// perm[i] of from.
func Between(from, to Expr) (perm []int64, ok bool) {
	if m, is := to.(Moved); is && m.move == &permute && same(m.Of, from) {
		return m.lists[0], true
	}
	m, is := from.(Moved)
	if !is || m.move != &permute || !same(m.Of, to) {
		return nil, false
	}
	perm = make([]int64, len(m.lists[0]))
	for i, d := range m.lists[0] {
		perm[d] = int64(i)
	}
	return perm, true
}

func same(a, b Expr) bool { return a.Type().Equal(b.Type()) && a.String() == b.String() }

// Leaf is the tensor that e reads, a Tensor or a Const.
func Leaf(e Expr) Expr {
	for {
		m, ok := e.(Moved)
		if !ok {
			return e
		}
		e = m.Of
	}
}

// Eval is what e gives where its leaf has the elements of x, whose type is the leaf's. It aliases x where the elements lie there in order, as
// those of a reshaped weight or of a slice of its first dimension do, and is one copy otherwise but for reshapes of what lies apart.
func Eval(e Expr, x *tensor.Tensor) (*tensor.Tensor, error) {
	if want := Leaf(e).Type(); !x.Type.Equal(want) {
		return nil, fmt.Errorf("source %s: a tensor of type %s, wanted %s", e, x.Type, want)
	}
	v := eval(e, x)
	return v.tensor(), nil
}

// Undo is the leaf of e where x is what e gives, in which it may alias x. It is false where e leaves a part of the leaf out.
func Undo(e Expr, x *tensor.Tensor) (*tensor.Tensor, bool, error) {
	if want := e.Type(); !x.Type.Equal(want) {
		return nil, false, fmt.Errorf("source %s: a tensor of type %s, wanted %s", e, x.Type, want)
	}
	for {
		m, is := e.(Moved)
		if !is {
			return x, true, nil
		}
		var back Expr
		var err error
		switch m.move {
		case &permute:
			perm, _ := Between(m, m.Of)
			back, err = Permute(Tensor{T: x.Type}, perm)
		case &reshape:
			back, err = Reshape(Tensor{T: x.Type}, m.Of.Type().Dims)
		default:
			return nil, false, nil
		}
		if err == nil {
			x, err = Eval(back, x)
		}
		if err != nil {
			return nil, false, err
		}
		e = m.Of
	}
}

// eval is Eval without the copy.
func eval(e Expr, x *tensor.Tensor) view {
	m, ok := e.(Moved)
	if !ok {
		return view{x.Type, x.Data, 0, tensor.Strides(x.Dims)}
	}
	v := eval(m.Of, x)
	m.move.eval(&v, m.lists)
	v.t = m.t
	return v
}

// move is a kind of Moved.
type move struct {
	name  string
	lists int                                                  // arguments behind the expression
	infer func(dims []int64, lists [][]int64) ([]int64, error) // shape of the result
	eval  func(v *view, lists [][]int64)                       // changes all of v but its type
}

// moves are all kinds.
var moves = []*move{&permute, &reshape, &slice}

var permute = move{
	name: "permute", lists: 1,
	infer: func(dims []int64, lists [][]int64) ([]int64, error) {
		perm := lists[0]
		out := make([]int64, len(perm))
		once := len(perm) == len(dims)
		seen := make([]bool, len(dims))
		for i, d := range perm {
			if once = once && d >= 0 && d < int64(len(dims)) && !seen[d]; !once {
				break
			}
			seen[d] = true
			out[i] = dims[d]
		}
		if !once {
			return nil, fmt.Errorf("permutation %v, wanted every dimension of rank %d once", perm, len(dims))
		}
		return out, nil
	},
	eval: func(v *view, lists [][]int64) {
		strides := make([]int64, len(lists[0]))
		for i, d := range lists[0] {
			strides[i] = v.strides[d]
		}
		v.strides = strides
	},
}

var reshape = move{
	name: "reshape", lists: 1,
	infer: func(dims []int64, lists [][]int64) ([]int64, error) {
		was, is := tensor.Make(tensor.U8, dims...), tensor.Make(tensor.U8, lists[0]...)
		if err := is.Check(); err != nil {
			return nil, err
		}
		if was.Elements() != is.Elements() {
			return nil, fmt.Errorf("shape %v has %d elements, wanted the %d of %v", lists[0], is.Elements(), was.Elements(), dims)
		}
		return lists[0], nil
	},
	eval: func(v *view, lists [][]int64) {
		if !v.dense() {
			*v = view{v.t, v.tensor().Data, 0, nil}
		}
		v.strides = tensor.Strides(lists[0])
	},
}

var slice = move{
	name: "slice", lists: 3,
	infer: func(dims []int64, lists [][]int64) ([]int64, error) {
		start, limit, stride := lists[0], lists[1], lists[2]
		if len(start) != len(dims) || len(limit) != len(dims) || len(stride) != len(dims) {
			return nil, fmt.Errorf("slice by %d starts, %d limits and %d strides, wanted %d of each", len(start), len(limit), len(stride), len(dims))
		}
		out := make([]int64, len(dims))
		for d, extent := range dims {
			if start[d] < 0 || start[d] > limit[d] || limit[d] > extent || stride[d] < 1 {
				return nil, fmt.Errorf("slice of dimension %d from %d to %d by %d, wanted within %d and by 1 or more", d, start[d], limit[d], stride[d], extent)
			}
			if limit[d] > start[d] {
				out[d] = (limit[d]-start[d]-1)/stride[d] + 1
			}
		}
		return out, nil
	},
	eval: func(v *view, lists [][]int64) {
		strides := slices.Clone(v.strides)
		for d := range strides {
			v.offset += lists[0][d] * strides[d]
			// A stride that is beyond the extent has one element, and its own product may be too large.
			if lists[2][d] < lists[1][d]-lists[0][d] {
				strides[d] *= lists[2][d]
			}
		}
		v.strides = strides
	},
}

// apply checks the lists against e.
func apply(m *move, e Expr, lists ...[]int64) (Expr, error) {
	depth := 1
	for of, ok := e.(Moved); ok; of, ok = of.Of.(Moved) {
		depth++
	}
	if depth > MaxDepth {
		return nil, fmt.Errorf("more than %d operations on one tensor", MaxDepth)
	}
	t := e.Type()
	dims, err := m.infer(t.Dims, lists)
	if err != nil {
		return nil, err
	}
	return Moved{e, m, lists, t.WithDims(dims...)}, nil
}

// view is a strided view of elements: the one at index i stands offset + sum(i[d] * strides[d]) elements into data.
type view struct {
	t       tensor.Type
	data    []byte
	offset  int64
	strides []int64
}

// dense reports that the elements lie side by side in row-major order.
func (v *view) dense() bool {
	next := int64(1)
	for d := len(v.t.Dims) - 1; d >= 0; d-- {
		if v.t.Dims[d] != 1 && v.strides[d] != next {
			return v.t.Elements() == 0
		}
		next *= v.t.Dims[d]
	}
	return true
}

// tensor is the view's elements, in place where they are dense.
func (v *view) tensor() *tensor.Tensor {
	if !v.dense() {
		return tensor.Gather(v.t, v.data, v.offset, v.strides)
	}
	n := v.t.Bytes()
	from := v.offset * int64(v.t.DType.Size())
	if n == 0 {
		from = 0
	}
	return &tensor.Tensor{Type: v.t, Data: v.data[from : from+n : from+n]}
}
