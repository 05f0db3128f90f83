// Package tpu compiles StableHLO to an executable in a child process.
//
// It owns the child: its environment, its protocol, its time and its end. A child a compile, because libtpu is
// reproducible only for the first compile of a process, because a crash of the plugin must not end the caller,
// and because a plugin cannot be interrupted. The package never looks for a plugin, never caches, prints
// nothing and needs no TPU.
//
// The child is a program that calls ChildMain first thing in main: tpuc itself, or a test binary from TestMain.
package tpu

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"tpuc/internal/processor"
	"tpuc/tpu/chip"
	"tpuc/tpu/pjrt"
)

// Version is the version of this package's way to compile: it changes when a child would make another executable of the same request. Keys of
// caches hold it.
const Version = "1"

// Platforms of a Target.
const (
	CPU = "cpu"
	TPU = "tpu"
)

// Target is what to compile for.
type Target struct {
	Platform   string // CPU or TPU
	Topology   string // libtpu's name, for example "v6e:2x4"; empty on CPU
	ChipConfig string // libtpu's option chip_config_name, for example "megacore" on v4; empty = its default
	Devices    int    // CPU: devices of the client, 0 = as many as partitions; TPU: ignored
}

// TargetOf is the target as the plugin names it.
func TargetOf(t chip.Target) Target {
	if !t.IsTPU() {
		return Target{Platform: CPU, Devices: t.Devices()}
	}
	return Target{Platform: TPU, Topology: t.Topology(), ChipConfig: t.Facts().ChipConfig}
}

// Options change what comes out of the compiler; the cache hashes them whole.
type Options struct {
	NumPartitions int      // 0 = 1; more than one partitions the module by its sdy shardings
	XLAFlags      []string // words of XLA_FLAGS, for example "--xla_dump_to=DIR"
	LibtpuArgs    []string // words of LIBTPU_INIT_ARGS
	Env           []string // further NAME=VALUE of the child, which otherwise sees nothing of the caller's environment
}

// Request is one compile.
type Request struct {
	Program    []byte // StableHLO, text or bytecode
	PluginPath string // shared library of the plugin
	Target     Target
	Options    Options
	Timeout    time.Duration // 0 = none
	Exe        string        // program that calls ChildMain; empty = this program
	CrashDir   string        // where the module is kept when the child crashes or hangs; empty = os.TempDir()
	OnPhase    func(Phase)   `json:"-"` // told when the child enters a phase, on another goroutine; may be nil

	noCrashFile bool // the module is not worth keeping
}

// Phase is what the child is doing.
type Phase string

const (
	PhaseStart     Phase = "start" // until the child answers
	PhaseLoad      Phase = "load"  // the plugin's library, and its client or topology
	PhaseCompile   Phase = "compile"
	PhaseSerialize Phase = "serialize"
)

// Result is a compiled program and what is known about it.
type Result struct {
	Executable []byte // for pjrt.Client.Load with the same plugin
	Stats      Stats
	Usage      Usage
	Log        string // what the plugin printed, cut in the middle when long
}

// Stats are facts about the executable: reproducible where the compiler is (libtpu).
type Stats struct {
	APIVersion       string // PJRT C API of the plugin, "0.117"
	PlatformName     string // "cpu", "tpu"
	PlatformVersion  string // the plugin's description of its build
	Devices          int    // of the target; a program may use fewer
	Memory           pjrt.MemoryStats
	Cost             []Cost // by name; nil where the plugin has none (CPU)
	ParameterLayouts []pjrt.Layout
	OutputLayouts    []pjrt.Layout
	Outputs          []Output
	Fingerprint      string // lower-case hex; empty where the plugin has none
	Processor        string // CPU: LLVM's triple and name of the processor, "x86_64-unknown-linux-gnu emeraldrapids"; empty where the plugin does not tell
	// Features are LLVM's features of the processor that the CPU plugin makes code for, sorted, such as "+avx2" and "-sse4a"; nil where the plugin does not tell.
	Features []string
}

// Cost is one figure of the plugin's cost analysis ("flops", "bytes accessed", ...).
type Cost struct {
	Name  string
	Value float64
}

// Output is the type of one result per device.
type Output struct {
	Type string // StableHLO element type
	Dims []int64
}

// Usage is what the compile took: different each time.
type Usage struct {
	Wall    time.Duration // from start to end of the child
	CPU     time.Duration // user and system time of the child
	Load    time.Duration // part of Wall: loading the plugin, client or topology
	Compile time.Duration // part of Wall: the compile call
	MaxRSS  int64         // bytes, 0 where unknown
}

// Compile runs one compile in a child process. Every failure of the child or the plugin is a *CompileError;
// when ctx ends the child and its process group are killed and the error wraps ctx's cause.
func Compile(ctx context.Context, req Request) (*Result, error) {
	if os.Getenv(childEnv) != "" {
		return nil, fmt.Errorf("compile inside a compile child: the program must call tpu.ChildMain before anything else")
	}
	env, err := childEnvironment(req.Options, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	if err := req.check(); err != nil {
		return nil, err
	}
	if req.PluginPath, err = filepath.Abs(req.PluginPath); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", req.PluginPath, err)
	}
	if req.Exe == "" {
		if req.Exe, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("cannot find this program to start it as the compile child: %w", err)
		}
	}
	run, err := runChild(ctx, req, env)
	if err != nil {
		return nil, err
	}
	if cerr := run.failure(req); cerr != nil {
		if (cerr.Kind == Crashed || cerr.Kind == TimedOut) && !req.noCrashFile {
			cerr.keepModule(req)
		}
		return nil, cerr
	}
	r := &Result{Executable: run.executable, Stats: run.reply.Stats, Usage: run.usage(), Log: run.log.String()}
	if req.Target.Platform == CPU {
		r.Stats.Processor, r.Stats.Features = processor.Of(r.Executable)
	}
	return r, nil
}

// check refuses requests that no plugin needs to see.
func (r Request) check() error {
	switch {
	case len(r.Program) == 0:
		return errors.New("program is empty, want a StableHLO module")
	case len(r.Program) > maxProgram:
		return fmt.Errorf("program has %d bytes, want at most %d: large constants belong into parameters", len(r.Program), maxProgram)
	case r.PluginPath == "":
		return errors.New("no plugin given, want the path of a PJRT plugin library")
	case r.Target.Platform != CPU && r.Target.Platform != TPU:
		return fmt.Errorf("platform %q, want %q or %q", r.Target.Platform, CPU, TPU)
	case r.Target.Platform == TPU && r.Target.Topology == "":
		return errors.New("no topology given, want one such as v6e:1x1 for a TPU")
	case r.Target.Devices < 0 || r.Options.NumPartitions < 0:
		return fmt.Errorf("%d devices and %d partitions, want none negative", r.Target.Devices, r.Options.NumPartitions)
	}
	return nil
}

// keepModule writes the module where the user finds it. The name depends on the bytes only.
func (e *CompileError) keepModule(req Request) {
	dir := req.CrashDir
	if dir == "" {
		dir = os.TempDir()
	}
	sum := sha256.Sum256(req.Program)
	path := filepath.Join(dir, "tpuc-crash-"+hex.EncodeToString(sum[:6])+".mlir")
	if err := writeFile(path, req.Program); err != nil {
		e.Message += fmt.Sprintf(" (the module could not be kept: %v)", err)
		return
	}
	e.ModulePath = path
}

// writeFile puts data under its final name only when all of it is on disk.
func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // a no-op after the rename
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
