//go:build unix

package atomicfile

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A pipe gets the bytes and stays a pipe, as a device does.
func TestWriteThrough(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	got := make(chan string)
	go func() {
		data, err := os.ReadFile(path)
		if err != nil {
			data = []byte(err.Error())
		}
		got <- string(data)
	}()
	require.NoError(t, Write(path, func(w io.Writer) error { _, err := io.WriteString(w, "text"); return err }))
	require.Equal(t, "text", <-got)
	st, err := os.Stat(path)
	require.NoError(t, err)
	require.NotZero(t, st.Mode()&os.ModeNamedPipe)
	require.Equal(t, []string{"pipe"}, names(t, filepath.Dir(path)))
}
