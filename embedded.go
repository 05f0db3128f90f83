package tpuc

import (
	"fmt"
	"slices"

	"tpuc/frontend/weights"
	"tpuc/ir"
	"tpuc/ir/tensor"
	"tpuc/ir/weight"
	"tpuc/tpu/artifact"
)

// embedded gives the tensors of a checkpoint that an artifact embeds, as the checkpoint has them: those that lie in another order are put back.
type embedded struct {
	a     *artifact.Artifact
	names []string
	at    map[string]embeddedTensor
}

// embeddedTensor is one of them, or what there is of it.
type embeddedTensor struct {
	artifact.Weight
	expr weight.Expr
}

// embeddedWeights are those of a, which must stay open as long as they; nil where it embeds none.
func embeddedWeights(a *artifact.Artifact) (*embedded, error) {
	e := &embedded{a: a, at: make(map[string]embeddedTensor)}
	for _, w := range slices.Concat(a.Manifest.Weights, a.Manifest.State) {
		if w.Section == "" || w.Class == ir.Constant.String() {
			continue
		}
		expr, err := w.Source()
		if err != nil {
			return nil, fmt.Errorf("%s: the source of %s %q: %w", a.Path(), w.Class, w.Name, err)
		}
		t, ok := weight.Leaf(expr).(weight.Tensor)
		if !ok {
			continue
		}
		for _, name := range append([]string{t.Name}, w.Names...) {
			if _, twice := e.at[name]; !twice {
				e.names = append(e.names, name)
				e.at[name] = embeddedTensor{w, expr}
			}
		}
	}
	if len(e.names) == 0 {
		return nil, nil
	}
	return e, nil
}

// openWeights opens a file or folder of weights, an artifact that embeds them too.
func openWeights(path string) (weights.Source, error) {
	if !isArtifact(path) {
		return weights.Open(path)
	}
	a, err := artifact.Open(path)
	if err != nil {
		return nil, err
	}
	e, err := embeddedWeights(a)
	if err == nil && e == nil {
		from := ""
		if c := a.Manifest.Checkpoint; c != nil {
			from = " (" + c.Name + ")"
		}
		err = fmt.Errorf("%s is an artifact that embeds no weights: name the checkpoint that it was compiled with%s, or compile it with --embed-weights", path, from)
	}
	if err != nil {
		a.Close()
		return nil, err
	}
	return ownEmbedded{e}, nil
}

// ownEmbedded closes the artifact too.
type ownEmbedded struct{ *embedded }

// Close implements weights.Source.
func (e ownEmbedded) Close() error { return e.a.Close() }

// Label implements weights.Source.
func (e *embedded) Label() string { return e.a.Path() }

// Names implements weights.Source.
func (e *embedded) Names() []string { return slices.Clone(e.names) }

// Type implements weights.Source.
func (e *embedded) Type(name string) (tensor.Type, error) {
	x, ok := e.at[name]
	if !ok {
		return tensor.Type{}, fmt.Errorf("%s: %q: %w", e.a.Path(), name, weights.ErrNoTensor)
	}
	return weight.Leaf(x.expr).Type(), nil
}

// Load implements weights.Source.
func (e *embedded) Load(name string) (*tensor.Tensor, error) {
	if _, err := e.Type(name); err != nil {
		return nil, err
	}
	x := e.at[name]
	t, err := e.a.Tensor(x.Weight)
	if err != nil {
		return nil, err
	}
	whole, ok, err := weight.Undo(x.expr, t)
	if err == nil && !ok {
		err = fmt.Errorf("%s holds no more of tensor %q than %s: name the checkpoint", e.a.Path(), name, x.expr)
	}
	return whole, err
}

// Close implements weights.Source: the artifact is somebody else's.
func (e *embedded) Close() error { return nil }
