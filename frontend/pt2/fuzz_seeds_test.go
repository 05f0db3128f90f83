package pt2

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/frontend/weights"
	"tpuc/internal/seeds"
	"tpuc/ir"
	"tpuc/ir/diag"
)

// FuzzImport reads and imports a graph and the indexes of weights and constants, all three of which change. The tensors have no bytes.
func FuzzImport(f *testing.F) {
	for _, a := range seeds.Archives(f) {
		if w := a.Entry("weights/model_weights_config.json"); w != nil {
			f.Add(a.Graph(), w, a.Entry("constants/model_constants_config.json"))
		}
	}
	for _, a := range seeds.Archives(f) {
		if a.Name != "old_2.9.1.pt2" && a.Name != "old_2.9.1.decomp.pt2" && a.Name != "mlp_dynamic.model.pt2" && a.Name != "old_2.5.1.pt2" {
			continue
		}
		w, c := a.Entry("weights/model_weights_config.json"), a.Entry("constants/model_constants_config.json")
		for _, r := range damages {
			f.Add(bytes.Replace(a.Graph(), []byte(r[0]), []byte(r[1]), -1), w, c)
			f.Add(bytes.Replace(a.Graph(), []byte(r[0]), []byte(r[1]), 1), w, c)
			f.Add(a.Graph(), bytes.Replace(w, []byte(r[0]), []byte(r[1]), 1), bytes.Replace(c, []byte(r[0]), []byte(r[1]), -1))
		}
	}
	f.Fuzz(func(t *testing.T, graph, weightIndex, constantIndex []byte) {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for _, e := range []struct {
			name string
			data []byte
		}{{"models/model.json", graph}, {"data/weights/weight_0", nil}, {"data/weights/model_weights_config.json", weightIndex},
			{"data/constants/tensor_0", nil}, {"data/constants/model_constants_config.json", constantIndex}} {
			w, err := z.CreateHeader(&zip.FileHeader{Name: "m/" + e.name, Method: zip.Store})
			require.NoError(t, err)
			_, err = w.Write(e.data)
			require.NoError(t, err)
		}
		require.NoError(t, z.Close())
		archive, err := weights.ReadArchive("fuzz", b.Bytes())
		if err != nil {
			return
		}
		p, err := read(context.Background(), archive)
		if err != nil {
			return
		}
		bound, err := p.Hints()
		if err != nil {
			return
		}
		if err := bindBothWays(p, bound); err != nil {
			return
		}
		m, err := p.Import(context.Background(), bound)
		var bug *diag.Bug
		if errors.As(err, &bug) {
			t.Fatalf("%v\n%s", bug, bug.Stack)
		}
		if err == nil {
			require.NoError(t, ir.Verify(m.Module))
		}
	})
}

// bindBothWays names the hints' sizes as a user does: by symbol, by dimension, and by inputs of that shape, right and wrong ones.
func bindBothWays(p *Program, hints Binding) error {
	dims := make(map[string]int64)
	var shapes, wrong [][]int64
	for _, in := range p.Inputs {
		if in.Kind != Tensor {
			continue
		}
		shape := make([]int64, len(in.Dims))
		for d, dim := range in.Dims {
			shape[d] = dim.Size
			if dim.expr == nil {
				continue
			}
			v, err := dim.expr.evalInt(hints)
			if err != nil {
				return err
			}
			shape[d], dims[dimName(in, d)] = v, v
		}
		shapes, wrong = append(shapes, shape), append(wrong, append([]int64{1}, shape...))
	}
	_, _ = p.BindShapes(wrong)
	_, _ = p.Bind(map[string]int64{"nobody": 1})
	_, _ = p.Bind(dims)
	for name := range dims {
		dims[name]++
	}
	_, _ = p.Bind(dims)
	if _, err := p.Bind(hints); err != nil {
		return err
	}
	_, err := p.BindShapes(shapes)
	return err
}

// damages are replacements in the JSON of an archive, each of which meets another check.
var damages = [][2]string{
	{`"major":8`, `"major":9`}, {`"major":8`, `"major":7`}, {`"schema_version"`, `"version"`}, {`{"graph_module"`, `{"x":[{"graph_module"`}, {`"as_tensor"`, `"as_none"`},
	{`"as_tensor":{"name":"x"}`, `"as_int":3`}, {`"as_tensor":{"name":"x"}`, `"as_float":"NaN"`}, {`"as_tensor":{"name":"x"}`, `"as_float":"one"`}, {`"as_tensor":{"name":"x"}`, `"as_bool":true`},
	{`"as_tensor":{"name":"x"}`, `"as_string":"s"`}, {`"as_tensor":{"name":"x"}`, `"as_tensors":[{"name":"x"}]`}, {`"as_tensor":{"name":"x"}`, `"as_tensor":{"name":"nobody"}`},
	{`"as_tensor":{"name":"x"}`, `"as_sym_int":{"as_name":"sym_size_int_1"}`}, {`"as_tensor":{"name":"x"}`, `"as_sym_int":{"as_int":3}`}, {`"as_tensor":{"name":"x"}`, `"as_custom_obj":{"name":"x"}`},
	{`"as_int":1`, `"as_sym_int":{"as_name":"sym_size_int_1"}`}, {`"as_int":1`, `"as_sym_int":{"as_name":"nobody"}`}, {`"as_int":1`, `"as_sym_int":{}`}, {`"as_int":1`, `"as_complex":{"real":1,"imag":2}`},
	{`"as_int":1`, `"as_ints":[1,2]`}, {`"as_int":1`, `"as_sym_ints":[{"as_int":1},{"as_name":"sym_size_int_1"}]`}, {`"as_int":1`, `"as_int":-1`}, {`"as_int":8`, `"as_int":9`}, {`"as_int":8`, `"as_int":-8`},
	{`"as_int":8`, `"as_expr":{"expr_str":"Symbol('u0')"}`}, {`"as_int":8`, `"as_expr":{"expr_str":"Add(1"}`}, {`"as_int":8`, `"as_expr":null`}, {`"as_int":8`, `"as_int":4611686018427387904`},
	{`"as_int":8`, `"as_expr":{"expr_str":"Symbol('s77', positive=True, integer=True)","hint":{"as_int":3}}`}, {`"as_int":3`, `"as_int":0`}, {`"as_int":3`, `"as_int":1`},
	{`"dtype":7`, `"dtype":5`}, {`"dtype":7`, `"dtype":99`}, {`"dtype":7`, `"dtype":9`}, {`"dtype":7`, `"dtype":10`}, {`"parameter":`, `"custom_obj":`}, {`"parameter":`, `"token":`}, {`"parameter":`, `"other":`},
	{`"buffer":`, `"parameter":`}, {`"persistent":true`, `"persistent":false`}, {`"user_input":`, `"constant_input":`}, {`"user_output":`, `"token":`}, {`"user_output":`, `"loss_output":`},
	{`"buffer_mutation":`, `"parameter_mutation":`}, {`"buffer_mutation":`, `"user_input_mutation":`}, {`"buffer_name":"count"`, `"buffer_name":"nobody"`}, {`"parameter_name":"fc1.weight"`, `"parameter_name":"nobody"`},
	{`"name":"p_fc1_weight"`, `"name":"p_fc2_weight"`}, {`"name":"linear"`, `"name":"gelu"`}, {`torch.ops.aten.gelu.default`, `torch.ops.aten.nobody.default`}, {`torch.ops.aten.gelu.default`, `torch.ops.aten.view.default`},
	{`torch.ops.aten.gelu.default`, `torch.ops.aten.relu_.default`}, {`torch.ops.aten.gelu.default`, `torch.ops.aten.nonzero.default`}, {`torch.ops.aten.add.Tensor`, `torch.ops.aten.sub_.Tensor`},
	{`torch.ops.aten.linear.default`, `torch.ops.aten.mul.Tensor`}, {`"outputs":[{`, `"outputs":[{"as_none":true},{`}, {`s77`, `u77`}, {`"max_val":64`, `"max_val":2`}, {`"min_val":2`, `"min_val":50`},
	{`"in_spec":"[1,`, `"in_spec":"[2`}, {`builtins.tuple`, `builtins.dict`}, {`File \"`, `File `}, {`, line `, `, row `}, {`/`, `/site-packages/torch/`}, {`"hint":`, `"thin":`},
	{`"use_pickle":false`, `"use_pickle":true`}, {`"layout":7`, `"layout":1`}, {`"path_name":"weight_0"`, `"path_name":"../weight_0"`}, {`"fc1.weight"`, `"fc3.weight"`}, {`"config"`, `"gifnoc"`},
}

// FuzzExpr reads symbolic expressions and evaluates them. What an expression prints is an expression of the same value.
func FuzzExpr(f *testing.F) {
	seen := make(map[string]bool)
	text := regexp.MustCompile(`"expr_str":"((?:[^"\\]|\\.)*)"`)
	for _, a := range seeds.Archives(f) {
		for _, m := range text.FindAllSubmatch(a.Graph(), -1) {
			if s := string(m[1]); !seen[s] {
				seen[s] = true
				f.Add(s)
			}
		}
	}
	for _, s := range []string{"2*s0 + 1", "-(s0//2)**2 - 3", "s0 % 5 / 2", "1.5e-3*s0", "Max(1, s0 - 1)", "Mod(s0, 2)", "Symbol('s0', positive=True)", "Float('1.5', precision=53)",
		"Integer(-3)", "Where(LessThan(s0, Integer(9)), Integer(1), Integer(2))", "ModularIndexing(s0, Integer(2), Integer(4))", "CeilDiv(s0, 5)", "TruncToInt(1.5*ToFloat(s0))",
		"Pow(s0, Integer(-2))", "Pow(10, 100)", "FloorDiv(s0, 0)", "Mod(s0)", "Zeta(s0)", "s9", "Abs(-3)", "Min(1, 2)", "Equality(1, 1)", "Unequality(1, 2)", "StrictLessThan(1, 2)",
		"GreaterThan(1, 2)", "StrictGreaterThan(2, 1)", "CeilToInt(IntTrueDiv(s0, 2))", "RoundToInt(Float('1e300'))", "FloorDiv(Float('1.0'), 2)", "IntTrueDiv(1, 0)",
		"9223372036854775807*2", "9223372036854775807 + 1", "99999999999999999999", "", "Add(1,", "Add(1 2)", "s0 s1", "Symbol(s0)", "Symbol('s0', positive)", "Integer(s0)",
		"Float('x')", "Float('1', x)", "(s0", "s0 ** * 2", "1.x", strings.Repeat("(", 300), strings.Repeat("Add(", 300), "1" + strings.Repeat("+1", 1100)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := parseExpr(s)
		if err != nil {
			return
		}
		set := make(map[string]bool)
		e.symbols(set)
		bound := make(map[string]int64)
		for name := range set {
			bound[name] = 7
		}
		got, err := e.evalInt(bound)
		if len(s) > 1000 || err != nil || strings.Contains(s, "Float") || strings.ContainsAny(s, ".'\"") {
			return // floats print without all digits, and a quoted symbol may be anything
		}
		again, err := parseExpr(e.String())
		if err != nil && (strings.Contains(err.Error(), "nested deeper") || strings.Contains(err.Error(), "operators")) {
			return // 1000 negations print 1000 factors
		}
		require.NoError(t, err, "%q prints %q", s, e)
		same, err := again.evalInt(bound)
		require.NoError(t, err, "%q prints %q", s, e)
		require.Equal(t, got, same, "%q prints %q", s, e)
	})
}
