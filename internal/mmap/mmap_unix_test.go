//go:build unix

package mmap

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A pipe that nobody writes to is refused at once: opening it would wait for ever, and no signal ends that.
func TestPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err := Open(pipe)
	require.EqualError(t, err, pipe+": a special file, wanted a regular file")
	_, err = ReadFile(pipe, 10)
	require.EqualError(t, err, pipe+": a special file, wanted a regular file")
}
