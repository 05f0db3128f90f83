package weights

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path"
	"strings"
	"sync"

	"tpuc/internal/mmap"
	"tpuc/ir/tensor"
)

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zipMagic  = []byte("PK\x03\x04")
)

const (
	// maxInflated bounds what a gzipped archive may grow to on disk.
	maxInflated = 64 << 30
	// maxEntry bounds one compressed member, which has to be held in memory.
	maxEntry = 1 << 30
)

// Archive is a torch.export archive (.pt2) of torch 2.9 or later, mapped. The layout is torch/export/pt2_archive: everything under one root
// folder, models/<name>.json, and raw tensor storages under data/weights and data/constants with a JSON index each.
type Archive struct {
	label   string
	file    *mmap.File
	root    string
	model   string
	entries map[string]*zip.File // by name below the root
	names   []string             // below the root, in central directory order
	tensors []Stored
	index   map[string]int // FQN to its place in tensors; data/weights comes before data/constants

	digests sync.Map // view to hex string
}

// OpenArchive maps the archive at name, which may be gzipped, and reads its indexes of tensors. Archives of other kinds and of older torch
// are refused by name. Tensors that cannot be loaded are listed with their reason in Stored.Err; they fail when they are used.
func OpenArchive(name string) (*Archive, error) {
	m, err := mmap.Open(name)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(m.Data, gzipMagic) {
		zipped := m
		m, err = inflate(zipped.Data)
		zipped.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	a, err := readArchive(name, m)
	if err != nil {
		m.Close()
		return nil, err
	}
	return a, nil
}

// readArchive takes ownership of m when it succeeds.
func readArchive(label string, m *mmap.File) (*Archive, error) {
	a := &Archive{label: label, file: m, entries: make(map[string]*zip.File), index: make(map[string]int)}
	if err := a.readDirectory(); err != nil {
		return nil, fmt.Errorf("%s: %w", label, err)
	}
	if err := a.checkKind(); err != nil {
		return nil, fmt.Errorf("%s: %w", label, err)
	}
	for _, section := range []string{"weights", "constants"} {
		if err := a.readIndex(section); err != nil {
			return nil, fmt.Errorf("%s: %w", label, err)
		}
	}
	return a, nil
}

// Label is the path that the archive was opened by.
func (a *Archive) Label() string { return a.label }

// Root is the folder that all entries are in: the name of the file that torch wrote, which may have been renamed since.
func (a *Archive) Root() string { return a.root }

// Model is the model's name, whose graph is the entry models/<name>.json; "model" unless the exporter chose another.
func (a *Archive) Model() string { return a.model }

// EntryNames are the names of all entries below the root, in the archive's order.
func (a *Archive) EntryNames() []string { return a.names }

// HasEntry reports whether there is an entry of that name below the root.
func (a *Archive) HasEntry(name string) bool { return a.entries[name] != nil }

// Identity is the hex SHA-256 of the names, sizes and CRC-32 of all entries below data: another checkpoint has another one, and no
// storage is read for it. It does not resist forgery.
func (a *Archive) Identity() string {
	h := sha256.New()
	for _, name := range a.names {
		if strings.HasPrefix(name, "data/") {
			f := a.entries[name]
			fmt.Fprintf(h, "%q %d %08x\n", name, f.UncompressedSize64, f.CRC32)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Entry is the contents of an entry by its name below the root, checked against its CRC-32. A stored entry aliases the mapping, a
// compressed one is inflated, up to 1 GiB. Tensor storages are better read with Load, which does not read them whole.
func (a *Archive) Entry(name string) ([]byte, error) {
	f := a.entries[name]
	if f == nil {
		return nil, fmt.Errorf("%s: no entry %q", a.label, name)
	}
	if f.Method == zip.Store {
		data, err := a.stored(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.label, err)
		}
		if sum := crc32.ChecksumIEEE(data); sum != f.CRC32 {
			return nil, fmt.Errorf("%s: entry %q is damaged: CRC-32 is %08x, wanted %08x", a.label, name, sum, f.CRC32)
		}
		return data, nil
	}
	if f.UncompressedSize64 > maxEntry {
		return nil, fmt.Errorf("%s: entry %q inflates to %d bytes, wanted at most %d", a.label, name, f.UncompressedSize64, int64(maxEntry))
	}
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("%s: entry %q: %w", a.label, name, err)
	}
	defer r.Close()
	// The size in the directory is not trusted for an allocation; the reader below stops at it and checks the CRC.
	data, err := io.ReadAll(io.LimitReader(r, maxEntry+1))
	if err != nil {
		return nil, fmt.Errorf("%s: entry %q: %w", a.label, name, err)
	}
	return data, nil
}

// Close unmaps the archive. Tensors and entries that alias it must not be used afterwards.
func (a *Archive) Close() error { return a.file.Close() }

// Names are the tensors' fully qualified names: data/weights first, then those of data/constants that are not there too.
func (a *Archive) Names() []string {
	var out []string
	for i, t := range a.tensors {
		if a.index[t.Name] == i {
			out = append(out, t.Name)
		}
	}
	return out
}

// Type implements Source. A tensor whose bytes are not in the archive has its type all the same.
func (a *Archive) Type(name string) (tensor.Type, error) {
	s, err := a.Find(name)
	if err != nil {
		return tensor.Type{}, err
	}
	return s.Type, s.Err
}

// stored is the bytes of a stored entry, after checking them against the file's size.
func (a *Archive) stored(f *zip.File) ([]byte, error) {
	if f.Method != zip.Store {
		return nil, fmt.Errorf("entry %q is compressed (method %d), wanted stored; zip the archive again without compression", f.Name, f.Method)
	}
	off, err := f.DataOffset()
	if err != nil {
		return nil, fmt.Errorf("entry %q: %w", f.Name, err)
	}
	size, total := f.UncompressedSize64, uint64(len(a.file.Data))
	if f.CompressedSize64 != size || off < 0 || uint64(off) > total || size > total-uint64(off) {
		return nil, fmt.Errorf("entry %q is at byte %d with %d bytes, wanted within the file's %d", f.Name, off, size, total)
	}
	return a.file.Data[off : uint64(off)+size : uint64(off)+size], nil
}

// readDirectory reads the zip's central directory. Sizes are taken from there only: torch writes local headers without them.
func (a *Archive) readDirectory() error {
	z, err := zip.NewReader(bytes.NewReader(a.file.Data), int64(len(a.file.Data)))
	if err != nil {
		return fmt.Errorf("%w: wanted a torch.export archive (.pt2), made by torch.export.save", err)
	}
	if len(z.File) == 0 {
		return fmt.Errorf("zip file without entries: wanted a torch.export archive (.pt2)")
	}
	root, _, nested := strings.Cut(z.File[0].Name, "/")
	for _, f := range z.File {
		name := f.Name
		if nested {
			var ok bool
			if name, ok = strings.CutPrefix(f.Name, root+"/"); !ok {
				return fmt.Errorf("entry %q is outside of the folder %q of the first entry", f.Name, root)
			}
		}
		if strings.HasSuffix(name, "/") || name == "" {
			continue // a folder
		}
		if a.entries[name] != nil {
			return fmt.Errorf("entry %q is there twice", f.Name)
		}
		a.entries[name] = f
		a.names = append(a.names, name)
	}
	if nested {
		a.root = root
	}
	return nil
}

// checkKind finds the one model, or says what the file is instead and what to do.
func (a *Archive) checkKind() error {
	var models, inductor, pickled []string
	for _, n := range a.names {
		switch dir, base := path.Split(n); {
		case dir == "models/" && strings.HasSuffix(base, ".json"):
			models = append(models, strings.TrimSuffix(base, ".json"))
		case strings.HasPrefix(n, "data/aotinductor/"):
			inductor = append(inductor, n)
		case (dir == "data/weights/" || dir == "data/constants/") && strings.HasSuffix(base, ".pt"):
			pickled = append(pickled, n)
		}
	}
	const again = "export and save the model again with torch 2.9 or later"
	switch {
	case a.HasEntry("serialized_exported_program.json"):
		return fmt.Errorf("archive in the layout of torch 2.7 and older, with pickled weights, wanted that of torch 2.9 or later: %s", again)
	case len(inductor) > 0 && len(models) == 0:
		return fmt.Errorf("AOTInductor package: it holds compiled code (%s) and no exported program: save the model with torch.export.save", inductor[0])
	case len(pickled) > 0 && len(models) > 0:
		return fmt.Errorf("archive of torch 2.8, with pickled weights (%s), wanted that of torch 2.9 or later: %s", pickled[0], again)
	case len(models) == 0 && a.HasEntry("data.pkl"):
		return fmt.Errorf("torch.save or TorchScript file, wanted a torch.export archive: save the model with torch.export.save")
	case len(models) == 0:
		return fmt.Errorf("zip file without models/<name>.json, wanted a torch.export archive (.pt2), made by torch.export.save")
	case len(models) > 1:
		return fmt.Errorf("archive of %d models (%s), wanted one: save each to a file of its own", len(models), strings.Join(models, ", "))
	}
	a.model = models[0]
	for _, want := range []struct{ name, text string }{{"archive_format", "pt2"}, {"archive_version", "0"}, {"byteorder", "little"}} {
		if !a.HasEntry(want.name) {
			continue
		}
		got, err := a.Entry(want.name)
		if err != nil {
			return err
		}
		if string(bytes.TrimSpace(got)) != want.text {
			return fmt.Errorf("entry %s is %.40q, wanted %q: %s", want.name, got, want.text, again)
		}
	}
	return nil
}

// inflate unpacks gzip data into a file that has no name, and maps that.
func inflate(data []byte) (*mmap.File, error) {
	f, err := os.CreateTemp("", "tpuc-*.pt2")
	if err != nil {
		return nil, err
	}
	// Where an open file cannot be removed, the mapping is a copy and the second attempt succeeds.
	os.Remove(f.Name())
	defer os.Remove(f.Name())
	defer f.Close()
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	n, err := io.Copy(f, io.LimitReader(r, maxInflated+1))
	if err != nil {
		return nil, fmt.Errorf("gzip: after %d bytes: %w", n, err)
	}
	if n > maxInflated {
		return nil, fmt.Errorf("gzip: inflates to more than %d bytes: gunzip it yourself", int64(maxInflated))
	}
	return mmap.Map(f)
}
