package cache

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"
)

// Limits say what Prune removes. The zero Limits remove nothing but leftovers.
type Limits struct {
	MaxSize   int64         // bytes: what was not used for longest goes until the rest fits; 0 is no limit
	OlderThan time.Duration // what was not used for longer goes; 0 is no limit
	All       bool          // everything goes
}

// Pruned is what Prune did. Sizes are bytes.
type Pruned struct {
	Removed     int
	RemovedSize int64
	Kept        int
	KeptSize    int64
	Leftovers   int // files of processes that ended early, removed
}

// victim is a file that Prune may remove.
type victim struct {
	path        string
	id          string // empty: in quarantine
	size        int64
	used        time.Time
	quarantined bool
}

// Prune removes entries and quarantined files beyond the limits, those in quarantine first, then those not used for longest. An entry that a
// process is about to build or to take is kept; one that is open stays usable. Files that have no business in the store are left to Verify.
// What cannot be removed is in the error.
func (s *Store) Prune(ctx context.Context, l Limits) (Pruned, error) { return s.prune(ctx, l, "") }

// prune is Prune, which keeps the entry spare.
func (s *Store) prune(ctx context.Context, l Limits, spare string) (Pruned, error) {
	var p Pruned
	if s.o.ReadOnly {
		return p, ErrReadOnly
	}
	list, err := s.victims()
	errs := []error{err}
	for _, v := range list {
		p.KeptSize += v.size
	}
	p.Kept = len(list)
	now := time.Now()
	for _, v := range list {
		if err := ctx.Err(); err != nil {
			return p, err
		}
		over := l.MaxSize > 0 && p.KeptSize > l.MaxSize
		old := l.OlderThan > 0 && now.Sub(v.used) > l.OlderThan
		if !(l.All || over || old) || v.id != "" && (v.id == spare || s.busy(v.id)) {
			continue
		}
		remove := os.Remove
		if v.quarantined { // it may be a folder that had no business here
			remove = os.RemoveAll
		}
		if err := remove(v.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
			continue
		}
		p.Removed++
		p.RemovedSize += v.size
		p.Kept--
		p.KeptSize -= v.size
	}
	p.Leftovers = s.sweep(true)
	return p, errors.Join(errs...)
}

// victims are all files that may go, the first to go first.
func (s *Store) victims() ([]victim, error) {
	files, err := s.files()
	var out []victim
	add := func(path, id string) {
		if st, err := os.Stat(path); err == nil && (id == "" || !st.IsDir()) {
			out = append(out, victim{path: path, id: id, size: st.Size(), used: st.ModTime(), quarantined: id == ""})
		}
	}
	for _, f := range files {
		if f.id != "" {
			add(f.path, f.id)
		}
	}
	list, _ := os.ReadDir(s.at(quarantineDir))
	for _, e := range list {
		add(s.at(quarantineDir, e.Name()), "")
	}
	slices.SortStableFunc(out, func(a, b victim) int {
		if a.quarantined != b.quarantined {
			if a.quarantined {
				return -1
			}
			return 1
		}
		return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.path, b.path))
	})
	return out, err
}

// busy reports whether a process holds the lock of an entry.
func (s *Store) busy(id string) bool {
	f, err := os.Open(s.at(lockDir, id))
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(s.flock(f, false), errLocked)
}

// cap keeps the store within its size after the key's entry was put.
func (s *Store) cap(ctx context.Context, k Key) {
	if s.o.MaxSize <= 0 {
		return
	}
	if _, err := s.prune(ctx, Limits{MaxSize: s.o.MaxSize}, k.ID()); err != nil && ctx.Err() == nil {
		s.warn("cap", "cache %s cannot be kept within %d bytes: %v", s.dir, s.o.MaxSize, err)
	}
}
