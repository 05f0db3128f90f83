package tpu_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"tpuc/tpu"
	"tpuc/tpu/chip"
	"tpuc/tpu/pjrt"
)

func TestCompileCPU(t *testing.T) {
	req := cpuRequest(t)
	var mu sync.Mutex
	var phases []tpu.Phase
	req.OnPhase = func(p tpu.Phase) { mu.Lock(); defer mu.Unlock(); phases = append(phases, p) }
	res, err := tpu.Compile(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, []tpu.Phase{tpu.PhaseLoad, tpu.PhaseCompile, tpu.PhaseSerialize}, phases)
	require.Equal(t, "cpu", res.Stats.PlatformName)
	require.NotEmpty(t, res.Stats.APIVersion)
	require.Equal(t, []pjrt.Layout{"{0}", "{0}"}, res.Stats.ParameterLayouts)
	require.Equal(t, []pjrt.Layout{"{0}"}, res.Stats.OutputLayouts)
	require.Equal(t, []tpu.Output{{Type: "f32", Dims: []int64{4}}}, res.Stats.Outputs)
	require.EqualValues(t, 32, res.Stats.Memory.Argument)
	require.EqualValues(t, 16, res.Stats.Memory.Output)
	require.Nil(t, res.Stats.Cost, "the CPU plugin has no cost analysis")
	require.Positive(t, res.Usage.CPU)
	require.Positive(t, res.Usage.Compile)
	require.Greater(t, res.Usage.Wall, res.Usage.Compile)
	require.Greater(t, res.Usage.MaxRSS, int64(1<<20))

	p, err := pjrt.Open(req.PluginPath)
	require.NoError(t, err)
	c, err := p.NewClient()
	require.NoError(t, err)
	defer c.Close()
	l, err := c.Load(res.Executable)
	require.NoError(t, err)
	defer l.Close()
	arg, err := c.BufferFromHost(pjrt.HostBuffer{Type: pjrt.F32, Dims: []int64{4}, Data: []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 0, 0, 0x40, 0x40, 0, 0, 0, 0}})
	require.NoError(t, err)
	defer arg.Close()
	out, err := l.Execute(t.Context(), []*pjrt.Buffer{arg, arg}, pjrt.ExecuteOptions{})
	require.NoError(t, err)
	defer out[0].Close()
	got := make([]byte, 16)
	require.NoError(t, out[0].ToHost(t.Context(), got))
	require.Equal(t, []byte{0, 0, 0, 0x40, 0, 0, 0x80, 0x40, 0, 0, 0xc0, 0x40, 0, 0, 0, 0}, got, "1+1, 2+2, 3+3, 0+0")
}

func TestDescribe(t *testing.T) {
	f, err := tpu.Describe(t.Context(), cpuRequest(t))
	require.NoError(t, err)
	require.NotEmpty(t, f.APIVersion)
	require.Regexp(t, `^[a-z0-9_]+-[a-z0-9_-]+ [a-z0-9._-]+$`, f.Processor)
	require.Greater(t, len(f.Features), 20)
	require.True(t, slices.IsSorted(f.Features))
	for _, x := range f.Features {
		require.Regexp(t, `^[+-][a-z0-9.-]+$`, x)
	}
	again, err := tpu.Describe(t.Context(), cpuRequest(t))
	require.NoError(t, err)
	require.Equal(t, f, again)
}

func TestDescribeTPU(t *testing.T) {
	f, err := tpu.Describe(t.Context(), tpuRequest(t))
	require.NoError(t, err)
	require.NotEmpty(t, f.APIVersion)
	require.NotEmpty(t, f.PlatformVersion)
	require.Empty(t, f.Processor)
	require.Nil(t, f.Features)
}

// A plugin that crashes is an error, and the trivial module is not kept.
func TestDescribeKeepsNoModule(t *testing.T) {
	req := sabotaged(t, "abort")
	_, err := tpu.Describe(t.Context(), req)
	var cerr *tpu.CompileError
	require.ErrorAs(t, err, &cerr)
	require.Equal(t, tpu.Crashed, cerr.Kind)
	require.Empty(t, cerr.ModulePath)
	left, err := os.ReadDir(req.CrashDir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestCompilePartitioned(t *testing.T) {
	req := cpuRequest(t)
	req.Options.NumPartitions = 4
	req.Program = []byte(`module @sharded {
  sdy.mesh @mesh = <["tp"=4]>
  func.func public @main(%a: tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}, {}]>}) -> (tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}, {}]>}) {
    %0 = stablehlo.add %a, %a : tensor<8x2xf32>
    return %0 : tensor<8x2xf32>
  }
}`)
	res, err := tpu.Compile(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, []int64{2, 2}, res.Stats.Outputs[0].Dims)
}

// Flags in the caller's environment do not reach the plugin.
func TestStrayEnvironmentIsIgnored(t *testing.T) {
	t.Setenv("XLA_FLAGS", "--xla_no_such_flag=1")
	t.Setenv("LIBTPU_INIT_ARGS", "--no_such_flag=1")
	req := cpuRequest(t)
	_, err := tpu.Compile(t.Context(), req)
	require.NoError(t, err)
	// The same flag asked for reaches the plugin, which ends the process by itself.
	req.Options.XLAFlags = []string{"--xla_no_such_flag=1"}
	e := failure(t, t.Context(), req, tpu.Crashed)
	require.Contains(t, e.Log, "xla_no_such_flag")
}

func TestRefused(t *testing.T) {
	req := cpuRequest(t)
	req.Program = []byte(`module @bad { func.func public @main(%a: tensor<4xf32>) -> tensor<5xf32> { return %a : tensor<4xf32> } }`)
	e := failure(t, t.Context(), req, tpu.Refused)
	require.Equal(t, tpu.PhaseCompile, e.Phase)
	require.NotEmpty(t, e.Message)
	require.Empty(t, e.ModulePath)
	require.Contains(t, e.Error(), "the plugin refused the module: ")
}

// V5: a plugin that calls abort() while compiling is an error that names a file with the module; the caller lives.
func TestPluginAborts(t *testing.T) {
	for function, signal := range map[string]string{"abort": "SIGABRT", "null": "SIGSEGV"} {
		t.Run(function, func(t *testing.T) {
			req := sabotaged(t, function)
			e := failure(t, t.Context(), req, tpu.Crashed)
			require.Equal(t, tpu.PhaseCompile, e.Phase)
			require.Equal(t, signal, e.Signal, e.Log)
			require.Contains(t, e.Error(), e.ModulePath)
			require.Equal(t, req.CrashDir, filepath.Dir(e.ModulePath))
			kept, err := os.ReadFile(e.ModulePath)
			require.NoError(t, err)
			require.Equal(t, addModule, string(kept))
			entries, err := os.ReadDir(req.CrashDir)
			require.NoError(t, err)
			require.Len(t, entries, 1, "no partial file stays")

			req.Options.Env = nil
			req.PluginPath = locate(t, "cpu")
			_, err = tpu.Compile(t.Context(), req)
			require.NoError(t, err, "the next compile works")
		})
	}
}

// alive says whether a process exists and is no zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func childPID(t *testing.T, file string) int {
	t.Helper()
	var pid int
	require.Eventually(t, func() bool {
		data, _ := os.ReadFile(file)
		pid, _ = strconv.Atoi(string(data))
		return pid > 0
	}, 20*time.Second, 5*time.Millisecond)
	return pid
}

func TestPluginHangs(t *testing.T) {
	t.Run("time limit", func(t *testing.T) {
		req := sabotaged(t, "pause")
		req.Timeout = time.Second
		pid := filepath.Join(t.TempDir(), "pid")
		req.Options.Env = append(req.Options.Env, envPIDFile+"="+pid)
		start := time.Now()
		e := failure(t, t.Context(), req, tpu.TimedOut)
		require.Less(t, time.Since(start), 10*time.Second)
		require.Equal(t, tpu.PhaseCompile, e.Phase)
		require.FileExists(t, e.ModulePath)
		require.Contains(t, e.Error(), "1s")
		require.False(t, alive(childPID(t, pid)))
	})
	t.Run("cancelled", func(t *testing.T) {
		req := sabotaged(t, "pause")
		pid := filepath.Join(t.TempDir(), "pid")
		req.Options.Env = append(req.Options.Env, envPIDFile+"="+pid)
		interrupt := errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(t.Context())
		req.OnPhase = func(p tpu.Phase) {
			if p == tpu.PhaseCompile {
				cancel(interrupt)
			}
		}
		e := failure(t, ctx, req, tpu.Canceled)
		require.ErrorIs(t, e, interrupt)
		require.Empty(t, e.ModulePath)
		require.False(t, alive(childPID(t, pid)))
	})
	t.Run("cancelled before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, failure(t, ctx, cpuRequest(t), tpu.Canceled), context.Canceled)
	})
}

// A caller that is killed takes its child along.
func TestParentDies(t *testing.T) {
	req := sabotaged(t, "pause")
	pid := filepath.Join(t.TempDir(), "pid")
	req.Options.Env = append(req.Options.Env, envPIDFile+"="+pid)
	data, err := json.Marshal(req)
	require.NoError(t, err)
	exe, err := os.Executable()
	require.NoError(t, err)
	parent := exec.Command(exe)
	parent.Env = append(os.Environ(), envParent+"="+string(data))
	require.NoError(t, parent.Start())
	child := childPID(t, pid)
	require.True(t, alive(child))
	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait()
	require.Eventually(t, func() bool { return !alive(child) }, 10*time.Second, 10*time.Millisecond)
}

func TestPluginExits(t *testing.T) {
	// _exit(args) ends the child with a status made of an address; there is no answer and no signal.
	e := failure(t, t.Context(), sabotaged(t, "_exit"), tpu.Crashed)
	require.Empty(t, e.Signal)
	require.Contains(t, e.Message, "ended without an answer")
	require.FileExists(t, e.ModulePath)
}

func TestNotLoaded(t *testing.T) {
	req := cpuRequest(t)
	req.PluginPath = filepath.Join(t.TempDir(), "absent.so")
	require.Contains(t, failure(t, t.Context(), req, tpu.NotLoaded).Error(), "absent.so")
	require.NoError(t, os.WriteFile(req.PluginPath, []byte("\x7fELF but not really"), 0o600))
	require.Equal(t, tpu.PhaseLoad, failure(t, t.Context(), req, tpu.NotLoaded).Phase)
}

func TestNoChild(t *testing.T) {
	req := cpuRequest(t)
	req.Exe = "/bin/true"
	require.Contains(t, failure(t, t.Context(), req, tpu.NoChild).Error(), "must call tpu.ChildMain first")
	req.Exe = filepath.Join(t.TempDir(), "absent")
	failure(t, t.Context(), req, tpu.NoChild)
	t.Run("no temporary folder", func(t *testing.T) {
		req := cpuRequest(t)
		t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "absent"))
		require.Regexp(t, "the temporary folder: stat .*absent: .*; set TMPDIR", failure(t, t.Context(), req, tpu.NoChild).Error())
	})
	t.Setenv("TPUC_COMPILE_CHILD", "1")
	_, err := tpu.Compile(t.Context(), cpuRequest(t))
	require.ErrorContains(t, err, "compile inside a compile child")
}

func TestRequestChecks(t *testing.T) {
	good := tpu.Request{Program: []byte("x"), PluginPath: "p", Target: tpu.Target{Platform: tpu.CPU}}
	tests := []struct {
		change func(*tpu.Request)
		want   string
	}{
		{func(r *tpu.Request) { r.Program = nil }, "program is empty"},
		{func(r *tpu.Request) { r.PluginPath = "" }, "no plugin given"},
		{func(r *tpu.Request) { r.Target.Platform = "gpu" }, `platform "gpu"`},
		{func(r *tpu.Request) { r.Target.Platform = tpu.TPU }, "no topology given"},
		{func(r *tpu.Request) { r.Options.NumPartitions = -1 }, "none negative"},
		{func(r *tpu.Request) { r.Options.XLAFlags = []string{"--a --b"} }, "one flag without white space"},
		{func(r *tpu.Request) { r.Options.Env = []string{"NOVALUE"} }, "want NAME=VALUE"},
		{func(r *tpu.Request) { r.Options.Env = []string{"TPUC_COMPILE_CHILD=2"} }, "child's own"},
	}
	for _, tt := range tests {
		req := good
		tt.change(&req)
		_, err := tpu.Compile(t.Context(), req)
		require.ErrorContains(t, err, tt.want)
	}
}

func TestCompileTPU(t *testing.T) {
	req := tpuRequest(t)
	req.Program = []byte(`module @mm { func.func public @main(%a: tensor<256x512xbf16>, %b: tensor<512x128xbf16>) -> tensor<256x128xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<256x512xbf16>, tensor<512x128xbf16>) -> tensor<256x128xf32>
  return %0 : tensor<256x128xf32> } }`)
	first, err := tpu.Compile(t.Context(), req)
	require.NoError(t, err)
	second, err := tpu.Compile(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, first.Executable, second.Executable, "libtpu is reproducible in a fresh process")
	require.Equal(t, first.Stats, second.Stats)
	require.Equal(t, "tpu", first.Stats.PlatformName)
	require.EqualValues(t, 2*(256*512+512*128), first.Stats.Memory.Argument)
	require.Positive(t, first.Stats.Memory.GeneratedCode)
	require.Positive(t, first.Stats.Memory.Peak)
	flops, ok := slices.BinarySearchFunc(first.Stats.Cost, "flops", func(c tpu.Cost, name string) int { return strings.Compare(c.Name, name) })
	require.True(t, ok)
	require.InDelta(t, 2*256*512*128, first.Stats.Cost[flops].Value, 1e6)
	require.Len(t, first.Stats.ParameterLayouts, 2)
}

const shardedMatmul = `module @sharded {
  sdy.mesh @mesh = <["tp"=4]>
  func.func public @main(%a: tensor<256x512xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"tp"}]>}, %b: tensor<512x128xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}, {}]>}) -> (tensor<256x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<256x512xbf16>, tensor<512x128xbf16>) -> tensor<256x128xf32>
    return %0 : tensor<256x128xf32>
  }
}`

// Every family, as users name it: sizes, and a product that needs an all-reduce over four devices.
func TestCompileTPUFamilies(t *testing.T) {
	for _, name := range []string{"v4:2x2x1", "v5e-4", "v5p-8", "v6e-4", "tpu7x-8"} {
		t.Run(name, func(t *testing.T) {
			target, err := chip.Parse(name)
			require.NoError(t, err)
			req := tpuRequest(t)
			req.Target, req.Program, req.Options.NumPartitions = tpu.TargetOf(target), []byte(shardedMatmul), 4
			res, err := tpu.Compile(t.Context(), req)
			require.NoError(t, err)
			require.Equal(t, target.Devices(), res.Stats.Devices)
			require.EqualValues(t, 2*(256*128+128*128), res.Stats.Memory.Argument, "a quarter of each operand")
			require.Equal(t, []tpu.Output{{Type: "f32", Dims: []int64{256, 128}}}, res.Stats.Outputs)
		})
	}
}

func TestTargetOf(t *testing.T) {
	for name, want := range map[string]tpu.Target{
		"cpu":     {Platform: tpu.CPU, Devices: 1},
		"cpu:4":   {Platform: tpu.CPU, Devices: 4},
		"v6e-8":   {Platform: tpu.TPU, Topology: "v6e:2x4"},
		"v4-8":    {Platform: tpu.TPU, Topology: "v4:2x2x1", ChipConfig: "megacore"},
		"tpu7x-8": {Platform: tpu.TPU, Topology: "TPU7x:2x2x1"},
	} {
		target, err := chip.Parse(name)
		require.NoError(t, err)
		require.Equal(t, want, tpu.TargetOf(target))
	}
}

func TestTPUOutOfMemory(t *testing.T) {
	req := tpuRequest(t)
	req.Program = []byte(`module @big { func.func public @main(%a: tensor<8589934592xf32>) -> tensor<8589934592xf32> {
  %0 = stablehlo.add %a, %a : tensor<8589934592xf32>
  return %0 : tensor<8589934592xf32> } }`)
	e := failure(t, t.Context(), req, tpu.Refused)
	require.Equal(t, pjrt.ResourceExhausted, e.Code)
	require.Contains(t, e.Message, "CompileTimeHbmOom")
	require.Contains(t, e.Error(), "RESOURCE_EXHAUSTED")
}

func TestTPUUnknownTopology(t *testing.T) {
	req := tpuRequest(t)
	req.Target.Topology = "v99:1x1"
	require.Contains(t, failure(t, t.Context(), req, tpu.NotLoaded).Error(), `topology "v99:1x1"`)
	req.Target.Topology, req.Options.NumPartitions = "v6e:1x1", 2
	require.Contains(t, failure(t, t.Context(), req, tpu.NotLoaded).Error(), "2 partitions on 1 devices")
}

// L1: another process that holds libtpu's lock file does not stop a compile, and the compile leaves the lock alone.
func TestTPULockIsNotTaken(t *testing.T) {
	req := tpuRequest(t)
	const lock = "/tmp/libtpu_lockfile"
	if _, err := os.Stat(lock); os.IsNotExist(err) {
		t.Cleanup(func() { os.Remove(lock) })
	}
	f, err := os.OpenFile(lock, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		t.Skipf("cannot open libtpu's lock file: %v", err)
	}
	defer f.Close()
	// Another holder, for example a running training job, serves the test as well.
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		require.ErrorIs(t, err, unix.EWOULDBLOCK)
	}
	_, err = tpu.Compile(t.Context(), req)
	require.NoError(t, err)
	require.FileExists(t, lock)
}

// L2: with no network at all (an empty network namespace) and broken proxies there is no wait.
func TestTPUWithoutNetwork(t *testing.T) {
	req := tpuRequest(t)
	for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"} {
		t.Setenv(name, "http://192.0.2.1:9")
	}
	start := time.Now()
	res, err := tpu.Compile(t.Context(), req)
	require.NoError(t, err)
	require.Less(t, res.Usage.Load, 20*time.Second)
	require.Less(t, time.Since(start), 40*time.Second)

	unshare, err := exec.LookPath("unshare")
	if err != nil || exec.Command(unshare, "-rn", "true").Run() != nil {
		t.Skip("no network namespaces here: the part without any network is left out")
	}
	req.Timeout = 40 * time.Second
	data, err := json.Marshal(req)
	require.NoError(t, err)
	exe, err := os.Executable()
	require.NoError(t, err)
	caller := exec.Command(unshare, "-rn", exe)
	caller.Env = append(os.Environ(), envParent+"="+string(data))
	out, err := caller.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "<nil>\n", string(out))
}
