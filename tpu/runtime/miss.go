package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
	"tpuc/tpu/plugin"
)

// Compiler makes programs. A process that has a compiler gives its own; Command starts the tpuc program.
type Compiler interface {
	// Compile makes an executable of a program for the plugin at hand.
	Compile(ctx context.Context, req CompileRequest) ([]byte, error)
	// Specialize makes an artifact with a further program of an artifact's graph, and gives its path. The caller removes the file.
	Specialize(ctx context.Context, req SpecializeRequest) (path string, err error)
}

// CompileRequest is what a Compiler compiles.
type CompileRequest struct {
	Path    string         // the artifact that it is of
	Dims    []artifact.Dim // which of its programs
	Program []byte         // StableHLO text; valid during the call
	Target  artifact.Target
	Options []artifact.Option
	Plugin  *plugin.Plugin // to be compiled with
}

// SpecializeRequest asks for a further program.
type SpecializeRequest struct {
	Path   string           // the artifact
	Dims   map[string]int64 // sizes of its symbols
	Target artifact.Target  // the artifact's
	Plugin *plugin.Plugin   // to be compiled with
}

// job is a further program in the making.
type job struct {
	done chan struct{}
	err  error // when done
}

// wait waits for the program. The job goes on when ctx ends first.
func (j *job) wait(ctx context.Context) error {
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// further begins to make the program for dims, or finds the job that does. A job that failed is begun anew by the next call that must have
// the program; calls that another program serves leave it at that.
func (m *Model) further(dims map[string]int64, inputs []*tensor.Tensor) *job {
	key := dimFlags(dims)
	m.mu.Lock()
	defer m.mu.Unlock()
	j := m.jobs[key]
	if j != nil {
		select {
		case <-j.done:
			if j.err == nil {
				return j
			}
			if p, _ := m.padded(inputs); p != nil {
				return j
			}
		default:
			return j
		}
	}
	j = &job{done: make(chan struct{})}
	if m.closed {
		j.err = fmt.Errorf("%s: the model is closed", m.art.Path())
		close(j.done)
		return j
	}
	m.jobs[key] = j
	m.stats.compiling.Add(1)
	line := fmt.Sprintf("compiling a program for %s%s", words(key), m.changed(*m.programs.Load(), inputs))
	m.background.Go(func() {
		m.making.Lock()
		defer m.making.Unlock()
		m.notify(line)
		start := time.Now()
		j.err = m.specialize(m.ctx, dims)
		if j.err == nil {
			m.stats.compiled.Add(1)
			m.notify(fmt.Sprintf("compiled a program for %s in %.1f s", words(key), time.Since(start).Seconds()))
		} else {
			m.stats.compileFailures.Add(1)
			j.err = fmt.Errorf("no program for %s: %w", words(key), j.err)
			if m.ctx.Err() == nil {
				m.notify(j.err.Error())
			}
		}
		m.stats.compiling.Add(-1)
		close(j.done)
	})
	return j
}

// words is such as "s0 = 4, s1 = 16" of "--dim s0=4 --dim s1=16".
func words(flags string) string {
	return strings.ReplaceAll(strings.TrimPrefix(strings.ReplaceAll(flags, " --dim ", ", "), "--dim "), "=", " = ")
}

// specialize has a further program made and takes it in.
func (m *Model) specialize(ctx context.Context, dims map[string]int64) error {
	if ctx.Err() != nil { // the model was closed while others were made
		return context.Cause(ctx)
	}
	if m.opts.Compiler == nil {
		return ErrCompileForbidden
	}
	path, err := m.opts.Compiler.Specialize(ctx, SpecializeRequest{Path: m.art.Path(), Dims: dims, Target: m.Manifest().Target, Plugin: m.lib})
	if err != nil {
		return err
	}
	art, err := artifact.Open(path)
	if err := errors.Join(err, os.Remove(path)); err != nil { // a mapping needs no name
		return err
	}
	if err := m.checkReplaced(); err != nil {
		return errors.Join(err, art.Close())
	}
	return m.takeIn(ctx, art, dimFlags(dims))
}

// checkReplaced refuses an artifact that is another one than when the model was opened: a program of its graph may differ in more than its sizes.
// A file that is gone belongs to a model that was compiled for this process alone, whose Compiler looks after the model's own file.
func (m *Model) checkReplaced() error {
	now, err := artifact.Open(m.art.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = now.Close()
	}
	if err == nil && !slices.Equal(now.Sections, m.art.Sections) {
		err = fmt.Errorf("%s was replaced since it was opened: open it again", m.art.Path())
	}
	return err
}

// takeIn adds the programs of another artifact of the same model, made for sizes, which is the model's to close from here on. Others are released where
// there are too many then.
func (m *Model) takeIn(ctx context.Context, art *artifact.Artifact, sizes string) error {
	m.loading.Lock()
	defer m.loading.Unlock()
	m.artifacts[art] = new(sync.WaitGroup)
	added, err := m.loadFurther(ctx, art, sizes)
	if err != nil {
		m.closeFurther(art)
		return err
	}
	m.mu.Lock()
	for _, p := range added {
		m.use(p)
	}
	programs := slices.Concat(*m.programs.Load(), added)
	m.programs.Store(&programs)
	m.mu.Unlock()
	m.release(added)
	return m.dropSource()
}

// loadFurther loads the programs of another artifact of the same model; loading is held.
func (m *Model) loadFurther(ctx context.Context, art *artifact.Artifact, sizes string) ([]*program, error) {
	own, man := m.Manifest(), &art.Manifest
	if man.Model != own.Model || man.Target != own.Target || !slices.EqualFunc(man.Inputs, own.Inputs, equalSignatures) || !slices.EqualFunc(man.Outputs, own.Outputs, equalSignatures) {
		return nil, fmt.Errorf("the further program is of model %s for %s with other inputs or outputs, wanted %s for %s", man.Model.Name, man.Target.Name, own.Model.Name, own.Target.Name)
	}
	if reason := m.unfit(man); reason != "" {
		return nil, errors.New(reason)
	}
	var added []*program
	for i := range man.Programs {
		exe, err := m.load(ctx, art, i, "")
		if err == nil {
			var p *program
			if p, err = m.newProgram(ctx, art, i, exe); err == nil {
				p.sizes = sizes
				added = append(added, p)
			}
		}
		if err != nil {
			for _, p := range added {
				p.exe.Close()
			}
			return nil, err
		}
	}
	return added, nil
}

func equalSignatures(a, b artifact.Signature) bool {
	return a.Name == b.Name && a.Ordinal == b.Ordinal && a.DType == b.DType && slices.Equal(a.Dims, b.Dims)
}

// Command is a Compiler that starts the tpuc program for artifacts that hold their model's graph.
type Command struct {
	Path string   // of the tpuc program; empty: tpuc in PATH
	Args []string // further ones for tpuc compile
}

// program is the path of the tpuc program.
func (c Command) program() (string, error) {
	if c.Path != "" {
		return c.Path, nil
	}
	path, err := exec.LookPath("tpuc")
	if err != nil {
		return "", fmt.Errorf("%w, and no tpuc program to do it: %w", ErrCompileForbidden, err)
	}
	return path, nil
}

// Compile implements Compiler: it has the program of these sizes made from the artifact's graph, and takes it where it has the same text.
func (c Command) Compile(ctx context.Context, req CompileRequest) ([]byte, error) {
	dims := make(map[string]int64)
	for _, d := range req.Dims {
		dims[d.Name] = d.Value
	}
	path, err := c.Specialize(ctx, SpecializeRequest{Path: req.Path, Dims: dims, Target: req.Target, Plugin: req.Plugin})
	if err != nil {
		return nil, err
	}
	defer os.Remove(path)
	art, err := artifact.Open(path)
	if err != nil {
		return nil, err
	}
	defer art.Close()
	text, err := art.Section(artifact.ProgramSection(0))
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(text, req.Program) || art.Manifest.Plugin.SHA256 != req.Plugin.Digest {
		return nil, fmt.Errorf("this tpuc makes another program of %s, or for another plugin: compile the model again", req.Path)
	}
	code, err := art.Section(artifact.ExecutableSection(0))
	return bytes.Clone(code), err
}

// Specialize implements Compiler.
func (c Command) Specialize(ctx context.Context, req SpecializeRequest) (string, error) {
	tpuc, err := c.program()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "tpuc-further-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	made := filepath.Join(dir, "further.tpuc")
	args := slices.Concat([]string{"compile", req.Path, "--target", req.Target.Name}, dimArgs(req.Dims), []string{"-o", made}, c.Args)
	cmd := exec.CommandContext(ctx, tpuc, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", fmt.Errorf("%s %s: %w\n%s", tpuc, strings.Join(args, " "), err, strings.TrimSpace(out.String()))
	}
	f, err := os.CreateTemp("", "tpuc-further-*.tpuc")
	if err != nil {
		return "", err
	}
	return f.Name(), errors.Join(f.Close(), os.Rename(made, f.Name()))
}

func sortedKeys(m map[string]int64) []string { return slices.Sorted(maps.Keys(m)) }
