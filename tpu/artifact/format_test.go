package artifact

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir/tensor"
)

var update = flag.Bool("update", false, "write the files of the present format and of the next anew")

// TestFormats reads files of three formats: an older tpuc wrote the first; the last is as a newer one may write it. Each says what to do.
func TestFormats(t *testing.T) {
	file := func(format string) string { return filepath.Join("testdata", "format-"+format+".tpuc") }
	m, c := sample()
	if *update {
		require.NoError(t, Write(file("1"), m, c))
		next := bytes.NewBufferString(`{"format": "2", "tpuc": "0.9.0", "model": ["counter"], "surprise": {"new": true}}` + "\n")
		var b bytes.Buffer
		require.NoError(t, writeZip(&b, []section{{ManifestSection, raw(next.Bytes())}, {"novelty.bin", raw([]byte("new"))}}))
		require.NoError(t, os.WriteFile(file("2"), b.Bytes(), 0o644))
	}
	_, err := Open(file("0"))
	require.ErrorIs(t, err, ErrFormat)
	require.ErrorContains(t, err, `artifact of format version "0" (written by tpuc "0.1.0"), wanted "1": it is older: compile the model again with this tpuc, or run it with that one`)
	_, err = Open(file("2"))
	require.ErrorIs(t, err, ErrFormat)
	require.ErrorContains(t, err, `artifact of format version "2" (written by tpuc "0.9.0"), wanted "1": it is newer: update tpuc, or compile the model with this one`)

	// What is written today is what was written when the format was fixed: any change of it needs another version.
	a, err := Open(file("1"))
	require.NoError(t, err)
	require.NoError(t, a.Verify())
	want, err := os.ReadFile(file("1"))
	require.NoError(t, err)
	got, err := os.ReadFile(write(t, m, c))
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "artifacts of format 1 changed: -update writes %s anew, where no tpuc was released that writes format 1", file("1"))
	require.NoError(t, a.Close())
}

// Every changed byte of a large artifact is noticed too, in a sample of them.
func TestFlipsOfLarge(t *testing.T) {
	m, c := sample()
	random := rand.New(rand.NewPCG(5, 5))
	m.Weights[0].Type = Type{"u8", []int64{300_000}}
	large := tensor.Zeros(tensor.Make(tensor.U8, 300_000))
	for i := range large.Data {
		large.Data[i] = byte(random.Uint32())
	}
	c.Weights = func(int) (*tensor.Tensor, error) { return large, nil }
	path := write(t, m, c)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Greater(t, len(data), 64<<10)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	for range 5000 {
		at := random.IntN(len(data))
		bit := byte(1) << random.IntN(8)
		_, err := f.WriteAt([]byte{data[at] ^ bit}, int64(at))
		require.NoError(t, err)
		a, err := Open(path)
		if err == nil {
			err = a.Verify()
			a.Close()
		}
		require.Error(t, err, "bit %#x of byte %d of %d", bit, at, len(data))
		_, err = f.WriteAt(data[at:at+1], int64(at))
		require.NoError(t, err)
	}
	a, err := Open(path)
	require.NoError(t, err)
	require.NoError(t, a.Verify())
	require.NoError(t, a.Close())
}
