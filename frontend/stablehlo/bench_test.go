package stablehlo_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tpuc/frontend/stablehlo"
)

// chain is a module of n operations in both forms, with attributes and locations as JAX writes them.
func chain(n int) string {
	var b, locs strings.Builder
	b.WriteString("module @chain attributes {mhlo.num_partitions = 1 : i32} {\n  func.func public @main(%x: tensor<8x256xf32>, %w: tensor<256x256xf32>) -> tensor<8x256xf32> {\n")
	forms := []string{
		"    %%%d = stablehlo.dot_general %%%[3]s, %%w, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x256xf32>, tensor<256x256xf32>) -> tensor<8x256xf32> loc(#loc%[2]d)\n",
		"    %%%d = \"stablehlo.slice\"(%%%[3]s) <{limit_indices = array<i64: 8, 256>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<8x256xf32>) -> tensor<8x256xf32> loc(#loc%[2]d)\n",
		"    %%%d = stablehlo.add %%%[3]s, %%x : tensor<8x256xf32> loc(#loc%[2]d)\n",
		"    %%%d = stablehlo.custom_call @layer%[2]d(%%%[3]s) {backend_config = \"%[2]d\"} : (tensor<8x256xf32>) -> tensor<8x256xf32> loc(#loc%[2]d)\n",
	}
	last := "x"
	for i := range n {
		fmt.Fprintf(&b, forms[i%len(forms)], i, i, last)
		fmt.Fprintf(&locs, "#loc%d = loc(\"jit(f)/layer_%d/op\"(\"model.py\":%d:1 to :9))\n", i, i, i+1)
		last = fmt.Sprint(i)
	}
	fmt.Fprintf(&b, "    return %%%s : tensor<8x256xf32>\n  }\n}\n%s", last, locs.String())
	return b.String()
}

func BenchmarkImport(b *testing.B) {
	src := []byte(chain(10000))
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		_, err := stablehlo.Import("chain.mlir", src)
		require.NoError(b, err)
	}
}

// A text of 10 MB takes a second or so of one processor; time that grows faster than the text would not end here.
func TestLargeText(t *testing.T) {
	src := []byte(chain(55000))
	require.Greater(t, len(src), 10<<20)
	start := time.Now()
	p, err := stablehlo.Import("chain.mlir", src)
	require.NoError(t, err)
	require.Len(t, p.Module.Func.Body, 55000)
	require.Less(t, time.Since(start), time.Minute)
}
