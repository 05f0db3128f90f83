package stablehlo_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"tpuc/frontend/stablehlo"
	"tpuc/ir"
	"tpuc/ir/eval"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
	"tpuc/ir/text"
)

// main wraps operations into a module; %0 is returned.
func main(params, result, body string) string {
	return fmt.Sprintf("module @m {\n  func.func public @main(%s) -> %s {\n%s\n    return %%0 : %s\n  }\n}\n", params, result, body, result)
}

// node parses a module and gives the node of its only result.
func node(t *testing.T, src string) *ir.Node {
	t.Helper()
	p, err := stablehlo.Import("m.mlir", []byte(src))
	require.NoError(t, err)
	require.Len(t, p.Module.Func.Results, 1)
	return p.Module.Func.Results[0].Def
}

// Both forms of an operation, and what different writers leave out, give the same module.
func TestForms(t *testing.T) {
	const x, y = "%x: tensor<2x3xf32>", "tensor<2x3xf32>"
	for _, tc := range []struct {
		name, params, result string
		forms                []string
	}{
		{"unary", x, y, []string{`%0 = stablehlo.tanh %x : tensor<2x3xf32>`, `%0 = "stablehlo.tanh"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>`,
			`%0 = stablehlo.tanh %x {mhlo.frontend_attributes = {a = "}"}} : tensor<2x3xf32> loc("a"("f.py":1:2))`}},
		{"compare", x, "tensor<2x3xi1>", []string{`%0 = stablehlo.compare GT, %x, %x, FLOAT : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>`,
			`%0 = stablehlo.compare GT, %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>`,
			`%0 = "stablehlo.compare"(%x, %x) <{comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>`,
			`%0 = "stablehlo.compare"(%x, %x) {compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GT>} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>`}},
		{"transpose", x, "tensor<3x2xf32>", []string{`%0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>`,
			`%0 = "stablehlo.transpose"(%x) <{permutation = array<i64: 1, 0>}> : (tensor<2x3xf32>) -> tensor<3x2xf32>`,
			`%0 = "stablehlo.transpose"(%x) {permutation = dense<[1, 0]> : tensor<2xi64>} : (tensor<2x3xf32>) -> tensor<3x2xf32>`}},
		{"slice", x, "tensor<1x2xf32>", []string{`%0 = stablehlo.slice %x [1:2, 0:3:2] : (tensor<2x3xf32>) -> tensor<1x2xf32>`,
			`%0 = "stablehlo.slice"(%x) <{limit_indices = array<i64: 2, 3>, start_indices = array<i64: 1, 0>, strides = array<i64: 1, 2>}> : (tensor<2x3xf32>) -> tensor<1x2xf32>`}},
		{"dot", x + ", %w: tensor<3x4xf32>", "tensor<2x4xf32>", []string{
			`%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>`,
			`%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>`,
			`%0 = stablehlo.dot %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>`,
			`%0 = "stablehlo.dot_general"(%x, %w) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>`}},
		{"reduce", x, "tensor<2xf32>", []string{
			"%c = stablehlo.constant dense<0xFF800000> : tensor<f32>\n%0 = stablehlo.reduce(%x init: %c) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>",
			"%c = stablehlo.constant dense<0xFF800000> : tensor<f32>\n%0 = stablehlo.reduce(%x init: %c) across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>\n reducer(%a: tensor<f32>, %b: tensor<f32>)  {\n%m = stablehlo.maximum %b, %a : tensor<f32>\nstablehlo.return %m : tensor<f32>\n}",
			"%c = \"stablehlo.constant\"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>\n%0 = \"stablehlo.reduce\"(%x, %c) <{dimensions = array<i64: 1>}> ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n%m = stablehlo.maximum %a, %b : tensor<f32>\n\"stablehlo.return\"(%m) : (tensor<f32>) -> ()\n}) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var first string
			for i, form := range tc.forms {
				p, err := stablehlo.Import("m.mlir", []byte(main(tc.params, tc.result, form)))
				require.NoError(t, err)
				require.False(t, op.Opaque.Is(p.Module.Func.Results[0].Def))
				for _, n := range p.Module.Func.Body {
					n.Loc = nil
				}
				p.Module.Func.Body = reachable(p.Module.Func)
				if s := text.Print(p.Module); i == 0 {
					first = s
				} else {
					require.Empty(t, cmp.Diff(first, s), form)
				}
			}
		})
	}
}

// reachable leaves out nodes that no result reads, such as an initial value that is the identity.
func reachable(f *ir.Func) (out []*ir.Node) {
	used := map[*ir.Node]bool{f.Results[0].Def: true}
	for i := len(f.Body) - 1; i >= 0; i-- {
		for _, a := range f.Body[i].Args {
			used[a.Def] = used[a.Def] || used[f.Body[i]]
		}
	}
	for _, n := range f.Body {
		if used[n] {
			out = append(out, n)
		}
	}
	return out
}

func TestModules(t *testing.T) {
	t.Run("generic module", func(t *testing.T) {
		p, err := stablehlo.Import("m.mlir", []byte(`"builtin.module"() <{sym_name = "m"}> ({
  "func.func"() <{arg_attrs = [{}, {tf.aliasing_output = 0 : i32}], function_type = (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>, res_attrs = [{jax.result_info = "result"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<2xf32> loc("x"), %arg1: tensor<2xf32> loc("state")):
    %0 = "func.call"(%arg0, %arg1) <{callee = @f}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    "func.return"(%0) : (tensor<2xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>, sym_name = "f", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<2xf32>, %arg1: tensor<2xf32>):
    %0 = "stablehlo.add"(%arg0, %arg1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    "func.return"(%0) : (tensor<2xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 4 : i32} : () -> ()
`))
		require.NoError(t, err)
		require.Equal(t, []string{"x", "state"}, p.Inputs)
		require.Equal(t, []string{"result"}, p.Outputs)
		require.Len(t, p.Module.Func.Updates, 1)
		require.Same(t, p.Module.Func.Params[1], p.Module.Func.Updates[0].Target)
		require.Equal(t, []string{"mhlo.num_partitions is 4: shardings are left out, the program is compiled for one device"}, p.Notes)
	})
	t.Run("function alone, under any name", func(t *testing.T) {
		p, err := stablehlo.Import("m.mlir", []byte("func.func @forward(%x: tensor<f32>) -> tensor<f32> {\n  return %x : tensor<f32>\n}\n"))
		require.NoError(t, err)
		require.Same(t, p.Module.Func.Params[0], p.Module.Func.Results[0])
	})
	t.Run("names are unique", func(t *testing.T) {
		p, err := stablehlo.Import("m.mlir", []byte("func.func @f(%x: tensor<f32> loc(\"a\"), %y: tensor<f32> loc(\"a\"), %z: tensor<f32> {jax.arg_info = \"a_1\"}) -> (tensor<f32>, tensor<f32>) {\n  return %x, %x : tensor<f32>, tensor<f32>\n}\n"))
		require.NoError(t, err)
		require.Equal(t, []string{"a", "a_1", "a_1_1"}, p.Inputs)
		require.Equal(t, []string{"output_0", "output_1"}, p.Outputs)
	})
	t.Run("locations", func(t *testing.T) {
		n := node(t, "#l1 = loc(\"/home/me/model.py\":7:2 to :9)\n#l2 = loc(callsite(#l3 at #l1))\n"+
			main("%x: tensor<2xf32>", "tensor<2xf32>", "%0 = stablehlo.tanh %x : tensor<2xf32> loc(#l4)")+
			"#l3 = loc(\"f\"(\"/x/site-packages/flax/linen.py\":3:1))\n#l4 = loc(\"jit(f)/jit(main)/mlp/tanh\"(#l2))\n")
		require.Equal(t, "flax/linen.py:3: mlp/tanh", n.Loc.String())
		n = node(t, main("%x: tensor<2xf32>", "tensor<2xf32>", "%0 = stablehlo.tanh %x : tensor<2xf32> loc(fused<\"m\">[\"a\", \"b.py\":4:1])"))
		require.Equal(t, "b.py:4: a", n.Loc.String())
		n = node(t, main("%x: tensor<2xf32>", "tensor<2xf32>", "%0 = stablehlo.tanh %x : tensor<2xf32>"))
		require.Equal(t, "m.mlir:3", n.Loc.String())
	})
	t.Run("tuples", func(t *testing.T) {
		n := node(t, main("%x: tensor<2xf32>, %y: tensor<2xf32>", "tensor<2xf32>", "%t = stablehlo.tuple %x, %y : tuple<tensor<2xf32>, tensor<2xf32>>\n%1 = stablehlo.get_tuple_element %t[1] : (tuple<tensor<2xf32>, tensor<2xf32>>) -> tensor<2xf32>\n%0 = stablehlo.negate %1 : tensor<2xf32>"))
		require.Equal(t, 1, n.Args[0].Index)
	})
	t.Run("composite", func(t *testing.T) {
		src := "module {\n  func.func public @main(%x: tensor<f32>) -> tensor<f32> {\n    %0 = stablehlo.composite \"my.op\" %x {composite_attributes = {n = 1 : i32}, decomposition = @d} : (tensor<f32>) -> tensor<f32>\n    return %0 : tensor<f32>\n  }\n" +
			"  func.func private @d(%x: tensor<f32>) -> tensor<f32> {\n    %0 = stablehlo.sine %x : tensor<f32>\n    return %0 : tensor<f32>\n  }\n}\n"
		require.True(t, op.Sin.Is(node(t, src)))
	})
	t.Run("shardings", func(t *testing.T) {
		p, err := stablehlo.Import("m.mlir", []byte(`module @m {
  sdy.mesh @mesh = <["x"=2, "y"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 2 : i64}]}} loc(unknown)
  func.func public @main(%arg0: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> (tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
    %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}, {}], replicated={"y"}> : tensor<4x8xf32>
    %1 = stablehlo.custom_call @Sharding(%0) {mhlo.sharding = "{replicated}"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %2 = stablehlo.tanh %1 : tensor<4x8xf32>
    return %2 : tensor<4x8xf32>
  }
}
`))
		require.NoError(t, err)
		require.Len(t, p.Module.Func.Body, 1)
		require.Len(t, p.Notes, 1)
	})
	// As torch_xla writes: layouts, regions before attributes, indices without a vector, a tuple as the result.
	t.Run("torch_xla", func(t *testing.T) {
		p, err := stablehlo.Import("m.mlir", []byte(`module @IrToHlo.9 attributes {mhlo.cross_program_prefetches = [], mhlo.input_output_alias = [], mhlo.is_dynamic = false, mhlo.use_auto_spmd_partitioning = false} {
  func.func @main(%arg0: tensor<4x2xf32>, %arg1: tensor<3xui32>, %arg2: tensor<1x1xi64>, %arg3: tensor<1x2xf32>) -> tuple<tensor<2x4xf32>, tensor<3x2xf32>, tensor<4x2xf32>> {
    %0 = stablehlo.transpose %arg0, dims = [1, 0] {result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[2,4]{0,1}"} : (tensor<4x2xf32>) -> tensor<2x4xf32>
    %1 = "stablehlo.gather"(%arg0, %arg1) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = dense<[1, 2]> : tensor<2xi64>} : (tensor<4x2xf32>, tensor<3xui32>) -> tensor<3x2xf32>
    %2 = "stablehlo.scatter"(%arg0, %arg2, %arg3) ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      stablehlo.return %arg5 : tensor<f32>
    }) {indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false} : (tensor<4x2xf32>, tensor<1x1xi64>, tensor<1x2xf32>) -> tensor<4x2xf32>
    %3 = stablehlo.tuple %0, %1, %2 {xla_shape = "(f32[2,4]{0,1}, f32[3,2]{1,0}, f32[4,2]{1,0})"} : tuple<tensor<2x4xf32>, tensor<3x2xf32>, tensor<4x2xf32>>
    return %3 : tuple<tensor<2x4xf32>, tensor<3x2xf32>, tensor<4x2xf32>>
  }
}
`))
		require.NoError(t, err)
		require.Equal(t, []string{"input_0", "input_1", "input_2", "input_3"}, p.Inputs)
		require.Equal(t, []string{"output_0", "output_1", "output_2"}, p.Outputs)
		require.Equal(t, op.Set, op.Scatter.Attr(p.Module.Func.Results[2].Def).Kind)
	})
	t.Run("by content", func(t *testing.T) {
		for _, s := range []string{"module {", "// a\n\n  module @m attributes {} {", "#loc = loc(unknown)\nmodule {", "func.func @f() {", "\"builtin.module\"() ({", "ML\xefR\x0d"} {
			require.True(t, stablehlo.IsModule(strings.NewReader(s), int64(len(s))), s)
		}
		for _, s := range []string{"", "PK\x03\x04", "{}", "mesh {a=1}", "func @main() {"} {
			require.False(t, stablehlo.IsModule(strings.NewReader(s), int64(len(s))), s)
		}
	})
}

func TestLiterals(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, tc := range []struct {
		typ, body string
		want      []float64
	}{
		{"3xf32", "[1.0, -2.5e-1, 0x7F800000]", []float64{1, -0.25, inf}},
		{"2x2xi8", "[[1, -2], [3, 4]]", []float64{1, -2, 3, 4}},
		{"2xui64", "[1, 18446744073709551615]", []float64{1, -1}},
		{"3xi1", "[true, false, true]", []float64{1, 0, 1}},
		{"9xi1", `"0x0501"`, []float64{1, 0, 1, 0, 0, 0, 0, 0, 1}},
		{"3xi1", "true", []float64{1, 1, 1}},
		{"2xbf16", "[0x7FC0, 1.5]", []float64{nan, 1.5}},
		{"2xf32", `"0x0000803F000000C0"`, []float64{1, -2}},
		{"4xf32", `"0x0000803F"`, []float64{1, 1, 1, 1}},
		{"2xf16", "0x7C00", []float64{inf, inf}},
		{"0x3xf32", "", nil},
		{"f64", "1.0E+2", []float64{100}},
		{"2xi4", "[-8, 7]", []float64{-8, 7}},
		{"2xf8E4M3FN", "[448.0, -0.5]", []float64{448, -0.5}},
	} {
		t.Run(tc.typ+" "+tc.body, func(t *testing.T) {
			src := main("", "tensor<"+tc.typ+">", "%0 = stablehlo.constant dense<"+tc.body+"> : tensor<"+tc.typ+">")
			p, err := stablehlo.Import("m.mlir", []byte(src))
			require.NoError(t, err)
			r, err := eval.Run(p.Module, nil, eval.Options{})
			require.NoError(t, err)
			var got []float64
			if x := r.Outputs[0]; x.DType.IsFloat() {
				got = x.Floats()
			} else {
				for _, v := range x.Ints() {
					got = append(got, float64(v))
				}
			}
			require.Equal(t, fmt.Sprint(tc.want), fmt.Sprint(got))
		})
	}
	n := node(t, main("", "tensor<1xcomplex<f32>>", "%0 = stablehlo.constant dense<[(1.0, -2.0)]> : tensor<1xcomplex<f32>>"))
	require.Equal(t, []complex128{1 - 2i}, op.Constant.Attr(n).Value.Complexes())
}

// What the IR has no word for keeps its text: operands by place, inner names by prefix, aliases written out, no locations.
func TestOpaque(t *testing.T) {
	n := node(t, "#pad = dense<0> : tensor<1x2xi64>\n"+main("%x: tensor<4xf32>, %y: tensor<4xf32>", "tensor<4xf32>",
		`%z = stablehlo.constant dense<0.0> : tensor<f32>
%k = stablehlo.negate %z : tensor<f32>
%0 = "stablehlo.reduce_window"(%x, %z) <{padding = dense<[[1, 1]]> : tensor<1x2xi64>, window_dimensions = array<i64: 3>}> ({
  ^bb0(%a: tensor<f32> loc("a"), %b: tensor<f32>):
    %s:2 = stablehlo.optimization_barrier %a, %b : tensor<f32>, tensor<f32> loc("b")
    %q = stablehlo.multiply %s#1, %k : tensor<f32>
    stablehlo.return %q : tensor<f32>
}) {name = "100%"} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>`))
	require.True(t, op.Opaque.Is(n))
	want := `"stablehlo.reduce_window"(%{0}, %{1}) <{padding = dense<[[1, 1]]> : tensor<1x2xi64>, window_dimensions = array<i64: 3>}> ({
^bb0(%$a: tensor<f32>, %$b: tensor<f32>):
%$s:2 = stablehlo.optimization_barrier %$a, %$b : tensor<f32>, tensor<f32>
%$q = stablehlo.multiply %$s#1, %{2} : tensor<f32>
stablehlo.return %$q : tensor<f32>
}) {name = "100\25"} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>`
	require.Empty(t, cmp.Diff(want, op.Opaque.Attr(n).Text))
	require.Len(t, n.Args, 3)
	n = node(t, main("%x: tensor<4xf32>", "tensor<4xf32>", `%0 = stablehlo.custom_call @mine(%x) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>`))
	require.True(t, op.OpaqueEffect.Is(n))
}

// A comparator that is not the IR's order, one that is, and total orders of floats.
func TestOrders(t *testing.T) {
	text := func(body string) string {
		return main("%x: tensor<4xf32>", "tensor<4xf32>", "%0 = \"stablehlo.sort\"(%x) <{dimension = 0 : i64, is_stable = true}> ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"+body+
			"\nstablehlo.return %c : tensor<i1>\n}) : (tensor<4xf32>) -> tensor<4xf32>")
	}
	require.True(t, op.Opaque.Is(node(t, text("%m = stablehlo.abs %a : tensor<f32>\n%c = stablehlo.compare LT, %m, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>"))))
	require.True(t, op.Sort.Is(node(t, text("%c = stablehlo.compare LT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>"))))
	for dir, want := range map[string][]uint32{"LT": {0xffc00000, 0x80000000, 0, 0x7fc00000}, "GT": {0x7fc00000, 0, 0x80000000, 0xffc00000}} {
		p, err := stablehlo.Import("m.mlir", []byte(text("%c = stablehlo.compare "+dir+", %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>")))
		require.NoError(t, err)
		in := tensor.FromFloats(tensor.Make(tensor.F32, 4), make([]float64, 4))
		for i, bits := range []uint32{0, 0x7fc00000, 0x80000000, 0xffc00000} {
			binary.LittleEndian.PutUint32(in.Data[4*i:], bits)
		}
		r, err := eval.Run(p.Module, []*tensor.Tensor{in}, eval.Options{})
		require.NoError(t, err)
		var got []uint32
		for i := range want {
			got = append(got, binary.LittleEndian.Uint32(r.Outputs[0].Data[4*i:]))
		}
		require.Equal(t, want, got, "zeros and NaN of both signs, %s", dir)
	}
	p, err := stablehlo.Import("m.mlir", []byte(main("%x: tensor<6xf32>, %y: tensor<6xf32>", "tensor<6xi1>", "%0 = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>")))
	require.NoError(t, err)
	f32 := func(v ...float64) *tensor.Tensor { return tensor.FromFloats(tensor.Make(tensor.F32, 6), v) }
	neg0 := math.Copysign(0, -1)
	r, err := eval.Run(p.Module, []*tensor.Tensor{f32(neg0, 1, math.Inf(1), 0, -2, -1), f32(0, 2, math.NaN(), neg0, -1, -1)}, eval.Options{})
	require.NoError(t, err)
	require.Equal(t, []int64{1, 1, 1, 0, 1, 0}, r.Outputs[0].Ints())
}

// Tuples are the results of calls and, in the text of an operation that the IR has no word for, several results.
func TestTuples(t *testing.T) {
	const pair = "tuple<tensor<4xf32>, tensor<4xf32>>"
	p, err := stablehlo.Import("m.mlir", []byte(`module {
  func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
    %0 = call @both(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> `+pair+`
    %1 = call @swap(%0, %x) : (`+pair+`, tensor<4xf32>) -> `+pair+`
    %2 = stablehlo.get_tuple_element %1[0] : (`+pair+`) -> tensor<4xf32>
    return %2 : tensor<4xf32>
  }
  func.func private @both(%a: tensor<4xf32>, %b: tensor<4xf32>) -> `+pair+` {
    %0 = stablehlo.tuple %a, %b : `+pair+`
    return %0 : `+pair+`
  }
  func.func private @swap(%t: `+pair+`, %x: tensor<4xf32>) -> `+pair+` {
    %0 = stablehlo.get_tuple_element %t[0] : (`+pair+`) -> tensor<4xf32>
    %1 = stablehlo.get_tuple_element %t[1] : (`+pair+`) -> tensor<4xf32>
    %2 = stablehlo.tuple %1, %0 : `+pair+`
    return %2 : `+pair+`
  }
}`))
	require.NoError(t, err)
	require.Equal(t, p.Module.Func.Params[1], p.Module.Func.Results[0])
	n := node(t, main("%x: tensor<4xf32>", "tensor<4xf32>", "%t = stablehlo.custom_call @Two(%x) : (tensor<4xf32>) -> "+pair+
		"\n%0 = stablehlo.get_tuple_element %t[1] : ("+pair+") -> tensor<4xf32>"))
	require.True(t, op.Opaque.Is(n))
	require.Equal(t, "stablehlo.custom_call @Two(%{0}) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)", op.Opaque.Attr(n).Text)
	for body, want := range map[string]string{
		"%t = stablehlo.custom_call @Two(%x) : (tensor<4xf32>) -> " + pair + "\n%0 = stablehlo.tanh %t : tensor<4xf32>":                   "value %t is a tuple, wanted a tensor",
		"%0 = stablehlo.custom_call @Two(%x) : (tensor<4xf32>) -> tuple<tuple<tensor<4xf32>>>":                                            "wanted a tensor: tuples are results of calls alone",
		"%t = call @main(%x) : (tensor<4xf32>) -> " + pair + "\n%0 = stablehlo.get_tuple_element %t[0] : (" + pair + ") -> tensor<4xf32>": "calls itself",
	} {
		_, err := stablehlo.Import("m.mlir", []byte(main("%x: tensor<4xf32>", "tensor<4xf32>", body)))
		require.ErrorContains(t, err, want)
		require.Equal(t, 1, strings.Count(err.Error(), "wanted"), "what depends on it is not reported: %v", err)
	}
}

// Custom calls that are operations, and those that no plugin can call.
func TestCustomCalls(t *testing.T) {
	call := func(target string) string {
		return main("%x: tensor<4xf32>", "tensor<4xf32>", "%0 = stablehlo.custom_call "+target+" : (tensor<4xf32>) -> tensor<4xf32>")
	}
	require.True(t, op.Erf.Is(node(t, call("@mhlo.erf(%x) {mhlo.attributes = {}, mhlo.version = 1 : i64}"))))
	require.True(t, op.Opaque.Is(node(t, call("@mhlo.unknown(%x) {mhlo.attributes = {}}"))))
	for target, want := range map[string]string{
		"@lapack_sgeev_ffi(%x)":                      `lowering_platforms=("tpu",)`,
		"@cusolver_getrf_ffi(%x)":                    `lowering_platforms=("tpu",)`,
		"@xla_ffi_python_cpu_callback(%x)":           "without jax.debug",
		"@SPMDFullToShardShape(%x)":                  "without shard_map",
		"@shape_assertion(%x)":                       "without dynamic_shapes",
		"@mylib.gate(%x) {api_version = 0 : i32}":    "--custom-ops",
		"@mine(%x) {called_computations = [@other]}": "calls computations",
	} {
		_, err := stablehlo.Import("m.mlir", []byte(call(target)))
		require.ErrorContains(t, err, want)
	}
}

// An approximate top-k whose comparison is another, and batch normalisation of integers, go on as they were written or are refused.
func TestUnknownForms(t *testing.T) {
	const call = `module {
  func.func private @other(%a: tensor<f32>, %b: tensor<f32>) -> tensor<i1> {
    %0 = stablehlo.abs %a : tensor<f32>
    %1 = stablehlo.compare GT, %0, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    return %1 : tensor<i1>
  }
  func.func @main(%x: tensor<4xf32>, %i: tensor<f32>) -> tensor<2xf32> {
    %0 = stablehlo.custom_call @ApproxTopK(%x, %i) {called_computations = [@other], mhlo.backend_config = {aggregate_to_topk = true, reduction_dim = 0 : i64, top_k = 2 : i64}} : (tensor<4xf32>, tensor<f32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}`
	_, err := stablehlo.Import("m.mlir", []byte(call))
	require.ErrorContains(t, err, `target "ApproxTopK" calls computations`)
	require.True(t, op.Opaque.Is(node(t, main("%x: tensor<2x3xf32>, %i: tensor<3xi32>", "tensor<2x3xf32>",
		`%0 = "stablehlo.batch_norm_inference"(%x, %i, %i, %i, %i) <{epsilon = 1.0 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<2x3xf32>`))))
}

// All mistakes are reported at once, each at its line and column with what was wanted.
func TestErrors(t *testing.T) {
	_, err := stablehlo.Import("m.mlir", []byte(`module @m {
  func.func public @main(%x: tensor<2xf32>, %y: tensor<2xi32>) -> tensor<2xf32> {
    %0 = stablehlo.add %x, %y : tensor<2xf32>
    %1 = stablehlo.multiply %0, %0 : tensor<2xf32>
    %2 = stablehlo.tanh %nothing : tensor<2xf32>
    %3 = stablehlo.tanh %x, : tensor<2xf32>
    %4 = stablehlo.tanh %x : tensor<3xf32>
    %5 = stablehlo.tanh ? : tensor<2xf32>
    %6 = stablehlo.reshape %x : (tensor<2xf32>) -> tensor<?xf32>
    %7 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<0> : tensor<1x1xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %a : tensor<f32>
    }) : (tensor<2xf32>) -> tensor<2xf32>
    %8 = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<2xf32>
    %9 = stablehlo.custom_call @xla_python_cpu_callback(%x) : (tensor<2xf32>) -> tensor<2xf32>
    %10 = arith.addf %x, %x : tensor<2xf32>
    %11 = call @g(%x) : (tensor<2xf32>) -> tensor<2xf32>
    %12 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [1] : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>
    return %1 : tensor<2xf32>
  }
}
`))
	require.Error(t, err)
	var got []string
	for _, line := range strings.Split(err.Error(), "\n") {
		if strings.HasPrefix(line, "m.mlir:") {
			got = append(got, strings.TrimPrefix(line, "m.mlir:"))
		}
	}
	require.Empty(t, cmp.Diff([]string{
		`3:10: stablehlo.add: operands are f32[2] and i32[2], wanted one type [stablehlo/operation]`,
		`5:25: value %nothing is not defined here, wanted one that is [stablehlo/value]`,
		`7:10: stablehlo.tanh: result 0 is f32[3], wanted f32[2] by its operands and attributes [stablehlo/operation]`,
		`8:25: "?", wanted an operand, an attribute or ":" [stablehlo/syntax]`,
		`9:10: stablehlo.reshape: result 0 is tensor<?xf32>, wanted fixed sizes [stablehlo/unsupported]`,
		`10:10: stablehlo.all_reduce: a collective between devices, wanted a program for one device [stablehlo/unsupported]`,
		`14:10: stablehlo.constant: literal, wanted 2 elements in dimension 0 [stablehlo/operation]`,
		`15:10: stablehlo.custom_call: target "xla_python_cpu_callback" calls back into Python, wanted a pure function [stablehlo/unsupported]`,
		`16:11: arith.addf: an operation of another dialect, wanted StableHLO [stablehlo/unsupported]`,
		`17:11: func.call: function @g is not defined, wanted one that is [stablehlo/operation]`,
		`18:11: stablehlo.dot_general: rhs dimension 1 is out of range or named twice [dot/4]`,
	}, got))
}

func TestRefusals(t *testing.T) {
	for name, tc := range map[string]struct{ src, want string }{
		"bytecode":      {"ML\xefR\x0dStableHLO_v1.15.0", "the end, wanted a byte, at byte 22 of the file"},
		"nothing":       {"", "0 public functions, wanted one, or one named main"},
		"not utf8":      {"module { \xff }", "bytes that are no UTF-8"},
		"recursion":     {"func.func @main(%x: tensor<f32>) -> tensor<f32> {\n  %0 = call @main(%x) : (tensor<f32>) -> tensor<f32>\n  return %0 : tensor<f32>\n}", "calls itself"},
		"no return":     {"func.func @main(%x: tensor<f32>) -> tensor<f32> {\n  %0 = stablehlo.tanh %x : tensor<f32>\n}", "without a return"},
		"unfinished":    {"func.func @main(%x: tensor<f32>) -> tensor<f32> {\n", `the end of the file, wanted "}"`},
		"open string":   {"func.func @main(%x: tensor<f32>) -> tensor<f32> {\n  %0 = \"stablehlo.tanh(%x)\n}", `a string that ends with "`},
		"deep":          {"func.func @main(%x: tensor<f32> {a = " + strings.Repeat("[", 100000), "nested less deep"},
		"deep type":     {"func.func @main(%x: " + strings.Repeat("tuple<", 100000), "nested less deep"},
		"quantised":     {"func.func @main(%x: tensor<2x!quant.uniform<i8:f32, 0.1>>) -> tensor<f32> {\n}", "not quantised"},
		"dtype":         {"func.func @main(%x: tensor<2xi2>) -> tensor<f32> {\n}", "an element type other than i2"},
		"huge":          {"func.func @main(%x: tensor<9999999999x9999999999xf32>) -> tensor<f32> {\n}", "a tensor that fits"},
		"resource":      {main("", "tensor<2xf32>", "%0 = stablehlo.constant dense_resource<w> : tensor<2xf32>"), "resources must not hold them"},
		"alias twice":   {"func.func @main(%x: tensor<f32> {tf.aliasing_output = 0 : i32}, %y: tensor<f32> {tf.aliasing_output = 0 : i32}) -> tensor<f32> {\n  return %x : tensor<f32>\n}", "each once"},
		"many results":  {"func.func @main(%x: tensor<f32>) -> tensor<f32> {\n  %0:60000000 = stablehlo.tanh %x : tensor<f32>\n  return %x : tensor<f32>\n}", "60000000 results named"},
		"two of a name": {"func.func @f(%x: tensor<f32>) -> tensor<f32> {\n  return %x : tensor<f32>\n}\nfunc.func @f(%x: tensor<f32>) -> tensor<f32> {\n  return %x : tensor<f32>\n}", "defined twice"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := stablehlo.Import("m.mlir", []byte(tc.src))
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// Texts that would grow without end when calls are written out, regions repeated or names made are refused or taken in time and memory in
// proportion to what is allowed.
func TestBombs(t *testing.T) {
	double := func(levels int, body string) string {
		var b strings.Builder
		for i := range levels {
			name, next := fmt.Sprintf("f%d", i), fmt.Sprintf("f%d", i+1)
			if i == 0 {
				name = "main"
			}
			fmt.Fprintf(&b, "func.func @%s(%%x: tensor<f32>) -> tensor<f32> {\n  %%0 = call @%s(%%x) : (tensor<f32>) -> tensor<f32>\n  %%1 = call @%s(%%0) : (tensor<f32>) -> tensor<f32>\n  return %%1 : tensor<f32>\n}\n", name, next, next)
		}
		fmt.Fprintf(&b, "func.func @f%d(%%x: tensor<f32>) -> tensor<f32> {\n%s}\n", levels, body)
		return b.String()
	}
	var locs strings.Builder
	for i := range 300 {
		fmt.Fprintf(&locs, "#l%d = loc(fused[#l%d, #l%d])\n", i, i+1, i+1)
	}
	for name, tc := range map[string]struct{ src, want string }{
		"calls":       {double(60, "  return %x : tensor<f32>\n"), "with called functions written out"},
		"fused":       {main("%x: tensor<f32>", "tensor<f32>", "%0 = stablehlo.tanh %x : tensor<f32> loc(#l0)") + locs.String(), ""},
		"splat":       {main("", "tensor<1000000x1000000xf32>", "%0 = stablehlo.constant dense<0.0> : tensor<1000000x1000000xf32>"), ""},
		"names":       {"func.func @main(" + strings.TrimSuffix(strings.Repeat("%x: tensor<f32> loc(\"a\"), ", 50000), ", ") + ") -> tensor<f32> {\n  return %x : tensor<f32>\n}", ""},
		"brackets":    {strings.Repeat("module {", 20000), "wanted"},
		"regions":     {"func.func @main(%x: tensor<f32>) -> tensor<f32> {\n" + strings.Repeat("%0 = \"stablehlo.case\"(%x) ({\n", 20000), "nested less deep"},
		"many errors": {main("%x: tensor<f32>", "tensor<f32>", strings.Repeat("%0 = stablehlo.tanh ?\n", 100000)), "more than 100 errors"},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := stablehlo.Import("m.mlir", []byte(tc.src))
			require.Less(t, time.Since(start), time.Minute)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
		})
	}
}
