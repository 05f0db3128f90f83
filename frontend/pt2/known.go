package pt2

import (
	"tpuc/ir"
	"tpuc/ir/diag"
	"tpuc/ir/eval"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// Limits of what is computed while importing.
const (
	maxKnown     = maxConstant // bytes of one value
	maxKnownWork = 1 << 14     // nodes looked at for one model
)

// knowledge is what was computed while importing of values that belong to the program alone.
type knowledge struct {
	values map[*ir.Value]*tensor.Tensor // nil: not known
	reads  []*ir.Weight                 // constants that sizes follow from
	work   int
}

// known is the contents of a value that follow from literals and constants of the program, or nil. Sizes may follow from it: it holds what is
// the same on every processor only, and nothing that a checkpoint or a call can change.
func (c *call) known(v *ir.Value) *tensor.Tensor { return c.im.knowledge.value(v) }

func (k *knowledge) value(v *ir.Value) *tensor.Tensor {
	if x, ok := k.values[v]; ok {
		return x
	}
	if k.work++; k.work > maxKnownWork || v.Type.Bytes() > maxKnown {
		return nil
	}
	k.values[v] = nil
	switch n := v.Def; {
	case v.Weight != nil:
		if w := v.Weight; w.Class == ir.Constant && w.Data != nil {
			k.reads = append(k.reads, w)
			k.values[v] = w.Data
		}
	case n == nil:
	case op.Constant.Is(n):
		k.values[v] = op.Constant.Attr(n).Value
	case ir.IsExact(n) && n.Op.Traits&ir.Effect == 0:
		args := make([]*tensor.Tensor, len(n.Args))
		for i, a := range n.Args {
			if args[i] = k.value(a); args[i] == nil {
				return nil
			}
		}
		for _, o := range n.Outs {
			if o.Type.Bytes() > maxKnown {
				return nil
			}
		}
		out, err := eval.Node(n, args)
		if err != nil {
			return nil
		}
		for i, o := range n.Outs {
			k.values[o] = out[i]
		}
	}
	return k.values[v]
}

// check refuses sizes that followed from memory that the program writes: the next call would need others.
func (k *knowledge) check() error {
	var errs diag.List
	for _, w := range k.reads {
		if w.Mutable {
			errs.Addf(nil, codeUnsupported, "sizes follow from the contents of %q, which the program writes: a compiled program has fixed shapes", clip(w.Names[0])).
				Note("%smake what decides the size a constant of the model that nothing writes to", DoNote)
		}
	}
	return errs.Err()
}

// knownInts is the integers of a tensor argument from which sizes follow.
func (c *call) knownInts(name string) []int64 {
	x := c.known(c.val(name))
	if x == nil {
		c.unsupported("its result's shape depends on the data of argument %s", name)
	}
	return x.Ints()
}
