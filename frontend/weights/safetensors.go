package weights

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tpuc/internal/mmap"
	"tpuc/ir/diag"
	"tpuc/ir/tensor"
)

// maxHeader is the format's own limit of the JSON header (safetensors README, "Format").
const maxHeader = 100_000_000

// Safetensors is a mapped safetensors file.
type Safetensors struct {
	label    string
	file     *mmap.File
	metadata map[string]string
	names    []string
	entries  map[string]span
}

// span is a tensor's place in the data part of the file. Its err says why it cannot be loaded.
type span struct {
	name       string
	typ        tensor.Type
	begin, end int64
	err        error
}

// safeDTypes are the format's element types. Those without a dtype are known, so their bytes can be checked, but tpuc has no type for them.
var safeDTypes = map[string]struct {
	dtype tensor.DType
	bits  int64
}{
	"BOOL": {tensor.Bool, 8}, "U8": {tensor.U8, 8}, "I8": {tensor.I8, 8}, "I16": {tensor.I16, 16}, "U16": {tensor.U16, 16},
	"I32": {tensor.I32, 32}, "U32": {tensor.U32, 32}, "I64": {tensor.I64, 64}, "U64": {tensor.U64, 64},
	"F16": {tensor.F16, 16}, "BF16": {tensor.BF16, 16}, "F32": {tensor.F32, 32}, "F64": {tensor.F64, 64},
	"F8_E4M3": {tensor.F8E4M3FN, 8}, "F8_E5M2": {tensor.F8E5M2, 8}, "C64": {tensor.C64, 64},
	"F8_E8M0": {0, 8}, "F8_E4M3FNUZ": {0, 8}, "F8_E5M2FNUZ": {0, 8}, "F4": {0, 4}, "F6_E2M3": {0, 6}, "F6_E3M2": {0, 6},
}

// OpenSafetensors maps the file and checks its whole header: sizes, names, dtypes, shapes, and that the tensors cover the data without gaps
// or overlaps. All faults are reported together, in a diag.List.
func OpenSafetensors(path string) (*Safetensors, error) {
	m, err := mmap.Open(path)
	if err != nil {
		return nil, err
	}
	s, err := readSafetensors(path, m)
	if err != nil {
		m.Close()
		return nil, err
	}
	return s, nil
}

// ReadSafetensors is OpenSafetensors for a file in memory, which is kept and must not change. label names it in messages.
func ReadSafetensors(label string, data []byte) (*Safetensors, error) {
	return readSafetensors(label, &mmap.File{Data: data})
}

// readSafetensors takes ownership of m when it succeeds.
func readSafetensors(label string, m *mmap.File) (*Safetensors, error) {
	header, data, err := splitSafetensors(m.Data)
	if err != nil {
		return nil, diag.List{diag.Errorf(nil, "safetensors/header", "%s: %v", label, err)}
	}
	s := &Safetensors{label: label, file: m, entries: make(map[string]span)}
	errs := s.readHeader(header, int64(len(data)))
	if len(errs) > 0 {
		return nil, errs.Err()
	}
	return s, nil
}

// Label is the path that the file was opened by.
func (s *Safetensors) Label() string { return s.label }

// Metadata is the header's free-form text, nil without any.
func (s *Safetensors) Metadata() map[string]string { return s.metadata }

// Names are the tensors in the header's order.
func (s *Safetensors) Names() []string { return s.names }

// Type implements Source.
func (s *Safetensors) Type(name string) (tensor.Type, error) {
	e, ok := s.entries[name]
	if !ok {
		return tensor.Type{}, noTensor(s.label, name)
	}
	return e.typ, e.err
}

// Load implements Source; the tensor aliases the file.
func (s *Safetensors) Load(name string) (*tensor.Tensor, error) {
	e, ok := s.entries[name]
	if !ok {
		return nil, noTensor(s.label, name)
	}
	if e.err != nil {
		return nil, e.err
	}
	_, data, err := splitSafetensors(s.file.Data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.label, err) // closed
	}
	return &tensor.Tensor{Type: e.typ, Data: data[e.begin:e.end:e.end]}, nil
}

// Close unmaps the file; tensors must not be used afterwards.
func (s *Safetensors) Close() error { return s.file.Close() }

// splitSafetensors cuts a file into its JSON header and its data.
func splitSafetensors(file []byte) (header, data []byte, err error) {
	if len(file) < 8 {
		return nil, nil, fmt.Errorf("%d bytes, wanted a safetensors file: 8 bytes of header length, the header and the data", len(file))
	}
	n := binary.LittleEndian.Uint64(file)
	switch {
	case n > maxHeader:
		return nil, nil, fmt.Errorf("header length is %d bytes, wanted at most %d: this may be no safetensors file", n, maxHeader)
	case n > uint64(len(file)-8):
		return nil, nil, fmt.Errorf("header length is %d bytes, wanted at most %d: the file has %d bytes and is cut short", n, len(file)-8, len(file))
	}
	return file[8 : 8+n], file[8+n:], nil
}

// readHeader fills s from the JSON header over size bytes of data and collects every fault.
func (s *Safetensors) readHeader(header []byte, size int64) diag.List {
	var errs diag.List
	var spans []span
	err := eachField(header, func(name string, raw json.RawMessage) error {
		if name == "__metadata__" {
			if err := json.Unmarshal(raw, &s.metadata); err != nil {
				errs.Addf(nil, "safetensors/metadata", "%s: __metadata__ is no object of strings", s.label)
			}
			return nil
		}
		e, err := s.readEntry(name, raw, size)
		if err != nil {
			errs.Add(err)
			return nil
		}
		spans = append(spans, e)
		s.names = append(s.names, name)
		s.entries[name] = e
		return nil
	}, func(name string) {
		errs.Addf(nil, "safetensors/twice", "%s: tensor %q is in the header twice", s.label, name)
	})
	if err != nil {
		errs.Addf(nil, "safetensors/header", "%s: header: %v", s.label, err)
		return errs
	}
	s.checkCover(spans, size, len(errs) > 0, &errs)
	return errs
}

// readEntry reads and checks one tensor's entry on its own.
func (s *Safetensors) readEntry(name string, raw json.RawMessage, size int64) (span, *diag.Error) {
	fail := func(code, format string, args ...any) (span, *diag.Error) {
		return span{}, diag.Errorf(nil, code, "%s: tensor %q: %s", s.label, name, fmt.Sprintf(format, args...))
	}
	var dtype string
	var shape []int64
	var offsets []uint64
	var repeated, unknown []string
	err := eachField(raw, func(field string, value json.RawMessage) error {
		switch field {
		case "dtype":
			return json.Unmarshal(value, &dtype)
		case "shape":
			return json.Unmarshal(value, &shape)
		case "data_offsets":
			return json.Unmarshal(value, &offsets)
		}
		unknown = append(unknown, field)
		return nil
	}, func(field string) { repeated = append(repeated, field) })
	switch {
	case err != nil:
		return fail("safetensors/entry", "%v", err)
	case len(repeated) > 0:
		return fail("safetensors/entry", "field %q is there twice", repeated[0])
	case len(unknown) > 0:
		return fail("safetensors/entry", "field %q, wanted dtype, shape and data_offsets only", unknown[0])
	case len(shape) > tensor.MaxRank:
		return fail("safetensors/entry", "%d dimensions, wanted at most %d", len(shape), tensor.MaxRank)
	case len(offsets) != 2:
		return fail("safetensors/offsets", "%d data_offsets, wanted a begin and an end", len(offsets))
	case offsets[0] > offsets[1]:
		return fail("safetensors/offsets", "data_offsets %v go backwards", offsets)
	case offsets[1] > uint64(size):
		return fail("safetensors/offsets", "data_offsets %v, wanted within the %d bytes of data that the file has", offsets, size)
	}
	d, ok := safeDTypes[dtype]
	if !ok {
		return fail("safetensors/dtype", "dtype %q, wanted one of %s", dtype, safeDTypeNames())
	}
	// The element type stands in for sub-byte types only to have the extents checked; they have no Type of their own.
	if err := tensor.Make(tensor.I8, shape...).Check(); err != nil {
		return fail("safetensors/shape", "%v", err)
	}
	elements := tensor.Make(tensor.I8, shape...).Elements()
	have := int64(offsets[1] - offsets[0])
	if elements > (1<<63-1)/d.bits || elements*d.bits%8 != 0 || elements*d.bits/8 != have {
		return fail("safetensors/size", "shape %v of %s does not have the %d bytes of its data_offsets %v", shape, dtype, have, offsets)
	}
	e := span{name: name, typ: tensor.Make(d.dtype, shape...), begin: int64(offsets[0]), end: int64(offsets[1])}
	if d.dtype == tensor.Invalid {
		e.err = diag.Errorf(nil, "safetensors/dtype", "%s: tensor %q: dtype %s is not supported", s.label, name, dtype)
	}
	return e, nil
}

// checkCover demands that the tensors lie side by side and fill the data. With entries refused before (partial) gaps are their consequence
// and not reported.
func (s *Safetensors) checkCover(spans []span, size int64, partial bool, errs *diag.List) {
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end)) })
	end, last := int64(0), ""
	for _, e := range spans {
		switch {
		case e.begin < end:
			errs.Addf(nil, "safetensors/overlap", "%s: tensor %q at bytes %d to %d overlaps tensor %q, which ends at %d", s.label, e.name, e.begin, e.end, last, end)
		case e.begin > end && !partial:
			errs.Addf(nil, "safetensors/gap", "%s: tensor %q begins at byte %d, wanted %d: nothing lies between", s.label, e.name, e.begin, end)
		}
		if e.end > end || last == "" {
			end, last = max(end, e.end), e.name
		}
	}
	if end != size && !partial {
		errs.Addf(nil, "safetensors/gap", "%s: the tensors end at byte %d, wanted %d: the data goes on after them", s.label, end, size)
	}
}

func safeDTypeNames() string {
	var names []string
	for n, d := range safeDTypes {
		if d.dtype != tensor.Invalid {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
