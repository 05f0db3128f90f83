package bytecode

import (
	"strconv"
	"strings"
)

// Attributes of VHLO, by their numbers in StableHLO's VhloBytecode.cpp.
const (
	vhloArray                = 1
	vhloBoolean              = 2
	vhloCustomCallApiVersion = 5
	vhloDictionary           = 6
	vhloFloat                = 8
	vhloInteger              = 9
	vhloOutputOperandAlias   = 10
	vhloString               = 14
	vhloTensor               = 15
	vhloTypeAttr             = 17
	vhloTypeExtensions       = 18
	vhloResultAccuracy       = 20
	vhloSubAxisInfo          = 21 // the first of those that say where devices are
	vhloMesh                 = 25 // the last
)

// Enums of StableHLO, which VHLO and CHLO share: the values by their numbers.
var (
	comparisonDirection = enum{"#stablehlo<comparison_direction ", strings.Fields("EQ NE GE GT LE LT")}
	comparisonType      = enum{"#stablehlo<comparison_type ", strings.Fields("NOTYPE FLOAT TOTALORDER SIGNED UNSIGNED")}
	fftType             = enum{"#stablehlo<fft_type ", strings.Fields("FFT IFFT RFFT IRFFT")}
	precision           = enum{"#stablehlo<precision ", strings.Fields("DEFAULT HIGH HIGHEST")}
	rngAlgorithm        = enum{"#stablehlo<rng_algorithm ", strings.Fields("DEFAULT THREE_FRY PHILOX")}
	rngDistribution     = enum{"#stablehlo<rng_distribution ", []string{"", "UNIFORM", "NORMAL"}}
	transpose           = enum{"#stablehlo<transpose ", strings.Fields("TRANSPOSE_INVALID NO_TRANSPOSE TRANSPOSE ADJOINT")}
	resultAccuracyMode  = enum{"#stablehlo.result_accuracy_mode<", strings.Fields("DEFAULT HIGHEST TOLERANCE")}

	chloComparisonDirection = enum{"#chlo<comparison_direction ", comparisonDirection.values}
	chloComparisonType      = enum{"#chlo<comparison_type ", comparisonType.values}
)

// enum is an attribute that is one of several words.
type enum struct {
	prefix string // of its text
	values []string
}

// read reads the number of a value.
func (e enum) read(r *reader) attribute {
	v := e.values[r.index("value", len(e.values))]
	if v == "" {
		r.fail("a value that %s...> does not have, wanted one of %s", e.prefix, strings.Join(e.values, " "))
	}
	return textAttr(e.prefix + v + ">")
}

// vhloEnums are the enums by number of the attribute.
var vhloEnums = map[uint64]enum{3: comparisonDirection, 4: comparisonType, 7: fftType, 11: precision, 12: rngAlgorithm, 13: rngDistribution, 16: transpose, 19: resultAccuracyMode}

func vhloAttr(d *decoder, r *reader) attribute {
	code := r.varint()
	if e, ok := vhloEnums[code]; ok {
		return e.read(r)
	}
	switch code {
	case vhloArray:
		return arrayAttr(all(r, "attributes", d.attr))
	case vhloBoolean:
		return boolAttr(r.index("bool", 2) == 1)
	case vhloCustomCallApiVersion:
		return intAttr{scalar("i32"), int64(r.index("version", 5))}
	case vhloDictionary:
		return dictAttr(all(r, "attributes", func(r *reader) named { return named{d.stringOf(r), d.attr(r)} }))
	case vhloFloat:
		t := d.typ(r)
		return floatAttr{t, r.apint(d.bits(r, t))}
	case vhloInteger:
		t := d.typ(r)
		return intAttr{t, int64(r.apint(d.bits(r, t)))}
	case vhloOutputOperandAlias:
		return outputOperandAlias(r)
	case vhloString:
		return stringAttr(d.string(r))
	case vhloTensor:
		t := d.typ(r)
		return d.literal(r, t, r.bytes(r.varint()))
	case vhloTypeAttr:
		return d.typ(r)
	case vhloTypeExtensions:
		return typeExtensions(r)
	case vhloResultAccuracy:
		return d.resultAccuracy(r)
	}
	r.pos = r.end
	if code < vhloSubAxisInfo || code > vhloMesh {
		r.fail("attribute %d of VHLO, wanted one up to %d", code, vhloMesh)
	}
	return textAttr("#stablehlo.mesh") // of an operation that the importer refuses by its name
}

// Types of VHLO, by their numbers.
const (
	vhloComplex             = 1
	vhloFunction            = 8
	vhloRankedTensor        = 20
	vhloRankedTensorEncoded = 21
	vhloTuple               = 23
	vhloQuantized           = 24
	vhloUnrankedTensor      = 25
	vhloQuantizedPerAxis    = 30
	vhloRankedBuffer        = 41
	vhloFuture              = 42
)

// vhloNames are the types that are nothing but a name. Signed integers are signless in StableHLO.
var vhloNames = map[uint64]string{0: "i1", 2: "bf16", 3: "f16", 4: "f32", 5: "f64", 6: "f8E4M3FN", 7: "f8E5M2", 9: "index", 10: "i4", 11: "i8", 12: "i16",
	13: "i32", 14: "i64", 15: "ui4", 16: "ui8", 17: "ui16", 18: "ui32", 19: "ui64", 22: "!stablehlo.token", 26: "!shape.witness", 27: "f8E4M3FNUZ",
	28: "f8E5M2FNUZ", 29: "f8E4M3B11FNUZ", 31: "i2", 32: "ui2", 33: "none", 34: "tf32", 35: "f8E4M3", 36: "f8E3M4", 37: "f4E2M1FN", 38: "f6E2M3FN",
	39: "f6E3M2FN", 40: "f8E8M0FNU"}

func vhloType(d *decoder, r *reader) *typ {
	code := r.varint()
	if name, ok := vhloNames[code]; ok {
		return scalar(name)
	}
	switch code {
	case vhloComplex:
		return complexOf(d.typ(r))
	case vhloFunction:
		return d.function(all(r, "types", d.typ), all(r, "types", d.typ))
	case vhloRankedTensor:
		return d.tensor(r, "")
	case vhloRankedTensorEncoded:
		return d.tensor(r, ", "+d.print(d.attr(r)))
	case vhloTuple:
		return d.listed("tuple", all(r, "types", d.typ))
	case vhloUnrankedTensor:
		return &typ{text: "tensor<*x" + d.typ(r).text + ">"}
	case vhloRankedBuffer:
		dims := r.extents()
		return &typ{text: shaped("memref", dims, d.typ(r), "").text}
	case vhloFuture:
		return d.listed("!stablehlo.future", all(r, "types", d.typ))
	case vhloQuantized:
		r.varint()
		storage, expressed := d.typ(r), d.typ(r)
		r.apint(64)
		r.signed()
		r.signed()
		r.signed()
		return quantized(storage, expressed)
	case vhloQuantizedPerAxis:
		r.varint()
		storage, expressed := d.typ(r), d.typ(r)
		r.varint()
		r.signed()
		r.signed()
		all(r, "scales", func(r *reader) uint64 { return r.apint(64) })
		r.signeds()
		return quantized(storage, expressed)
	}
	r.pos = r.end
	r.fail("type %d of VHLO, wanted one up to %d", code, vhloFuture)
	return nil
}

// quantized names a type that the importer refuses, without its scales.
func quantized(storage, expressed *typ) *typ {
	return &typ{text: "!quant.uniform<" + storage.text + ":" + expressed.text + ">"}
}

func outputOperandAlias(r *reader) attribute {
	out, operand, in := r.signeds(), r.signed(), r.signeds()
	return textAttr("#stablehlo.output_operand_alias<output_tuple_indices = [" + integers(out) + "], operand_index = " + strconv.FormatInt(operand, 10) +
		", operand_tuple_indices = [" + integers(in) + "]>")
}

// typeExtensions are the bounds of extents that are not fixed.
func typeExtensions(r *reader) attribute {
	return textAttr("#stablehlo.bounds<" + list(r.signeds(), func(n int64) string {
		if n == dynamic {
			return "?"
		}
		return strconv.FormatInt(n, 10)
	}) + ">")
}

// resultAccuracy is how far results may be off.
func (d *decoder) resultAccuracy(r *reader) attribute {
	f64 := scalar("f64")
	atol, rtol, ulps, mode := r.apint(64), r.apint(64), r.signed(), d.attr(r)
	text := "#stablehlo.result_accuracy<"
	if atol != 0 || rtol != 0 || ulps != 0 {
		text += "atol = " + f64.decimal(atol) + ", rtol = " + f64.decimal(rtol) + ", ulps = " + strconv.FormatInt(ulps, 10) + ", "
	}
	return textAttr(text + "mode = " + d.print(mode) + ">")
}
