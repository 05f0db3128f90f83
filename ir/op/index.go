package op

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// Helpers for dimension lists and costs, shared by shape rules.

// distinct reports that dims are dimensions of the rank, none named twice.
func distinct(dims []int64, rank int) bool {
	for i, d := range dims {
		if d < 0 || d >= int64(rank) || slices.Contains(dims[:i], d) {
			return false
		}
	}
	return true
}

// ascending reports that dims are dimensions of the rank, each larger than the one before.
func ascending(dims []int64, rank int) bool {
	for i, d := range dims {
		if d < 0 || d >= int64(rank) || i > 0 && d <= dims[i-1] {
			return false
		}
	}
	return true
}

// pick are the entries of v at the places.
func pick(v, at []int64) []int64 {
	out := make([]int64, len(at))
	for i, d := range at {
		out[i] = v[d]
	}
	return out
}

// with is a copy of dims with one of them replaced.
func with(dims []int64, at, n int64) []int64 {
	out := slices.Clone(dims)
	out[at] = n
	return out
}

// within reports that v is no further from 0 than most.
func within(v, most int64) bool { return -most <= v && v <= most }

// product of extents; 1 of none.
func product(dims []int64) int64 { return tensor.Type{Dims: dims}.Elements() }

// count are the integers from lo up to, not including, hi.
func count(lo, hi int) []int64 {
	out := make([]int64, 0, max(hi-lo, 0))
	for d := lo; d < hi; d++ {
		out = append(out, int64(d))
	}
	return out
}

// btoi is 1 for true.
func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// noCost is the cost of operators that only move elements: no floating-point operations, the bytes of arguments and results.
func noCost[A any](*ir.Node, A) ir.Cost { return ir.Cost{} }
