// Package mmap maps whole files read-only; where the system has no mappings it reads them. It knows no format.
//
// A file that another process truncates while it is mapped ends this process with a bus error; tpuc's own files are replaced by rename and never
// written in place.
package mmap

import (
	"bytes"
	"fmt"
	"os"
	"sync"
)

// File is a mapped file.
type File struct {
	Data  []byte // valid until Close; never written to
	unmap func([]byte) error
	once  sync.Once
}

// Open maps the file at path; anything but a regular file is refused. An empty file has no Data.
func Open(path string) (*File, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() { // opening a pipe would wait for a writer
		return nil, fmt.Errorf("%s: a %s, wanted a regular file", path, kind(st.Mode()))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // a mapping outlives its descriptor
	return Map(f)
}

// Map maps f from its start; f may be closed afterwards. Anything but a regular file is refused.
func Map(f *os.File) (*File, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch size := st.Size(); {
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s: a %s, wanted a regular file", f.Name(), kind(st.Mode()))
	case size == 0:
		return &File{}, nil
	case int64(int(size)) != size:
		return nil, fmt.Errorf("%s: %d bytes are more than this machine can address", f.Name(), size)
	default:
		return mapFile(f, int(size))
	}
}

// ReadFile reads the file at path into memory of its own, at most limit bytes. What Open refuses is refused.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size := int64(len(f.Data)); size > limit {
		return nil, fmt.Errorf("%s: %d bytes, wanted at most %d", path, size, limit)
	}
	return bytes.Clone(f.Data), nil
}

// Close unmaps the file. Slices of Data must not be used afterwards. A second Close does nothing.
func (f *File) Close() error {
	var err error
	f.once.Do(func() {
		if f.unmap != nil {
			err = f.unmap(f.Data)
		}
		f.Data = nil
	})
	return err
}

func kind(m os.FileMode) string {
	if m.IsDir() {
		return "directory"
	}
	return "special file"
}
