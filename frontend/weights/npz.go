package weights

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"tpuc/internal/mmap"
	"tpuc/internal/zipend"
	"tpuc/ir/diag"
	"tpuc/ir/tensor"
)

const (
	// maxMember bounds one array of an npz file, which is held in memory.
	maxMember = 16 << 30
	// freeMember is the size up to which an array may be any number of times as large as its compressed bytes: savez_compressed
	// makes a thousandth of an array of zeros.
	freeMember = 256 << 20
)

// NPZ is an npz file, read into memory: a zip of .npy arrays, as numpy.savez and savez_compressed write it.
type NPZ struct {
	label  string
	names  []string
	arrays map[string]*tensor.Tensor
}

// OpenNPZ reads all arrays of the file. Arrays that cannot be read are reported together, in a diag.List.
func OpenNPZ(path string) (*NPZ, error) {
	m, err := mmap.Open(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	return readNPZ(path, m.Data)
}

// readNPZ reads a file's bytes, which it does not keep.
func readNPZ(path string, data []byte) (*NPZ, error) {
	if n := zipend.DirectorySize(data); n > zipend.MaxDirectory {
		return nil, fmt.Errorf("%s: a zip directory of %d bytes, wanted at most %d", path, n, zipend.MaxDirectory)
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w: wanted an npz file", path, err)
	}
	n := &NPZ{label: path, arrays: make(map[string]*tensor.Tensor)}
	var errs diag.List
	for _, f := range z.File {
		name, ok := strings.CutSuffix(f.Name, ".npy")
		if !ok {
			errs.Addf(nil, "npz/member", "%s: member %q is no .npy array", path, f.Name)
			continue
		}
		if n.arrays[name] != nil {
			errs.Addf(nil, "npz/twice", "%s: array %q is there twice", path, name)
			continue
		}
		t, err := readMember(f)
		if err != nil {
			errs.Addf(nil, "npz/array", "%s: array %q: %v", path, name, err)
			continue
		}
		n.names = append(n.names, name)
		n.arrays[name] = t
	}
	if len(errs) > 0 {
		return nil, errs.Err()
	}
	return n, nil
}

// Label is the path that the file was opened by.
func (n *NPZ) Label() string { return n.label }

// Names are the arrays in the file's order, without ".npy".
func (n *NPZ) Names() []string { return n.names }

// Type implements Source.
func (n *NPZ) Type(name string) (tensor.Type, error) {
	t, err := n.Load(name)
	if err != nil {
		return tensor.Type{}, err
	}
	return t.Type, nil
}

// Load implements Source. The tensor does not alias the file.
func (n *NPZ) Load(name string) (*tensor.Tensor, error) {
	t := n.arrays[name]
	if t == nil {
		return nil, noTensor(n.label, name)
	}
	return t, nil
}

// Close implements Source; there is nothing to release.
func (n *NPZ) Close() error { return nil }

// readMember inflates one array. The reader of archive/zip checks sizes and the CRC-32 against the directory. Memory grows with the bytes
// that really come, not with a size that the file claims.
func readMember(f *zip.File) (*tensor.Tensor, error) {
	if f.UncompressedSize64 > maxMember {
		return nil, fmt.Errorf("%d bytes, wanted at most %d", f.UncompressedSize64, int64(maxMember))
	}
	if n := f.UncompressedSize64; n > freeMember && n/maxRatio > f.CompressedSize64 {
		return nil, fmt.Errorf("it inflates from %d to %d bytes, wanted at most %d times as many: save it without compression", f.CompressedSize64, n, maxRatio)
	}
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, int64(f.UncompressedSize64)+1))
	if err != nil {
		return nil, err
	}
	if uint64(len(data)) != f.UncompressedSize64 {
		return nil, errors.New("the array is cut short")
	}
	return ParseNPY(data)
}
