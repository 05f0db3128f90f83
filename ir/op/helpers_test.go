package op_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir"
	"tpuc/ir/eval"
	"tpuc/ir/tensor"
)

// types parses tensor types.
func typ(s string) tensor.Type {
	t, err := tensor.ParseType(s)
	if err != nil {
		panic(err)
	}
	return t
}

// fl and in are tensors of a type and its elements.
func fl(t string, v ...float64) *tensor.Tensor { return tensor.FromFloats(typ(t), v) }
func in(t string, v ...int64) *tensor.Tensor   { return tensor.FromInts(typ(t), v) }

// node applies an operator to fresh parameters of the arguments' types.
func node(t testing.TB, o *ir.Op, attr any, args []*tensor.Tensor) *ir.Node {
	t.Helper()
	b := &ir.Builder{}
	vals := make([]*ir.Value, len(args))
	for i, a := range args {
		vals[i] = &ir.Value{Type: a.Type, Index: i}
	}
	var err error
	func() {
		defer ir.Recover(nil, &err)
		b.Build(o, attr, vals...)
	}()
	require.NoError(t, err)
	return b.Body[0]
}

// run evaluates an operator, its evaluator where it has one, and checks that the arguments stay as they are.
func run(t testing.TB, o *ir.Op, attr any, args ...*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	var before [][]byte
	for _, a := range args {
		before = append(before, append([]byte{}, a.Data...))
	}
	outs, err := eval.Node(node(t, o, attr, args), args)
	require.NoError(t, err)
	for i, a := range args {
		require.Equal(t, before[i], append([]byte{}, a.Data...), "%s changed argument %d", o.Name, i)
	}
	return outs
}

// runDecomposed evaluates a composite by its decomposition into primitives, all the way down.
func runDecomposed(t testing.TB, o *ir.Op, attr any, args ...*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	plain := *o
	plain.Eval = nil
	n := node(t, &plain, attr, args)
	b := &ir.Builder{}
	roots := o.Decompose(b, n, attr)
	for i, r := range roots {
		require.True(t, r.Type.Equal(n.Outs[i].Type), "%s decomposes to %s, wanted %s", o.Name, r.Type, n.Outs[i].Type)
	}
	for _, d := range b.Body {
		for _, v := range append(d.Args, d.Outs...) {
			wide := v.Type.DType == tensor.F64
			for _, a := range args {
				wide = wide && a.DType != tensor.F64
			}
			require.False(t, wide, "the decomposition of %s without f64 arguments computes %s in f64", o.Name, d.Op.Name)
		}
	}
	outs, err := eval.Node(n, args)
	require.NoError(t, err)
	return outs
}

// infer gives the error of a shape rule.
func infer(o *ir.Op, attr any, args ...string) error {
	types := make([]tensor.Type, len(args))
	for i, a := range args {
		types[i] = typ(a)
	}
	_, err := o.InferTypes(types, attr)
	return err
}

// random gives normal floats, or small integers.
func random(r *rand.Rand, t tensor.Type) *tensor.Tensor {
	v := make([]float64, t.Elements())
	for i := range v {
		v[i] = r.NormFloat64()
		if !t.DType.IsFloat() {
			v[i] = math.Floor(v[i] * 4)
		}
	}
	if t.DType.IsComplex() {
		c := make([]complex128, len(v))
		for i := range c {
			c[i] = complex(v[i], r.NormFloat64())
		}
		return tensor.FromComplexes(t, c)
	}
	if t.DType.IsUnsigned() || t.DType == tensor.Bool {
		for i := range v {
			v[i] = math.Abs(v[i])
		}
	}
	return tensor.FromFloats(t, v)
}

// tolerances are relative to the magnitude of the reference, plus one; integers are exact.
var tolerances = map[tensor.DType]float64{tensor.F64: 1e-12, tensor.F32: 3e-6, tensor.F16: 3e-3, tensor.BF16: 2e-2, tensor.C64: 3e-6}

// requireClose compares tensors: the same type, the same non-finite elements, the others within a tolerance.
func requireClose(t testing.TB, want, got *tensor.Tensor, tolerance float64, msg string) {
	t.Helper()
	require.True(t, want.Type.Equal(got.Type), "%s: type %s, wanted %s", msg, got.Type, want.Type)
	if !want.DType.IsFloat() && !want.DType.IsComplex() {
		require.Equal(t, want.Ints(), got.Ints(), msg)
		return
	}
	w, g := want.Complexes(), got.Complexes()
	for i := range w {
		for _, p := range [][2]float64{{real(w[i]), real(g[i])}, {imag(w[i]), imag(g[i])}} {
			a, b := p[0], p[1]
			same := a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= tolerance*(1+math.Abs(a))
			require.True(t, same, "%s: element %d is %v, wanted %v", msg, i, g[i], w[i])
		}
	}
}
