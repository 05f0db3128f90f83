package cache

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Finding is a file that is wrong.
type Finding struct {
	Path     string
	Problem  error
	Repaired string // what was done about it; empty if nothing was
}

// Verification is what Verify found.
type Verification struct {
	Entries     int   // that are good
	Size        int64 // of their files, bytes
	Findings    []Finding
	Leftovers   int // files of processes that ended early; harmless
	Quarantined int // files in quarantine, before this
}

// Verify reads every byte of every entry. With repair it moves damaged entries, and files that have no business among them, to quarantine, and
// removes what processes left that ended early; other entries are not touched. What cannot be read at all is in the error, beside what was found.
func (s *Store) Verify(ctx context.Context, repair bool) (*Verification, error) {
	if repair && s.o.ReadOnly {
		return nil, ErrReadOnly
	}
	v := &Verification{}
	list, err := os.ReadDir(s.at(quarantineDir))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	v.Quarantined = len(list)
	files, err2 := s.files()
	err = errors.Join(err, err2)
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return v, err
		}
		var problem error
		var st fs.FileInfo
		name := "foreign-" + filepath.Base(f.path)
		if f.id == "" {
			problem = errors.New("it is no entry of the cache")
		} else {
			var e *Entry
			name = f.kind + "-" + f.id
			e, st, problem = open(f.path, f.id)
			if problem == nil {
				v.Entries++
				v.Size += st.Size()
				e.Close()
				continue
			}
			if errors.Is(problem, fs.ErrNotExist) {
				continue // pruned meanwhile
			}
			var damaged *Damaged
			if errors.As(problem, &damaged) {
				problem = damaged.Reason
			} else {
				st = nil
			}
		}
		found := Finding{Path: f.path, Problem: problem}
		if repair {
			if to := s.quarantine(f.path, name, st); to != "" {
				found.Repaired = "moved to " + to
			}
		}
		v.Findings = append(v.Findings, found)
	}
	v.Leftovers = s.sweep(repair)
	return v, err
}

// sweep counts the files that processes left which ended early, and removes them if it is told to. A living process holds the lock of its files;
// where there are no locks nothing is known, and nothing is swept.
func (s *Store) sweep(remove bool) (n int) {
	for _, dir := range []string{tmpDir, lockDir} {
		list, _ := os.ReadDir(s.at(dir))
		for _, e := range list {
			if !e.Type().IsRegular() {
				continue
			}
			path := s.at(dir, e.Name())
			f, err := os.OpenFile(path, os.O_RDWR, 0) // some file systems lock for writers alone
			if errors.Is(err, fs.ErrPermission) {
				f, err = os.Open(path)
			}
			if err != nil {
				continue
			}
			if s.flock(f, true) == nil && isAt(f, path) {
				if !remove || os.Remove(path) == nil {
					n++
				}
			}
			f.Close()
		}
	}
	return n
}
