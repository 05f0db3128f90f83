package op_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir"
	"tpuc/ir/eval"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// Random applications of every operator, most of them wrong: the shape rule refuses or gives a type, and never panics. What it lets
// pass evaluates to that type, lowers, and as a composite decomposes to the same values.
func TestRandomApplications(t *testing.T) {
	for _, o := range op.All {
		t.Run(o.Name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(13, uint64(len(o.Name))))
			valid := 0
			for i := 0; i < 30000 && valid < 300; i++ {
				attr := randomAttr(r, o.Attr)
				args := randomArgs(r, o)
				if apply(t, o, attr, args) {
					valid++
				}
				if t.Failed() {
					return
				}
			}
			t.Logf("%d valid", valid)
		})
	}
}

func apply(t *testing.T, o *ir.Op, attr any, args []*tensor.Tensor) (valid bool) {
	var types []tensor.Type
	for _, a := range args {
		types = append(types, a.Type)
	}
	where := fmt.Sprintf("%s %+v of %v", o.Name, attr, types)
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s: panic: %v\n%s", where, p, debug.Stack())
		}
	}()
	out, err := o.InferTypes(types, attr)
	if err != nil {
		require.IsType(t, &ir.ShapeError{}, err)
		return false
	}
	for _, x := range out {
		if x.Elements() > 1<<16 {
			return true
		}
	}
	n := node(t, o, attr, args)
	if o.Control != nil { // random loops have no end
		e := &counter{values: map[*ir.Value]ir.Ref{}}
		require.Len(t, n.Op.Lower(e, n, attr), len(n.Outs), where)
		return true
	}
	got, err := eval.Node(n, args)
	require.NoError(t, err, where)
	if !o.Composite() {
		e := &counter{values: map[*ir.Value]ir.Ref{}}
		for _, r := range n.Op.Lower(e, n, attr) {
			require.NotEmpty(t, r.Name, where)
		}
		return true
	}
	for i, w := range runDecomposed(t, o, attr, args...) {
		requireClose(t, got[i], w, loose[w.DType], where)
	}
	return true
}

// loose tolerances: random values meet cancellation in norms.
var loose = map[tensor.DType]float64{tensor.F64: 1e-6, tensor.F32: 1e-3, tensor.F16: 1e-2, tensor.BF16: 6e-2, tensor.C64: 1e-4}

// counter is an emitter that only numbers values.
type counter struct {
	values map[*ir.Value]ir.Ref
	next   int
}

func (c *counter) Value(v *ir.Value) ir.Ref { return c.fresh(v.Type) }

func (c *counter) Emit(h ir.HLO) []ir.Ref {
	for _, region := range h.Regions {
		var args []ir.Ref
		for _, t := range region.Args {
			args = append(args, c.fresh(t))
		}
		region.Body(c, args)
	}
	var out []ir.Ref
	for _, t := range h.Out {
		out = append(out, c.fresh(t))
	}
	return out
}

func (c *counter) Call(f *ir.Func, _ []ir.Ref) []ir.Ref {
	var out []ir.Ref
	for _, r := range f.Results {
		out = append(out, c.fresh(r.Type))
	}
	return out
}

func (c *counter) fresh(t tensor.Type) ir.Ref {
	c.next++
	return ir.Ref{Name: fmt.Sprint("%", c.next), Type: t}
}

var (
	dtypesTried = []tensor.DType{tensor.F32, tensor.F32, tensor.F32, tensor.BF16, tensor.I32, tensor.I32, tensor.I64, tensor.Bool, tensor.U8, tensor.C64}
	wordsTried  = []string{"", "eq", "ne", "lt", "ge", "sum", "prod", "max", "min", "and", "or", "set", "nearest", "linear", "cubic_aa", "nothing"}
)

func randomType(r *rand.Rand) tensor.Type {
	return tensor.Make(dtypesTried[r.IntN(len(dtypesTried))], randomInts(r, 0, 4)...)
}

func randomInts(r *rand.Rand, lo, hi int) []int64 {
	v := make([]int64, r.IntN(5))
	for i := range v {
		v[i] = int64(lo + r.IntN(hi-lo+1))
	}
	return v
}

// randomArgs gives arguments that often share a type or a dtype.
func randomArgs(r *rand.Rand, o *ir.Op) []*tensor.Tensor {
	n := len(o.Args)
	if n > 0 && o.Args[n-1].Variadic {
		n += r.IntN(4) - 1
	} else if n > 0 && o.Args[n-1].Optional {
		n -= r.IntN(2)
	}
	var out []*tensor.Tensor
	for i := range n {
		t := randomType(r)
		if i > 0 {
			switch first := out[0].Type; r.IntN(4) {
			case 0, 1:
				t = first
			case 2:
				t.DType = first.DType
			}
		}
		out = append(out, random(r, t))
	}
	return out
}

// randomFunc is nil or gives some of its parameters, often bools.
func randomFunc(r *rand.Rand) *ir.Func {
	f := &ir.Func{Name: "f"}
	for range r.IntN(3) {
		typ := randomType(r)
		if r.IntN(2) == 0 {
			typ = tensor.Make(tensor.Bool)
		}
		f.Results = append(f.Results, f.AddParam("x", typ))
	}
	if r.IntN(10) == 0 {
		return nil
	}
	return f
}

func randomAttr(r *rand.Rand, t reflect.Type) any {
	if t == nil {
		return nil
	}
	v := reflect.New(t).Elem()
	for i := range t.NumField() {
		f := v.Field(i)
		switch f.Interface().(type) {
		case tensor.DType:
			f.Set(reflect.ValueOf(append(dtypesTried, tensor.Invalid)[r.IntN(len(dtypesTried)+1)]))
		case tensor.Type:
			f.Set(reflect.ValueOf(randomType(r)))
		case *ir.Func:
			f.Set(reflect.ValueOf(randomFunc(r)))
		case *tensor.Tensor:
			f.Set(reflect.ValueOf(random(r, randomType(r))))
		case []int64:
			f.Set(reflect.ValueOf(randomInts(r, -1, 3)))
		case []float64:
			f.Set(reflect.ValueOf([]float64{0.5, 1.7, 0}[:r.IntN(4)]))
		case [][]int64:
			f.Set(reflect.ValueOf([][]int64{randomInts(r, -1, 2), randomInts(r, -1, 2)}[:r.IntN(3)]))
		default:
			switch f.Kind() {
			case reflect.Int64:
				f.SetInt(int64(r.IntN(5) - 1))
			case reflect.Float64:
				f.SetFloat([]float64{0, 1e-5, 1, -1, nan}[r.IntN(5)])
			case reflect.Bool:
				f.SetBool(r.IntN(2) == 0)
			case reflect.String:
				f.SetString(wordsTried[r.IntN(len(wordsTried))])
			}
		}
	}
	return v.Interface()
}
