// Package runtime runs artifacts: it loads the executables into their plugin, puts weights on the device once, keeps state there from call to
// call and from program to program, and checks what a caller gives against what the programs want.
//
// It owns device buffers and sessions. It never compiles by itself: where no program fits it does what its policy says, and asks the Compiler of
// its options where that is to compile. It knows nothing of graphs.
package runtime

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"tpuc/frontend/weights"
	"tpuc/tpu/artifact"
	"tpuc/tpu/pjrt"
	"tpuc/tpu/plugin"
)

// ErrCompileForbidden says that a program would have to be compiled and that there is no Compiler to do it.
var ErrCompileForbidden = errors.New("a compile would be needed")

// ErrInUse says that the plugin still uses the weights of a model that was closed. Their source must stay open, or the process may crash.
var ErrInUse = errors.New("the plugin still uses the weights")

// Options say where things are. The zero value takes the plugin as tpuc/tpu/plugin finds it and the weights from the artifact, or from the
// checkpoint of the recorded name beside it, and is strict about shapes.
type Options struct {
	// Plugin says where the plugin is looked for; its Library names a file.
	Plugin plugin.Options
	// Weights, if not nil, replaces all tensors of the checkpoint, embedded ones too, and gives what the artifact does not hold. The caller
	// closes it, after the Model, and not where the Model's Close gives ErrInUse.
	Weights weights.Source
	// OnMiss says what becomes of a call whose shapes no program has.
	OnMiss Policy
	// MaxPrograms is how many further programs the policy Compile keeps on the device: beyond it those not used for longest are released, when no
	// call uses them. 0 is DefaultMaxPrograms, below 0 no bound. Programs of the artifact stay.
	MaxPrograms int
	// Compiler is asked where an executable does not fit the plugin and, with the policy Compile, for further programs. Nil takes Command where
	// Tpuc or the policy asks for it, and forbids compiling otherwise.
	Compiler Compiler
	// Tpuc is the tpuc program for Command; empty: tpuc in PATH.
	Tpuc string
	// Notify, if not nil, is told in one line what the user should know, such as that a program is compiled. It may be called on several
	// goroutines at once, and must not call the Model.
	Notify func(string)

	hasTPU    func() bool   // stands for the machine's devices in tests
	processor func() string // stands for the machine's processor in tests
}

// Model is an artifact loaded on a device, its weights with it. It may be used by several goroutines at once.
type Model struct {
	art    *artifact.Artifact
	opts   Options
	lib    *plugin.Plugin
	client *pjrt.Client

	programs atomic.Pointer[[]*program] // the artifact's in order, then further ones; the list is replaced, never changed
	stats    counters

	loading   sync.Mutex                             // held while programs are loaded; guards what follows up to the wait groups
	artifacts map[*artifact.Artifact]*sync.WaitGroup // of further programs, with the memory of theirs that the plugin reads
	source    weights.Source                         // of weights by reference; nil without any, or after they were copied
	own       bool                                   // source was found and not given: it is the model's to close, and recorded digests must hold
	inPlace   bool                                   // the plugin uses source's memory in place
	bound     bindings
	fixed     map[fixedKey]*pjrt.Buffer // weights and constants
	told      map[string]bool           // reasons to compile again

	ahead  sync.WaitGroup // tensors being verified
	inUse  sync.WaitGroup // host memory that the plugin uses in place
	copies sync.WaitGroup // host memory that is being copied

	ctx        context.Context // ends with the model: of compiles in the background
	cancel     context.CancelFunc
	background sync.WaitGroup
	making     sync.Mutex // held while a further program is made: one at a time, as each may take gigabytes

	mu       sync.Mutex // guards what follows
	closed   bool
	sessions map[*Session]bool
	jobs     map[string]*job // further programs by their sizes
	padsTold map[string]bool // sizes that a larger program serves
	uses     int64           // of further programs so far

	closeWait time.Duration // shorter in tests
}

// Open loads the artifact at path. Errors are of the artifact, the plugin (see plugin.Locate), the weights (a diag.List of all that are
// missing or have another type), or wrap ErrCompileForbidden.
func Open(ctx context.Context, path string, opts Options) (*Model, error) {
	if opts.OnMiss == "" {
		opts.OnMiss = Strict
	}
	if _, err := ParsePolicy(string(opts.OnMiss)); err != nil {
		return nil, err
	}
	if opts.Compiler == nil && (opts.Tpuc != "" || opts.OnMiss == Compile) {
		opts.Compiler = Command{Path: opts.Tpuc}
	}
	art, err := artifact.Open(path)
	if err != nil {
		return nil, err
	}
	m := &Model{art: art, opts: opts, sessions: make(map[*Session]bool), fixed: make(map[fixedKey]*pjrt.Buffer), told: make(map[string]bool),
		artifacts: make(map[*artifact.Artifact]*sync.WaitGroup),
		jobs:      make(map[string]*job), padsTold: make(map[string]bool), closeWait: closeWait}
	m.programs.Store(&[]*program{})
	m.ctx, m.cancel = context.WithCancel(context.Background())
	if err := m.open(ctx); err != nil {
		// The first error is the one to tell; Close has nothing to add to it.
		_ = m.Close()
		return nil, err
	}
	return m, nil
}

// Manifest describes the model; it must not be changed.
func (m *Model) Manifest() *artifact.Manifest { return &m.art.Manifest }

func (m *Model) notify(line string) {
	if m.opts.Notify != nil {
		m.opts.Notify(line)
	}
}

// open brings everything onto the device, in an order in which the cheap refusals come first.
func (m *Model) open(ctx context.Context) error {
	if err := m.checkTarget(); err != nil {
		return err
	}
	if err := m.bindWeights(); err != nil {
		return err
	}
	m.verifyAhead()
	var err error
	if m.lib, err = plugin.Locate(ctx, plugin.Kind(m.art.Manifest.Target.Platform), m.opts.Plugin); err != nil {
		return err
	}
	if err := m.loadPrograms(ctx); err != nil {
		return err
	}
	return m.dropSource()
}

// checkTarget refuses what this machine cannot run before anything large is read or any library is loaded: a TPU client polls a metadata
// server for minutes where there is no TPU.
func (m *Model) checkTarget() error {
	t := m.art.Manifest.Target
	if t.Devices != 1 {
		return fmt.Errorf("the program is for %d devices (%s), wanted one", t.Devices, t.Name)
	}
	switch t.Platform {
	case "cpu":
	case "tpu":
		has := m.opts.hasTPU
		if has == nil {
			has = HasTPU
		}
		if !has() {
			return fmt.Errorf("the program is for %s and this machine has no TPU: compile the model for the target cpu to run it here", t.Name)
		}
	default:
		return fmt.Errorf("the program is for platform %q, wanted cpu or tpu", t.Platform)
	}
	return nil
}

// HasTPU looks for the device files of TPU chips: the accel driver's, or VFIO groups on newer hosts.
func HasTPU() bool {
	for _, pattern := range []string{"/dev/accel[0-9]*", "/dev/vfio/[0-9]*"} {
		if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// verifyAhead checks tensors while the plugin and the executables are loaded, which brings their pages in as well: those that are embedded, and
// those of a checkpoint with checksums. contents waits for the check, or finds its error, where it takes them.
func (m *Model) verifyAhead() {
	if a, ok := m.source.(*weights.Archive); ok {
		m.ahead.Go(func() { _ = a.Check(m.ctx) })
	}
	used := make(map[string]bool)
	for l, list := range [][]artifact.Weight{m.art.Manifest.Weights, m.art.Manifest.Constants} {
		for i, w := range list {
			if w.Section != "" && [][]weights.Bound{m.bound.weights, m.bound.constants}[l][i].Name == "" {
				used[w.Section] = true
			}
		}
	}
	for name := range used {
		m.ahead.Go(func() { _, _ = m.art.Section(name) })
	}
}

// closeWait bounds how long Close waits for the plugin to let go of mapped weights.
const closeWait = 10 * time.Second

// Close closes the model's sessions and releases everything. Calls in flight end first; compiles in the background are ended. Where the plugin
// does not let go of the weights in time the error is ErrInUse, and they stay mapped.
func (m *Model) Close() error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil
	}
	m.closed = true
	var open []*Session
	for s := range m.sessions {
		open = append(open, s)
	}
	m.mu.Unlock()
	m.cancel()
	m.background.Wait()
	for _, s := range open {
		s.Close()
	}
	for _, b := range m.fixed {
		b.Close()
	}
	for _, p := range *m.programs.Load() {
		p.exe.Close()
	}
	m.client.Close()
	m.ahead.Wait()
	released := make(chan struct{})
	go func() { m.inUse.Wait(); m.copies.Wait(); close(released) }()
	select {
	case <-released:
	case <-time.After(m.closeWait):
		// Unmapping now could crash the process; address space is the cheaper loss.
		return fmt.Errorf("%s: %w after %v: they stay mapped", m.art.Path(), ErrInUse, m.closeWait)
	}
	var errs []error
	if m.own {
		errs = append(errs, m.source.Close())
	}
	m.loading.Lock()
	defer m.loading.Unlock()
	for a := range m.artifacts {
		errs = append(errs, a.Close())
	}
	clear(m.artifacts)
	return errors.Join(append(errs, m.art.Close())...)
}
