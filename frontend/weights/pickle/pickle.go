// Package pickle reads the pickles in which torch.save of torch 2.5 to 2.8 writes a dict of tensors.
//
// It owns the few opcodes and globals that such a pickle holds. Nothing is ever executed or looked up: a global is a name out of a
// fixed list with a fixed meaning, and everything else is refused by name. The elements of tensors are not in the pickle.
package pickle

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"tpuc/ir/tensor"
)

const (
	// MaxSize bounds a pickle in bytes; a tensor takes some 160 bytes of it.
	MaxSize = 32 << 20
	// maxStack bounds the values on the stack: the pickler sets at most 1000 items of a dict at once.
	maxStack = 1 << 14
	// maxName bounds a string, which is a tensor's name, a storage's key or a device.
	maxName = 1 << 16
)

// Entry is one item of the pickled dict.
type Entry struct {
	Name   string
	Tensor *Tensor
}

// Tensor is a strided view of a storage. It is not checked against the storage's size.
type Tensor struct {
	Storage *Storage
	Offset  int64 // elements from the storage's start
	Sizes   []int64
	Strides []int64 // elements
	IsParam bool
}

// Storage is memory that the pickle refers to. Two tensors with equal keys share it.
type Storage struct {
	Key      string // the file data/<key> beside the pickle
	DType    tensor.DType
	Elements int64
}

// Decode reads a pickled dict of tensors, in the dict's order. Errors name the opcode or global that has no place in one.
func Decode(data []byte) ([]Entry, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("pickle of %d bytes, wanted at most %d", len(data), MaxSize)
	}
	m := machine{data: data}
	top, err := m.run()
	if err != nil {
		return nil, fmt.Errorf("pickle, offset %d: %w", m.op, err)
	}
	d, ok := top.(*dict)
	if !ok {
		return nil, fmt.Errorf("pickle of %s, wanted a dict of tensors", kind(top))
	}
	out := make([]Entry, len(d.keys))
	seen := make(map[string]bool, len(d.keys))
	for i, k := range d.keys {
		name, ok := k.(string)
		if !ok {
			return nil, fmt.Errorf("pickled dict has %s as a key, wanted a tensor's name", kind(k))
		}
		if seen[name] {
			return nil, fmt.Errorf("pickled dict has tensor %q twice", clip(name))
		}
		seen[name] = true
		t, ok := d.values[i].(*Tensor)
		if !ok {
			return nil, fmt.Errorf("pickled dict has %s under %q, wanted a tensor", kind(d.values[i]), clip(name))
		}
		out[i] = Entry{name, t}
	}
	return out, nil
}

// Values are nil (None), bool, int64, string, tuple, *dict, global, *Storage and *Tensor. They may share parts and hold themselves;
// nothing here follows them deeper than a tensor's arguments.
type value any

type (
	tuple  []value
	global string // "module.name"
	mark   struct{}
)

type dict struct{ keys, values []value }

// machine is the pickle machine: a stack of values and a memo.
type machine struct {
	data  []byte
	at    int // of the next byte
	op    int // of the present opcode
	stack []value
	memo  []value
}

// run executes up to STOP and gives the one value that is left.
func (m *machine) run() (value, error) {
	for {
		m.op = m.at
		code, err := m.byte()
		if err != nil {
			return nil, err
		}
		if code == opStop {
			if m.at != len(m.data) {
				return nil, fmt.Errorf("%d bytes after the end", len(m.data)-m.at)
			}
			if len(m.stack) != 1 {
				return nil, fmt.Errorf("%d values are left, wanted one", len(m.stack))
			}
			return m.stack[0], nil
		}
		if err := m.step(code); err != nil {
			return nil, err
		}
		if len(m.stack) > maxStack {
			return nil, fmt.Errorf("more than %d values on the stack", maxStack)
		}
	}
}

// The opcodes, by the names of Python's pickletools.
const (
	opMark       = '('
	opStop       = '.'
	opBinInt     = 'J'
	opBinInt1    = 'K'
	opBinInt2    = 'M'
	opNone       = 'N'
	opBinPersID  = 'Q'
	opReduce     = 'R'
	opBinUnicode = 'X'
	opEmptyTuple = ')'
	opBuild      = 'b'
	opGlobal     = 'c'
	opBinGet     = 'h'
	opLongBinGet = 'j'
	opBinPut     = 'q'
	opLongBinPut = 'r'
	opSetItem    = 's'
	opTuple      = 't'
	opSetItems   = 'u'
	opEmptyDict  = '}'
	opProto      = 0x80
	opTuple1     = 0x85
	opTuple2     = 0x86
	opTuple3     = 0x87
	opNewTrue    = 0x88
	opNewFalse   = 0x89
	opLong1      = 0x8a
)

// step executes one opcode.
func (m *machine) step(code byte) error {
	switch code {
	case opProto:
		v, err := m.uint(1)
		if err == nil && v != 2 {
			err = fmt.Errorf("pickle protocol %d, wanted 2", v)
		}
		return err
	case opMark:
		m.push(mark{})
	case opNone:
		m.push(nil)
	case opNewTrue, opNewFalse:
		m.push(code == opNewTrue)
	case opBinInt, opBinInt1, opBinInt2, opLong1:
		return m.integer(code)
	case opBinUnicode:
		return m.text()
	case opEmptyTuple:
		m.push(tuple{})
	case opTuple1, opTuple2, opTuple3:
		v, err := m.pop(int(code) - opTuple1 + 1)
		if err == nil {
			m.push(tuple(v))
		}
		return err
	case opTuple:
		v, err := m.popMark()
		if err == nil {
			m.push(tuple(v))
		}
		return err
	case opEmptyDict:
		m.push(&dict{})
	case opSetItem, opSetItems, opBuild:
		return m.set(code)
	case opBinPut, opLongBinPut, opBinGet, opLongBinGet:
		return m.memory(code)
	case opGlobal:
		return m.global()
	case opBinPersID:
		return m.persistent()
	case opReduce:
		return m.reduce()
	default:
		return fmt.Errorf("opcode %s, which a dict of tensors does not need", opcodeName(code))
	}
	return nil
}

func (m *machine) push(v value) { m.stack = append(m.stack, v) }

// pop takes the n topmost values, none of which is a mark.
func (m *machine) pop(n int) ([]value, error) {
	from := len(m.stack) - n
	if from < 0 {
		return nil, fmt.Errorf("%d values on the stack, wanted %d", len(m.stack), n)
	}
	v := slices.Clone(m.stack[from:])
	if slices.Contains(v, value(mark{})) {
		return nil, fmt.Errorf("a mark among the last %d values", n)
	}
	m.stack = m.stack[:from]
	return v, nil
}

// popMark takes the values above the topmost mark, and the mark.
func (m *machine) popMark() ([]value, error) {
	for i := len(m.stack) - 1; i >= 0; i-- {
		if _, ok := m.stack[i].(mark); ok {
			v := slices.Clone(m.stack[i+1:])
			m.stack = m.stack[:i]
			return v, nil
		}
	}
	return nil, fmt.Errorf("no mark on the stack")
}

func (m *machine) byte() (byte, error) {
	b, err := m.take(1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

// take reads n bytes, which alias the pickle.
func (m *machine) take(n int) ([]byte, error) {
	if n > len(m.data)-m.at {
		return nil, fmt.Errorf("cut short: %d bytes are left, wanted %d", len(m.data)-m.at, n)
	}
	b := m.data[m.at : m.at+n]
	m.at += n
	return b, nil
}

// uint reads a little-endian number of n bytes, at most four.
func (m *machine) uint(n int) (uint32, error) {
	b, err := m.take(n)
	if err != nil {
		return 0, err
	}
	var w [4]byte
	copy(w[:], b)
	return binary.LittleEndian.Uint32(w[:]), nil
}

func (m *machine) integer(code byte) error {
	if code == opLong1 {
		n, err := m.byte()
		if err != nil {
			return err
		}
		b, err := m.take(int(n))
		if err != nil {
			return err
		}
		if n > 8 {
			return fmt.Errorf("integer of %d bytes, wanted at most 8", n)
		}
		var w [8]byte
		if n > 0 && b[n-1] >= 0x80 { // two's complement
			copy(w[:], "\xff\xff\xff\xff\xff\xff\xff\xff")
		}
		copy(w[:], b)
		m.push(int64(binary.LittleEndian.Uint64(w[:])))
		return nil
	}
	v, err := m.uint(map[byte]int{opBinInt: 4, opBinInt1: 1, opBinInt2: 2}[code])
	if err != nil {
		return err
	}
	m.push(int64(int32(v)))
	return nil
}

func (m *machine) text() error {
	n, err := m.uint(4)
	if err != nil {
		return err
	}
	if n > maxName {
		return fmt.Errorf("string of %d bytes, wanted at most %d", n, maxName)
	}
	b, err := m.take(int(n))
	if err != nil {
		return err
	}
	if !utf8.Valid(b) {
		return fmt.Errorf("string %q is not UTF-8", clip(string(b)))
	}
	m.push(string(b))
	return nil
}

// memory puts the topmost value into the memo, or pushes one that was put there. The pickler counts places up from zero.
func (m *machine) memory(code byte) error {
	width := 1
	if code == opLongBinPut || code == opLongBinGet {
		width = 4
	}
	i, err := m.uint(width)
	if err != nil {
		return err
	}
	if code == opBinGet || code == opLongBinGet {
		if uint64(i) >= uint64(len(m.memo)) {
			return fmt.Errorf("memo %d is read before it is written", i)
		}
		m.push(m.memo[i])
		return nil
	}
	if uint64(i) != uint64(len(m.memo)) {
		return fmt.Errorf("memo %d is written, wanted %d next", i, len(m.memo))
	}
	v, err := m.pop(1)
	if err != nil {
		return err
	}
	m.memo = append(m.memo, v[0])
	m.push(v[0])
	return nil
}

// set adds items to the dict below them. Attributes that BUILD sets on a dict, which are a state_dict's _metadata, say nothing of tensors.
func (m *machine) set(code byte) error {
	var items []value
	var err error
	switch code {
	case opSetItems:
		items, err = m.popMark()
	case opSetItem:
		items, err = m.pop(2)
	case opBuild:
		_, err = m.pop(1)
	}
	if err != nil {
		return err
	}
	if len(items)%2 != 0 {
		return fmt.Errorf("%d keys and values, wanted pairs", len(items))
	}
	top, err := m.pop(1)
	if err != nil {
		return err
	}
	d, ok := top[0].(*dict)
	if !ok {
		return fmt.Errorf("items or attributes of %s, wanted a dict", kind(top[0]))
	}
	for i := 0; i < len(items); i += 2 {
		d.keys, d.values = append(d.keys, items[i]), append(d.values, items[i+1])
	}
	m.push(d)
	return nil
}

// kind names a value for a message.
func kind(v value) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return "a bool"
	case int64:
		return fmt.Sprintf("the integer %d", v)
	case string:
		return fmt.Sprintf("the string %q", clip(v))
	case tuple:
		return fmt.Sprintf("a tuple of %d", len(v))
	case *dict:
		return "a dict"
	case global:
		return "the global " + string(v)
	case *Storage:
		return "a storage"
	case *Tensor:
		return "a tensor"
	}
	return "a mark"
}

// clip shortens text from a file for a message.
func clip(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "..."
	}
	return s
}
