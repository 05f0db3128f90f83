package tpuc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"tpuc/frontend/pt2"
	"tpuc/frontend/weights"
	"tpuc/ir"
	"tpuc/ir/diag"
	"tpuc/ir/op"
	"tpuc/ir/text"
	"tpuc/tpu/artifact"
)

// Kinds of files that Inspect knows.
const (
	KindArchive   = "archive"   // of torch.export
	KindText      = "text"      // module in textual form
	KindStableHLO = "stablehlo" // StableHLO, as text or bytecode
	KindArtifact  = "artifact"  // of tpuc compile
	KindWeights   = "weights"   // safetensors, npz, or a checkpoint folder
)

// Inspection says what is inside a file. Which fields are set depends on the kind.
type Inspection struct {
	File string `json:"file"`
	Kind string `json:"kind"`
	Size int64  `json:"bytes,omitempty"` // of the file; 0 for a folder

	Torch      string   `json:"torch,omitempty"`      // version that wrote the archive
	Schema     string   `json:"schema,omitempty"`     // version of the archive's graph
	Decomposed bool     `json:"decomposed,omitempty"` // the graph is in core ATen
	Symbols    []Symbol `json:"symbols,omitempty"`    // symbolic dimensions
	Inputs     []Leaf   `json:"inputs,omitempty"`
	Outputs    []Leaf   `json:"outputs,omitempty"`

	State    []Stored  `json:"state,omitempty"`   // tensors that a call changes
	Classes  []Class   `json:"classes,omitempty"` // of weights, each counted once whatever its names
	Largest  []Stored  `json:"largest,omitempty"` // weights, largest first
	Tensors  []Stored  `json:"tensors,omitempty"` // all, of a file of weights
	Ops      []OpCount `json:"ops,omitempty"`
	Notes    []string  `json:"notes,omitempty"`    // what the front end left out
	Problems []string  `json:"problems,omitempty"` // why the model cannot be imported with its example's sizes

	Manifest *artifact.Manifest `json:"manifest,omitempty"`
	Sections []artifact.File    `json:"sections,omitempty"`
	Verified bool               `json:"verified,omitempty"` // every byte of the artifact was checked, as asked for

	IR string `json:"ir,omitempty"` // text of the module or, of an artifact, StableHLO; only when asked for
}

// Symbol is a symbolic dimension.
type Symbol struct {
	Name  string   `json:"name"`
	Min   int64    `json:"min"`
	Max   *int64   `json:"max,omitempty"`  // none: unbounded
	Hint  int64    `json:"hint,omitempty"` // size in the export's example
	Where []string `json:"where,omitempty"`
}

// Leaf is a flattened input or output, with symbolic dimensions.
type Leaf struct {
	Name    string   `json:"name,omitempty"`
	Path    string   `json:"path,omitempty"`
	Ordinal int      `json:"ordinal"`
	Kind    string   `json:"kind"` // "tensor", "number" or "other"
	DType   string   `json:"dtype,omitempty"`
	Dims    []string `json:"dims,omitempty"`
	Value   string   `json:"value,omitempty"` // of what is no tensor
}

// Stored is a tensor of a file.
type Stored struct {
	Name  string   `json:"name"`
	Names []string `json:"other_names,omitempty"`
	Class string   `json:"class,omitempty"`
	Type  string   `json:"type"`
	Bytes int64    `json:"bytes"`
}

// Class counts the weights of one class.
type Class struct {
	Class  string `json:"class"` // "parameter", "buffer" or "constant"
	Count  int    `json:"count"`
	Bytes  int64  `json:"bytes"`
	Absent int    `json:"absent,omitempty"` // of Count: without their bytes in the file
}

// OpCount is how often an operator occurs.
type OpCount struct {
	Op          string `json:"op"`
	Count       int    `json:"count"`
	Unsupported bool   `json:"unsupported,omitempty"`
}

// InspectOptions ask for more than an overview.
type InspectOptions struct {
	IR     bool             // the module's text
	Verify bool             // of an artifact: check every byte
	Dims   map[string]int64 // sizes of symbolic dimensions for it; nil: the export's example
	Custom *pt2.CustomOps   // functions for operators that torch does not define; may be nil
}

// Inspect looks into the file or checkpoint folder at path. It needs no plugin, and a model that cannot be compiled is no error.
func Inspect(ctx context.Context, path string, o InspectOptions) (*Inspection, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	s := &Inspection{File: path, Size: st.Size()}
	switch {
	case st.IsDir():
		s.Size = 0
		err = s.weights(path)
	case strings.HasSuffix(path, ".tpu") || isStableHLO(path):
		err = s.text(ctx, path, o)
	case isArtifact(path):
		err = s.artifact(path, o)
	case isArchive(path):
		err = s.archive(ctx, path, o)
	default:
		err = s.weights(path)
	}
	if err != nil {
		return nil, err
	}
	if o.Verify && s.Kind != KindArtifact {
		return nil, fmt.Errorf("%s is no artifact: only an artifact's bytes can be verified", path)
	}
	if o.IR && s.Kind == KindWeights {
		return nil, fmt.Errorf("%s holds tensors and no program: there is no text to show", path)
	}
	return s, nil
}

// isArchive tells archives from other zip files, by name where it says so.
func isArchive(path string) bool {
	if strings.HasSuffix(path, ".pt2") || strings.HasSuffix(path, ".pt2.gz") {
		return true
	}
	src, err := weights.Open(path)
	if err != nil {
		return false
	}
	defer src.Close()
	_, ok := src.(*weights.Archive)
	return ok
}

func (s *Inspection) archive(ctx context.Context, path string, o InspectOptions) (err error) {
	p, err := pt2.Open(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	p.SetCustomOps(o.Custom)
	s.Kind, s.Torch, s.Schema, s.Decomposed = KindArchive, p.TorchVersion, fmt.Sprintf("%d.%d", p.Schema[0], p.Schema[1]), p.Decomposed
	for _, y := range p.Symbols {
		out := Symbol{Name: y.Name, Min: y.Min, Hint: y.Hint, Where: y.Where}
		if y.Max != math.MaxInt64 {
			out.Max = &y.Max
		}
		s.Symbols = append(s.Symbols, out)
	}
	s.Inputs, s.Outputs = leaves(p.Inputs), leaves(p.Outputs)
	for _, c := range p.Ops() {
		s.Ops = append(s.Ops, OpCount{strings.TrimPrefix(c.Target, "torch.ops."), c.Count, !c.Supported})
	}
	s.stored(p.Weights())
	return s.imported(ctx, p, o)
}

// imported adds what only an import finds out: state, and what stands in the way.
func (s *Inspection) imported(ctx context.Context, p *pt2.Program, o InspectOptions) error {
	bind := p.Hints
	if o.Dims != nil {
		bind = func() (pt2.Binding, error) { return p.Bind(o.Dims) }
	}
	bound, err := bind()
	if err != nil {
		if o.IR || o.Dims != nil {
			return located(s.File, err)
		}
		s.Problems = problems(err)
		return nil
	}
	im, err := p.Import(ctx, bound)
	switch {
	case err == nil:
		s.module(im.Module, o)
	case o.IR || diag.IsBug(err) || ctx.Err() != nil:
		return located(s.File, err)
	default:
		s.Problems = problems(err)
	}
	return nil
}

// problems are the first lines of an error's parts: where, and what.
func problems(err error) []string {
	var list diag.List
	if !errors.As(err, &list) {
		return []string{err.Error()}
	}
	out := make([]string, len(list))
	for i, e := range list {
		out[i], _, _ = strings.Cut(e.Error(), "\n")
	}
	return out
}

// module adds what a module says: state, and its text if asked for.
func (s *Inspection) module(m *ir.Module, o InspectOptions) {
	for _, u := range m.Func.Updates {
		if w := u.Target.Weight; w != nil {
			s.State = append(s.State, storedWeight(w))
		} else {
			s.State = append(s.State, Stored{Name: u.Target.Name, Class: "input", Type: u.Target.Type.String(), Bytes: u.Target.Type.Bytes()})
		}
	}
	if o.IR {
		s.IR = text.Print(m)
	}
}

func storedWeight(w *ir.Weight) Stored {
	out := Stored{Name: w.Sym, Class: className(w.Class), Type: w.Value.Type.String(), Bytes: w.Value.Type.Bytes()}
	if len(w.Names) > 0 {
		out.Name, out.Names = w.Names[0], w.Names[1:]
	}
	return out
}

func className(c ir.Class) string { return [...]string{"parameter", "buffer", "constant"}[c] }

// mostShown is how many of the largest weights are kept.
const mostShown = 10

// stored counts the archive's tensors. Equal views of one storage are one tensor with several names.
func (s *Inspection) stored(a *weights.Archive) {
	var classes [3]Class
	for c := range classes {
		classes[c].Class = className(ir.Class(c))
	}
	first := make(map[string]int)
	var all []Stored
	for _, t := range a.Tensors() {
		if view := t.View(); view != "" {
			if at, ok := first[view]; ok {
				if all[at].Name != t.Name && !slices.Contains(all[at].Names, t.Name) {
					all[at].Names = append(all[at].Names, t.Name)
				}
				continue
			}
			first[view] = len(all)
		}
		class := ir.Buffer
		switch {
		case t.IsParam:
			class = ir.Parameter
		case t.Section == "constants":
			class = ir.Constant
		}
		x := Stored{Name: t.Name, Class: className(class), Type: "unreadable"}
		if t.Err == nil {
			x.Type, x.Bytes = t.Type.String(), t.Type.Bytes()
		}
		classes[class].Count++
		classes[class].Bytes += x.Bytes
		if t.Absent {
			classes[class].Absent++
		}
		all = append(all, x)
	}
	s.Classes = slices.DeleteFunc(classes[:], func(c Class) bool { return c.Count == 0 })
	s.Largest = largest(all)
}

func largest(all []Stored) []Stored {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Stored) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return all[:min(len(all), mostShown)]
}

func (s *Inspection) text(ctx context.Context, path string, o InspectOptions) error {
	m, err := Load(ctx, path, Shapes{Dims: o.Dims})
	if err != nil {
		return err
	}
	s.Kind, s.Notes = m.Kind, m.Notes
	port := func(p Port) Leaf {
		l := Leaf{Name: p.Name, Ordinal: p.Ordinal, Kind: string(pt2.Tensor), DType: p.Type.DType.String(), Dims: []string{}}
		for _, d := range p.Type.Dims {
			l.Dims = append(l.Dims, fmt.Sprint(d))
		}
		return l
	}
	for _, p := range m.Inputs {
		s.Inputs = append(s.Inputs, port(p))
	}
	for _, p := range m.Outputs {
		s.Outputs = append(s.Outputs, port(p))
	}
	var classes [3]Class
	var all []Stored
	for _, w := range m.Module.Weights {
		c := &classes[w.Class]
		c.Class, c.Count, c.Bytes = className(w.Class), c.Count+1, c.Bytes+w.Value.Type.Bytes()
		all = append(all, storedWeight(w))
	}
	s.Classes = slices.DeleteFunc(classes[:], func(c Class) bool { return c.Count == 0 })
	s.Largest = largest(all)
	counts := make(map[string]int)
	for _, f := range m.Module.Functions() {
		for _, n := range f.Body {
			name := n.Op.Name
			if a, ok := n.Attr.(op.OpaqueAttr); ok {
				name += " " + a.Name
			}
			if counts[name] == 0 {
				s.Ops = append(s.Ops, OpCount{Op: name})
			}
			counts[name]++
		}
	}
	for i := range s.Ops {
		s.Ops[i].Count = counts[s.Ops[i].Op]
	}
	slices.SortFunc(s.Ops, func(a, b OpCount) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Op, b.Op)) })
	s.module(m.Module, o)
	return m.Close()
}

func (s *Inspection) artifact(path string, o InspectOptions) error {
	a, err := artifact.Open(path)
	if err != nil {
		return err
	}
	s.Kind, s.Sections = KindArtifact, a.Sections
	m := a.Manifest
	s.Manifest = &m
	if o.Verify {
		if err := a.Verify(); err != nil {
			return errors.Join(err, a.Close())
		}
		s.Verified = true
	}
	for i := range m.Programs {
		if !o.IR {
			break
		}
		program, err := a.Section(artifact.ProgramSection(i))
		if err != nil {
			return errors.Join(err, a.Close())
		}
		s.IR += string(program)
	}
	return a.Close()
}

func (s *Inspection) weights(path string) error {
	src, err := weights.Open(path)
	if err != nil {
		return err
	}
	s.Kind = KindWeights
	for _, name := range src.Names() {
		x := Stored{Name: name, Type: "unreadable"}
		if t, err := src.Type(name); err == nil {
			x.Type, x.Bytes = t.String(), t.Bytes()
		}
		s.Tensors = append(s.Tensors, x)
	}
	return src.Close()
}

func leaves(list []pt2.Leaf) []Leaf {
	out := []Leaf{}
	for _, l := range list {
		x := Leaf{Name: l.Name, Path: l.Path, Ordinal: l.Ordinal, Kind: string(l.Kind), Value: l.Value}
		if l.Kind == pt2.Tensor {
			x.DType, x.Dims = l.DType.String(), []string{}
			for _, d := range l.Dims {
				x.Dims = append(x.Dims, d.String())
			}
		}
		out = append(out, x)
	}
	return out
}
