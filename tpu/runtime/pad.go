package runtime

import (
	"slices"

	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
)

// padding is a program's permission to serve a smaller size of one symbol.
type padding struct {
	*artifact.Pad
	size int64 // of the call
}

// types are those of a call, whose inputs or outputs are smaller than the program's.
func (p *padding) types(of []tensor.Type, axes []artifact.PadAxis) []tensor.Type {
	out := slices.Clone(of)
	for _, a := range axes {
		out[a.Index].Dims = slices.Clone(out[a.Index].Dims)
		out[a.Index].Dims[a.Axis] = p.extent(a)
	}
	return out
}

func (p *padding) extent(a artifact.PadAxis) int64 { return a.Extent(p.size) }

// padded finds the smallest program that may serve inputs with padding.
func (m *Model) padded(inputs []*tensor.Tensor) (best *program, how *padding) {
	least := int64(0)
	for _, p := range *m.programs.Load() {
		if how != nil && p.inputElements() >= least {
			continue
		}
		for i := range p.Pads {
			pad := &p.Pads[i]
			if size, ok := p.serves(pad, inputs); ok {
				best, how, least = p, &padding{pad, size}, p.inputElements()
			}
		}
	}
	return best, how
}

func (p *program) inputElements() (n int64) {
	for _, t := range p.inputs {
		n += t.Elements()
	}
	return n
}

// serves is the size of pad's symbol where inputs fit p with it and the padding is proved.
func (p *program) serves(pad *artifact.Pad, inputs []*tensor.Tensor) (size int64, ok bool) {
	full := p.Dim(pad.Symbol)
	if !pad.Safe(full) || len(inputs) != len(p.inputs) {
		return 0, false
	}
	first := pad.Inputs[0]
	x := inputs[first.Index]
	if x == nil || first.Axis >= x.Rank() {
		return 0, false
	}
	n := x.Dims[first.Axis] - first.Offset
	if n%first.Scale != 0 {
		return 0, false
	}
	size = n / first.Scale
	if size < pad.Min || size >= full {
		return 0, false
	}
	for i, t := range p.inputs {
		x := inputs[i]
		if x == nil || x.DType != t.DType || x.Rank() != t.Rank() || int64(len(x.Data)) != x.Bytes() {
			return 0, false
		}
		for d, want := range t.Dims {
			for _, a := range pad.Inputs {
				if a.Index == i && a.Axis == d {
					want = a.Extent(size)
				}
			}
			if x.Dims[d] != want {
				return 0, false
			}
		}
	}
	return size, true
}

// fill is a tensor of type t that begins with x along every dimension; the rest is 0.
func fill(x *tensor.Tensor, t tensor.Type) *tensor.Tensor {
	if slices.Equal(x.Dims, t.Dims) {
		return x
	}
	y := tensor.Zeros(t)
	copyBox(y.Data, t.Dims, x.Data, x.Dims, x.Dims, int64(t.DType.Size()))
	return y
}

// cut is the beginning of x, of type t. It may share x's memory.
func cut(x *tensor.Tensor, t tensor.Type) *tensor.Tensor {
	if slices.Equal(x.Dims, t.Dims) {
		return x
	}
	if len(t.Dims) > 0 && slices.Equal(x.Dims[1:], t.Dims[1:]) {
		n := t.Bytes()
		return &tensor.Tensor{Type: t, Data: x.Data[:n:n]}
	}
	y := tensor.Zeros(t)
	copyBox(y.Data, t.Dims, x.Data, x.Dims, t.Dims, int64(t.DType.Size()))
	return y
}

// copyBox copies the box of the given extents at the beginning of src to that of dst, both row-major with elements of size bytes and of rank 1 or more.
func copyBox(dst []byte, dstDims []int64, src []byte, srcDims, box []int64, size int64) {
	switch {
	case slices.Contains(box, 0):
		return
	case len(box) == 1:
		copy(dst, src[:box[0]*size])
		return
	}
	d, s := int64(len(dst))/dstDims[0], int64(len(src))/srcDims[0]
	for i := range box[0] {
		copyBox(dst[i*d:(i+1)*d], dstDims[1:], src[i*s:(i+1)*s], srcDims[1:], box[1:], size)
	}
}
