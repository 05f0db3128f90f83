package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Tensor is a tensor in host memory: row-major, little endian, Size bytes an element (bool is 0 or 1).
// Data may alias a read-only file mapping; nobody writes to it.
type Tensor struct {
	Type
	Data []byte
}

// New is a tensor over data, whose length must be the type's.
func New(t Type, data []byte) (*Tensor, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	if int64(len(data)) != t.Bytes() {
		return nil, fmt.Errorf("%d bytes for %s, wanted %d", len(data), t, t.Bytes())
	}
	return &Tensor{t, data}, nil
}

// Zeros is a tensor of zeros.
func Zeros(t Type) *Tensor { return &Tensor{t, make([]byte, t.Bytes())} }

// Scalar is a 0-d tensor of v, rounded or wrapped to d.
func Scalar(d DType, v float64) *Tensor {
	if d.IsInt() || d == Bool {
		return FromInts(Make(d), []int64{int64(v)})
	}
	return FromFloats(Make(d), []float64{v})
}

// ScalarInt is a 0-d tensor of v, exact for 64-bit integers.
func ScalarInt(d DType, v int64) *Tensor {
	if d.IsInt() || d == Bool {
		return FromInts(Make(d), []int64{v})
	}
	return FromFloats(Make(d), []float64{float64(v)})
}

// FromFloats rounds v to t's element type, nearest with ties to even. Integers are truncated towards zero and saturate at the type's
// range, NaN becomes 0; bool is v != 0; complex numbers get no imaginary part.
func FromFloats(t Type, v []float64) *Tensor {
	x := Zeros(t)
	switch {
	case t.DType == F32:
		for i, f := range v {
			binary.LittleEndian.PutUint32(x.Data[4*i:], math.Float32bits(float32(f)))
		}
	case t.DType == F64:
		for i, f := range v {
			binary.LittleEndian.PutUint64(x.Data[8*i:], math.Float64bits(f))
		}
	case t.DType.IsFloat():
		s := smallFloats[t.DType]
		for i, f := range v {
			x.putUint(i, uint64(s.encode(f)))
		}
	case t.DType.IsComplex():
		c := make([]complex128, len(v))
		for i, f := range v {
			c[i] = complex(f, 0)
		}
		return FromComplexes(t, c)
	case t.DType == Bool:
		for i, f := range v {
			if f != 0 {
				x.Data[i] = 1
			}
		}
	default:
		for i, f := range v {
			x.putUint(i, saturate(t.DType, f))
		}
	}
	return x
}

// FromInts wraps v to t's element type, or rounds it once to a float. u64 takes the bit pattern.
func FromInts(t Type, v []int64) *Tensor {
	if t.DType.IsFloat() || t.DType.IsComplex() {
		f := make([]float64, len(v))
		for i, n := range v {
			f[i] = float64(n)
			if r := t.DType.Real(); r != F64 {
				f[i] = oddFloat(n)
			}
		}
		return FromFloats(t, f)
	}
	x := Zeros(t)
	for i, n := range v {
		if t.DType == Bool && n != 0 {
			n = 1
		}
		x.putUint(i, uint64(n))
	}
	return x
}

// FromComplexes rounds v to t's element type, which is complex.
func FromComplexes(t Type, v []complex128) *Tensor {
	x := Zeros(t)
	for i, c := range v {
		if t.DType == C64 {
			binary.LittleEndian.PutUint32(x.Data[8*i:], math.Float32bits(float32(real(c))))
			binary.LittleEndian.PutUint32(x.Data[8*i+4:], math.Float32bits(float32(imag(c))))
		} else {
			binary.LittleEndian.PutUint64(x.Data[16*i:], math.Float64bits(real(c)))
			binary.LittleEndian.PutUint64(x.Data[16*i+8:], math.Float64bits(imag(c)))
		}
	}
	return x
}

// Floats are the elements as float64; integers convert (u64 as unsigned), complex numbers give their real part.
func (x *Tensor) Floats() []float64 {
	n := int(x.Elements())
	out := make([]float64, n)
	switch d := x.DType; {
	case d == F32:
		for i := range out {
			out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(x.Data[4*i:])))
		}
	case d == F64:
		for i := range out {
			out[i] = math.Float64frombits(binary.LittleEndian.Uint64(x.Data[8*i:]))
		}
	case d == BF16: // the upper half of an f32
		for i := range out {
			out[i] = float64(math.Float32frombits(uint32(x.uint(i)) << 16))
		}
	case d.IsFloat():
		s := smallFloats[d]
		for i := range out {
			out[i] = s.decode(uint16(x.uint(i)))
		}
	case d.IsComplex():
		for i, c := range x.Complexes() {
			out[i] = real(c)
		}
	case d == U64:
		for i := range out {
			out[i] = float64(x.uint(i))
		}
	default:
		for i, v := range x.Ints() {
			out[i] = float64(v)
		}
	}
	return out
}

// Ints are the elements as int64: exact for bool and integers (u64 as the bit pattern); floats are truncated towards zero and saturate.
func (x *Tensor) Ints() []int64 {
	n := int(x.Elements())
	out := make([]int64, n)
	if x.DType.IsFloat() || x.DType.IsComplex() {
		for i, f := range x.Floats() {
			out[i] = int64(saturate(I64, f))
		}
		return out
	}
	shift := 64 - min(x.DType.Bits(), 64)
	if x.DType == Bool {
		shift = 56
	}
	for i := range out {
		u := x.uint(i)
		if x.DType.IsSigned() {
			out[i] = int64(u<<shift) >> shift
		} else {
			out[i] = int64(u << shift >> shift)
		}
	}
	return out
}

// Complexes are the elements as complex128; real numbers get no imaginary part.
func (x *Tensor) Complexes() []complex128 {
	out := make([]complex128, x.Elements())
	switch x.DType {
	case C64:
		for i := range out {
			re := math.Float32frombits(binary.LittleEndian.Uint32(x.Data[8*i:]))
			im := math.Float32frombits(binary.LittleEndian.Uint32(x.Data[8*i+4:]))
			out[i] = complex(float64(re), float64(im))
		}
	case C128:
		for i := range out {
			re := math.Float64frombits(binary.LittleEndian.Uint64(x.Data[16*i:]))
			im := math.Float64frombits(binary.LittleEndian.Uint64(x.Data[16*i+8:]))
			out[i] = complex(re, im)
		}
	default:
		for i, f := range x.Floats() {
			out[i] = complex(f, 0)
		}
	}
	return out
}

// Splat reports whether all elements have the same bits, and gives one of them as a 0-d tensor. An empty tensor is none.
func (x *Tensor) Splat() (*Tensor, bool) {
	s := x.DType.Size()
	if len(x.Data) == 0 {
		return nil, false
	}
	for i := s; i < len(x.Data); i++ {
		if x.Data[i] != x.Data[i-s] {
			return nil, false
		}
	}
	return &Tensor{Type{DType: x.DType}, x.Data[:s]}, true
}

// putUint stores the low bits of u; 4-bit values keep the high half of their byte zero.
func (x *Tensor) putUint(i int, u uint64) {
	switch x.DType.Size() {
	case 1:
		if x.DType.Bits() == 4 {
			u &= 15
		}
		x.Data[i] = byte(u)
	case 2:
		binary.LittleEndian.PutUint16(x.Data[2*i:], uint16(u))
	case 4:
		binary.LittleEndian.PutUint32(x.Data[4*i:], uint32(u))
	default:
		binary.LittleEndian.PutUint64(x.Data[8*i:], u)
	}
}

func (x *Tensor) uint(i int) uint64 {
	switch x.DType.Size() {
	case 1:
		return uint64(x.Data[i])
	case 2:
		return uint64(binary.LittleEndian.Uint16(x.Data[2*i:]))
	case 4:
		return uint64(binary.LittleEndian.Uint32(x.Data[4*i:]))
	default:
		return binary.LittleEndian.Uint64(x.Data[8*i:])
	}
}
