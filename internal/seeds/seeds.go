// Package seeds gives fuzz targets the archives of testdata/seeds: real ones of every torch version and model of the first cases, without
// the bytes of their tensors (tools/seeds wrote them); and MLIR bytecode of testdata/jax. It is for tests, and never judges what the files hold.
package seeds

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Archive is one archive.
type Archive struct {
	Name    string // such as "mlp.model.pt2"
	Data    []byte
	entries []entry
}

type entry struct {
	name string
	data []byte
}

// Entry is an entry's contents by the end of its name; nil if there is none.
func (a Archive) Entry(suffix string) []byte {
	for _, e := range a.entries {
		if strings.HasSuffix(e.name, suffix) {
			return e.data
		}
	}
	return nil
}

// Graph is the model's graph.
func (a Archive) Graph() []byte {
	if g := a.Entry("models/model.json"); g != nil {
		return g
	}
	return a.Entry("serialized_exported_program.json")
}

// Archives reads all of them, in the order of their names.
func Archives(t testing.TB) []Archive {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root(), "testdata", "seeds", "*.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata/seeds holds no archives: %v", err)
	}
	var out []Archive
	for _, f := range files {
		a, err := read(f)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		out = append(out, a)
	}
	return out
}

// root is the module's folder: tests run in their package's.
func root() string {
	at := "."
	for range 5 {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			break
		}
		at = filepath.Join(at, "..")
	}
	return at
}

func read(file string) (Archive, error) {
	f, err := os.Open(file)
	if err != nil {
		return Archive{}, err
	}
	defer f.Close()
	g, err := gzip.NewReader(f)
	if err != nil {
		return Archive{}, err
	}
	a := Archive{Name: strings.TrimSuffix(filepath.Base(file), ".gz")}
	if a.Data, err = io.ReadAll(g); err != nil {
		return a, err
	}
	z, err := zip.NewReader(bytes.NewReader(a.Data), int64(len(a.Data)))
	if err != nil {
		return a, err
	}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			return a, err
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return a, err
		}
		a.entries = append(a.entries, entry{f.Name, data})
	}
	return a, nil
}
