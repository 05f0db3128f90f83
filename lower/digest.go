package lower

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
)

// location is what lowering writes at the end of a line for the layer that an operation comes from, and layerLine the line that names a layer.
var location = regexp.MustCompile(` loc\(#loc[0-9]+\)$`)

const layerLine = "#loc"

// Digest is the hex SHA-256 of a program's text without its locations: equal for programs that compute the same in the same way, whatever their layers
// are called. It is what a key of the cache holds, so an executable may bear the layers' names of an equal program.
func Digest(program []byte) string {
	h := sha256.New()
	for line := range bytes.Lines(program) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if bytes.HasPrefix(line, []byte(layerLine)) {
			continue
		}
		if at := location.FindIndex(line[max(0, len(line)-32):]); at != nil { // the number is short, and lines may be long
			line = line[:max(0, len(line)-32)+at[0]]
		}
		h.Write(line)
		h.Write([]byte("\n"))
	}
	return hex.EncodeToString(h.Sum(nil))
}
