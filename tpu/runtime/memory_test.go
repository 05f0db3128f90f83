package runtime

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
)

// rowOf takes row i of a large weight.
const rowOf = `module @row {
  func.func public @main(%w: tensor<2048x4096xf32>, %i: tensor<i32>) -> tensor<1x4096xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %y = stablehlo.dynamic_slice %w, %i, %zero, sizes = [1, 4096] : (tensor<2048x4096xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4096xf32>
    return %y : tensor<1x4096xf32>
  }
}`

func rowModel() (single, *tensor.Tensor) {
	t := tensor.Make(tensor.F32, 2048, 4096)
	w := tensor.Zeros(t)
	for i := range t.Dims[0] {
		binary.LittleEndian.PutUint32(w.Data[i*4096*4:], uint32(i)) // the row's number, as bits
	}
	return single{
		Inputs: []artifact.Port{port("i", tensor.I32)}, Outputs: []artifact.Port{port("y", tensor.F32, 1, 4096)},
		Weights: []artifact.Weight{{Name: "w", Names: []string{"w"}, Class: "weight", Type: artifact.MakeType(t), Expr: `"w"`}},
		Args:    []artifact.Slot{slot(artifact.KindWeight, 0), slot(artifact.KindInput, 0)},
		Results: [][]artifact.Slot{{slot(artifact.KindOutput, 0)}},
	}, w
}

// anon is the private memory of this process, in bytes.
func anon(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory()
	data, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(data), "RssAnon:")
	require.True(t, ok)
	kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	require.NoError(t, err)
	return kb << 10
}

func readRow(t *testing.T, model *Model, i int64) {
	t.Helper()
	out, err := session(t, model).Run(t.Context(), []*tensor.Tensor{tensor.ScalarInt(tensor.I32, i)})
	require.NoError(t, err)
	require.Equal(t, uint32(i), binary.LittleEndian.Uint32(out[0].Data))
}

// Aligned weights take no memory of the process's own: they are used in the file's mapping.
func TestWeightsTakeNoMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("RssAnon is a figure of Linux")
	}
	m, w := rowModel()
	path := build(t, t.TempDir(), rowOf, m, artifact.Contents{Weights: only(w)})
	size := int64(len(w.Data))
	w = nil
	small, c := counter()
	open(t, build(t, t.TempDir(), counterProgram, small, c), Options{}) // the plugin's own memory
	before := anon(t)
	model := open(t, path, Options{})
	readRow(t, model, 1234)
	require.Less(t, anon(t)-before, size/5, "of %d bytes of weights", size)
}

// Weights that the plugin cannot use in place are copied once, and their file is let go.
func TestCopiedWeightsLetGo(t *testing.T) {
	m, w := rowModel()
	dir := t.TempDir()
	header := fmt.Sprintf(`{"w":{"dtype":"F32","shape":[2048,4096],"data_offsets":[0,%d]}}`, len(w.Data))
	for (8+len(header))%64 != 8 { // as many writers leave it
		header += " "
	}
	data := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	data = append(append(data, header...), w.Data...)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "w.safetensors"), data, 0o644))
	m.Checkpoint = &artifact.Source{Name: "w.safetensors", Size: int64(len(data))}
	model := open(t, build(t, dir, rowOf, m, artifact.Contents{}), Options{})
	require.Nil(t, model.source)
	maps, err := os.ReadFile("/proc/self/maps")
	if runtime.GOOS == "linux" {
		require.NoError(t, err)
		require.NotContains(t, string(maps), filepath.Join(dir, "w.safetensors"))
	}
	readRow(t, model, 77)
}

// Close tells that the plugin still uses the weights, in time, and leaves them mapped.
func TestCloseInUse(t *testing.T) {
	m, w, c := linear()
	model, err := Open(t.Context(), build(t, t.TempDir(), linearProgram, m, artifact.Contents{Constants: only(c), Weights: only(w)}), Options{})
	require.NoError(t, err)
	model.closeWait = 1
	model.inUse.Add(1) // as a plugin that does not let go
	require.ErrorIs(t, model.Close(), ErrInUse)
	_, err = model.art.Section(artifact.WeightsSection) // still mapped
	require.NoError(t, err)
	model.inUse.Done()
	require.NoError(t, model.art.Close())
}
