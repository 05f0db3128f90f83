package tensor

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Type is an element type and a static shape. Dims is shared and never changed in place.
type Type struct {
	DType DType
	Dims  []int64
}

// Make is a Type from its parts.
func Make(d DType, dims ...int64) Type { return Type{d, dims} }

// MaxRank is the limit of dimensions, which is torch's.
const MaxRank = 64

// Check refuses an invalid element type, more than MaxRank dimensions, negative extents and shapes whose bytes overflow an int64.
func (t Type) Check() error {
	if t.DType == Invalid || t.DType >= numDTypes {
		return fmt.Errorf("invalid dtype")
	}
	if len(t.Dims) > MaxRank {
		return fmt.Errorf("%d dimensions, wanted at most %d", len(t.Dims), MaxRank)
	}
	n := int64(t.DType.Size())
	for i, d := range t.Dims {
		if d < 0 {
			return fmt.Errorf("dimension %d is %d, wanted 0 or more", i, d)
		}
		if d > 0 && n > math.MaxInt64/d {
			return fmt.Errorf("shape %s has more bytes than an int64 holds", t)
		}
		if d > 0 {
			n *= d
		}
	}
	return nil
}

// Rank is the number of dimensions.
func (t Type) Rank() int { return len(t.Dims) }

// Elements is the number of elements; a scalar has one.
func (t Type) Elements() int64 {
	n := int64(1)
	for _, d := range t.Dims {
		n *= d
	}
	return n
}

// Bytes is the size in host memory.
func (t Type) Bytes() int64 { return t.Elements() * int64(t.DType.Size()) }

// Equal compares element type and shape.
func (t Type) Equal(u Type) bool { return t.DType == u.DType && slices.Equal(t.Dims, u.Dims) }

// WithDType is t with another element type.
func (t Type) WithDType(d DType) Type { return Type{d, t.Dims} }

// WithDims is t with another shape.
func (t Type) WithDims(dims ...int64) Type { return Type{t.DType, dims} }

// String is such as "bf16[8,256]"; a scalar is "f32[]".
func (t Type) String() string {
	var b strings.Builder
	b.WriteString(t.DType.String())
	b.WriteByte('[')
	for i, d := range t.Dims {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(d, 10))
	}
	b.WriteByte(']')
	return b.String()
}

// MarshalText is String, for JSON.
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText is ParseType, for JSON.
func (t *Type) UnmarshalText(text []byte) (err error) {
	*t, err = ParseType(string(text))
	return err
}

// MLIR is the ranked tensor type of StableHLO text, such as "tensor<8x256xbf16>".
func (t Type) MLIR() string {
	var b strings.Builder
	b.WriteString("tensor<")
	for _, d := range t.Dims {
		b.WriteString(strconv.FormatInt(d, 10))
		b.WriteByte('x')
	}
	b.WriteString(t.DType.MLIR())
	b.WriteByte('>')
	return b.String()
}

// ParseType reads what String writes.
func ParseType(s string) (Type, error) {
	name, rest, ok := strings.Cut(s, "[")
	if !ok || !strings.HasSuffix(rest, "]") {
		return Type{}, fmt.Errorf("type %q, wanted such as f32[2,3]", s)
	}
	d, err := ParseDType(name)
	if err != nil {
		return Type{}, err
	}
	t := Type{DType: d}
	if rest = strings.TrimSuffix(rest, "]"); rest != "" {
		for _, p := range strings.Split(rest, ",") {
			n, err := strconv.ParseInt(p, 10, 64)
			if err != nil {
				return Type{}, fmt.Errorf("type %q: dimension %q is no integer", s, p)
			}
			t.Dims = append(t.Dims, n)
		}
	}
	return t, t.Check()
}

// Strides are the row-major strides of dims, in elements.
func Strides(dims []int64) []int64 {
	s := make([]int64, len(dims))
	n := int64(1)
	for i := len(dims) - 1; i >= 0; i-- {
		s[i] = n
		n *= max(dims[i], 1)
	}
	return s
}
