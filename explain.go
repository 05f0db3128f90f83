package tpuc

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tpuc/cache"
)

// setParts are parts that are sets of words; of two values only the words that one of them lacks are told.
var setParts = []string{"cpu_features", "xla_flags", "libtpu_args"}

// Explain says how two keys differ, a line a part: "topology: v6e:1x1 -> v6e:2x2". Of long lists only what differs is told.
func Explain(a, b cache.Key) []string {
	var out []string
	for _, d := range cache.Diff(a, b) {
		if d.A != nil && d.B != nil && slices.Contains(setParts, d.Name) {
			out = append(out, d.Name+": "+setDifference(strings.Fields(*d.A), strings.Fields(*d.B)))
		} else {
			out = append(out, d.Name+": "+brief(d.Name, d.A)+" -> "+brief(d.Name, d.B))
		}
	}
	return out
}

// brief is a part's value on one line; "(none)" where there is none.
func brief(name string, value *string) string {
	if value == nil {
		return "(none)"
	}
	words := strings.Fields(*value)
	if slices.Contains(setParts, name) {
		return fmt.Sprintf("%d of them", len(words))
	}
	return orNothing(strings.Join(words, " "))
}

// digestText is a digest, of which the beginning is enough for people.
var digestText = regexp.MustCompile(`\b([0-9a-f]{12})[0-9a-f]{52}\b`)

func orNothing(s string) string {
	if s == "" {
		return "(none)"
	}
	return digestText.ReplaceAllString(s, "$1...")
}

// setDifference is such as "without +avx512f; with -avx512f".
func setDifference(a, b []string) string {
	lacks := func(a, b []string) []string {
		return slices.DeleteFunc(slices.Clone(a), func(x string) bool { return slices.Contains(b, x) })
	}
	var out []string
	if l := lacks(a, b); len(l) > 0 {
		out = append(out, "without "+strings.Join(l, " "))
	}
	if l := lacks(b, a); len(l) > 0 {
		out = append(out, "with "+strings.Join(l, " "))
	}
	if len(out) == 0 {
		return fmt.Sprintf("%q -> %q", strings.Join(a, " "), strings.Join(b, " ")) // the order
	}
	return strings.Join(out, "; ")
}
