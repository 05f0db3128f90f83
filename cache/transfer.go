package cache

import (
	"archive/tar"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"tpuc/internal/jsonerr"
)

// An export is a tar file of entries, named <kind>/<id>, in the order of their names, and at its end the list of those names: without the list,
// or with another one, something was lost. It holds no time, user or machine: equal entries give equal bytes.
const (
	listName = "entries.json"
	maxList  = 64 << 20
)

// exportList is the last member of an export.
type exportList struct {
	Version int      `json:"version"` // 1
	Entries []string `json:"entries"` // names of the members before
}

// Export writes entries into one file: those with the IDs, or all for nil. Every byte is checked on the way. Of all entries the damaged ones are
// left out with a warning, as Get does; one that was asked for by its ID is an error. It returns how many it wrote.
func (s *Store) Export(ctx context.Context, w io.Writer, ids []string) (int, error) {
	files, err := s.files()
	if err != nil {
		return 0, err
	}
	files = slices.DeleteFunc(files, func(f file) bool { return f.id == "" || ids != nil && !slices.Contains(ids, f.id) })
	for _, id := range ids {
		if !slices.ContainsFunc(files, func(f file) bool { return f.id == id }) {
			return 0, fmt.Errorf("entry %.64s: %w", id, ErrMiss)
		}
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.kind+"/"+a.id, b.kind+"/"+b.id) })
	t := tar.NewWriter(w)
	list := exportList{Version: 1, Entries: []string{}}
	for _, f := range files {
		e, err := s.get(ctx, f)
		if errors.Is(err, ErrMiss) && ids == nil {
			continue
		}
		if err != nil {
			return len(list.Entries), err
		}
		name := f.kind + "/" + f.id
		err = writeMember(t, name, e.file.Data)
		e.Close()
		if err != nil {
			return len(list.Entries), err
		}
		list.Entries = append(list.Entries, name)
	}
	text, err := json.MarshalIndent(list, "", " ")
	if err == nil {
		err = writeMember(t, listName, append(text, '\n'))
	}
	if err == nil {
		err = t.Close()
	}
	return len(list.Entries), err
}

func writeMember(t *tar.Writer, name string, data []byte) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(data)), Mode: 0o644, ModTime: time.Unix(0, 0)}
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	_, err := t.Write(data)
	return err
}

// Imported is what Import did.
type Imported struct {
	Added   int
	Present int // were there already, and good
}

// Import keeps the entries of an export, each after every byte of it was checked. What is damaged, missing or no entry is in the error, all of it;
// the good entries are kept all the same. An entry that cannot be written ends it with a *PutError.
func (s *Store) Import(ctx context.Context, r io.Reader) (Imported, error) {
	var done Imported
	if s.o.ReadOnly {
		return done, &PutError{s.dir, ErrReadOnly}
	}
	var faults faultList
	var names []string
	complete := false
	t := tar.NewReader(r)
	for {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		h, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			faults.add("not a whole export: %w", err)
			return done, faults.err()
		}
		if complete {
			faults.add("%.100q after %s, wanted its end", h.Name, listName)
			break
		}
		if h.Name == listName {
			complete = true
			if err := checkList(t, h, names); err != nil {
				faults.add("%s: %w", listName, err)
			}
			continue
		}
		names = append(names, h.Name)
		var unwritable *PutError
		switch err := s.importEntry(ctx, t, h, &done); {
		case errors.As(err, &unwritable):
			return done, err
		case err != nil:
			faults.add("%.100q: %w", h.Name, err)
		}
	}
	if !complete {
		faults.add("not a whole export: it ends without %s", listName)
	}
	return done, faults.err()
}

// importEntry keeps one member of an export.
func (s *Store) importEntry(ctx context.Context, t *tar.Reader, h *tar.Header, done *Imported) error {
	kind, id, _ := strings.Cut(h.Name, "/")
	if !isPlain(h) || !isKind(kind) || !isID(id) {
		return errors.New("wanted a file <kind>/<id>")
	}
	e, err := s.get(ctx, file{kind, id, s.path(kind, id)})
	if err == nil {
		done.Present++
		return e.Close()
	}
	if !errors.Is(err, ErrMiss) {
		return err
	}
	err = s.receive(t, kind, id)
	if err == nil {
		done.Added++
	}
	return err
}

// isPlain reports whether a member is a file with all its bytes: a sparse one may claim any size.
func isPlain(h *tar.Header) bool {
	for name := range h.PAXRecords {
		if strings.HasPrefix(name, "GNU.sparse.") {
			return false
		}
	}
	return h.Typeflag == tar.TypeReg
}

// checkList compares the list with the names that were read.
func checkList(t *tar.Reader, h *tar.Header, names []string) error {
	if !isPlain(h) || h.Size > maxList {
		return fmt.Errorf("%d bytes, wanted a file of at most %d", h.Size, maxList)
	}
	text, err := io.ReadAll(t)
	if err != nil {
		return err
	}
	var list exportList
	if err := json.Unmarshal(text, &list); err != nil {
		return jsonerr.Describe(err)
	}
	if list.Version != 1 {
		return fmt.Errorf("version %d, wanted 1", list.Version)
	}
	if !slices.Equal(list.Entries, names) {
		return fmt.Errorf("the %d entries that it names are not the %d before it", len(list.Entries), len(names))
	}
	return nil
}

// faultList collects errors, the first few with their text.
type faultList struct {
	errs []error
	more int
}

func (l *faultList) add(format string, args ...any) {
	if len(l.errs) == 20 {
		l.more++
		return
	}
	l.errs = append(l.errs, fmt.Errorf(format, args...))
}

func (l *faultList) err() error {
	if l.more > 0 {
		return errors.Join(append(l.errs, fmt.Errorf("and %d more", l.more))...)
	}
	return errors.Join(l.errs...)
}
