package weights

import (
	"archive/zip"
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"
	"strings"

	"tpuc/internal/zipend"
)

const (
	// maxEntry bounds one compressed member, which has to be held in memory.
	maxEntry = 1 << 30
	// maxRatio bounds how much larger than its compressed bytes a member may be, once it is larger than freeInflate. Torch compresses
	// nothing; JSON that a user zipped again comes to some 30.
	maxRatio    = 200
	freeInflate = 16 << 20
)

// directory is a zip file in memory whose entries are all under one folder, or all under none.
type directory struct {
	data    []byte
	root    string // the folder; empty for none
	entries map[string]*zip.File
	names   []string // below the root, in the order of the central directory
}

// readDirectory reads a zip's central directory. Sizes are taken from there only: torch writes local headers without them.
// what names the file that was wanted.
func readDirectory(data []byte, what string) (*directory, error) {
	if n := zipend.DirectorySize(data); n > zipend.MaxDirectory {
		return nil, fmt.Errorf("zip: a directory of %d bytes, wanted at most %d", n, zipend.MaxDirectory)
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("%w: wanted %s", err, what)
	}
	if len(z.File) == 0 {
		return nil, fmt.Errorf("zip file without entries: wanted %s", what)
	}
	d := &directory{data: data, entries: make(map[string]*zip.File)}
	root, _, nested := strings.Cut(z.File[0].Name, "/")
	for _, f := range z.File {
		if err := checkName(f); err != nil {
			return nil, err
		}
		name := f.Name
		if nested {
			var ok bool
			if name, ok = strings.CutPrefix(f.Name, root+"/"); !ok {
				return nil, fmt.Errorf("entry %q is outside of the folder %q of the first entry", f.Name, root)
			}
		}
		if strings.HasSuffix(name, "/") || name == "" {
			continue // a folder
		}
		if d.entries[name] != nil {
			return nil, fmt.Errorf("entry %q is there twice", f.Name)
		}
		d.entries[name] = f
		d.names = append(d.names, name)
	}
	if nested {
		d.root = root
	}
	return d, nil
}

// checkName refuses names that lead out of the archive and links: torch writes neither.
func checkName(f *zip.File) error {
	if strings.HasPrefix(f.Name, "/") || strings.Contains(f.Name, `\`) || slices.Contains(strings.Split(f.Name, "/"), "..") {
		return fmt.Errorf("entry %q leads out of the archive, wanted a name below its root", f.Name)
	}
	if f.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("entry %q is a symbolic link, wanted a file", f.Name)
	}
	return nil
}

// stored is the bytes of a stored entry, after checking them against the file's size.
func (d *directory) stored(f *zip.File) ([]byte, error) {
	if f.Method != zip.Store {
		return nil, fmt.Errorf("entry %q is compressed (method %d), wanted stored; zip the archive again without compression", f.Name, f.Method)
	}
	if f.Flags&1 != 0 {
		return nil, fmt.Errorf("entry %q is encrypted, wanted plain bytes", f.Name)
	}
	off, err := f.DataOffset()
	if err != nil {
		return nil, fmt.Errorf("entry %q: %w", f.Name, err)
	}
	size, total := f.UncompressedSize64, uint64(len(d.data))
	if f.CompressedSize64 != size || off < 0 || uint64(off) > total || size > total-uint64(off) {
		return nil, fmt.Errorf("entry %q is at byte %d with %d bytes, wanted within the file's %d", f.Name, off, size, total)
	}
	return d.data[off : uint64(off)+size : uint64(off)+size], nil
}

// contents is an entry by its name below the root, checked against its CRC-32. A stored entry aliases the file, a compressed one is
// inflated, up to 1 GiB.
func (d *directory) contents(name string) ([]byte, error) {
	f := d.entries[name]
	if f == nil {
		return nil, fmt.Errorf("no entry %q", name)
	}
	if f.Method == zip.Store {
		data, err := d.stored(f)
		if err != nil {
			return nil, err
		}
		return data, checkCRC(f, data)
	}
	if n := f.UncompressedSize64; n > maxEntry || n > freeInflate && n/maxRatio > f.CompressedSize64 {
		return nil, fmt.Errorf("entry %q inflates from %d to %d bytes, wanted at most %d bytes and %d times as many",
			name, f.CompressedSize64, n, int64(maxEntry), maxRatio)
	}
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("entry %q: %w", name, err)
	}
	defer r.Close()
	// The size in the directory is not trusted for an allocation; the reader below stops at it and checks the CRC.
	data, err := io.ReadAll(io.LimitReader(r, int64(f.UncompressedSize64)+1))
	if err != nil {
		return nil, fmt.Errorf("entry %q: %w", name, err)
	}
	return data, nil
}

// checkCRC compares a stored entry with the checksum in the central directory.
func checkCRC(f *zip.File, data []byte) error {
	if sum := crc32.ChecksumIEEE(data); sum != f.CRC32 {
		return fmt.Errorf("entry %q is damaged: CRC-32 is %08x, wanted %08x", f.Name, sum, f.CRC32)
	}
	return nil
}
