package padproof

import (
	"slices"

	"tpuc/ir/tensor"
)

// factor is the extent of a run of indices in the large and in the small program: the small one's are the first of the large one's.
type factor struct{ large, small int64 }

func (f factor) equal() bool { return f.large == f.small }

// axis says which indices of the large program's value hold those of the small one's along a dimension. The dimension's index is made of
// factors, major first, as a reshape joins them. No factor is (1, 1), and one of equal extents stands first or is merged into the one before
// it: a run of n whole blocks is the beginning of a run of N blocks. So two lists are equal where they mean the same, and a dimension of
// equal extents has one factor at most.
type axis struct {
	// uniform says that elements do not depend on the index along the dimension, the padding included: it agrees with any factors. It is set
	// for dimensions of different extents alone.
	uniform bool
	factors []factor
}

// state is one axis a dimension of a value.
type state []axis

// prefix is the axis of a dimension whose first elements are the small program's.
func prefix(large, small int64) axis { return axis{factors: canonical([]factor{{large, small}})} }

// constantAlong is the axis of a dimension along which elements are equal.
func constantAlong(large, small int64) axis {
	if large == small {
		return prefix(large, small)
	}
	return axis{uniform: true}
}

// isPrefix reports an axis whose first elements are the small program's.
func (a axis) isPrefix() bool { return a.uniform || len(a.factors) < 2 }

func (a axis) same(b axis) bool {
	return a.uniform == b.uniform && slices.Equal(a.factors, b.factors)
}

// canonical merges factors, see axis.
func canonical(fs []factor) []factor {
	var out []factor
	for _, f := range fs {
		switch last := len(out) - 1; {
		case f == factor{1, 1}:
		case f.equal() && last >= 0:
			out[last].large *= f.large
			out[last].small *= f.small
		default:
			out = append(out, f)
		}
	}
	return out
}

// join is the axis of elements that are computed from elements of both at one index.
func join(a, b axis) (axis, bool) {
	switch {
	case a.uniform:
		return b, true
	case b.uniform:
		return a, true
	}
	return a, a.same(b)
}

// joinAll joins states of one rank; ok is false with the dimension that differs.
func joinAll(states []state) (out state, dim int, ok bool) {
	out = slices.Clone(states[0])
	for _, s := range states[1:] {
		for d := range out {
			if out[d], ok = join(out[d], s[d]); !ok {
				return nil, d, false
			}
		}
	}
	return out, 0, true
}

// reshape divides the factors of all dimensions of in anew. The types have no extents of 0.
func reshape(in state, inLarge, inSmall, outLarge, outSmall tensor.Type) (state, bool) {
	var flat []factor
	for d, a := range in {
		if a.uniform { // agrees with any: also with this
			a = prefix(inLarge.Dims[d], inSmall.Dims[d])
		}
		flat = append(flat, a.factors...)
	}
	flat = canonical(flat)
	out := make(state, outLarge.Rank())
	for d := len(out) - 1; d >= 0; d-- {
		want := factor{outLarge.Dims[d], outSmall.Dims[d]}
		var parts []factor // minor first
		for want != (factor{1, 1}) {
			last := len(flat) - 1
			if last < 0 {
				return nil, false
			}
			switch f := flat[last]; {
			case want.large%f.large == 0 && want.small%f.small == 0:
				parts = append(parts, f)
				want = factor{want.large / f.large, want.small / f.small}
				flat = flat[:last]
			case want.equal() && f.large%want.large == 0 && f.small%want.small == 0: // the minor part of f, of which both have all
				parts = append(parts, want)
				flat[last] = factor{f.large / want.large, f.small / want.small}
				want = factor{1, 1}
			default:
				return nil, false
			}
		}
		slices.Reverse(parts)
		out[d] = axis{factors: canonical(parts)}
	}
	return out, len(flat) == 0
}
