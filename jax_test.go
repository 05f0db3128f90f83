package tpuc_test

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc"
	"tpuc/frontend/weights"
	"tpuc/internal/compare"
	"tpuc/ir"
	"tpuc/ir/tensor"
	"tpuc/lower"
	"tpuc/passes"
	"tpuc/tpu"
	"tpuc/tpu/chip"
	"tpuc/tpu/pjrt"
	"tpuc/tpu/plugin"
)

// Modules that JAX wrote, with its inputs and outputs: testdata/jax/cases.zip, from tools/cases/jax_export.py.

// unpackJAX gives the folder of the cases and their names.
func unpackJAX(t *testing.T) (string, []string) {
	t.Helper()
	dir, names := unpackCases(t, filepath.Join("testdata", "jax", "cases.zip"))
	require.GreaterOrEqual(t, len(names), 400)
	return dir, names
}

// unpackCases gives the folder of an archive's cases and their names.
func unpackCases(t *testing.T, archive string) (string, []string) {
	t.Helper()
	dir := t.TempDir()
	z, err := zip.OpenReader(archive)
	require.NoError(t, err)
	defer z.Close()
	var names []string
	for _, f := range z.File {
		require.True(t, filepath.IsLocal(f.Name), f.Name)
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		r, err := f.Open()
		require.NoError(t, err)
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		require.NoError(t, os.WriteFile(name, data, 0o644))
		if filepath.Base(name) == "model.mlir" {
			names = append(names, filepath.Base(filepath.Dir(name)))
		}
	}
	slices.Sort(names)
	return dir, names
}

// TestJAXOnEvaluator demands JAX's outputs of every case but those of operations that travel opaquely, which are listed.
func TestJAXOnEvaluator(t *testing.T) {
	dir, names := unpackJAX(t)
	evaluateCases(t, dir, len(names), opaqueJAX)
}

// evaluateCases demands the exporter's outputs of all n cases of a folder but those that are listed, which hold operations without an evaluator.
func evaluateCases(t *testing.T, dir string, n int, opaqueCases []string) {
	t.Helper()
	cases, err := tpuc.FindCases([]string{dir})
	require.NoError(t, err)
	require.Len(t, cases, n)
	r, err := tpuc.RunCases(t.Context(), cases, tpuc.SuiteOptions{Evaluate: true, Jobs: runtime.NumCPU(), CrashDir: t.TempDir()})
	require.NoError(t, err)
	var opaque []string
	for _, c := range r.Cases {
		if c.Status == tpuc.StatusFailed && strings.Contains(c.Message, "has no evaluator") {
			opaque = append(opaque, filepath.Base(c.Name))
			continue
		}
		require.Equal(t, tpuc.StatusOK, c.Status, "%s: %s", c.Name, c.Message)
		for _, call := range c.Calls {
			require.NotEmpty(t, call.Compared)
		}
	}
	slices.Sort(opaque)
	require.Equal(t, opaqueCases, opaque, "cases that are not evaluated")
}

// TestJAXOnCPU compiles all cases, a few dozen to a program, and compares every output with JAX's.
func TestJAXOnCPU(t *testing.T) {
	needPlugin(t, plugin.CPU)
	dir, names := unpackJAX(t)
	runJAXOnCPU(t, dir, "model.mlir", names)
}

// runJAXOnCPU compares the outputs of cases, from the file of that name in their folders, with JAX's.
func runJAXOnCPU(t *testing.T, dir, file string, names []string) {
	lib, err := pjrt.Open(needPlugin(t, plugin.CPU).Path)
	require.NoError(t, err)
	client, err := lib.NewClient()
	require.NoError(t, err)
	defer client.Close()
	for batch := range slices.Chunk(names, 30) {
		t.Run(batch[0], func(t *testing.T) {
			m, inputs, outputs := mergeJAX(t, dir, file, batch)
			_, err := passes.Run(t.Context(), m, passes.Options{Verify: true})
			require.NoError(t, err)
			p, err := lower.Lower(m)
			require.NoError(t, err)
			got, err := call(t, client, p, inputs)
			require.NoError(t, err)
			require.Len(t, got, len(outputs))
			for i, want := range outputs {
				c := compare.Compare(got[i], want.Tensor, compare.Default(want.DType))
				require.True(t, c.OK, "%s: at %v it is %s, wanted %s %s", want.name, c.Worst, c.Got, c.Want, c.Problem)
			}
		})
	}
}

// TestJAXForTPU compiles a sample of every family for one v6e chip, all in one program. Of all the cases libtpu refuses the gradient of
// overlapping pooling over the two minor dimensions: its select-and-scatter has no such form.
func TestJAXForTPU(t *testing.T) {
	lib := needPlugin(t, plugin.TPU)
	dir, names := unpackJAX(t)
	var sample []string
	for i, name := range names {
		if (i%9 == 0 || strings.HasPrefix(name, "model_")) && name != "reduce_max_pool_overlapping_grad" {
			sample = append(sample, name)
		}
	}
	m, _, _ := mergeJAX(t, dir, "model.mlir", sample)
	_, err := passes.Run(t.Context(), m, passes.Options{Verify: true})
	require.NoError(t, err)
	p, err := lower.Lower(m)
	require.NoError(t, err)
	target, err := chip.Parse("v6e:1x1")
	require.NoError(t, err)
	_, err = tpu.Compile(t.Context(), tpu.Request{Program: p.Text, PluginPath: lib.Path, Target: tpu.TargetOf(target), CrashDir: t.TempDir()})
	require.NoError(t, err)
}

// expected is an output of a case.
type expected struct {
	*tensor.Tensor
	name string
}

// mergeJAX makes one module of several cases, from the file of that name in their folders, with the inputs of all and the outputs that JAX gives.
func mergeJAX(t *testing.T, dir, file string, names []string) (*ir.Module, []*tensor.Tensor, []expected) {
	t.Helper()
	all := &ir.Module{Func: &ir.Func{Name: "main"}}
	var inputs []*tensor.Tensor
	var outputs []expected
	for _, name := range names {
		m, err := tpuc.Load(t.Context(), filepath.Join(dir, name, file), tpuc.Shapes{})
		require.NoError(t, err, name)
		for _, p := range m.Module.Func.Params {
			p.Index, p.Name = len(all.Func.Params), ""
			all.Func.Params = append(all.Func.Params, p)
		}
		all.Func.Body = append(all.Func.Body, m.Module.Func.Body...)
		all.Func.Results = append(all.Func.Results, m.Module.Func.Results...)
		all.Func.Updates = append(all.Func.Updates, m.Module.Func.Updates...)
		for i := range m.Inputs {
			inputs = append(inputs, loadTensor(t, filepath.Join(dir, name, "inputs.safetensors"), fmt.Sprintf("input_%d", i)))
		}
		for i := range m.Outputs {
			outputs = append(outputs, expected{loadTensor(t, filepath.Join(dir, name, "outputs.safetensors"), fmt.Sprintf("output_%d", i)), name})
		}
	}
	return all, inputs, outputs
}

func loadTensor(t *testing.T, file, name string) *tensor.Tensor {
	t.Helper()
	s, err := weights.OpenSafetensors(file)
	require.NoError(t, err)
	defer s.Close()
	x, err := s.Load(name)
	require.NoError(t, err)
	return &tensor.Tensor{Type: x.Type, Data: slices.Clone(x.Data)}
}

// call compiles p in this process, runs it on inputs and its own constants, and gives the user's outputs.
func call(t *testing.T, client *pjrt.Client, p *lower.Program, inputs []*tensor.Tensor) ([]*tensor.Tensor, error) {
	results, err := runProgram(t, client, p, func(a lower.Arg) *tensor.Tensor { return inputs[a.Param] })
	if err != nil {
		return nil, err
	}
	var out []*tensor.Tensor
	for _, r := range p.Outputs {
		out = append(out, results[r])
	}
	return out, nil
}

// opaqueJAX are the cases with operations that the IR has no word for, which compile but are not evaluated.
var opaqueJAX = []string{
	"control_custom_jvp", "convert_bitcast_f32_u8", "elementwise_acos_f32", "elementwise_acosh_f32",
	"elementwise_asin_f32", "elementwise_asinh_f32", "elementwise_atanh_f32",
	"elementwise_complex_parts", "elementwise_erfc_f32", "elementwise_sinh_f32", "index_scatter_apply",
	"linear_cholesky", "linear_conv_batch_groups", "linear_triangular_solve",
	"random_philox", "random_rng_bit_generator", "reduce_cumlogsumexp", "reduce_cumlogsumexp_reverse",
	"reduce_max_pool_grad", "reduce_max_pool_overlapping_grad",
}
