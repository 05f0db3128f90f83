// Package tensor owns element types, tensor types and tensors in host memory, with the exact rounding of every element type.
// It never computes on tensors beyond conversion; operators live in ir/op.
package tensor

import "fmt"

// DType is an element type. Names follow StableHLO's, with bool for i1.
type DType uint8

// Element types.
const (
	Invalid DType = iota
	Bool
	I4
	I8
	I16
	I32
	I64
	U4
	U8
	U16
	U32
	U64
	F8E4M3FN // OCP FP8 E4M3 without infinities (arXiv:2209.05433)
	F8E5M2   // OCP FP8 E5M2
	BF16
	F16
	F32
	F64
	C64  // complex of two f32
	C128 // complex of two f64
	numDTypes
)

type kind uint8

const (
	kindBool kind = iota + 1
	kindSigned
	kindUnsigned
	kindFloat
	kindComplex
)

var dtypes = [numDTypes]struct {
	name string
	kind kind
	bits int // information bits an element
	size int // bytes an element in host memory
	mlir string
}{
	Invalid:  {"invalid", 0, 0, 0, ""},
	Bool:     {"bool", kindBool, 1, 1, "i1"},
	I4:       {"i4", kindSigned, 4, 1, "i4"},
	I8:       {"i8", kindSigned, 8, 1, "i8"},
	I16:      {"i16", kindSigned, 16, 2, "i16"},
	I32:      {"i32", kindSigned, 32, 4, "i32"},
	I64:      {"i64", kindSigned, 64, 8, "i64"},
	U4:       {"u4", kindUnsigned, 4, 1, "ui4"},
	U8:       {"u8", kindUnsigned, 8, 1, "ui8"},
	U16:      {"u16", kindUnsigned, 16, 2, "ui16"},
	U32:      {"u32", kindUnsigned, 32, 4, "ui32"},
	U64:      {"u64", kindUnsigned, 64, 8, "ui64"},
	F8E4M3FN: {"f8e4m3fn", kindFloat, 8, 1, "f8E4M3FN"},
	F8E5M2:   {"f8e5m2", kindFloat, 8, 1, "f8E5M2"},
	BF16:     {"bf16", kindFloat, 16, 2, "bf16"},
	F16:      {"f16", kindFloat, 16, 2, "f16"},
	F32:      {"f32", kindFloat, 32, 4, "f32"},
	F64:      {"f64", kindFloat, 64, 8, "f64"},
	C64:      {"c64", kindComplex, 64, 8, "complex<f32>"},
	C128:     {"c128", kindComplex, 128, 16, "complex<f64>"},
}

// DTypes lists all element types in a fixed order.
func DTypes() []DType {
	var out []DType
	for d := Bool; d < numDTypes; d++ {
		out = append(out, d)
	}
	return out
}

// ParseDType finds an element type by its name.
func ParseDType(s string) (DType, error) {
	for d := Bool; d < numDTypes; d++ {
		if dtypes[d].name == s {
			return d, nil
		}
	}
	return Invalid, fmt.Errorf("unknown dtype %q", s)
}

// String is the name that ParseDType reads.
func (d DType) String() string { return dtypes[d].name }

// MLIR is the builtin type's spelling in StableHLO text.
func (d DType) MLIR() string { return dtypes[d].mlir }

// Bits is the number of information bits of an element.
func (d DType) Bits() int { return dtypes[d].bits }

// Size is the number of bytes of an element in host memory: 4-bit integers and bool take one byte each.
func (d DType) Size() int { return dtypes[d].size }

// IsFloat reports a real floating-point type.
func (d DType) IsFloat() bool { return dtypes[d].kind == kindFloat }

// IsInt reports a signed or unsigned integer type; bool is none.
func (d DType) IsInt() bool { return dtypes[d].kind == kindSigned || dtypes[d].kind == kindUnsigned }

// IsSigned reports a signed integer type.
func (d DType) IsSigned() bool { return dtypes[d].kind == kindSigned }

// IsUnsigned reports an unsigned integer type.
func (d DType) IsUnsigned() bool { return dtypes[d].kind == kindUnsigned }

// IsComplex reports a complex type.
func (d DType) IsComplex() bool { return dtypes[d].kind == kindComplex }

// Real is the element type of a complex type's parts; other types are their own.
func (d DType) Real() DType {
	switch d {
	case C64:
		return F32
	case C128:
		return F64
	}
	return d
}

// IntRange is the smallest and largest value of a signed integer type, or zero and the largest of an unsigned one
// (u64's as the bit pattern -1).
func (d DType) IntRange() (lo, hi int64) {
	n := d.Bits()
	switch {
	case d.IsSigned():
		return -1 << (n - 1), 1<<(n-1) - 1
	case d == U64:
		return 0, -1
	case d.IsUnsigned():
		return 0, 1<<n - 1
	}
	return 0, 1
}
