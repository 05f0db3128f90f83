package stablehlo

import (
	"bytes"
	"encoding/binary"
	"io"

	"tpuc/frontend/stablehlo/bytecode"
)

// exportedModule finds the module inside of what jax.export's Exported.serialize() writes: a FlatBuffer whose root table holds the portable artifact as a
// vector of bytes. All other fields say how Python calls it.
func exportedModule(r io.ReaderAt, size int64) (from, to int64, ok bool) {
	const field = 30 // of mlir_module_serialized, from the start of the table of fields
	u32 := func(at int64) int64 {
		var b [4]byte
		if at < 0 || at > size-4 {
			return 0
		}
		if _, err := r.ReadAt(b[:], at); err != nil {
			return 0
		}
		return int64(binary.LittleEndian.Uint32(b[:]))
	}
	u16 := func(at int64) int64 { return u32(at) & 0xFFFF }
	root := u32(0)
	fields := root - int64(int32(u32(root)))
	if u16(fields) < field+2 {
		return 0, 0, false
	}
	at := root + u16(fields+field)
	at += u32(at)
	from = at + 4
	to = from + u32(at)
	head := make([]byte, len(bytecode.Magic))
	if to > size || to-from < int64(len(head)) {
		return 0, 0, false
	}
	if _, err := r.ReadAt(head, from); err != nil || !bytes.Equal(head, []byte(bytecode.Magic)) {
		return 0, 0, false
	}
	return from, to, true
}
