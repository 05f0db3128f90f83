package tensor

// Gather copies a view of data to row-major order: element i of t is element offset + sum(i[d] * strides[d]) of data, which has t's dtype.
// The view must lie within data; strides may be 0 or negative.
func Gather(t Type, data []byte, offset int64, strides []int64) *Tensor {
	x := Zeros(t)
	if len(x.Data) == 0 {
		return x
	}
	elem := t.DType.Size()
	// Trailing dimensions that lie densely are copied as one run.
	inner, run := len(t.Dims), int64(1)
	for inner > 0 && (t.Dims[inner-1] == 1 || strides[inner-1] == run) {
		inner--
		run *= t.Dims[inner]
	}
	gather(x.Data, data, t.Dims[:inner], strides[:inner], offset, int(run)*elem, elem)
	return x
}

// gather copies runs of size run bytes over the outer dimensions and returns what is left of out.
func gather(out, data []byte, dims, strides []int64, offset int64, run, elem int) []byte {
	if len(dims) == 0 {
		at := int(offset) * elem
		copy(out[:run], data[at:at+run])
		return out[run:]
	}
	if len(dims) == 1 && run == elem && strides[0] != 0 {
		return gatherElements(out, data, dims[0], strides[0], offset, elem)
	}
	if strides[0] == 0 { // the same again and again
		all := out[:int(Make(U8, dims...).Elements())*run]
		done := len(out) - len(gather(out, data, dims[1:], strides[1:], offset, run, elem))
		for done < len(all) {
			done += copy(all[done:], all[:done])
		}
		return out[len(all):]
	}
	for i := range dims[0] {
		out = gather(out, data, dims[1:], strides[1:], offset+i*strides[0], run, elem)
	}
	return out
}

// gatherElements copies count single elements at a stride.
func gatherElements(out, data []byte, count, stride, offset int64, elem int) []byte {
	at, step := int(offset)*elem, int(stride)*elem
	switch elem {
	case 2:
		for range count {
			*(*[2]byte)(out) = *(*[2]byte)(data[at:])
			out, at = out[2:], at+step
		}
	case 4:
		for range count {
			*(*[4]byte)(out) = *(*[4]byte)(data[at:])
			out, at = out[4:], at+step
		}
	default:
		for range count {
			copy(out[:elem], data[at:at+elem])
			out, at = out[elem:], at+step
		}
	}
	return out
}
