package lower

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
)

// location is what lowering writes at the end of a line for the layer that an operation comes from, and layerLine begins a line that names a layer.
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
		tail := max(0, len(line)-32) // a location is short, and lines may be long
		if at := location.FindIndex(line[tail:]); at != nil {
			line = line[:tail+at[0]]
		}
		h.Write(line)
		h.Write([]byte("\n"))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// What Signature reads of the line that begins the entry.
var (
	entryLine  = regexp.MustCompile(`^  func\.func public @main\((.*)\) -> \((.*)\) \{$`)
	argument   = regexp.MustCompile(`tensor<((?:[^<>]|<[^<>]*>)*)>(?: \{tf\.aliasing_output = ([0-9]+) : i32\})?`)
	entryStart = []byte("  func.func public @main(")
)

// Signature is what a program takes and gives, as people read it: types such as "2x16xf32" in order, inputs first, and of an argument whose memory a
// result takes over "2x16xf32=>0" with the place of the result. Both are nil where text is no program of this package.
func Signature(program []byte) (args, results []string) {
	from := bytes.Index(program, entryStart)
	if from < 0 {
		return nil, nil
	}
	line, _, _ := bytes.Cut(program[from:], []byte("\n"))
	m := entryLine.FindSubmatch(line)
	if m == nil {
		return nil, nil
	}
	list := func(text []byte) []string {
		out := []string{}
		for _, a := range argument.FindAllSubmatch(text, -1) {
			s := string(a[1])
			if len(a[2]) > 0 {
				s += "=>" + string(a[2])
			}
			out = append(out, s)
		}
		return out
	}
	return list(m[1]), list(m[2])
}
