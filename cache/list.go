package cache

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// Info describes an entry without its sections.
type Info struct {
	Key    Key // of a damaged entry the kind alone
	ID     string
	Path   string
	Size   int64     // of the file
	Used   time.Time // the last use, or up to an hour before it
	Damage error     // what is wrong with the file's head; its sections are not looked at
}

// file is a file below a store's directory.
type file struct {
	kind, id string // both empty: it is no entry and has no business there
	path     string
}

// files are all files of entries and those that have no business among them, by kind and ID. What cannot be read is in the error, the rest is
// returned all the same. Names that begin with a dot are the system's and left out.
func (s *Store) files() ([]file, error) {
	var out []file
	var errs []error
	list := func(visit func(name, path string), elem ...string) {
		dir := s.at(elem...)
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), ".") {
				visit(e.Name(), s.at(append(elem, e.Name())...))
			}
		}
	}
	foreign := func(path string) { out = append(out, file{path: path}) }
	list(func(kind, path string) {
		if slices.Contains(ownDirs, kind) {
			return
		}
		if !isKind(kind) || !isDir(path) {
			foreign(path)
			return
		}
		list(func(fan, path string) {
			if len(fan) != 2 || !isHex(fan) || !isDir(path) {
				foreign(path)
				return
			}
			list(func(id, path string) {
				if !isID(id) || id[:2] != fan {
					foreign(path)
					return
				}
				out = append(out, file{kind, id, path})
			}, kind, fan)
		}, kind)
	})
	return out, errors.Join(errs...)
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

func isHex(s string) bool { return s != "" && strings.Trim(s, "0123456789abcdef") == "" }

func isID(s string) bool { return len(s) == 64 && isHex(s) }

// List describes all entries, by kind and ID. What cannot be read is in the error, the rest is returned all the same.
func (s *Store) List() ([]Info, error) {
	files, err := s.files()
	var out []Info
	for _, f := range files {
		if f.id == "" {
			continue
		}
		if i, ok := f.info(); ok {
			out = append(out, i)
		}
	}
	return out, err
}

// info reads the head of an entry's file; false if the file is gone.
func (f file) info() (Info, bool) {
	i := Info{Key: Key{Kind: f.kind}, ID: f.id, Path: f.path}
	st, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return i, false
	}
	if err == nil {
		i.Size, i.Used = st.Size(), st.ModTime()
		if !st.Mode().IsRegular() {
			err = fmt.Errorf("it is no regular file but %v", st.Mode().Type())
		}
	}
	var m *manifest
	if err == nil {
		m, err = readHead(f.path, i.Size)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return i, false
	case err != nil:
		i.Damage = err
	case m.ID() != f.id:
		i.Damage = fmt.Errorf("it is the entry %s", m.ID())
	default:
		i.Key = m.Key
	}
	return i, true
}

func readHead(path string, size int64) (*manifest, error) {
	r, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	m, _, err := readManifest(r, size)
	return m, err
}

// minPrefix is how much of an ID names an entry.
const minPrefix = 4

// Lookup finds the entry whose ID begins with prefix, of at least 4 hex digits. None is ErrMiss, several are an error that names them.
func (s *Store) Lookup(prefix string) (Info, error) {
	if len(prefix) < minPrefix || len(prefix) > 64 || !isHex(prefix) {
		return Info{}, fmt.Errorf("%.70q is no entry's ID, wanted its first %d to 64 hex digits", prefix, minPrefix)
	}
	files, err := s.files()
	files = slices.DeleteFunc(files, func(f file) bool { return !strings.HasPrefix(f.id, prefix) })
	if len(files) > 1 {
		var names []string
		for _, f := range files[:min(len(files), 8)] {
			names = append(names, f.kind+" "+f.id)
		}
		return Info{}, fmt.Errorf("%d entries begin with %s, wanted one: %s", len(files), prefix, strings.Join(names, ", "))
	}
	if len(files) == 1 {
		if i, ok := files[0].info(); ok {
			return i, nil
		}
	}
	return Info{}, errors.Join(fmt.Errorf("entry %s: %w", prefix, ErrMiss), err)
}

// Near is the entry, other than the key's own, that has most parts in common with the key: the one to compare with when the key is missing.
// Among equals it is the one used last. False if there is none of the key's kind.
func (s *Store) Near(k Key) (Info, bool) {
	list, _ := s.List()
	id := k.ID()
	common := func(i Info) (n int) {
		for _, p := range i.Key.Parts {
			if slices.Contains(k.Parts, p) {
				n++
			}
		}
		return n
	}
	list = slices.DeleteFunc(list, func(i Info) bool { return i.Key.Kind != k.Kind || i.ID == id || i.Damage != nil })
	if len(list) == 0 {
		return Info{}, false
	}
	return slices.MaxFunc(list, func(a, b Info) int {
		return cmp.Or(cmp.Compare(common(a), common(b)), a.Used.Compare(b.Used), cmp.Compare(a.ID, b.ID))
	}), true
}
