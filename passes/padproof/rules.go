package padproof

import (
	"reflect"
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
)

// rule gives the states of the results of an operator, or refuses.
type rule func(a *application) ([]state, error)

// rules are the operators' rules. Elementwise operators share one, and composites without a row go by their parts.
var rules map[*ir.Op]rule

func init() { // the rules of control flow reach the table
	rules = map[*ir.Op]rule{
		op.Barrier.Op: elementwise, op.Complex.Op: elementwise, op.Real.Op: elementwise, op.Imag.Op: elementwise,
		op.Constant.Op: constant, op.Iota.Op: iota, op.Broadcast.Op: broadcast, op.Reshape.Op: reshapeRule, op.Transpose.Op: transpose,
		op.Reverse.Op: reverse, op.Slice.Op: slice, op.Pad.Op: pad, op.Concat.Op: concat,
		op.DynamicSlice.Op: dynamicSlice, op.DynamicUpdateSlice.Op: dynamicUpdateSlice, op.Gather.Op: gather, op.Scatter.Op: scatter,
		op.Dot.Op: dot, op.Conv.Op: conv, op.FFT.Op: fft, op.Sort.Op: sort,
		op.Reduce.Op: reduce, op.ReduceWindow.Op: reduceWindow, op.ReduceBy.Op: reduceBy, op.Cond.Op: cond, op.While.Op: while,
		op.Opaque.Op: opaque, op.OpaqueEffect.Op: opaque,
	}
}

// sameAttrs refuses attributes that depend on the sizes.
func (a *application) sameAttrs() error {
	if !sameAttr(a.large, a.small) {
		return a.refuse("it has other attributes in the smaller program")
	}
	return nil
}

func (a *application) join(states ...state) (state, error) {
	out, d, ok := joinAll(states)
	if !ok {
		return nil, a.refuse("arguments are padded in different ways along dimension %d", d)
	}
	return out, nil
}

func (a *application) joinAxes(x, y axis, what string) (axis, error) {
	out, ok := join(x, y)
	if !ok {
		return axis{}, a.refuse("arguments are padded in different ways along %s", what)
	}
	return out, nil
}

// elementwise results have the padding of all arguments in common.
func elementwise(a *application) ([]state, error) {
	if err := a.sameAttrs(); err != nil {
		return nil, err
	}
	s, err := a.join(a.in...)
	if err != nil {
		return nil, err
	}
	return []state{s}, nil
}

// constant literals of other sizes must begin alike.
func constant(a *application) ([]state, error) {
	large, small := a.large.Attr.(op.ConstantAttr).Value, a.small.Attr.(op.ConstantAttr).Value
	l, splat := large.Splat()
	s, also := small.Splat()
	if splat && also && slices.Equal(l.Data, s.Data) {
		out := make(state, large.Rank())
		for d := range out {
			out[d] = constantAlong(large.Dims[d], small.Dims[d])
		}
		return []state{out}, nil
	}
	if !begins(large, small) {
		return nil, a.refuse("the literal depends on the size")
	}
	return a.whole(), nil
}

func iota(a *application) ([]state, error) {
	x, y := op.Iota.Attr(a.large), op.Iota.Attr(a.small)
	if x.Axis != y.Axis {
		return nil, a.sameAttrs()
	}
	out := make(state, x.Type.Rank())
	for d := range out {
		if int64(d) == x.Axis {
			out[d] = prefix(x.Type.Dims[d], y.Type.Dims[d])
		} else {
			out[d] = constantAlong(x.Type.Dims[d], y.Type.Dims[d])
		}
	}
	return []state{out}, nil
}

// broadcast keeps the argument's dimensions, and gives the same along new ones.
func broadcast(a *application) ([]state, error) {
	x, y := op.Broadcast.Attr(a.large), op.Broadcast.Attr(a.small)
	if !slices.Equal(x.Dims, y.Dims) {
		return nil, a.sameAttrs()
	}
	out := make(state, len(x.Shape))
	for d := range out {
		out[d] = constantAlong(x.Shape[d], y.Shape[d])
	}
	for i, d := range x.Dims {
		switch have, want := a.dims(0, i), a.outDims(0, int(d)); have {
		case want:
			out[d] = a.in[0][i]
		case factor{1, 1}:
		default:
			return nil, a.refuse("dimension %d repeats in one of the programs alone", i)
		}
	}
	return []state{out}, nil
}

func reshapeRule(a *application) ([]state, error) {
	inLarge, inSmall, outLarge, outSmall := a.large.Args[0].Type, a.small.Args[0].Type, a.large.Outs[0].Type, a.small.Outs[0].Type
	if inLarge.Elements() > 0 && inSmall.Elements() > 0 {
		if out, ok := reshape(a.in[0], inLarge, inSmall, outLarge, outSmall); ok {
			return []state{out}, nil
		}
	}
	return nil, a.refuse("from %s to %s it mixes padding and elements", inLarge, outLarge)
}

func transpose(a *application) ([]state, error) {
	if err := a.sameAttrs(); err != nil {
		return nil, err
	}
	perm := op.Transpose.Attr(a.large).Perm
	out := make(state, len(perm))
	for i, d := range perm {
		out[i] = a.in[0][d]
	}
	return []state{out}, nil
}

func reverse(a *application) ([]state, error) {
	if err := a.sameAttrs(); err != nil {
		return nil, err
	}
	for _, d := range op.Reverse.Attr(a.large).Axes {
		if a.in[0][d].uniform {
			continue
		}
		if err := a.wantEqual(0, int(d), "it turns the order round"); err != nil {
			return nil, err
		}
	}
	return []state{a.in[0]}, nil
}

// slice takes the same elements where it begins at the same place, counted from the start.
func slice(a *application) ([]state, error) {
	x, y := op.Slice.Attr(a.large), op.Slice.Attr(a.small)
	out := make(state, len(x.Start))
	for d := range out {
		in, have, want := a.in[0][d], a.dims(0, d), a.outDims(0, d)
		switch {
		case in.uniform:
			out[d] = constantAlong(want.large, want.small)
		case have == want && x.Stride[d] == y.Stride[d] && x.Stride[d] == 1: // all of it
			out[d] = in
		case x.Start[d] != y.Start[d]:
			return nil, a.refuse("dimension %d is cut from index %d on, and from %d in the smaller program", d, x.Start[d], y.Start[d])
		case x.Stride[d] != y.Stride[d]:
			return nil, a.sameAttrs()
		case !in.isPrefix():
			return nil, a.refuse("dimension %d has padding among its elements", d)
		default:
			out[d] = prefix(want.large, want.small)
		}
	}
	return []state{out}, nil
}

// pad may add behind a dimension that is not padded, and must not look at what lies behind the elements of one that is.
func pad(a *application) ([]state, error) {
	x, y := op.Pad.Attr(a.large), op.Pad.Attr(a.small)
	out := make(state, len(x.Low))
	for d := range out {
		in, have, want := a.in[0][d], a.dims(0, d), a.outDims(0, d)
		none := func(p op.PadAttr) bool { return p.Low[d] == 0 && p.High[d] == 0 && p.Interior[d] == 0 }
		switch {
		case none(x) && none(y):
			out[d] = in
		case x.Low[d] != y.Low[d] || x.Interior[d] != y.Interior[d]:
			return nil, a.refuse("dimension %d is filled up by another amount in the smaller program", d)
		case !in.isPrefix():
			return nil, a.refuse("dimension %d has padding among its elements", d)
		case !have.equal() && x.Low[d]+have.small*(1+x.Interior[d]) < want.small:
			return nil, a.refuse("elements are added behind dimension %d, whose end is padding", d)
		default:
			out[d] = prefix(want.large, want.small)
		}
	}
	return []state{out}, nil
}

// concat may have a padded argument last.
func concat(a *application) ([]state, error) {
	if err := a.sameAttrs(); err != nil {
		return nil, err
	}
	d := int(op.Concat.Attr(a.large).Axis)
	var parts []int // arguments that have elements
	for i := range a.in {
		if a.dims(i, d) != (factor{}) {
			parts = append(parts, i)
		}
	}
	along := prefix(0, 0)
	for k, i := range parts {
		switch f := a.dims(i, d); {
		case len(parts) == 1:
			along = a.in[i][d]
		case k < len(parts)-1 && !f.equal():
			return nil, a.refuse("argument %d is joined behind the padding of argument %d along dimension %d", i+1, i, d)
		case !a.in[i][d].isPrefix():
			return nil, a.refuse("argument %d has padding among its elements along dimension %d", i, d)
		default:
			f = a.outDims(0, d)
			along = prefix(f.large, f.small)
		}
	}
	var states []state
	for _, s := range a.in {
		s = slices.Clone(s)
		s[d] = along
		states = append(states, s)
	}
	out, err := a.join(states...)
	return []state{out}, err
}

// window is the axis along dimension d of argument i of a box of the given extents at a computed place, which moves it into the dimension.
func (a *application) window(i, d int, box factor) (axis, error) {
	have := a.dims(i, d)
	switch {
	case box == have: // it can lie at 0 only
		return a.in[i][d], nil
	case have.equal() && box.equal():
		return prefix(box.large, box.small), nil
	}
	if err := a.wantEqual(i, d, "it takes elements at a computed place"); err != nil {
		return axis{}, err
	}
	return axis{}, a.refuse("dimension %d is cut to another size in the smaller program", d)
}

func dynamicSlice(a *application) ([]state, error) {
	out := make(state, len(a.in[0]))
	for d := range out {
		w, err := a.window(0, d, a.outDims(0, d))
		if err != nil {
			return nil, err
		}
		out[d] = w
	}
	return []state{out}, nil
}

func dynamicUpdateSlice(a *application) ([]state, error) {
	out := make(state, len(a.in[0]))
	for d := range out {
		s, err := a.update(0, d, 1, d)
		if err != nil {
			return nil, err
		}
		out[d] = s
	}
	return []state{out}, nil
}

// update is the axis of argument x along d where a window of argument u along e replaces elements.
func (a *application) update(x, d, u, e int) (axis, error) {
	have, box := a.dims(x, d), a.dims(u, e)
	if have == box {
		return a.joinAxes(a.in[x][d], a.in[u][e], "the dimension that is updated")
	}
	if err := a.wantEqual(x, d, "it replaces elements at a computed place"); err != nil {
		return axis{}, err
	}
	return a.in[x][d], a.wantEqual(u, e, "it puts elements to a computed place")
}

func dot(a *application) ([]state, error) {
	if err := a.sameAttrs(); err != nil {
		return nil, err
	}
	at := op.Dot.Attr(a.large)
	var used [2][]int64
	var out state
	if len(at.Contract) == 2 {
		for side, dims := range at.Contract {
			used[side] = append(used[side], dims...)
			for _, d := range dims {
				if err := a.wantEqual(side, int(d), "it sums"); err != nil {
					return nil, err
				}
			}
		}
	}
	if len(at.Batch) == 2 {
		for i, d := range at.Batch[0] {
			s, err := a.joinAxes(a.in[0][d], a.in[1][at.Batch[1][i]], "a batch dimension")
			if err != nil {
				return nil, err
			}
			out = append(out, s)
		}
		used[0], used[1] = append(used[0], at.Batch[0]...), append(used[1], at.Batch[1]...)
	}
	for side := range used {
		for d, s := range a.in[side] {
			if !slices.Contains(used[side], int64(d)) {
				out = append(out, s)
			}
		}
	}
	return []state{out}, nil
}

// conv may be padded along the batch.
func conv(a *application) ([]state, error) {
	if err := a.sameAttrs(); err != nil {
		return nil, err
	}
	out := a.whole()
	for i, s := range a.in {
		for d := range s {
			if i == 0 && d == 0 {
				out[0][0] = s[0]
				continue
			}
			if err := a.wantEqual(i, d, "it combines neighbours"); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func fft(a *application) ([]state, error) {
	if err := a.sameAttrs(); err != nil {
		return nil, err
	}
	out := a.whole()
	for d, s := range a.in[0] {
		if d < len(a.in[0])-len(op.FFT.Attr(a.large).Length) {
			out[0][d] = s
		} else if err := a.wantEqual(0, d, "it transforms"); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func sort(a *application) ([]state, error) {
	if err := a.sameAttrs(); err != nil {
		return nil, err
	}
	if err := a.wantEqual(0, int(op.Sort.Attr(a.large).Axis), "it sorts"); err != nil {
		return nil, err
	}
	s, err := a.join(a.in...)
	return slices.Repeat([]state{s}, len(a.in)), err
}

// without is s without the given dimensions, which must not be padded.
func (a *application) without(i int, s state, axes []int64, reason string) (state, error) {
	out := state{}
	for d, x := range s {
		if !slices.Contains(axes, int64(d)) {
			out = append(out, x)
		} else if err := a.wantEqual(i, d, reason); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func reduce(a *application) ([]state, error) {
	if err := a.sameAttrs(); err != nil {
		return nil, err
	}
	at := op.Reduce.Attr(a.large)
	out, err := a.without(0, a.in[0], at.Axes, "it takes the "+string(at.Kind))
	return []state{out}, err
}

// reduceWindow leaves a dimension alone where its windows are single elements.
func reduceWindow(a *application) ([]state, error) {
	x, y := op.ReduceWindow.Attr(a.large), op.ReduceWindow.Attr(a.small)
	if x.Kind != y.Kind {
		return nil, a.sameAttrs()
	}
	at := func(v []int64, d int) int64 {
		if len(v) == 0 {
			return 1
		}
		return v[d]
	}
	edges := func(v [][]int64, d int) []int64 {
		if len(v) == 0 {
			return []int64{0, 0}
		}
		return v[d]
	}
	out := a.whole()
	for d, s := range a.in[0] {
		same := at(x.Window, d) == at(y.Window, d) && at(x.Strides, d) == at(y.Strides, d) && at(x.Dilation, d) == at(y.Dilation, d) &&
			slices.Equal(edges(x.Padding, d), edges(y.Padding, d))
		if same && at(x.Window, d) == 1 && at(x.Strides, d) == 1 && slices.Equal(edges(x.Padding, d), []int64{0, 0}) {
			out[0][d] = s
			continue
		}
		if err := a.wantEqual(0, d, "it combines windows"); err != nil {
			return nil, err
		}
		if !same {
			return nil, a.sameAttrs()
		}
	}
	return out, nil
}

func opaque(a *application) ([]state, error) {
	return nil, a.refuse("%s is known by its text alone", a.large.Attr.(op.OpaqueAttr).Name)
}

// sameButSizes compares attribute structs but for one field.
func sameButSizes[A any](x, y A, field string) bool {
	reflect.ValueOf(&x).Elem().FieldByName(field).SetZero()
	reflect.ValueOf(&y).Elem().FieldByName(field).SetZero()
	return reflect.DeepEqual(x, y)
}
