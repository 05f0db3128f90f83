package pt2

import (
	"encoding/json"
	"fmt"
	"strconv"

	"tpuc/frontend/weights"
	"tpuc/ir/tensor"
)

// LeafKind says what a flattened input or output is.
type LeafKind string

// Leaf kinds. Only tensors are parameters and results of the module.
const (
	Tensor LeafKind = "tensor"
	Number LeafKind = "number"
	Other  LeafKind = "other" // None, a string, or another Python constant
)

// Leaf is one flattened user input or output.
type Leaf struct {
	Name    string // the graph's name, such as "input_ids"
	Path    string // where in args and kwargs, or in the result, such as "[1]['input_ids']"; empty for a lone result
	Ordinal int    // its place among all flattened leaves: the i of input_<i> and output_<i>
	Kind    LeafKind
	DType   tensor.DType // of a Tensor
	Dims    []Dim        // of a Tensor
	Value   string       // of the others, as text; a symbolic number as its expression
}

// Dim is one dimension of an input or output.
type Dim struct {
	Size int64  // where it is fixed, otherwise -1
	Expr string // where it is symbolic, such as "2*s77"
	expr *expr
}

func (d Dim) String() string {
	if d.expr == nil {
		return strconv.FormatInt(d.Size, 10)
	}
	return d.Expr
}

// readSignature fills in the flattened inputs and outputs.
func (p *Program) readSignature() error {
	gm := &p.ep.GraphModule
	var inSpec, outSpec string
	for _, e := range gm.ModuleCallGraph {
		if e.FQN == "" && e.Signature != nil {
			inSpec, outSpec = e.Signature.InSpec, e.Signature.OutSpec
			break
		}
	}
	for _, s := range gm.Signature.Inputs {
		switch {
		case s.UserInput != nil:
			leaf, err := p.leaf(&s.UserInput.Arg)
			if err != nil {
				return fmt.Errorf("input %d: %w", len(p.Inputs), err)
			}
			p.Inputs = append(p.Inputs, leaf)
		case s.ConstantInput != nil:
			p.Inputs = append(p.Inputs, Leaf{Name: s.ConstantInput.Name, Kind: Other, Value: clip(string(s.ConstantInput.Value))})
		}
	}
	for _, s := range gm.Signature.Outputs {
		var leaf Leaf
		var err error
		switch {
		case s.UserOutput != nil:
			leaf, err = p.leaf(&s.UserOutput.Arg)
		case s.LossOutput != nil:
			leaf, err = p.leaf(&argument{Tensor: &s.LossOutput.Arg})
		default:
			continue
		}
		if err != nil {
			return fmt.Errorf("output %d: %w", len(p.Outputs), err)
		}
		p.Outputs = append(p.Outputs, leaf)
	}
	if p.ep.SchemaVersion.Major == schemaOld {
		p.dropMutated(outSpec)
	}
	numberLeaves(p.Inputs, inSpec)
	numberLeaves(p.Outputs, outSpec)
	return nil
}

// dropMutated takes the new contents of buffers out of the user outputs, where torch 2.5 writes them a second time before those that
// the model returns: there are then more outputs than the specification has leaves.
func (p *Program) dropMutated(spec string) {
	paths, ok := specPaths(spec)
	extra := len(p.Outputs) - len(paths)
	if !ok || extra <= 0 {
		return
	}
	mutated := make(map[string]bool)
	for _, s := range p.ep.GraphModule.Signature.Outputs {
		if s.BufferMutation != nil {
			mutated[s.BufferMutation.Arg.Name] = true
		}
	}
	for _, l := range p.Outputs[:extra] {
		if !mutated[l.Name] {
			return
		}
	}
	p.Outputs = p.Outputs[extra:]
}

// leaf describes an argument of the signature.
func (p *Program) leaf(a *argument) (Leaf, error) {
	g := &p.ep.GraphModule.Graph
	switch {
	case a.Tensor != nil:
		meta, ok := g.TensorValues[a.Tensor.Name]
		if !ok {
			return Leaf{}, fmt.Errorf("the graph does not describe tensor %q", clip(a.Tensor.Name))
		}
		l := Leaf{Name: a.Tensor.Name, Kind: Tensor}
		var err error
		if l.DType, err = weights.TorchDType(meta.DType); err != nil {
			return Leaf{}, fmt.Errorf("tensor %q: %w", clip(a.Tensor.Name), err)
		}
		if l.Dims, err = p.dims(&meta); err != nil {
			return Leaf{}, fmt.Errorf("tensor %q: %w", clip(a.Tensor.Name), err)
		}
		return l, nil
	case a.SymInt != nil && a.SymInt.Name != nil:
		l := Leaf{Name: *a.SymInt.Name, Kind: Number, Value: *a.SymInt.Name}
		if v, ok := g.SymIntValues[l.Name]; ok && v.Expr != nil {
			e, err := p.parse(v.Expr.Expr)
			if err != nil {
				return Leaf{}, err
			}
			l.Value = e.String()
		}
		return l, nil
	case a.SymInt != nil && a.SymInt.Int != nil:
		return Leaf{Kind: Number, Value: strconv.FormatInt(*a.SymInt.Int, 10)}, nil
	case a.Int != nil:
		return Leaf{Kind: Number, Value: strconv.FormatInt(*a.Int, 10)}, nil
	case a.Float != nil:
		return Leaf{Kind: Number, Value: strconv.FormatFloat(float64(*a.Float), 'g', -1, 64)}, nil
	case a.Bool != nil:
		return Leaf{Kind: Number, Value: strconv.FormatBool(*a.Bool)}, nil
	case a.String != nil:
		return Leaf{Kind: Other, Value: strconv.Quote(*a.String)}, nil
	}
	return Leaf{Kind: Other, Value: a.kind()}, nil
}

// dims parses the sizes of a tensor.
func (p *Program) dims(meta *tensorMeta) ([]Dim, error) {
	out := make([]Dim, len(meta.Sizes))
	for i, s := range meta.Sizes {
		switch {
		case s.Int != nil && *s.Int >= 0:
			out[i] = Dim{Size: *s.Int}
		case s.Expr != nil:
			e, err := p.parse(s.Expr.Expr)
			if err != nil {
				return nil, err
			}
			out[i] = Dim{Size: -1, Expr: e.String(), expr: e}
		default:
			return nil, fmt.Errorf("dimension %d has no size", i)
		}
	}
	return out, nil
}

// numberLeaves sets ordinals, and paths where the specification's leaves are as many.
func numberLeaves(leaves []Leaf, spec string) {
	paths, ok := specPaths(spec)
	for i := range leaves {
		leaves[i].Ordinal = i
		if ok && len(paths) == len(leaves) {
			leaves[i].Path = paths[i]
		}
	}
}

// treeSpec is torch.utils._pytree's serialised TreeSpec, version 1: [1, node].
type treeSpec struct {
	Type     *string    `json:"type"` // nil: a leaf
	Context  any        `json:"context"`
	Children []treeSpec `json:"children_spec"`
}

// maxLeaves bounds the paths that are made for one specification.
const maxLeaves = 1 << 16

// specPaths gives the path of every leaf as torch.utils._pytree.keystr writes it.
func specPaths(spec string) ([]string, bool) {
	var parts []json.RawMessage
	var root treeSpec
	if json.Unmarshal([]byte(spec), &parts) != nil || len(parts) != 2 || json.Unmarshal(parts[1], &root) != nil {
		return nil, false
	}
	var out []string
	var walk func(t *treeSpec, path string) bool
	walk = func(t *treeSpec, path string) bool {
		if t.Type == nil {
			out = append(out, path)
			return len(out) <= maxLeaves
		}
		keys := contextKeys(t)
		for i := range t.Children {
			step := "[" + strconv.Itoa(i) + "]"
			if keys != nil {
				step = keys[i]
			}
			if !walk(&t.Children[i], path+step) {
				return false
			}
		}
		return true
	}
	ok := walk(&root, "")
	return out, ok
}

// contextKeys gives the names of a mapping's children: the context of a dict, and of the classes that behave like one, is a JSON
// list of the keys. It is nil for sequences and for classes whose context says something else.
func contextKeys(t *treeSpec) []string {
	s, ok := t.Context.(string)
	if !ok {
		return nil
	}
	var list []any
	if json.Unmarshal([]byte(s), &list) != nil {
		return nil
	}
	if len(list) != len(t.Children) {
		return nil
	}
	out := make([]string, len(list))
	for i, k := range list {
		switch k := k.(type) {
		case string:
			out[i] = "['" + k + "']"
		case float64:
			out[i] = "[" + strconv.FormatFloat(k, 'g', -1, 64) + "]"
		default:
			return nil
		}
	}
	return out
}
