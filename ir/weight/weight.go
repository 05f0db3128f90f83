// Package weight owns source expressions: where the elements of a weight come from, without their bytes.
// It never opens a file; readers bind an expression's leaves to bytes.
package weight

import (
	"strconv"

	"tpuc/ir/tensor"
)

// Expr is a source expression. Its String is canonical: equal text means equal elements for the same checkpoint.
type Expr interface {
	// Type is the element type and shape of the elements that the expression gives.
	Type() tensor.Type
	// String is the expression as the textual IR writes it, without its type.
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
