package mmap

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	require.NoError(t, os.WriteFile(path, []byte("hello"), 0o600))
	f, err := Open(path)
	require.NoError(t, err)
	require.Equal(t, "hello", string(f.Data))
	require.NoError(t, os.Remove(path)) // the mapping keeps the contents
	require.Equal(t, "hello", string(f.Data))
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
	require.Nil(t, f.Data)

	require.NoError(t, os.WriteFile(path, nil, 0o600))
	f, err = Open(path)
	require.NoError(t, err)
	require.Empty(t, f.Data)
	require.NoError(t, f.Close())

	_, err = Open(dir)
	require.ErrorContains(t, err, "a directory, wanted a regular file")
	_, err = Open(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	require.NoError(t, os.WriteFile(path, []byte("hello"), 0o600))
	data, err := ReadFile(path, 5)
	require.NoError(t, err)
	require.Equal(t, "hello", string(data))
	_, err = ReadFile(path, 4)
	require.EqualError(t, err, path+": 5 bytes, wanted at most 4")
	_, err = ReadFile(dir, 5)
	require.EqualError(t, err, dir+": a directory, wanted a regular file")
}
