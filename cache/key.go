package cache

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// schema is hashed into every ID. It changes when the encoding of keys does.
const schema = "tpuc cache key 1"

// Part is one named fact that an entry depends on. Value is short text for people, which explanations show; of anything long it is a digest.
type Part struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Key says what an entry is of. Equal keys mean equal entries: whatever changes an entry's contents belongs in a part. The order of parts
// matters, their names are unique.
type Key struct {
	Kind  string `json:"kind"` // such as "program"; a name of a folder: a lower-case letter, then lower-case letters, digits and dashes, at most 32
	Parts []Part `json:"parts"`
}

// ID is the key's name in the store: the SHA-256, in hex, of schema, kind and parts, each with its length before it.
func (k Key) ID() string {
	h := sha256.New()
	write := func(s string) {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		io.WriteString(h, s)
	}
	write(schema)
	write(k.Kind)
	for _, p := range k.Parts {
		write(p.Name)
		write(p.Value)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Value is the value of the part of that name; "" if there is none.
func (k Key) Value(name string) string {
	for _, p := range k.Parts {
		if p.Name == name {
			return p.Value
		}
	}
	return ""
}

// Check says what is wrong with a key that no entry can have.
func (k Key) Check() error {
	if !isKind(k.Kind) {
		return fmt.Errorf("key of kind %.40q, wanted a lower-case letter, then lower-case letters, digits and dashes, at most %d, and none of %q", k.Kind, maxKind, ownDirs)
	}
	seen := make(map[string]bool, len(k.Parts))
	var errs []error
	for i, p := range k.Parts {
		switch {
		case p.Name == "" || !utf8.ValidString(p.Name) || strings.ContainsFunc(p.Name, func(r rune) bool { return r < ' ' }):
			errs = append(errs, fmt.Errorf("key of kind %s: part %d has name %.40q, wanted text on one line", k.Kind, i, p.Name))
		case seen[p.Name]:
			errs = append(errs, fmt.Errorf("key of kind %s: part %.40q is there twice", k.Kind, p.Name))
		case !utf8.ValidString(p.Value):
			errs = append(errs, fmt.Errorf("key of kind %s: part %.40q has value %.40q, wanted UTF-8", k.Kind, p.Name, p.Value))
		}
		seen[p.Name] = true
	}
	return errors.Join(errs...)
}

const maxKind = 32

func isKind(s string) bool {
	for i, c := range []byte(s) {
		if !('a' <= c && c <= 'z' || i > 0 && ('0' <= c && c <= '9' || c == '-')) {
			return false
		}
	}
	return s != "" && len(s) <= maxKind && !slices.Contains(ownDirs, s)
}

// Difference is a part in which two keys differ. A or B is nil where that key has no such part.
type Difference struct {
	Name string  `json:"name"`
	A    *string `json:"a"`
	B    *string `json:"b"`
}

// String is such as "topology: v6e:1x1 -> v6e:2x2", with "(none)" for a part that is not there.
func (d Difference) String() string {
	text := func(s *string) string {
		if s == nil {
			return "(none)"
		}
		return *s
	}
	return d.Name + ": " + text(d.A) + " -> " + text(d.B)
}

// Diff lists every part in which the keys differ: first those of a in its order, then those that b alone has. It is empty exactly when the
// IDs are equal; keys that differ in kind, or in the order of parts alone, differ in "(kind)" or "(order)".
func Diff(a, b Key) []Difference {
	var out []Difference
	if a.Kind != b.Kind {
		out = append(out, Difference{Name: "(kind)", A: &a.Kind, B: &b.Kind})
	}
	for _, p := range a.Parts {
		i := slices.IndexFunc(b.Parts, func(q Part) bool { return q.Name == p.Name })
		switch {
		case i < 0:
			out = append(out, Difference{Name: p.Name, A: &p.Value})
		case b.Parts[i].Value != p.Value:
			out = append(out, Difference{Name: p.Name, A: &p.Value, B: &b.Parts[i].Value})
		}
	}
	for _, p := range b.Parts {
		if !slices.ContainsFunc(a.Parts, func(q Part) bool { return q.Name == p.Name }) {
			out = append(out, Difference{Name: p.Name, B: &p.Value})
		}
	}
	if len(out) == 0 && !slices.Equal(a.Parts, b.Parts) {
		order := func(k Key) *string {
			var names []string
			for _, p := range k.Parts {
				names = append(names, p.Name)
			}
			s := strings.Join(names, " ")
			return &s
		}
		out = append(out, Difference{Name: "(order)", A: order(a), B: order(b)})
	}
	return out
}
