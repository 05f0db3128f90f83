package tpuc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"tpuc/ir/diag"
	"tpuc/passes/padproof"
	"tpuc/tpu/artifact"
)

// Sizes of one dimension for which padding is looked at are bounded, as each imports the model anew: padSizes of a large model, and of a smaller one as
// many as have padNodes nodes together.
const (
	padSizes = 64
	padNodes = 1 << 17
)

// pads says for each symbolic dimension of a model that is fresh from import which smaller sizes its program may serve with padding. Sizes go
// down to the symbol's least, or to below's, which other programs serve, exclusive.
func (m *Model) pads(ctx context.Context, below map[string]int64) ([]artifact.Pad, error) {
	var out []artifact.Pad
	most := int64(max(padSizes, padNodes/max(len(m.Module.Func.Body), 1)))
	for _, y := range m.Symbols {
		size := m.Dims[y.Name]
		pad := artifact.Pad{Symbol: y.Name, Min: size}
		for n := size - 1; n >= max(y.Min, below[y.Name]+1, size-most); n-- {
			if err := ctx.Err(); err != nil {
				return nil, context.Cause(ctx)
			}
			if pad.Reason = m.padTo(ctx, &pad, size, n); pad.Reason != "" {
				break
			}
			pad.Min = n
		}
		if pad.Min == size {
			pad.Inputs, pad.Outputs = nil, nil
		}
		if pad.Reason != "" || pad.Min < size {
			out = append(out, pad)
		}
	}
	return out, nil
}

// padTo says why the model's program does not serve size n with padding; nothing where it does.
func (m *Model) padTo(ctx context.Context, pad *artifact.Pad, size, n int64) string {
	dims := maps.Clone(m.Dims)
	dims[pad.Symbol] = n
	bound, err := m.program.Bind(dims)
	if err != nil {
		return reason(err)
	}
	im, err := m.program.Import(ctx, bound)
	if err != nil {
		return reason(err)
	}
	if !slices.Equal(m.Numbers, numbers(im)) {
		return "an output that is no tensor depends on it"
	}
	if err := padproof.Prove(m.Module, im.Module); err != nil {
		return reason(err)
	}
	inputs, err := padAxes(m.Inputs, ports(im.Inputs), size, n)
	if err == nil && len(inputs) == 0 {
		return "no input has it as a dimension"
	}
	outputs, err2 := padAxes(m.Outputs, ports(im.Outputs), size, n)
	if err := errors.Join(err, err2); err != nil {
		return reason(err)
	}
	if pad.Min == size { // the first size: the next ones must agree
		pad.Inputs, pad.Outputs = inputs, outputs
	}
	if !slices.Equal(pad.Inputs, inputs) || !slices.Equal(pad.Outputs, outputs) {
		return fmt.Sprintf("extents at size %d do not follow from those at larger sizes by a factor", n)
	}
	return ""
}

// padAxes are the dimensions that differ, whose extent is a factor times the size plus an offset.
func padAxes(large, small []Port, size, n int64) ([]artifact.PadAxis, error) {
	var out []artifact.PadAxis
	for i, p := range large {
		for d, l := range p.Type.Dims {
			s := small[i].Type.Dims[d]
			if l == s {
				continue
			}
			if (l-s)%(size-n) != 0 {
				return nil, fmt.Errorf("dimension %d of %q is %d, and %d at size %d", d, p.Name, l, s, n)
			}
			scale := (l - s) / (size - n)
			out = append(out, artifact.PadAxis{Index: i, Axis: d, Scale: scale, Offset: l - scale*size})
		}
	}
	return out, nil
}

// reason is an error in one line: place and message.
func reason(err error) string {
	var list diag.List
	if errors.As(err, &list) && len(list) > 0 {
		err = list[0]
	}
	var e *diag.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	if place := e.Loc.String(); place != "" {
		return fmt.Sprintf("%s (%s)", e.Msg, place)
	}
	return e.Msg
}
