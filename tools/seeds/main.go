// Command seeds writes testdata/seeds from archives of torch.export: the same entries, but the tensors' bytes are left out, as for a model
// saved without weights, and most of the nodes' stack traces. It takes the folder of cases, whose first/*/*.pt2 it reads, and the folder to write to:
//
//	go run ./tools/seeds "$TPUC_CASES" testdata/seeds
package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: seeds CASES OUTPUT")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(cases, out string) error {
	files, err := filepath.Glob(filepath.Join(cases, "first", "*", "*.pt2"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("%s holds no first/*/*.pt2: %w", cases, err)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		name := filepath.Base(f)
		if dir := filepath.Base(filepath.Dir(f)); dir != "versions" {
			name = dir + "." + name
		}
		data, err := strip(f)
		if err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
		if err := os.WriteFile(filepath.Join(out, name+".gz"), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// strip gives the archive without payloads, gzipped.
func strip(file string) ([]byte, error) {
	r, err := zip.OpenReader(file)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var b bytes.Buffer
	g, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	z := zip.NewWriter(g)
	for _, f := range r.File {
		data, err := read(f)
		if err != nil {
			return nil, err
		}
		base, folder := path.Base(f.Name), path.Base(path.Dir(f.Name))
		switch {
		case folder == "sample_inputs", strings.HasSuffix(base, "example_inputs.pt"), folder == "extra", folder == ".data":
			continue
		case (folder == "weights" || folder == "constants") && !strings.HasSuffix(base, ".json") && !strings.HasSuffix(base, ".pt"):
			if !strings.HasSuffix(base, "_0") {
				continue
			}
			data = nil // the one storage that is left
		case strings.HasSuffix(base, "_config.json"):
			data, err = rewrite(data, func(o map[string]any) {
				if p, ok := o["path_name"].(string); ok {
					o["path_name"] = p[:strings.LastIndexByte(p, '_')] + "_0"
				}
			})
		case strings.HasSuffix(base, ".json"):
			nodes := 0
			data, err = rewrite(data, func(o map[string]any) {
				if m, ok := o["metadata"].(map[string]any); ok && o["target"] != nil {
					if nodes++; nodes%40 != 1 {
						m = map[string]any{}
					}
					delete(m, "from_node")
					o["metadata"] = m
				}
			})
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: f.Name, Method: zip.Store})
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(data); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	if err := g.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func read(f *zip.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// rewrite calls change for every object of a document.
func rewrite(data []byte, change func(map[string]any)) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var doc any
	if err := d.Decode(&doc); err != nil {
		return nil, err
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			change(v)
			for _, e := range v {
				walk(e)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	// Nodes are counted in their list's order; no other object has a target, so the order of maps is of no account.
	walk(doc)
	return json.Marshal(doc)
}
