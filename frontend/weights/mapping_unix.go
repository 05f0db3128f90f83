//go:build unix

package weights

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func mapBytes(f *os.File, size int) (*mapping, error) {
	data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("%s: mmap of %d bytes: %w", f.Name(), size, err)
	}
	return &mapping{data: data, unmap: unix.Munmap}, nil
}
