//go:build !unix

package mmap

import (
	"io"
	"os"
)

func mapFile(f *os.File, size int) (*File, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, err
	}
	return &File{Data: data}, nil
}
