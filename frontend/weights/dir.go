package weights

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tpuc/internal/jsonerr"
	"tpuc/internal/mmap"
	"tpuc/ir/diag"
	"tpuc/ir/tensor"
)

// Dir is a checkpoint directory: one safetensors file, or several shards with an index (the Hugging Face layout).
type Dir struct {
	label  string
	shards []*Safetensors
	names  []string
	where  map[string]*Safetensors
}

// indexNames and singleNames are looked for in this order: Transformers, then Diffusers.
var (
	indexNames  = []string{"model.safetensors.index.json", "diffusion_pytorch_model.safetensors.index.json"}
	singleNames = []string{"model.safetensors", "diffusion_pytorch_model.safetensors"}
)

// maxIndex bounds an index file.
const maxIndex = 1 << 28

// OpenDir opens the checkpoint in dir: an index and its shards, or one safetensors file of a usual name, or the safetensors files that are
// there if no name occurs twice. Faults of all files are reported together: missing shards, tensors that a shard lacks, and tensors that the
// index does not list are distinct messages.
func OpenDir(dir string) (*Dir, error) {
	d := &Dir{label: dir, where: make(map[string]*Safetensors)}
	files, index, err := checkpointFiles(dir)
	if err == nil {
		err = d.open(files, index)
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Label is the path that the directory was opened by.
func (d *Dir) Label() string { return d.label }

// Names are all tensors: shard by shard, in the order of the files' names.
func (d *Dir) Names() []string { return d.names }

// Type implements Source.
func (d *Dir) Type(name string) (tensor.Type, error) {
	s := d.where[name]
	if s == nil {
		return tensor.Type{}, noTensor(d.label, name)
	}
	return s.Type(name)
}

// Load implements Source; the tensor aliases its shard.
func (d *Dir) Load(name string) (*tensor.Tensor, error) {
	s := d.where[name]
	if s == nil {
		return nil, noTensor(d.label, name)
	}
	return s.Load(name)
}

// Close unmaps all shards.
func (d *Dir) Close() error {
	var first error
	for _, s := range d.shards {
		if err := s.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// open opens the files and, where there is an index (name to file), compares them with it.
func (d *Dir) open(files []string, index map[string]string) error {
	var errs diag.List
	opened := make(map[string]*Safetensors)
	for _, f := range files {
		path := filepath.Join(d.label, f)
		s, err := OpenSafetensors(path)
		if os.IsNotExist(err) {
			errs.Addf(nil, "checkpoint/shard", "%s: shard %s is missing, the index lists %d tensors in it", d.label, f, count(index, f))
			continue
		}
		if list, ok := err.(diag.List); ok {
			errs = append(errs, list...)
			continue
		}
		if err != nil {
			return err
		}
		opened[f] = s
		d.shards = append(d.shards, s)
		for _, n := range s.Names() {
			if other := d.where[n]; other != nil {
				errs.Addf(nil, "checkpoint/twice", "%s: tensor %q is also in %s", path, n, filepath.Base(other.label))
				continue
			}
			if _, listed := index[n]; index != nil && !listed {
				errs.Addf(nil, "checkpoint/unlisted", "%s: tensor %q is not listed by the index", path, n)
			}
			d.where[n] = s
			d.names = append(d.names, n)
		}
	}
	for n, f := range index {
		if s := opened[f]; s != nil {
			if _, ok := s.entries[n]; !ok {
				errs.Addf(nil, "checkpoint/lacks", "%s: shard %s has no tensor %q, which the index lists in it", d.label, f, n)
			}
		}
	}
	return errs.Err()
}

// checkpointFiles chooses the safetensors files of dir, sorted, and the index, nil without one.
func checkpointFiles(dir string) (files []string, index map[string]string, err error) {
	for _, n := range indexNames {
		index, err := readIndexFile(filepath.Join(dir, n))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		for _, f := range index {
			files = append(files, f)
		}
		slices.Sort(files)
		return slices.Compact(files), index, nil
	}
	for _, n := range singleNames {
		if _, err := os.Stat(filepath.Join(dir, n)); err == nil {
			return []string{n}, nil, nil
		}
	}
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return nil, nil, err
	}
	pickled := ""
	for _, e := range entries {
		switch n := e.Name(); {
		case e.IsDir():
		case strings.HasSuffix(n, ".safetensors"):
			files = append(files, n)
		case strings.HasSuffix(n, ".bin"), strings.HasSuffix(n, ".pth"), strings.HasSuffix(n, ".ckpt"):
			pickled = n
		}
	}
	if len(files) == 0 && pickled != "" {
		return nil, nil, fmt.Errorf("%s: only pickled weights (%s), wanted safetensors: save the model again with safe_serialization=True", dir, pickled)
	}
	if len(files) == 0 {
		return nil, nil, fmt.Errorf("%s: no safetensors file, wanted a checkpoint directory with %s or %s", dir, singleNames[0], indexNames[0])
	}
	return files, nil, nil
}

// readIndexFile reads an index's weight_map. Shards must be in the index's own directory.
func readIndexFile(path string) (map[string]string, error) {
	data, err := mmap.ReadFile(path, maxIndex)
	if err != nil {
		return nil, err
	}
	return parseIndex(path, data)
}

func parseIndex(path string, data []byte) (map[string]string, error) {
	var top struct {
		WeightMap json.RawMessage `json:"weight_map"`
	}
	if err := json.Unmarshal(data, &top); err != nil {
		return nil, fmt.Errorf("%s: %w", path, jsonerr.Describe(err))
	}
	if len(top.WeightMap) == 0 {
		return nil, fmt.Errorf("%s: no weight_map, wanted the index of a checkpoint", path)
	}
	var errs diag.List
	out := make(map[string]string)
	err := eachField(top.WeightMap, func(name string, raw json.RawMessage) error {
		var file string
		if err := json.Unmarshal(raw, &file); err != nil {
			return fmt.Errorf("tensor %q: %w", name, jsonerr.Describe(err))
		}
		if file == "" || file == "." || file == ".." || strings.ContainsAny(file, `/\`) {
			errs.Addf(nil, "checkpoint/index", "%s: tensor %q is in file %q, wanted a file beside the index", path, name, file)
			return nil
		}
		out[name] = file
		return nil
	}, func(name string) { errs.Addf(nil, "checkpoint/index", "%s: tensor %q is listed twice", path, name) })
	if err != nil {
		return nil, fmt.Errorf("%s: weight_map: %w", path, err)
	}
	if len(errs) > 0 {
		return nil, errs.Err()
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: weight_map is empty", path)
	}
	return out, nil
}

func count(index map[string]string, file string) int {
	n := 0
	for _, f := range index {
		if f == file {
			n++
		}
	}
	return n
}
