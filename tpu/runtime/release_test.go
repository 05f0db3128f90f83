package runtime

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
)

// constantMaker makes programs of rows whose weight is a constant of their own, so that the plugin reads it in their artifacts' mappings.
type constantMaker struct{ *maker }

func (m constantMaker) Specialize(_ context.Context, req SpecializeRequest) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	size := req.Dims["batch"]
	m.made = append(m.made, size)
	p := rowsPart(m.t, m.lib, size, 0)
	w := p.Manifest.Weights[0]
	w.Class, w.Expr = "constant", ""
	p.Manifest.Weights, p.Manifest.Constants = []artifact.Weight{}, []artifact.Weight{w}
	p.Manifest.Programs[0].Args[0] = slot(artifact.KindConstant, 0)
	p.Contents.Weights, p.Contents.Constants = nil, p.Contents.Weights
	f, err := os.CreateTemp(m.t.TempDir(), "further-*.tpuc")
	if err != nil {
		return "", err
	}
	return f.Name(), errors.Join(f.Close(), artifact.Write(f.Name(), p.Manifest, p.Contents))
}

// mapped is how many artifacts of further programs are mapped.
func mapped(m *Model) int {
	m.loading.Lock()
	defer m.loading.Unlock()
	return len(m.artifacts)
}

// Further programs beyond the bound go, those not used for longest first, with what they hold, and are made again when they are wanted.
func TestMaxPrograms(t *testing.T) {
	var n notes
	c := constantMaker{&maker{t: t, lib: cpuPlugin(t)}}
	model := open(t, rows(t, 0, 8), Options{OnMiss: Compile, Compiler: c, Notify: n.add, MaxPrograms: 2})
	s := session(t, model)
	for i, size := range []int64{1, 2, 1, 3, 8, 1, 2} {
		runRows(t, s, size, i)
	}
	require.Equal(t, []int64{1, 2, 3, 2}, c.made, "2 went for 3, and 3 for 2")
	require.Equal(t, Stats{Calls: 7, Exact: 7, Compiled: 4, Released: 2}, model.Stats())
	require.Contains(t, n.text(), "released the program for batch = 3, which was not used for longest: further programs kept are 2 at most")
	require.Len(t, *model.programs.Load(), 3)
	require.Len(t, model.fixed, 1+2, "a constant of each")
	require.Len(t, s.args, 3)
	require.Eventually(t, func() bool { return mapped(model) == 2 }, 10*time.Second, time.Millisecond)
}

// What a call uses is not released, and goes as soon as no call does. Calls on their way end normally.
func TestReleaseWaitsForCalls(t *testing.T) {
	c := constantMaker{&maker{t: t, lib: cpuPlugin(t)}}
	model := open(t, rows(t, 0, 8), Options{OnMiss: Compile, Compiler: c, MaxPrograms: 1})
	s := session(t, model)
	runRows(t, s, 1, 0)
	p := model.exact(rowsInput(1)) // as a call does
	require.NotNil(t, p)
	runRows(t, s, 2, 1)
	model.background.Wait()
	require.Equal(t, int64(1), model.Stats().Released, "2 goes in its place, after its call")
	runRows(t, s, 1, 2)
	require.Equal(t, []int64{1, 2}, c.made)
	model.letGo(p)

	other := session(t, model)
	var calls []*Call
	for range 20 {
		call, err := other.Start(t.Context(), rowsInput(1))
		require.NoError(t, err)
		calls = append(calls, call)
	}
	runRows(t, s, 3, 3)
	require.Nil(t, model.exact(rowsInput(1)))
	for i, call := range calls {
		out, err := call.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, wantRows(rowsInput(1), i), out[0].Floats())
	}
}

// Without a bound nothing goes, and the default is one.
func TestNoMaxPrograms(t *testing.T) {
	m := &Model{opts: Options{MaxPrograms: -1}}
	list := make([]*program, DefaultMaxPrograms+3)
	for i := range list {
		list[i] = &program{sizes: "--dim batch=1"}
	}
	list[0].sizes = "" // of the artifact
	m.programs.Store(&list)
	require.Zero(t, m.excess())
	m.opts.MaxPrograms = 0
	require.Equal(t, 2, m.excess())
	require.Nil(t, m.exact([]*tensor.Tensor{nil}))
}
