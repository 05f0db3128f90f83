package artifact

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"slices"

	"tpuc/internal/atomicfile"
	"tpuc/ir/tensor"
)

// Contents are the bytes of an artifact.
type Contents struct {
	Programs []ProgramContents // of the manifest's programs
	// Constants, State and Weights give the elements of the manifest's lists of these names, by index, each when it is written. A nil tensor
	// leaves the elements out: they are by reference, in the checkpoint, as Weight.Expr says. A nil function gives none.
	Constants, State, Weights func(i int) (*tensor.Tensor, error)
	// Graph is what other programs of the model are compiled from; empty: none. It may leave out constants that the artifact holds
	// (Artifact.Constant).
	Graph    []byte
	Examples []ExampleContents
}

// ExampleContents are the bytes of an example: safetensors files.
type ExampleContents struct {
	Inputs  []byte
	Outputs []byte // what is expected; empty: nothing
}

// ProgramContents are the bytes of one program.
type ProgramContents struct {
	Program    []byte // StableHLO text
	Executable []byte // what the plugin serialized
}

// Write writes an artifact. It fills the fields of m that follow from the contents (Format, Examples, Section, Offset and the SHA256 of programs and
// constants) in a copy and checks that. The file appears under its name only when it is complete and synced. Equal manifests and contents give equal
// bytes; there is no clock and no path in them.
func Write(path string, m Manifest, c Contents) error {
	m, blobs, err := layOut(m, c)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	manifest, err := encode(m)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	sections := []section{{ManifestSection, raw(manifest)}}
	for i, p := range c.Programs {
		sections = append(sections, section{ProgramSection(i), raw(p.Program)}, section{ExecutableSection(i), raw(p.Executable)})
	}
	var sizes []File
	for _, b := range blobs {
		if b.size > 0 || b.name == ConstantsSection {
			sections = append(sections, section{b.name, b.write})
			sizes = append(sizes, File{Name: b.name, Size: b.size, SHA256: digest(nil)})
		}
	}
	if err := m.check(sizes); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if len(c.Graph) > 0 {
		sections = append(sections, section{GraphSection, raw(c.Graph)})
	}
	for i, e := range m.Examples {
		sections = append(sections, section{e.Inputs, raw(c.Examples[i].Inputs)})
		if e.Outputs != "" {
			sections = append(sections, section{e.Outputs, raw(c.Examples[i].Outputs)})
		}
	}
	return atomicfile.Write(path, func(w io.Writer) error { return writeZip(w, sections) })
}

// layOut decides where embedded tensors lie. Constants are read here for their digest, weights only for being there.
func layOut(m Manifest, c Contents) (Manifest, []*blob, error) {
	if len(c.Programs) != len(m.Programs) {
		return m, nil, fmt.Errorf("contents of %d programs, wanted %d", len(c.Programs), len(m.Programs))
	}
	m.Format = Format
	m.Programs = slices.Clone(m.Programs)
	for i, p := range c.Programs {
		if len(p.Program) == 0 || len(p.Executable) == 0 {
			return m, nil, fmt.Errorf("program %d of %d bytes and executable of %d bytes, wanted both", i, len(p.Program), len(p.Executable))
		}
		q := &m.Programs[i]
		q.SHA256 = digest(p.Program)
		// Lists are written as [] and never as null.
		q.Inputs, q.Outputs, q.Args = list(q.Inputs), list(q.Outputs), list(q.Args)
		q.Results, q.Aliases = list(q.Results), list(q.Aliases)
	}
	constants, weights := &blob{name: ConstantsSection}, &blob{name: WeightsSection}
	place := func(all []Weight, kind string, get func(int) (*tensor.Tensor, error)) ([]Weight, error) {
		out := list(all)
		for i := range out {
			w := &out[i]
			w.Section, w.Offset = "", 0
			if get == nil {
				continue
			}
			t, err := get(i)
			if err != nil {
				return nil, fmt.Errorf("%s %q: %w", kind, w.Name, err)
			}
			if t == nil {
				continue
			}
			if want, err := w.Tensor(); err != nil || !t.Equal(want) {
				return nil, fmt.Errorf("%s %q has contents of type %s, wanted %s", kind, w.Name, t.Type, w.Type)
			}
			b := weights
			if w.Class == "constant" {
				b = constants
				w.SHA256 = digest(t.Data)
			}
			w.Section, w.Offset = b.name, b.add(w.SHA256, t, func() (*tensor.Tensor, error) { return get(i) })
		}
		return out, nil
	}
	var err error
	if m.Constants, err = place(m.Constants, KindConstant, c.Constants); err != nil {
		return m, nil, err
	}
	if m.State, err = place(m.State, KindState, c.State); err != nil {
		return m, nil, err
	}
	m.Weights, err = place(m.Weights, KindWeight, c.Weights)
	m.Inputs, m.Outputs = list(m.Inputs), list(m.Outputs)
	m.Examples = nil
	for i, x := range c.Examples {
		var e Example
		if e.Inputs, e.Outputs = exampleSections(i); len(x.Outputs) == 0 {
			e.Outputs = ""
		}
		m.Examples = append(m.Examples, e)
	}
	return m, []*blob{constants, weights}, err
}

// list is a copy of l that is not nil.
func list[T any](l []T) []T { return append([]T{}, l...) }

// blob is a section of tensors at multiples of 64 bytes. Constants of equal contents lie there once.
type blob struct {
	name   string
	size   int64
	parts  []part
	places map[string]int64 // by digest and size
}

type part struct {
	offset, size int64
	load         func() (*tensor.Tensor, error)
}

// add makes room for a tensor and returns its offset. sha may be empty.
func (b *blob) add(sha string, t *tensor.Tensor, load func() (*tensor.Tensor, error)) int64 {
	if at, ok := b.places[sha]; ok && sha != "" {
		return at
	}
	at := (b.size + align - 1) / align * align
	if b.places == nil {
		b.places = make(map[string]int64)
	}
	b.places[sha] = at
	b.parts = append(b.parts, part{at, int64(len(t.Data)), load})
	b.size = at + int64(len(t.Data))
	return at
}

func (b *blob) write(w io.Writer) error {
	at := int64(0)
	for _, p := range b.parts {
		if _, err := w.Write(make([]byte, p.offset-at)); err != nil {
			return err
		}
		t, err := p.load()
		if err != nil {
			return err
		}
		if t == nil || int64(len(t.Data)) != p.size {
			return fmt.Errorf("%s: a tensor changed while it was written", b.name)
		}
		if _, err := w.Write(t.Data); err != nil {
			return err
		}
		at = p.offset + p.size
	}
	return nil
}

// section is an entry of the zip.
type section struct {
	name  string
	write func(io.Writer) error
}

func raw(data []byte) func(io.Writer) error {
	return func(w io.Writer) error { _, err := w.Write(data); return err }
}

// writeZip writes the sections and, last, their directory.
func writeZip(w io.Writer, sections []section) error {
	z := &zipWriter{zip: zip.NewWriter(w)}
	var files []File
	for _, s := range sections {
		sum, size, err := z.add(s.name, s.write)
		if err != nil {
			return err
		}
		files = append(files, File{Name: s.name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))})
	}
	data, err := encode(files)
	if err != nil {
		return err
	}
	if _, _, err := z.add(DirectorySection, raw(data)); err != nil {
		return err
	}
	return z.zip.Close()
}

// zipWriter adds stored entries whose data begins at a multiple of 64 bytes. It counts the bytes of the zip as archive/zip writes them.
type zipWriter struct {
	zip *zip.Writer
	at  int64
}

const (
	localHeader  = 30     // bytes before the name
	descriptor   = 16     // bytes after the data: signature, CRC-32 and sizes
	descriptor64 = 24     // the same for 4 GiB and more
	padID        = 0x4246 // "FB", the extra field that torch pads its archives with
	dosEpoch     = 0x21   // 1980-01-01, the first date that a zip can have
)

func (z *zipWriter) add(name string, write func(io.Writer) error) (hash.Hash, int64, error) {
	// The field takes at least its own header of four bytes.
	begin := z.at + localHeader + int64(len(name)) + 4
	pad := (align - begin%align) % align
	extra := make([]byte, 4+pad)
	extra[0], extra[1], extra[2] = padID&0xff, padID>>8, byte(pad)
	h := &zip.FileHeader{Name: name, Method: zip.Store, Extra: extra}
	//lint:ignore SA1019 Modified would add a field of its own before the data
	h.ModifiedDate = dosEpoch
	f, err := z.zip.CreateHeader(h)
	if err != nil {
		return nil, 0, err
	}
	sum := sha256.New()
	n := &counter{w: io.MultiWriter(f, sum)}
	if err := write(n); err != nil {
		return nil, 0, err
	}
	z.at = begin + pad + n.n + descriptor
	if n.n >= 1<<32-1 {
		z.at += descriptor64 - descriptor
	}
	return sum, n.n, nil
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// encode is the one JSON form of v: fields in order, indented, a final newline.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
