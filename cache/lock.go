package cache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

var errLocked = errors.New("another process holds the lock")

const (
	patience = 200 * time.Millisecond // how long a wait goes without a word
	maxPoll  = 50 * time.Millisecond
	maxGone  = 1000 // files that are not at their path any more, in a row: more than that is a file system that cannot tell
)

// holder is what a lock's file says of who holds it. It is for messages alone: the kernel knows who holds a lock.
type holder struct {
	PID   int    `json:"pid"`
	Host  string `json:"host"`
	Since string `json:"since"` // RFC 3339
}

// HeldError says that another process still builds an entry when the time to wait for it is over.
type HeldError struct {
	Kind, ID string // of the entry
	Holder   string // such as "process 123 (since 12:30:00)"
	Wait     time.Duration
}

// Error names who builds what, and how long was waited.
func (e *HeldError) Error() string {
	return fmt.Sprintf("%s still compiles %s %s, after a wait of %v", e.Holder, e.Kind, short(e.ID), e.Wait)
}

// lock is the right to build an entry. A nil lock is the right to build it beside others.
type lock struct{ f *os.File }

// lock waits until nobody else builds the entry, and takes its lock where it can. No lock is worth failing for: entries are replaced whole,
// so that two builds at once only cost time. The error is the context's, or a *HeldError where wait, if not 0, is over.
func (s *Store) lock(ctx context.Context, k Key, wait time.Duration) (l *lock, waited bool, err error) {
	path := s.at(lockDir, k.ID())
	var told *holder
	begin, pause, gone := time.Now(), time.Millisecond, 0
	for {
		f, own := s.openLock(path)
		if f == nil {
			return nil, waited, nil
		}
		err := s.flock(f, own)
		switch {
		case err == nil && !isAt(f, path) && gone < maxGone:
			f.Close() // its holder is done and has removed it
			gone++
			continue
		case err == nil && own:
			sign(f)
			return &lock{f}, waited, nil
		case err == nil: // a lock that may only be read can be waited for, and is not held
			f.Close()
			return nil, waited, nil
		case !errors.Is(err, errLocked):
			f.Close()
			s.warn("flock", "cache %s has no working locks, several processes may compile the same: %v", s.dir, err)
			return nil, waited, nil
		}
		waited = true
		if wait > 0 && time.Since(begin) > wait {
			h := readHolder(f)
			f.Close()
			return nil, waited, &HeldError{k.Kind, k.ID(), h.String(), wait}
		}
		if time.Since(begin) > patience {
			if h := readHolder(f); told == nil || *told != h {
				told = &h
				s.notify("waiting for %s, which compiles %s %s", h, k.Kind, short(k.ID()))
			}
		}
		f.Close()
		select {
		case <-ctx.Done():
			return nil, waited, ctx.Err()
		case <-time.After(pause):
		}
		pause = min(2*pause, maxPoll)
		if wait > 0 {
			pause = min(pause, max(wait-time.Since(begin), time.Millisecond))
		}
	}
}

// openLock opens a lock's file: to hold the lock, or where the file cannot be written, to wait for it alone. It returns nil where there is neither.
func (s *Store) openLock(path string) (f *os.File, own bool) {
	var err error
	if !s.o.ReadOnly && os.MkdirAll(s.at(lockDir), 0o777) == nil {
		if f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666); err == nil {
			return f, true
		}
	}
	f, second := os.Open(path)
	if second == nil {
		return f, false
	}
	if !errors.Is(second, fs.ErrNotExist) {
		s.warn("lock", "cache lock %s cannot be used, several processes may compile the same: %v", path, second)
	}
	return nil, false
}

// sign writes into a lock's file who holds it.
func sign(f *os.File) {
	h := holder{PID: os.Getpid(), Since: time.Now().Format(time.RFC3339)}
	h.Host, _ = os.Hostname()
	if text, err := json.Marshal(h); err == nil && f.Truncate(0) == nil {
		_, _ = f.WriteAt(text, 0)
	}
}

// readHolder reads what sign wrote; the zero holder if that is not there, or not there yet.
func readHolder(f *os.File) (h holder) {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<10))
	if err != nil || json.Unmarshal(text, &h) != nil {
		return holder{}
	}
	return h
}

// String is such as "process 123 (since 12:30:00)".
func (h holder) String() string {
	since, err := time.Parse(time.RFC3339, h.Since)
	if h.PID == 0 || err != nil {
		return "another process"
	}
	where := ""
	if host, _ := os.Hostname(); h.Host != host {
		where = fmt.Sprintf(" on %.60q", h.Host)
	}
	return fmt.Sprintf("process %d%s (since %s)", h.PID, where, since.Local().Format(time.TimeOnly))
}

// release gives the lock back. The file goes first, while nobody else can hold it.
func (l *lock) release() {
	if l != nil {
		os.Remove(l.f.Name())
		l.f.Close()
	}
}
