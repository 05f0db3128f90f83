package stablehlo

import (
	"tpuc/ir"
	"tpuc/ir/op"
)

// indexRules read and write at computed places.
var indexRules = map[string]rule{
	"stablehlo.dynamic_slice":        dynamicSlice,
	"stablehlo.dynamic_update_slice": dynamicUpdateSlice,
	"stablehlo.gather":               gather,
	"stablehlo.dynamic_gather":       gather,
	"stablehlo.scatter":              scatter,
}

func dynamicSlice(c *call) []*ir.Value {
	if len(c.args) == 0 || len(c.args) != c.args[0].Type.Rank()+1 {
		c.fail("%d operands, wanted one start a dimension", len(c.args))
	}
	if len(c.args) == 1 { // of a scalar
		return one(c.args[0])
	}
	return one(op.DynamicSlice.Make(c.b, op.DynamicSliceAttr{Sizes: c.list("slice_sizes", nil)}, c.args...))
}

func dynamicUpdateSlice(c *call) []*ir.Value {
	if len(c.args) < 2 {
		c.fail("%d operands, wanted two tensors and the starts", len(c.args))
	}
	if len(c.args) == 2 { // scalars
		return one(c.args[1])
	}
	return one(op.DynamicUpdateSlice.Make(c.b, c.args...))
}

func gather(c *call) []*ir.Value {
	if len(c.args) != 3 || c.o.name != "stablehlo.dynamic_gather" {
		c.arity(2)
	}
	const numbers = "dimension_numbers"
	sizes := c.list("slice_sizes", nil)
	if len(c.args) == 3 {
		x := constantOf(c.args[2])
		if x == nil || !x.DType.IsInt() {
			c.unsupported("slice sizes that are computed, wanted literals")
		}
		sizes = x.Ints()
	}
	return one(op.Gather.Make(c.b, op.GatherAttr{
		OffsetDims:               c.numbers(numbers, "offset_dims"),
		CollapsedSliceDims:       c.numbers(numbers, "collapsed_slice_dims"),
		OperandBatchingDims:      c.numbers(numbers, "operand_batching_dims"),
		StartIndicesBatchingDims: c.numbers(numbers, "start_indices_batching_dims"),
		StartIndexMap:            c.numbers(numbers, "start_index_map"),
		IndexVectorDim:           c.single(numbers, "index_vector_dim"),
		SliceSizes:               sizes,
	}, c.args[0], c.args[1]))
}

// single is a field that is one integer, 0 where absent.
func (c *call) single(attribute, name string) int64 {
	v := c.numbers(attribute, name)
	if len(v) == 0 {
		return 0
	}
	return v[0]
}

// scatter takes regions that replace, add, multiply, or take the larger or smaller one.
func scatter(c *call) []*ir.Value {
	if len(c.args) != 3 {
		return nil
	}
	const numbers = "scatter_dimension_numbers"
	r := c.region(0, 2)
	kind, ok := reducerOf(r, c.args[0].Type.DType)
	if len(r.body) == 1 && len(r.body[0].args) == 1 && r.body[0].args[0].name == r.params[1].name {
		kind, ok = op.Set, true
	}
	if !ok || kind == op.AllTrue || kind == op.AnyTrue {
		return nil
	}
	return one(op.Scatter.Make(c.b, op.ScatterAttr{
		UpdateWindowDims:           c.numbers(numbers, "update_window_dims"),
		InsertedWindowDims:         c.numbers(numbers, "inserted_window_dims"),
		InputBatchingDims:          c.numbers(numbers, "input_batching_dims"),
		ScatterIndicesBatchingDims: c.numbers(numbers, "scatter_indices_batching_dims"),
		ScatterDimsToOperandDims:   c.numbers(numbers, "scatter_dims_to_operand_dims"),
		IndexVectorDim:             c.single(numbers, "index_vector_dim"),
		Kind:                       kind, UniqueIndices: c.flag("unique_indices"),
	}, c.args...))
}
