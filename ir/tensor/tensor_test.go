package tensor

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every bit pattern of the small formats decodes and encodes to itself; NaN stays NaN.
func TestSmallFloatRoundTrip(t *testing.T) {
	for _, d := range []DType{F8E4M3FN, F8E5M2, F16, BF16} {
		t.Run(d.String(), func(t *testing.T) {
			x := Zeros(Make(d, 1<<d.Bits()))
			for i := range 1 << d.Bits() {
				x.putUint(i, uint64(i))
			}
			v := x.Floats()
			y := FromFloats(x.Type, v)
			back := y.Floats()
			for i, f := range v {
				if math.IsNaN(f) != math.IsNaN(back[i]) || !math.IsNaN(f) && y.uint(i) != uint64(i) {
					t.Errorf("pattern %#x is %v, encoded %#x", i, f, y.uint(i))
				}
			}
		})
	}
}

// Between two neighbours the nearer one is taken, and half way the one with the even pattern.
func TestSmallFloatMidpoints(t *testing.T) {
	for _, c := range []struct {
		d      DType
		finite int // the pattern of the largest finite number
	}{{F8E4M3FN, 0x7e}, {F8E5M2, 0x7b}, {F16, 0x7bff}, {BF16, 0x7f7f}} {
		t.Run(c.d.String(), func(t *testing.T) {
			s := smallFloats[c.d]
			for i := range c.finite {
				lo, hi := s.decode(uint16(i)), s.decode(uint16(i+1))
				mid := lo + (hi-lo)/2 // exact: 12 significant bits at most
				even := uint16(i + i%2)
				require.Equal(t, even, s.encode(mid), "half way between %v and %v", lo, hi)
				require.Equal(t, uint16(i), s.encode(math.Nextafter(mid, 0)), "below half way between %v and %v", lo, hi)
				require.Equal(t, uint16(i+1), s.encode(math.Nextafter(mid, hi)), "above half way between %v and %v", lo, hi)
				if mid != 0 {
					sign := uint16(1) << (c.d.Bits() - 1)
					require.Equal(t, even|sign, s.encode(-mid))
				}
			}
		})
	}
}

func TestSmallFloatLimits(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		d        DType
		in, want float64
	}{
		{F16, 65519.99, 65504}, {F16, 65520, inf}, {F16, -1e9, -inf}, {F16, inf, inf}, {F16, nan, nan},
		{F16, 0x1p-25, 0}, {F16, 0x1.0001p-25, 0x1p-24}, {F16, 0x1p-1074, 0},
		{BF16, 3.3895313892515355e38, 3.3895313892515355e38}, {BF16, 3.4e38, inf}, {BF16, math.MaxFloat64, inf},
		{F8E5M2, 57344, 57344}, {F8E5M2, 61439, 57344}, {F8E5M2, 61440, inf},
		{F8E4M3FN, 448, 448}, {F8E4M3FN, 464, 448}, {F8E4M3FN, 465, nan}, {F8E4M3FN, inf, nan}, {F8E4M3FN, -inf, nan},
	} {
		got := FromFloats(Make(c.d), []float64{c.in}).Floats()[0]
		if math.IsNaN(c.want) {
			require.True(t, math.IsNaN(got), "%s of %v is %v", c.d, c.in, got)
			continue
		}
		require.Equal(t, c.want, got, "%s of %v", c.d, c.in)
	}
	require.True(t, math.Signbit(FromFloats(Make(F16), []float64{math.Copysign(0, -1)}).Floats()[0]), "a zero keeps its sign")
}

func TestFloatsToInts(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		d    DType
		in   float64
		want int64
	}{
		{I8, 1.9, 1}, {I8, -1.9, -1}, {I8, 127.5, 127}, {I8, 128, 127}, {I8, -129, -128}, {I8, inf, 127}, {I8, -inf, -128}, {I8, nan, 0},
		{I4, 9, 7}, {I4, -9, -8}, {U4, 16, 15}, {U8, -1, 0}, {U8, 300, 255},
		{I32, 1e10, math.MaxInt32}, {I64, 1e19, math.MaxInt64}, {I64, -1e19, math.MinInt64}, {I64, inf, math.MaxInt64},
		{U64, 1e19, int64(-8446744073709551616)}, {U64, 1e20, -1}, {U64, -1, 0},
		{Bool, 0.5, 1}, {Bool, nan, 1}, {Bool, math.Copysign(0, -1), 0},
	} {
		require.Equal(t, c.want, FromFloats(Make(c.d), []float64{c.in}).Ints()[0], "%s of %v", c.d, c.in)
	}
	require.Equal(t, int64(math.MaxInt64), FromFloats(Make(F64), []float64{1e30}).Ints()[0])
}

func TestIntsWrap(t *testing.T) {
	for _, c := range []struct {
		d        DType
		in, want int64
	}{
		{I8, 128, -128}, {U8, -1, 255}, {I4, 8, -8}, {U4, -1, 15}, {I16, 1 << 16, 0}, {U32, -1, math.MaxUint32}, {I64, math.MinInt64, math.MinInt64},
		{U64, -1, -1}, {Bool, 2, 1}, {Bool, -1, 1},
	} {
		require.Equal(t, c.want, FromInts(Make(c.d), []int64{c.in}).Ints()[0], "%s of %d", c.d, c.in)
	}
}

// An integer becomes a float in one rounding, whatever its size: checked against big.Float.
func TestIntsRoundOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	precision := map[DType]uint{F64: 53, F32: 24, BF16: 8}
	for _, d := range []DType{F64, F32, BF16} {
		for range 20000 {
			n := int64(r.Uint64()) >> r.IntN(64)
			if r.IntN(2) == 0 { // a tie of this precision, or one off it
				n = int64(1)<<62 + int64(1)<<(62-precision[d]) + int64(r.IntN(3)-1)
			}
			want, _ := new(big.Float).SetPrec(precision[d]).SetMode(big.ToNearestEven).SetInt64(n).Float64()
			require.Equal(t, want, FromInts(Make(d), []int64{n}).Floats()[0], "%s of %d", d, n)
		}
	}
}

func TestAccessors(t *testing.T) {
	require.Equal(t, []complex128{1 - 2i, 0}, FromComplexes(Make(C64, 2), []complex128{1 - 2i, 0}).Complexes())
	require.Equal(t, []complex128{0.1 - 2i}, FromComplexes(Make(C128, 1), []complex128{0.1 - 2i}).Complexes())
	require.Equal(t, []float64{3}, FromComplexes(Make(C128, 1), []complex128{3 + 4i}).Floats())
	require.Equal(t, []complex128{3}, FromFloats(Make(C64, 1), []float64{3}).Complexes())
	require.Equal(t, []float64{18446744073709551615}, FromInts(Make(U64, 1), []int64{-1}).Floats())
	require.Equal(t, int64(1)<<62+1, ScalarInt(I64, 1<<62+1).Ints()[0])
	require.Equal(t, []float64{-1}, Scalar(BF16, -1).Floats())
	require.Equal(t, []int64{-1}, Scalar(I8, -1).Ints())
	require.Empty(t, Zeros(Make(F32, 0, 3)).Floats())
}

func TestSplat(t *testing.T) {
	s, ok := FromFloats(Make(F32, 2, 2), []float64{5, 5, 5, 5}).Splat()
	require.True(t, ok)
	require.Equal(t, "f32[] 5", s.String()+" "+big.NewFloat(s.Floats()[0]).String())
	for _, x := range []*Tensor{
		FromFloats(Make(F32, 2), []float64{0, math.Copysign(0, -1)}),
		FromInts(Make(I32, 2), []int64{0x01020304, 0x01020305}),
		Zeros(Make(F32, 0)),
	} {
		_, ok := x.Splat()
		require.False(t, ok, "%v", x.Floats())
	}
}

func TestNew(t *testing.T) {
	x, err := New(Make(I16, 2), []byte{1, 0, 255, 255})
	require.NoError(t, err)
	require.Equal(t, []int64{1, -1}, x.Ints())
	_, err = New(Make(I16, 2), []byte{1})
	require.EqualError(t, err, "1 bytes for i16[2], wanted 4")
	_, err = New(Make(I16, -2), nil)
	require.EqualError(t, err, "dimension 0 is -2, wanted 0 or more")
	_, err = New(Make(I16, math.MaxInt64, 2), nil)
	require.ErrorContains(t, err, "more bytes than an int64 holds")
}

func TestTypeText(t *testing.T) {
	for _, d := range DTypes() {
		for _, dims := range [][]int64{nil, {0}, {2, 3}} {
			typ := Make(d, dims...)
			back, err := ParseType(typ.String())
			require.NoError(t, err)
			require.True(t, typ.Equal(back), "%s", typ)
		}
	}
	require.Equal(t, "tensor<2x3xbf16>", Make(BF16, 2, 3).MLIR())
	require.Equal(t, "tensor<complex<f32>>", Make(C64).MLIR())
	for _, s := range []string{"", "f32", "f32[", "f33[1]", "f32[x]", "f32[-1]", "f32[1,]", "invalid[]", "f32[9223372036854775807,4]"} {
		_, err := ParseType(s)
		require.Error(t, err, "%q", s)
	}
}

func TestStrides(t *testing.T) {
	require.Equal(t, []int64{12, 4, 1}, Strides([]int64{2, 3, 4}))
	require.Equal(t, []int64{4, 4, 1}, Strides([]int64{2, 0, 4}), "an empty dimension does not make strides vanish")
}

func TestGather(t *testing.T) {
	data := []byte{0, 1, 2, 3, 4, 5}
	for _, c := range []struct {
		offset  int64
		dims    []int64
		strides []int64
		want    []byte
	}{
		{0, []int64{3, 2}, []int64{1, 3}, []byte{0, 3, 1, 4, 2, 5}},                         // a transpose
		{1, []int64{2, 2}, []int64{3, 1}, []byte{1, 2, 4, 5}},                               // runs of two
		{5, []int64{6}, []int64{-1}, []byte{5, 4, 3, 2, 1, 0}},                              // backwards
		{2, []int64{2, 1, 2}, []int64{0, 7, 0}, []byte{2, 2, 2, 2}},                         // repeated
		{1, []int64{3, 2, 2}, []int64{0, 2, 1}, []byte{1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}}, // runs repeated
		{0, []int64{2, 5}, []int64{3, 0}, []byte{0, 0, 0, 0, 0, 3, 3, 3, 3, 3}},             // elements repeated
		{9, []int64{2, 0}, []int64{1, 1}, []byte{}},                                         // empty, wherever it lies
		{4, nil, nil, []byte{4}},                                                            // one element
	} {
		x := Gather(Make(U8, c.dims...), data, c.offset, c.strides)
		require.Equal(t, c.want, x.Data, "%v", c)
		require.Equal(t, c.dims, x.Dims)
	}
	require.Equal(t, []float64{2, 1}, Gather(Make(F64, 2), FromFloats(Make(F64, 2), []float64{1, 2}).Data, 1, []int64{-1}).Floats())
}

func FuzzParseType(f *testing.F) {
	for _, s := range []string{"f32[2,3]", "bf16[]", "i4[0]", "f8e4m3fn[1]", "", "f32", "f32[", "f32[]x", "f32[-1]", "f32[2,]", "f32[,2]", "f99[2]", "f32[9223372036854775808]",
		"f64[4294967296,4294967296]", "u1[01]", "f32[ 2]", "c64[2][3]", "f32[1" + strings.Repeat(",1", 64) + "]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		typ, err := ParseType(s)
		if err != nil {
			return
		}
		require.NoError(t, typ.Check())
		again, err := ParseType(typ.String())
		require.NoError(t, err)
		require.True(t, typ.Equal(again), "%s", typ)
	})
}
