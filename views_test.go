package tpuc_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc"
	"tpuc/tpu/plugin"
)

// Random programs of views and in-place operators that torch ran: testdata/views/programs.tar.gz, from tools/cases/views.py.

// viewPrograms are the programs, raw and decomposed.
func viewPrograms(t *testing.T) []tpuc.Case {
	t.Helper()
	dir := t.TempDir()
	file, err := os.Open(filepath.Join("testdata", "views", "programs.tar.gz"))
	require.NoError(t, err)
	defer file.Close()
	plain, err := gzip.NewReader(file)
	require.NoError(t, err)
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.True(t, filepath.IsLocal(h.Name), h.Name)
		name := filepath.Join(dir, filepath.FromSlash(h.Name))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name, data, 0o644))
	}
	cases, err := tpuc.FindCases([]string{dir})
	require.NoError(t, err)
	return cases
}

// equalPrograms demands of each program that outputs, inputs and buffers after both calls are torch's, and that it writes to nothing else.
func equalPrograms(t *testing.T, o tpuc.SuiteOptions) {
	t.Helper()
	cases := viewPrograms(t)
	raw := len(tpuc.SelectCases(cases, tpuc.SuiteOptions{Variants: tpuc.VariantRaw}))
	require.GreaterOrEqual(t, raw, 150)
	require.GreaterOrEqual(t, len(cases)-raw, 80)
	o.Jobs, o.CrashDir = runtime.NumCPU(), t.TempDir()
	r, err := tpuc.RunCases(t.Context(), tpuc.SelectCases(cases, o), o)
	require.NoError(t, err)
	for _, c := range r.Cases {
		name := filepath.Base(c.Name) + "/" + c.Variant
		if c.Status != tpuc.StatusOK {
			t.Errorf("%s: %s: %s", name, c.Status, c.Message)
			continue
		}
		for i, call := range c.Calls {
			require.NotEmpty(t, call.Compared, "%s call %d", name, i+1)
			require.Empty(t, call.NotCompared, "%s call %d", name, i+1)
		}
	}
}

func TestViewPrograms(t *testing.T) {
	equalPrograms(t, tpuc.SuiteOptions{Evaluate: true})
}

// TestViewProgramsOnCPU compiles a sample.
func TestViewProgramsOnCPU(t *testing.T) {
	needPlugin(t, plugin.CPU)
	equalPrograms(t, tpuc.SuiteOptions{Sample: 30})
}
