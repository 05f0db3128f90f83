package cache

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// notes collects what a store tells.
type notes struct {
	mu    sync.Mutex
	lines []string
}

func (n *notes) add(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, line)
}

func (n *notes) text() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.lines, "\n")
}

func openStore(t testing.TB, dir string, o Options) (*Store, *notes) {
	t.Helper()
	n := new(notes)
	o.Notify = n.add
	s, err := Open(dir, o)
	require.NoError(t, err)
	return s, n
}

func key(values ...string) Key {
	k := Key{Kind: "program"}
	for i, v := range values {
		k.Parts = append(k.Parts, Part{Name: []string{"program", "target", "options"}[i], Value: v})
	}
	return k
}

func sections(text ...string) (out []Section) {
	for i, t := range text {
		out = append(out, Section{Name: []string{"executable", "report", "log"}[i], Data: []byte(t)})
	}
	return out
}

func builder(s []Section) func(context.Context) ([]Section, error) {
	return func(context.Context) ([]Section, error) { return s, nil }
}

func unbuildable(t *testing.T) func(context.Context) ([]Section, error) {
	return func(context.Context) ([]Section, error) {
		t.Error("built again, wanted a hit")
		return nil, errors.New("built again")
	}
}

func equalEntry(t *testing.T, k Key, want []Section, e *Entry) {
	t.Helper()
	require.Equal(t, k, e.Key())
	require.Equal(t, k.ID(), e.ID())
	require.Equal(t, want, e.Sections())
	for _, s := range want {
		data, err := e.Section(s.Name)
		require.NoError(t, err)
		require.Equal(t, s.Data, data)
	}
}

func TestPutGet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "store")
	s, n := openStore(t, dir, Options{})
	k, want := key("p", "cpu"), sections(strings.Repeat("machine code ", 20), "")
	_, err := s.Get(t.Context(), k)
	require.ErrorIs(t, err, ErrMiss)
	require.NoDirExists(t, dir, "a read makes nothing")

	require.NoError(t, s.Put(t.Context(), k, want))
	e, err := s.Get(t.Context(), k)
	require.NoError(t, err)
	equalEntry(t, k, want, e)
	require.EqualValues(t, 260, e.Size())
	require.Equal(t, s.Path(k), e.Path())
	_, err = e.Section("none")
	require.EqualError(t, err, `cache entry program `+k.ID()[:12]+` has no section "none"`)

	// An open entry stays what it was.
	other := sections("other", "code")
	require.NoError(t, s.Put(t.Context(), k, other))
	equalEntry(t, k, want, e)
	require.NoError(t, e.Close())
	require.NoError(t, e.Close())
	e, err = s.Get(t.Context(), k)
	require.NoError(t, err)
	equalEntry(t, k, other, e)
	require.NoError(t, e.Close())

	_, err = s.Get(t.Context(), key("q", "cpu"))
	require.ErrorIs(t, err, ErrMiss)
	require.Empty(t, n.text())
	left, err := os.ReadDir(s.at(tmpDir))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestDo(t *testing.T) {
	s, n := openStore(t, t.TempDir(), Options{})
	k, want := key("p"), sections("code")
	failed := errors.New("no such operator")
	for range 2 { // a failure is not kept
		_, o, err := s.Do(t.Context(), k, func(context.Context) ([]Section, error) { return nil, failed })
		require.Equal(t, failed, err)
		require.Equal(t, Outcome{}, o)
	}
	e, o, err := s.Do(t.Context(), k, builder(want))
	require.NoError(t, err)
	require.Equal(t, Outcome{}, o)
	equalEntry(t, k, want, e)
	require.NoError(t, e.Close())
	e, o, err = s.Do(t.Context(), k, unbuildable(t))
	require.NoError(t, err)
	require.Equal(t, Outcome{Hit: true}, o)
	equalEntry(t, k, want, e)
	require.NoError(t, e.Close())
	left, err := os.ReadDir(s.at(lockDir))
	require.NoError(t, err)
	require.Empty(t, left)
	require.Empty(t, n.text())

	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = s.Do(canceled, k, unbuildable(t))
	require.ErrorIs(t, err, context.Canceled)
}

// Goroutines of one process take turns like processes: where a build fails the next one builds, and the rest hit.
func TestDoTogether(t *testing.T) {
	s, _ := openStore(t, t.TempDir(), Options{})
	k, want := key("p"), sections("code")
	failed := errors.New("no memory left")
	var builds, failures, hits atomic.Int32
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			e, o, err := s.Do(t.Context(), k, func(context.Context) ([]Section, error) {
				time.Sleep(20 * time.Millisecond)
				if builds.Add(1) == 1 {
					return nil, failed
				}
				return want, nil
			})
			if err != nil {
				if err != failed {
					t.Error(err)
				}
				failures.Add(1)
				return
			}
			if o.Hit {
				hits.Add(1)
			}
			if got := e.Sections(); !reflect.DeepEqual(got, want) {
				t.Errorf("sections %v, wanted %v", got, want)
			}
			e.Close()
		})
	}
	all.Wait()
	require.EqualValues(t, 2, builds.Load())
	require.EqualValues(t, 1, failures.Load())
	require.EqualValues(t, 14, hits.Load())
}
