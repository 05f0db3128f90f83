// Package weights reads the bytes of weights and inputs: torch.export archives, safetensors files, checkpoint directories and npz.
//
// Files are mapped, checked completely against their own sizes before any byte is used, and tensors alias the mapping wherever
// their elements lie row-major. The package owns these containers and nothing above them: it never reads a graph, never renames a
// tensor and never casts one. Everything read is treated as hostile.
package weights

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"tpuc/ir/diag"
	"tpuc/ir/tensor"
	"tpuc/ir/weight"
)

// Source is a checkpoint: tensors by their exact names. Tensors that it gives may alias its files and are valid until Close.
// A Source may be used by several goroutines at once, Close excepted.
type Source interface {
	// Label names the source in messages, as the user named it.
	Label() string
	// Names are all tensors, in the order of the file.
	Names() []string
	// Type is the element type and shape of a tensor, without its bytes. An unknown name is ErrNoTensor.
	Type(name string) (tensor.Type, error)
	// Load is a tensor in row-major order.
	Load(name string) (*tensor.Tensor, error)
	Close() error
}

// ErrNoTensor says that a source has no tensor of a name; errors that Source returns wrap it.
var ErrNoTensor = errors.New("no such tensor")

// ErrAbsent says that an archive describes a tensor and was saved without its bytes; errors of Load wrap it.
var ErrAbsent = errors.New("the bytes are not in the archive")

// Open opens what is at path by looking at it: a directory is a checkpoint (OpenDir), a zip file an archive or an npz file, a gzip file
// an archive, and everything else a safetensors file.
func Open(path string) (Source, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return opened(OpenDir(path))
	}
	if !st.Mode().IsRegular() { // opening a pipe would wait for a writer
		return nil, fmt.Errorf("%s: a special file, wanted a regular file or a checkpoint directory", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	head := make([]byte, 256)
	n, err := io.ReadFull(f, head)
	f.Close()
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	switch head = head[:n]; {
	case bytes.HasPrefix(head, gzipMagic):
		return opened(OpenArchive(path))
	case bytes.HasPrefix(head, zipMagic):
		// An npz file's first member is an array; a local header holds the name's length at 26 and the name at 30.
		if len(head) > 30 {
			name := head[30:min(len(head), 30+int(head[26])+int(head[27])<<8)]
			if bytes.HasSuffix(name, []byte(".npy")) {
				return opened(OpenNPZ(path))
			}
		}
		return opened(OpenArchive(path))
	case bytes.HasPrefix(head, []byte("\x93NUMPY")):
		return nil, fmt.Errorf("%s: an npy file, whose array has no name, wanted an npz file: numpy.savez(file, input_0=array)", path)
	case len(head) > 8 && head[8] != '{' && !strings.HasSuffix(path, ".safetensors"): // the format's header begins with a brace
		return nil, fmt.Errorf("%s: no file of tensors, wanted safetensors, npz, a torch.export archive (.pt2) or a checkpoint directory", path)
	}
	return opened(OpenSafetensors(path))
}

// opened keeps a nil pointer from becoming a Source that is not nil.
func opened[S Source](s S, err error) (Source, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Want is one weight that a program needs.
type Want struct {
	Names []string    // names under which a checkpoint may hold it, tried in order after Expr's own name
	Expr  weight.Expr // where its elements come from
}

// Bound is a weight found in a Source.
type Bound struct {
	Name   string // the name that the tensor it reads has there
	expr   weight.Expr
	source Source
}

// Load is the weight's elements, in place where they lie in the Source as the expression gives them.
func (b Bound) Load() (*tensor.Tensor, error) {
	x, err := b.source.Load(b.Name)
	if err != nil {
		return nil, err
	}
	return weight.Eval(b.expr, x)
}

// Bind finds every want in src, without reading elements, and returns them in order. All tensors that are missing or have another dtype or
// shape are reported together, in a diag.List.
func Bind(src Source, wants []Want) ([]Bound, error) {
	var errs diag.List
	out := make([]Bound, len(wants))
	for i, w := range wants {
		b, err := bind(src, w)
		if err != nil {
			errs.Add(err)
		}
		out[i] = b
	}
	if len(errs) > 0 {
		return nil, errs.Err()
	}
	return out, nil
}

// Lookup evaluates one source expression over src.
func Lookup(src Source, expr weight.Expr) (*tensor.Tensor, error) {
	b, err := bind(src, Want{Expr: expr})
	if err != nil {
		return nil, err
	}
	return b.Load()
}

func bind(src Source, w Want) (Bound, *diag.Error) {
	t, ok := weight.Leaf(w.Expr).(weight.Tensor)
	if !ok {
		return Bound{}, diag.Errorf(nil, "weights/expr", "%s: weight %s is no tensor of a checkpoint", src.Label(), w.Expr)
	}
	names := []string{t.Name}
	for _, n := range w.Names {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	for _, name := range names {
		got, err := src.Type(name)
		switch {
		case errors.Is(err, ErrNoTensor):
			continue
		case err != nil:
			var d *diag.Error
			if errors.As(err, &d) {
				return Bound{}, d
			}
			return Bound{}, diag.Errorf(nil, "weights/read", "%v", err)
		case got.DType != t.T.DType && !slices.Equal(got.Dims, t.T.Dims):
			return Bound{}, diag.Errorf(nil, "weights/type", "%s: tensor %q is %s, wanted %s", src.Label(), name, got, t.T)
		case got.DType != t.T.DType:
			return Bound{}, diag.Errorf(nil, "weights/dtype", "%s: tensor %q has dtype %s, wanted %s (%s)", src.Label(), name, got.DType, t.T.DType, t.T)
		case !slices.Equal(got.Dims, t.T.Dims):
			return Bound{}, diag.Errorf(nil, "weights/shape", "%s: tensor %q has shape %v, wanted %v (%s)", src.Label(), name, got.Dims, t.T.Dims, t.T)
		}
		return Bound{name, w.Expr, src}, nil
	}
	e := diag.Errorf(nil, "weights/missing", "%s: no tensor %q, wanted %s", src.Label(), t.Name, t.T)
	if len(names) > 1 {
		e.Note("its other names %q are not there either", names[1:])
	}
	return Bound{}, e
}

func noTensor(label, name string) error {
	return fmt.Errorf("%s: tensor %q: %w", label, name, ErrNoTensor)
}
