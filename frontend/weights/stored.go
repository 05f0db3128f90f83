package weights

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"tpuc/internal/jsonerr"
	"tpuc/ir/diag"
	"tpuc/ir/tensor"
)

// Stored is a tensor of an archive: a strided view into a storage.
type Stored struct {
	Name    string // fully qualified name
	Section string // "weights" (parameters, persistent buffers) or "constants" (lifted constants, other buffers)
	Storage string // entry of the storage below the root; views with one Storage share memory
	Type    tensor.Type
	Strides []int64 // elements
	Offset  int64   // elements from the storage's start
	IsParam bool
	Absent  bool // the archive was saved without bytes (meta or fake tensors): the storage's entry is empty. Absent ones share nothing.
	// Elsewhere says that the archive is a reduced one and the bytes are in the one that it was made from.
	Elsewhere bool
	Err       error // why Load refuses it; Type may be invalid then
}

// View identifies the elements of a stored tensor within its archive: equal views are one tensor under several names.
// It is empty for tensors that have no bytes.
func (s Stored) View() string {
	if s.Absent || s.Err != nil {
		return ""
	}
	return fmt.Sprintf("%s %s %v %d", s.Storage, s.Type, s.Strides, s.Offset)
}

// Contiguous reports that the elements lie row-major without gaps.
func (s Stored) Contiguous() bool {
	want := tensor.Strides(s.Type.Dims)
	for i, d := range s.Type.Dims {
		if d == 0 {
			return true
		}
		if d > 1 && s.Strides[i] != want[i] {
			return false
		}
	}
	return true
}

// Tensors lists all tensors: data/weights, then data/constants, each in the order of its index. Their slices are shared: do not change.
func (a *Archive) Tensors() []Stored { return a.tensors }

// Find is a tensor by its fully qualified name, looked for in data/weights, then in data/constants.
func (a *Archive) Find(name string) (Stored, error) {
	i, ok := a.index[name]
	if !ok {
		return Stored{}, noTensor(a.label, name)
	}
	return a.tensors[i], nil
}

// storage is the memory that tensors are views of.
type storage struct {
	data  []byte       // aliases the mapping
	check func() error // compares data with its CRC-32, once
}

// open registers the storage that is entry f of d under a name.
func (a *Archive) open(name string, d *directory, f *zip.File) (*storage, error) {
	if s := a.storages[name]; s != nil {
		return s, nil
	}
	data, err := d.stored(f)
	if err != nil {
		return nil, err
	}
	s := &storage{data: data, check: sync.OnceValue(func() error { return checkCRC(f, data) })}
	a.storages[name] = s
	return s, nil
}

// Check compares all storages with their CRC-32, until ctx ends. Load checks the one that it takes, and waits where that is being done: a reader of many
// tensors calls Check ahead, on another goroutine.
func (a *Archive) Check(ctx context.Context) error {
	for _, t := range a.tensors {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if s := a.storages[t.Storage]; s != nil {
			if err := s.check(); err != nil {
				return fmt.Errorf("%s: %w", a.label, err)
			}
		}
	}
	return nil
}

// Load is a tensor's elements in row-major order: the mapping itself where they lie so, otherwise a copy. The storage is checked against
// its CRC-32 the first time.
func (a *Archive) Load(name string) (*tensor.Tensor, error) {
	s, err := a.Find(name)
	if err != nil {
		return nil, err
	}
	return a.LoadStored(s)
}

// LoadStored is Load for a tensor of Tensors, which finds one of two that have the same name in both sections.
func (a *Archive) LoadStored(s Stored) (*tensor.Tensor, error) {
	switch {
	case s.Err != nil:
		return nil, s.Err
	case s.Absent:
		e := diag.Errorf(nil, "pt2/absent", "%s: the bytes of tensor %q are not in the archive", a.label, s.Name).
			Note("the model was exported without weights; give them with a checkpoint")
		e.Cause = ErrAbsent
		return nil, e
	case a.reduced != nil:
		return a.loadReduced(s)
	}
	store := a.storages[s.Storage]
	if store == nil {
		return nil, fmt.Errorf("%s: no storage %q", a.label, s.Storage)
	}
	if err := store.check(); err != nil {
		return nil, fmt.Errorf("%s: tensor %q: %w", a.label, s.Name, err)
	}
	data := store.data
	size := int64(s.Type.DType.Size())
	if s.Contiguous() {
		from, n := s.Offset*size, s.Type.Bytes()
		if n == 0 {
			from = 0
		}
		return &tensor.Tensor{Type: s.Type, Data: data[from : from+n : from+n]}, nil
	}
	return tensor.Gather(s.Type, data, s.Offset, s.Strides), nil
}

// Digest is the hex SHA-256 of a tensor's row-major bytes. It is computed once for each view.
func (a *Archive) Digest(name string) (string, error) {
	s, err := a.Find(name)
	if err != nil {
		return "", err
	}
	if d, ok := a.digests.Load(s.View()); ok {
		return d.(string), nil
	}
	t, err := a.Load(name)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(t.Data)
	d := hex.EncodeToString(sum[:])
	a.digests.Store(s.View(), d)
	return d, nil
}

// torchDTypes are the numbers of torch/_export/serde/schema.py ScalarType. Names without a dtype are those that tpuc has no type for.
var torchDTypes = map[int]struct {
	dtype tensor.DType
	name  string
}{
	1: {tensor.U8, "uint8"}, 2: {tensor.I8, "int8"}, 3: {tensor.I16, "int16"}, 4: {tensor.I32, "int32"}, 5: {tensor.I64, "int64"},
	6: {tensor.F16, "float16"}, 7: {tensor.F32, "float32"}, 8: {tensor.F64, "float64"},
	9: {0, "complex32"}, 10: {tensor.C64, "complex64"}, 11: {tensor.C128, "complex128"},
	12: {tensor.Bool, "bool"}, 13: {tensor.BF16, "bfloat16"}, 28: {tensor.U16, "uint16"},
	29: {tensor.F8E4M3FN, "float8_e4m3fn"}, 30: {tensor.F8E5M2, "float8_e5m2"},
	31: {0, "float8_e4m3fnuz"}, 32: {0, "float8_e5m2fnuz"}, 33: {0, "float8_e8m0fnu"},
	34: {tensor.U32, "uint32"}, 35: {tensor.U64, "uint64"},
}

// TorchDType is the element type of a number of torch's serialized schema (ScalarType).
func TorchDType(n int) (tensor.DType, error) {
	t, ok := torchDTypes[n]
	if !ok {
		return tensor.Invalid, fmt.Errorf("torch dtype number %d is unknown", n)
	}
	if t.dtype == tensor.Invalid {
		return tensor.Invalid, fmt.Errorf("torch dtype %s is not supported", t.name)
	}
	return t.dtype, nil
}

// torchLayouts are the numbers of schema.py's Layout.
var torchLayouts = map[int]string{0: "unknown", 1: "sparse_coo", 2: "sparse_csr", 3: "sparse_csc", 4: "sparse_bsr", 5: "sparse_bsc", 6: "mkldnn", 7: "strided"}

const layoutStrided = 7

// payload is an entry of *_config.json (schema.py PayloadMeta).
type payload struct {
	PathName   string      `json:"path_name"`
	IsParam    bool        `json:"is_param"`
	UsePickle  bool        `json:"use_pickle"`
	TensorMeta *tensorMeta `json:"tensor_meta"`
}

type tensorMeta struct {
	DType   int     `json:"dtype"`
	Sizes   []asInt `json:"sizes"`
	Strides []asInt `json:"strides"`
	Offset  asInt   `json:"storage_offset"`
	Layout  int     `json:"layout"`
}

// asInt is a SymInt, which for stored tensors must be a number.
type asInt struct {
	Int *int64 `json:"as_int"`
}

// readIndex reads data/<section>/<model>_<section>_config.json, if it is there.
func (a *Archive) readIndex(section string) error {
	name := "data/" + section + "/" + a.model + "_" + section + "_config.json"
	if !a.HasEntry(name) {
		return nil
	}
	data, err := a.Entry(name)
	if err != nil {
		return err
	}
	var top struct {
		Config json.RawMessage `json:"config"`
	}
	if err := json.Unmarshal(data, &top); err != nil {
		return fmt.Errorf("entry %q: %w", name, jsonerr.Describe(err))
	}
	var twice []string
	err = eachField(top.Config, func(fqn string, raw json.RawMessage) error {
		var p payload
		s := Stored{Name: fqn, Section: section}
		if err := json.Unmarshal(raw, &p); err != nil {
			return fmt.Errorf("tensor %q: %w", fqn, jsonerr.Describe(err))
		}
		s.IsParam = p.IsParam
		if err := a.describe(&s, p); err != nil {
			s.Err = err
		}
		a.add(s)
		return nil
	}, func(fqn string) { twice = append(twice, fqn) })
	if err == nil && len(twice) > 0 {
		err = fmt.Errorf("tensors %q are there twice", twice)
	}
	if err != nil {
		return fmt.Errorf("entry %q: %w", name, err)
	}
	return nil
}

// describe fills s from its index entry and checks that the view lies within the storage. Nothing of the view's size is allocated.
func (a *Archive) describe(s *Stored, p payload) *diag.Error {
	fail := func(code, format string, args ...any) *diag.Error {
		return diag.Errorf(nil, code, "%s: tensor %q: %s", a.label, s.Name, fmt.Sprintf(format, args...))
	}
	s.Storage = "data/" + s.Section + "/" + p.PathName
	if p.UsePickle || p.TensorMeta == nil {
		return fail("pt2/pickle", "stored as a pickled Python object (%s), wanted a plain tensor", p.PathName).
			Note("tensor subclasses and custom objects cannot be read: replace it by a plain tensor before the export")
	}
	m := p.TensorMeta
	if m.Layout != layoutStrided {
		return fail("pt2/layout", "layout %s (%d), wanted strided", torchLayouts[m.Layout], m.Layout).Note("call .to_dense() before the export")
	}
	dtype, err := TorchDType(m.DType)
	if err != nil {
		return fail("pt2/dtype", "%v", err).Note("convert the tensor before the export")
	}
	if len(m.Sizes) > tensor.MaxRank {
		return fail("pt2/view", "%d dimensions, wanted at most %d", len(m.Sizes), tensor.MaxRank)
	}
	ok := m.Offset.Int != nil && len(m.Sizes) == len(m.Strides)
	s.Type.DType = dtype
	for i := 0; ok && i < len(m.Sizes); i++ {
		if ok = m.Sizes[i].Int != nil && m.Strides[i].Int != nil; ok {
			s.Type.Dims = append(s.Type.Dims, *m.Sizes[i].Int)
			s.Strides = append(s.Strides, *m.Strides[i].Int)
		}
	}
	if !ok {
		return fail("pt2/view", "sizes, strides and offset are not all numbers of one rank")
	}
	s.Offset = *m.Offset.Int
	if err := s.Type.Check(); err != nil {
		return fail("pt2/view", "%v", err)
	}
	f := a.dir.entries[s.Storage]
	if f == nil || strings.Contains(p.PathName, "/") {
		return fail("pt2/storage", "its storage, entry %q, is not in the archive", s.Storage)
	}
	if f.UncompressedSize64 == 0 && s.Type.Elements() > 0 {
		s.Absent = true
		return nil
	}
	store, err := a.open(s.Storage, a.dir, f)
	if err != nil {
		return fail("pt2/storage", "%v", err)
	}
	if err := checkView(s.Type, s.Strides, s.Offset, int64(len(store.data))); err != nil {
		return fail("pt2/view", "%v", err)
	}
	return nil
}
