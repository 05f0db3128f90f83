// Package zipend looks at the end record of a zip file before archive/zip reads the directory that it describes. It never reads entries.
package zipend

import (
	"bytes"
	"encoding/binary"
)

// MaxDirectory bounds the bytes of a zip's central directory; an entry takes some 100, and several times as much in memory.
const MaxDirectory = 64 << 20

// DirectorySize is the size that the end record of a zip states for the central directory; 0 where there is no such record.
// The records are those of APPNOTE.TXT 4.3.14 to 4.3.16.
func DirectorySize(data []byte) uint64 {
	const endLen, locatorLen, end64Len = 22, 20, 56
	tail := data[max(0, len(data)-endLen-1<<16):]
	i := bytes.LastIndex(tail, []byte("PK\x05\x06"))
	if i < 0 || i+endLen > len(tail) {
		return 0
	}
	size := uint64(binary.LittleEndian.Uint32(tail[i+12:]))
	at := len(data) - len(tail) + i - locatorLen
	if size != 1<<32-1 || at < 0 || !bytes.HasPrefix(data[at:], []byte("PK\x06\x07")) {
		return size
	}
	off := binary.LittleEndian.Uint64(data[at+8:])
	if off > uint64(len(data)) || uint64(len(data))-off < end64Len || !bytes.HasPrefix(data[off:], []byte("PK\x06\x06")) {
		return size
	}
	return binary.LittleEndian.Uint64(data[off+40:])
}
