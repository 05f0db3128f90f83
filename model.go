package tpuc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"tpuc/frontend/pt2"
	"tpuc/frontend/weights"
	"tpuc/internal/mmap"
	"tpuc/ir"
	"tpuc/ir/diag"
	"tpuc/ir/tensor"
	"tpuc/ir/text"
	"tpuc/tpu/artifact"
	"tpuc/tpu/chip"
)

// Model is a model with fixed shapes, ready for the passes. Close it after the last use of its module.
type Model struct {
	Name    string // base name without extensions
	Kind    string // "pt2", "text" or "stablehlo"
	Torch   string // version of torch that captured it; may be empty
	Module  *ir.Module
	Inputs  []Port
	Outputs []Port
	Numbers []artifact.Number // outputs that are no tensors
	Dims    pt2.Binding       // values of symbolic dimensions
	Symbols []artifact.Symbol // the symbolic dimensions and their ranges
	Weights weights.Source    // nil for text
	Notes   []string          // what the user should know, such as functions for operators that the model does not have
	program *pt2.Program
	origin  *artifact.Artifact // where the model was taken from one
}

// Port is a user input or output that is a tensor.
type Port struct {
	Name    string      `json:"name"`
	Path    string      `json:"path,omitempty"` // place in the model's call
	Ordinal int         `json:"ordinal"`        // place among all flattened leaves, those that are no tensors included: the i of input_<i>
	Type    tensor.Type `json:"type"`
	Open    []string    `json:"open,omitempty"` // its dimensions as the model has them: numbers and expressions of symbols; nil: all fixed
}

// Shapes says what a model leaves open: the values of symbolic dimensions, from the inputs' shapes where Inputs is not nil, and operators of its own.
type Shapes struct {
	Dims   map[string]int64                // by symbol or INPUT.DIM
	Inputs func([]Port) ([][]int64, error) // the shapes of the tensor inputs, whose types are not known yet
	Given  string                          // all that Inputs depends on beside the ports, for keys of the cache; empty: it cannot be said
	Custom *pt2.CustomOps                  // functions for operators that torch does not define; may be nil
}

// maxText bounds a module in textual form.
const maxText = 256 << 20

// Load opens the model at path: a torch.export archive (.pt2, .pt2.gz), a module in textual form (.tpu), StableHLO as text or bytecode (by
// its name or its contents), or an artifact (.tpuc) that holds the graph which it was compiled from.
func Load(ctx context.Context, path string, shapes Shapes) (*Model, error) {
	m := &Model{Name: ModelName(path)}
	if strings.HasSuffix(path, ".tpu") {
		return m, m.loadText(path, shapes)
	}
	if isStableHLO(path) {
		return m, m.loadStableHLO(path, shapes)
	}
	p, origin, err := openProgram(ctx, path)
	if err != nil {
		return nil, err
	}
	m.program, m.origin = p, origin
	if origin != nil {
		m.Name = origin.Manifest.Model.Name
		if shapes.Custom == nil {
			shapes.Custom, err = customOpsOf(p)
		}
	}
	if err == nil {
		err = m.importProgram(ctx, p, shapes)
	}
	if err != nil {
		m.Close()
		return nil, located(path, err)
	}
	return m, nil
}

// openProgram opens an archive, or the graph that an artifact holds; close the artifact after the program.
func openProgram(ctx context.Context, path string) (*pt2.Program, *artifact.Artifact, error) {
	if !isArtifact(path) {
		p, err := pt2.Open(ctx, path)
		return p, nil, err
	}
	a, err := artifact.Open(path)
	if err != nil {
		return nil, nil, err
	}
	p, err := openGraph(ctx, a)
	if err != nil {
		return nil, nil, errors.Join(err, a.Close())
	}
	return p, a, nil
}

func openGraph(ctx context.Context, a *artifact.Artifact) (*pt2.Program, error) {
	if !a.Has(artifact.GraphSection) {
		return nil, fmt.Errorf("%s holds no graph to compile other programs from (its model is of kind %s): give the model", a.Path(), a.Manifest.Model.Kind)
	}
	data, err := a.Section(artifact.GraphSection)
	if err != nil {
		return nil, err
	}
	return pt2.OpenReduced(ctx, a.Path(), data, a.Constant)
}

// DefaultTarget is what the file at path is compiled for where nothing else is said: an artifact's own target, otherwise the CPU.
func DefaultTarget(path string) (chip.Target, error) {
	if !isArtifact(path) {
		return chip.Target{}, nil
	}
	a, err := artifact.Open(path)
	if err != nil {
		return chip.Target{}, err
	}
	t, err := chip.Parse(a.Manifest.Target.Name)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return t, errors.Join(err, a.Close())
}

// customOpsOf are the functions for operators that an artifact was compiled with.
func customOpsOf(p *pt2.Program) (*pt2.CustomOps, error) {
	source, err := p.Weights().CustomOps()
	if err != nil || source == nil {
		return nil, err
	}
	return parseCustomOps("custom_ops.tpu", string(source))
}

// Close releases the model's file. Constants of its module are gone then.
func (m *Model) Close() error {
	var err error
	if m.program != nil {
		err = m.program.Close()
	}
	if m.origin != nil {
		err = errors.Join(err, m.origin.Close())
	}
	return err
}

func (m *Model) loadText(path string, shapes Shapes) error {
	if len(shapes.Dims) > 0 {
		return fmt.Errorf("%s has no symbolic dimensions: the shapes of a module in textual form are fixed", path)
	}
	data, err := mmap.ReadFile(path, maxText)
	if err != nil {
		return err
	}
	m.Kind = "text"
	if shapes.Custom != nil {
		return fmt.Errorf("%s is a module in textual form, which has no operators of torch: --custom-ops is for archives", path)
	}
	if m.Module, err = text.Parse(path, string(data)); err != nil {
		return err
	}
	for i, p := range m.Module.Func.Params {
		m.Inputs = append(m.Inputs, Port{Name: p.Name, Ordinal: i, Type: p.Type})
	}
	for i, r := range m.Module.Func.Results {
		m.Outputs = append(m.Outputs, Port{Name: fmt.Sprintf("output_%d", i), Ordinal: i, Type: r.Type})
	}
	return nil
}

func (m *Model) importProgram(ctx context.Context, p *pt2.Program, shapes Shapes) error {
	bound, err := bind(p, shapes)
	if err != nil {
		return err
	}
	p.SetCustomOps(shapes.Custom)
	im, err := p.Import(ctx, bound)
	if err != nil {
		return err
	}
	m.Notes = p.UnusedCustomOps()
	m.Kind, m.Torch, m.Module, m.Dims = "pt2", p.TorchVersion, im.Module, im.Binding
	m.Inputs, m.Outputs = ports(im.Inputs), ports(im.Outputs)
	m.Numbers = numbers(im)
	for _, y := range p.Symbols {
		out := artifact.Symbol{Name: y.Name, Min: y.Min}
		if y.Max != math.MaxInt64 {
			out.Max = &y.Max
		}
		m.Symbols = append(m.Symbols, out)
	}
	if m.origin == nil {
		m.Weights = p.Weights()
	}
	return nil
}

// numbers are the outputs that are no tensors.
func numbers(im *pt2.Imported) []artifact.Number {
	var out []artifact.Number
	for _, l := range im.Outputs {
		if l.Kind == pt2.Number {
			out = append(out, artifact.Number{Name: l.Name, Path: l.Path, Ordinal: l.Ordinal, Value: l.Value})
		}
	}
	return out
}

func bind(p *pt2.Program, shapes Shapes) (pt2.Binding, error) {
	if shapes.Inputs == nil || len(p.Symbols) == 0 || len(shapes.Dims) > 0 {
		return p.Bind(shapes.Dims)
	}
	var tensors []Port
	for _, l := range p.Inputs {
		if l.Kind == pt2.Tensor {
			tensors = append(tensors, Port{Name: l.Name, Path: l.Path, Ordinal: l.Ordinal})
		}
	}
	dims, err := shapes.Inputs(tensors)
	if err != nil {
		return nil, err
	}
	return p.BindShapes(dims)
}

func ports(leaves []pt2.BoundLeaf) []Port {
	var out []Port
	for _, l := range leaves {
		if l.Kind == pt2.Tensor {
			p := Port{Name: l.Name, Path: l.Path, Ordinal: l.Ordinal, Type: l.Type, Open: make([]string, len(l.Dims))}
			for i, d := range l.Dims {
				p.Open[i] = d.String()
			}
			out = append(out, p)
		}
	}
	return out
}

// digest is the hex SHA-256 that names the model, which was loaded from path: of an archive of all but the weights' bytes, which their checksums stand
// for, of text of its bytes. A model that was taken from an artifact has that one's.
func (m *Model) digest(path string) (string, error) {
	switch {
	case m.origin != nil:
		return m.origin.Manifest.Model.SHA256, nil
	case m.program != nil:
		return m.program.Weights().ModelDigest(false)
	}
	return bytesDigest(path)
}

// dims are the symbolic dimensions, sorted by name.
func (m *Model) dims() []artifact.Dim {
	var out []artifact.Dim
	for _, name := range slices.Sorted(maps.Keys(m.Dims)) {
		out = append(out, artifact.Dim{Name: name, Value: m.Dims[name]})
	}
	return out
}

// isArtifact tells artifacts by their first bytes, and what should be one by its name.
func isArtifact(path string) bool {
	return strings.HasSuffix(path, ".tpuc") || artifact.IsArtifact(path)
}

// ModelName is the base name of a model's file without the extensions of models.
func ModelName(path string) string {
	name := filepath.Base(path)
	for _, ext := range append([]string{".gz", ".pt2", ".tpu"}, stableHLONames...) {
		name = strings.TrimSuffix(name, ext)
	}
	return name
}

// located puts the file's name before an error about its contents, on a line of its own before a list.
func located(path string, err error) error {
	if _, ok := err.(diag.List); ok {
		return fmt.Errorf("%s:\n%w", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}
