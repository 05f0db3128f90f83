package bytecode

import "strconv"

// Attributes of StableHLO itself, by their numbers in StableHLO's StablehloBytecode.cpp.
const (
	stablehloChannelHandle      = 1
	stablehloConv               = 4
	stablehloDot                = 5
	stablehloGather             = 7
	stablehloScatter            = 11
	stablehloTypeExtensions     = 13
	stablehloOutputOperandAlias = 14
	stablehloDotAlgorithm       = 15
	stablehloResultAccuracy     = 17
	stablehloReplicaGroups      = 18 // the first of those that say where devices are
	stablehloMesh               = 22 // the last
)

// stablehloEnums are the enums by number of the attribute.
var stablehloEnums = map[uint64]enum{2: comparisonDirection, 3: comparisonType, 6: fftType, 8: precision, 9: rngAlgorithm, 10: rngDistribution, 12: transpose, 16: resultAccuracyMode}

func stablehloAttr(d *decoder, r *reader) attribute {
	code := r.varint()
	if e, ok := stablehloEnums[code]; ok {
		return e.read(r)
	}
	lists := func(n int) [][]int64 {
		out := make([][]int64, n)
		for i := range out {
			out[i] = r.signeds()
		}
		return out
	}
	switch code {
	case stablehloChannelHandle:
		return channelHandle(r.signed(), r.signed())
	case stablehloConv:
		var sides [3][]int64 // batch (or input, or output), feature, and places in space
		for i := range sides {
			sides[i] = append([]int64{r.signed(), r.signed()}, r.signeds()...)
		}
		return convNumbers(r, sides)
	case stablehloDot:
		v := lists(4)
		return dotNumbers(v[0], v[1], v[2], v[3])
	case stablehloGather:
		v := lists(5)
		return fields("gather", gatherFields, v, r.signed())
	case stablehloScatter:
		v := lists(5)
		return fields("scatter", scatterFields, v, r.signed())
	case stablehloTypeExtensions:
		return typeExtensions(r)
	case stablehloOutputOperandAlias:
		return outputOperandAlias(r)
	case stablehloDotAlgorithm:
		a := dotAlgorithm{types: [3]*typ{d.typ(r), d.typ(r), d.typ(r)}, counts: [3]int64{r.signed(), r.signed(), r.signed()}, imprecise: r.bool()}
		return a.attr()
	case stablehloResultAccuracy:
		return d.resultAccuracy(r)
	}
	r.pos = r.end
	if code < stablehloReplicaGroups || code > stablehloMesh {
		r.fail("attribute %d of StableHLO, wanted one up to %d", code, stablehloMesh)
	}
	return textAttr("#stablehlo.mesh") // of an operation that the importer refuses by its name
}

// stablehloType is a token, or the result of an asynchronous operation.
func stablehloType(d *decoder, r *reader) *typ {
	if r.index("type", 2) == 0 {
		return scalar("!stablehlo.token")
	}
	return d.listed("!stablehlo.future", all(r, "types", d.typ))
}

// sdyAttr skips what an attribute says of devices: a program is for one.
func sdyAttr(_ *decoder, r *reader) attribute {
	r.pos = r.end
	return placement{}
}

// chloAttr is an enum.
func chloAttr(_ *decoder, r *reader) attribute {
	return []enum{chloComparisonDirection, chloComparisonType}[r.index("attribute", 2)].read(r)
}

// channelHandle is #stablehlo.channel_handle<...>.
func channelHandle(handle, kind int64) attribute {
	return textAttr("#stablehlo.channel_handle<handle = " + strconv.FormatInt(handle, 10) + ", type = " + strconv.FormatInt(kind, 10) + ">")
}

// Lists of the numbers of dimensions, in their order in StableHLO.
var (
	gatherFields  = []string{"offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims", "start_index_map"}
	scatterFields = []string{"update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims", "scatter_dims_to_operand_dims"}
)

// fields is #stablehlo.name<a = [1], index_vector_dim = 0>, without empty lists.
func fields(name string, names []string, lists [][]int64, indexVector int64) attribute {
	text := "#stablehlo." + name + "<"
	for i, v := range lists {
		if len(v) > 0 {
			text += names[i] + " = [" + integers(v) + "], "
		}
	}
	return textAttr(text + "index_vector_dim = " + strconv.FormatInt(indexVector, 10) + ">")
}

// dotNumbers is #stablehlo.dot<...>.
func dotNumbers(lhsBatch, rhsBatch, lhsContract, rhsContract []int64) attribute {
	text := "#stablehlo.dot<"
	if len(lhsBatch)+len(rhsBatch) > 0 {
		text += "lhs_batching_dimensions = [" + integers(lhsBatch) + "], rhs_batching_dimensions = [" + integers(rhsBatch) + "], "
	}
	return textAttr(text + "lhs_contracting_dimensions = [" + integers(lhsContract) + "], rhs_contracting_dimensions = [" + integers(rhsContract) + "]>")
}

// convNumbers is #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>. A side gives the places of batch and feature, or of the filter's input and output
// features, and then of the dimensions in space.
func convNumbers(r *reader, sides [3][]int64) attribute {
	var parts [3]string
	for i, names := range [3][2]string{{"b", "f"}, {"i", "o"}, {"b", "f"}} {
		words := make([]string, len(sides[i]))
		for j, at := range sides[i] {
			if at < 0 || at >= int64(len(words)) || words[at] != "" {
				r.fail("dimension %d of a convolution of %d, wanted each once", at, len(words))
			}
			if j < 2 {
				words[at] = names[j]
			} else {
				words[at] = strconv.Itoa(j - 2)
			}
		}
		parts[i] = "[" + list(words, func(s string) string { return s }) + "]"
	}
	return textAttr("#stablehlo.conv<" + parts[0] + "x" + parts[1] + "->" + parts[2] + ">")
}

// dotAlgorithm says how a product is computed.
type dotAlgorithm struct {
	types     [3]*typ  // of both operands and of sums
	counts    [3]int64 // components of the operands, and products
	imprecise bool
}

func (a dotAlgorithm) attr() attribute {
	n := func(i int) string { return strconv.FormatInt(a.counts[i], 10) }
	return textAttr("#stablehlo.dot_algorithm<lhs_precision_type = " + a.types[0].text + ", rhs_precision_type = " + a.types[1].text + ", accumulation_type = " +
		a.types[2].text + ", lhs_component_count = " + n(0) + ", rhs_component_count = " + n(1) + ", num_primitive_operations = " + n(2) +
		", allow_imprecise_accumulation = " + strconv.FormatBool(a.imprecise) + ">")
}
