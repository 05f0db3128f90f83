package pickle

import (
	"bytes"
	"fmt"
	"strings"

	"tpuc/ir/tensor"
)

// The globals that have a meaning here, besides the storage classes below.
const (
	rebuildTensor    = "torch._utils._rebuild_tensor_v2"
	rebuildParameter = "torch._utils._rebuild_parameter"
	orderedDict      = "collections.OrderedDict"
)

// storages are torch's legacy storage classes (torch/storage.py): a pickle writes a storage's dtype so. Dtypes that are younger than the
// classes are written by _rebuild_tensor_v3.
var storages = map[string]tensor.DType{
	"torch.DoubleStorage": tensor.F64, "torch.FloatStorage": tensor.F32, "torch.HalfStorage": tensor.F16, "torch.BFloat16Storage": tensor.BF16,
	"torch.LongStorage": tensor.I64, "torch.IntStorage": tensor.I32, "torch.ShortStorage": tensor.I16, "torch.CharStorage": tensor.I8,
	"torch.ByteStorage": tensor.U8, "torch.BoolStorage": tensor.Bool,
	"torch.ComplexDoubleStorage": tensor.C128, "torch.ComplexFloatStorage": tensor.C64,
}

// hints say what globals that are met in archives stand for, by a part of their names.
var hints = []struct{ part, text string }{
	{"_reconstruct_fake_tensor", "the model was saved without weights"},
	{"_rebuild_meta_tensor_no_storage", "the model was saved without weights"},
	{"sparse", "a sparse tensor: call .to_dense() before the export"},
	{"_rebuild_qtensor", "a quantized tensor: dequantize it before the export"},
	{"torch.Q", "a quantized tensor: dequantize it before the export"},
	{"_rebuild_wrapper_subclass", "a tensor subclass: replace it by a plain tensor before the export"},
	{"_rebuild_from_type", "a tensor subclass: replace it by a plain tensor before the export"},
	{"_rebuild_tensor_v3", "a tensor of a dtype that torch before 2.9 cannot save plainly"},
	{"torch.distributed", "a sharded tensor: gather it before the export"},
	{"ScriptObject", "a custom object, which is not supported"},
}

// global reads a module and a name, each up to a newline, and pushes them if they are known.
func (m *machine) global() error {
	var parts [2]string
	for i := range parts {
		n := bytes.IndexByte(m.data[m.at:min(len(m.data), m.at+maxName)], '\n')
		if n < 0 {
			return fmt.Errorf("the name of a global does not end")
		}
		parts[i] = string(m.data[m.at : m.at+n])
		m.at += n + 1
	}
	name := parts[0] + "." + parts[1]
	_, isStorage := storages[name]
	if !isStorage && name != rebuildTensor && name != rebuildParameter && name != orderedDict {
		err := fmt.Errorf("global %q, which is not one that a dict of plain tensors needs", clip(name))
		for _, h := range hints {
			if strings.Contains(name, h.part) {
				return fmt.Errorf("%w: %s", err, h.text)
			}
		}
		return err
	}
	m.push(global(name))
	return nil
}

// persistent replaces the tuple ("storage", class, key, device, elements) by the storage that it names.
func (m *machine) persistent() error {
	top, err := m.pop(1)
	if err != nil {
		return err
	}
	id, ok := top[0].(tuple)
	if !ok || len(id) != 5 || id[0] != value("storage") {
		return fmt.Errorf("persistent id is %s, wanted (\"storage\", class, key, device, elements)", kind(top[0]))
	}
	class, ok1 := id[1].(global)
	key, ok2 := id[2].(string)
	_, ok3 := id[3].(string)
	n, ok4 := id[4].(int64)
	dtype := storages[string(class)]
	if !ok1 || !ok2 || !ok3 || !ok4 || dtype == tensor.Invalid || n < 0 {
		return fmt.Errorf("storage is (%s, %s, %s, %s), wanted (class, key, device, elements)", kind(id[1]), kind(id[2]), kind(id[3]), kind(id[4]))
	}
	m.push(&Storage{Key: key, DType: dtype, Elements: n})
	return nil
}

// reduce replaces a known function and its arguments by the result.
func (m *machine) reduce() error {
	v, err := m.pop(2)
	if err != nil {
		return err
	}
	fn, ok1 := v[0].(global)
	args, ok2 := v[1].(tuple)
	if !ok1 || !ok2 {
		return fmt.Errorf("call of %s with %s, wanted a global and a tuple", kind(v[0]), kind(v[1]))
	}
	var out value
	switch fn {
	case orderedDict:
		if len(args) != 0 {
			return fmt.Errorf("%s has %d arguments, wanted none", fn, len(args))
		}
		out = &dict{}
	case rebuildTensor:
		out, err = tensorOf(args)
	case rebuildParameter:
		out, err = parameterOf(args)
	default:
		err = fmt.Errorf("call of %s, which is no function", fn)
	}
	m.push(out)
	return err
}

// tensorOf is _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks, metadata=None).
func tensorOf(args tuple) (*Tensor, error) {
	if len(args) != 6 && len(args) != 7 {
		return nil, fmt.Errorf("%s has %d arguments, wanted 6", rebuildTensor, len(args))
	}
	s, ok1 := args[0].(*Storage)
	offset, ok2 := args[1].(int64)
	sizes, ok3 := ints(args[2])
	strides, ok4 := ints(args[3])
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return nil, fmt.Errorf("%s has (%s, %s, %s, %s), wanted (storage, offset, size, stride)",
			rebuildTensor, kind(args[0]), kind(args[1]), kind(args[2]), kind(args[3]))
	}
	if len(args) == 7 && args[6] != nil { // such as conj and neg bits
		return nil, fmt.Errorf("a tensor with metadata, such as a lazily conjugated one: call .resolve_conj() before the export")
	}
	return &Tensor{Storage: s, Offset: offset, Sizes: sizes, Strides: strides}, nil
}

// parameterOf is _rebuild_parameter(data, requires_grad, backward_hooks).
func parameterOf(args tuple) (*Tensor, error) {
	if len(args) != 3 {
		return nil, fmt.Errorf("%s has %d arguments, wanted 3", rebuildParameter, len(args))
	}
	t, ok := args[0].(*Tensor)
	if !ok {
		return nil, fmt.Errorf("%s of %s, wanted a tensor", rebuildParameter, kind(args[0]))
	}
	p := *t
	p.IsParam = true
	return &p, nil
}

// ints is a tuple of integers; tuples longer than torch's greatest rank are refused here.
func ints(v value) ([]int64, bool) {
	t, ok := v.(tuple)
	if !ok || len(t) > 64 {
		return nil, false
	}
	out := make([]int64, len(t))
	for i, x := range t {
		if out[i], ok = x.(int64); !ok {
			return nil, false
		}
	}
	return out, true
}

// opcodeName is the name that Python's pickletools gives an opcode.
func opcodeName(code byte) string {
	if name, ok := otherOpcodes[code]; ok {
		return name
	}
	return fmt.Sprintf("%#02x", code)
}

// otherOpcodes are all opcodes of pickle up to protocol 5 that step refuses.
var otherOpcodes = map[byte]string{
	'0': "POP", '1': "POP_MARK", '2': "DUP", 'F': "FLOAT", 'I': "INT", 'L': "LONG", 'P': "PERSID", 'S': "STRING", 'T': "BINSTRING",
	'U': "SHORT_BINSTRING", 'V': "UNICODE", 'a': "APPEND", 'd': "DICT", 'e': "APPENDS", 'g': "GET", 'i': "INST", 'l': "LIST", 'o': "OBJ",
	'p': "PUT", 'G': "BINFLOAT", ']': "EMPTY_LIST", 'B': "BINBYTES", 'C': "SHORT_BINBYTES", 0x81: "NEWOBJ", 0x82: "EXT1", 0x83: "EXT2",
	0x84: "EXT4", 0x8b: "LONG4", 0x8c: "SHORT_BINUNICODE", 0x8d: "BINUNICODE8", 0x8e: "BINBYTES8", 0x8f: "EMPTY_SET", 0x90: "ADDITEMS",
	0x91: "FROZENSET", 0x92: "NEWOBJ_EX", 0x93: "STACK_GLOBAL", 0x94: "MEMOIZE", 0x95: "FRAME", 0x96: "BYTEARRAY8", 0x97: "NEXT_BUFFER",
	0x98: "READONLY_BUFFER",
}
