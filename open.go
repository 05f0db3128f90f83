package tpuc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tpuc/cache"
	"tpuc/frontend/weights"
	"tpuc/tpu"
	"tpuc/tpu/artifact"
	"tpuc/tpu/chip"
	"tpuc/tpu/plugin"
	"tpuc/tpu/runtime"
)

// OpenOptions steer Open. The zero value opens an artifact as it is, and compiles a model for one CPU device.
type OpenOptions struct {
	Target      *chip.Target       // nil: an artifact's own, and the CPU for a model
	Shapes      Shapes             // of a model; of an artifact Dims name the program whose ports a session has before its first call
	Weights     string             // checkpoint file or folder, or artifact that embeds weights, instead of the recorded ones; empty: those
	NoCompile   bool               // compiling is an error, runtime.ErrCompileForbidden
	OnMiss      runtime.Policy     // what becomes of a call whose shapes no program has; empty: runtime.Strict
	MaxPrograms int                // further programs of the policy Compile that are kept; as runtime.Options.MaxPrograms
	Plugin      plugin.Options     // where the plugin is looked for
	Timeout     time.Duration      // as CompileOptions.Timeout
	CrashDir    string             // folder for reproducers of crashes; empty: the present one
	Notify      func(phase string) // told when a phase of a compile begins, as CompileOptions.Notify is; may be nil
	Note        func(line string)  // told what the user should know, such as that a program is compiled again; may be nil
	Exe         string             // program that can be a compile child; empty: this one
	Cache       *Cache             // where executables come from and are kept; nil: each is compiled
}

// Opened is a model on a device, ready for sessions, with the files that it needs.
type Opened struct {
	*runtime.Model
	Report *Report           // of the compile; nil for an artifact
	model  *Model            // holds the weights of a compiled model
	source weights.Source    // given by OpenOptions.Weights
	first  *artifact.Program // that OpenOptions.Shapes names; nil of a model
}

// Open puts the artifact or model at path onto a device. A model is compiled first, into an artifact that is gone when Open returns.
// Errors are those of Compile and of runtime.Open.
func Open(ctx context.Context, path string, o OpenOptions) (*Opened, error) {
	opened := &Opened{}
	if o.Weights != "" {
		var err error
		if opened.source, err = openWeights(o.Weights); err != nil {
			return nil, err
		}
	}
	err := opened.open(ctx, path, o)
	if err != nil {
		opened.closeFiles()
		return nil, err
	}
	return opened, nil
}

// Close releases the device and then the files, which stay open where the device still uses them (runtime.ErrInUse).
func (m *Opened) Close() error {
	err := m.Model.Close()
	if errors.Is(err, runtime.ErrInUse) {
		return err
	}
	return errors.Join(err, m.closeFiles())
}

func (m *Opened) closeFiles() error {
	var errs []error
	if m.source != nil {
		errs = append(errs, m.source.Close())
	}
	if m.model != nil {
		errs = append(errs, m.model.Close())
	}
	return errors.Join(errs...)
}

func (m *Opened) open(ctx context.Context, path string, o OpenOptions) error {
	if o.NoCompile && o.OnMiss == runtime.Compile {
		return errors.New("compiling is forbidden, and shapes that no program has are to be compiled: wanted one of both")
	}
	ro := runtime.Options{Plugin: o.Plugin, Weights: m.source, Notify: o.Note, OnMiss: o.OnMiss, MaxPrograms: o.MaxPrograms}
	if !o.NoCompile {
		ro.Compiler = compiler{o: o}
	}
	if isArtifact(path) {
		if err := checkArtifact(path, o); err != nil {
			return err
		}
		var err error
		if m.Model, err = runtime.Open(ctx, path, ro); err != nil {
			return err
		}
		m.first, err = programOf(m.Model.Manifest(), o.Shapes.Dims)
		return err
	}
	if _, err := os.Stat(path); err != nil {
		return err
	}
	if o.NoCompile {
		return fmt.Errorf("%w: %s is a model, wanted an artifact made by tpuc compile", runtime.ErrCompileForbidden, path)
	}
	dir, err := temporary(o.Plugin)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "model.tpuc")
	seen := identityOf(path)
	if err := m.compile(ctx, path, file, o); err != nil {
		return err
	}
	ro.Compiler = compiler{o, path, seen}
	if ro.Weights = m.source; ro.Weights == nil && m.model != nil {
		ro.Weights = m.model.Weights
	}
	m.Model, err = runtime.Open(ctx, file, ro)
	return err
}

// compile compiles the model at path into file and keeps the model for its weights.
func (m *Opened) compile(ctx context.Context, path, file string, o OpenOptions) error {
	co := CompileOptions{Shapes: o.Shapes, Output: file, Timeout: o.Timeout, Plugin: o.Plugin, CrashDir: o.CrashDir, Notify: o.Notify, Exe: o.Exe, Cache: o.Cache}
	if o.Target != nil {
		co.Target = *o.Target
	}
	if co.Target.IsTPU() && !runtime.HasTPU() {
		return fmt.Errorf("this machine has no TPU to run %s for %s on: run it on the target cpu, or use tpuc compile here and tpuc run there", path, co.Target)
	}
	co.runs = true
	if r, ok, err := co.Cache.unchanged(ctx, path, &co); ok || err != nil {
		if m.Report = r; r != nil {
			r.Output = ""
		}
		if err == nil && m.source == nil && isArchive(path) { // a module in textual form has no weights
			m.source, err = weights.Open(path)
		}
		return err
	}
	seen := identityOf(path)
	c, err := newCompile(path, co)
	if err != nil {
		return err
	}
	c.given = m.source
	err = c.run(ctx, PhaseCompile)
	m.model = c.model
	if err != nil {
		return err
	}
	m.Report, err = pack(ctx, []*compilation{c}, func(p *artifact.Part, keys []cache.Key, r *Report) error {
		return co.Cache.keep(ctx, path, &co, seen, p, keys, r)
	})
	if err != nil {
		return err
	}
	m.Report.Output = ""
	return nil
}

// checkArtifact holds an artifact, which is compiled already, to options that are a model's.
func checkArtifact(path string, o OpenOptions) error {
	if o.Shapes.Custom != nil {
		return fmt.Errorf("%s is an artifact, which is compiled already: --custom-ops is for archives", path)
	}
	if o.Target == nil && len(o.Shapes.Dims) == 0 {
		return nil
	}
	a, err := artifact.Open(path)
	if err != nil {
		return err
	}
	defer a.Close()
	if got := a.Manifest.Target.Name; o.Target != nil && got != o.Target.String() {
		return fmt.Errorf("%s is for the target %s, wanted %s: compile the model for it", path, got, o.Target)
	}
	if _, err := programOf(&a.Manifest, o.Shapes.Dims); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// programOf is the first program with these sizes, by symbol or INPUT.DIM.
func programOf(m *artifact.Manifest, dims map[string]int64) (*artifact.Program, error) {
	for i := range m.Programs {
		p := &m.Programs[i]
		fits := true
		for name, size := range dims {
			got, ok := sizeIn(m, p, name)
			if !ok {
				return nil, fmt.Errorf("it has no dimension %q", name)
			}
			fits = fits && got == size
		}
		if fits {
			return p, nil
		}
	}
	var all []string
	for i := range m.Programs {
		all = append(all, dimsLine(m.Programs[i].Dims))
	}
	return nil, fmt.Errorf("no program with %s: it has %s (tpuc compile makes others, from the artifact too)", dimsText(&CompileOptions{Shapes: Shapes{Dims: dims}}), strings.Join(all, "; "))
}

// sizeIn is the size of a dimension, by symbol or INPUT.DIM, in program p.
func sizeIn(m *artifact.Manifest, p *artifact.Program, name string) (int64, bool) {
	for _, d := range p.Dims {
		if d.Name == name {
			return d.Value, true
		}
	}
	for i, in := range m.Inputs {
		for d, size := range p.Inputs[i].Dims {
			if suffix := "." + strconv.Itoa(d); in.Name+suffix == name || in.Path != "" && in.Path+suffix == name {
				return size, true
			}
		}
	}
	return 0, false
}

// dimsLine is such as "batch = 4, seq = 128".
func dimsLine(dims []artifact.Dim) string {
	if len(dims) == 0 {
		return "fixed dimensions"
	}
	parts := make([]string, len(dims))
	for i, d := range dims {
		parts[i] = fmt.Sprintf("%s = %d", d.Name, d.Value)
	}
	return strings.Join(parts, ", ")
}

// temporary makes a folder under the cache directory, or where that cannot be written to under the system's.
func temporary(o plugin.Options) (string, error) {
	if base, err := plugin.CacheDir(o); err == nil {
		tmp := filepath.Join(base, "tmp")
		if os.MkdirAll(tmp, 0o755) == nil {
			if dir, err := os.MkdirTemp(tmp, "run-*"); err == nil {
				return dir, nil
			}
		}
	}
	return os.MkdirTemp("", "tpuc-run-*")
}

// compiler makes programs in this process.
type compiler struct {
	o     OpenOptions
	model string   // that was opened; empty: an artifact
	seen  identity // of the model's file then
}

// Compile implements runtime.Compiler.
func (c compiler) Compile(ctx context.Context, req runtime.CompileRequest) ([]byte, error) {
	target, err := chip.Parse(req.Target.Name)
	if err != nil {
		return nil, err
	}
	if len(req.Options) > 0 {
		return nil, fmt.Errorf("the artifact was compiled with option %s=%s, which this tpuc does not know: compile the model again", req.Options[0].Name, req.Options[0].Value)
	}
	b, err := c.o.Cache.build(ctx, tpu.Request{
		Program: req.Program, PluginPath: req.Plugin.Path, Target: tpu.TargetOf(target),
		Timeout: c.o.Timeout, CrashDir: crashDir(c.o.CrashDir), Exe: c.o.Exe, OnPhase: onPhase(c.o.Notify),
	}, req.Plugin)
	if err != nil {
		return nil, err
	}
	return b.Executable, nil
}
