package tpuc

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is kept with other fields has other keys.
func TestTypeDigest(t *testing.T) {
	type a struct{ X []struct{ Y int } }
	type b struct{ X []struct{ Y, Z int } }
	require.Equal(t, typeDigest(reflect.TypeFor[a]()), typeDigest(reflect.TypeFor[struct{ X []struct{ Y int } }]()))
	require.NotEqual(t, typeDigest(reflect.TypeFor[a]()), typeDigest(reflect.TypeFor[b]()))
}

// The digest of this program is of the one that runs, also where another has taken its file's place: what the old one makes is not kept as the new
// one's.
func TestSelfDigest(t *testing.T) {
	if dir := os.Getenv("TPUC_SELF_DIGEST"); dir != "" { // the program that is replaced
		_, err := io.ReadAll(os.Stdin)
		require.NoError(t, err)
		c, err := OpenCache(CacheOptions{Dir: dir})
		require.NoError(t, err)
		d, err := c.selfDigest(t.Context())
		require.NoError(t, err)
		os.Stdout.WriteString("digest " + d + "\n")
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("left out: only Linux names the program that runs")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	want, err := bytesDigest(self)
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "program")
	data, err := os.ReadFile(self)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(program, data, 0o755))
	cmd := exec.Command(program, "-test.run", "^TestSelfDigest$")
	cmd.Env = append(os.Environ(), "TPUC_SELF_DIGEST="+t.TempDir())
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	var out strings.Builder
	cmd.Stdout = &out
	require.NoError(t, cmd.Start())
	require.NoError(t, os.WriteFile(program+".new", []byte("another"), 0o755))
	require.NoError(t, os.Rename(program+".new", program))
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
	require.Contains(t, out.String(), "digest "+want)
}
