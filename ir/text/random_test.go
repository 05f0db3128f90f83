package text

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// Any attributes of any operator print to what reads back as the same attributes, and shape rules stand them: they give types or an
// error, whatever the arguments.
func TestRandomNodes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, o := range op.All {
		for round := range 3000 {
			m := &ir.Module{Func: &ir.Func{Name: "main"}}
			n := &ir.Node{Op: o}
			var types []tensor.Type
			count := rng.IntN(len(o.Args) + 2)
			common := randomType(rng)
			for range count {
				typ := common // many rules want equal types
				if rng.IntN(3) == 0 {
					typ = randomType(rng)
				}
				n.Args = append(n.Args, m.Func.AddParam(fmt.Sprint("p", len(types)), typ))
				types = append(types, typ)
			}
			if o.Attr != nil {
				v := reflect.New(o.Attr).Elem()
				for i := range v.NumField() {
					if rng.IntN(5) > 0 {
						randomValue(rng, v.Field(i), common)
					}
				}
				n.Attr = v.Interface()
			}
			require.NotPanics(t, func() {
				out, err := o.InferTypes(types, n.Attr)
				for i, typ := range out {
					require.NoError(t, err)
					n.Outs = append(n.Outs, &ir.Value{Type: typ, Def: n, Index: i})
				}
			}, "%s", Node(n))
			if round%10 > 0 { // the shape rules are fast, parsing is not
				continue
			}
			if len(n.Outs) == 0 {
				n.Outs = []*ir.Value{{Type: common, Def: n}}
			}
			m.Func.Body = []*ir.Node{n}
			once := Print(m)
			p := &parser{file: "random.tpu"}
			r := newResolver(p)
			lines := p.lines(once)
			for _, l := range lines {
				if l.ast.Func != nil {
					r.funcs[strconv.Quote(l.ast.Func.Name[1:])] = &ir.Func{Name: l.ast.Func.Name[1:]}
				}
			}
			r.cur = lines[len(lines)-3] // before return and the brace
			again, ok := r.attrs(o, r.cur.ast.Node)
			require.True(t, ok, "%s\n%v", once, p.errs)
			require.Equal(t, Attrs(n.Attr), Attrs(again), once)
		}
	}
}

func randomType(rng *rand.Rand) tensor.Type {
	all := tensor.DTypes()
	typ := tensor.Type{DType: all[rng.IntN(len(all))]}
	if rng.IntN(2) == 0 {
		typ.DType = tensor.F32
	}
	for range rng.IntN(6) {
		d := int64(rng.IntN(4))
		if rng.IntN(30) == 0 {
			d = 1 << rng.IntN(62)
		}
		typ.Dims = append(typ.Dims, d)
	}
	if typ.Check() != nil {
		return tensor.Make(typ.DType)
	}
	return typ
}

func randomValue(rng *rand.Rand, v reflect.Value, common tensor.Type) {
	switch v.Interface().(type) {
	case tensor.DType:
		v.Set(reflect.ValueOf(randomType(rng).DType))
		return
	case tensor.Type:
		v.Set(reflect.ValueOf(randomType(rng)))
		return
	case *ir.Func:
		f := &ir.Func{Name: fmt.Sprint("f", rng.Uint32())}
		f.Results = []*ir.Value{f.AddParam("x", common)}
		v.Set(reflect.ValueOf(f))
		return
	case *tensor.Tensor:
		typ := common
		if typ.Bytes() > 1<<10 {
			typ = tensor.Make(typ.DType)
		}
		x := tensor.Zeros(typ)
		for i := range x.Data {
			x.Data[i] = byte(rng.Uint32())
		}
		v.Set(reflect.ValueOf(x))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(rng.IntN(2) == 0)
	case reflect.Int64:
		n := int64(rng.IntN(6)) - 1
		switch rng.IntN(20) {
		case 0:
			n = math.MaxInt64 - n
		case 1:
			n = math.MinInt64 + n
		case 2:
			n = 1 << rng.IntN(63)
		}
		v.SetInt(n)
	case reflect.Float64:
		v.SetFloat([]float64{0.5, -1e-6, math.Inf(1), math.Inf(-1), math.NaN(), rng.NormFloat64(), math.Copysign(0, -1)}[rng.IntN(7)])
	case reflect.String:
		v.SetString([]string{"sum", "max", "eq", "set", "add", "ge", "two words", "\"quoted\"\n", "é", "f32", "nan"}[rng.IntN(11)])
	case reflect.Slice:
		n := rng.IntN(5)
		if rng.IntN(2) == 0 {
			n = common.Rank()
		}
		if v.Type().Elem().Kind() == reflect.Slice {
			n = rng.IntN(4)
		}
		s := reflect.MakeSlice(v.Type(), n, n)
		for i := range n {
			randomValue(rng, s.Index(i), common)
		}
		v.Set(s)
	default:
		panic(v.Type())
	}
}
