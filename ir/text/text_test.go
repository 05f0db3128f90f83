package text

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"tpuc/ir"
	"tpuc/ir/diag"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
	"tpuc/ir/weight"
)

const sample = `mesh {tp=4, dp=2}
weight @w = "model.layers.0.mlp.down_proj.weight", "tied.weight" : bf16[256,64] <tp,_>
constant @c = const("6f3a"), "rope.inv_freq" : f32[1000000]
state buffer @"kv.0" = "key_cache_0" : f32[8,64]
weight @x = tensor("a"), "b" : f32[]
buffer @y = none : f32[0,3]
func @main(%x: bf16[8,256] <dp+tp,_>, %"in.put": f32[8,64]) {
  %0 = dot %x, @w {contract=[[1],[0]], out=f32} : f32[8,64] #1
  %1 = add %0, %"in.put" : f32[8,64] #2
  %2 = constant {value=f32[2,2] [[1,-0],[nan,-inf]]} : f32[2,2]
  %3 = broadcast @x {shape=[8,64]} : f32[8,64]
  return %1, %x, @w, @"kv.0" = %1, %"in.put" = %3
}
#1 = "model.layers.0.mlp.down_proj" at "modeling_llama.py":71 "y = self.down_proj(h)"
#2 = at "a \"b\".py"
`

func TestFixedPoint(t *testing.T) {
	m, err := Parse("sample.tpu", sample)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(sample, Print(m)))
	require.Equal(t, []string{"rope.inv_freq"}, m.Weights[1].Names)
	require.Equal(t, weight.Const{Digest: "6f3a", T: tensor.Make(tensor.F32, 1000000)}, m.Weights[1].Source)
	require.Equal(t, []string{"model.layers.0.mlp.down_proj.weight", "tied.weight"}, m.Weights[0].Names)
	require.True(t, m.Weights[2].Mutable)
	require.Equal(t, ir.Buffer, m.Weights[2].Class)
	require.Equal(t, 71, m.Func.Body[0].Loc.Line)
	require.Same(t, m.Func.Params[1], m.Func.Updates[1].Target)
}

func TestRenumberingAndFreeForm(t *testing.T) {
	m, err := Parse("f", "  // a comment\r\nfunc @f( %a :f32[ 2 ] ){\r\n%sum=add %\"a\",%a:f32[2] // twice\n\n%7 = add %sum, %sum {} : f32[2]\nreturn %7\n}")
	require.NoError(t, err)
	require.Equal(t, "func @f(%a: f32[2]) {\n  %0 = add %a, %a : f32[2]\n  %1 = add %0, %0 : f32[2]\n  return %1\n}\n", Print(m))
}

func TestParameterNames(t *testing.T) {
	f := &ir.Func{Name: "main"}
	for _, n := range []string{"x", "x", "", "x_1", "0", "weird name", "arg2"} {
		f.AddParam(n, tensor.Make(tensor.F32))
	}
	want := "func @main(%x: f32[], %x_2: f32[], %arg2_1: f32[], %x_1: f32[], %\"0\": f32[], %\"weird name\": f32[], %arg2: f32[]) {\n  return\n}\n"
	require.Equal(t, want, Print(&ir.Module{Func: f}))
	m, err := Parse("f", want)
	require.NoError(t, err)
	require.Equal(t, want, Print(m))
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"shape rule", "func @f(%x: f32[8,64], %y: f32[32,4]) {\n  %0 = dot %x, %y {contract=[[1],[0]]} : f32[8,4]\n  %1 = add %0, %0 : f32[8,4]\n  return %1\n}",
			"t.tpu:2:8: dot: contracted axes differ: lhs axis 1 is 64, rhs axis 0 is 32 [dot/2]\n    %0 = dot %x, %y {contract=[[1],[0]]} : f32[8,4]"},
		{"type", "func @f(%x: f32[8]) {\n  %0 = add %x, %x : f32[9]\n  return %0\n}",
			"t.tpu:2:21: add: result 0 is declared f32[9], its shape rule gives f32[8] [text/type]\n    %0 = add %x, %x : f32[9]"},
		{"all at once", "func @f(%x: f32[8]) {\n  %0 = ad %x : f32[8]\n  %1 = add %x %x : f32[8]\n  %2 = add %1, %z : f32[8]\n  %3, %2 = add %0, %0 : f32[8]\n  return %2, %3, @w\n}", `
t.tpu:2:8: unknown operator "ad", wanted such as "add" [text/op]
    %0 = ad %x : f32[8]
t.tpu:3:15: unexpected token "%x" (expected ":" Result ("," Result)* LocRef?) [text/syntax]
    %1 = add %x %x : f32[8]
t.tpu:4:16: %z is not defined [text/name]
    %2 = add %1, %z : f32[8]
t.tpu:5:3: 2 results with 1 types, wanted one type for each [text/results]
    %3, %2 = add %0, %0 : f32[8]
t.tpu:5:7: %2 is defined twice [text/name]
    %3, %2 = add %0, %0 : f32[8]
t.tpu:6:18: @w is not defined [text/name]
    return %2, %3, @w`},
		{"attributes", "func @f(%x: f32[8]) {\n  %0 = broadcast %x {shap=[8]} : f32[8]\n  %1 = broadcast %x {shape=8} : f32[8]\n  %2 = broadcast %x {shape=[8,a]} : f32[8]\n  %3 = add %x, %x {out=f32} : f32[8]\n  %4 = dot %x, %x {out=f33} : f32[8,8]\n  return\n}", `
t.tpu:2:22: broadcast: unknown attribute "shap", wanted one of shape, dims [text/attr]
    %0 = broadcast %x {shap=[8]} : f32[8]
t.tpu:3:28: broadcast: shape is 8, wanted a list [text/attr]
    %1 = broadcast %x {shape=8} : f32[8]
t.tpu:4:31: broadcast: shape[1] is a, wanted an integer [text/attr]
    %2 = broadcast %x {shape=[8,a]} : f32[8]
t.tpu:5:20: add: attribute "out", wanted none [text/attr]
    %3 = add %x, %x {out=f32} : f32[8]
t.tpu:6:24: dot: out: unknown dtype "f33" [text/attr]
    %4 = dot %x, %x {out=f33} : f32[8,8]`},
		{"literals", "func @f() {\n  %0 = constant {value=f32[2] [1]} : f32[2]\n  %1 = constant {value=i8[] 128} : i8[]\n  %2 = constant {value=i4[3] \"0x0102\"} : i4[3]\n  %3 = constant {value=f32[1000000000] 1} : f32[1000000000]\n  return\n}", `
t.tpu:2:31: a list of 1, wanted 2 for f32[2] [text/literal]
    %0 = constant {value=f32[2] [1]} : f32[2]
t.tpu:3:29: 128, wanted an integer in the range of i8 [text/literal]
    %1 = constant {value=i8[] 128} : i8[]
t.tpu:4:30: 2 bytes for i4[3], wanted 3, or 1 for equal elements [text/literal]
    %2 = constant {value=i4[3] "0x0102"} : i4[3]
t.tpu:5:24: literal of 4000000000 bytes, wanted at most 536870912 in all literals of the text [text/size]
    %3 = constant {value=f32[1000000000] 1} : f32[1000000000]`},
		{"updates", "weight @w = \"w\" : f32[8]\nstate weight @s = \"s\" : f32[8]\nfunc @f(%x: f32[8], %y: f32[4]) {\n  return @w = %x, @s = %y, @s = %x\n}", `
t.tpu:4:10: update of @w, which is not declared as state [text/update]
    return @w = %x, @s = %y, @s = %x
t.tpu:4:24: update of @s, which is f32[8], with %y, which is f32[4] [text/update]
    return @w = %x, @s = %y, @s = %x
t.tpu:4:28: @s is updated twice [text/update]
    return @w = %x, @s = %y, @s = %x`},
		{"sharding", "weight @w = \"w\" : f32[8] <tp>\nfunc @f() {\n  return\n}",
			"t.tpu:1:26: the module has no mesh [text/sharding]\n    weight @w = \"w\" : f32[8] <tp>"},
		{"end", "func @f() {\n  return", "t.tpu:2: the text ends inside the function, wanted } [text/end]\n    return"},
		{"empty", "", "t.tpu: the text ends without a function [text/end]"},
		{"depth", "func @f(%x: f32[8]) {\n  %0 = dot %x, %x {batch=" + strings.Repeat("[", 100) + "}\n  return\n}",
			"t.tpu:2: brackets nested deeper than 32 [text/size]\n    %0 = dot %x, %x {batch=" + strings.Repeat("[", 100) + "}"},
		{"location", "func @f(%x: f32[8]) {\n  %0 = add %x, %x : f32[8] #3\n  return\n}", "t.tpu:2:28: location #3 is not in the table [text/location]\n    %0 = add %x, %x : f32[8] #3"},
		{"utf8", "func @f() {\n\xff", "t.tpu:2: bytes that are no UTF-8, wanted text [text/utf8]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := Parse("t.tpu", c.src)
			require.Error(t, err)
			require.Nil(t, m)
			require.Empty(t, cmp.Diff(strings.TrimPrefix(c.want, "\n"), err.Error()))
			var list diag.List
			require.ErrorAs(t, err, &list)
		})
	}
}

func TestManyErrorsAreCut(t *testing.T) {
	_, err := Parse("f", "func @f() {\n"+strings.Repeat("%0 = nosuch : f32[]\n", 10000)+"return\n}")
	var list diag.List
	require.ErrorAs(t, err, &list)
	require.LessOrEqual(t, len(list), maxErrors+1)
	require.Contains(t, err.Error(), "more than 100 errors")
}

// All bit patterns of the small formats, and edges of the large ones, survive the text.
func TestLiteralsKeepBits(t *testing.T) {
	check := func(x *tensor.Tensor) {
		t.Helper()
		src := fmt.Sprintf("func @f() {\n  %%0 = constant {value=%s} : %s\n  return %%0\n}\n", Literal(x), x.Type)
		m, err := Parse("f", src)
		require.NoError(t, err, src)
		got := op.Constant.Attr(m.Func.Body[0]).Value
		require.Equal(t, x.Data, got.Data, src)
		require.Equal(t, src, Print(m))
	}
	for _, d := range tensor.DTypes() {
		lo, hi := d.IntRange()
		check(tensor.FromInts(tensor.Make(d, 2, 2), []int64{lo, hi, 1, 0}))
		check(tensor.FromInts(tensor.Make(d, 40), make([]int64, 40)))
		check(tensor.Zeros(tensor.Make(d, 0, 5)))
		long := make([]int64, maxListed+1)
		long[3] = 1
		check(tensor.FromInts(tensor.Make(d, int64(len(long))), long))
		if d.IsFloat() || d.IsComplex() {
			check(tensor.FromFloats(tensor.Make(d, 8), []float64{0.1, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1e-7, 1 << 24, math.Pi}))
			check(&tensor.Tensor{Type: tensor.Make(d), Data: []byte(strings.Repeat("\xff", d.Size()))}) // a NaN with a payload
		}
		if d.IsFloat() && d.Size() <= 2 {
			for bits := range 1 << d.Bits() {
				x := &tensor.Tensor{Type: tensor.Make(d), Data: []byte{byte(bits), byte(bits >> 8)}[:d.Size()]}
				words, ok := elements(x)
				if !ok {
					require.True(t, math.IsNaN(x.Floats()[0]))
					continue
				}
				data, err := elementBytes(x.Type, words[0])
				require.NoError(t, err)
				require.Equal(t, x.Data, data)
			}
		}
	}
	require.Equal(t, "bf16[] 0.1", Literal(tensor.Scalar(tensor.BF16, 0.1)))
	require.Equal(t, "f32[1000] 100", Literal(tensor.FromFloats(tensor.Make(tensor.F32, 1000), slicesRepeat(100, 1000))))
}

func slicesRepeat(v float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// Every operator's attributes have a text.
func TestAllAttributesPrint(t *testing.T) {
	for _, o := range op.All {
		require.NoError(t, CheckAttr(o.Attr), o.Name)
	}
}

func TestBrokenModulePrints(t *testing.T) {
	v := &ir.Value{Type: tensor.Make(tensor.F32)}
	n := &ir.Node{Op: op.Add.Op, Args: []*ir.Value{v, nil}}
	n.Outs = []*ir.Value{{Type: v.Type, Def: n}}
	m := &ir.Module{Func: &ir.Func{Name: "main", Body: []*ir.Node{n}, Results: []*ir.Value{nil}}}
	require.Equal(t, "func @main() {\n  %0 = add %?, %? : f32[]\n  return %?\n}\n", Print(m))
	require.Equal(t, "add f32[], %? : f32[]", Node(n))
	require.Empty(t, Print(&ir.Module{}))
}

func FuzzParse(f *testing.F) {
	f.Add(sample)
	cases, _ := filepath.Glob("../../testdata/*/*.txtar")
	more, _ := filepath.Glob("../../testdata/*/*/*.txtar")
	for _, c := range append(cases, more...) {
		data, err := os.ReadFile(c)
		require.NoError(f, err)
		for _, file := range txtar.Parse(data).Files {
			if strings.HasSuffix(file.Name, ".tpu") {
				f.Add(string(file.Data))
			}
		}
	}
	f.Fuzz(func(t *testing.T, src string) {
		if len(src) > 1<<16 {
			return
		}
		m, err := Parse("fuzz.tpu", src)
		if err != nil {
			require.NotContains(t, err.Error(), rulePanic)
			return
		}
		once := Print(m)
		again, err := Parse("again.tpu", once)
		require.NoError(t, err, once)
		require.Equal(t, once, Print(again))
	})
}

func FuzzParseLibrary(f *testing.F) {
	for _, s := range []string{"func @\"a::f\"(%x: f32[2]) {\n  %0 = add %x, %x : f32[2]\n  return %0\n}\n", "func @f() {\n  return\n}\nfunc @f() {\n  return\n}\n",
		"func @\"a::f\"(%x: f32[2]) {\n  %0 = add %x, %y : f32[2]\n  return %0\n}\n",
		"weight @w = \"w\" : f32[2]\nfunc @f() {\n  return @w\n}\n", "func @main() {\n", "#1 = \"a\" at \"b\":1\n", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		if len(src) > 1<<16 {
			return
		}
		if _, err := ParseLibrary("fuzz.tpu", src); err != nil {
			require.NotContains(t, err.Error(), rulePanic)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	var s strings.Builder
	s.WriteString("func @f(%x: f32[8,8]) {\n")
	last := "%x"
	for i := range 1000 {
		fmt.Fprintf(&s, "  %%%d = dot %s, %%x {contract=[[1],[0]]} : f32[8,8] #1\n", i, last)
		last = fmt.Sprintf("%%%d", i)
	}
	s.WriteString("  return " + last + "\n}\n#1 = \"a.b\" at \"f.py\":3 \"x\"\n")
	for b.Loop() {
		if _, err := Parse("f", s.String()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "µs/node")
}

// One short line cannot take much memory, and many of them neither.
func TestLimits(t *testing.T) {
	var src strings.Builder
	src.WriteString("func @f() {\n")
	for i := range 40 {
		fmt.Fprintf(&src, "  %%%d = constant {value=i8[%d] 1} : i8[%d]\n", i, 16<<20, 16<<20)
	}
	src.WriteString("  return\n}\n")
	_, err := Parse("f", src.String())
	require.ErrorContains(t, err, "in all literals of the text [text/size]")
	_, err = Parse("f", "func @f() {\n  %0 = iota {type=["+strings.Repeat("1,", maxCommas)+"1]} : f32[]\n  return\n}\n")
	require.ErrorContains(t, err, "[text/size]")
	_, err = Parse("f", strings.Repeat("\n", maxSource+1))
	require.ErrorContains(t, err, "[text/size]")
}
