package runtime

import (
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"tpuc/tpu/artifact"
	"tpuc/tpu/plugin"
)

// withoutLoad takes the function that loads serialized executables out of the plugin's table until the test ends: the plugin then answers UNIMPLEMENTED.
func withoutLoad(t *testing.T, lib *plugin.Plugin) {
	t.Helper()
	handle, err := purego.Dlopen(lib.Path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	require.NoError(t, err)
	get, err := purego.Dlsym(handle, "GetPjrtApi")
	require.NoError(t, err)
	api, _, _ := purego.SyscallN(get)
	const slot = 40 + 8*56 // PJRT_Api: 40 bytes of header, PJRT_Executable_DeserializeAndLoad is function 56
	base := *(*unsafe.Pointer)(unsafe.Pointer(&api))
	entry := (*uintptr)(unsafe.Add(base, slot))
	page := uintptr(os.Getpagesize())
	start := (api + slot) &^ (page - 1)
	require.NoError(t, unix.Mprotect(unsafe.Slice((*byte)(unsafe.Add(base, int(start)-int(api))), page), unix.PROT_READ|unix.PROT_WRITE))
	was := *entry
	*entry = 0
	t.Cleanup(func() { *entry = was })
}

// C6: a plugin that cannot load serialized executables is said to be one, once whatever the number of programs, and compiles them itself; where
// compiling is forbidden that is the error.
func TestPluginThatCannotLoad(t *testing.T) {
	lib := cpuPlugin(t)
	m, c := counter()
	c.Programs = []artifact.ProgramContents{{Program: []byte(counterProgram), Executable: compile(t, lib, counterProgram)}}
	path := build(t, t.TempDir(), counterProgram, m, c)
	m.Plugin.SHA256 = strings.Repeat("0", 64)
	other := build(t, t.TempDir(), counterProgram, m, c)
	withoutLoad(t, lib)

	_, err := Open(t.Context(), path, Options{})
	require.ErrorIs(t, err, ErrCompileForbidden)
	require.ErrorContains(t, err, "the plugin cannot load serialized executables")

	for name, path := range map[string]string{"as it is": path, "made by another plugin": other} {
		t.Run(name, func(t *testing.T) {
			var told []string
			model := open(t, path, Options{Compiler: &fakeCompiler{code: c.Programs[0].Executable}, Notify: func(s string) { told = append(told, s) }})
			require.Contains(t, strings.Join(told, "\n"), "compiling again: the plugin cannot load serialized executables")
			require.Equal(t, 1, strings.Count(strings.Join(told, "\n"), "cannot load"))
			out, err := session(t, model).Run(t.Context(), nil)
			require.NoError(t, err)
			require.Equal(t, []int64{1}, out[0].Ints())
			require.EqualValues(t, 1, model.Stats().Recompiled)
		})
	}
}
