package weights

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"sync"

	"tpuc/internal/mmap"
	"tpuc/ir/diag"
	"tpuc/ir/tensor"
)

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zipMagic  = []byte("PK\x03\x04")
)

const (
	// maxInflated bounds what a gzipped archive may grow to on disk.
	maxInflated = 64 << 30
	// freeInflated is the size up to which it may be any number of times as large as its compressed bytes.
	freeInflated = 1 << 30
)

// saveAgain is what to do with archives that cannot be read.
const saveAgain = "export and save the model again with torch 2.9 or later"

// Archive is a torch.export archive (.pt2), mapped. There are three layouts:
//
//	torch 2.9 on   torch/export/pt2_archive: everything under one root folder, models/<name>.json, and raw tensor storages under
//	               data/weights and data/constants with a JSON index each
//	torch 2.8      the same folders with data/weights/<name>.pt and data/constants/<name>.pt, files of torch.save
//	before 2.8     serialized_exported_program.json, serialized_state_dict.pt and serialized_constants.pt in no folder
type Archive struct {
	label    string
	file     *mmap.File
	dir      *directory
	model    string
	graph    string // entry of the graph
	tensors  []Stored
	index    map[string]int      // FQN to its place in tensors; data/weights comes before data/constants
	storages map[string]*storage // of the tensors that can be loaded, by Stored.Storage

	digests sync.Map // view to hex string
	reduced *reduced // of a reduced archive, otherwise nil
}

// OpenArchive maps the archive at name, which may be gzipped, and reads its indexes of tensors. Archives of other kinds
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

// ReadArchive is OpenArchive for an archive in memory, which is kept and must not change. label names it in messages.
func ReadArchive(label string, data []byte) (*Archive, error) {
	return readArchive(label, &mmap.File{Data: data})
}

// readArchive takes ownership of m when it succeeds.
func readArchive(label string, m *mmap.File) (*Archive, error) {
	a := &Archive{label: label, file: m, index: make(map[string]int), storages: make(map[string]*storage)}
	err := a.read()
	var located *diag.Error
	switch {
	case errors.As(err, &located): // names the file itself
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%s: %w", label, err)
	}
	return a, nil
}

func (a *Archive) read() (err error) {
	if a.dir, err = readDirectory(a.file.Data, "a torch.export archive (.pt2), made by torch.export.save"); err != nil {
		return err
	}
	if err := a.checkKind(); err != nil {
		return err
	}
	if a.graph == flatGraph {
		if err := a.readPickled("weights", flatWeights); err != nil {
			return err
		}
		return a.readPickled("constants", "serialized_constants.pt")
	}
	for _, section := range []string{"weights", "constants"} {
		if err := a.readIndex(section); err != nil {
			return err
		}
		if err := a.readPickled(section, "data/"+section+"/"+a.model+".pt"); err != nil {
			return err
		}
	}
	return nil
}

// Label is the path that the archive was opened by.
func (a *Archive) Label() string { return a.label }

// Root is the folder that all entries are in: the name of the file that torch wrote, which may have been renamed since.
// It is empty for archives of torch before 2.8.
func (a *Archive) Root() string { return a.dir.root }

// Model is the model's name; "model" unless the exporter chose another.
func (a *Archive) Model() string { return a.model }

// Graph is the entry that holds the model's graph, as JSON.
func (a *Archive) Graph() string { return a.graph }

// EntryNames are the names of all entries below the root, in the archive's order.
func (a *Archive) EntryNames() []string { return a.dir.names }

// HasEntry reports whether there is an entry of that name below the root.
func (a *Archive) HasEntry(name string) bool { return a.dir.entries[name] != nil }

// Identity is the hex SHA-256 of the names, sizes and CRC-32 of all entries that hold tensors: another checkpoint has another one, and
// no storage is read for it. It does not resist forgery.
func (a *Archive) Identity() string {
	if a.reduced != nil {
		return a.reduced.identity
	}
	h := sha256.New()
	for _, name := range a.dir.names {
		if strings.HasPrefix(name, "data/") || a.graph == flatGraph && strings.HasSuffix(name, ".pt") {
			f := a.dir.entries[name]
			fmt.Fprintf(h, "%q %d %08x\n", name, f.UncompressedSize64, f.CRC32)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Entry is the contents of an entry by its name below the root, checked against its CRC-32. A stored entry aliases the mapping, a
// compressed one is inflated, up to 1 GiB. Tensor storages are better read with Load, which does not read them whole.
func (a *Archive) Entry(name string) ([]byte, error) {
	data, err := a.dir.contents(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.label, err)
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

// flatGraph is the graph's entry in archives of torch before 2.8.
const flatGraph = "serialized_exported_program.json"

// flatWeights is the entry of the weights there.
const flatWeights = "serialized_state_dict.pt"

// checkKind finds the one model, or says what the file is instead and what to do.
func (a *Archive) checkKind() error {
	var models, inductor []string
	for _, n := range a.dir.names {
		switch dir, base := path.Split(n); {
		case dir == "models/" && strings.HasSuffix(base, ".json"):
			models = append(models, strings.TrimSuffix(base, ".json"))
		case strings.HasPrefix(n, "data/aotinductor/"):
			inductor = append(inductor, n)
		}
	}
	switch {
	case a.dir.root == "" && a.HasEntry(flatGraph):
		a.model, a.graph = "model", flatGraph
		return nil
	case len(inductor) > 0 && len(models) == 0:
		return fmt.Errorf("AOTInductor package: it holds compiled code (%s) and no exported program: save a model with torch.export.save, tensors with safetensors.torch.save_file", inductor[0])
	case len(models) == 0 && a.HasEntry("data.pkl"):
		return fmt.Errorf("torch.save or TorchScript file, wanted a torch.export archive: save the model with torch.export.save")
	case len(models) == 0:
		return fmt.Errorf("zip file without models/<name>.json, wanted a torch.export archive (.pt2), made by torch.export.save")
	case len(models) > 1:
		return fmt.Errorf("archive of %d models (%s), wanted one: save each to a file of its own", len(models), strings.Join(models, ", "))
	}
	a.model = models[0]
	a.graph = "models/" + a.model + ".json"
	for _, want := range []struct{ name, text string }{{"archive_format", "pt2"}, {"archive_version", "0"}, {"byteorder", "little"}} {
		if err := a.checkText(want.name, want.text); err != nil {
			return err
		}
	}
	return nil
}

// checkText demands that an entry, where there is one, is the text want, blanks aside.
func (a *Archive) checkText(name, want string) error {
	if !a.HasEntry(name) {
		return nil
	}
	got, err := a.Entry(name)
	if err != nil {
		return err
	}
	if string(bytes.TrimSpace(got)) != want {
		return fmt.Errorf("entry %s is %.40q, wanted %q: %s", name, got, want, saveAgain)
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
	limit := max(freeInflated, min(maxInflated, int64(len(data))*maxRatio))
	n, err := io.Copy(f, io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("gzip: after %d bytes: %w", n, err)
	}
	if n > limit {
		return nil, fmt.Errorf("gzip: %d bytes inflate to more than %d: gunzip it yourself", len(data), limit)
	}
	return mmap.Map(f)
}
