package pt2

import (
	"math"
	"math/cmplx"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// spacedRules make numbers at equal distances, or their powers, between ends that are numbers or 0-d tensors.
var spacedRules = map[string]rule{
	"linspace":               value(func(c *call) *ir.Value { return c.spaced(false) }),
	"linspace.Tensor_Tensor": value(func(c *call) *ir.Value { return c.spaced(false) }),
	"linspace.Tensor_Scalar": value(func(c *call) *ir.Value { return c.spaced(false) }),
	"linspace.Scalar_Tensor": value(func(c *call) *ir.Value { return c.spaced(false) }),
	"logspace":               value(func(c *call) *ir.Value { return c.spaced(true) }),
	"logspace.Tensor_Tensor": value(func(c *call) *ir.Value { return c.spaced(true) }),
	"logspace.Tensor_Scalar": value(func(c *call) *ir.Value { return c.spaced(true) }),
	"logspace.Scalar_Tensor": value(func(c *call) *ir.Value { return c.spaced(true) }),
}

// spaced is steps values from start to end, both included, counted from the nearer end as torch does
// (aten/src/ATen/native/cpu/RangeFactoriesKernel.cpp), or base to their powers. For integers the ends are cut to integers first and the values last.
func (c *call) spaced(powers bool) *ir.Value {
	start, end, n := c.operand("start"), c.operand("end"), c.int("steps")
	d := c.dtype("dtype", promote(floatResult(resultType(start)), floatResult(resultType(end))))
	if n < 0 || n > maxConstant {
		c.unsupported("%d steps", n)
	}
	for _, o := range []operand{start, end} {
		if len(o.dims()) > 0 {
			c.failf("an end is %s, wanted a number or a tensor of rank 0", o.x.Type)
		}
	}
	base := 0.0
	if powers {
		base = c.float("base")
	}
	if start.x == nil && end.x == nil {
		return op.Constant.Make(c.b, op.ConstantAttr{Value: spacedNumbers(d, start.s, end.s, n, powers, base)})
	}
	if n == 0 {
		return splat(c.b, d, intScalar(0), []int64{0})
	}
	work := wide(d)
	if !d.IsFloat() && !d.IsComplex() {
		work = tensor.F64
	}
	at := func(o operand) *ir.Value { // one step's power keeps the fraction of an integer's end
		v := c.materialize(o, promote(resultType(o), work), nil)
		if !powers || n > 1 {
			v = c.cast(v, d)
		}
		return op.BroadcastTo(c.b, c.cast(v, work), []int64{n})
	}
	f := fb{c.b, c}
	lo, hi := at(start), at(end)
	x := lo
	if n > 1 {
		step := op.Div.Make(c.b, f.sub(hi, lo), f.c(lo, float64(n-1)))
		i := counting(c.b, tensor.I64, []int64{n}, 0)
		back := op.Sub.Make(c.b, like(c.b, i, intScalar(n-1)), i)
		up, down := f.add(lo, f.mul(step, c.cast(i, work))), f.sub(hi, f.mul(step, c.cast(back, work)))
		x = op.Select.Make(c.b, compare(c.b, op.LT, i, like(c.b, i, intScalar(n/2))), up, down)
	}
	if powers {
		x = op.Pow.Make(c.b, f.c(x, base), x)
	}
	return c.cast(x, d)
}

// spacedNumbers are the values of spaced for ends that are numbers, in double precision.
func spacedNumbers(d tensor.DType, start, end scalar, n int64, powers bool, base float64) *tensor.Tensor {
	t := tensor.Make(d, n)
	if d.IsComplex() || start.kind == kindComplex || end.kind == kindComplex {
		lo, hi := start.complex(), end.complex()
		v := make([]complex128, n)
		for i := range v {
			v[i] = complex(spacedAt(real(lo), real(hi), int64(i), n), spacedAt(imag(lo), imag(hi), int64(i), n))
			if powers {
				v[i] = cmplx.Pow(complex(base, 0), v[i])
			}
		}
		return tensor.FromComplexes(t, v)
	}
	lo, hi := start.float(), end.float()
	whole := !d.IsFloat()
	if whole && (!powers || n > 1) {
		lo, hi = math.Trunc(lo), math.Trunc(hi)
	}
	v := make([]float64, n)
	for i := range v {
		v[i] = spacedAt(lo, hi, int64(i), n)
		if powers {
			v[i] = math.Pow(base, v[i])
		}
		if least, most := d.IntRange(); whole && !(v[i] > float64(least)-1 && v[i] < float64(most)+1) {
			v[i] = float64(least) // as a conversion gives on x86
		}
	}
	return tensor.FromFloats(t, v)
}

// spacedAt is the i-th of n values from lo to hi, from the nearer end.
func spacedAt(lo, hi float64, i, n int64) float64 {
	step := (hi - lo) / float64(max(n-1, 1))
	if i < n/2 || n == 1 {
		return lo + step*float64(i)
	}
	return hi - step*float64(n-1-i)
}

// complex is the number with its imaginary part.
func (s scalar) complex() complex128 {
	if s.kind == kindComplex {
		return complex(s.f, s.im)
	}
	return complex(s.float(), 0)
}
