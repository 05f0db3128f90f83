// Package atomicfile writes files that appear under their name whole or not at all. It knows no format.
package atomicfile

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Write calls write with a buffered temporary file beside path, syncs it and renames it to path. After an error or a crash path is what
// it was before. The file gets mode 0666 less the umask, like one made by os.Create. A pipe or device at path is written to and stays.
func Write(path string, write func(io.Writer) error) error {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() && !st.IsDir() {
		return writeThrough(path, write)
	}
	f, err := create(path)
	if err != nil {
		return err
	}
	renamed := false
	defer func() { // also when write panics
		if !renamed {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	b := bufio.NewWriterSize(f, 1<<20)
	if err := write(b); err != nil {
		return err
	}
	if err := b.Flush(); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	renamed = true
	syncDir(filepath.Dir(path))
	return nil
}

// writeThrough writes to what is no file, such as /dev/null: renaming would take its place.
func writeThrough(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close() // also when write panics
	b := bufio.NewWriterSize(f, 1<<20)
	if err := write(b); err != nil {
		return err
	}
	return errors.Join(b.Flush(), f.Close())
}

// create makes the temporary file. os.CreateTemp chooses a free name, but with a mode that only its owner may read.
func create(path string) (*os.File, error) {
	dir, base := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	for {
		t, err := os.CreateTemp(dir, "."+base+".tmp-*")
		if err != nil {
			return nil, err
		}
		name := t.Name()
		t.Close()
		if err := os.Remove(name); err != nil {
			return nil, err
		}
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, os.ErrExist) {
			continue // someone took the name in between
		}
		return f, err
	}
}

// syncDir makes the rename durable where directories can be synced; elsewhere there is nothing to do.
func syncDir(dir string) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	defer d.Close()
	_ = d.Sync()
}
