// Package cache keeps results of compiles in files, by keys that name everything they depend on. It owns the files: whole or not there, checked
// before they are used, made by one process while others wait. It knows no program, plugin or model, and whatever happens to its
// files costs time and never gives wrong bytes: a caller can always build again.
package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"tpuc/internal/atomicfile"
	"tpuc/internal/mmap"
)

// layout is the folder of this version of the layout below a store's directory:
//
//	v1/<kind>/<first 2 digits of id>/<id>  an entry
//	v1/lock/<id>                           who builds an entry now
//	v1/tmp/                                files that are being written
//	v1/quarantine/                         files that were damaged or have no business here
const layout = "v1"

const (
	lockDir       = "lock"
	tmpDir        = "tmp"
	quarantineDir = "quarantine"
)

// ownDirs are no kinds.
var ownDirs = []string{lockDir, tmpDir, quarantineDir}

// tagName marks a directory as a cache, for this package and for programs that make backups (https://bford.info/cachedir).
const tagName = "CACHEDIR.TAG"

const tag = "Signature: 8a477f597d28d172789f06886806bc55\n# Compiled programs of tpuc. All of it can be removed at any time.\n"

// touchAfter is how old the time of last use may become before a read brings it up to date.
const touchAfter = time.Hour

var (
	// ErrMiss says that an entry is not there, or not usable: the error tells why.
	ErrMiss = errors.New("not in the cache")
	// ErrReadOnly says that a store was opened for reading only.
	ErrReadOnly = errors.New("the cache was opened for reading only")
	// ErrNotCache says that a directory holds other things than a cache.
	ErrNotCache = errors.New("not a cache of tpuc")
)

// PutError says why an entry could not be kept: a full disk, missing permissions. What was built is good all the same.
type PutError struct {
	Dir string // the store's
	Err error
}

// Error names the directory and the reason.
func (e *PutError) Error() string {
	return fmt.Sprintf("cache %s cannot keep an entry: %v", e.Dir, e.Err)
}

// Unwrap is the reason, such as syscall.ENOSPC.
func (e *PutError) Unwrap() error { return e.Err }

// Damaged says that an entry's file is not what was written.
type Damaged struct {
	Path       string
	Reason     error
	Quarantine string // where the file is now; empty if it could not be moved
}

// Error names the file, what is wrong and where the file went.
func (d *Damaged) Error() string {
	s := fmt.Sprintf("cache entry %s is damaged: %v", d.Path, d.Reason)
	if d.Quarantine != "" {
		s += "; moved to " + d.Quarantine
	}
	return s
}

// Unwrap is what is wrong.
func (d *Damaged) Unwrap() error { return d.Reason }

// Options are how a store behaves.
type Options struct {
	Notify   func(line string) // warnings and waiting, one line each without a newline; called from any goroutine; may be nil
	Remote   Remote            // asked for what is not here; may be nil
	ReadOnly bool              // change nothing: no entries, no times of use, no quarantine, no locks of its own
	MaxSize  int64             // bytes; after every Put the entries least recently used go until the rest fits; 0 is no limit
}

// Store is a directory of entries. Its methods may be called from several goroutines and processes at once.
type Store struct {
	dir   string // absolute
	o     Options
	flock func(f *os.File, exclusive bool) error // both are variables for tests
	sync  func(f *os.File) error

	mu   sync.Mutex
	said map[string]bool // warnings that are given once
}

// Open checks that dir can be a store, and changes nothing: a directory that does not exist is made by the first Put. A directory with other
// things in it is refused with ErrNotCache.
func Open(dir string, o Options) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		if st, e := os.Stat(dir); e == nil && !st.IsDir() {
			return nil, fmt.Errorf("%s: a file, wanted a directory: %w", dir, ErrNotCache)
		}
		return nil, err
	}
	if foreign := foreignNames(list); len(foreign) > 0 {
		return nil, fmt.Errorf("%s: %w: it holds %.60q and no %s; wanted a cache, or an empty or new directory", dir, ErrNotCache, foreign[0], tagName)
	}
	return &Store{dir: dir, o: o, flock: flock, sync: (*os.File).Sync, said: make(map[string]bool)}, nil
}

// foreignNames are the names of a directory without a tag that cannot be a cache's. A cache has a tag unless its first writer was ended early.
func foreignNames(list []os.DirEntry) (out []string) {
	for _, e := range list {
		name := e.Name()
		if name == tagName {
			return nil
		}
		if name != layout && name != "lost+found" && !strings.Contains(name, tagName) {
			out = append(out, name)
		}
	}
	return out
}

// Dir is the store's directory, absolute. It may not exist yet.
func (s *Store) Dir() string { return s.dir }

// Path is the file of the key's entry, whether or not it is there.
func (s *Store) Path(k Key) string { return s.file(k).path }

func (s *Store) file(k Key) file {
	id := k.ID()
	return file{k.Kind, id, s.path(k.Kind, id)}
}

func (s *Store) path(kind, id string) string { return s.at(kind, id[:2], id) }

func (s *Store) at(elem ...string) string {
	return filepath.Join(append([]string{s.dir, layout}, elem...)...)
}

// Get returns the key's entry, every byte of it checked. All errors but a bad key and the context's wrap ErrMiss: the caller builds.
// A damaged entry is a warning and a *Damaged in the error, and its file is moved out of the way. Reading needs no write permission.
func (s *Store) Get(ctx context.Context, k Key) (*Entry, error) {
	if err := k.Check(); err != nil {
		return nil, err
	}
	e, err := s.get(ctx, s.file(k))
	if err == nil || s.o.Remote == nil || !errors.Is(err, ErrMiss) {
		return e, err
	}
	if s.fetch(ctx, k) {
		return s.get(ctx, s.file(k))
	}
	return nil, err
}

// get reads an entry of the store.
func (s *Store) get(ctx context.Context, f file) (*Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e, st, err := open(f.path, f.id)
	var damaged *Damaged
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s %s: %w", f.kind, short(f.id), ErrMiss)
	case errors.As(err, &damaged):
		damaged.Quarantine = s.quarantine(f.path, f.kind+"-"+f.id, st)
		s.warn("damaged "+f.path, "%v", err)
		return nil, fmt.Errorf("%w: %w", ErrMiss, err)
	case err != nil:
		s.warn("unreadable "+f.path, "cache entry cannot be read: %v", err)
		return nil, fmt.Errorf("%w: %w", ErrMiss, err)
	}
	if now := time.Now(); !s.o.ReadOnly && now.Sub(st.ModTime()) > touchAfter {
		_ = os.Chtimes(f.path, now, now) // nothing but the order of pruning depends on it
	}
	return e, nil
}

// open maps and checks the entry at path. What is wrong with its contents is a *Damaged; the file's status comes with it.
func open(path, id string) (*Entry, fs.FileInfo, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, st, &Damaged{Path: path, Reason: fmt.Errorf("it is no regular file but %v", st.Mode().Type())}
	}
	f, err := mmap.Open(path)
	if err != nil {
		return nil, nil, err
	}
	m, sections, err := read(f.Data)
	if err == nil && m.ID() != id {
		err = fmt.Errorf("it is the entry %s", m.ID())
	}
	if err != nil {
		f.Close()
		return nil, st, &Damaged{Path: path, Reason: err}
	}
	return &Entry{key: m.Key, id: id, path: path, sections: sections, file: f, seen: st}, st, nil
}

// Reject treats an entry that was read, and lacks what its reader wants of it, like a damaged one: a warning with the reason, and its file is moved out
// of the way. The entry stays open.
func (s *Store) Reject(e *Entry, reason error) {
	if e.file == nil { // just built
		return
	}
	d := &Damaged{Path: e.path, Reason: reason}
	d.Quarantine = s.quarantine(e.path, e.key.Kind+"-"+e.id, e.seen)
	s.warn("damaged "+e.path, "%v", d)
}

// quarantine moves a file out of the way, unless it is no longer the one that was seen. It returns where it went, or "".
func (s *Store) quarantine(path, name string, seen fs.FileInfo) string {
	if s.o.ReadOnly || os.MkdirAll(s.at(quarantineDir), 0o777) != nil {
		return ""
	}
	now := time.Now()
	for i := range 100 {
		to := s.at(quarantineDir, name)
		if i > 0 {
			to = fmt.Sprintf("%s.%d", to, i)
		}
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		if st, err := os.Stat(path); err != nil || seen != nil && !os.SameFile(st, seen) {
			return "" // another process was faster
		}
		if os.Rename(path, to) != nil {
			return ""
		}
		_ = os.Chtimes(to, now, now) // its age counts from now
		return to
	}
	return ""
}

// Put keeps an entry: it is written beside its place, synced and renamed, so that readers see all of it or nothing. An entry that is there
// already is replaced. Where the entry cannot be kept the error is a *PutError, and the first time a warning. The context is for what follows:
// the remote, and MaxSize.
func (s *Store) Put(ctx context.Context, k Key, sections []Section) error {
	err := s.put(ctx, k, sections)
	var unkept *PutError
	if errors.As(err, &unkept) && !s.o.ReadOnly {
		s.warn("put", "%v", err)
	}
	return err
}

// Offer is Put of what is not worth a word where it cannot be kept, because it is made again in no time.
func (s *Store) Offer(ctx context.Context, k Key, sections []Section) { _ = s.put(ctx, k, sections) }

func (s *Store) put(ctx context.Context, k Key, sections []Section) error {
	if _, err := describe(k, sections); err != nil {
		return err
	}
	if s.o.ReadOnly {
		return &PutError{s.dir, ErrReadOnly}
	}
	if err := s.write(k, sections); err != nil {
		return &PutError{s.dir, err}
	}
	s.send(ctx, k)
	s.cap(ctx, k)
	return nil
}

func (s *Store) write(k Key, sections []Section) error {
	if err := s.mark(); err != nil {
		return err
	}
	t, err := s.create()
	if err != nil {
		return err
	}
	defer t.drop()
	if err := s.fill(t, func(w io.Writer) error { return writeEntry(w, k, sections) }); err != nil {
		return err
	}
	return s.rename(t, s.Path(k))
}

// mark makes the store's directory with its tag.
func (s *Store) mark() error {
	path := filepath.Join(s.dir, tagName)
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(s.dir, 0o777); err != nil {
		return err
	}
	return atomicfile.Write(path, func(w io.Writer) error {
		_, err := io.WriteString(w, tag)
		return err
	})
}

// notify tells the user a line.
func (s *Store) notify(format string, args ...any) {
	if s.o.Notify != nil {
		s.o.Notify(fmt.Sprintf(format, args...))
	}
}

// warn tells a warning once for every subject.
func (s *Store) warn(subject, format string, args ...any) {
	s.mu.Lock()
	again := s.said[subject]
	s.said[subject] = true
	s.mu.Unlock()
	if !again {
		s.notify("warning: "+format, args...)
	}
}

// short is how messages name an entry; Lookup takes it.
func short(id string) string { return id[:12] }

// Entry is an entry of which every byte was checked. It stays usable when its file is replaced or removed.
type Entry struct {
	key      Key
	id       string
	path     string
	sections []Section
	file     *mmap.File  // nil for one in memory
	seen     fs.FileInfo // of the file
}

// memory is the entry of what was just built.
func memory(k Key, sections []Section) *Entry {
	return &Entry{key: k, id: k.ID(), sections: slices.Clone(sections)}
}

// Key is the key as it was put.
func (e *Entry) Key() Key { return e.key }

// ID is the key's ID.
func (e *Entry) ID() string { return e.id }

// Path is the file that the entry was read from; empty for one that was just built.
func (e *Entry) Path() string { return e.path }

// Size is the bytes of all sections.
func (e *Entry) Size() (n int64) {
	for _, s := range e.sections {
		n += int64(len(s.Data))
	}
	return n
}

// Sections are all sections, as they were put. Their data may be mapped: it is valid until Close and must not be written to.
func (e *Entry) Sections() []Section { return slices.Clone(e.sections) }

// Section is the bytes of a section, valid until Close and never to be written to. They begin at a multiple of 64 bytes when they were read from a file.
func (e *Entry) Section(name string) ([]byte, error) {
	for _, s := range e.sections {
		if s.Name == name {
			return s.Data, nil
		}
	}
	return nil, fmt.Errorf("cache entry %s %s has no section %q", e.key.Kind, short(e.id), name)
}

// Close unmaps the file. A second Close does nothing.
func (e *Entry) Close() error {
	e.sections = nil
	if e.file == nil {
		return nil
	}
	return e.file.Close()
}
