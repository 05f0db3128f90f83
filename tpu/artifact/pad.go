package artifact

import "fmt"

// Pad says for one symbolic dimension which smaller sizes a program may serve, with its inputs filled up at their ends by anything, and its outputs
// cut to size (docs/runtime.md). The other symbols stay at the program's values.
type Pad struct {
	Symbol string `json:"symbol"`
	// Min is the smallest size: it and all up to the program's own are proved. None is where it equals the program's own.
	Min int64 `json:"min"`
	// Reason is why a size below Min, or below the program's own, is refused; empty where none was tried.
	Reason  string    `json:"reason,omitempty"`
	Inputs  []PadAxis `json:"inputs,omitempty"`  // the dimensions that depend on the symbol; of a changed input they are those of its new contents too
	Outputs []PadAxis `json:"outputs,omitempty"` // likewise
}

// PadAxis is a dimension of an input or output whose extent is Scale times the size plus Offset.
type PadAxis struct {
	Index  int   `json:"index"` // of the input or output
	Axis   int   `json:"axis"`
	Scale  int64 `json:"scale"`
	Offset int64 `json:"offset,omitempty"`
}

// Extent is the extent at a size.
func (a PadAxis) Extent(size int64) int64 { return a.Scale*size + a.Offset }

// Safe reports a pad that serves sizes below the program's own, which is size.
func (p Pad) Safe(size int64) bool { return p.Min < size }

// Dim is p's value of a symbol, or 0.
func (p *Program) Dim(symbol string) int64 {
	for _, d := range p.Dims {
		if d.Name == symbol {
			return d.Value
		}
	}
	return 0
}

// checkPads holds what is said of padding to the program's types.
func (p *Program) checkPads(bad func(code, format string, args ...any)) {
	seen := make(map[string]bool)
	for _, pad := range p.Pads {
		size := p.Dim(pad.Symbol)
		if size == 0 || seen[pad.Symbol] {
			bad("pad", "padding of %q, wanted each of the program's symbols once at most", pad.Symbol)
			continue
		}
		seen[pad.Symbol] = true
		const most = 1 << 40 // keeps extents from overflowing
		if pad.Min < 0 || pad.Min > size || size > most || pad.Safe(size) && len(pad.Inputs) == 0 {
			bad("pad", "padding of %s from %d on and along %d input dimensions, wanted 0 to %d and one or more", pad.Symbol, pad.Min, len(pad.Inputs), size)
			continue
		}
		check := func(kind string, axes []PadAxis, types []Type) {
			used := make(map[string]bool)
			for _, a := range axes {
				id := fmt.Sprint(a.Index, a.Axis)
				if a.Index < 0 || a.Index >= len(types) || a.Axis < 0 || a.Axis >= len(types[a.Index].Dims) || used[id] {
					bad("pad", "padding of %s along dimension %d of %s %d, wanted each at most once and one that is there", pad.Symbol, a.Axis, kind, a.Index)
					continue
				}
				used[id] = true
				if a.Scale < 1 || a.Scale > most/max(size, 1) || a.Offset < -most || a.Offset > most ||
					a.Extent(pad.Min) < 0 || a.Extent(size) != types[a.Index].Dims[a.Axis] {
					bad("pad", "padding of %s along dimension %d of %s %d: %d times the size plus %d, wanted %d at size %d, and 0 or more at %d",
						pad.Symbol, a.Axis, kind, a.Index, a.Scale, a.Offset, types[a.Index].Dims[a.Axis], size, pad.Min)
				}
			}
		}
		check(KindInput, pad.Inputs, p.Inputs)
		check(KindOutput, pad.Outputs, p.Outputs)
	}
}
