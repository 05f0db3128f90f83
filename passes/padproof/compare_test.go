package padproof

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"

	"tpuc/ir"
	"tpuc/ir/eval"
	"tpuc/ir/tensor"
)

// compare runs small on random inputs and large on the same ones filled up with NaN, 1e30 and 1 (integers with their least, their
// largest and 1), and reports the first result that does not begin with small's.
func compare(large, small *ir.Module, seed uint64, o eval.Options) error {
	rng := rand.New(rand.NewPCG(seed, 7))
	var inputs []*tensor.Tensor
	for _, p := range small.Func.Params {
		inputs = append(inputs, random(rng, p.Type))
	}
	want, err := eval.Run(small, inputs, o)
	if err != nil {
		return fmt.Errorf("small: %w", err)
	}
	for _, fill := range []float64{math.NaN(), 1e30, 1} {
		var padded []*tensor.Tensor
		for i, p := range large.Func.Params {
			padded = append(padded, fillUp(inputs[i], p.Type, fill))
		}
		got, err := eval.Run(large, padded, o)
		if err != nil {
			return fmt.Errorf("large: %w", err)
		}
		for i, x := range append(got.Outputs, got.Updates...) {
			y := append(want.Outputs, want.Updates...)[i]
			if !bytes.Equal(beginning(x, y.Type).Data, y.Data) {
				return fmt.Errorf("result %d of type %s is not the beginning of the one of type %s with %v in the padding", i, y.Type, x.Type, fill)
			}
		}
	}
	return nil
}

// random elements: floats in [-2, 2], integers 0 to 4.
func random(rng *rand.Rand, t tensor.Type) *tensor.Tensor {
	if t.DType.IsFloat() || t.DType.IsComplex() {
		v := make([]float64, t.Elements())
		for i := range v {
			v[i] = float64(rng.IntN(33)-16) / 8
		}
		if t.DType.IsComplex() {
			c := make([]complex128, len(v))
			for i := range c {
				c[i] = complex(v[i], v[len(v)-1-i])
			}
			return tensor.FromComplexes(t, c)
		}
		return tensor.FromFloats(t, v)
	}
	v := make([]int64, t.Elements())
	for i := range v {
		v[i] = int64(rng.IntN(5))
		if t.DType == tensor.Bool {
			v[i] &= 1
		}
	}
	return tensor.FromInts(t, v)
}

// fillUp is a tensor of type t that begins with x.
func fillUp(x *tensor.Tensor, t tensor.Type, fill float64) *tensor.Tensor {
	var one *tensor.Tensor
	switch {
	case t.DType == tensor.Bool:
		one = tensor.ScalarInt(t.DType, 1)
	case t.DType.IsInt():
		lo, hi := t.DType.IntRange()
		switch {
		case math.IsNaN(fill):
			hi = lo
		case fill == 1:
			hi = 1
		}
		one = tensor.ScalarInt(t.DType, hi)
	default:
		one = tensor.Scalar(t.DType, fill)
	}
	y := &tensor.Tensor{Type: t, Data: bytes.Repeat(one.Data, int(t.Elements()))}
	move(y, x, x.Dims, true)
	return y
}

// beginning is the part of x of type t.
func beginning(x *tensor.Tensor, t tensor.Type) *tensor.Tensor {
	y := tensor.Zeros(t)
	move(x, y, t.Dims, false)
	return y
}

// move copies the box of the given extents at the beginning of both, to large or to small.
func move(large, small *tensor.Tensor, dims []int64, toLarge bool) {
	size := int64(large.DType.Size())
	ls, ss := tensor.Strides(large.Dims), tensor.Strides(small.Dims)
	var visit func(d int, l, s int64)
	visit = func(d int, l, s int64) {
		if d == len(dims) {
			a, b := large.Data[l*size:(l+1)*size], small.Data[s*size:(s+1)*size]
			if toLarge {
				copy(a, b)
			} else {
				copy(b, a)
			}
			return
		}
		for i := range dims[d] {
			visit(d+1, l+i*ls[d], s+i*ss[d])
		}
	}
	visit(0, 0, 0)
}
