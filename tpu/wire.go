package tpu

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"tpuc/tpu/pjrt"
)

// The protocol. Parent to child, on standard input: tagOrder (JSON order), tagProgram. Child to parent, on file
// descriptor 3: tagHello, any number of tagPhase, then tagReply (JSON reply) and, on success, tagExecutable.
// A message is a tag byte, the length as 8 bytes little-endian, and that many bytes.
const (
	tagOrder      = 'O'
	tagProgram    = 'M'
	tagHello      = 'H'
	tagPhase      = 'P'
	tagReply      = 'R'
	tagExecutable = 'X'
)

// Limits of messages in bytes: a length beyond them is a broken peer, not a big model.
const (
	maxProgram    = 2 << 30
	maxJSON       = 64 << 20
	maxExecutable = 16 << 30
	maxPhase      = 64
)

// order is what the child shall do.
type order struct {
	PluginPath    string
	Target        Target
	NumPartitions int
}

// reply is the child's answer; Kind is empty on success.
type reply struct {
	Kind    Kind `json:",omitempty"`
	Code    pjrt.Code
	Message string
	Stats   Stats
	LoadNS  int64
	CompNS  int64
}

// writeMessage sends one message.
func writeMessage(w io.Writer, tag byte, data []byte) error {
	if _, err := w.Write(messageHead(tag, len(data))); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}

// messageHead is the tag and length before n bytes of data.
func messageHead(tag byte, n int) []byte {
	return binary.LittleEndian.AppendUint64([]byte{tag}, uint64(n))
}

func writeJSON(w io.Writer, tag byte, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeMessage(w, tag, data)
}

// readMessage reads one message whose tag limits allows; memory grows with what arrives, not with what is claimed.
// At the end of the stream before a message it returns io.EOF.
func readMessage(r io.Reader, limits map[byte]int64) (tag byte, data []byte, err error) {
	var head [9]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	tag = head[0]
	n := binary.LittleEndian.Uint64(head[1:])
	limit, ok := limits[tag]
	if !ok {
		return 0, nil, fmt.Errorf("message with tag %q", tag)
	}
	if n > uint64(limit) {
		return 0, nil, fmt.Errorf("message %q of %d bytes, want at most %d", tag, n, limit)
	}
	var buf bytes.Buffer
	buf.Grow(int(min(n, 1<<20)))
	if _, err := io.CopyN(&buf, r, int64(n)); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	return tag, buf.Bytes(), nil
}
