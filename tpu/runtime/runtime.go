// Package runtime runs artifacts: it loads the executable into its plugin, puts weights on the device once, keeps state there from call to
// call, and checks what a caller gives against what the program wants.
//
// It owns device buffers and sessions. It never compiles by itself: where the executable does not fit the plugin at hand it asks the Compiler of
// its options, and without one says that a compile would be needed. It knows nothing of graphs.
package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tpuc/frontend/weights"
	"tpuc/tpu/artifact"
	"tpuc/tpu/pjrt"
	"tpuc/tpu/plugin"
)

// ErrCompileForbidden says that the artifact's executable cannot be used here and that no Compiler was given to make another.
var ErrCompileForbidden = errors.New("a compile would be needed")

// Compiler makes an executable for the plugin at hand from an artifact's program.
type Compiler interface {
	Compile(ctx context.Context, req CompileRequest) ([]byte, error)
}

// CompileRequest is what a Compiler compiles.
type CompileRequest struct {
	Program []byte // StableHLO text; valid during the call
	Target  artifact.Target
	Options []artifact.Option
	Plugin  *plugin.Plugin // to be compiled with
}

// Options say where things are. The zero value takes the plugin as tpuc/tpu/plugin finds it and the weights from the artifact, or from the
// checkpoint of the recorded name beside it.
type Options struct {
	// Plugin says where the plugin is looked for; its Library names a file.
	Plugin plugin.Options
	// Weights, if not nil, replaces all tensors of the checkpoint, embedded ones too, and gives what the artifact does not hold. The caller
	// closes it, after the Model.
	Weights weights.Source
	// Compiler is asked where the executable does not fit; nil forbids compiling.
	Compiler Compiler
	// Notify, if not nil, is told in one line what the user should know, such as that a program is compiled again.
	Notify func(string)

	hasTPU func() bool // stands for the machine's devices in tests
}

// Model is an artifact loaded on a device, its weights with it. It may be used by several goroutines at once.
type Model struct {
	art    *artifact.Artifact
	client *pjrt.Client
	loaded []*pjrt.LoadedExecutable // of the manifest's programs
	source weights.Source           // of weights by reference; nil without any
	own    bool                     // source was found and not given: it is the model's to close, and recorded digests must hold
	bound  bindings
	fixed  [2][]*pjrt.Buffer // weights and constants, by index of their lists
	ahead  sync.WaitGroup    // sections being verified
	inUse  sync.WaitGroup    // host memory that the plugin uses in place

	mu       sync.Mutex
	closed   bool
	sessions map[*Session]bool
}

// Open loads the artifact at path. Errors are of the artifact, the plugin (see plugin.Locate), the weights (a diag.List of all that are
// missing or have another type), or wrap ErrCompileForbidden.
func Open(ctx context.Context, path string, opts Options) (*Model, error) {
	art, err := artifact.Open(path)
	if err != nil {
		return nil, err
	}
	m := &Model{art: art, sessions: make(map[*Session]bool)}
	if err := m.load(ctx, opts); err != nil {
		// The first error is the one to tell; Close has nothing to add to it.
		_ = m.Close()
		return nil, err
	}
	return m, nil
}

// Manifest describes the model; it must not be changed.
func (m *Model) Manifest() *artifact.Manifest { return &m.art.Manifest }

// load brings everything onto the device, in an order in which the cheap refusals come first.
func (m *Model) load(ctx context.Context, opts Options) error {
	if err := m.checkTarget(opts); err != nil {
		return err
	}
	if err := m.bindWeights(opts); err != nil {
		return err
	}
	m.verifyAhead()
	if err := m.loadPrograms(ctx, opts); err != nil {
		return err
	}
	return m.upload(ctx)
}

// verifyAhead checks the digests of embedded tensors while the plugin is loaded. upload waits for the check, or finds its error, where it takes
// them.
func (m *Model) verifyAhead() {
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

// Close closes the model's sessions and releases everything. Calls in flight end first.
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
	for _, s := range open {
		s.Close()
	}
	for _, list := range m.fixed {
		closeAll(list)
	}
	for _, exe := range m.loaded {
		exe.Close()
	}
	m.client.Close()
	m.ahead.Wait()
	released := make(chan struct{})
	go func() { m.inUse.Wait(); close(released) }()
	select {
	case <-released:
	case <-time.After(closeWait):
		// Unmapping now could crash the process; address space is the cheaper loss.
		return fmt.Errorf("%s: the plugin still uses the weights after %v: they stay mapped", m.art.Path(), closeWait)
	}
	var err error
	if m.own {
		err = m.source.Close()
	}
	return errors.Join(err, m.art.Close())
}

func closeAll(list []*pjrt.Buffer) {
	for _, b := range list {
		b.Close()
	}
}
