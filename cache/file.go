package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"tpuc/internal/jsonerr"
)

// An entry's file is a header of 64 bytes, the manifest as JSON, and the sections, each at a multiple of 64 bytes after zeros. The header is
//
//	0   "tpucache"
//	8   version, 4 bytes, little endian
//	12  zero, 4 bytes
//	16  size of the manifest, 8 bytes
//	24  size of the file, 8 bytes
//	32  SHA-256 of the manifest
//
// A file that read accepts is byte for byte what writeEntry writes, so no changed byte goes unnoticed.
const (
	magic       = "tpucache"
	version     = 1
	headerSize  = 64
	align       = 64
	maxManifest = 16 << 20
)

// Section is a named part of an entry's contents. Names are unique in an entry and not empty.
type Section struct {
	Name string
	Data []byte
}

// manifest describes an entry.
type manifest struct {
	Key
	Sections []sectionInfo `json:"sections"`
}

type sectionInfo struct {
	Name   string `json:"name"`
	Offset int64  `json:"offset"` // from the end of the manifest and its padding
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// aligned is the next multiple of align.
func aligned(n int64) int64 { return (n + align - 1) / align * align }

// lay gives the sections their places and returns the size of all.
func (m *manifest) lay() (size int64) {
	for i := range m.Sections {
		s := &m.Sections[i]
		s.Offset = aligned(size)
		size = s.Offset + s.Size
	}
	return size
}

// check says what is wrong with a manifest, places and sizes aside.
func (m *manifest) check() error {
	if err := m.Key.Check(); err != nil {
		return err
	}
	seen := make(map[string]bool, len(m.Sections))
	for i, s := range m.Sections {
		if s.Name == "" || seen[s.Name] {
			return fmt.Errorf("section %d has name %.40q, wanted one of its own", i, s.Name)
		}
		seen[s.Name] = true
	}
	return nil
}

func (m *manifest) encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(m)
	return b.Bytes(), err
}

// describe makes the manifest of an entry.
func describe(k Key, sections []Section) (*manifest, error) {
	m := &manifest{Key: Key{Kind: k.Kind, Parts: append([]Part{}, k.Parts...)}, Sections: []sectionInfo{}}
	for _, s := range sections {
		m.Sections = append(m.Sections, sectionInfo{Name: s.Name, Size: int64(len(s.Data)), SHA256: digest(s.Data)})
	}
	return m, m.check()
}

// writeEntry writes an entry's file.
func writeEntry(w io.Writer, k Key, sections []Section) error {
	m, err := describe(k, sections)
	if err != nil {
		return err
	}
	body := m.lay()
	text, err := m.encode()
	if err != nil {
		return err
	}
	if len(text) > maxManifest {
		return fmt.Errorf("manifest of %d bytes, wanted at most %d: long values belong in sections", len(text), maxManifest)
	}
	start := aligned(headerSize + int64(len(text)))
	head := append(header(text, start+body), text...)
	head = append(head, make([]byte, start-int64(len(head)))...)
	if _, err := w.Write(head); err != nil {
		return err
	}
	var at int64
	for i, s := range sections {
		if _, err := w.Write(make([]byte, m.Sections[i].Offset-at)); err != nil {
			return err
		}
		if _, err := w.Write(s.Data); err != nil {
			return err
		}
		at = m.Sections[i].Offset + m.Sections[i].Size
	}
	return nil
}

func header(manifest []byte, size int64) []byte {
	h := make([]byte, 0, headerSize)
	h = append(h, magic...)
	h = binary.LittleEndian.AppendUint32(h, version)
	h = binary.LittleEndian.AppendUint32(h, 0)
	h = binary.LittleEndian.AppendUint64(h, uint64(len(manifest)))
	h = binary.LittleEndian.AppendUint64(h, uint64(size))
	sum := sha256.Sum256(manifest)
	return append(h, sum[:]...)
}

// readManifest reads and checks header and manifest of a file of the size, and returns where the sections begin.
func readManifest(r io.Reader, size int64) (*manifest, int64, error) {
	var h [headerSize]byte
	if size < headerSize {
		return nil, 0, fmt.Errorf("it has %d bytes, wanted at least %d", size, headerSize)
	}
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return nil, 0, err
	}
	length := binary.LittleEndian.Uint64(h[16:])
	switch got := binary.LittleEndian.Uint32(h[8:]); {
	case string(h[:8]) != magic:
		return nil, 0, fmt.Errorf("it begins with %q, wanted %q", h[:8], magic)
	case got != version:
		return nil, 0, fmt.Errorf("it has version %d, wanted %d", got, version)
	case binary.LittleEndian.Uint64(h[24:]) != uint64(size):
		return nil, 0, fmt.Errorf("it has %d bytes, wanted the %d of its header", size, binary.LittleEndian.Uint64(h[24:]))
	case length > maxManifest || length > uint64(size-headerSize):
		return nil, 0, fmt.Errorf("its manifest has %d bytes, wanted at most %d", length, min(maxManifest, size-headerSize))
	}
	start := aligned(headerSize + int64(length))
	if start > size {
		return nil, 0, fmt.Errorf("it has %d bytes, wanted at least %d", size, start)
	}
	text := make([]byte, start-headerSize) // with its padding
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, 0, err
	}
	padding := text[length:]
	text = text[:length]
	if !bytes.Equal(h[:], header(text, size)) {
		return nil, 0, errors.New("its header or manifest was changed: the SHA-256 differs")
	}
	if err := zeros(padding); err != nil {
		return nil, 0, fmt.Errorf("after the manifest: %w", err)
	}
	m := new(manifest)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return nil, 0, fmt.Errorf("its manifest: %w", jsonerr.Describe(err))
	}
	if err := m.check(); err != nil {
		return nil, 0, fmt.Errorf("its manifest: %w", err)
	}
	return m, start, m.checkPlaces(text, size-start)
}

// checkPlaces checks that the sections fill the room exactly, and that text is the manifest as it is written.
func (m *manifest) checkPlaces(text []byte, room int64) error {
	left := room
	for _, s := range m.Sections {
		if s.Size < 0 || s.Size > left { // before sums can overflow
			return fmt.Errorf("section %.40q has %d bytes, wanted at most %d", s.Name, s.Size, left)
		}
		left -= s.Size
	}
	if size := m.lay(); size != room {
		return fmt.Errorf("its sections take %d bytes, wanted %d", size, room)
	}
	want, err := m.encode()
	if err == nil && !bytes.Equal(want, text) {
		err = errors.New("its manifest is not as tpuc writes it")
	}
	return err
}

// read checks every byte of an entry's file and returns its manifest and sections, which alias data.
func read(data []byte) (m *manifest, sections []Section, err error) {
	// data may be mapped: a bad block of the disk, or a file that was cut meanwhile, shows as a fault of memory.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			fault, ok := r.(interface {
				runtime.Error
				Addr() uintptr
			})
			if !ok {
				panic(r)
			}
			m, sections, err = nil, nil, fmt.Errorf("it cannot be read to its end: %w", fault)
		}
	}()
	m, start, err := readManifest(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, nil, err
	}
	body := data[start:]
	var at int64
	for _, s := range m.Sections {
		if err := zeros(body[at:s.Offset]); err != nil {
			return nil, nil, fmt.Errorf("before section %q: %w", s.Name, err)
		}
		at = s.Offset + s.Size
		section := Section{s.Name, body[s.Offset:at:at]}
		if got := digest(section.Data); got != s.SHA256 {
			return nil, nil, fmt.Errorf("section %q was changed: SHA-256 is %s, wanted %s", s.Name, got, s.SHA256)
		}
		sections = append(sections, section)
	}
	return m, sections, nil
}

func zeros(b []byte) error {
	for _, c := range b {
		if c != 0 {
			return fmt.Errorf("padding holds %#02x, wanted zeros", c)
		}
	}
	return nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
