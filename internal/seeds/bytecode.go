package seeds

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// Module is a module of JAX as MLIR bytecode.
type Module struct {
	Form string // artifact, builtin, export, or the version of StableHLO of an older artifact
	Name string // of the case
	Data []byte
}

// Bytecode reads testdata/jax/bytecode.tar.gz, which tools/cases/jax_bytecode.py wrote.
func Bytecode(t testing.TB) []Module {
	t.Helper()
	out, err := modules(filepath.Join(root(), "testdata", "jax", "bytecode.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func modules(file string) (out []Module, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		out = append(out, Module{Form: path.Dir(h.Name), Name: strings.TrimSuffix(path.Base(h.Name), ".mlirbc"), Data: data})
	}
}
