package tpuc

import (
	"context"
	"math"
	"math/bits"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// PyTorch promises no order of equal elements for topk, so where the k-th largest element is equal to the next one, what a model computes
// with the indices is not determined either: sparse attention that keeps k of many scores of 0, say. Such an output is right when it is what the
// reference evaluator gives, which takes the lower index, and the expected one is what it gives with torch's own choice.

// tiedOutput reports that output k of call i, which differs from want, is right in that sense.
func (r *caseRun) tiedOutput(ctx context.Context, i, k int, got, want *tensor.Tensor) bool {
	tied, changed := false, false
	asTorch := func(m *ir.Module) bool {
		for _, f := range m.Functions() {
			for _, n := range f.Body {
				if !op.TopK.Is(n) {
					continue
				}
				o, a := *n.Op, op.TopK.Attr(n)
				o.Eval = func(in []*tensor.Tensor, _ any, out []tensor.Type) ([]*tensor.Tensor, error) {
					tied = tied || tiedTopK(in[0], a)
					return torchTopK(in[0], a, out), nil
				}
				n.Op, changed = &o, true
			}
		}
		return changed
	}
	torch, err := r.evaluateCalls(ctx, i, asTorch)
	if err != nil || torch == nil || !tied || !r.equals(torch[k], want) {
		return false
	}
	own, err := r.evaluateCalls(ctx, i, func(*ir.Module) bool { return true })
	return err == nil && r.equals(got, own[k])
}

func (r *caseRun) equals(got, want *tensor.Tensor) bool {
	return got.Type.Equal(want.Type) && compareTensors(got, want, r.Tolerance).OK
}

// rows calls visit with the elements of every row of x along axis as numbers, and the place in x of its first element and the step between two.
func rows(x *tensor.Tensor, axis int64, visit func(row []float64, at, step int64)) {
	v := make([]float64, x.Elements())
	if x.DType.IsInt() {
		for i, n := range x.Ints() {
			v[i] = float64(n)
		}
	} else {
		copy(v, x.Floats())
	}
	n, inner := x.Dims[axis], int64(1)
	for _, d := range x.Dims[axis+1:] {
		inner *= d
	}
	row := make([]float64, n)
	for at := int64(0); at < int64(len(v)); at++ {
		if at/inner%n != 0 {
			continue
		}
		for i := range n {
			row[i] = v[at+i*inner]
		}
		visit(row, at, inner)
	}
}

// before is torch's comparison: NaN is larger than all else.
func before(largest bool) func(x, y float64) bool {
	if largest {
		return func(x, y float64) bool { return math.IsNaN(x) && !math.IsNaN(y) || x > y }
	}
	return func(x, y float64) bool { return !math.IsNaN(x) && math.IsNaN(y) || x < y }
}

// tiedTopK reports a row whose k-th element is equal to one that is left out.
func tiedTopK(x *tensor.Tensor, a op.TopKAttr) bool {
	tied := false
	less := before(a.Largest)
	rows(x, a.Axis, func(row []float64, _, _ int64) {
		if a.K == 0 || a.K == int64(len(row)) {
			return
		}
		order := torchOrder(row, a)
		last := row[order[a.K-1]]
		for _, i := range order[a.K:] {
			tied = tied || !less(last, row[i])
		}
	})
	return tied
}

// torchTopK is topk with torch's choice among equal elements (aten/src/ATen/native/TopKImpl.h).
func torchTopK(x *tensor.Tensor, a op.TopKAttr, out []tensor.Type) []*tensor.Tensor {
	values := tensor.Zeros(out[0])
	indices := make([]int64, out[1].Elements())
	size := int64(x.DType.Size())
	n := x.Dims[a.Axis]
	rows(x, a.Axis, func(row []float64, at, step int64) {
		order := torchOrder(row, a)
		to := at/(n*step)*(a.K*step) + at%step
		for i := range a.K {
			from := at + int64(order[i])*step
			copy(values.Data[to*size:(to+1)*size], x.Data[from*size:])
			indices[to], to = int64(order[i]), to+step
		}
	})
	return []*tensor.Tensor{values, tensor.FromInts(out[1], indices)}
}

// torchOrder is the order in which torch leaves the places of a row, of which the first k are taken.
func torchOrder(row []float64, a op.TopKAttr) []int {
	q := &queue{order: make([]int, len(row))}
	less := before(a.Largest)
	for i := range q.order {
		q.order[i] = i
	}
	q.less = func(x, y int) bool { return less(row[x], row[y]) }
	k, n := int(a.K), len(row)
	switch {
	case k == 0:
	case k*64 <= n:
		q.partialSort(k)
	default:
		q.nthElement(k - 1)
		q.sort(k - 1)
	}
	return q.order
}

// queue is a range under libstdc++'s algorithms (bits/stl_algo.h, bits/stl_heap.h), which decide what becomes of equal elements.
type queue struct {
	order []int
	less  func(x, y int) bool
}

func (q *queue) at(i, j int) bool { return q.less(q.order[i], q.order[j]) }
func (q *queue) swap(i, j int)    { q.order[i], q.order[j] = q.order[j], q.order[i] }

// nthElement is std::nth_element over all of the range.
func (q *queue) nthElement(nth int) {
	first, last := 0, len(q.order)
	for depth := 2 * lg(last); last-first > 3; depth-- {
		if depth == 0 {
			q.heapSelect(first, nth+1, last)
			q.swap(first, nth)
			return
		}
		if cut := q.partitionPivot(first, last); cut <= nth {
			first = cut
		} else {
			last = cut
		}
	}
	q.insertionSort(first, last)
}

// sort is std::sort of the first n elements.
func (q *queue) sort(n int) {
	const threshold = 16
	if n < 2 {
		return
	}
	q.introsort(0, n, 2*lg(n))
	q.insertionSort(0, min(n, threshold))
	for i := threshold; i < n; i++ {
		q.linearInsert(i)
	}
}

func (q *queue) introsort(first, last, depth int) {
	for ; last-first > 16; depth-- {
		if depth == 0 {
			q.heapSelect(first, last, last)
			q.sortHeap(first, last)
			return
		}
		cut := q.partitionPivot(first, last)
		q.introsort(cut, last, depth-1)
		last = cut
	}
}

// partialSort is std::partial_sort of the k first elements of all.
func (q *queue) partialSort(k int) {
	q.heapSelect(0, k, len(q.order))
	q.sortHeap(0, k)
}

func lg(n int) int { return bits.Len(uint(n)) - 1 }

// partitionPivot is __unguarded_partition_pivot.
func (q *queue) partitionPivot(first, last int) int {
	a, b, c := first+1, first+(last-first)/2, last-1
	median := a
	switch {
	case q.at(a, b):
		if q.at(b, c) {
			median = b
		} else if q.at(a, c) {
			median = c
		}
	case q.at(a, c):
	case q.at(b, c):
		median = c
	default:
		median = b
	}
	q.swap(first, median)
	for i, j := first+1, last; ; i++ {
		for q.at(i, first) {
			i++
		}
		for j--; q.at(first, j); {
			j--
		}
		if i >= j {
			return i
		}
		q.swap(i, j)
	}
}

func (q *queue) insertionSort(first, last int) {
	for i := first + 1; i < last; i++ {
		if !q.at(i, first) {
			q.linearInsert(i)
			continue
		}
		v := q.order[i]
		copy(q.order[first+1:i+1], q.order[first:i])
		q.order[first] = v
	}
}

func (q *queue) linearInsert(i int) {
	v := q.order[i]
	for ; i > 0 && q.less(v, q.order[i-1]); i-- {
		q.order[i] = q.order[i-1]
	}
	q.order[i] = v
}

// heapSelect leaves a heap of the elements that come first in front of middle.
func (q *queue) heapSelect(first, middle, last int) {
	for parent := (middle - first - 2) / 2; middle-first >= 2 && parent >= 0; parent-- {
		q.adjustHeap(first, parent, middle-first, q.order[first+parent])
	}
	for i := middle; i < last; i++ {
		if q.at(i, first) {
			q.popHeap(first, middle, i)
		}
	}
}

func (q *queue) popHeap(first, last, result int) {
	v := q.order[result]
	q.order[result] = q.order[first]
	q.adjustHeap(first, 0, last-first, v)
}

func (q *queue) sortHeap(first, last int) {
	for last-first > 1 {
		last--
		q.popHeap(first, last, last)
	}
}

// adjustHeap sinks the hole to a leaf and lets v rise from there.
func (q *queue) adjustHeap(first, hole, n, v int) {
	top, child := hole, hole
	for child < (n-1)/2 {
		child = 2 * (child + 1)
		if q.at(first+child, first+child-1) {
			child--
		}
		q.order[first+hole] = q.order[first+child]
		hole = child
	}
	if n%2 == 0 && child == (n-2)/2 {
		child = 2 * (child + 1)
		q.order[first+hole] = q.order[first+child-1]
		hole = child - 1
	}
	for parent := (hole - 1) / 2; hole > top && q.less(q.order[first+parent], v); parent = (hole - 1) / 2 {
		q.order[first+hole] = q.order[first+parent]
		hole = parent
	}
	q.order[first+hole] = v
}
