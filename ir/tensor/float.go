package tensor

import (
	"math"
	"math/bits"
)

// smallFloat is a binary format of at most 16 bits.
type smallFloat struct {
	exp, man uint // bits
	bias     int
	inf      bool // has infinities; otherwise (f8e4m3fn) all ones is NaN and overflow gives NaN
}

var smallFloats = map[DType]smallFloat{
	F8E4M3FN: {4, 3, 7, false},
	F8E5M2:   {5, 2, 15, true},
	F16:      {5, 10, 15, true},
	BF16:     {8, 7, 127, true},
}

// FloatBits are the bits of a float's exponent and of its mantissa without the implicit one; 0 of other dtypes.
func (d DType) FloatBits() (exponent, mantissa int) {
	switch d {
	case F32:
		return 8, 23
	case F64:
		return 11, 52
	}
	f := smallFloats[d]
	return int(f.exp), int(f.man)
}

// encode rounds v to nearest, ties to even, once.
func (f smallFloat) encode(v float64) uint16 {
	sign := uint16(0)
	if math.Signbit(v) {
		sign = 1 << (f.exp + f.man)
		v = -v
	}
	ones := uint16(1)<<(f.exp+f.man) - 1 // exponent and mantissa all ones
	nan, inf := ones, ones
	if f.inf {
		inf = ones &^ (1<<f.man - 1)
		nan = inf | 1<<(f.man-1)
	}
	switch {
	case math.IsNaN(v):
		return sign | nan
	case math.IsInf(v, 0):
		return sign | inf
	case v == 0:
		return sign
	}
	e := max(math.Ilogb(v), 1-f.bias)                  // exponent of the unit in the last place, subnormals included
	m := math.RoundToEven(math.Ldexp(v, int(f.man)-e)) // in [0, 2^(man+1)]
	bits := uint64(m) + uint64(e+f.bias-1)<<f.man      // a carry moves into the exponent by itself
	if bits > uint64(inf) || bits == uint64(inf) && f.inf || bits >= uint64(nan) && !f.inf {
		return sign | inf
	}
	return sign | uint16(bits)
}

func (f smallFloat) decode(b uint16) float64 {
	man := b & (1<<f.man - 1)
	exp := int(b>>f.man) & (1<<f.exp - 1)
	var v float64
	switch {
	case f.inf && exp == 1<<f.exp-1 && man == 0:
		v = math.Inf(1)
	case f.inf && exp == 1<<f.exp-1, !f.inf && b&(1<<(f.exp+f.man)-1) == 1<<(f.exp+f.man)-1:
		v = math.NaN()
	case exp == 0:
		v = math.Ldexp(float64(man), 1-f.bias-int(f.man))
	default:
		v = math.Ldexp(float64(man|1<<f.man), exp-f.bias-int(f.man))
	}
	if b>>(f.exp+f.man) != 0 {
		v = math.Copysign(v, -1)
	}
	return v
}

// saturate truncates v towards zero into the range of an integer type and gives the low bits; NaN becomes 0.
func saturate(d DType, v float64) uint64 {
	lo, hi := d.IntRange()
	switch {
	case math.IsNaN(v):
		return 0
	case d == U64 && v >= 1<<63:
		if v >= 1<<64 {
			return math.MaxUint64
		}
		return uint64(v)
	case d == U64:
		hi = math.MaxInt64
	}
	switch {
	case v <= float64(lo):
		return uint64(lo)
	case v >= float64(hi):
		return uint64(hi)
	}
	return uint64(int64(v))
}

// oddFloat is n with what does not fit 53 bits kept as an odd last bit, so that rounding the result again, to fewer bits, is as
// rounding n once.
func oddFloat(n int64) float64 {
	f := float64(n)
	if n > -1<<53 && n < 1<<53 {
		return f
	}
	u := uint64(n)
	if n < 0 {
		u = -u
	}
	drop := bits.Len64(u) - 53
	if lost := u & (1<<drop - 1); lost != 0 {
		u = u - lost | 1<<drop
	}
	return math.Copysign(float64(u), f)
}
