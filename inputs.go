package tpuc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"tpuc/frontend/weights"
	"tpuc/ir/diag"
	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
	"tpuc/tpu/runtime"
)

// tensorFile is a file of named tensors, read whole: a safetensors or npz file. Its tensors may alias it until it is closed.
type tensorFile struct {
	path    string
	tensors []weights.Named
	source  weights.Source
}

func openTensors(path string) (*tensorFile, error) {
	src, err := weights.Open(path)
	if err != nil {
		return nil, err
	}
	return readTensors(path, src)
}

// readTensors takes src over.
func readTensors(path string, src weights.Source) (*tensorFile, error) {
	f := &tensorFile{path: path, source: src}
	for _, name := range src.Names() {
		t, err := src.Load(name)
		if err != nil {
			src.Close()
			return nil, err
		}
		f.tensors = append(f.tensors, weights.Named{Name: name, Tensor: t})
	}
	return f, nil
}

func openAll(paths []string) ([]*tensorFile, error) {
	var files []*tensorFile
	var errs []error
	for _, p := range paths {
		f, err := openTensors(p)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		files = append(files, f)
	}
	if len(errs) > 0 {
		closeFiles(files)
		return nil, errors.Join(errs...)
	}
	return files, nil
}

func closeFiles(files []*tensorFile) error {
	var errs []error
	for _, f := range files {
		if f != nil {
			errs = append(errs, f.source.Close())
		}
	}
	return errors.Join(errs...)
}

// shapes are the shapes of the tensors that the ports, whose types are not known yet, take from the file. Tensors that fit no port are left
// for arrange to report.
func (f *tensorFile) shapes(ports []Port) ([][]int64, error) {
	var errs diag.List
	out := make([][]int64, len(ports))
	places := f.numbering(artifactPorts(ports), artifact.KindInput)
	for i, p := range ports {
		at := slices.IndexFunc(f.tensors, func(n weights.Named) bool { return runtime.Place(places, artifact.KindInput, n.Name) == i })
		if at < 0 {
			errs.Addf(nil, "input/missing", "%s: input %d (%q) is missing, wanted input_%d or its name", f.path, p.Ordinal, p.Name, p.Ordinal)
			continue
		}
		out[i] = f.tensors[at].Dims
	}
	return out, errs.Err()
}

// given is all that shapes depends on: the names and shapes of the file's tensors.
func (f *tensorFile) given() string {
	list := make([]string, len(f.tensors))
	for i, n := range f.tensors {
		list[i] = fmt.Sprintf("%q%v", n.Name, n.Dims)
	}
	return shortList(list)
}

// numbering are the ports with ordinals as the file counts. Ordinals count all flattened leaves; a file whose names are kind_0, kind_1, ... for
// as many tensors as there are ports counts the tensors alone, which differs where other leaves lie between.
func (f *tensorFile) numbering(ports []artifact.Port, kind string) []artifact.Port {
	if len(f.tensors) != len(ports) {
		return ports
	}
	out := slices.Clone(ports)
	for i := range ports {
		name := fmt.Sprintf("%s_%d", kind, i)
		if !slices.ContainsFunc(f.tensors, func(n weights.Named) bool { return n.Name == name }) {
			return ports
		}
		out[i].Ordinal = i
	}
	return out
}

func (f *tensorFile) arrange(ports []artifact.Port) ([]*tensor.Tensor, error) {
	out, err := runtime.Arrange(ports, f.tensors)
	if err != nil {
		return nil, fmt.Errorf("%s:\n%w", f.path, err)
	}
	return out, nil
}

// Random makes inputs that depend on the ports' types, their places and the seed alone: floats of a standard normal distribution, integers
// 0 or 1, which are valid ids and positions of any model, and bool either way.
func Random(ports []artifact.Port, seed uint64) ([]*tensor.Tensor, error) {
	out := make([]*tensor.Tensor, len(ports))
	for i, p := range ports {
		t, err := p.Tensor()
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", p.Name, err)
		}
		out[i] = random(t, rand.New(rand.NewPCG(seed, uint64(i))))
	}
	return out, nil
}

func random(t tensor.Type, rng *rand.Rand) *tensor.Tensor {
	n := t.Elements()
	switch {
	case t.DType.IsComplex():
		v := make([]complex128, n)
		for i := range v {
			v[i] = complex(rng.NormFloat64(), rng.NormFloat64())
		}
		return tensor.FromComplexes(t, v)
	case t.DType.IsFloat():
		v := make([]float64, n)
		for i := range v {
			v[i] = rng.NormFloat64()
		}
		return tensor.FromFloats(t, v)
	}
	v := make([]int64, n)
	for i := range v {
		v[i] = rng.Int64N(2)
	}
	return tensor.FromInts(t, v)
}
