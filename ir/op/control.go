package op

import (
	"fmt"
	"math"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// Helpers of operators that call functions.

// checkFunc reports as check id what keeps f, called as what, from taking arguments of the types in, and as check id+1 results other than
// out, where out is not nil.
func checkFunc(id int, what string, f *ir.Func, in, out []tensor.Type) error {
	switch {
	case f == nil:
		return fail(id, "no function %s", what)
	case !equalTypes(f.ParamTypes(), in):
		return fail(id, "%s takes %s, wanted %s", what, typeList(f.ParamTypes()), typeList(in))
	case out != nil && !equalTypes(f.ResultTypes(), out):
		return fail(id+1, "%s gives %s, wanted %s", what, typeList(f.ResultTypes()), typeList(out))
	}
	return nil
}

func equalTypes(a, b []tensor.Type) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].Equal(b[i]) {
			return false
		}
	}
	return true
}

// typeList is such as "(f32[2], i64[])".
func typeList(ts []tensor.Type) string {
	s := "("
	for i, t := range ts {
		if i > 0 {
			s += ", "
		}
		s += t.String()
	}
	return s + ")"
}

// funcCost is the work of one call of f.
func funcCost(f *ir.Func) int64 { return funcFlops(f, make(map[*ir.Func]int64)) }

// controlFlops is the work of n: of the costlier branch, or of one step of a loop, for how many there are depends on the data.
func controlFlops(n *ir.Node) int64 { return callFlops(n, make(map[*ir.Func]int64)) }

// funcFlops is funcCost with what is known of other functions: one may be called from many places and call others, so that a walk over
// all calls would not end.
func funcFlops(f *ir.Func, known map[*ir.Func]int64) (flops int64) {
	if flops, ok := known[f]; ok {
		return flops
	}
	for _, n := range f.Body {
		if len(n.Op.Funcs) > 0 {
			flops += callFlops(n, known)
		} else {
			flops += ir.CostOf(n).Flops
		}
		flops = min(flops, math.MaxInt64/4)
	}
	known[f] = flops
	return flops
}

// callFlops is controlFlops with what is known of functions.
func callFlops(n *ir.Node, known map[*ir.Func]int64) (flops int64) {
	for _, f := range n.Funcs() {
		if _, branch := n.Attr.(CondAttr); branch {
			flops = max(flops, funcFlops(f, known))
		} else {
			flops += funcFlops(f, known)
		}
	}
	return flops
}

// truth reads a bool scalar.
func truth(x *tensor.Tensor) bool { return x.Data[0] != 0 }

// maxSteps bounds the steps of a loop in the evaluator, which would not end where the loop does not.
const maxSteps = 1 << 20

func stepLimit() error { return fmt.Errorf("more than %d steps, wanted a loop that ends", maxSteps) }
