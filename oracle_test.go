package tpuc_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"tpuc/internal/golden"
	"tpuc/ir"
	"tpuc/ir/eval"
	"tpuc/ir/tensor"
	"tpuc/ir/text"
	"tpuc/lower"
	"tpuc/passes"
	"tpuc/tpu"
	"tpuc/tpu/chip"
	"tpuc/tpu/pjrt"
	"tpuc/tpu/plugin"
)

// opCases are the modules of testdata/op by case and folder.
func opCases(t *testing.T) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for _, file := range cases(t, filepath.Join("testdata", "op")) {
		a, err := txtar.ParseFile(file)
		require.NoError(t, err)
		for _, f := range a.Files {
			if filepath.Base(f.Name) == "in.tpu" {
				out[filepath.Join(strings.TrimSuffix(filepath.Base(file), ".txtar"), filepath.Dir(f.Name))] = string(f.Data)
			}
		}
	}
	require.NotEmpty(t, out)
	return out
}

// TestLoweringMatchesEvaluator runs every operator's cases through all passes, lowering and the CPU plugin, and compares with the evaluator.
func TestLoweringMatchesEvaluator(t *testing.T) {
	lib, err := pjrt.Open(needPlugin(t, plugin.CPU).Path)
	require.NoError(t, err)
	client, err := lib.NewClient()
	require.NoError(t, err)
	defer client.Close()
	for name, src := range opCases(t) {
		t.Run(name, func(t *testing.T) {
			m, err := text.Parse(name, src)
			require.NoError(t, err)
			require.NoError(t, runBoth(t, client, m))
		})
	}
}

// runBoth takes m through all passes, lowering and the CPU plugin, and compares with the evaluator.
func runBoth(t *testing.T, client *pjrt.Client, m *ir.Module) error {
	t.Helper()
	const seed = 1
	want, err := golden.Eval(m, seed)
	require.NoError(t, err)
	_, err = passes.Run(t.Context(), m, passes.Options{Verify: true})
	require.NoError(t, err)
	p, err := lower.Lower(m)
	require.NoError(t, err)
	got, err := execute(t, client, m, p, seed)
	if err != nil {
		t.Logf("%s", p.Text)
		return err
	}
	return golden.Equivalent(want, got)
}

// TestHalfQuotients divides f16 by one number: every quotient is rounded once, as in torch and in the evaluator.
func TestHalfQuotients(t *testing.T) {
	lib, err := pjrt.Open(needPlugin(t, plugin.CPU).Path)
	require.NoError(t, err)
	client, err := lib.NewClient()
	require.NoError(t, err)
	defer client.Close()
	for _, divisor := range []string{"%0 = constant {value=f16[] 3} : f16[]", "%0 = abs %y : f16[]"} {
		m, err := text.Parse("in.tpu", "func @main(%x: f16[999], %y: f16[]) {\n"+divisor+`
  %1 = broadcast %0 {shape=[999]} : f16[999]
  %2 = div %x, %1 : f16[999]
  return %2
}`)
		require.NoError(t, err)
		numerators := make([]float64, 999)
		for i := range numerators {
			numerators[i] = float64(i) / 8
		}
		inputs := []*tensor.Tensor{tensor.FromFloats(m.Func.Params[0].Type, numerators), tensor.FromFloats(m.Func.Params[1].Type, []float64{2.9})}
		want, err := eval.Run(m, inputs, eval.Options{})
		require.NoError(t, err)
		p, err := lower.Lower(m)
		require.NoError(t, err)
		got, err := runProgram(t, client, p, func(a lower.Arg) *tensor.Tensor { return inputs[a.Param] })
		require.NoError(t, err)
		require.Equal(t, want.Outputs[0].Floats(), got[0].Floats())
	}
}

// TestRoundings widens sums below f32: what the addition rounds away is gone on the plugin too.
func TestRoundings(t *testing.T) {
	lib, err := pjrt.Open(needPlugin(t, plugin.CPU).Path)
	require.NoError(t, err)
	client, err := lib.NewClient()
	require.NoError(t, err)
	defer client.Close()
	for _, d := range []string{"bf16", "f16"} {
		m, err := text.Parse("in.tpu", strings.ReplaceAll(`func @main(%x: T[2]) {
  %0 = constant {value=T[2] [1,1]} : T[2]
  %1 = add %x, %0 : T[2]
  %2 = convert %1 {to=f32} : f32[2]
  return %2
}`, "T", d))
		require.NoError(t, err)
		x := tensor.FromFloats(m.Func.Params[0].Type, []float64{4096, 2})
		p, err := lower.Lower(m)
		require.NoError(t, err)
		got, err := runProgram(t, client, p, func(lower.Arg) *tensor.Tensor { return x })
		require.NoError(t, err)
		require.Equal(t, []float64{4096, 3}, got[0].Floats(), d)
	}
}

// execute compiles p in this process and runs it on golden.Random's inputs and weights.
func execute(t *testing.T, client *pjrt.Client, m *ir.Module, p *lower.Program, seed uint64) (*eval.Result, error) {
	results, err := runProgram(t, client, p, func(a lower.Arg) *tensor.Tensor {
		if a.Kind == lower.Input {
			return golden.Random(a.Type, seed, strconv.Itoa(a.Param))
		}
		return golden.Random(a.Type, seed, "@"+a.Weight.Sym)
	})
	if err != nil {
		return nil, err
	}
	out := &eval.Result{}
	for _, r := range p.Outputs {
		out.Outputs = append(out.Outputs, results[r])
	}
	for _, u := range p.Updates {
		out.Updates = append(out.Updates, results[u.Result])
	}
	return out, nil
}

// runProgram compiles p in this process and runs it on its own constants and on what value gives for the other arguments.
func runProgram(t *testing.T, client *pjrt.Client, p *lower.Program, value func(lower.Arg) *tensor.Tensor) ([]*tensor.Tensor, error) {
	exe, err := client.Compile(p.Text, pjrt.OptionsFor(nil, true))
	if err != nil {
		return nil, err
	}
	defer exe.Close()
	var args []*pjrt.Buffer
	for _, a := range p.Args {
		x := a.Value
		if x == nil {
			x = value(a)
		}
		kind, err := pjrt.ParseBufferType(a.Type.DType.MLIR())
		if err != nil {
			return nil, err
		}
		b, err := client.BufferFromHost(pjrt.HostBuffer{Type: kind, Dims: x.Dims, Data: x.Data, Semantics: pjrt.ImmutableOnlyDuringCall})
		if err != nil {
			return nil, err
		}
		defer b.Close()
		args = append(args, b)
	}
	buffers, err := exe.Execute(t.Context(), args, pjrt.ExecuteOptions{})
	if err != nil {
		return nil, err
	}
	results := make([]*tensor.Tensor, len(buffers))
	for i, b := range buffers {
		defer b.Close()
		results[i] = tensor.Zeros(p.Results[i])
		if err := b.ToHost(t.Context(), results[i].Data); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// TestEveryOperatorCompilesForTPU compiles the operators' cases for a TPU, all in one program.
func TestEveryOperatorCompilesForTPU(t *testing.T) {
	lib := needPlugin(t, plugin.TPU)
	all := &ir.Module{Func: &ir.Func{Name: "main"}}
	sources := opCases(t)
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		m, err := text.Parse(name, sources[name])
		require.NoError(t, err)
		for _, w := range m.Weights {
			w.Sym = strings.ReplaceAll(name, "/", "_") + "_" + w.Sym
		}
		all.Weights = append(all.Weights, m.Weights...)
		for _, p := range m.Func.Params {
			p.Index = len(all.Func.Params)
			all.Func.Params = append(all.Func.Params, p)
		}
		all.Func.Body = append(all.Func.Body, m.Func.Body...)
		all.Func.Results = append(all.Func.Results, m.Func.Results...)
		all.Func.Updates = append(all.Func.Updates, m.Func.Updates...)
	}
	_, err := passes.Run(t.Context(), all, passes.Options{Verify: true})
	require.NoError(t, err)
	p, err := lower.Lower(all)
	require.NoError(t, err)
	target, err := chip.Parse("v6e:1x1")
	require.NoError(t, err)
	_, err = tpu.Compile(t.Context(), tpu.Request{Program: p.Text, PluginPath: lib.Path, Target: tpu.TargetOf(target), CrashDir: t.TempDir()})
	require.NoError(t, err)
}
