package weights

import (
	"fmt"
	"os"
	"sync"
)

// mapping is a whole file in memory, read-only.
type mapping struct {
	data  []byte
	unmap func([]byte) error // nil when data is plain memory
	once  sync.Once
}

// mapFile maps the file at path, or reads it where the system has no mappings.
func mapFile(path string) (*mapping, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // a mapping outlives its descriptor
	return mapOpen(f)
}

// mapOpen maps f from its start; f may be closed afterwards.
func mapOpen(f *os.File) (*mapping, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch size := st.Size(); {
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s: %s, wanted a regular file", f.Name(), st.Mode().Type())
	case size == 0:
		return &mapping{}, nil
	case int64(int(size)) != size:
		return nil, fmt.Errorf("%s: %d bytes are more than this machine can address", f.Name(), size)
	default:
		return mapBytes(f, int(size))
	}
}

// close unmaps; slices of data must not be used afterwards.
func (m *mapping) close() error {
	var err error
	m.once.Do(func() {
		if m.unmap != nil {
			err = m.unmap(m.data)
		}
		m.data = nil
	})
	return err
}
