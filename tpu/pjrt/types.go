package pjrt

import (
	"fmt"
	"math"
	"slices"
)

// BufferType is PJRT_Buffer_Type, the element type of a buffer.
type BufferType int32

const (
	Invalid       BufferType = 0
	PRED          BufferType = 1
	S8            BufferType = 2
	S16           BufferType = 3
	S32           BufferType = 4
	S64           BufferType = 5
	U8            BufferType = 6
	U16           BufferType = 7
	U32           BufferType = 8
	U64           BufferType = 9
	F16           BufferType = 10
	F32           BufferType = 11
	F64           BufferType = 12
	BF16          BufferType = 13
	C64           BufferType = 14
	C128          BufferType = 15
	F8E5M2        BufferType = 16
	F8E4M3FN      BufferType = 17
	F8E4M3B11FNUZ BufferType = 18
	F8E5M2FNUZ    BufferType = 19
	F8E4M3FNUZ    BufferType = 20
	S4            BufferType = 21
	U4            BufferType = 22
	Token         BufferType = 23
	S2            BufferType = 24
	U2            BufferType = 25
	F8E4M3        BufferType = 26
	F8E3M4        BufferType = 27
	F8E8M0FNU     BufferType = 28
	F4E2M1FN      BufferType = 29
	S1            BufferType = 30
	U1            BufferType = 31
	F6E2M3FN      BufferType = 32
	F6E3M2FN      BufferType = 33
)

// typeInfo gives the StableHLO spelling and the bytes of one element in host memory. Types narrower than a
// byte take a whole byte on the host, with the value in the low bits (XLA literals are not packed).
var typeInfo = [...]struct {
	name string
	size int64
}{
	Invalid: {"invalid", 0}, PRED: {"i1", 1},
	S8: {"i8", 1}, S16: {"i16", 2}, S32: {"i32", 4}, S64: {"i64", 8},
	U8: {"ui8", 1}, U16: {"ui16", 2}, U32: {"ui32", 4}, U64: {"ui64", 8},
	F16: {"f16", 2}, F32: {"f32", 4}, F64: {"f64", 8}, BF16: {"bf16", 2},
	C64: {"complex<f32>", 8}, C128: {"complex<f64>", 16},
	F8E5M2: {"f8E5M2", 1}, F8E4M3FN: {"f8E4M3FN", 1}, F8E4M3B11FNUZ: {"f8E4M3B11FNUZ", 1},
	F8E5M2FNUZ: {"f8E5M2FNUZ", 1}, F8E4M3FNUZ: {"f8E4M3FNUZ", 1},
	S4: {"i4", 1}, U4: {"ui4", 1}, Token: {"token", 0}, S2: {"i2", 1}, U2: {"ui2", 1},
	F8E4M3: {"f8E4M3", 1}, F8E3M4: {"f8E3M4", 1}, F8E8M0FNU: {"f8E8M0FNU", 1}, F4E2M1FN: {"f4E2M1FN", 1},
	S1: {"s1", 1}, U1: {"u1", 1}, F6E2M3FN: {"f6E2M3FN", 1}, F6E3M2FN: {"f6E3M2FN", 1},
}

// String is the StableHLO spelling, as in tensor<4xbf16>.
func (t BufferType) String() string {
	if t >= 0 && int(t) < len(typeInfo) {
		return typeInfo[t].name
	}
	return fmt.Sprintf("type %d", int32(t))
}

// ParseBufferType finds a type by its StableHLO spelling.
func ParseBufferType(name string) (BufferType, error) {
	for i, info := range typeInfo {
		if info.name == name && info.size > 0 {
			return BufferType(i), nil
		}
	}
	return Invalid, fmt.Errorf("unknown element type %q, want a StableHLO element type such as f32", name)
}

// HostSize is the size in bytes of a dense array of the type in host memory. Unknown types, negative
// dimensions and sizes beyond 63 bits are errors.
func (t BufferType) HostSize(dims []int64) (int64, error) {
	if t < 0 || int(t) >= len(typeInfo) || typeInfo[t].size == 0 {
		return 0, fmt.Errorf("element type %s has no host form, want an array type", t)
	}
	if slices.ContainsFunc(dims, func(d int64) bool { return d < 0 }) {
		return 0, fmt.Errorf("dimensions %v, want none negative", dims)
	}
	if slices.Contains(dims, 0) {
		return 0, nil
	}
	n := typeInfo[t].size
	for _, d := range dims {
		if n > math.MaxInt64/d {
			return 0, fmt.Errorf("dimensions %v of %s exceed 63 bits of bytes", dims, t)
		}
		n *= d
	}
	return n, nil
}
