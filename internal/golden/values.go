package golden

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"strconv"
	"strings"

	"tpuc/ir"
	"tpuc/ir/eval"
	"tpuc/ir/tensor"
	"tpuc/ir/weight"
)

// Eval runs m on inputs and weights that depend on the seed alone: the value of a parameter on its place, of a weight on its source's
// name or digest, or on its symbol where it has none.
func Eval(m *ir.Module, seed uint64) (*eval.Result, error) {
	var inputs []*tensor.Tensor
	for i, p := range m.Func.Params {
		inputs = append(inputs, Random(p.Type, seed, strconv.Itoa(i)))
	}
	return eval.Run(m, inputs, eval.Options{Weights: func(w *ir.Weight) (*tensor.Tensor, error) {
		if w.Data != nil {
			return w.Data, nil
		}
		return contents(w, seed)
	}})
}

// contents evaluates w's source over a random leaf.
func contents(w *ir.Weight, seed uint64) (*tensor.Tensor, error) {
	switch leaf := weight.Leaf(w.Source).(type) {
	case weight.Tensor:
		return weight.Eval(w.Source, Random(leaf.T, seed, "@"+leaf.Name))
	case weight.Const:
		return weight.Eval(w.Source, Random(leaf.T, seed, "@"+leaf.Digest))
	}
	return Random(w.Value.Type, seed, "@"+w.Sym), nil
}

// Random is a tensor that depends on its type, the seed and the name. Floats are multiples of 1/8 in [-2, 2], which every float dtype but
// f8e5m2 holds exactly; integers are 0 to 4.
func Random(t tensor.Type, seed uint64, name string) *tensor.Tensor {
	h := fnv.New64a()
	h.Write([]byte(name))
	rng := rand.New(rand.NewPCG(seed, h.Sum64()))
	n := int(t.Elements())
	switch {
	case t.DType.IsComplex():
		v := make([]complex128, n)
		for i := range v {
			v[i] = complex(float64(rng.IntN(33)-16)/8, float64(rng.IntN(33)-16)/8)
		}
		return tensor.FromComplexes(t, v)
	case t.DType.IsFloat():
		v := make([]float64, n)
		for i := range v {
			v[i] = float64(rng.IntN(33)-16) / 8
		}
		return tensor.FromFloats(t, v)
	}
	most := 5
	if t.DType == tensor.Bool {
		most = 2
	}
	v := make([]int64, n)
	for i := range v {
		v[i] = int64(rng.IntN(most))
	}
	return tensor.FromInts(t, v)
}

// tolerances is the largest relative error between two ways of computing one value: some units in the last place of the dtype.
// The evaluator computes in float64 and rounds once an operator.
var tolerances = map[tensor.DType]float64{
	tensor.F8E4M3FN: 0.13, tensor.F8E5M2: 0.26, tensor.BF16: 0.016, tensor.F16: 0.002, tensor.F32: 2e-5, tensor.F64: 1e-9,
	tensor.C64: 2e-5, tensor.C128: 1e-9,
}

// Equivalent compares two runs: exactly for integers and bool, within the dtype's tolerance of the element or of the largest element
// for floats. NaN equals NaN.
func Equivalent(want, got *eval.Result) error {
	if len(want.Outputs) != len(got.Outputs) || len(want.Updates) != len(got.Updates) {
		return fmt.Errorf("%d outputs and %d updates, wanted %d and %d", len(got.Outputs), len(got.Updates), len(want.Outputs), len(want.Updates))
	}
	for i, w := range want.Outputs {
		if err := near(w, got.Outputs[i]); err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
	}
	for i, w := range want.Updates {
		if err := near(w, got.Updates[i]); err != nil {
			return fmt.Errorf("update %d: %w", i, err)
		}
	}
	return nil
}

// near compares two tensors of one type.
func near(want, got *tensor.Tensor) error {
	if !want.Type.Equal(got.Type) {
		return fmt.Errorf("%s, wanted %s", got.Type, want.Type)
	}
	tol, inexact := tolerances[want.DType]
	if !inexact {
		w, g := want.Ints(), got.Ints()
		for i := range w {
			if w[i] != g[i] {
				return fmt.Errorf("element %d is %d, wanted %d", i, g[i], w[i])
			}
		}
		return nil
	}
	w, g := want.Complexes(), got.Complexes()
	largest := 0.0
	for _, x := range w {
		if a := cmplx.Abs(x); a > largest && !math.IsInf(a, 0) {
			largest = a
		}
	}
	for i := range w {
		if !close(real(w[i]), real(g[i]), tol, largest) || !close(imag(w[i]), imag(g[i]), tol, largest) {
			return fmt.Errorf("element %d is %v, wanted %v", i, g[i], w[i])
		}
	}
	return nil
}

// close takes an absolute error relative to the largest element for those that cancellation made small.
func close(want, got, tol, largest float64) bool {
	switch {
	case math.IsNaN(want) || math.IsNaN(got):
		return math.IsNaN(want) && math.IsNaN(got)
	case math.IsInf(want, 0) || math.IsInf(got, 0):
		return want == got
	}
	return math.Abs(want-got) <= tol*max(math.Abs(want), 0.1*largest)
}

// maxShown is the number of elements that a want.eval section may have for one result.
const maxShown = 256

// Show is a run as want.eval holds it: a line for every output, then one for every update, floats to six digits.
func Show(m *ir.Module, r *eval.Result) (string, error) {
	var b strings.Builder
	line := func(prefix string, x *tensor.Tensor) error {
		if x.Elements() > maxShown {
			return fmt.Errorf("%s%s has more than %d elements to show: make the case smaller", prefix, x.Type, maxShown)
		}
		words := words(x)
		b.WriteString(prefix + x.Type.String() + " ")
		nest(&b, words, x.Dims)
		b.WriteByte('\n')
		return nil
	}
	for _, x := range r.Outputs {
		if err := line("", x); err != nil {
			return "", err
		}
	}
	for i, x := range r.Updates {
		prefix := "%" + m.Func.Updates[i].Target.Name + " = "
		if w := m.Func.Updates[i].Target.Weight; w != nil {
			prefix = "@" + w.Sym + " = "
		}
		if err := line(prefix, x); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// words are the elements in row-major order, floats to six digits.
func words(x *tensor.Tensor) []string {
	var out []string
	switch {
	case x.DType.IsComplex():
		for _, c := range x.Complexes() {
			out = append(out, strconv.FormatComplex(c, 'g', 6, 128))
		}
	case x.DType.IsFloat():
		for _, f := range x.Floats() {
			out = append(out, strconv.FormatFloat(f, 'g', 6, 64))
		}
	default:
		for _, n := range x.Ints() {
			switch x.DType {
			case tensor.Bool:
				out = append(out, strconv.FormatBool(n != 0))
			case tensor.U64:
				out = append(out, strconv.FormatUint(uint64(n), 10))
			default:
				out = append(out, strconv.FormatInt(n, 10))
			}
		}
	}
	return out
}

// nest writes words as lists nested by dims.
func nest(b *strings.Builder, words []string, dims []int64) {
	switch {
	case len(words) == 0:
		b.WriteString("[]")
		return
	case len(dims) == 0:
		b.WriteString(words[0])
		return
	}
	step := int64(len(words)) / dims[0]
	for i := range dims[0] {
		b.WriteString([]string{"[", ", "}[min(i, 1)])
		nest(b, words[i*step:(i+1)*step], dims[1:])
	}
	b.WriteByte(']')
}

// SameValues compares two texts of Show: everything but floats exactly, floats by the dtype's tolerance, so that a golden holds on
// machines whose float64 functions differ in the last place.
func SameValues(want, got string) bool {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	if len(w) != len(g) {
		return false
	}
	for i := range w {
		if w[i] != g[i] && !sameLine(w[i], g[i]) {
			return false
		}
	}
	return true
}

// sameLine compares element by element what is equal but for floats. Complex numbers are compared as bytes.
func sameLine(want, got string) bool {
	head, elems, ok := cutType(want)
	head2, elems2, ok2 := cutType(got)
	if !ok || !ok2 || head != head2 {
		return false
	}
	typ := head[strings.LastIndexByte(head, ' ')+1:]
	d, err := tensor.ParseDType(typ[:strings.IndexByte(typ, '[')])
	tol, inexact := tolerances[d]
	if err != nil || !inexact || d.IsComplex() {
		return false
	}
	sep := func(r rune) bool { return r == '[' || r == ']' || r == ',' || r == ' ' }
	w, g := strings.FieldsFunc(elems, sep), strings.FieldsFunc(elems2, sep)
	if len(w) != len(g) {
		return false
	}
	for i := range w {
		a, err := strconv.ParseFloat(w[i], 64)
		b, err2 := strconv.ParseFloat(g[i], 64)
		if err != nil || err2 != nil || !close(a, b, tol, 0) {
			return false
		}
	}
	return true
}

// cutType splits a line of Show behind the type.
func cutType(line string) (head, elems string, ok bool) {
	i := strings.Index(line, "] ")
	if i < 0 {
		return "", "", false
	}
	return line[:i+1], line[i+2:], true
}
