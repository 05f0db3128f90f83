package padproof

import (
	"slices"

	"tpuc/ir/op"
)

// scalars are states of n scalars.
func scalars(n int) []state { return slices.Repeat([]state{{}}, n) }

// reduceBy combines along dimensions that are not padded, by one function in both programs.
func reduceBy(a *application) ([]state, error) {
	x, y := op.ReduceBy.Attr(a.large), op.ReduceBy.Attr(a.small)
	if !slices.Equal(x.Axes, y.Axes) {
		return nil, a.refuse("it has other attributes in the smaller program")
	}
	n := len(a.in) / 2
	if _, err := a.call(x.Fn, y.Fn, scalars(2*n)); err != nil {
		return nil, err
	}
	s, err := a.join(a.in[:n]...)
	if err != nil {
		return nil, err
	}
	s, err = a.without(0, s, x.Axes, "it combines elements")
	return slices.Repeat([]state{s}, n), err
}

// cond takes the same branch in both programs, as its predicate is one number.
func cond(a *application) ([]state, error) {
	x, y := op.Cond.Attr(a.large), op.Cond.Attr(a.small)
	then, err := a.call(x.Then, y.Then, a.in[1:])
	if err != nil {
		return nil, err
	}
	otherwise, err := a.call(x.Else, y.Else, a.in[1:])
	if err != nil {
		return nil, err
	}
	out := make([]state, len(then))
	for i := range out {
		if out[i], err = a.choose(i, then[i], otherwise[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// choose is the state of a value that is one of two. An axis that is uniform in one of them only has the factors of the other.
func (a *application) choose(i int, x, y state) (state, error) {
	s, d, ok := joinAll([]state{x, y})
	if !ok {
		return nil, a.refuse("result %d is padded in different ways along dimension %d", i, d)
	}
	return s, nil
}

// while makes equally many steps in both programs, as its condition is one number. Its state is looked for that every step keeps.
func while(a *application) ([]state, error) {
	x, y := op.While.Attr(a.large), op.While.Attr(a.small)
	states := slices.Clone(a.in)
	for {
		if _, err := a.call(x.Cond, y.Cond, states); err != nil {
			return nil, err
		}
		next, err := a.call(x.Body, y.Body, states)
		if err != nil {
			return nil, err
		}
		changed := false
		for i := range states {
			s, err := a.choose(i, states[i], next[i])
			if err != nil {
				return nil, err
			}
			changed = changed || !slices.EqualFunc(s, states[i], axis.same)
			states[i] = s
		}
		if !changed { // at the latest when no axis is uniform any more
			return states, nil
		}
	}
}
