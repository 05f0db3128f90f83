// Package tieorder gives topk the order that torch's CPU kernel gives equal elements, for which torch promises none, so that a model whose
// numbers depend on that order can still be compared with torch. It is for comparing alone: nothing that is compiled uses it.
package tieorder

import (
	"math/bits"
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// Torch makes the evaluator take every topk of m in torch's order, and reports whether there is one. Passes do not know such nodes.
func Torch(m *ir.Module) bool {
	found := false
	torch := *op.TopK.Op
	torch.Eval = func(args []*tensor.Tensor, attr any, out []tensor.Type) ([]*tensor.Tensor, error) {
		return topK(args[0], attr.(op.TopKAttr), out), nil
	}
	for _, f := range m.Functions() {
		for _, n := range f.Body {
			if op.TopK.Is(n) {
				n.Op, found = &torch, true
			}
		}
	}
	return found
}

// topK orders each line by aten/src/ATen/native/TopKImpl.h, with the algorithms of libstdc++, which torch's wheels are built with.
func topK(x *tensor.Tensor, a op.TopKAttr, out []tensor.Type) []*tensor.Tensor {
	values, indices := tensor.Zeros(out[0]), make([]int64, out[1].Elements())
	n, inner, size := x.Dims[a.Axis], int64(1), int64(x.DType.Size())
	for _, d := range x.Dims[a.Axis+1:] {
		inner *= d
	}
	compare := comparer(x)
	for line := range x.Elements() / max(n, 1) {
		base, to := line/inner*n*inner+line%inner, line/inner*a.K*inner+line%inner
		for i, at := range Order(int(n), int(a.K), func(i, j int64) bool {
			c := compare(base+i*inner, base+j*inner)
			return a.Largest && c > 0 || !a.Largest && c < 0
		}) {
			from, place := base+at*inner, to+int64(i)*inner
			copy(values.Data[place*size:(place+1)*size], x.Data[from*size:(from+1)*size])
			indices[place] = at
		}
	}
	return []*tensor.Tensor{values, tensor.FromInts(out[1], indices)}
}

// comparer orders elements, NaN above all else.
func comparer(x *tensor.Tensor) func(i, j int64) int {
	if !x.DType.IsFloat() {
		v := x.Ints()
		return func(i, j int64) int { return order(v[i], v[j]) }
	}
	v := x.Floats()
	return func(i, j int64) int {
		switch a, b := v[i], v[j]; {
		case a != a && b != b:
			return 0
		case a != a:
			return 1
		case b != b:
			return -1
		default:
			return order(a, b)
		}
	}
}

func order[T int64 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Order gives the first k of 0 .. n-1 in torch's order, where before says which of two elements comes first.
func Order(n, k int, before func(i, j int64) bool) []int64 {
	q := make(queue, n)
	for i := range q {
		q[i] = int64(i)
	}
	switch {
	case k == 0:
	case k*64 <= n:
		q.partialSort(0, k, n, before)
	default:
		q.nthElement(k-1, before)
		q[:k-1].sort(before)
	}
	return slices.Clone(q[:k])
}

// queue is what the algorithms of bits/stl_algo.h and bits/stl_heap.h work on. Ranges are half open.
type queue []int64

func (q queue) swap(i, j int) { q[i], q[j] = q[j], q[i] }

// nthElement is __introselect of the whole queue.
func (q queue) nthElement(nth int, before func(i, j int64) bool) {
	first, last := 0, len(q)
	if last == 0 || nth == last {
		return
	}
	for depth := 2 * (bits.Len(uint(last)) - 1); last-first > 3; depth-- {
		if depth == 0 {
			q.heapSelect(first, nth+1, last, before)
			q.swap(first, nth)
			return
		}
		if cut := q.partition(first, last, before); cut <= nth {
			first = cut
		} else {
			last = cut
		}
	}
	q.insertionSort(first, last, before)
}

// sort is std::sort: __introsort_loop down to ranges of 16, then one insertion sort over all.
func (q queue) sort(before func(i, j int64) bool) {
	if len(q) < 2 {
		return
	}
	q.introsort(0, len(q), 2*(bits.Len(uint(len(q)))-1), before)
	q.insertionSort(0, min(16, len(q)), before)
	for i := 16; i < len(q); i++ {
		q.insert(i, before)
	}
}

func (q queue) introsort(first, last, depth int, before func(i, j int64) bool) {
	for ; last-first > 16; depth-- {
		if depth == 0 {
			q.partialSort(first, last, last, before)
			return
		}
		cut := q.partition(first, last, before)
		q.introsort(cut, last, depth-1, before)
		last = cut
	}
}

// partition is __unguarded_partition_pivot: the median of three goes first, and the rest is parted by it.
func (q queue) partition(first, last int, before func(i, j int64) bool) int {
	a, b, c := first+1, first+(last-first)/2, last-1
	median := a
	switch {
	case before(q[a], q[b]):
		if before(q[b], q[c]) {
			median = b
		} else if before(q[a], q[c]) {
			median = c
		}
	case before(q[a], q[c]):
	case before(q[b], q[c]):
		median = c
	default:
		median = b
	}
	q.swap(first, median)
	pivot := first
	for first++; ; first++ {
		for before(q[first], q[pivot]) {
			first++
		}
		for last--; before(q[pivot], q[last]); last-- {
		}
		if first >= last {
			return first
		}
		q.swap(first, last)
	}
}

func (q queue) insertionSort(first, last int, before func(i, j int64) bool) {
	for i := first + 1; i < last; i++ {
		if v := q[i]; before(v, q[first]) {
			copy(q[first+1:i+1], q[first:i])
			q[first] = v
		} else {
			q.insert(i, before)
		}
	}
}

// insert is __unguarded_linear_insert: something before it is not after q[i].
func (q queue) insert(i int, before func(i, j int64) bool) {
	v := q[i]
	for ; before(v, q[i-1]); i-- {
		q[i] = q[i-1]
	}
	q[i] = v
}

// partialSort puts the first middle-first elements of the range in order.
func (q queue) partialSort(first, middle, last int, before func(i, j int64) bool) {
	q.heapSelect(first, middle, last, before)
	for end := middle - 1; end > first; end-- { // __sort_heap
		v := q[end]
		q[end] = q[first]
		q[first:].adjustHeap(0, end-first, v, before)
	}
}

// heapSelect keeps a heap of middle-first elements while it goes over the rest.
func (q queue) heapSelect(first, middle, last int, before func(i, j int64) bool) {
	heap, n := q[first:], middle-first
	for parent := (n - 2) / 2; n >= 2 && parent >= 0; parent-- { // __make_heap
		heap.adjustHeap(parent, n, heap[parent], before)
	}
	for i := middle; i < last; i++ {
		if v := q[i]; before(v, q[first]) {
			q[i] = q[first]
			heap.adjustHeap(0, n, v, before)
		}
	}
}

// adjustHeap is __adjust_heap: the hole sinks to a leaf, and v rises from there.
func (q queue) adjustHeap(hole, n int, v int64, before func(i, j int64) bool) {
	top, child := hole, hole
	for child < (n-1)/2 {
		if child = 2 * (child + 1); before(q[child], q[child-1]) {
			child--
		}
		q[hole], hole = q[child], child
	}
	if n&1 == 0 && child == (n-2)/2 {
		child = 2 * (child + 1)
		q[hole], hole = q[child-1], child-1
	}
	for hole > top {
		parent := (hole - 1) / 2
		if !before(q[parent], v) {
			break
		}
		q[hole], hole = q[parent], parent
	}
	q[hole] = v
}
