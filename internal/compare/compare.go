// Package compare says whether a tensor equals a reference closely enough, and where it does not. It reads no files and prints nothing.
package compare

import (
	"fmt"
	"math"
	"math/cmplx"
	"strconv"

	"tpuc/ir/tensor"
)

// Tolerance bounds the difference of floats and complex numbers. Integers and bool are always compared exactly.
type Tolerance struct {
	// RelToMax bounds every difference by RelToMax * (1 + max|want|), the maximum being over the finite elements of the whole tensor.
	RelToMax float64
	// Elementwise bounds the difference of each element by Atol + Rtol*|want| instead, as numpy.allclose does.
	Elementwise bool
	Rtol, Atol  float64
}

// defaults are ten times the noise that one precision shows against the next over a model, at least.
var defaults = map[tensor.DType]float64{
	tensor.F64: 2e-5, tensor.F32: 2e-5, tensor.C64: 2e-5, tensor.C128: 2e-5, tensor.BF16: 2e-2, tensor.F16: 2e-2,
	tensor.F8E4M3FN: 0.13, tensor.F8E5M2: 0.26, // one unit in the last place, doubled
}

// Default is the tolerance of a dtype where the user gives none.
func Default(d tensor.DType) Tolerance { return Tolerance{RelToMax: defaults[d]} }

// Result is the outcome of one comparison. Its numbers are finite.
type Result struct {
	OK      bool    `json:"ok"`
	Problem string  `json:"problem,omitempty"` // what no element shows: types differ
	Worst   []int64 `json:"worst,omitempty"`   // index of the worst element; nil for a tensor without elements and an empty index for a scalar
	Got     string  `json:"got,omitempty"`     // the worst element
	Want    string  `json:"want,omitempty"`
	Limit   float64 `json:"limit"`   // of the difference at the worst element; 0: exact
	MaxAbs  float64 `json:"max_abs"` // largest |got-want| of finite elements
	RelL2   float64 `json:"rel_l2"`  // |got-want| / |want| over finite elements, Euclidean norms; |got-want| where |want| is 0
	Failed  int64   `json:"failed"`  // elements beyond their limit, or not finite on one side only
}

// Compare compares got with the reference want. NaN equals NaN and an infinity equals itself; any other difference that is not finite fails.
func Compare(got, want *tensor.Tensor, tol Tolerance) Result {
	problem := Types(got.Type, want.Type)
	switch {
	case problem != "":
		return Result{Problem: problem}
	case int64(len(got.Data)) != got.Bytes() || int64(len(want.Data)) != want.Bytes():
		return Result{Problem: fmt.Sprintf("%d and %d bytes, wanted %d", len(got.Data), len(want.Data), got.Bytes())}
	case got.DType.IsComplex():
		return complexes(got, want, tol)
	case got.DType.IsFloat():
		return floats(got, want, tol)
	}
	return integers(got, want)
}

// Types says how the types of two tensors differ that are to be compared; nothing where they do not.
func Types(got, want tensor.Type) string {
	if got.Equal(want) {
		return ""
	}
	return fmt.Sprintf("it is %s, wanted %s", got, want)
}

func floats(got, want *tensor.Tensor, tol Tolerance) Result {
	g, w := got.Floats(), want.Floats()
	s := scan{tol: tol}
	for _, x := range w {
		s.reference(math.Abs(x))
	}
	for i := range w {
		same := g[i] == w[i] || math.IsNaN(g[i]) && math.IsNaN(w[i])
		s.element(i, same, math.Abs(g[i]-w[i]), math.Abs(w[i]))
	}
	return s.result(want.Type, func(i int) (string, string) { return number(g[i]), number(w[i]) })
}

func complexes(got, want *tensor.Tensor, tol Tolerance) Result {
	g, w := got.Complexes(), want.Complexes()
	s := scan{tol: tol}
	for _, x := range w {
		s.reference(cmplx.Abs(x))
	}
	for i := range w {
		// Parts are compared, not absolute values: 1+NaN*i and NaN+1i are different patterns.
		same := samePart(real(g[i]), real(w[i])) && samePart(imag(g[i]), imag(w[i]))
		diff := math.NaN()
		if samePattern(real(g[i]), real(w[i])) && samePattern(imag(g[i]), imag(w[i])) {
			diff = math.Hypot(partDiff(real(g[i]), real(w[i])), partDiff(imag(g[i]), imag(w[i])))
		}
		s.element(i, same, diff, cmplx.Abs(w[i]))
	}
	return s.result(want.Type, func(i int) (string, string) { return complexNumber(g[i]), complexNumber(w[i]) })
}

// integers compares exactly.
func integers(got, want *tensor.Tensor) Result {
	g, w := got.Ints(), want.Ints()
	unsigned := want.DType == tensor.U64
	s := scan{}
	for i := range w {
		a, b := g[i], w[i]
		less := a < b
		if unsigned {
			less = uint64(a) < uint64(b)
		}
		if less {
			a, b = b, a
		}
		ref := math.Abs(float64(w[i]))
		if unsigned {
			ref = float64(uint64(w[i]))
		}
		s.element(i, g[i] == w[i], float64(uint64(a)-uint64(b)), ref)
	}
	return s.result(want.Type, func(i int) (string, string) { return integer(g[i], want.DType), integer(w[i], want.DType) })
}

// scan goes over the elements once and remembers the worst.
type scan struct {
	tol      Tolerance
	largest  float64 // |want| over finite elements
	n        int
	worst    int     // -1 before any
	excess   float64 // of the worst: difference over limit, infinite where the patterns differ
	limit    float64 // of the worst
	failed   int64
	maxAbs   float64
	diffNorm norm
	wantNorm norm
}

// reference takes |want| of one element.
func (s *scan) reference(abs float64) {
	if !math.IsInf(abs, 0) && !math.IsNaN(abs) {
		s.largest = max(s.largest, abs)
	}
}

// element takes one element: whether both sides are the same, |got-want|, and |want|.
func (s *scan) element(i int, same bool, diff, abs float64) {
	limit := s.tol.RelToMax * (1 + s.largest)
	if s.tol.Elementwise {
		limit = s.tol.Atol + s.tol.Rtol*abs
	}
	finite := !math.IsNaN(diff) && !math.IsInf(diff, 0)
	excess := 0.0
	switch {
	case same:
	case !finite:
		excess = math.Inf(1)
	case limit > 0:
		excess = diff / limit
	default:
		excess = max(diff*math.MaxFloat32, 2) // no difference is allowed: above 1, the larger the worse
	}
	if excess > 1 {
		s.failed++
	}
	if finite && !math.IsInf(abs, 0) {
		if !same {
			s.maxAbs = max(s.maxAbs, diff)
			s.diffNorm.add(diff)
		}
		s.wantNorm.add(abs)
	}
	if s.n == 0 || excess > s.excess {
		s.worst, s.excess, s.limit = i, excess, limit
	}
	s.n++
}

func (s *scan) result(t tensor.Type, show func(i int) (got, want string)) Result {
	r := Result{OK: s.failed == 0, MaxAbs: s.maxAbs, Failed: s.failed}
	if s.n == 0 {
		return r
	}
	r.Worst = index(s.worst, t.Dims)
	r.Got, r.Want = show(s.worst)
	if !math.IsInf(s.limit, 0) && !math.IsNaN(s.limit) {
		r.Limit = s.limit
	}
	r.RelL2 = s.diffNorm.value()
	if w := s.wantNorm.value(); w > 0 {
		r.RelL2 = s.diffNorm.over(s.wantNorm)
	}
	return r
}

// norm is a Euclidean norm that does not overflow: scale^2 * sum, as in BLAS nrm2.
type norm struct{ scale, sum float64 }

func (n *norm) add(x float64) {
	switch {
	case x == 0:
	case x > n.scale:
		n.sum = 1 + n.sum*(n.scale/x)*(n.scale/x)
		n.scale = x
	default:
		n.sum += (x / n.scale) * (x / n.scale)
	}
}

func (n *norm) value() float64 { return min(n.scale*math.Sqrt(n.sum), math.MaxFloat64) }

func (n *norm) over(m norm) float64 {
	return min(n.scale/m.scale*math.Sqrt(n.sum/m.sum), math.MaxFloat64)
}

func samePart(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

// samePattern reports two finite parts, or two that are the same.
func samePattern(a, b float64) bool {
	return samePart(a, b) || !math.IsNaN(a-b) && !math.IsInf(a, 0) && !math.IsInf(b, 0)
}

func partDiff(a, b float64) float64 {
	if samePart(a, b) {
		return 0
	}
	return a - b
}

// index is the coordinates of element i of a row-major tensor.
func index(i int, dims []int64) []int64 {
	out := make([]int64, len(dims))
	for d := len(dims) - 1; d >= 0; d-- {
		out[d] = int64(i) % dims[d]
		i /= int(dims[d])
	}
	return out
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', 9, 64) }

func complexNumber(x complex128) string { return strconv.FormatComplex(x, 'g', 9, 128) }

func integer(n int64, d tensor.DType) string {
	switch d {
	case tensor.Bool:
		return strconv.FormatBool(n != 0)
	case tensor.U64:
		return strconv.FormatUint(uint64(n), 10)
	}
	return strconv.FormatInt(n, 10)
}
