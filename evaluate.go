package tpuc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"tpuc/frontend/weights"
	"tpuc/ir"
	"tpuc/ir/eval"
	"tpuc/ir/tensor"
	"tpuc/ir/weight"
	"tpuc/tpu/artifact"
	"tpuc/tpu/runtime"
)

// Evaluator is a Caller that runs a module on the reference evaluator: slow, exact about every dtype, and on any machine.
type Evaluator struct {
	model   *Model
	source  weights.Source // of weights; nil: the model's own
	state   map[*ir.Weight]*tensor.Tensor
	updated []*tensor.Tensor // one an update, of the last call
}

// NewEvaluator evaluates m, whose weights come from the checkpoint at path (see OpenOptions.Weights), or from the model's own file where path is empty: of
// an artifact what it embeds. Close it, not m.
func NewEvaluator(m *Model, path string) (*Evaluator, error) {
	e := &Evaluator{model: m, source: m.Weights, state: make(map[*ir.Weight]*tensor.Tensor)}
	switch {
	case path != "":
		src, err := openWeights(path)
		if err != nil {
			return nil, err
		}
		e.source = src
	case m.origin != nil:
		src, err := embeddedWeights(m.origin)
		if err != nil {
			return nil, err
		}
		if src != nil {
			e.source = src
		}
	}
	return e, nil
}

// Close closes the model and the checkpoint.
func (e *Evaluator) Close() error {
	var err error
	if e.source != nil && e.source != e.model.Weights {
		err = e.source.Close()
	}
	return errors.Join(err, e.model.Close())
}

// Ports implements Caller.
func (e *Evaluator) Ports() (inputs, outputs []artifact.Port) {
	return artifactPorts(e.model.Inputs), artifactPorts(e.model.Outputs)
}

// Numbers implements Caller.
func (e *Evaluator) Numbers() []artifact.Number { return e.model.Numbers }

// Call implements Caller. It cannot be interrupted within an operator.
func (e *Evaluator) Call(ctx context.Context, inputs []*tensor.Tensor) ([]*tensor.Tensor, error) {
	in, _ := e.Ports()
	if err := runtime.CheckInputs(in, inputs); err != nil {
		return nil, err
	}
	r, err := eval.Run(e.model.Module, inputs, eval.Options{Weights: func(w *ir.Weight) (*tensor.Tensor, error) {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		return e.contents(w)
	}})
	if err != nil {
		return nil, err
	}
	e.updated = r.Updates
	for i, u := range e.model.Module.Func.Updates {
		if u.Target.Weight != nil {
			e.state[u.Target.Weight] = r.Updates[i]
		}
	}
	return r.Outputs, nil
}

// Changed implements Caller.
func (e *Evaluator) Changed(context.Context) ([]Changed, error) {
	var out []Changed
	for i, x := range e.updated {
		target := e.model.Module.Func.Updates[i].Target
		if w := target.Weight; w != nil {
			out = append(out, Changed{append(slices.Clone(w.Names), w.Sym), -1, x})
		} else {
			out = append(out, Changed{nil, target.Index, x})
		}
	}
	return out, nil
}

// contents are a weight's: state as the last call left it, what the module holds, or the checkpoint's.
func (e *Evaluator) contents(w *ir.Weight) (*tensor.Tensor, error) {
	if x := e.state[w]; x != nil {
		return x, nil
	}
	if w.Data != nil {
		return w.Data, nil
	}
	if e.source == nil || w.Source == nil {
		return nil, fmt.Errorf("the module does not hold it, wanted %s: name the file that does (--weights)", w.Value.Type)
	}
	leaf := weight.Leaf(w.Source)
	c, lifted := leaf.(weight.Const)
	if lifted { // the file it was lifted from has it by name
		if len(w.Names) == 0 {
			return nil, fmt.Errorf("constant %s has no name to look for in %s", c, e.source.Label())
		}
		leaf = weight.Tensor{Name: w.Names[0], T: c.T}
	}
	bound, err := weights.Bind(e.source, []weights.Want{{Names: w.Names, Expr: leaf}})
	if err != nil {
		return nil, err
	}
	x, err := bound[0].Load()
	if err != nil {
		return nil, err
	}
	if lifted {
		if sum := sha256.Sum256(x.Data); hex.EncodeToString(sum[:]) != c.Digest {
			return nil, fmt.Errorf("tensor %q of %s has sha256 %x, wanted the constant %s", bound[0].Name, e.source.Label(), sum, c.Digest)
		}
	}
	return weight.Eval(w.Source, x)
}
