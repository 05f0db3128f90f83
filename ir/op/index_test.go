package op_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

func TestGather(t *testing.T) {
	// Rows 2 and 0 of a table, then a row beyond the end, which is clamped, and a negative one.
	rows := op.GatherAttr{OffsetDims: []int64{1}, CollapsedSliceDims: []int64{0}, StartIndexMap: []int64{0}, IndexVectorDim: 1, SliceSizes: []int64{1, 2}}
	got := run(t, op.Gather.Op, rows, upTo("i8[3,2]"), in("i64[4]", 2, 0, 9, -1))[0]
	require.Equal(t, in("i8[4,2]", 4, 5, 0, 1, 4, 5, 0, 1), got)
	got = run(t, op.Gather.Op, rows, upTo("i8[3,2]"), in("u64[1]", -1))[0]
	require.Equal(t, in("i8[1,2]", 4, 5), got, "the largest unsigned index is no negative one")

	// A window of 2 x 2 at computed corners (row, column) with the components along dimension 0 and offsets in front.
	box := op.GatherAttr{OffsetDims: []int64{0, 1}, StartIndexMap: []int64{1, 0}, IndexVectorDim: 0, SliceSizes: []int64{2, 2}}
	got = run(t, op.Gather.Op, box, upTo("i8[3,4]"), in("i32[2,2]", 1, 3, 0, 1))[0] // corners (column 1, row 0), (column 3, row 1)
	require.Equal(t, in("i8[2,2,2]", 1, 6, 2, 7, 5, 10, 6, 11), got)

	// Batching dimensions: for each batch its own index.
	batch := op.GatherAttr{OffsetDims: nil, CollapsedSliceDims: []int64{1}, OperandBatchingDims: []int64{0}, StartIndicesBatchingDims: []int64{1},
		StartIndexMap: []int64{1}, IndexVectorDim: 2, SliceSizes: []int64{1, 1}}
	got = run(t, op.Gather.Op, batch, upTo("i8[2,3]"), in("i32[3,2]", 0, 2, 1, 1, 2, 0))[0]
	require.Equal(t, in("i8[3,2]", 0, 5, 1, 4, 2, 3), got)

	require.Empty(t, run(t, op.Gather.Op, rows, upTo("i8[3,2]"), in("i64[0]"))[0].Data)
}

func TestGatherRules(t *testing.T) {
	good := op.GatherAttr{OffsetDims: []int64{1}, CollapsedSliceDims: []int64{0}, StartIndexMap: []int64{0}, IndexVectorDim: 1, SliceSizes: []int64{1, 2}}
	for id, change := range map[string]func(a *op.GatherAttr){
		"[gather/2]":  func(a *op.GatherAttr) { a.IndexVectorDim = 2 },
		"[gather/3]":  func(a *op.GatherAttr) { a.IndexVectorDim = 0 },
		"[gather/4]":  func(a *op.GatherAttr) { a.StartIndexMap = []int64{2} },
		"[gather/5]":  func(a *op.GatherAttr) { a.OperandBatchingDims = []int64{1} },
		"[gather/6]":  func(a *op.GatherAttr) { a.OperandBatchingDims, a.StartIndicesBatchingDims = []int64{1}, []int64{0} },
		"[gather/11]": func(a *op.GatherAttr) { a.CollapsedSliceDims = []int64{2} },
		"[gather/12]": func(a *op.GatherAttr) { a.SliceSizes = []int64{1} },
		"[gather/13]": func(a *op.GatherAttr) { a.SliceSizes = []int64{1, 3} },
		"[gather/14]": func(a *op.GatherAttr) { a.SliceSizes = []int64{2, 2} },
		"[gather/15]": func(a *op.GatherAttr) { a.OffsetDims = []int64{2} },
	} {
		a := good
		change(&a)
		require.ErrorContains(t, infer(op.Gather.Op, a, "f32[3,2]", "i32[4]"), id)
	}
	require.ErrorContains(t, infer(op.Gather.Op, good, "f32[3,2]", "f32[4]"), "[gather/1]")
	require.NoError(t, infer(op.Gather.Op, good, "f32[3,2]", "i32[4]"))
}

func TestScatter(t *testing.T) {
	rows := op.ScatterAttr{UpdateWindowDims: []int64{1}, InsertedWindowDims: []int64{0}, ScatterDimsToOperandDims: []int64{0}, IndexVectorDim: 1}
	x, ids := upTo("i8[3,2]"), in("i64[4]", 2, 0, 2, 7)
	u := in("i8[4,2]", 10, 11, 20, 21, 30, 31, 40, 41)
	for kind, want := range map[op.Reducer]*tensor.Tensor{
		op.Set:  in("i8[3,2]", 20, 21, 2, 3, 30, 31),
		op.Sum:  in("i8[3,2]", 20, 22, 2, 3, 44, 47),
		op.Max:  in("i8[3,2]", 20, 21, 2, 3, 30, 31),
		op.Min:  in("i8[3,2]", 0, 1, 2, 3, 4, 5),
		op.Prod: in("i8[3,2]", 0, 21, 2, 3, -80, -87),
	} {
		a := rows
		a.Kind = kind
		require.Equal(t, want, run(t, op.Scatter.Op, a, x, ids, u)[0], "%s", kind)
	}
	a := rows
	a.Kind = op.Set
	require.Equal(t, x, run(t, op.Scatter.Op, a, x, in("i64[2]", -1, 3), in("i8[2,2]", 1, 2, 3, 4))[0], "updates outside are dropped")
	require.Equal(t, x, run(t, op.Scatter.Op, a, x, in("u64[1]", -1), in("i8[1,2]", 1, 2))[0])
	require.Equal(t, x, run(t, op.Scatter.Op, a, x, in("i64[0]"), in("i8[0,2]"))[0])

	// A window that hangs over the edge is dropped whole.
	part := op.ScatterAttr{UpdateWindowDims: []int64{0}, ScatterDimsToOperandDims: []int64{0}, IndexVectorDim: 0, Kind: op.Set}
	require.Equal(t, upTo("i8[3]"), run(t, op.Scatter.Op, part, upTo("i8[3]"), in("i32[1]", 2), in("i8[2]", 8, 9))[0])
	require.Equal(t, upTo("i8[3]"), run(t, op.Scatter.Op, part, upTo("i8[3]"), in("i32[1]", -1), in("i8[2]", 8, 9))[0])

	// Batching dimensions, and a sum in bf16 that is rounded once.
	batch := op.ScatterAttr{InsertedWindowDims: []int64{1}, InputBatchingDims: []int64{0}, ScatterIndicesBatchingDims: []int64{0},
		ScatterDimsToOperandDims: []int64{1}, IndexVectorDim: 2, Kind: op.Sum}
	got := run(t, op.Scatter.Op, batch, fl("bf16[2,2]", 256, 0, 0, 256), in("i32[2,2]", 0, 0, 1, 0), fl("bf16[2,2]", 1, 1, 1, 5))[0]
	require.Equal(t, fl("bf16[2,2]", 258, 0, 5, 256), got)
}

func TestScatterRules(t *testing.T) {
	good := op.ScatterAttr{UpdateWindowDims: []int64{1}, InsertedWindowDims: []int64{0}, ScatterDimsToOperandDims: []int64{0}, IndexVectorDim: 1, Kind: op.Set}
	for id, change := range map[string]func(a *op.ScatterAttr){
		"[scatter/2]":  func(a *op.ScatterAttr) { a.IndexVectorDim = -1 },
		"[scatter/3]":  func(a *op.ScatterAttr) { a.IndexVectorDim = 0 },
		"[scatter/4]":  func(a *op.ScatterAttr) { a.ScatterDimsToOperandDims = []int64{2} },
		"[scatter/5]":  func(a *op.ScatterAttr) { a.InputBatchingDims = []int64{1} },
		"[scatter/6]":  func(a *op.ScatterAttr) { a.InputBatchingDims, a.ScatterIndicesBatchingDims = []int64{1}, []int64{0} },
		"[scatter/11]": func(a *op.ScatterAttr) { a.Kind = op.AnyTrue },
		"[scatter/14]": func(a *op.ScatterAttr) { a.InsertedWindowDims = []int64{2} },
		"[scatter/15]": func(a *op.ScatterAttr) { a.UpdateWindowDims = []int64{2} },
		"[scatter/16]": func(a *op.ScatterAttr) { a.UpdateWindowDims = []int64{0} },
	} {
		a := good
		change(&a)
		require.ErrorContains(t, infer(op.Scatter.Op, a, "f32[3,2]", "i32[4]", "f32[4,2]"), id)
	}
	require.ErrorContains(t, infer(op.Scatter.Op, good, "f32[3,2]", "bool[4]", "f32[4,2]"), "[scatter/1]")
	require.ErrorContains(t, infer(op.Scatter.Op, good, "f32[3,2]", "i32[4]", "f16[4,2]"), "[scatter/13]")
	require.ErrorContains(t, infer(op.Scatter.Op, good, "f32[3,2]", "i32[4]", "f32[4,3]"), "[scatter/17]")
	sum := good
	sum.Kind = op.Sum
	require.ErrorContains(t, infer(op.Scatter.Op, sum, "bool[3,2]", "i32[4]", "bool[4,2]"), "[scatter/12]")
	require.NoError(t, infer(op.Scatter.Op, good, "bool[3,2]", "i32[4]", "bool[4,2]"))
}

func TestDynamicUpdateSlice(t *testing.T) {
	x, u := upTo("i8[3,3]"), in("i8[2,1]", 20, 21)
	at := func(i, j int64) *tensor.Tensor {
		return run(t, op.DynamicUpdateSlice.Op, nil, x, u, in("i32[]", i), in("i32[]", j))[0]
	}
	require.Equal(t, in("i8[3,3]", 0, 1, 2, 3, 20, 5, 6, 21, 8), at(1, 1))
	require.Equal(t, in("i8[3,3]", 0, 1, 2, 3, 4, 20, 6, 7, 21), at(9, 9), "starts are clamped so that the box fits")
	require.Equal(t, in("i8[3,3]", 20, 1, 2, 21, 4, 5, 6, 7, 8), at(-4, -1))
	require.Equal(t, in("i8[1]", 5), run(t, op.DynamicUpdateSlice.Op, nil, in("i8[1]", 0), in("i8[1]", 5), in("u64[]", -1))[0])
	require.Equal(t, in("i8[]", 7), run(t, op.DynamicUpdateSlice.Op, nil, in("i8[]", 0), in("i8[]", 7))[0])

	require.ErrorContains(t, infer(op.DynamicUpdateSlice.Op, nil, "f32[2]", "f16[1]", "i32[]"), "[dynamic_update_slice/1]")
	require.ErrorContains(t, infer(op.DynamicUpdateSlice.Op, nil, "f32[2]", "f32[3]", "i32[]"), "[dynamic_update_slice/2]")
	require.ErrorContains(t, infer(op.DynamicUpdateSlice.Op, nil, "f32[2]", "f32[1]"), "[dynamic_update_slice/3]")
	require.ErrorContains(t, infer(op.DynamicUpdateSlice.Op, nil, "f32[2,2]", "f32[1,1]", "i32[]", "i64[]"), "[dynamic_update_slice/4]")
}

func TestTakeAndEmbedding(t *testing.T) {
	got := run(t, op.Take.Op, op.TakeAttr{Axis: 1}, upTo("i8[2,3,2]"), in("i64[2,1]", 2, -5))[0]
	require.Equal(t, in("i8[2,2,1,2]", 4, 5, 0, 1, 10, 11, 6, 7), got)
	require.Equal(t, in("i8[2]", 2, 5), run(t, op.Take.Op, op.TakeAttr{Axis: 1}, upTo("i8[2,3]"), in("u64[]", -1))[0])
	require.Equal(t, in("i8[2,2]", 4, 5, 4, 5), run(t, op.Embedding.Op, nil, upTo("i8[3,2]"), in("i32[2]", 2, 99))[0])
	require.Empty(t, run(t, op.Take.Op, op.TakeAttr{}, in("i8[0,2]"), in("i32[0]"))[0].Data)

	require.ErrorContains(t, infer(op.Take.Op, op.TakeAttr{Axis: 1}, "f32[2]", "i32[]"), "[take/1]")
	require.ErrorContains(t, infer(op.Take.Op, op.TakeAttr{}, "f32[2]", "f32[]"), "[take/2]")
	require.ErrorContains(t, infer(op.Take.Op, op.TakeAttr{}, "f32[0]", "i32[]"), "[take/3]")
	require.ErrorContains(t, infer(op.Embedding.Op, nil, "f32[2]", "i32[]"), "[embedding/1]")
	require.ErrorContains(t, infer(op.Embedding.Op, nil, "f32[2,2]", "bool[]"), "[embedding/2]")
	require.ErrorContains(t, infer(op.Embedding.Op, nil, "f32[0,2]", "i32[1]"), "[embedding/3]")
}
