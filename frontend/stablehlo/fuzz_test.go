package stablehlo_test

import (
	"archive/zip"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/frontend/stablehlo"
	"tpuc/internal/seeds"
	"tpuc/ir/text"
)

// FuzzImport demands of any text and bytecode a module or an error. A module prints to a text that parses to the same.
func FuzzImport(f *testing.F) {
	for _, folder := range []string{"jax", "xla"} {
		addCases(f, filepath.Join("..", "..", "testdata", folder, "cases.zip"))
	}
	for i, m := range seeds.Bytecode(f) {
		if i%59 == 0 || m.Form == "export" {
			f.Add(m.Data)
		}
	}
	f.Add([]byte("func.func @main(%x: tensor<2xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<2xf32> {jax.result_info = \"a\"}) {\n  return %x : tensor<2xf32>\n}\n"))
	f.Add([]byte("#a = loc(fused[#a, #b])\nmodule attributes {a = [1 : i32, @s, dense<0> : tensor<1xi64>, (i1) -> ()]} {\n}\n{-# dialect_resources: {} #-}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := stablehlo.Import("fuzz.mlir", data)
		if err != nil {
			_ = err.Error()
			return
		}
		once := text.Print(p.Module)
		if len(once) > 1<<20 {
			return
		}
		m, err := text.Parse("fuzz.tpu", once)
		require.NoError(t, err)
		require.Equal(t, once, text.Print(m))
	})
}

// addCases adds every seventh text of an archive of cases.
func addCases(f *testing.F, archive string) {
	f.Helper()
	z, err := zip.OpenReader(archive)
	require.NoError(f, err)
	defer z.Close()
	for i, file := range z.File {
		if i%21 != 0 || filepath.Base(file.Name) != "model.mlir" { // three files a case
			continue
		}
		r, err := file.Open()
		require.NoError(f, err)
		data, err := io.ReadAll(r)
		require.NoError(f, err)
		require.NoError(f, r.Close())
		f.Add(data)
	}
}
