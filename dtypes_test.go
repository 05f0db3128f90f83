package tpuc_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
	"tpuc/ir/text"
	"tpuc/tpu/pjrt"
	"tpuc/tpu/plugin"
)

// unary and binary stand for the elementwise operators of one and two arguments; NAME is the operator.
const (
	unary  = "%0 = NAME %x : T[2,6]"
	binary = "%0 = NAME %x, %y : T[2,6]"
)

// dtypeTemplates holds an application of every operator, by its name or that and a word more; T is a dtype, C its complex type.
// The parameters are %x and %y, T[2,6], %i, i32[], %n, i32[3], and %m, T[2,2,3]; results are numbered.
var dtypeTemplates = map[string]string{
	"abs": unary, "add": binary, "and": binary, "atan2": binary, "cbrt": unary, "ceil": unary, "complex": "%0 = complex %x, %y : C[2,6]", "cos": unary, "count_leading_zeros": unary,
	"digamma": unary, "div": binary, "erf": unary, "erf_inv": unary, "exp": unary, "expm1": unary, "floor": unary, "imag": "%0 = imag %x : R[2,6]",
	"is_finite": "%0 = is_finite %x : bool[2,6]", "lgamma": unary, "log": unary, "log1p": unary, "maximum": binary, "minimum": binary, "mul": binary,
	"neg": unary, "next_after": binary, "not": unary, "or": binary, "popcnt": unary, "pow": binary, "real": "%0 = real %x : R[2,6]", "rem": binary,
	"round": unary, "rsqrt": unary, "shift_left": binary, "shift_right": binary, "sigmoid": unary, "sign": unary, "sin": unary, "sqrt": unary,
	"sub": binary, "tan": unary, "tanh": unary, "xor": binary, "barrier": unary,
	"bitcast":              "%0 = bitcast %x {to=T} : T[2,6]",
	"broadcast":            "%0 = broadcast %x {shape=[3,2,6], dims=[1,2]} : T[3,2,6]",
	"compare":              "%0 = compare %x, %y {dir=lt} : bool[2,6]\n  %1 = compare %x, %y {dir=eq} : bool[2,6]",
	"concat":               "%0 = concat %x, %y {axis=1} : T[2,12]",
	"conv":                 "%0 = conv %m, %m {strides=[1], padding=[[1,1]], lhs_dilation=[1], rhs_dilation=[1], groups=1} : T[2,2,3]",
	"convert":              "%0 = convert %n {to=T} : T[3]\n  %1 = convert %0 {to=f32} : f32[3]",
	"dot":                  "%0 = dot %x, %y {contract=[[1],[1]]} : T[2,2]",
	"dynamic_slice":        "%0 = dynamic_slice %x, %i, %i {sizes=[1,3]} : T[1,3]",
	"dynamic_update_slice": "%0 = slice %y {start=[0,1], limit=[1,4], stride=[1,1]} : T[1,3]\n  %1 = dynamic_update_slice %x, %0, %i, %i : T[2,6]",
	"fft":                  "%0 = fft %x {kind=fft, length=[6]} : T[2,6]",
	"gather":               "%0 = gather %x, %n {offset_dims=[0], collapsed_slice_dims=[1], start_index_map=[1], index_vector_dim=1, slice_sizes=[2,1]} : T[2,3]",
	"iota":                 "%0 = iota {type=T[2,5], axis=1} : T[2,5]",
	"pad":                  "%0 = reshape %z {shape=[]} : T[]\n  %1 = pad %x, %0 {low=[1,-1], high=[0,2], interior=[0,1]} : T[3,12]",
	"reduce":               "%0 = reduce %x {kind=sum, axes=[1]} : T[2]",
	"reduce_precision":     "%0 = reduce_precision %x {exponent=3, mantissa=1} : T[2,6]",
	"reduce_window":        "%0 = reduce_window %x {kind=max, window=[1,3]} : T[2,4]",
	"reshape":              "%0 = reshape %x {shape=[3,4]} : T[3,4]",
	"reverse":              "%0 = reverse %x {axes=[1]} : T[2,6]",
	"scatter": "%0 = slice %y {start=[0,0], limit=[2,3], stride=[1,1]} : T[2,3]\n  %1 = scatter %x, %n, %0 {update_window_dims=[0], " +
		"inserted_window_dims=[1], scatter_dims_to_operand_dims=[1], index_vector_dim=1, kind=sum} : T[2,6]",
	"select":    "%0 = compare %x, %x {dir=ne} : bool[2,6]\n  %1 = select %0, %x, %y : T[2,6]",
	"slice":     "%0 = slice %x {start=[0,1], limit=[2,6], stride=[1,2]} : T[2,3]",
	"sort":      "%0, %1 = sort %x, %y {axis=1, stable=true} : T[2,6], T[2,6]",
	"transpose": "%0 = transpose %x {perm=[1,0]} : T[6,2]",
	"attention": "%q = reshape %x {shape=[1,2,2,3]} : T[1,2,2,3]\n  %0 = attention %q, %q, %q {scale=0.5} : T[1,2,2,3]",
	"cummax":    "%0, %1 = cummax %x {axis=1} : T[2,6], i64[2,6]",
	"cumprod":   "%0 = cumprod %x {axis=1} : T[2,6]",
	"cumsum":    "%0 = cumsum %x {axis=1} : T[2,6]",
	"embedding": "%0 = embedding %x, %n : T[3,6]",
	"gelu":      unary,
	"grouped_dot": "%a = reshape %x {shape=[6,2]} : T[6,2]\n  %b = reshape %y {shape=[3,2,2]} : T[3,2,2]\n" +
		"  %0 = grouped_dot %a, %b, %n : T[6,2]",
	"group_norm":    "%0 = group_norm %m {groups=1, eps=1e-05} : T[2,2,3]",
	"layer_norm":    "%0 = layer_norm %x {eps=1e-05, rank=1} : T[2,6]",
	"linear":        "%0 = linear %x, %y : T[2,2]",
	"log_softmax":   "%0 = log_softmax %x {axis=1} : T[2,6]",
	"logcumsumexp":  "%0 = logcumsumexp %x {axis=1} : T[2,6]",
	"resize":        "%0 = resize %x {filter=nearest, sizes=[9], scale=[0.6666667]} : T[2,9]",
	"resize linear": "%0 = resize %x {filter=linear, sizes=[4], scale=[1.5]} : T[2,4]",
	"rms_norm":      "%0 = rms_norm %x {eps=1e-05, rank=1} : T[2,6]",
	"rope":          "%0 = rope %x, %y, %x : T[2,6]",
	"silu":          unary,
	"softmax":       "%0 = softmax %x {axis=1} : T[2,6]",
	"take":          "%0 = take %x, %n {axis=1} : T[2,3]",
	"topk":          "%0, %1 = topk %x {k=2, axis=1, largest=true} : T[2,2], i64[2,2]",
}

// dtypeElsewhere lists operators that other tests run in their dtypes: they have literals, functions or text of their own.
var dtypeElsewhere = []string{"constant", "cond", "while", "opaque", "opaque_effect", "reduce_by"}

// dtypeRefused lists what the CPU plugin refuses as a module of that one operator, by a part of its message.
var dtypeRefused = map[string]string{}

// TestDTypes runs every operator in every dtype of its domain, through literals, host buffers, lowering and the CPU plugin, beside the
// evaluator. A dtype that an operator's shape rule refuses is outside its domain.
func TestDTypes(t *testing.T) {
	lib, err := pjrt.Open(needPlugin(t, plugin.CPU).Path)
	require.NoError(t, err)
	client, err := lib.NewClient()
	require.NoError(t, err)
	defer client.Close()
	for _, o := range op.All {
		if !slices.Contains(dtypeElsewhere, o.Name) {
			require.Contains(t, dtypeTemplates, o.Name, "every operator has a template")
		}
	}
	ran := 0                   // dtypes
	in := make(map[string]int) // dtypes by operator
	seen := make(map[string]bool)
	for _, d := range tensor.DTypes() {
		t.Run(d.String(), func(t *testing.T) {
			ran++
			all := &ir.Module{Func: &ir.Func{Name: "main"}}
			var names []string
			for _, name := range slices.Sorted(maps.Keys(dtypeTemplates)) {
				m := dtypeModule(name, d)
				if m == nil {
					continue
				}
				in[name]++
				if msg, refused := dtypeRefused[name+" "+d.String()]; refused {
					seen[name+" "+d.String()] = true
					require.ErrorContains(t, runBoth(t, client, m), msg, "%s of %s", name, d)
					continue
				}
				names = append(names, name)
				m = dtypeModule(name, d)
				for _, p := range m.Func.Params {
					p.Index = len(all.Func.Params)
					all.Func.Params = append(all.Func.Params, p)
				}
				all.Func.Body = append(all.Func.Body, m.Func.Body...)
				all.Func.Results = append(all.Func.Results, m.Func.Results...)
			}
			if runBoth(t, client, all) == nil {
				return
			}
			for _, name := range names { // say which
				if err := runBoth(t, client, dtypeModule(name, d)); err != nil {
					t.Errorf("%s of %s: %v", name, d, err)
				}
			}
		})
	}
	if ran < len(tensor.DTypes()) { // some are left out by -run
		return
	}
	for _, name := range slices.Sorted(maps.Keys(dtypeTemplates)) {
		require.NotZero(t, in[name], "%s runs in no dtype: its template is wrong", name)
		t.Logf("%-22s %2d dtypes", name, in[name])
	}
	for key := range dtypeRefused {
		require.True(t, seen[key], "%s is outside the operator's domain, so nothing refuses it", key)
	}
}

// dtypeModule is the template's module in d with a literal in d added to it, or nil outside the operator's domain.
func dtypeModule(name string, d tensor.DType) *ir.Module {
	body := strings.ReplaceAll(dtypeTemplates[name], "NAME", name)
	results := "%0"
	if strings.Contains(body, "%1") {
		results = "%0, %1"
	}
	c, r := tensor.C64, d
	if d == tensor.F64 {
		c = tensor.C128
	}
	if d.IsComplex() {
		r = d.Real()
	}
	src := fmt.Sprintf("func @main(%%x: T[2,6], %%y: T[2,6], %%i: i32[], %%n: i32[3], %%m: T[2,2,3]) {\n  %%z = constant {value=%s} : T[1]\n  %s\n  return %%z, %s\n}\n",
		dtypeLiteral(d), body, results)
	for from, to := range map[string]tensor.DType{"T": d, "C": c, "R": r} {
		src = strings.NewReplacer(" "+from+"[", " "+to.String()+"[", "="+from+"[", "="+to.String()+"[", "="+from+"}", "="+to.String()+"}").Replace(src)
	}
	m, err := text.Parse(name, src)
	if err != nil {
		return nil
	}
	return m
}

// dtypeLiteral is an array of one element that is not zero.
func dtypeLiteral(d tensor.DType) string {
	if d == tensor.Bool {
		return "bool[1] [true]"
	}
	if d.IsComplex() {
		return fmt.Sprintf("%s[1] \"0x%s\"", d, strings.Repeat("40", d.Size()))
	}
	return d.String() + "[1] [3]"
}
