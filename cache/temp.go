package cache

import (
	"bufio"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// temp is a file that is being written. Its writer holds the kernel's lock on it, so that what dead writers left can be told from it.
type temp struct {
	*os.File
	renamed bool
}

// create makes a temporary file, locked where that is possible.
func (s *Store) create() (*temp, error) {
	dir := s.at(tmpDir)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	for gone := 0; ; {
		f, err := os.OpenFile(filepath.Join(dir, rand.Text()), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		// Without locks nobody sweeps either. With them a sweep may have come first: then the file is gone, or about to be.
		if err := s.flock(f, true); (errors.Is(err, errLocked) || err == nil && !isAt(f, f.Name())) && gone < maxGone {
			os.Remove(f.Name())
			f.Close()
			gone++
			continue
		}
		return &temp{File: f}, nil
	}
}

// fill writes the file and brings it to the disk.
func (s *Store) fill(t *temp, write func(io.Writer) error) error {
	b := bufio.NewWriterSize(t, 1<<20)
	if err := write(b); err != nil {
		return err
	}
	if err := b.Flush(); err != nil {
		return err
	}
	return s.sync(t.File)
}

// rename gives the file its place.
func (s *Store) rename(t *temp, path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	if err := os.Rename(t.Name(), path); err != nil {
		return err
	}
	t.renamed = true
	if d, err := os.Open(dir); err == nil { // makes the rename durable where directories can be synced
		_ = s.sync(d)
		d.Close()
	}
	return nil
}

// drop closes the file, and removes it unless it has its place.
func (t *temp) drop() {
	if !t.renamed {
		os.Remove(t.Name())
	}
	t.Close()
}

// isAt reports whether path still is the open file.
func isAt(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}
