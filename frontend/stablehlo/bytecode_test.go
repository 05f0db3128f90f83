package stablehlo_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"tpuc/frontend/stablehlo"
	"tpuc/internal/seeds"
	"tpuc/ir/op"
	"tpuc/ir/text"
)

// module reads one of the modules of the package bytecode.
func module(t *testing.T, name string) []byte {
	data, err := os.ReadFile(filepath.Join("bytecode", "testdata", name))
	require.NoError(t, err)
	return data
}

// TestBytecodeLiterals gives literals of every kind, those that do not stand in the text too, the elements that the text has.
func TestBytecodeLiterals(t *testing.T) {
	want, err := stablehlo.Import("literals.mlir", module(t, "literals.builtin.mlir"))
	require.NoError(t, err)
	for _, file := range []string{"literals.builtin.mlirbc", "literals.1.17.0.mlirbc", "literals.0.12.0.mlirbc"} {
		got, err := stablehlo.Import("literals.mlir", module(t, file))
		require.NoError(t, err)
		for _, p := range []*stablehlo.Program{want, got} {
			for _, n := range p.Module.Func.Body {
				n.Loc = nil
			}
		}
		require.Empty(t, cmp.Diff(text.Print(want.Module), text.Print(got.Module)), file)
	}
}

// TestBytecodeOpaque writes a literal that does not stand in the text into the text of an opaque operation.
func TestBytecodeOpaque(t *testing.T) {
	p, err := stablehlo.Import("opaque.mlirbc", module(t, "opaque.builtin.mlirbc"))
	require.NoError(t, err)
	a := op.Opaque.Attr(p.Module.Func.Results[0].Def)
	require.Equal(t, "stablehlo.map", a.Name)
	require.Contains(t, a.Text, `"stablehlo.constant"() <{value = dense<[0, 1, 2, 3,`)
}

// TestBytecodeMixed reads an artifact with operations of CHLO and shardings, which is what the module in its own dialects is.
func TestBytecodeMixed(t *testing.T) {
	var first string
	for _, file := range []string{"mixed.builtin.mlirbc", "mixed.artifact.mlirbc"} {
		p, err := stablehlo.Import("mixed.mlirbc", module(t, file))
		require.NoError(t, err)
		require.Equal(t, []string{"shardings are left out, the program is compiled for one device"}, p.Notes)
		require.True(t, op.Sin.Is(p.Module.Func.Results[0].Def))
		require.True(t, op.TopK.Is(p.Module.Func.Results[0].Def.Args[0].Def))
		if first == "" {
			first = text.Print(p.Module)
		}
		require.Empty(t, cmp.Diff(first, text.Print(p.Module)))
	}
}

// TestBytecodeErrors reports everything that cannot be taken at once, at lines of the text that bytecode is turned into, with the text itself.
func TestBytecodeErrors(t *testing.T) {
	_, err := stablehlo.Import("operations.mlirbc", module(t, "operations.1.17.0.mlirbc"))
	require.Error(t, err)
	for _, want := range []string{
		"stablehlo.all_reduce: a collective between devices, wanted a program for one device [stablehlo/unsupported]\n    %21 = \"stablehlo.all_reduce\"(%1)",
		"stablehlo.create_token: result 0 is !stablehlo.token, wanted no token",
		"stablehlo.dynamic_conv: result 0 is tensor<1x?x?x4xf32>, wanted fixed",
		"parameter 4 is !stablehlo.token, wanted no token",
	} {
		require.ErrorContains(t, err, want)
	}
	require.True(t, strings.HasPrefix(err.Error(), "operations.mlirbc:"), err)
	_, err = stablehlo.Import("builtin.mlirbc", module(t, "builtin.builtin.mlirbc"))
	require.ErrorContains(t, err, "mine.op: an operation of another dialect, wanted StableHLO")
	_, err = stablehlo.Import("cut.mlirbc", module(t, "operations.1.17.0.mlirbc")[:500])
	require.ErrorContains(t, err, "cut.mlirbc: ")
	require.ErrorContains(t, err, "bytes are left, wanted no more, at byte ")
	require.ErrorContains(t, err, `written by "StableHLO_v1.17.0"`)
}

// TestBytecodeMutants changes some bytes of JAX's modules: each gives an error or a module, in time.
func TestBytecodeMutants(t *testing.T) {
	modules := seeds.Bytecode(t)
	r := rand.New(rand.NewPCG(1, 2))
	taken := 0
	for range 4000 {
		m := modules[r.IntN(len(modules))]
		data := slices.Clone(m.Data)
		for range 1 + r.IntN(3) {
			data[r.IntN(len(data))] = byte(r.Uint32())
		}
		start := time.Now()
		if _, err := stablehlo.Import("mutant.mlirbc", data); err == nil {
			taken++
		}
		require.Less(t, time.Since(start), 5*time.Second, "%s %s", m.Form, m.Name)
	}
	require.Greater(t, taken, 100) // names and numbers that mean something else
	require.Less(t, taken, 2000)
}

// TestExports finds the module inside of exports of JAX, and nothing in damaged ones.
func TestExports(t *testing.T) {
	artifacts := make(map[string][]byte)
	n := 0
	for _, m := range seeds.Bytecode(t) {
		switch m.Form {
		case "artifact":
			artifacts[m.Name] = m.Data
		case "export":
			n++
			require.True(t, stablehlo.IsModule(strings.NewReader(string(m.Data)), int64(len(m.Data))))
			want, err := stablehlo.Import("m", artifacts[m.Name])
			require.NoError(t, err)
			got, err := stablehlo.Import("m", m.Data)
			require.NoError(t, err)
			require.Equal(t, text.Print(want.Module), text.Print(got.Module))
			for at := range 64 { // the root table and where its fields lie
				bad := append([]byte{}, m.Data...)
				bad[at] ^= 0xFF
				stablehlo.IsModule(strings.NewReader(string(bad)), int64(len(bad)))
				stablehlo.IsModule(strings.NewReader(string(bad[:at])), int64(at))
			}
		}
	}
	require.Equal(t, 5, n)
}
