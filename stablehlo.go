package tpuc

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"tpuc/frontend/stablehlo"
	"tpuc/internal/mmap"
)

// stableHLONames are the extensions of StableHLO, text or bytecode.
var stableHLONames = []string{".mlir", ".stablehlo", ".mlirbc", ".bytecode"}

// maxStableHLO bounds StableHLO, whose literals may hold weights.
const maxStableHLO = 512 << 20

// isStableHLO tells MLIR by its file's name or its contents.
func isStableHLO(path string) bool {
	if slices.ContainsFunc(stableHLONames, func(ext string) bool { return strings.HasSuffix(path, ext) }) {
		return true
	}
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return stablehlo.IsModule(f, st.Size())
}

// readStableHLO imports the module at path.
func readStableHLO(path string) (*stablehlo.Program, error) {
	data, err := mmap.ReadFile(path, maxStableHLO)
	if err != nil {
		return nil, err
	}
	return stablehlo.Import(path, data)
}

func (m *Model) loadStableHLO(path string, shapes Shapes) error {
	if len(shapes.Dims) > 0 {
		return fmt.Errorf("%s has no symbolic dimensions: the shapes of StableHLO are fixed", path)
	}
	p, err := readStableHLO(path)
	if err != nil {
		return err
	}
	m.Kind, m.Module, m.Notes = "stablehlo", p.Module, p.Notes
	for i, v := range p.Module.Func.Params {
		m.Inputs = append(m.Inputs, Port{Name: p.Inputs[i], Ordinal: i, Type: v.Type})
	}
	for i, v := range p.Module.Func.Results {
		m.Outputs = append(m.Outputs, Port{Name: p.Outputs[i], Ordinal: i, Type: v.Type})
	}
	return nil
}
