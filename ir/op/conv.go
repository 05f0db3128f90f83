package op

import (
	"fmt"
	"strings"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// ConvAttr is the attribute struct of Conv. Each list has one entry a spatial dimension.
type ConvAttr struct {
	Strides     []int64   `ir:"strides"`      // of the window
	Padding     [][]int64 `ir:"padding"`      // [low, high] of x; negative crops
	LhsDilation []int64   `ir:"lhs_dilation"` // 1: none; n: n-1 zeros between elements of x (transposed convolution)
	RhsDilation []int64   `ir:"rhs_dilation"` // 1: none; n: n-1 zeros between elements of w
	Groups      int64     `ir:"groups"`       // channels are split into so many independent groups

	Out tensor.DType `ir:"out"` // result dtype; invalid: that of the arguments
}

// Conv is a convolution without flipping (StableHLO convolution, aten::convolution) over one or more spatial dimensions:
// x [N, C, spatial...], w [O, C/Groups, spatial...] of one numeric dtype give [N, O, spatial...]. Floats below f32 accumulate in f32 and are
// rounded to Out; f32 is computed in full f32 precision on every target.
var Conv = define(Def[ConvAttr]{
	Name: "conv", Doc: "Convolves channels over spatial dimensions.", Args: "x w",
	Infer: inferConv, Lower: lowerConv, Eval: evalConv,
	Cost: func(n *ir.Node, _ ConvAttr) ir.Cost {
		w := n.Args[1].Type.Dims
		return ir.Cost{Flops: 2 * product(w[1:]) * n.Outs[0].Type.Elements()}
	},
})

// inferConv checks the arguments in 1 and 2, lengths in 3, channels and groups in 4 and 5, each spatial dimension in 6 to 9, and the result's dtype in 10.
func inferConv(in []tensor.Type, a ConvAttr) ([]tensor.Type, error) {
	x, w := in[0], in[1]
	if x.DType != w.DType || !numbers.has(x.DType) {
		return nil, fail(1, "x is %s, w is %s, wanted one numeric dtype", x.DType, w.DType)
	}
	if x.Rank() < 3 || w.Rank() != x.Rank() {
		return nil, fail(2, "x is %s, w is %s, wanted one rank of 3 or more", x, w)
	}
	spatial := x.Rank() - 2
	if len(a.Strides) != spatial || len(a.Padding) != spatial || len(a.LhsDilation) != spatial || len(a.RhsDilation) != spatial {
		return nil, fail(3, "%d strides, %d paddings, %d lhs and %d rhs dilations, wanted %d of each",
			len(a.Strides), len(a.Padding), len(a.LhsDilation), len(a.RhsDilation), spatial)
	}
	c, o := x.Dims[1], w.Dims[0]
	if a.Groups < 1 || c%a.Groups != 0 || o%a.Groups != 0 {
		return nil, fail(4, "%d groups, wanted 1 or more that divide %d input and %d output channels", a.Groups, c, o)
	}
	if w.Dims[1] != c/a.Groups {
		return nil, fail(5, "w dimension 1 is %d, wanted %d as %d channels in %d groups", w.Dims[1], c/a.Groups, c, a.Groups)
	}
	dims := []int64{x.Dims[0], o}
	for i := range spatial {
		const most = 1 << 30 // keeps the products below from overflowing
		if len(a.Padding[i]) != 2 || !within(a.Padding[i][0], most) || !within(a.Padding[i][1], most) {
			return nil, fail(6, "padding %v of spatial dimension %d, wanted [low, high] within 2^30", a.Padding[i], i)
		}
		for _, v := range []int64{a.Strides[i], a.LhsDilation[i], a.RhsDilation[i]} {
			if v < 1 || v > most {
				return nil, fail(7, "spatial dimension %d: stride %d, dilations %d and %d, wanted 1 to 2^30", i, a.Strides[i], a.LhsDilation[i], a.RhsDilation[i])
			}
		}
		if x.Dims[2+i] > most || w.Dims[2+i] > most {
			return nil, fail(8, "spatial dimension %d: extents %d and %d, wanted at most 2^30", i, x.Dims[2+i], w.Dims[2+i])
		}
		padded := dilated(x.Dims[2+i], a.LhsDilation[i]) + a.Padding[i][0] + a.Padding[i][1]
		if padded < 0 {
			return nil, fail(9, "spatial dimension %d: extent %d with padding %v leaves %d, wanted 0 or more", i, x.Dims[2+i], a.Padding[i], padded)
		}
		window := dilated(w.Dims[2+i], a.RhsDilation[i])
		n := int64(0)
		if padded > 0 && window <= padded {
			n = (padded-window)/a.Strides[i] + 1
		}
		dims = append(dims, n)
	}
	out, ok := summedDType(x.DType, a.Out)
	if !ok {
		return nil, fail(10, "result dtype %s for %s, wanted one of the same kind", out, x.DType)
	}
	return one(tensor.Make(out, dims...))
}

// dilated is the extent of n elements with zeros between them.
func dilated(n, dilation int64) int64 {
	if n == 0 {
		return 0
	}
	return (n-1)*dilation + 1
}

// lowerConv names the dimensions as torch has them: batch, feature, spatial; output, input, spatial. XLA chooses its own layouts.
func lowerConv(e ir.Emitter, n *ir.Node, a ConvAttr) []ir.Ref {
	spatial := ""
	for i := range a.Strides {
		spatial += fmt.Sprintf(", %d", i)
	}
	var pads []string
	for _, p := range a.Padding {
		pads = append(pads, list(p))
	}
	attrs := []string{
		"batch_group_count = 1 : i64",
		fmt.Sprintf("dimension_numbers = #stablehlo.conv<[b, f%s]x[o, i%s]->[b, f%s]>", spatial, spatial, spatial),
		fmt.Sprintf("feature_group_count = %d : i64", a.Groups),
		"lhs_dilation = " + i64Array(a.LhsDilation),
		fmt.Sprintf("padding = dense<[%s]> : tensor<%dx2xi64>", strings.Join(pads, ", "), len(pads)),
		"rhs_dilation = " + i64Array(a.RhsDilation),
		"window_strides = " + i64Array(a.Strides),
	}
	if d := n.Args[0].Type.DType; d == tensor.F32 || d == tensor.F64 || d.IsComplex() {
		attrs = append(attrs, highestPrecision)
	}
	return e.Emit(ir.HLO{Name: "stablehlo.convolution", Args: refs(e, n), Attrs: attrs, Out: []tensor.Type{n.Outs[0].Type}})
}

// evalConv sums in float64, complex128 or wrapping int64.
func evalConv(in []*tensor.Tensor, a ConvAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
	x, w, t := in[0], in[1], out[0]
	switch {
	case t.DType.IsFloat():
		return result(tensor.FromFloats(t, convolve(x.Floats(), w.Floats(), x.Dims, w.Dims, t.Dims, a)))
	case t.DType.IsComplex():
		return result(tensor.FromComplexes(t, convolve(x.Complexes(), w.Complexes(), x.Dims, w.Dims, t.Dims, a)))
	}
	return result(tensor.FromInts(t, convolve(x.Ints(), w.Ints(), x.Dims, w.Dims, t.Dims, a)))
}

// convolve gathers, for every output position, the elements of x under the window, zeros between and around them included, and
// multiplies them by each filter.
func convolve[T int64 | float64 | complex128](x, w []T, xd, wd, yd []int64, a ConvAttr) []T {
	y := make([]T, product(yd))
	xs, xPlane, yPlane := tensor.Strides(xd[2:]), product(xd[2:]), product(yd[2:])
	channels, taps := wd[1], product(wd[2:])
	filters, size := wd[0]/a.Groups, channels*taps // of a group; of a filter
	from := make([]int64, taps)                    // for each tap the element of a plane of x, or -1
	under := make([]T, size)
	pos := int64(0)
	walk(yd[2:], func(at []int64) {
		k := 0
		walk(wd[2:], func(tap []int64) {
			from[k] = tapSource(at, tap, xd[2:], xs, a)
			k++
		})
		for ng := range xd[0] * a.Groups {
			for i := range under {
				under[i] = 0
				if f := from[int64(i)%taps]; f >= 0 {
					under[i] = x[(ng*channels+int64(i)/taps)*xPlane+f]
				}
			}
			for o := range filters {
				filter := ng%a.Groups*filters + o
				y[(ng*filters+o)*yPlane+pos] = dotProduct(under, w[filter*size:(filter+1)*size])
			}
		}
		pos++
	})
	return y
}

// tapSource is the element of a plane of x, whose extents and strides are given, under a tap of the window at an output position; -1
// for a zero of padding or dilation.
func tapSource(at, tap, extents, strides []int64, a ConvAttr) int64 {
	from := int64(0)
	for d := range tap {
		i := at[d]*a.Strides[d] + tap[d]*a.RhsDilation[d] - a.Padding[d][0]
		if i < 0 || i%a.LhsDilation[d] != 0 || i/a.LhsDilation[d] >= extents[d] {
			return -1
		}
		from += i / a.LhsDilation[d] * strides[d]
	}
	return from
}
