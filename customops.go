package tpuc

import (
	"crypto/sha256"
	"encoding/hex"
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
	return parseCustomOps(filepath.Base(path), string(data))
}

func parseCustomOps(name, source string) (*pt2.CustomOps, error) {
	funcs, err := text.ParseLibrary(name, source)
	if err != nil {
		return nil, err
	}
	list := make([]pt2.CustomOp, len(funcs))
	for i, f := range funcs {
		list[i] = pt2.CustomOp{Func: f.Func, Loc: f.Loc}
	}
	ops, err := pt2.NewCustomOps(list)
	if err != nil {
		return nil, err
	}
	ops.Text = source
	sum := sha256.Sum256([]byte(source))
	ops.Digest = name + " " + hex.EncodeToString(sum[:]) // notes name the file
	return ops, nil
}
