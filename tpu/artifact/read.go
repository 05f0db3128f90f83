package artifact

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"

	"tpuc/internal/jsonerr"
	"tpuc/internal/mmap"
	"tpuc/internal/zipend"
	"tpuc/ir/tensor"
	"tpuc/ir/weight"
)

// Artifact is an open artifact, mapped. Section and tensor bytes alias the file and are valid until Close. Methods may be called from several
// goroutines at once, Close excepted.
type Artifact struct {
	Manifest Manifest
	Sections []File // all but the directory itself, in the file's order
	path     string
	file     *mmap.File
	data     map[string][]byte
	verified map[string]func() error // what is checked before a section is given out

	constants func() map[string]Weight
}

// maxJSON bounds the manifest and the directory.
const maxJSON = 256 << 20

// ErrFormat says that a file is an artifact of a format version that this tpuc does not read.
var ErrFormat = errors.New("format version not supported")

// Open maps the artifact at path and checks it but for the digests of its sections: the container, the format version, sizes, and every
// reference inside the manifest.
func Open(path string) (*Artifact, error) {
	f, err := mmap.Open(path)
	if err != nil {
		return nil, err
	}
	a := &Artifact{path: path, file: f, data: make(map[string][]byte), verified: make(map[string]func() error)}
	a.constants = sync.OnceValue(a.Manifest.constants)
	if err := a.read(); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

// Path is what Open was given.
func (a *Artifact) Path() string { return a.path }

// Close unmaps the file.
func (a *Artifact) Close() error { return a.file.Close() }

// Section is the bytes of a section. Its SHA-256 is checked the first time that it is asked for, of WeightsSection its CRC-32.
func (a *Artifact) Section(name string) ([]byte, error) {
	verify := a.verified[name]
	if verify == nil {
		return nil, fmt.Errorf("%s: no section %s", a.path, name)
	}
	if err := verify(); err != nil {
		return nil, err
	}
	return a.data[name], nil
}

// Has reports a section.
func (a *Artifact) Has(section string) bool { return a.data[section] != nil }

// Constant is the tensor that belongs to the programs and has these elements, by their hex SHA-256, read as type t.
func (a *Artifact) Constant(sum string, t tensor.Type) (*tensor.Tensor, error) {
	w, ok := a.constants()[sum]
	if !ok {
		return nil, fmt.Errorf("%s: no constant with sha256 %s", a.path, sum)
	}
	x, err := a.Tensor(w)
	if err != nil {
		return nil, err
	}
	return tensor.New(t, x.Data)
}

// Tensor is the elements of an embedded tensor of one of the manifest's lists; its whole section is checked the first time. A tensor by reference
// is an error.
func (a *Artifact) Tensor(w Weight) (*tensor.Tensor, error) {
	if w.Section == "" {
		return nil, fmt.Errorf("%s: the elements of %q are not in the artifact, wanted from its checkpoint", a.path, w.Name)
	}
	t, err := w.Tensor()
	if err != nil {
		return nil, err
	}
	data, err := a.Section(w.Section)
	if err != nil {
		return nil, err
	}
	if w.Offset < 0 || w.Offset > int64(len(data)) || t.Bytes() > int64(len(data))-w.Offset {
		return nil, fmt.Errorf("%s: %q at byte %d of %s, wanted within its %d bytes", a.path, w.Name, w.Offset, w.Section, len(data))
	}
	end := w.Offset + t.Bytes()
	return tensor.New(t, data[w.Offset:end:end])
}

// Like is the elements of the embedded tensor that w, which is another artifact's of the same model, stands for. Another target may want them with the
// dimensions in another order than they lie here.
func (a *Artifact) Like(w Weight) (*tensor.Tensor, error) {
	for _, l := range a.Manifest.weightLists() {
		for _, v := range l.list {
			if v.Section == "" || !slices.Equal(v.Names, w.Names) {
				continue
			}
			if v.Same(w) {
				return a.Tensor(v)
			}
			if perm, ok := permutation(v, w); ok {
				return a.permuted(v, perm)
			}
		}
	}
	return nil, fmt.Errorf("%s: the elements of %q are not in the artifact", a.path, w.Name)
}

// permutation is what makes the elements of from into those of to, where they are the same tensor's in another order.
func permutation(from, to Weight) ([]int64, bool) {
	have, err := from.Source()
	if err != nil {
		return nil, false
	}
	want, err := to.Source()
	if err != nil {
		return nil, false
	}
	return weight.Between(have, want)
}

func (a *Artifact) permuted(w Weight, perm []int64) (*tensor.Tensor, error) {
	x, err := a.Tensor(w)
	if err != nil {
		return nil, err
	}
	e, err := weight.Permute(weight.Tensor{T: x.Type}, perm)
	if err != nil {
		return nil, err
	}
	return weight.Eval(e, x)
}

// Verify checks every byte of the file: the digests of all sections, and that everything between them is what Write writes.
func (a *Artifact) Verify() error {
	var sections []section
	for _, s := range a.Sections {
		if err := a.checkDigest(s); err != nil {
			return err
		}
		sections = append(sections, section{s.Name, raw(a.data[s.Name])})
	}
	c := &comparer{want: a.file.Data}
	err := writeZip(c, sections)
	if err == nil && c.at != len(c.want) {
		err = fmt.Errorf("it has %d bytes, wanted %d", len(c.want), c.at)
	}
	if err != nil {
		return fmt.Errorf("%s: the artifact is damaged: %w", a.path, err)
	}
	return nil
}

// comparer is a writer that fails at the first byte that differs from want.
type comparer struct {
	want []byte
	at   int
}

func (c *comparer) Write(p []byte) (int, error) {
	rest := c.want[c.at:]
	n := min(len(p), len(rest))
	if !bytes.Equal(p[:n], rest[:n]) {
		for i := range n {
			if p[i] != rest[i] {
				return i, fmt.Errorf("byte %d is %#02x, wanted %#02x", c.at+i, rest[i], p[i])
			}
		}
	}
	c.at += n
	if n < len(p) {
		return n, fmt.Errorf("it ends at byte %d, wanted more", len(c.want))
	}
	return n, nil
}

// read fills a from the mapped file.
func (a *Artifact) read() error {
	entries, err := a.entries()
	if err != nil {
		return err
	}
	// The version comes first: a later format may differ in everything else.
	manifest, err := a.json(entries, ManifestSection)
	if err != nil {
		return err
	}
	var head struct {
		Format *string `json:"format"`
		Tpuc   string  `json:"tpuc"`
	}
	if err := json.Unmarshal(manifest, &head); err != nil {
		return fmt.Errorf("%s: %w", ManifestSection, jsonerr.Describe(err))
	}
	if err := checkFormat(head.Format, head.Tpuc); err != nil {
		return err
	}
	if err := strict(manifest, &a.Manifest); err != nil {
		return fmt.Errorf("%s: %w", ManifestSection, err)
	}
	directory, err := a.json(entries, DirectorySection)
	if err != nil {
		return err
	}
	if err := strict(directory, &a.Sections); err != nil {
		return fmt.Errorf("%s: %w", DirectorySection, err)
	}
	if err := a.addSections(entries); err != nil {
		return err
	}
	return a.Manifest.check(a.Sections)
}

// checkFormat refuses a format version outside of the window, and says what to do.
func checkFormat(format *string, tpuc string) error {
	if format == nil {
		return fmt.Errorf("%s has no format version, wanted %q", ManifestSection, Format)
	}
	n, err := strconv.Atoi(*format)
	oldest, _ := strconv.Atoi(Oldest)
	newest, _ := strconv.Atoi(Format)
	window := strconv.Quote(Oldest)
	if oldest < newest {
		window += " to " + strconv.Quote(Format)
	}
	var advice string
	switch {
	case err == nil && n >= oldest && n <= newest && *format == strconv.Itoa(n):
		return nil
	case err == nil && n < oldest:
		advice = "it is older: compile the model again with this tpuc, or run it with that one"
	case err == nil && n > newest:
		advice = "it is newer: update tpuc, or compile the model with this one"
	default:
		advice = "this is no format of tpuc: compile the model again"
	}
	return fmt.Errorf("artifact of format version %.40q (written by tpuc %.40q), wanted %s: %s: %w", *format, tpuc, window, advice, ErrFormat)
}

// addSections compares the directory with the zip's own and prepares the check of every section.
func (a *Artifact) addSections(entries map[string]entry) error {
	if err := a.Manifest.checkSections(); err != nil {
		return err
	}
	order := a.Manifest.sectionOrder()
	at := 0
	for _, s := range a.Sections {
		for at < len(order) && order[at].name != s.Name && order[at].optional {
			at++
		}
		if at == len(order) {
			return fmt.Errorf("section %q, wanted the end after %s", s.Name, order[at-1].name)
		}
		if order[at].name != s.Name {
			return fmt.Errorf("section %q, wanted %s", s.Name, order[at].name)
		}
		at++
		entry, ok := entries[s.Name]
		if !ok {
			return fmt.Errorf("section %s is missing", s.Name)
		}
		if int64(len(entry.data)) != s.Size {
			return fmt.Errorf("section %s has %d bytes, wanted %d", s.Name, len(entry.data), s.Size)
		}
		if !isDigest(s.SHA256) {
			return fmt.Errorf("section %s has sha256 %q, wanted 64 hex digits", s.Name, s.SHA256)
		}
		a.data[s.Name] = entry.data
		a.verified[s.Name] = sync.OnceValue(func() error {
			if s.Name == WeightsSection {
				return a.checkSum(s.Name, entry.sum)
			}
			return a.checkDigest(s)
		})
	}
	for _, o := range order[at:] {
		if !o.optional {
			return fmt.Errorf("section %s is missing", o.name)
		}
	}
	if got := len(entries); got != len(a.Sections)+1 {
		return fmt.Errorf("%d entries, wanted %d sections and %s", got, len(a.Sections), DirectorySection)
	}
	// Both JSON sections have been read already; the others are checked when they are used.
	return a.verified[ManifestSection]()
}

func (a *Artifact) checkDigest(s File) error {
	if got := digest(a.data[s.Name]); got != s.SHA256 {
		return fmt.Errorf("%s: section %s is damaged: sha256 is %s, wanted %s: compile the model again", a.path, s.Name, got, s.SHA256)
	}
	return nil
}

// checkSum checks a section by its CRC-32, ten times as fast as its digest and certain of any damage within 32 bits: weights are large, and numbers alone.
func (a *Artifact) checkSum(name string, want uint32) error {
	if got := crc32.ChecksumIEEE(a.data[name]); got != want {
		return fmt.Errorf("%s: section %s is damaged: CRC-32 is %08x, wanted %08x: compile the model again", a.path, name, got, want)
	}
	return nil
}

// entry is one of the zip's.
type entry struct {
	data []byte
	sum  uint32 // CRC-32
}

// entries are the zip's entries by name: stored, aligned and within the file.
func (a *Artifact) entries() (map[string]entry, error) {
	file := a.file.Data
	if n := zipend.DirectorySize(file); n > zipend.MaxDirectory {
		return nil, fmt.Errorf("zip: a directory of %d bytes, wanted at most %d", n, zipend.MaxDirectory)
	}
	z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, fmt.Errorf("%w: wanted a .tpuc artifact, whole", err)
	}
	if len(z.File) == 0 || z.File[0].Name != ManifestSection {
		if isHead(file) { // the directory that was found is of a section that is a zip file too
			return nil, errors.New("the artifact is damaged: it was cut, or its end was changed")
		}
		return nil, fmt.Errorf("zip file whose first entry is not %s, wanted a .tpuc artifact", ManifestSection)
	}
	out := make(map[string]entry)
	for _, f := range z.File {
		off, err := f.DataOffset()
		size, total := f.UncompressedSize64, uint64(len(file))
		switch {
		case err != nil:
			return nil, fmt.Errorf("section %q: %w", f.Name, err)
		case out[f.Name].data != nil:
			return nil, fmt.Errorf("section %q is there twice", f.Name)
		case f.Method != zip.Store || f.CompressedSize64 != size:
			return nil, fmt.Errorf("section %q is compressed, wanted stored", f.Name)
		case off < 0 || uint64(off) > total || size > total-uint64(off):
			return nil, fmt.Errorf("section %q is at byte %d with %d bytes, wanted within the file's %d", f.Name, off, size, total)
		case off%align != 0:
			return nil, fmt.Errorf("section %q begins at byte %d, wanted a multiple of %d", f.Name, off, align)
		}
		data := file[off : uint64(off)+size : uint64(off)+size]
		if f.Name == ManifestSection || f.Name == DirectorySection {
			if sum := crc32.ChecksumIEEE(data); sum != f.CRC32 {
				return nil, fmt.Errorf("%s is damaged: CRC-32 is %08x, wanted %08x", f.Name, sum, f.CRC32)
			}
		}
		out[f.Name] = entry{data, f.CRC32}
	}
	return out, nil
}

func (a *Artifact) json(entries map[string]entry, name string) ([]byte, error) {
	e, ok := entries[name]
	data := e.data
	if !ok {
		return nil, fmt.Errorf("%s is missing", name)
	}
	if len(data) > maxJSON {
		return nil, fmt.Errorf("%s has %d bytes, wanted at most %d", name, len(data), maxJSON)
	}
	return data, nil
}

// strict decodes JSON and refuses fields that this version does not know.
func strict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return jsonerr.Describe(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("JSON goes on after its value")
	}
	return nil
}

// IsArtifact reports whether the file at path looks like an artifact, by its first bytes.
func IsArtifact(path string) bool {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() { // opening a pipe would wait for a writer
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, headSize)
	_, err = io.ReadFull(f, head)
	return err == nil && isHead(head)
}

const headSize = localHeader + len(ManifestSection)

// isHead reports that a file begins as an artifact does.
func isHead(data []byte) bool {
	return len(data) >= headSize && bytes.HasPrefix(data, []byte("PK\x03\x04")) && string(data[localHeader:headSize]) == ManifestSection
}
