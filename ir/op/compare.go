package op

import (
	"cmp"
	"strings"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// CompareDir is a comparison.
type CompareDir string

// Comparisons.
const (
	EQ CompareDir = "eq"
	NE CompareDir = "ne"
	LT CompareDir = "lt"
	LE CompareDir = "le"
	GT CompareDir = "gt"
	GE CompareDir = "ge"
)

// CompareAttr is the attribute struct of Compare.
type CompareAttr struct {
	Dir CompareDir `ir:"dir"`
}

// Compare compares two tensors of one type (StableHLO compare, aten::eq and its kin); the result is bool of their shape.
// Every comparison with NaN is false, but ne, which is true. Complex numbers know eq and ne only.
var Compare = define(Def[CompareAttr]{
	Name: "compare", Doc: "Compares two tensors of one type elementwise.", Args: "x y",
	Traits: ir.Elementwise | ir.Exact,
	Infer:  inferCompare, Lower: lowerCompare, Eval: evalCompare,
})

// inferCompare checks the word in 1, equal types in 2 and the order of complex numbers in 3.
func inferCompare(in []tensor.Type, a CompareAttr) ([]tensor.Type, error) {
	switch a.Dir {
	case EQ, NE:
	case LT, LE, GT, GE:
		if in[0].DType.IsComplex() {
			return nil, fail(3, "%s of %s, wanted eq or ne for complex numbers", a.Dir, in[0].DType)
		}
	default:
		return nil, fail(1, "dir %q, wanted eq, ne, lt, le, gt or ge", string(a.Dir))
	}
	if !in[1].Equal(in[0]) {
		return nil, fail(2, "argument 1 is %s, wanted %s as argument 0", in[1], in[0])
	}
	return one(in[0].WithDType(tensor.Bool))
}

func lowerCompare(e ir.Emitter, n *ir.Node, a CompareAttr) []ir.Ref {
	return []ir.Ref{emitCompare(e, a.Dir, e.Value(n.Args[0]), e.Value(n.Args[1]))}
}

// emitCompare emits a comparison of two values of one type.
func emitCompare(e ir.Emitter, dir CompareDir, x, y ir.Ref) ir.Ref {
	kind := "SIGNED"
	switch d := x.Type.DType; {
	case d.IsFloat() || d.IsComplex():
		kind = "FLOAT"
	case d.IsUnsigned() || d == tensor.Bool:
		kind = "UNSIGNED"
	}
	return e.Emit(ir.HLO{Name: "stablehlo.compare", Args: []ir.Ref{x, y}, Attrs: []string{
		"comparison_direction = #stablehlo<comparison_direction " + strings.ToUpper(string(dir)) + ">",
		"compare_type = #stablehlo<comparison_type " + kind + ">",
	}, Out: []tensor.Type{x.Type.WithDType(tensor.Bool)}})[0]
}

// evalCompare compares in a type that holds every element exactly.
func evalCompare(in []*tensor.Tensor, a CompareAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
	x, y := in[0], in[1]
	z := tensor.Zeros(out[0])
	switch d := x.DType; {
	case d.IsFloat():
		compareInto(z.Data, x.Floats(), y.Floats(), a.Dir)
	case d.IsComplex():
		w := y.Complexes()
		for i, c := range x.Complexes() {
			if (c == w[i]) == (a.Dir == EQ) {
				z.Data[i] = 1
			}
		}
	case d == tensor.U64:
		compareInto(z.Data, unsigned(x), unsigned(y), a.Dir)
	default:
		compareInto(z.Data, x.Ints(), y.Ints(), a.Dir)
	}
	return result(z)
}

// compareInto writes 1 where the comparison holds. Go compares NaN as IEEE 754 does.
func compareInto[T cmp.Ordered](z []byte, x, y []T, dir CompareDir) {
	for i := range z {
		var is bool
		switch dir {
		case EQ:
			is = x[i] == y[i]
		case NE:
			is = x[i] != y[i]
		case LT:
			is = x[i] < y[i]
		case LE:
			is = x[i] <= y[i]
		case GT:
			is = x[i] > y[i]
		case GE:
			is = x[i] >= y[i]
		}
		if is {
			z[i] = 1
		}
	}
}

// unsigned are the elements of a u64 tensor.
func unsigned(x *tensor.Tensor) []uint64 {
	v := x.Ints()
	out := make([]uint64, len(v))
	for i, n := range v {
		out[i] = uint64(n)
	}
	return out
}
