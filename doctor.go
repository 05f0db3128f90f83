package tpuc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"tpuc/ir/tensor"
	"tpuc/tpu/chip"
	"tpuc/tpu/plugin"
)

// DoctorOptions steer Doctor.
type DoctorOptions struct {
	Plugin  plugin.Options
	Timeout time.Duration // of one compile; 0: doctorTimeout
	Exe     string        // program that can be a compile child; empty: this one
}

// doctorTimeout is far more than the tiny program needs on any machine.
const doctorTimeout = 2 * time.Minute

// Check is one thing that Doctor looked at.
type Check struct {
	Name    string `json:"name"`
	Problem bool   `json:"problem"`
	Found   string `json:"found"`
	Advice  string `json:"advice,omitempty"` // what to do about a problem
}

// Doctor looks at everything that compiling and running need on this machine, and tells each check as it is done. The CPU plugin is fetched
// where it is absent, unless the options forbid it; libtpu is not.
func Doctor(ctx context.Context, o DoctorOptions, tell func(Check)) {
	if o.Timeout == 0 {
		o.Timeout = doctorTimeout
	}
	tell(Check{Name: "tpuc", Found: Version + ", " + runtime.Version()})
	for _, f := range plugin.Facts(o.Plugin) {
		c := Check{Name: f.Name, Found: f.Value, Problem: f.Problem}
		if f.Problem {
			c.Advice = advice(f.Name)
		}
		tell(c)
	}
	tell(cacheWritable(o.Plugin))
	for _, k := range []plugin.Kind{plugin.CPU, plugin.TPU} {
		if c, ok := digest(ctx, k, o.Plugin); ok {
			tell(c)
		}
	}
	dir, err := os.MkdirTemp("", "tpuc-doctor-*")
	if err != nil {
		tell(Check{"temporary folder", true, err.Error(), "make $TMPDIR writable"})
		return
	}
	defer os.RemoveAll(dir)
	artifact, c := compileTiny(ctx, dir, chip.Target{}, o)
	tell(c)
	if !c.Problem {
		tell(runTiny(ctx, artifact, o))
	}
	if here(ctx, plugin.TPU, o.Plugin) {
		v6e, err := chip.Parse("v6e:1x1")
		if err == nil {
			_, c = compileTiny(ctx, dir, v6e, o)
			tell(c)
		}
	}
}

// advice says what to do about a fact of package plugin that is a problem.
func advice(fact string) string {
	switch fact {
	case "platform":
		return "compile and run on linux/amd64; inspect, opt and eval work here"
	case "free in the cache":
		return "free some space, or name another folder with --cache or " + plugin.EnvCache
	case "plugin cache":
		return "name a folder with --cache or " + plugin.EnvCache
	}
	return "correct pip's configuration; see pip config list"
}

// cacheWritable writes a file into the cache and removes it.
func cacheWritable(o plugin.Options) Check {
	c := Check{Name: "cache writable", Advice: "make it writable, or name another folder with --cache or " + plugin.EnvCache}
	base, err := plugin.CacheDir(o)
	if err == nil {
		err = os.MkdirAll(base, 0o755)
	}
	if err == nil {
		var f *os.File
		if f, err = os.CreateTemp(base, ".doctor-*"); err == nil {
			err = errors.Join(f.Close(), os.Remove(f.Name()))
		}
	}
	if err != nil {
		c.Problem, c.Found = true, err.Error()
		return c
	}
	return Check{Name: c.Name, Found: base}
}

// here reports whether a plugin is on this machine.
func here(ctx context.Context, k plugin.Kind, o plugin.Options) bool {
	o.Offline, o.Quiet = true, true
	p, err := plugin.Locate(ctx, k, o)
	return err == nil && p != nil
}

// digest hashes a plugin that is on this machine.
func digest(ctx context.Context, k plugin.Kind, o plugin.Options) (Check, bool) {
	o.Offline, o.Quiet = true, true
	p, err := plugin.Locate(ctx, k, o)
	if err != nil {
		return Check{}, false // absent; Facts says so, and what a file of the user's lacks shows when it is used
	}
	c := Check{Name: string(k) + " plugin's digest", Found: p.Digest}
	if !p.Pinned {
		c.Found += " (a library of your own)"
	}
	if err := p.Verify(ctx); err != nil {
		c.Problem, c.Found, c.Advice = true, err.Error(), "remove the plugin's folder: it is fetched again"
	}
	return c, true
}

// tiny computes x + x.
const tiny = `func @main(%x: f32[4]) {
  %0 = add %x, %x : f32[4]
  return %0
}
`

// compileTiny compiles in a child process, as every compile does.
func compileTiny(ctx context.Context, dir string, t chip.Target, o DoctorOptions) (string, Check) {
	c := Check{Name: "compile for " + t.String(), Advice: "see the message; tpuc compile -v shows what the plugin prints"}
	model := filepath.Join(dir, "tiny.tpu")
	out := filepath.Join(dir, t.Platform()+".tpuc")
	err := writeFile(model, []byte(tiny))
	if err == nil {
		var r *Report
		if r, err = Compile(ctx, model, CompileOptions{Target: t, Output: out, CrashDir: dir, Timeout: o.Timeout, Plugin: o.Plugin, Exe: o.Exe}); err == nil {
			return out, Check{Name: c.Name, Found: fmt.Sprintf("%s with %s", seconds(r.Wall()), r.Plugin)}
		}
	}
	c.Problem, c.Found = true, err.Error()
	return "", c
}

// runTiny runs the compiled program and looks at the numbers.
func runTiny(ctx context.Context, path string, o DoctorOptions) Check {
	c := Check{Name: "run on cpu", Advice: "see the message; PJRT_PLUGIN_LIBRARY_PATH names another plugin"}
	start := time.Now()
	if err := double(ctx, path, o); err != nil {
		c.Problem, c.Found = true, err.Error()
		return c
	}
	return Check{Name: c.Name, Found: seconds(time.Since(start).Seconds()) + ", the right numbers"}
}

func double(ctx context.Context, path string, o DoctorOptions) (err error) {
	m, err := Open(ctx, path, OpenOptions{NoCompile: true, Plugin: o.Plugin})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	s, err := m.Session(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	out, err := s.Call(ctx, []*tensor.Tensor{tensor.FromFloats(tensor.Make(tensor.F32, 4), []float64{0, 1, -2, 0.5})})
	if err != nil {
		return err
	}
	for i, want := range []float64{0, 2, -4, 1} {
		if got := out[0].Floats()[i]; got != want {
			return fmt.Errorf("x + x gave %v at element %d, wanted %v", got, i, want)
		}
	}
	return nil
}
