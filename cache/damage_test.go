package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/internal/mmap"
)

// random are n bytes that depend on seed alone.
func random(seed uint64, n int) []byte {
	var s [32]byte
	s[0], s[1] = byte(seed), byte(seed>>8)
	out := make([]byte, n)
	rand.NewChaCha8(s).Read(out)
	return out
}

func encoded(t testing.TB, k Key, sections []Section) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, writeEntry(&b, k, sections))
	return b.Bytes()
}

// Sections with and without padding after them, and an empty one.
func paddedSections() []Section {
	return []Section{{"a", random(1, 5000)}, {"b", random(2, 64)}, {"c", nil}, {"d", random(3, 1)}, {"e", random(4, 700)}}
}

// An entry that was cut or changed is moved away, with one warning that names it, and built again.
func TestDamage(t *testing.T) {
	k := key("p", "cpu")
	want := paddedSections()
	whole := encoded(t, k, want)
	n := len(whole)
	flip := func(i int) []byte {
		b := bytes.Clone(whole)
		b[i] ^= 1
		return b
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"cut to 0":         {nil, "it has 0 bytes, wanted at least 64"},
		"cut to 1":         {whole[:1], "it has 1 bytes, wanted at least 64"},
		"cut to the half":  {whole[:n/2], fmt.Sprintf("it has %d bytes, wanted the %d of its header", n/2, n)},
		"cut by 1":         {whole[:n-1], fmt.Sprintf("it has %d bytes, wanted the %d of its header", n-1, n)},
		"longer by 1":      {append(bytes.Clone(whole), 0), fmt.Sprintf("it has %d bytes, wanted the %d of its header", n+1, n)},
		"zeros":            {make([]byte, n), `it begins with "\x00\x00\x00\x00\x00\x00\x00\x00", wanted "tpucache"`},
		"another version":  {flip(8), "it has version 0, wanted 1"},
		"a changed header": {flip(40), "its header or manifest was changed: the SHA-256 differs"},
		"a changed key":    {flip(headerSize + 10), "its header or manifest was changed: the SHA-256 differs"},
		"changed code":     {flip(n - 1), `section "e" was changed: SHA-256 is`},
		"changed padding":  {flip(n - 701), `before section "e": padding holds 0x01, wanted zeros`},
		"another entry":    {encoded(t, key("q", "cpu"), want), "it is the entry " + key("q", "cpu").ID()},
	} {
		t.Run(name, func(t *testing.T) {
			s, notes := openStore(t, t.TempDir(), Options{})
			require.NoError(t, s.Put(t.Context(), k, want))
			path := s.Path(k)
			require.NoError(t, os.WriteFile(path, c.data, 0o644))
			_, err := s.Get(t.Context(), k)
			require.ErrorIs(t, err, ErrMiss)
			var d *Damaged
			require.ErrorAs(t, err, &d)
			require.Equal(t, path, d.Path)
			require.ErrorContains(t, d.Reason, c.want)
			require.Equal(t, "warning: "+d.Error(), notes.text())
			require.NoFileExists(t, path)
			kept, err := os.ReadFile(d.Quarantine)
			require.NoError(t, err)
			require.Equal(t, len(c.data), len(kept))

			// Damage again, now below Do; the quarantine holds both.
			require.NoError(t, os.WriteFile(path, c.data, 0o644))
			built := 0
			e, o, err := s.Do(t.Context(), k, func(context.Context) ([]Section, error) { built++; return want, nil })
			require.NoError(t, err)
			require.Equal(t, Outcome{}, o)
			equalEntry(t, k, want, e)
			require.Equal(t, 1, built)
			e, o, err = s.Do(t.Context(), k, unbuildable(t))
			require.NoError(t, err)
			require.True(t, o.Hit)
			require.Len(t, e.Sections(), len(want))
			require.NoError(t, e.Close())
			list, err := os.ReadDir(s.at(quarantineDir))
			require.NoError(t, err)
			require.Len(t, list, 2)
		})
	}
}

// Every byte of a small entry, and 5000 of a large one, are changed in turn, also where there is padding alone.
func TestEveryByte(t *testing.T) {
	k := key("p", "cpu")
	check := func(t *testing.T, want []Section, positions func(n int) []int) {
		path := filepath.Join(t.TempDir(), "entry")
		data := encoded(t, k, want)
		require.NoError(t, os.WriteFile(path, data, 0o644))
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		require.NoError(t, err)
		defer f.Close()
		r := rand.New(rand.NewPCG(1, 2))
		for _, i := range positions(len(data)) {
			changed := data[i] ^ byte(1<<r.IntN(8))
			_, err := f.WriteAt([]byte{changed}, int64(i))
			require.NoError(t, err)
			_, _, err = open(path, k.ID())
			var d *Damaged
			require.ErrorAs(t, err, &d, "byte %d: %#02x for %#02x", i, changed, data[i])
			_, err = f.WriteAt(data[i:i+1], int64(i))
			require.NoError(t, err)
		}
		e, _, err := open(path, k.ID())
		require.NoError(t, err)
		require.NoError(t, e.Close())
	}
	t.Run("small", func(t *testing.T) {
		check(t, paddedSections(), func(n int) (out []int) {
			for i := range n {
				out = append(out, i)
			}
			return out
		})
	})
	t.Run("large", func(t *testing.T) {
		check(t, []Section{{"a", random(1, 200_000)}, {"b", random(2, 300_001)}}, func(n int) (out []int) {
			r := rand.New(rand.NewPCG(3, 4))
			for range 5000 {
				out = append(out, r.IntN(n))
			}
			return out
		})
	})
}

// A file that is cut while its bytes are checked, as by a disk that fails, is an error and no crash.
func TestFault(t *testing.T) {
	path := filepath.Join(t.TempDir(), "entry")
	require.NoError(t, os.WriteFile(path, encoded(t, key("p"), []Section{{"a", random(1, 1_000_000)}}), 0o644))
	f, err := mmap.Open(path)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, os.Truncate(path, 100_000))
	_, _, err = read(f.Data)
	require.ErrorContains(t, err, "it cannot be read to its end: ")
}

// Another process has replaced a damaged entry meanwhile: the new one stays.
func TestQuarantineReplaced(t *testing.T) {
	s, _ := openStore(t, t.TempDir(), Options{})
	k, want := key("p"), sections("code")
	require.NoError(t, s.Put(t.Context(), k, nil))
	old, err := os.Stat(s.Path(k))
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), k, want))
	require.Empty(t, s.quarantine(s.Path(k), "x", old))
	e, err := s.Get(t.Context(), k)
	require.NoError(t, err)
	equalEntry(t, k, want, e)
	require.NoError(t, e.Close())
}

// The file of a lock is removed by its last holder before another has its lock: that lock would be nobody's.
func TestLockRemoved(t *testing.T) {
	s, notes := openStore(t, t.TempDir(), Options{})
	k := key("p")
	removed := false
	s.flock = func(f *os.File, exclusive bool) error {
		if filepath.Base(f.Name()) == k.ID() && !removed {
			removed = true
			require.NoError(t, os.Remove(f.Name()))
		}
		return flock(f, exclusive)
	}
	_, _, err := s.Do(t.Context(), k, func(context.Context) ([]Section, error) {
		require.True(t, s.busy(k.ID()))
		return nil, nil
	})
	require.NoError(t, err)
	require.True(t, removed)
	require.False(t, s.busy(k.ID()))
	require.Empty(t, notes.text())
}

// Things that are no files do no harm where an entry belongs.
func TestNoFile(t *testing.T) {
	s, notes := openStore(t, t.TempDir(), Options{})
	k, want := key("p"), sections("code")
	require.NoError(t, os.MkdirAll(filepath.Join(s.Path(k), "sub"), 0o755))
	_, err := s.Get(t.Context(), k)
	var d *Damaged
	require.ErrorAs(t, err, &d)
	require.Contains(t, notes.text(), "it is no regular file but d---------")
	e, _, err := s.Do(t.Context(), k, builder(want))
	require.NoError(t, err)
	equalEntry(t, k, want, e)

	// A file where the kind's folder belongs: nothing can be kept, nothing fails.
	other := Key{Kind: "other"}
	require.NoError(t, os.WriteFile(s.at("other"), nil, 0o644))
	e, o, err := s.Do(t.Context(), other, builder(want))
	require.NoError(t, err)
	equalEntry(t, other, want, e)
	var unkept *PutError
	require.ErrorAs(t, o.Kept, &unkept)
	require.Contains(t, notes.text(), "cache entry cannot be read")
	require.Contains(t, notes.text(), "cannot keep an entry")
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(path, nil, 0o644))
	_, err := Open(path, Options{})
	require.ErrorIs(t, err, ErrNotCache)
	require.ErrorContains(t, err, "file: a file, wanted a directory")
	_, err = Open(dir, Options{})
	require.ErrorIs(t, err, ErrNotCache)
	require.EqualError(t, err, dir+`: not a cache of tpuc: it holds "file" and no CACHEDIR.TAG; wanted a cache, or an empty or new directory`)

	// What a first writer leaves that was ended early is no reason to refuse.
	require.NoError(t, os.Rename(path, filepath.Join(dir, ".CACHEDIR.TAG.tmp-1")))
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), key("p"), nil))
	require.NoError(t, os.WriteFile(path, nil, 0o644)) // somebody else's, in what is a cache now
	_, err = Open(dir, Options{})
	require.NoError(t, err)
}

func TestReadOnlyOption(t *testing.T) {
	dir := t.TempDir()
	s, _ := openStore(t, dir, Options{})
	k, bad, want := key("p"), key("bad"), sections("code")
	require.NoError(t, s.Put(t.Context(), k, want))
	require.NoError(t, s.Put(t.Context(), bad, want))
	require.NoError(t, os.Truncate(s.Path(bad), 100))
	r, notes := openStore(t, dir, Options{ReadOnly: true})
	e, _, err := r.Do(t.Context(), k, unbuildable(t))
	require.NoError(t, err)
	equalEntry(t, k, want, e)
	for _, k := range []Key{key("new"), bad} {
		e, o, err := r.Do(t.Context(), k, builder(want))
		require.NoError(t, err)
		equalEntry(t, k, want, e)
		require.ErrorIs(t, o.Kept, ErrReadOnly)
	}
	require.FileExists(t, s.Path(bad))
	require.NoDirExists(t, s.at(lockDir))
	require.Len(t, notes.lines, 1, "the damage; that nothing is kept was asked for: %s", notes.text())
	_, err = r.Verify(t.Context(), true)
	require.ErrorIs(t, err, ErrReadOnly)
	_, err = r.Prune(t.Context(), Limits{All: true})
	require.ErrorIs(t, err, ErrReadOnly)
	_, err = r.Import(t.Context(), bytes.NewReader(nil))
	require.ErrorIs(t, err, ErrReadOnly)
}

// Without working locks builds go on, with one warning.
func TestNoLocks(t *testing.T) {
	s, notes := openStore(t, t.TempDir(), Options{})
	s.flock = func(*os.File, bool) error { return errors.New("no locks available") }
	for _, k := range []Key{key("p"), key("q")} {
		e, o, err := s.Do(t.Context(), k, builder(sections("code")))
		require.NoError(t, err)
		require.Equal(t, Outcome{}, o)
		equalEntry(t, k, sections("code"), e)
		_, o, err = s.Do(t.Context(), k, unbuildable(t))
		require.NoError(t, err)
		require.True(t, o.Hit)
	}
	require.Equal(t, "warning: cache "+s.Dir()+" has no working locks, several processes may compile the same: no locks available", notes.text())
	require.NoError(t, os.WriteFile(s.at(tmpDir, "x"), nil, 0o644))
	p, err := s.Prune(t.Context(), Limits{})
	require.NoError(t, err)
	require.Zero(t, p.Leftovers, "whose file it is cannot be known")
}

// A disk that fails when the bytes have to reach it keeps nothing, and nothing is left of it.
func TestSyncFails(t *testing.T) {
	s, notes := openStore(t, t.TempDir(), Options{})
	k, want := key("p"), sections("code")
	s.sync = func(*os.File) error { return errors.New("input/output error") }
	e, o, err := s.Do(t.Context(), k, builder(want))
	require.NoError(t, err)
	equalEntry(t, k, want, e)
	require.ErrorContains(t, o.Kept, "cannot keep an entry: input/output error")
	require.Equal(t, "warning: "+o.Kept.Error(), notes.text())
	require.NoFileExists(t, s.Path(k))
	left, err := os.ReadDir(s.at(tmpDir))
	require.NoError(t, err)
	require.Empty(t, left)
}

// An entry that its reader has no use for goes the way of damaged ones, unless it was replaced since it was read.
func TestReject(t *testing.T) {
	s, _ := openStore(t, t.TempDir(), Options{})
	k := key("rejected")
	require.NoError(t, s.Put(t.Context(), k, wantedSections))
	old, err := s.Get(t.Context(), k)
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), k, wantedSections))
	s.Reject(old, errors.New("nothing in it"))
	require.NoError(t, old.Close())
	e, err := s.Get(t.Context(), k)
	require.NoError(t, err, "another one took its place")
	s, notes := openStore(t, s.Dir(), Options{})
	s.Reject(e, errors.New("nothing in it"))
	require.NoError(t, e.Close())
	require.Contains(t, notes.text(), "is damaged: nothing in it; moved to "+filepath.Join(s.Dir(), layout, quarantineDir))
	_, err = s.Get(t.Context(), k)
	require.ErrorIs(t, err, ErrMiss)
}
