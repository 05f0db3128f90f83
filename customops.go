package tpuc

import (
	"path/filepath"

	"tpuc/frontend/pt2"
	"tpuc/internal/mmap"
	"tpuc/ir/text"
)

// LoadCustomOps reads functions for the operators of users from a file in textual form; docs/custom-ops.md describes it. An empty path is no
// functions. Errors name lines of the file, all at once.
func LoadCustomOps(path string) (*pt2.CustomOps, error) {
	if path == "" {
		return nil, nil
	}
	data, err := mmap.ReadFile(path, maxText)
	if err != nil {
		return nil, err
	}
	funcs, err := text.ParseLibrary(filepath.Base(path), string(data))
	if err != nil {
		return nil, err
	}
	list := make([]pt2.CustomOp, len(funcs))
	for i, f := range funcs {
		list[i] = pt2.CustomOp{Func: f.Func, Loc: f.Loc}
	}
	return pt2.NewCustomOps(list)
}
