package op

import (
	"fmt"
	"slices"
	"strings"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// DotAttr is the attribute struct of Dot.
type DotAttr struct {
	Batch    [][]int64    `ir:"batch"`    // [lhs dims, rhs dims], or nothing
	Contract [][]int64    `ir:"contract"` // [lhs dims, rhs dims], or nothing
	Out      tensor.DType `ir:"out"`      // result dtype; invalid: that of the arguments
}

// Dot is a general dot product (StableHLO dot_general). The result's dimensions are the batch dimensions, the others of lhs, the
// others of rhs. Floats below f32 accumulate in f32; f32 is computed in full f32 precision on every target.
var Dot = define(Def[DotAttr]{
	Name: "dot", Doc: "Multiplies over contracted dimensions and sums.", Args: "lhs rhs",
	Infer: inferDot, Lower: lowerDot, Eval: evalDot, Cost: costDot,
})

// sides gives the lists for lhs and rhs, which are empty where the attribute is.
func sides(pair [][]int64) (lhs, rhs []int64) {
	if len(pair) == 2 {
		return pair[0], pair[1]
	}
	return nil, nil
}

// free are the dimensions of a rank in none of the lists.
func free(rank int, lists ...[]int64) []int64 {
	var out []int64
	for d := range int64(rank) {
		if !slices.ContainsFunc(lists, func(l []int64) bool { return slices.Contains(l, d) }) {
			out = append(out, d)
		}
	}
	return out
}

// inferDot checks dtypes in 1, 6 and 7, the dimension lists in 3 and 4, and extents in 2 and 5.
func inferDot(in []tensor.Type, a DotAttr) ([]tensor.Type, error) {
	l, r := in[0], in[1]
	if l.DType != r.DType {
		return nil, fail(1, "lhs is %s, rhs is %s, wanted one dtype", l.DType, r.DType)
	}
	if !numbers.has(l.DType) {
		return nil, fail(6, "dtype %s, wanted %s", l.DType, numbers)
	}
	lb, rb := sides(a.Batch)
	lc, rc := sides(a.Contract)
	for _, p := range [][][]int64{a.Batch, a.Contract} {
		if len(p) != 0 && (len(p) != 2 || len(p[0]) != len(p[1])) {
			return nil, fail(3, "dimension lists %v, wanted two of one length", p)
		}
	}
	for _, s := range []struct {
		name string
		rank int
		dims []int64
	}{{"lhs", l.Rank(), slices.Concat(lb, lc)}, {"rhs", r.Rank(), slices.Concat(rb, rc)}} {
		for i, d := range s.dims {
			if d < 0 || d >= int64(s.rank) || slices.Contains(s.dims[:i], d) {
				return nil, fail(4, "%s dimension %d is out of range or named twice", s.name, d)
			}
		}
	}
	for i := range lc {
		if l.Dims[lc[i]] != r.Dims[rc[i]] {
			return nil, fail(2, "contracted axes differ: lhs axis %d is %d, rhs axis %d is %d", lc[i], l.Dims[lc[i]], rc[i], r.Dims[rc[i]])
		}
	}
	var dims []int64
	for i := range lb {
		if l.Dims[lb[i]] != r.Dims[rb[i]] {
			return nil, fail(5, "batch axes differ: lhs axis %d is %d, rhs axis %d is %d", lb[i], l.Dims[lb[i]], rb[i], r.Dims[rb[i]])
		}
		dims = append(dims, l.Dims[lb[i]])
	}
	for _, d := range free(l.Rank(), lb, lc) {
		dims = append(dims, l.Dims[d])
	}
	for _, d := range free(r.Rank(), rb, rc) {
		dims = append(dims, r.Dims[d])
	}
	out, ok := summedDType(l.DType, a.Out)
	if !ok {
		return nil, fail(7, "result dtype %s for %s, wanted one of the same kind", out, l.DType)
	}
	return one(tensor.Make(out, dims...))
}

// summedDType is the dtype of sums of products of d: out, which must be of d's kind, or d where that is invalid.
func summedDType(d, out tensor.DType) (tensor.DType, bool) {
	if out == tensor.Invalid {
		out = d
	}
	return out, numbers.has(out) && d.IsFloat() == out.IsFloat() && d.IsInt() == out.IsInt()
}

// lowerDot leaves empty lists out of the attribute, as its printed form does.
func lowerDot(e ir.Emitter, n *ir.Node, a DotAttr) []ir.Ref {
	lb, rb := sides(a.Batch)
	lc, rc := sides(a.Contract)
	var parts []string
	if len(lb) > 0 {
		parts = append(parts, "lhs_batching_dimensions = "+list(lb), "rhs_batching_dimensions = "+list(rb))
	}
	if len(lc) > 0 {
		parts = append(parts, "lhs_contracting_dimensions = "+list(lc), "rhs_contracting_dimensions = "+list(rc))
	}
	attrs := []string{"dot_dimension_numbers = #stablehlo.dot<" + strings.Join(parts, ", ") + ">"}
	if d := n.Args[0].Type.DType; d == tensor.F32 || d == tensor.F64 || d.IsComplex() {
		attrs = append(attrs, highestPrecision)
	}
	return e.Emit(ir.HLO{Name: "stablehlo.dot_general", Args: refs(e, n), Attrs: attrs, Out: []tensor.Type{n.Outs[0].Type}})
}

// highestPrecision keeps f32 products in f32 where the hardware's own format is narrower (TPU: six bf16 passes).
const highestPrecision = "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]"

// list is such as "[1, 2]".
func list(v []int64) string { return strings.ReplaceAll(fmt.Sprint(v), " ", ", ") }

// evalDot sums in float64, complex128 or wrapping int64 and rounds to the result dtype once.
func evalDot(in []*tensor.Tensor, a DotAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
	l, r := in[0], in[1]
	lb, rb := sides(a.Batch)
	lc, rc := sides(a.Contract)
	// Element offsets of batch, free and contracted positions on each side: the product is a loop over three flat index sets.
	lf, rf := free(l.Rank(), lb, lc), free(r.Rank(), rb, rc)
	lB, rB := offsets(l.Dims, lb), offsets(r.Dims, rb)
	lF, rF := offsets(l.Dims, lf), offsets(r.Dims, rf)
	lC, rC := offsets(l.Dims, lc), offsets(r.Dims, rc)
	switch {
	case l.DType.IsFloat():
		x, y := l.Floats(), r.Floats()
		return result(tensor.FromFloats(out[0], contract(x, y, lB, rB, lF, rF, lC, rC)))
	case l.DType.IsComplex():
		return result(tensor.FromComplexes(out[0], contract(l.Complexes(), r.Complexes(), lB, rB, lF, rF, lC, rC)))
	}
	return result(tensor.FromInts(out[0], contract(l.Ints(), r.Ints(), lB, rB, lF, rF, lC, rC)))
}

// contract multiplies for each batch offset all free positions of both sides over the contracted ones.
func contract[T int64 | float64 | complex128](x, y []T, lB, rB, lF, rF, lC, rC []int64) []T {
	z := make([]T, 0, len(lB)*len(lF)*len(rF))
	k := len(lC)
	for b := range lB {
		rows, cols := pack(x, lB[b], lF, lC), pack(y, rB[b], rF, rC)
		for i := range lF {
			for j := range rF {
				z = append(z, dotProduct(rows[i*k:(i+1)*k], cols[j*k:(j+1)*k]))
			}
		}
	}
	return z
}

// pack copies the contracted elements of every free position one after another.
func pack[T any](x []T, base int64, free, contracted []int64) []T {
	out := make([]T, 0, len(free)*len(contracted))
	for _, f := range free {
		for _, c := range contracted {
			out = append(out, x[base+f+c])
		}
	}
	return out
}

// dotProduct adds four partial sums, which keeps the adder busy.
func dotProduct[T int64 | float64 | complex128](x, y []T) T {
	var a, b, c, d T
	y = y[:len(x)]
	for len(x) >= 4 {
		a += x[0] * y[0]
		b += x[1] * y[1]
		c += x[2] * y[2]
		d += x[3] * y[3]
		x, y = x[4:], y[4:]
	}
	for i, v := range x {
		a += v * y[i]
	}
	return a + b + (c + d)
}

// offsets are the row-major element offsets of every index over the named dimensions, the others at 0.
func offsets(dims, over []int64) []int64 {
	strides := tensor.Strides(dims)
	ext := make([]int64, len(over))
	for i, d := range over {
		ext[i] = dims[d]
	}
	var out []int64
	walk(ext, func(ix []int64) {
		at := int64(0)
		for i, d := range over {
			at += ix[i] * strides[d]
		}
		out = append(out, at)
	})
	return out
}

// costDot counts a multiplication and an addition for every product.
func costDot(n *ir.Node, a DotAttr) ir.Cost {
	lc, _ := sides(a.Contract)
	k := int64(1)
	for _, d := range lc {
		k *= n.Args[0].Type.Dims[d]
	}
	return ir.Cost{Flops: 2 * k * n.Outs[0].Type.Elements()}
}
