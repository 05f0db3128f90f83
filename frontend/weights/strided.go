package weights

import (
	"fmt"
	"math"

	"tpuc/ir/tensor"
)

// maxExpanded bounds the copy of a view that repeats elements and so is larger than its storage: such a size is not backed by the file.
const maxExpanded = 1 << 30

// checkView refuses a view that reaches outside of a storage of size bytes, and one whose copy would be out of all proportion.
// t has been checked already. All arithmetic is exact.
func checkView(t tensor.Type, strides []int64, offset, size int64) error {
	elem := int64(t.DType.Size())
	have := size / elem
	if offset < 0 || offset > have {
		return fmt.Errorf("storage offset %d, wanted between 0 and %d", offset, have)
	}
	for i, s := range strides {
		if s < 0 {
			return fmt.Errorf("stride %d of dimension %d, wanted 0 or more", s, i)
		}
	}
	if t.Elements() == 0 {
		return nil
	}
	last := offset // the highest element that the view reads
	for i, d := range t.Dims {
		if d > 1 && strides[i] > (math.MaxInt64-last)/(d-1) {
			return fmt.Errorf("shape %v with strides %v overflows", t.Dims, strides)
		}
		last += (d - 1) * strides[i]
	}
	if last >= have {
		return fmt.Errorf("shape %v with strides %v and offset %d reads element %d, wanted below %d (%d bytes of %s)",
			t.Dims, strides, offset, last, have, size, t.DType)
	}
	if t.Bytes() > max(size, maxExpanded) {
		return fmt.Errorf("%s repeats a storage of %d bytes up to %d bytes, wanted at most %d", t, size, t.Bytes(), max(size, maxExpanded))
	}
	return nil
}

// gather copies a strided view to row-major order. The view has been checked against data. elem is the element's size in bytes, offset
// and strides count elements.
func gather(data []byte, dims, strides []int64, offset int64, elem int) []byte {
	n := int64(elem)
	for _, d := range dims {
		n *= d
	}
	out := make([]byte, n)
	// Trailing dimensions that lie densely are copied as one run.
	inner, run := len(dims), int64(1)
	for inner > 0 && (dims[inner-1] == 1 || strides[inner-1] == run) {
		inner--
		run *= dims[inner]
	}
	copyView(out, data, dims[:inner], strides[:inner], offset, int(run)*elem, elem)
	return out
}

// copyView copies runs of size run bytes over the outer dimensions and returns what is left of out.
func copyView(out, data []byte, dims, strides []int64, offset int64, run, elem int) []byte {
	if len(dims) == 0 {
		at := int(offset) * elem
		copy(out[:run], data[at:at+run])
		return out[run:]
	}
	if len(dims) == 1 && run == elem {
		return copyElements(out, data, dims[0], strides[0], offset, elem)
	}
	for i := range dims[0] {
		out = copyView(out, data, dims[1:], strides[1:], offset+i*strides[0], run, elem)
	}
	return out
}

// copyElements copies count single elements at a stride.
func copyElements(out, data []byte, count, stride, offset int64, elem int) []byte {
	at, step := int(offset)*elem, int(stride)*elem
	for range count {
		for b := range elem {
			out[b] = data[at+b]
		}
		out = out[elem:]
		at += step
	}
	return out
}
