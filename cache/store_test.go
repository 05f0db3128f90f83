package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fill puts n entries of 1000 bytes and some, the first one used longest ago, an hour apart.
func fill(t testing.TB, s *Store, n int) (keys []Key) {
	t.Helper()
	for i := range n {
		k := key(fmt.Sprint("p", i), "cpu")
		require.NoError(t, s.Put(t.Context(), k, []Section{{"executable", random(uint64(i), 1000)}}))
		age(t, s, k, time.Duration(n-i)*time.Hour)
		keys = append(keys, k)
	}
	return keys
}

func age(t testing.TB, s *Store, k Key, d time.Duration) {
	t.Helper()
	at := time.Now().Add(-d)
	require.NoError(t, os.Chtimes(s.Path(k), at, at))
}

func present(s *Store, keys []Key) (out []int) {
	for i, k := range keys {
		if _, err := os.Stat(s.Path(k)); err == nil {
			out = append(out, i)
		}
	}
	return out
}

func TestListLookupNear(t *testing.T) {
	s, _ := openStore(t, t.TempDir(), Options{})
	list, err := s.List()
	require.NoError(t, err)
	require.Empty(t, list)
	_, ok := s.Near(key("p"))
	require.False(t, ok)

	a, b, c := key("p", "cpu", "x"), key("p", "v6e:1x1", "x"), Key{Kind: "model"}
	for _, k := range []Key{a, b, c} {
		require.NoError(t, s.Put(t.Context(), k, sections("code")))
	}
	list, err = s.List()
	require.NoError(t, err)
	require.Len(t, list, 3)
	require.Equal(t, c, Key{Kind: list[0].Key.Kind})
	for _, i := range list {
		require.NoError(t, i.Damage)
		require.Equal(t, i.Key.ID(), i.ID)
		require.Equal(t, s.Path(i.Key), i.Path)
		st, err := os.Stat(i.Path)
		require.NoError(t, err)
		require.Equal(t, st.Size(), i.Size)
		require.WithinDuration(t, time.Now(), i.Used, time.Minute)
		found, err := s.Lookup(i.ID[:4])
		require.NoError(t, err)
		require.Equal(t, i, found)
	}
	_, err = s.Lookup("abc")
	require.EqualError(t, err, `"abc" is no entry's ID, wanted its first 4 to 64 hex digits`)
	_, err = s.Lookup("abcx")
	require.ErrorContains(t, err, "is no entry's ID")
	_, err = s.Lookup(key("none").ID())
	require.ErrorIs(t, err, ErrMiss)

	// The nearest has most parts in common; among equals it is the one used last.
	near, ok := s.Near(key("p", "v6e:2x2", "x"))
	require.True(t, ok)
	age(t, s, near.Key, 2*time.Hour)
	near2, _ := s.Near(key("p", "v6e:2x2", "x"))
	require.NotEqual(t, near.ID, near2.ID)
	near, _ = s.Near(key("q", "v6e:1x1", "x"))
	require.Equal(t, b, near.Key)
	near, _ = s.Near(b)
	require.Equal(t, a, near.Key, "not itself")
	require.Equal(t, "target: v6e:1x1 -> cpu", Diff(b, near.Key)[0].String())

	// A damaged head is listed with what is wrong, and not near to anything.
	require.NoError(t, os.Truncate(s.Path(a), 70))
	list, err = s.List()
	require.NoError(t, err)
	require.Len(t, list, 3)
	damaged, err := s.Lookup(a.ID())
	require.NoError(t, err)
	require.ErrorContains(t, damaged.Damage, "it has 70 bytes")
	require.Equal(t, Key{Kind: "program"}, damaged.Key)
	_, ok = s.Near(b)
	require.False(t, ok)
}

func TestLookupSeveral(t *testing.T) {
	s, _ := openStore(t, t.TempDir(), Options{})
	id := key("p").ID()
	for _, end := range []string{"0", "1"} {
		path := s.path("program", id[:63]+end)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, nil, 0o644))
	}
	_, err := s.Lookup(id[:10])
	require.EqualError(t, err, fmt.Sprintf("2 entries begin with %s, wanted one: program %s0, program %s1", id[:10], id[:63], id[:63]))
}

// C11: half of an entry is gone and an orphan lies beside it. The others go on working under a cap, and Verify names and repairs both.
func TestVerify(t *testing.T) {
	dir := t.TempDir()
	s, notes := openStore(t, dir, Options{})
	keys := fill(t, s, 4)
	st, err := os.Stat(s.Path(keys[2]))
	require.NoError(t, err)
	size := st.Size()
	require.NoError(t, os.Truncate(s.Path(keys[2]), size/2))
	orphan := s.Path(keys[3]) + "-atime"
	require.NoError(t, os.WriteFile(orphan, []byte("x"), 0o644))
	require.NoError(t, os.WriteFile(s.at("notes.txt"), []byte("x"), 0o644))
	require.NoError(t, os.WriteFile(s.at("program", ".hidden"), []byte("x"), 0o644))
	require.NoError(t, os.WriteFile(s.at(tmpDir, "left"), []byte("x"), 0o644))

	capped, _ := openStore(t, dir, Options{MaxSize: 3*size + size/2 + 10})
	e, _, err := capped.Do(t.Context(), key("new", "cpu"), builder([]Section{{"executable", random(9, 1000)}}))
	require.NoError(t, err)
	require.NoError(t, e.Close())
	require.Equal(t, []int{1, 2, 3}, present(s, keys), "the one not used for longest went")
	e, _, err = s.Do(t.Context(), keys[3], unbuildable(t))
	require.NoError(t, err)
	require.NoError(t, e.Close())
	require.Empty(t, notes.text())

	require.NoError(t, os.WriteFile(s.at(tmpDir, "left"), []byte("x"), 0o644)) // the cap swept the first
	for _, repair := range []bool{false, true} {
		v, err := s.Verify(t.Context(), repair)
		require.NoError(t, err)
		require.Equal(t, 3, v.Entries)
		require.Equal(t, 3*size, v.Size)
		require.Equal(t, 1, v.Leftovers)
		require.Zero(t, v.Quarantined)
		problems := make(map[string]string)
		for _, f := range v.Findings {
			problems[f.Path] = f.Problem.Error()
			if !repair {
				require.Empty(t, f.Repaired)
				continue
			}
			to, ok := strings.CutPrefix(f.Repaired, "moved to ")
			require.True(t, ok, f.Repaired)
			require.FileExists(t, to)
			require.NoFileExists(t, f.Path)
		}
		require.Equal(t, map[string]string{
			s.Path(keys[2]):   fmt.Sprintf("it has %d bytes, wanted the %d of its header", size/2, size),
			orphan:            "it is no entry of the cache",
			s.at("notes.txt"): "it is no entry of the cache",
		}, problems)
	}
	v, err := s.Verify(t.Context(), false)
	require.NoError(t, err)
	require.Empty(t, v.Findings)
	require.Equal(t, 3, v.Quarantined)
	require.Zero(t, v.Leftovers)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Verify(canceled, false)
	require.ErrorIs(t, err, context.Canceled)
}

func TestPrune(t *testing.T) {
	s, _ := openStore(t, t.TempDir(), Options{})
	keys := fill(t, s, 5)
	st, err := os.Stat(s.Path(keys[0]))
	require.NoError(t, err)
	size := st.Size()
	p, err := s.Prune(t.Context(), Limits{})
	require.NoError(t, err)
	require.Equal(t, Pruned{Kept: 5, KeptSize: 5 * size}, p)

	// A use makes an entry the last to go.
	e, err := s.Get(t.Context(), keys[0])
	require.NoError(t, err)
	require.NoError(t, e.Close())
	e, err = s.Get(t.Context(), keys[1]) // open while it goes
	require.NoError(t, err)
	p, err = s.Prune(t.Context(), Limits{MaxSize: 4*size + 1})
	require.NoError(t, err)
	require.Equal(t, Pruned{Kept: 4, KeptSize: 4 * size, Removed: 1, RemovedSize: size}, p)
	require.Equal(t, []int{0, 1, 3, 4}, present(s, keys), "2 was not used for longest")
	age(t, s, keys[1], 100*time.Hour)
	p, err = s.Prune(t.Context(), Limits{OlderThan: 3*time.Hour + time.Minute})
	require.NoError(t, err)
	require.Equal(t, 1, p.Removed)
	require.Equal(t, []int{0, 3, 4}, present(s, keys))
	data, err := e.Section("executable")
	require.NoError(t, err)
	require.Equal(t, random(1, 1000), data, "an open entry stays usable")
	require.NoError(t, e.Close())

	// What lies in quarantine counts, and goes first.
	require.NoError(t, os.Truncate(s.Path(keys[4]), 500))
	_, err = s.Get(t.Context(), keys[4])
	require.ErrorIs(t, err, ErrMiss)
	p, err = s.Prune(t.Context(), Limits{MaxSize: 2 * size})
	require.NoError(t, err)
	require.Equal(t, Pruned{Kept: 2, KeptSize: 2 * size, Removed: 1, RemovedSize: 500}, p)
	require.Equal(t, []int{0, 3}, present(s, keys))

	// An entry that is being built or taken is kept.
	_, _, err = s.Do(t.Context(), key("building"), func(ctx context.Context) ([]Section, error) {
		require.NoError(t, s.Put(ctx, key("building"), nil))
		p, err := s.Prune(ctx, Limits{All: true})
		require.NoError(t, err)
		require.Equal(t, 2, p.Removed)
		require.Equal(t, 1, p.Kept)
		require.Zero(t, p.Leftovers)
		return nil, errors.New("given up")
	})
	require.EqualError(t, err, "given up")
	p, err = s.Prune(t.Context(), Limits{All: true})
	require.NoError(t, err)
	require.Equal(t, 1, p.Removed)
	require.Zero(t, p.Kept)

	// Leftovers go, files that are being written stay.
	left, err := s.create()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(s.at(tmpDir, "dead"), nil, 0o644))
	require.NoError(t, os.WriteFile(s.at(lockDir, "dead"), nil, 0o644))
	p, err = s.Prune(t.Context(), Limits{})
	require.NoError(t, err)
	require.Equal(t, 2, p.Leftovers)
	require.FileExists(t, left.Name())
	left.drop()
	require.NoFileExists(t, left.Name())
}

// A sweep that comes between a file's creation and its lock takes the file: its writer takes another one.
func TestSweptAtOnce(t *testing.T) {
	s, _ := openStore(t, t.TempDir(), Options{})
	calls := 0
	s.flock = func(f *os.File, exclusive bool) error {
		switch calls++; calls {
		case 1: // the sweep holds it, and will remove it
			return errLocked
		case 2: // the sweep is through with it
			require.NoError(t, os.Remove(f.Name()))
		}
		return flock(f, exclusive)
	}
	k, want := key("p"), sections("code")
	require.NoError(t, s.Put(t.Context(), k, want))
	require.Equal(t, 3, calls)
	e, err := s.Get(t.Context(), k)
	require.NoError(t, err)
	equalEntry(t, k, want, e)
	require.NoError(t, e.Close())
	left, err := os.ReadDir(s.at(tmpDir))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestTouch(t *testing.T) {
	s, _ := openStore(t, t.TempDir(), Options{})
	k := key("p")
	require.NoError(t, s.Put(t.Context(), k, nil))
	for _, c := range []struct {
		age  time.Duration
		want bool
	}{{30 * time.Minute, false}, {2 * time.Hour, true}} {
		age(t, s, k, c.age)
		e, err := s.Get(t.Context(), k)
		require.NoError(t, err)
		require.NoError(t, e.Close())
		st, err := os.Stat(s.Path(k))
		require.NoError(t, err)
		require.Equal(t, c.want, time.Since(st.ModTime()) < time.Minute)
	}
}

func export(t testing.TB, s *Store, ids []string) []byte {
	t.Helper()
	var b bytes.Buffer
	_, err := s.Export(t.Context(), &b, ids)
	require.NoError(t, err)
	return b.Bytes()
}

func TestExportImport(t *testing.T) {
	s, notes := openStore(t, t.TempDir(), Options{})
	keys := fill(t, s, 5)
	require.NoError(t, s.Put(t.Context(), Key{Kind: "model"}, nil))
	all := export(t, s, nil)

	to, _ := openStore(t, t.TempDir(), Options{})
	done, err := to.Import(t.Context(), bytes.NewReader(all))
	require.NoError(t, err)
	require.Equal(t, Imported{Added: 6}, done)
	done, err = to.Import(t.Context(), bytes.NewReader(all))
	require.NoError(t, err)
	require.Equal(t, Imported{Present: 6}, done)
	require.Equal(t, all, export(t, to, nil), "equal entries give equal bytes")
	e, _, err := to.Do(t.Context(), keys[3], unbuildable(t))
	require.NoError(t, err)
	equalEntry(t, keys[3], []Section{{"executable", random(3, 1000)}}, e)
	require.NoError(t, e.Close())

	// Some, whatever the order they are asked for in.
	a, b := keys[1].ID(), keys[4].ID()
	require.Equal(t, export(t, s, []string{a, b}), export(t, s, []string{b, a, b}))
	_, err = s.Export(t.Context(), io.Discard, []string{a, key("none").ID()})
	require.ErrorIs(t, err, ErrMiss)

	// An entry that is damaged here is left out of all, and an error where it was asked for.
	for _, ids := range [][]string{nil, {a}} {
		require.NoError(t, s.Put(t.Context(), keys[1], []Section{{"executable", random(1, 1000)}}))
		require.NoError(t, os.Truncate(s.Path(keys[1]), 400))
		n, err := s.Export(t.Context(), io.Discard, ids)
		if ids == nil {
			require.NoError(t, err)
			require.Equal(t, 5, n)
		} else {
			require.ErrorIs(t, err, ErrMiss)
		}
	}
	require.Contains(t, notes.text(), "warning: cache entry "+s.Path(keys[1])+" is damaged")
}

// A damaged export gives the entries that are good, and an error that names each that is not.
func TestImportDamaged(t *testing.T) {
	s, _ := openStore(t, t.TempDir(), Options{})
	fill(t, s, 3)
	all := export(t, s, nil)
	list, err := s.List()
	require.NoError(t, err)
	require.Len(t, list, 3)
	at := func(i int) int { return bytes.Index(all, []byte("program/"+list[i].ID)) }
	put := func(i int, text string) []byte {
		b := bytes.Clone(all)
		copy(b[i:], text)
		return b
	}
	end := bytes.Index(all, []byte(listName))
	for name, c := range map[string]struct {
		data  []byte
		added int
		want  []string
	}{
		"no tar":          {[]byte(strings.Repeat("x", 2000)), 0, []string{"not a whole export: archive/tar: invalid tar header"}},
		"empty":           {nil, 0, []string{"not a whole export: it ends without entries.json"}},
		"changed code":    {put(at(1)+512+1000, "\xff\xff\xff"), 2, []string{"program/" + list[1].ID + `": damaged: section "executable" was changed`}},
		"two changed":     {func() []byte { b := put(at(1)+512, "T"); b[at(2)+512] = 'T'; return b }(), 1, []string{list[1].ID + `": damaged: it begins with "Tpucache"`, list[2].ID}},
		"cut in an entry": {all[:at(2)+600], 2, []string{"unexpected EOF"}},
		"cut before one":  {all[:at(2)], 2, []string{"not a whole export: it ends without entries.json"}},
		"cut before list": {all[:end], 3, []string{"not a whole export: it ends without entries.json"}},
		"one left out":    {append(bytes.Clone(all[:at(1)]), all[at(2):]...), 2, []string{"entries.json: the 3 entries that it names are not the 2 before it"}},
		"two exchanged":   {append(append(append(bytes.Clone(all[:at(0)]), all[at(1):at(2)]...), all[at(0):at(1)]...), all[at(2):]...), 3, []string{"entries.json: the 3 entries"}},
		"bad list":        {put(end+512, "]"), 3, []string{"entries.json: bad JSON"}},
	} {
		t.Run(name, func(t *testing.T) {
			to, _ := openStore(t, t.TempDir(), Options{})
			done, err := to.Import(t.Context(), bytes.NewReader(c.data))
			require.Error(t, err)
			for _, w := range c.want {
				require.ErrorContains(t, err, w)
			}
			require.Equal(t, Imported{Added: c.added}, done)
			v, err := to.Verify(t.Context(), false)
			require.NoError(t, err)
			require.Equal(t, c.added, v.Entries)
			require.Empty(t, v.Findings)
		})
	}
}

// shared is a remote in memory.
type shared struct {
	files map[string][]byte
	err   error
}

func (r *shared) Get(_ context.Context, id string) (io.ReadCloser, error) {
	if r.err != nil {
		return nil, r.err
	}
	data, ok := r.files[id]
	if !ok {
		return nil, ErrMiss
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

func (r *shared) Put(_ context.Context, id string, from io.Reader) error {
	data, err := io.ReadAll(from)
	r.files[id] = data
	return err
}

func (r *shared) Has(_ context.Context, id string) (bool, error) { return r.files[id] != nil, r.err }

func TestRemote(t *testing.T) {
	remote := &shared{files: make(map[string][]byte)}
	a, _ := openStore(t, t.TempDir(), Options{Remote: remote})
	k, want := key("p"), sections("code")
	e, _, err := a.Do(t.Context(), k, builder(want))
	require.NoError(t, err)
	require.NoError(t, e.Close())
	require.Contains(t, remote.files, k.ID())

	b, notes := openStore(t, t.TempDir(), Options{Remote: remote})
	e, o, err := b.Do(t.Context(), k, unbuildable(t))
	require.NoError(t, err)
	require.True(t, o.Hit)
	equalEntry(t, k, want, e)
	require.FileExists(t, b.Path(k))
	_, err = b.Get(t.Context(), key("none"))
	require.ErrorIs(t, err, ErrMiss)
	require.Empty(t, notes.text())

	// What a remote gives is not believed; a remote that fails is a warning.
	for name, c := range map[string]struct {
		data []byte
		err  error
		want string
	}{
		"cut":     {data: remote.files[k.ID()][:100], want: "damaged: it has 100 bytes"},
		"changed": {data: append(bytes.Clone(remote.files[k.ID()]), 0), want: "damaged: it has"},
		"other":   {data: encoded(t, key("q"), want), want: "damaged: it is the entry " + key("q").ID()},
		"down":    {err: errors.New("connection refused"), want: "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			remote := &shared{files: map[string][]byte{k.ID(): c.data}, err: c.err}
			s, notes := openStore(t, t.TempDir(), Options{Remote: remote})
			e, o, err := s.Do(t.Context(), k, builder(want))
			require.NoError(t, err)
			require.Equal(t, Outcome{}, o)
			equalEntry(t, k, want, e)
			require.Contains(t, notes.text(), "warning: remote cache: program "+k.ID()[:12]+": "+c.want)
		})
	}
}
