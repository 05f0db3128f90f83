package tpu_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"tpuc/tpu"
	"tpuc/tpu/plugin"
)

// Variables that tests give to their children through Options.Env.
const (
	envSabotage = "TPU_TEST_SABOTAGE" // libc function that replaces the plugin's compile function
	envPlugin   = "TPU_TEST_PLUGIN"
	envPIDFile  = "TPU_TEST_PIDFILE" // where the child notes its process id
	envParent   = "TPU_TEST_PARENT"  // JSON request: act as a caller of Compile
)

func TestMain(m *testing.M) {
	if f := os.Getenv(envPIDFile); f != "" && os.Getenv(envParent) == "" {
		if err := os.WriteFile(f, []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
			panic(err)
		}
	}
	if f := os.Getenv(envSabotage); f != "" {
		sabotage(os.Getenv(envPlugin), f)
	}
	tpu.ChildMain()
	if r := os.Getenv(envParent); r != "" {
		var req tpu.Request
		if err := json.Unmarshal([]byte(r), &req); err != nil {
			panic(err)
		}
		_, err := tpu.Compile(context.Background(), req)
		fmt.Println(err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// sabotage makes the real plugin misbehave in its compile function without a compiler at hand: it loads the
// library and points the PJRT_Client_Compile entry of its function table at a function of the C library, so
// that the plugin really calls abort(), or never returns, while compiling.
func sabotage(path, function string) {
	lib, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		panic(err)
	}
	get, err := purego.Dlsym(lib, "GetPjrtApi")
	if err != nil {
		panic(err)
	}
	var target uintptr
	if function == "null" {
		target = 8 // an address that is mapped nowhere
	} else if target, err = purego.Dlsym(purego.RTLD_DEFAULT, function); err != nil {
		panic(err)
	}
	api, _, _ := purego.SyscallN(get)
	const compileSlot = 40 + 8*20 // PJRT_Api: 40 bytes of header, PJRT_Client_Compile is function 20
	base := *(*unsafe.Pointer)(unsafe.Pointer(&api))
	entry := (*uintptr)(unsafe.Add(base, compileSlot))
	page := uintptr(os.Getpagesize())
	start := (api + compileSlot) &^ (page - 1)
	if err := unix.Mprotect(unsafe.Slice((*byte)(unsafe.Add(base, int(start)-int(api))), page), unix.PROT_READ|unix.PROT_WRITE); err != nil {
		panic(err)
	}
	*entry = target
}

// locate finds a plugin's library. It skips when the plugin is not on this machine, unless TPUC_REQUIRE names
// the kind: then the plugin is fetched, and missing is failing.
func locate(t *testing.T, kind plugin.Kind) string {
	t.Helper()
	required := strings.Contains(os.Getenv("TPUC_REQUIRE"), string(kind))
	found, err := plugin.Locate(t.Context(), kind, plugin.Options{Offline: !required, Quiet: true})
	if err != nil && !required {
		t.Skipf("no %s plugin here (TPUC_REQUIRE=%s fetches it): %v", kind, kind, err)
	}
	require.NoError(t, err)
	return found.Path
}

const addModule = `module @add {
  func.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %a, %b : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}`

func cpuRequest(t *testing.T) tpu.Request {
	return tpu.Request{Program: []byte(addModule), PluginPath: locate(t, plugin.CPU), Target: tpu.Target{Platform: tpu.CPU},
		Timeout: time.Minute, CrashDir: t.TempDir()}
}

func tpuRequest(t *testing.T) tpu.Request {
	req := cpuRequest(t)
	req.PluginPath, req.Target = locate(t, plugin.TPU), tpu.Target{Platform: tpu.TPU, Topology: "v6e:1x1"}
	return req
}

// sabotaged is a request whose plugin calls the C function instead of compiling.
func sabotaged(t *testing.T, function string) tpu.Request {
	req := cpuRequest(t)
	req.Options.Env = []string{envSabotage + "=" + function, envPlugin + "=" + req.PluginPath}
	return req
}

// failure compiles, expecting an error of the kind.
func failure(t *testing.T, ctx context.Context, req tpu.Request, kind tpu.Kind) *tpu.CompileError {
	t.Helper()
	res, err := tpu.Compile(ctx, req)
	require.Nil(t, res)
	var cerr *tpu.CompileError
	require.ErrorAs(t, err, &cerr)
	require.Equal(t, kind, cerr.Kind, "%v\n%s", err, cerr.Log)
	return cerr
}
