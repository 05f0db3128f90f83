package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	for _, text := range []string{"one", "two"} {
		require.NoError(t, Write(path, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }))
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
	}
	require.Equal(t, []string{"a"}, names(t, dir))
	plain := filepath.Join(dir, "b")
	require.NoError(t, os.WriteFile(plain, nil, 0o666))
	want, err := os.Stat(plain)
	require.NoError(t, err)
	st, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, want.Mode(), st.Mode(), "as readable as any other file of the user")
}

// A failure, also a panic, leaves what was there and nothing else.
func TestFailure(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	full := errors.New("disk full")
	require.ErrorIs(t, Write(path, func(w io.Writer) error {
		require.Len(t, names(t, dir), 2, "written beside its place")
		if _, err := io.WriteString(w, "half"); err != nil {
			return err
		}
		return full
	}), full)
	require.Panics(t, func() { _ = Write(path, func(io.Writer) error { panic("bug") }) })
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "old", string(got))
	require.Equal(t, []string{"a"}, names(t, dir))

	require.ErrorIs(t, Write(filepath.Join(dir, "none", "a"), func(io.Writer) error { return nil }), os.ErrNotExist)
	require.Error(t, Write(dir, func(io.Writer) error { return nil }), "a directory is not replaced")
}
