package weights

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"

	"tpuc/internal/jsonerr"
	"tpuc/internal/mmap"
	"tpuc/ir/diag"
	"tpuc/ir/tensor"
)

// A reduced archive is what an import needs of a torch.export archive, for any sizes: its graph, what is known of its tensors, and constants, but no
// weights. It is a zip file of the entries below, JSON compressed and constants not, without a root folder. It is part of an artifact
// and never a file of its own.
const (
	reducedGraph     = "models/model.json"
	reducedTensors   = "tensors.json"   // reducedIndex
	reducedConstants = "constants/"     // and the hex SHA-256 of the row-major elements, which are the entry's bytes
	reducedOps       = "custom_ops.tpu" // of the user; may be missing
)

// Reduced is the contents of a reduced archive.
type Reduced struct {
	Graph     []byte // the model's JSON
	CustomOps []byte // text of the user's own operators; empty: none
	Identity  string // of the whole archive
	Tensors   []ReducedTensor
}

// ReducedTensor is a tensor of a reduced archive.
type ReducedTensor struct {
	Stored
	Value    *tensor.Tensor // of a constant whose elements are part of the archive
	External string         // of a constant whose elements the reader gets elsewhere, by the hex SHA-256 of the row-major ones
}

type reducedIndex struct {
	Identity string         `json:"identity"`
	Tensors  []reducedEntry `json:"tensors"`
}

type reducedEntry struct {
	Name    string  `json:"name"`
	Section string  `json:"section"`
	Storage string  `json:"storage"`
	DType   string  `json:"dtype"`
	Dims    []int64 `json:"dims"`
	Strides []int64 `json:"strides"`
	Offset  int64   `json:"offset,omitempty"`
	IsParam bool    `json:"is_param,omitempty"`
	Absent  bool    `json:"absent,omitempty"`
	SHA256  string  `json:"sha256,omitempty"` // of a constant
}

// WriteReduced writes r to w. Equal contents give equal bytes.
func WriteReduced(w io.Writer, r Reduced) error {
	z := zip.NewWriter(w)
	add := func(name string, method uint16, data []byte) error {
		f, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err == nil {
			_, err = f.Write(data)
		}
		return err
	}
	index := reducedIndex{Identity: r.Identity, Tensors: []reducedEntry{}}
	values := make(map[string]*tensor.Tensor)
	var order []string
	for _, t := range r.Tensors {
		e := reducedEntry{t.Name, t.Section, t.Storage, t.Type.DType.String(), slices.Clone(t.Type.Dims), slices.Clone(t.Strides), t.Offset, t.IsParam, t.Absent, t.External}
		if t.Value != nil {
			sum := sha256.Sum256(t.Value.Data)
			e.SHA256 = hex.EncodeToString(sum[:])
			if values[e.SHA256] == nil {
				values[e.SHA256] = t.Value
				order = append(order, e.SHA256)
			}
		}
		index.Tensors = append(index.Tensors, e)
	}
	data, err := json.Marshal(index)
	if err != nil {
		return err
	}
	if err := add(reducedTensors, zip.Deflate, data); err != nil {
		return err
	}
	if err := add(reducedGraph, zip.Deflate, r.Graph); err != nil {
		return err
	}
	if len(r.CustomOps) > 0 {
		if err := add(reducedOps, zip.Deflate, r.CustomOps); err != nil {
			return err
		}
	}
	for _, sum := range order {
		if err := add(reducedConstants+sum, zip.Store, values[sum].Data); err != nil {
			return err
		}
	}
	return z.Close()
}

// OpenReduced reads a reduced archive in memory, which is kept and must not change. Names in messages begin with label. find gives constants that
// are not part of it, by the hex SHA-256 of their row-major elements; it is asked when one is loaded.
func OpenReduced(label string, data []byte, find func(sum string, t tensor.Type) (*tensor.Tensor, error)) (*Archive, error) {
	a := &Archive{
		label: label, file: &mmap.File{Data: data}, index: make(map[string]int), model: "model", graph: reducedGraph,
		reduced: &reduced{constants: make(map[string]func() (*tensor.Tensor, error)), sums: make(map[string]string)},
	}
	if err := a.readReduced(find); err != nil {
		return nil, fmt.Errorf("%s: %w", label, err)
	}
	return a, nil
}

// reduced is what a reduced archive has instead of storages.
type reduced struct {
	identity  string
	constants map[string]func() (*tensor.Tensor, error) // by view
	sums      map[string]string                         // hex SHA-256 by view
}

// CustomOps is the text of the user's own operators that a reduced archive holds, or nil.
func (a *Archive) CustomOps() ([]byte, error) {
	if a.reduced == nil || !a.HasEntry(reducedOps) {
		return nil, nil
	}
	return a.Entry(reducedOps)
}

func (a *Archive) readReduced(find func(string, tensor.Type) (*tensor.Tensor, error)) (err error) {
	if a.dir, err = readDirectory(a.file.Data, "the graph of an artifact"); err != nil {
		return err
	}
	data, err := a.dir.contents(reducedTensors)
	if err != nil {
		return err
	}
	var index reducedIndex
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&index); err != nil {
		return fmt.Errorf("%s: %w", reducedTensors, jsonerr.Describe(err))
	}
	a.reduced.identity = index.Identity
	var errs diag.List
	for _, e := range index.Tensors {
		s, err := a.reducedTensor(e, find)
		if err != nil {
			errs.Addf(nil, "pt2/reduced", "%s: tensor %q: %v", reducedTensors, e.Name, err)
			continue
		}
		a.add(s)
	}
	return errs.Err()
}

// reducedTensor checks e and finds the elements of a constant, which are checked against their digest when they are loaded.
func (a *Archive) reducedTensor(e reducedEntry, find func(string, tensor.Type) (*tensor.Tensor, error)) (Stored, error) {
	s := Stored{Name: e.Name, Section: e.Section, Storage: e.Storage, Strides: e.Strides, Offset: e.Offset, IsParam: e.IsParam, Absent: e.Absent}
	d, err := tensor.ParseDType(e.DType)
	if err != nil {
		return s, err
	}
	s.Type = tensor.Type{DType: d, Dims: e.Dims}
	if err := s.Type.Check(); err != nil {
		return s, err
	}
	if len(e.Strides) != len(e.Dims) {
		return s, fmt.Errorf("%d sizes with %d strides, wanted as many", len(e.Dims), len(e.Strides))
	}
	if e.SHA256 == "" {
		s.Elsewhere = !e.Absent
		return s, nil
	}
	if e.Absent {
		return s, fmt.Errorf("it has a digest and no bytes")
	}
	if _, twice := a.reduced.sums[s.View()]; twice {
		if a.reduced.sums[s.View()] != e.SHA256 {
			return s, fmt.Errorf("its view has two digests")
		}
		return s, nil
	}
	load := func() (*tensor.Tensor, error) { return find(e.SHA256, s.Type) }
	if f := a.dir.entries[reducedConstants+e.SHA256]; f != nil {
		data, err := a.dir.stored(f)
		if err != nil {
			return s, err
		}
		if int64(len(data)) != s.Type.Bytes() {
			return s, fmt.Errorf("%d bytes, wanted %d for %s", len(data), s.Type.Bytes(), s.Type)
		}
		load = func() (*tensor.Tensor, error) { return tensor.New(s.Type, data) }
	} else if find == nil {
		return s, fmt.Errorf("no entry %s", reducedConstants+e.SHA256)
	}
	a.reduced.sums[s.View()] = e.SHA256
	a.reduced.constants[s.View()] = sync.OnceValues(func() (*tensor.Tensor, error) {
		t, err := load()
		if err != nil {
			return nil, err
		}
		if sum := sha256.Sum256(t.Data); hex.EncodeToString(sum[:]) != e.SHA256 {
			return nil, fmt.Errorf("sha256 is %x, wanted %s", sum, e.SHA256)
		}
		return t, nil
	})
	return s, nil
}

// loadReduced is LoadStored of a reduced archive.
func (a *Archive) loadReduced(s Stored) (*tensor.Tensor, error) {
	load := a.reduced.constants[s.View()]
	if load == nil {
		e := diag.Errorf(nil, "pt2/absent", "%s: the bytes of tensor %q are not in the artifact", a.label, s.Name).
			Note("they are in the archive that it was made from")
		e.Cause = ErrAbsent
		return nil, e
	}
	t, err := load()
	if err != nil {
		return nil, fmt.Errorf("%s: tensor %q: %w", a.label, s.Name, err)
	}
	return t, nil
}
