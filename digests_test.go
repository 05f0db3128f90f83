package tpuc_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc"
	"tpuc/frontend/weights"
	"tpuc/tpu/artifact"
	"tpuc/tpu/plugin"
)

// sameCRC changes 5 bytes and leaves CRC-32 as it is, whatever they are: it adds the polynomial itself, lowest bit first.
var sameCRC = [5]byte{0x41, 0x06, 0x71, 0xdb, 0x01}

// forge changes a weight of the archive at path so that its checksum, and with it the archive's identity, stay.
func forge(t *testing.T, path string) {
	t.Helper()
	z, err := zip.OpenReader(path)
	require.NoError(t, err)
	var at int64
	for _, f := range z.File {
		if at == 0 && bytes.Contains([]byte(f.Name), []byte("data/weights/weight_")) {
			at, err = f.DataOffset()
			require.NoError(t, err)
		}
	}
	require.NoError(t, z.Close())
	require.NotZero(t, at)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	before := crc32.ChecksumIEEE(data[at : at+5])
	for i, x := range sameCRC {
		data[at+int64(i)] ^= x
	}
	require.Equal(t, before, crc32.ChecksumIEEE(data[at:at+5]))
	require.NoError(t, os.WriteFile(path, data, 0o600))
}

// Weights that stay in the model's file are tied to it by their digests where those were asked for, and by checksums otherwise.
func TestDigestWeights(t *testing.T) {
	needPlugin(t, plugin.CPU)
	dir := t.TempDir()
	data, err := os.ReadFile("testdata/models/mlp_dynamic/model.pt2")
	require.NoError(t, err)
	model := filepath.Join(dir, "model.pt2")
	require.NoError(t, os.WriteFile(model, data, 0o600))
	c := newCache(t, tpuc.CacheOptions{})
	compile := func(from, name string, digests bool, sizes ...int64) (string, *artifact.Manifest) {
		o := tpuc.CompileOptions{Output: filepath.Join(dir, name), Dims: map[string][]int64{"s77": sizes}, Cache: c, DigestWeights: digests}
		_, err := tpuc.Compile(t.Context(), from, o)
		require.NoError(t, err)
		a, err := artifact.Open(o.Output)
		require.NoError(t, err)
		require.NoError(t, a.Close())
		return o.Output, &a.Manifest
	}
	open := func(path string) error {
		m, err := tpuc.Open(t.Context(), path, tpuc.OpenOptions{NoCompile: true})
		if err == nil {
			err = m.Close()
		}
		return err
	}
	src, err := weights.Open(model)
	require.NoError(t, err)
	defer src.Close()
	recorded := func(m *artifact.Manifest) (n int) {
		for _, w := range m.Weights {
			if w.SHA256 == "" {
				continue
			}
			e, err := w.Source()
			require.NoError(t, err)
			x, err := weights.Lookup(src, e)
			require.NoError(t, err)
			sum := sha256.Sum256(x.Data)
			require.Equal(t, hex.EncodeToString(sum[:]), w.SHA256, w.Name)
			n++
		}
		return n
	}
	plain, m := compile(model, "plain.tpuc", false, 2, 4)
	require.Zero(t, recorded(m))
	with, m := compile(model, "with.tpuc", true, 2, 4) // the model is kept, without digests
	require.Equal(t, len(m.Weights), recorded(m))
	other, m := compile(with, "other.tpuc", false, 3)
	require.Equal(t, len(m.Weights), recorded(m), "an artifact's digests are those of what is compiled from it")
	_, m = compile(with, "asked.tpuc", true, 5)
	require.Equal(t, len(m.Weights), recorded(m))
	_, m = compile(model, "again.tpuc", false, 2, 4)
	require.Zero(t, recorded(m))
	_, err = tpuc.Compile(t.Context(), plain, tpuc.CompileOptions{Output: filepath.Join(dir, "no.tpuc"), Dims: map[string][]int64{"s77": {3}}, DigestWeights: true})
	require.ErrorContains(t, err, "weights are needed: "+plain)

	for _, path := range []string{plain, with, other} {
		require.NoError(t, open(path))
	}
	forge(t, model)
	require.NoError(t, open(plain), "the checksums hold")
	for _, path := range []string{with, other} {
		require.ErrorContains(t, open(path), "than when the artifact was compiled")
	}
}
