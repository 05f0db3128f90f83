package tpuc_test

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc"
	"tpuc/frontend/weights"
)

// TestLargeArchive opens and imports an archive with a storage of more than 4 GB, so with zip64 records, in little memory of its own: the file is
// mapped, and no storage is read before its tensor is loaded.
func TestLargeArchive(t *testing.T) {
	const size, private = 9 << 29, 200 << 20
	path, large := largeArchive(t, size)
	st, err := os.Stat(path)
	require.NoError(t, err)
	require.Greater(t, st.Size(), int64(size))

	before := privateMemory(t)
	m, err := tpuc.Load(t.Context(), path, tpuc.Shapes{})
	require.NoError(t, err)
	defer m.Close()
	archive := m.Weights.(*weights.Archive)
	found := false
	for _, w := range m.Module.Weights {
		s, err := archive.Find(w.Names[0])
		require.NoError(t, err)
		require.Equal(t, w.Value.Type.String(), s.Type.String())
		if strings.HasSuffix(large, s.Storage) {
			found = true // reading it whole would take a while
			continue
		}
		_, err = m.Weights.Load(w.Names[0])
		require.NoError(t, err)
	}
	require.True(t, found)
	used := privateMemory(t) - before
	t.Logf("a file of %d MB took %d MB of private memory", st.Size()>>20, used>>20)
	require.Less(t, used, int64(private))
}

// largeArchive makes the archive of mlp with one storage of the size, a multiple of a MB and mostly a hole, and gives that entry's name.
func largeArchive(t testing.TB, size uint64) (path, large string) {
	data, err := os.ReadFile(filepath.Join("testdata", "models", "mlp", "model.pt2"))
	require.NoError(t, err)
	path = filepath.Join(t.TempDir(), "large.pt2")
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	z := zip.NewWriter(&sparse{f})
	for _, e := range unzip(t, data) {
		h := &zip.FileHeader{Name: e.name, Method: zip.Store, Flags: 8, CRC32: crc(e.data), CompressedSize64: uint64(len(e.data)), UncompressedSize64: uint64(len(e.data))}
		if large == "" && strings.Contains(e.name, "data/weights/weight_") {
			large = e.name
			h.CompressedSize64, h.UncompressedSize64 = size, size
			e.data = nil
		}
		w, err := z.CreateRaw(h)
		require.NoError(t, err)
		_, err = w.Write(e.data)
		require.NoError(t, err)
		for left := int64(size); e.name == large && left > 0; left -= int64(len(zeros)) {
			_, err := w.Write(zeros)
			require.NoError(t, err)
		}
	}
	require.NoError(t, z.Close())
	return path, large
}

var zeros = make([]byte, 1<<20)

// sparse leaves holes in a file instead of writing zeros.
type sparse struct{ f *os.File }

func (s *sparse) Write(p []byte) (int, error) {
	if len(p) == len(zeros) && &p[0] == &zeros[0] {
		_, err := s.f.Seek(int64(len(p)), io.SeekCurrent)
		return len(p), err
	}
	return s.f.Write(p)
}

// privateMemory is the resident memory of this process that no file backs, in bytes.
func privateMemory(t testing.TB) int64 { return statusBytes(t, "RssAnon:") }

// statusBytes is a line of what Linux tells of this process's memory.
func statusBytes(t testing.TB, key string) int64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("left out: this system does not tell a process's memory")
	}
	_, rest, ok := strings.Cut(string(data), key)
	require.True(t, ok)
	var kb int64
	_, err = fmt.Sscan(rest, &kb)
	require.NoError(t, err)
	return kb << 10
}
