//go:build !unix

package weights

import (
	"io"
	"os"
)

func mapBytes(f *os.File, size int) (*mapping, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, err
	}
	return &mapping{data: data}, nil
}
