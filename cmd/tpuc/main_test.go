//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"tpuc"
	"tpuc/ir/diag"
	"tpuc/tpu"
	"tpuc/tpu/plugin"
	"tpuc/tpu/runtime"
)

// sabotage are files that, in the folder that tpuc runs in, send a signal to its compile child as soon as the plugin is loaded: the child
// dies like one whose plugin fails a check, or hangs. The child notes its process in the file pidFile there.
var sabotage = map[string]syscall.Signal{"crash-the-child": syscall.SIGABRT, "stall-the-child": syscall.SIGSTOP}

const pidFile = "child.pid"

func TestMain(m *testing.M) {
	if os.Getenv("TPUC_COMPILE_CHILD") != "" {
		dir := fmt.Sprintf("/proc/%d/cwd/", os.Getppid()) // the child has a folder and an environment of its own
		for name, signal := range sabotage {
			if _, err := os.Stat(dir + name); err == nil {
				go onLoad(func() {
					fmt.Fprintln(os.Stderr, "F0101 00:00:00.000000 1 compiler.cc:1] Check failed: sabotage")
					_ = os.WriteFile(dir+pidFile, []byte(strconv.Itoa(os.Getpid())), 0o600)
					_ = syscall.Kill(os.Getpid(), signal)
				})
			}
		}
	}
	tpu.ChildMain() // compiles start this binary again
	testscript.Main(m, map[string]func(){"tpuc": main})
}

// onLoad calls f when the plugin is loaded into this process.
func onLoad(f func()) {
	for {
		maps, err := os.ReadFile("/proc/self/maps")
		if err != nil || strings.Contains(string(maps), "plugin.so") {
			f()
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// TestScripts runs the command lines of testdata/cli. Commands beside testscript's own:
//
//	status N COMMAND ...   run a command, which must exit with status N
//	child wait | gone      wait until the compile child is sabotaged; demand that its process is no more
//	json KEY[.KEY]... WANT the last output is JSON whose value there is WANT; * as WANT takes any value
//
// Conditions: [cpu-pjrt] and [libtpu], plugins on this machine or demanded by TPUC_REQUIRE; [tpu], a TPU to run on. $MODELS, $CASES
// and $CUSTOM are the small archives of testdata. A script's $TPUC_CACHE is its own, with the plugins of this machine.
func TestScripts(t *testing.T) {
	testdata, err := filepath.Abs("../../testdata")
	require.NoError(t, err)
	shared, err := plugin.CacheDir(plugin.Options{})
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join(testdata, "cli"),
		Setup: func(e *testscript.Env) error {
			e.Setenv("MODELS", filepath.Join(testdata, "models"))
			e.Setenv("CASES", filepath.Join(testdata, "cases"))
			e.Setenv("CUSTOM", filepath.Join(testdata, "custom"))
			cache := filepath.Join(e.WorkDir, "home", "cache") // of its own, but for the plugins
			if err := errors.Join(os.MkdirAll(filepath.Join(shared, "plugins"), 0o755), os.MkdirAll(cache, 0o755),
				os.Symlink(filepath.Join(shared, "plugins"), filepath.Join(cache, "plugins"))); err != nil {
				return err
			}
			e.Setenv(plugin.EnvCache, cache)
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			for _, kv := range os.Environ() { // how plugins are fetched on this machine
				if name, value, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "PIP_") || strings.HasPrefix(name, "SSL_CERT_") || strings.HasSuffix(strings.ToLower(name), "_proxy") {
					e.Setenv(name, value)
				}
			}
			return nil
		},
		Cmds:      map[string]func(*testscript.TestScript, bool, []string){"status": status, "json": jsonValue, "child": child},
		Condition: func(c string) (bool, error) { return condition(t, c) },
	})
}

func condition(t *testing.T, c string) (bool, error) {
	kind := plugin.Kind("")
	switch c {
	case "cpu-pjrt":
		kind = plugin.CPU
	case "libtpu":
		kind = plugin.TPU
	case "tpu":
		return runtime.HasTPU(), nil
	default:
		return false, fmt.Errorf("condition %q, wanted cpu-pjrt, libtpu or tpu", c)
	}
	if slices.Contains(strings.Split(os.Getenv("TPUC_REQUIRE"), ","), string(kind)) {
		return true, nil
	}
	_, err := plugin.Locate(t.Context(), kind, plugin.Options{Offline: true, Quiet: true, Progress: io.Discard})
	return err == nil, nil
}

// status runs a command and demands its exit status.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND ...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%s: %v", args[1], err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, wanted %d\nstdout: %s\nstderr: %s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// child waits for the sabotage of the compile child, or demands that it has ended.
func child(ts *testscript.TestScript, _ bool, args []string) {
	file := ts.MkAbs(pidFile)
	for range 2000 {
		data, err := os.ReadFile(file)
		pid, _ := strconv.Atoi(string(data))
		switch {
		case err != nil || pid == 0:
		case args[0] == "wait":
			return
		case syscall.Kill(pid, 0) == syscall.ESRCH:
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	ts.Fatalf("child %s: nothing for 10 s", args[0])
}

// jsonValue looks a value up in the last output.
func jsonValue(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: json KEY[.KEY]... WANT")
	}
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &v))
	found := true
	for _, key := range strings.Split(args[0], ".") {
		switch x := v.(type) {
		case map[string]any:
			v, found = x[key]
		case []any:
			i, err := strconv.Atoi(key)
			found = err == nil && i < len(x)
			if found {
				v = x[i]
			}
		default:
			found = false
		}
		if !found {
			break
		}
	}
	got := fmt.Sprint(v)
	if equal := found && (args[1] == "*" || got == args[1]); equal == neg {
		ts.Fatalf("%s is %s (there: %t), wanted %s (negated: %t)", args[0], got, found, args[1], neg)
	}
}

// Every kind of failure has its exit status, however deep it is wrapped.
func TestExitStatus(t *testing.T) {
	compile := func(k tpu.Kind) error { return &tpu.CompileError{Kind: k} }
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("any"), 1},
		{diag.List{diag.Errorf(nil, "a/1", "wrong")}, 1},
		{compile(tpu.Refused), 1},
		{compile(tpu.TimedOut), 1},
		{compile(tpu.Canceled), 1},
		{compile(tpu.NotLoaded), 1},
		{compile(tpu.NoChild), 1},
		{usagef("wrong"), 2},
		{&tpuc.DifferError{Failed: 1, Compared: 2}, 3},
		{runtime.ErrCompileForbidden, 4},
		{compile(tpu.Crashed), 70},
		{&diag.Bug{Pass: "fold"}, 70},
	} {
		require.Equal(t, c.want, exitStatus(c.err), "%v", c.err)
		if c.err != nil {
			require.Equal(t, c.want, exitStatus(errors.Join(nil, fmt.Errorf("model.pt2: %w", c.err))), "%v", c.err)
		}
	}
}

func TestNearest(t *testing.T) {
	list := []string{"import", "simplify", "lower", "compile", "pack"}
	for word, want := range map[string][]string{
		"improt": {"import"}, "simp": {"simplify"}, "compiel": {"compile"}, "lowr": {"lower"}, "StableHLO": nil, "": nil, "pakc": {"pack"},
	} {
		require.Equal(t, want, nearest(word, list), word)
	}
}

// Every flag of every verb says what it is for, and every verb has an example.
func TestHelp(t *testing.T) {
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		for _, c := range c.Commands() {
			require.NotEmpty(t, c.Short, c.CommandPath())
			require.NotEmpty(t, c.Long, c.CommandPath())
			require.NotEmpty(t, c.Example, c.CommandPath())
			c.Flags().VisitAll(func(f *pflag.Flag) { require.NotEmpty(t, f.Usage, "%s --%s", c.CommandPath(), f.Name) })
			look(c)
		}
	}
	look(newRoot())
}

// The progress of a phase is a line now and then where there is no terminal, and notes come between.
func TestProgress(t *testing.T) {
	var b strings.Builder
	p := &progress{w: &b, stopped: make(chan struct{})}
	p.enter(tpuc.PhaseImport)
	p.show()
	p.enter(tpuc.PhaseCompile)
	p.show() // a download may be showing itself
	p.enter(tpuc.PhaseCompile + "/load")
	p.show()
	p.note("a note")
	p.stop()
	require.Equal(t, "import: 0s so far\ncompile, in the plugin (load): 0s so far\na note\n", b.String())
}

// On a terminal a phase that lasts is shown in place, and erased when something else is.
func TestProgressOnTerminal(t *testing.T) {
	var b strings.Builder
	p := &progress{w: &b, tty: true, stopped: make(chan struct{})}
	p.enter(tpuc.PhaseCompile + "/compile")
	p.show() // too early
	p.start = p.start.Add(-7 * time.Second)
	p.show()
	p.start = p.start.Add(-time.Minute)
	p.show()
	p.stop()
	require.Equal(t, "compile, in the plugin (compile): 7s\r\x1b[Kcompile, in the plugin (compile): 1m7s\r\x1b[K", b.String())
}
