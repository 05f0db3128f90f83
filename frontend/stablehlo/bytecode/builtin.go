package bytecode

import (
	"encoding/binary"
	"strconv"
)

// Attributes of the dialect builtin, by their numbers in MLIR's BuiltinDialectBytecode.td.
const (
	builtinArray = iota
	builtinDictionary
	builtinString
	builtinStringWithType
	builtinFlatSymbolRef
	builtinSymbolRef
	builtinTypeAttr
	builtinUnit
	builtinInteger
	builtinFloat
	builtinCallSiteLoc
	builtinFileLineColLoc
	builtinFusedLoc
	builtinFusedLocWithMetadata
	builtinNameLoc
	builtinUnknownLoc
	builtinDenseResource
	builtinDenseArray
	builtinDense
	builtinDenseString
	builtinSparse
	builtinDistinct
	builtinFileLineColRange
)

func builtinAttr(d *decoder, r *reader) attribute {
	switch code := r.varint(); code {
	case builtinArray:
		return arrayAttr(all(r, "attributes", d.attr))
	case builtinDictionary:
		return dictAttr(all(r, "attributes", func(r *reader) named { return named{d.stringOf(r), d.attr(r)} }))
	case builtinString:
		return stringAttr(d.string(r))
	case builtinStringWithType:
		s := stringAttr(d.string(r))
		d.typ(r)
		return s
	case builtinFlatSymbolRef:
		return symbolAttr{d.stringOf(r)}
	case builtinSymbolRef:
		out := symbolAttr{d.stringOf(r)}
		for _, a := range all(r, "symbols", d.attr) {
			s, ok := a.(symbolAttr)
			if !ok {
				r.fail("an attribute that is no symbol inside of one, wanted a symbol")
			}
			out = append(out, s...)
		}
		return out
	case builtinTypeAttr:
		return d.typ(r)
	case builtinUnit:
		return unitAttr{}
	case builtinInteger:
		t := d.typ(r)
		v := int64(r.apint(d.bits(r, t)))
		if t.text == "i1" {
			return boolAttr(v&1 == 1)
		}
		return intAttr{t, v}
	case builtinFloat:
		t := d.typ(r)
		return floatAttr{t, r.apint(d.bits(r, t))}
	case builtinCallSiteLoc:
		return locationAttr{kind: callSiteLoc, inner: []uint64{d.locationIndex(r), d.locationIndex(r)}}
	case builtinFileLineColLoc:
		return locationAttr{kind: fileLoc, name: d.stringOf(r), line: r.varint(), column: r.varint()}
	case builtinFileLineColRange:
		l := locationAttr{kind: fileLoc, name: d.stringOf(r)}
		for i, v := range all(r, "numbers", (*reader).varint) { // line, column, and where it ends
			switch i {
			case 0:
				l.line = v
			case 1:
				l.column = v
			}
		}
		return l
	case builtinFusedLoc, builtinFusedLocWithMetadata:
		l := locationAttr{kind: fusedLoc, inner: all(r, "locations", d.locationIndex)}
		if code == builtinFusedLocWithMetadata {
			r.index("attribute", len(d.attrs))
		}
		return l
	case builtinNameLoc:
		return locationAttr{kind: nameLoc, name: d.stringOf(r), inner: []uint64{d.locationIndex(r)}}
	case builtinUnknownLoc:
		return locationAttr{}
	case builtinDenseResource:
		t := d.typ(r)
		res := d.resources[r.index("resource", len(d.resources))]
		if res.data == nil {
			r.fail("resource %s has no bytes, wanted some", quote(clip(res.key)))
		}
		return d.literal(r, t, res.data)
	case builtinDenseArray:
		elem, n := d.typ(r), r.varint()
		return d.denseArray(r, elem, n, r.bytes(r.varint()))
	case builtinDense:
		t := d.typ(r)
		return d.literal(r, t, r.bytes(r.varint()))
	default:
		r.pos = r.end
		r.fail("attribute %d of dialect builtin, wanted one that StableHLO uses", code)
		return nil
	}
}

// bits is the size of a number's type.
func (d *decoder) bits(r *reader, t *typ) int {
	if t.bits == 0 || t.parts != 1 {
		r.fail("a number of type %s, wanted an integer or a float", clip(t.text))
	}
	return t.bits
}

// denseArray is array<elem: ...>.
func (d *decoder) denseArray(r *reader, elem *typ, n uint64, data []byte) numbersAttr {
	size := elem.size()
	if elem.bits == 0 || elem.bits > 64 || elem.parts != 1 || uint64(len(data)) != n*uint64(size) || n > uint64(len(data)) {
		r.fail("%d bytes as %d elements of type %s, wanted all of numbers", len(data), n, clip(elem.text))
	}
	out := numbersAttr{elem: elem.text, words: make([]string, n)}
	for i := range out.words {
		var raw [8]byte
		copy(raw[:], data[i*size:(i+1)*size])
		out.words[i] = elem.number(binary.LittleEndian.Uint64(raw[:]))
		d.spend(len(out.words[i]))
	}
	return out
}

// Types of the dialect builtin, by their numbers.
const (
	builtinIntegerType         = 0
	builtinFunctionType        = 2
	builtinComplexType         = 9
	builtinMemRef              = 10
	builtinMemRefWithMemSpace  = 11
	builtinRankedTensor        = 13
	builtinRankedTensorEncoded = 14
	builtinTuple               = 15
	builtinUnrankedTensor      = 18
	builtinVector              = 19
)

// builtinNames are the types that are nothing but a name.
var builtinNames = map[uint64]string{1: "index", 3: "bf16", 4: "f16", 5: "f32", 6: "f64", 7: "f80", 8: "f128", 12: "none",
	21: "tf32", 22: "f8E5M2", 23: "f8E4M3", 24: "f8E4M3FN", 25: "f8E5M2FNUZ", 26: "f8E4M3FNUZ", 27: "f8E4M3B11FNUZ", 28: "f8E3M4", 29: "f4E2M1FN",
	30: "f6E2M3FN", 31: "f6E3M2FN", 32: "f8E8M0FNU"}

func builtinType(d *decoder, r *reader) *typ {
	code := r.varint()
	if name, ok := builtinNames[code]; ok {
		return scalar(name)
	}
	switch code {
	case builtinIntegerType:
		v := r.varint()
		width, sign := v>>2, v&3
		if width == 0 || width > 1<<16 || sign > 2 {
			r.fail("an integer of %d bits and sign %d, wanted 1 to %d bits and a sign up to 2", width, sign, 1<<16)
		}
		return scalar([]string{"i", "si", "ui"}[sign] + strconv.FormatUint(width, 10))
	case builtinFunctionType:
		return d.function(all(r, "types", d.typ), all(r, "types", d.typ))
	case builtinComplexType:
		return complexOf(d.typ(r))
	case builtinRankedTensor:
		return d.tensor(r, "")
	case builtinRankedTensorEncoded:
		return d.tensor(r, ", "+d.print(d.attr(r)))
	case builtinTuple:
		return d.listed("tuple", all(r, "types", d.typ))
	case builtinUnrankedTensor:
		return &typ{text: "tensor<*x" + d.typ(r).text + ">"}
	case builtinMemRef, builtinMemRefWithMemSpace:
		if code == builtinMemRefWithMemSpace {
			d.attr(r)
		}
		dims, elem := r.extents(), d.typ(r)
		d.attr(r)
		return &typ{text: shaped("memref", dims, elem, "").text}
	case builtinVector:
		dims := r.extents()
		return shaped("vector", dims, d.typ(r), "")
	}
	r.pos = r.end
	r.fail("type %d of dialect builtin, wanted one that StableHLO uses", code)
	return nil
}
