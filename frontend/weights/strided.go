package weights

import (
	"fmt"
	"math"

	"tpuc/ir/tensor"
)

// maxExpanded bounds the copy of a view that repeats elements and so is larger than its storage: such a size is not backed by the file.
const maxExpanded = 256 << 20

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
