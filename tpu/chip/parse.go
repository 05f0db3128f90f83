package chip

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	maxCPU   = 1024 // devices that one CPU process is asked for; far above any use
	maxInput = 64   // bytes of a target's name
	maxNear  = 8    // near matches in an error
)

// ParseError says why a target's name is not understood, and what was perhaps meant.
type ParseError struct {
	Input  string
	Reason string   // empty when nothing of the name is known
	Near   []string // spellings that are understood, nearest first
}

func (e *ParseError) Error() string {
	msg := fmt.Sprintf("target %q is not known", e.Input)
	if e.Reason != "" {
		msg = fmt.Sprintf("target %q: %s", e.Input, e.Reason)
	}
	if len(e.Near) > 0 {
		msg += ", want one like " + strings.Join(e.Near, ", ")
	}
	return msg + " (tpuc list targets shows all)"
}

// Parse reads a target as users write it, in upper or lower case: "cpu", "cpu:4"; a chip and a shape, "v6e:2x4",
// "v4:2x2x1", "tpu7x-2x2x1"; or Google Cloud's name of a slice, "v6e-8", "v5litepod-16", "v5p-64", "tpu7x-8". The number
// there counts chips for v5e and v6e and TensorCores, two a chip, for v4, v5p and TPU7x; it means the standard shape of so
// many chips. Errors are *ParseError.
func Parse(s string) (Target, error) {
	name := strings.ToLower(strings.TrimSpace(s))
	if len(name) > maxInput {
		return Target{}, &ParseError{Input: name[:maxInput] + "...", Reason: "too long", Near: familyExamples()}
	}
	if rest, ok := strings.CutPrefix(name, "cpu"); ok {
		return parseCPU(s, rest)
	}
	c, rest, ok := cutChip(name)
	switch {
	case !ok && name == "tpu":
		return Target{}, &ParseError{Input: s, Reason: "names no chip", Near: familyExamples()[1:]}
	case !ok:
		return Target{}, &ParseError{Input: s, Near: nearest(name)}
	}
	f := c.Facts()
	fail := func(near []string, format string, args ...any) (Target, error) {
		return Target{}, &ParseError{Input: s, Reason: fmt.Sprintf(format, args...), Near: near}
	}
	if rest == "" {
		return fail(around(f, c, 0), "names a chip but no size")
	}
	sep, size := rest[0], rest[1:]
	shape, ok := parseShape(size)
	if !ok {
		return fail(around(f, c, 0), "%q is neither a count nor a shape", size)
	}
	if len(shape) == 1 {
		if sep == ':' {
			return fail(around(f, c, shape[0]), "a count is written after a hyphen, a shape after a colon")
		}
		return parseCount(s, c, shape[0])
	}
	// libtpu takes any box, "v6e:4x2" too; Google's machines come in these shapes only, and a program compiled for
	// another one would find no slice to run on.
	if want := trimShape(f, shape); want != nil {
		shape = want
	}
	if !isShape(f, shape) {
		return fail(nearShapes(f, c, shape), "%s has no slice of shape %s", f.Name, size)
	}
	return tpu(c, shape), nil
}

// parseCPU reads what follows "cpu".
func parseCPU(s, rest string) (Target, error) {
	if rest == "" {
		return Target{}, nil
	}
	n, ok := parseInt(strings.TrimPrefix(rest, ":"))
	if !ok || rest[0] != ':' || n < 1 || n > maxCPU {
		return Target{}, &ParseError{Input: s, Reason: fmt.Sprintf("cpu takes a number of devices from 1 to %d", maxCPU), Near: []string{"cpu", "cpu:4"}}
	}
	if n == 1 {
		return Target{}, nil
	}
	return Target{devices: n}, nil
}

// parseCount reads Google Cloud's number of chips or cores.
func parseCount(s string, c Chip, n int) (Target, error) {
	f := c.Facts()
	chips, unit := n, "chips"
	if f.CountsCores {
		chips, unit = n/f.CoresPerChip, fmt.Sprintf("TensorCores, %d a chip", f.CoresPerChip)
	}
	shape := shapeOf(f, chips)
	if shape == nil || (f.CountsCores && n%f.CoresPerChip != 0) {
		return Target{}, &ParseError{Input: s, Reason: fmt.Sprintf("no %s slice has %d %s", f.Name, n, unit), Near: around(f, c, n)}
	}
	return tpu(c, shape), nil
}

// cutChip splits a name into its chip and the rest, which is empty or begins with a separator.
func cutChip(name string) (Chip, string, bool) {
	var found Chip
	length := 0
	for _, c := range Chips {
		for _, alias := range spellings(c) {
			// The longest alias wins: "v5" would otherwise take "v5-lite-podslice" apart at its own hyphen.
			rest, ok := strings.CutPrefix(name, alias)
			if ok && (rest == "" || rest[0] == ':' || rest[0] == '-') && len(alias) > length {
				found, length = c, len(alias)
			}
		}
	}
	return found, name[length:], length > 0
}

// spellings are all names of a chip, in lower case, with and without the word TPU before them.
func spellings(c Chip) []string {
	f := c.Facts()
	var out []string
	for _, n := range append([]string{f.Name}, f.aliases...) {
		out = append(out, n)
		if !strings.HasPrefix(n, "tpu") {
			out = append(out, "tpu-"+n, "tpu"+n)
		}
	}
	return out
}

// parseShape reads "2x4", or a single number. It takes no sign, no space and at most three axes.
func parseShape(s string) ([]int, bool) {
	parts := strings.Split(s, "x")
	if len(parts) > 3 {
		return nil, false
	}
	var shape []int
	for _, p := range parts {
		n, ok := parseInt(p)
		if !ok {
			return nil, false
		}
		shape = append(shape, n)
	}
	return shape, true
}

// parseInt reads up to five decimal digits.
func parseInt(s string) (int, bool) {
	if s == "" || len(s) > 5 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// trimShape gives a shape the chip's number of axes where that changes nothing: an axis of one is added or dropped.
func trimShape(f Facts, shape []int) []int {
	switch {
	case f.Dims == 3 && len(shape) == 2:
		return []int{shape[0], shape[1], 1}
	case f.Dims == 2 && len(shape) == 3 && shape[2] == 1:
		return shape[:2]
	}
	return nil
}

// around lists slices of about n chips or cores by their Cloud names, smallest first.
func around(f Facts, c Chip, n int) []string {
	type named struct {
		count int
		text  string
	}
	var all []named
	for _, s := range standardShapes(f) {
		t := tpu(c, s)
		count := t.Chips()
		if f.CountsCores {
			count = t.Cores()
		}
		all = append(all, named{count, fmt.Sprintf("%s-%d", f.Name, count)})
	}
	near := slices.Clone(all)
	// Stable, as all sorts here: equal distances stay in the table's order, so that an error is the same every time.
	slices.SortStableFunc(near, func(a, b named) int { return cmp.Compare(abs(a.count-n), abs(b.count-n)) })
	near = near[:min(len(near), maxNear)]
	slices.SortFunc(near, func(a, b named) int { return cmp.Compare(a.count, b.count) })
	var out []string
	for _, x := range near {
		out = append(out, x.text)
	}
	return out
}

// nearShapes lists shapes like the wanted one: its axes in order, then those of the nearest sizes.
func nearShapes(f Facts, c Chip, shape []int) []string {
	var out []string
	sorted := slices.Sorted(slices.Values(shape))
	if isShape(f, sorted) {
		out = append(out, tpu(c, sorted).String())
	}
	want := product(shape)
	all := standardShapes(f)
	slices.SortStableFunc(all, func(a, b []int) int { return cmp.Compare(abs(product(a)-want), abs(product(b)-want)) })
	for _, s := range all {
		if t := tpu(c, s).String(); len(out) < maxNear && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// nearest lists known spellings by edit distance from a name of which nothing was understood; far ones are left out, and
// if all are far the chips are named.
func nearest(name string) []string {
	type scored struct {
		text     string
		distance int
	}
	var all []scored
	add := func(text string) { all = append(all, scored{text, distance(name, text)}) }
	// Both spellings of each slice: a slip is likely a slip in one of them.
	add("cpu")
	for _, e := range List()[1:] {
		add(e.Target.String())
		add(e.Cloud)
	}
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(a.distance, b.distance) })
	var out []string
	for _, s := range all {
		// Two edits of five letters is a slip; more is another word.
		if s.distance <= max(1, len(name)*2/5) && len(out) < maxNear && !slices.Contains(out, s.text) {
			out = append(out, s.text)
		}
	}
	if out == nil {
		return familyExamples()
	}
	return out
}

// familyExamples is one spelling of each kind of target.
func familyExamples() []string {
	out := []string{"cpu"}
	for _, c := range Chips {
		f := c.Facts()
		out = append(out, tpu(c, shapeOf(f, 4)).String())
	}
	return out
}

// distance is Levenshtein's, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // of the matrix, for one prefix of a
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			substitute := diagonal
			if a[i-1] != b[j-1] {
				substitute++
			}
			diagonal = row[j]
			row[j] = min(substitute, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}
