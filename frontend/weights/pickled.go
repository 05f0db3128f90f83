package weights

import (
	"fmt"
	"slices"
	"strings"

	"tpuc/frontend/weights/pickle"
	"tpuc/ir/diag"
	"tpuc/ir/tensor"
)

// readPickled reads the tensors that torch before 2.9 saved: the entry is a zip file of torch.save, stored, with the pickle of a dict and
// the storages as entries data/<key>. An empty entry holds no tensors.
func (a *Archive) readPickled(section, entry string) error {
	if !a.HasEntry(entry) {
		return nil
	}
	fail := func(err error) error { return fmt.Errorf("entry %q: %w", entry, err) }
	data, err := a.dir.stored(a.dir.entries[entry])
	if err != nil || len(data) == 0 {
		return err
	}
	d, err := readDirectory(data, "a file of torch.save")
	if err != nil {
		return fail(err)
	}
	if order, ok := d.entries["byteorder"]; ok {
		got, err := d.contents("byteorder")
		if err != nil {
			return fail(err)
		}
		if string(got) != "little" {
			return fail(fmt.Errorf("%s is %.40q, wanted \"little\"", order.Name, got))
		}
	}
	program, err := d.contents("data.pkl")
	if err != nil {
		return fail(err)
	}
	list, err := pickle.Decode(program)
	if err != nil {
		e := diag.Errorf(nil, "pt2/pickle", "%s: entry %q: %v", a.label, entry, err)
		return e.Note("only plain tensors can be read from a pickle, and nothing in it is executed: export and save the model again with torch 2.9 or later")
	}
	for _, item := range list {
		s := Stored{Name: item.Name, Section: section, IsParam: item.Tensor.IsParam}
		if err := a.describePickled(&s, entry, d, item.Tensor); err != nil {
			s.Err = err
		}
		a.add(s)
	}
	return nil
}

// describePickled fills s from a pickled tensor and checks that the view lies within the storage.
func (a *Archive) describePickled(s *Stored, entry string, d *directory, t *pickle.Tensor) *diag.Error {
	fail := func(code, format string, args ...any) *diag.Error {
		return diag.Errorf(nil, code, "%s: tensor %q: %s", a.label, s.Name, fmt.Sprintf(format, args...))
	}
	s.Type = tensor.Type{DType: t.Storage.DType, Dims: slices.Clone(t.Sizes)}
	s.Strides, s.Offset = t.Strides, t.Offset
	name := "data/" + t.Storage.Key
	s.Storage = entry + "/" + name
	if len(t.Sizes) != len(t.Strides) {
		return fail("pt2/view", "%d sizes with %d strides, wanted as many", len(t.Sizes), len(t.Strides))
	}
	if err := s.Type.Check(); err != nil {
		return fail("pt2/view", "%v", err)
	}
	f := d.entries[name]
	if f == nil || strings.Contains(t.Storage.Key, "/") {
		return fail("pt2/storage", "its storage, %q of entry %q, is not in the archive", name, entry)
	}
	store, err := a.open(s.Storage, d, f)
	if err != nil {
		return fail("pt2/storage", "%v", err)
	}
	data := store.data
	if have := int64(len(data)) / int64(s.Type.DType.Size()); t.Storage.Elements > have {
		return fail("pt2/storage", "its storage has %d bytes, wanted %d elements of %s", len(data), t.Storage.Elements, s.Type.DType)
	}
	if err := checkView(s.Type, s.Strides, s.Offset, int64(len(data))); err != nil {
		return fail("pt2/view", "%v", err)
	}
	return nil
}

// add appends a tensor; the first of a name is found by it.
func (a *Archive) add(s Stored) {
	if _, ok := a.index[s.Name]; !ok {
		a.index[s.Name] = len(a.tensors)
	}
	a.tensors = append(a.tensors, s)
}
