package chip

import "slices"

// Slices of the chips with a 2D torus (v5e, v6e): every shape there is.
// https://docs.cloud.google.com/tpu/docs/v6e and v5e, "Configurations"
var shapes2D = [][]int{{1, 1}, {2, 2}, {2, 4}, {4, 4}, {4, 8}, {8, 8}, {8, 16}, {16, 16}}

// Slices of the chips with a 3D torus (v4, v5p, TPU7x) below one cube of 4x4x4. Larger ones are made of whole cubes.
// https://docs.cloud.google.com/tpu/docs/v5p and v4, "Configurations"; one chip is what libtpu and tpu7x-standard-1t have.
var shapes3D = [][]int{{1, 1, 1}, {2, 2, 1}, {2, 2, 2}, {2, 2, 4}, {2, 4, 4}}

// cube is the edge of the unit of which larger 3D slices are made.
const cube = 4

// smallShapes are the shapes of a chip that are listed rather than made of cubes.
func smallShapes(f Facts) [][]int {
	if f.Dims == 2 {
		return shapes2D
	}
	return shapes3D
}

// standardShapes are the shapes worth listing, by size: all 2D ones; the small 3D ones, then cubes doubled up to the
// largest slice, and that one.
func standardShapes(f Facts) [][]int {
	out := slices.Clone(smallShapes(f))
	if f.Dims == 3 {
		for n := cube * cube * cube; n <= f.MaxChips; n *= 2 {
			out = append(out, shapeOf(f, n))
		}
		if largest := shapeOf(f, f.MaxChips); !slices.ContainsFunc(out, func(s []int) bool { return slices.Equal(s, largest) }) {
			out = append(out, largest)
		}
	}
	return out
}

// shapeOf is the standard shape of a slice of n chips: the listed one, or the arrangement of whole cubes most like a cube,
// axes ascending ("the topology that is most similar to a cube",
// https://docs.cloud.google.com/tpu/docs/types-topologies). It is nil if there is none.
func shapeOf(f Facts, n int) []int {
	for _, s := range smallShapes(f) {
		if product(s) == n {
			return slices.Clone(s)
		}
	}
	const unit = cube * cube * cube
	if f.Dims != 3 || n <= 0 || n > f.MaxChips || n%unit != 0 {
		return nil
	}
	n /= unit
	var best []int
	for a := 1; a*a*a <= n; a++ {
		for b := a; n%a == 0 && a*b*b <= n; b++ {
			if c := n / a / b; a*b*c == n && (best == nil || a+b+c < best[0]+best[1]+best[2]) {
				best = []int{a, b, c}
			}
		}
	}
	for i := range best {
		best[i] *= cube
	}
	return best
}

// isShape tells whether the chip's slices come in this shape.
func isShape(f Facts, shape []int) bool {
	if slices.ContainsFunc(smallShapes(f), func(s []int) bool { return slices.Equal(s, shape) }) {
		return true
	}
	return f.Dims == 3 && len(shape) == 3 && slices.IsSorted(shape) && product(shape) <= f.MaxChips &&
		!slices.ContainsFunc(shape, func(d int) bool { return d <= 0 || d%cube != 0 })
}
