package artifact

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"tpuc/ir/diag"
)

// align is the multiple at which sections, and tensors in them, begin, so that a mapped file can be used in place.
const align = 64

// maxPrograms and maxExamples bound the programs and examples of one artifact.
const maxPrograms, maxExamples = 4096, 4096

// checkSections checks what names sections: the numbers of programs and examples, and the examples' names.
func (m *Manifest) checkSections() error {
	if n := len(m.Programs); n == 0 || n > maxPrograms {
		return diag.Errorf(nil, "artifact/programs", "manifest: %d programs, wanted 1 to %d", n, maxPrograms)
	}
	if n := len(m.Examples); n > maxExamples {
		return diag.Errorf(nil, "artifact/examples", "manifest: %d examples, wanted at most %d", n, maxExamples)
	}
	for i, e := range m.Examples {
		if in, out := exampleSections(i); e.Inputs != in || e.Outputs != "" && e.Outputs != out {
			return diag.Errorf(nil, "artifact/examples", "manifest: example %d has the sections %q and %q, wanted %q and, if any, %q", i, e.Inputs, e.Outputs, in, out)
		}
	}
	return nil
}

// check reports everything that is wrong in a manifest: types, digests, lists that refer to each other, tensors outside of their section.
func (m *Manifest) check(sections []File) error {
	var errs diag.List
	bad := func(code, format string, args ...any) { errs.Addf(nil, "artifact/"+code, "manifest: "+format, args...) }
	for _, s := range sections {
		if s.Size < 0 || !isDigest(s.SHA256) {
			bad("section", "section %q has size %d and sha256 %q, wanted a size and 64 hex digits", s.Name, s.Size, s.SHA256)
		}
	}
	if !isDigest(m.Plugin.SHA256) {
		bad("digest", "sha256 %q of the plugin, wanted 64 hex digits", m.Plugin.SHA256)
	}
	if m.Target.Devices < 1 {
		bad("target", "target %q has %d devices, wanted at least 1", m.Target.Name, m.Target.Devices)
	}
	if err := m.checkSections(); err != nil {
		return err
	}
	for i := range m.Programs {
		m.checkTypes(i, bad)
	}
	for _, l := range m.weightLists() {
		for i, w := range l.list {
			checkWeight(fmt.Sprintf("%s %d (%q)", l.kind, i, w.Name), w, sections, bad)
		}
	}
	if len(errs) > 0 {
		return errs.Err() // what follows relies on types
	}
	m.checkShapes(bad)
	changed := make([]bool, len(m.State))
	for i := range m.Programs {
		of := func(code, format string, args ...any) { bad(code, "%s"+format, append([]any{m.which(i)}, args...)...) }
		m.checkSlots(&m.Programs[i], changed, of)
		m.Programs[i].checkPads(of)
	}
	for i, w := range m.State {
		if !changed[i] && len(errs) == 0 {
			bad("slot", "state %d (%q) has no result with its new contents", i, w.Name)
		}
	}
	return errs.Err()
}

// which begins a message about program i where there are several.
func (m *Manifest) which(i int) string {
	if len(m.Programs) == 1 {
		return ""
	}
	return fmt.Sprintf("program %d: ", i)
}

// checkTypes checks program i's digest, and its inputs and outputs against their signatures.
func (m *Manifest) checkTypes(i int, bad func(code, format string, args ...any)) {
	p, in := &m.Programs[i], m.which(i)
	if !isDigest(p.SHA256) || p.Key != "" && !isDigest(p.Key) {
		bad("digest", "%ssha256 %q and key %q, wanted 64 hex digits", in, p.SHA256, p.Key)
	}
	for _, d := range p.Dims {
		if !slices.ContainsFunc(m.Symbols, func(s Symbol) bool { return s.Name == d.Name }) {
			bad("dims", "%s%s = %d, which is no symbol of the model", in, d.Name, d.Value)
		}
	}
	if len(p.Dims) != len(m.Symbols) {
		bad("dims", "%s%d dimensions, wanted a value for each of %d symbols", in, len(p.Dims), len(m.Symbols))
	}
	if len(p.Inputs) != len(m.Inputs) || len(p.Outputs) != len(m.Outputs) {
		bad("type", "%s%d inputs and %d outputs, wanted %d and %d", in, len(p.Inputs), len(p.Outputs), len(m.Inputs), len(m.Outputs))
		return
	}
	check := func(kind string, signatures []Signature, types []Type) {
		for k, t := range types {
			s := signatures[k]
			_, err := t.Tensor()
			switch {
			case err != nil:
				bad("type", "%s%s %d (%q): %v", in, kind, k, s.Name, err)
			case !s.fits(t):
				bad("type", "%s%s %d (%q) is %s, wanted %s", in, kind, k, s.Name, t, s)
			}
		}
	}
	check(KindInput, m.Inputs, p.Inputs)
	check(KindOutput, m.Outputs, p.Outputs)
}

// fits reports that t has s's element type, rank and fixed dimensions.
func (s Signature) fits(t Type) bool {
	if s.DType != t.DType || len(s.Dims) != len(t.Dims) {
		return false
	}
	for i, d := range s.Dims {
		if n, err := strconv.ParseInt(d, 10, 64); err == nil && n != t.Dims[i] {
			return false
		}
	}
	return true
}

// checkShapes demands that a call's shapes name one program.
func (m *Manifest) checkShapes(bad func(code, format string, args ...any)) {
	seen := make(map[string]int)
	for i, p := range m.Programs {
		id := fmt.Sprint(p.Inputs)
		if j, ok := seen[id]; ok {
			bad("programs", "programs %d and %d take inputs of the same shapes", j, i)
		}
		seen[id] = i
	}
}

type weightList struct {
	kind string
	list []Weight
}

func (m *Manifest) weightLists() []weightList {
	return []weightList{{KindWeight, m.Weights}, {KindState, m.State}, {KindConstant, m.Constants}}
}

func checkWeight(what string, w Weight, sections []File, bad func(code, format string, args ...any)) {
	t, err := w.Tensor()
	if err != nil {
		bad("type", "%s: %v", what, err)
		return
	}
	if w.SHA256 != "" && !isDigest(w.SHA256) {
		bad("digest", "%s: sha256 %q, wanted 64 hex digits", what, w.SHA256)
	}
	if !slices.Contains([]string{"weight", "buffer", "constant"}, w.Class) {
		bad("class", "%s: class %q, wanted weight, buffer or constant", what, w.Class)
	}
	if w.Section == "" {
		if w.Expr == "" {
			bad("contents", "%s has neither contents nor a source expression", what)
		}
		return
	}
	i := slices.IndexFunc(sections, func(f File) bool { return f.Name == w.Section })
	switch {
	case i < 0 || w.Section != ConstantsSection && w.Section != WeightsSection:
		bad("section", "%s: section %q is not there", what, w.Section)
	case w.Offset < 0 || w.Offset%align != 0 || w.Offset > sections[i].Size || t.Bytes() > sections[i].Size-w.Offset:
		bad("offset", "%s: %s at byte %d, wanted a multiple of %d within the %d bytes of %s", what, t, w.Offset, align, sections[i].Size, w.Section)
	}
}

// checkSlots checks the arguments, results and aliases of p against the lists, and marks the state that it changes.
func (m *Manifest) checkSlots(p *Program, changed []bool, bad func(code, format string, args ...any)) {
	sizes := map[string]int{KindInput: len(m.Inputs), KindOutput: len(m.Outputs), KindWeight: len(m.Weights), KindState: len(m.State), KindConstant: len(m.Constants)}
	valid := true
	seen := make(map[Slot]int)
	walk := func(what string, i int, slots []Slot, kinds ...string) {
		for _, s := range slots {
			switch {
			case !slices.Contains(kinds, s.Kind):
				bad("slot", "%s %d has kind %q, wanted one of %q", what, i, s.Kind, kinds)
				valid = false
			case s.Index < 0 || s.Index >= sizes[s.Kind]:
				bad("slot", "%s %d is %s %d, wanted below %d", what, i, s.Kind, s.Index, sizes[s.Kind])
				valid = false
			default:
				if j, ok := seen[s]; ok {
					bad("slot", "%s %d is %s %d, as %s %d already", what, i, s.Kind, s.Index, what, j)
				}
				seen[s] = i
			}
		}
	}
	for i, s := range p.Args {
		walk("argument", i, []Slot{s}, KindInput, KindWeight, KindState, KindConstant)
	}
	args := seen
	seen = make(map[Slot]int)
	for i, slots := range p.Results {
		if len(slots) == 0 {
			bad("slot", "result %d is nothing, wanted an output or new contents", i)
			valid = false
		}
		walk("result", i, slots, KindOutput, KindState, KindInput)
	}
	if !valid {
		return
	}
	for i, slots := range p.Results {
		kept := 0
		for _, s := range slots {
			if s.Kind != KindOutput {
				kept++
			}
			if m.slotType(p, s).String() != m.slotType(p, slots[0]).String() {
				bad("slot", "result %d is %s of type %s and %s of type %s", i, m.SlotName(slots[0]), m.slotType(p, slots[0]), m.SlotName(s), m.slotType(p, s))
			}
		}
		if kept > 1 {
			bad("slot", "result %d is the new contents of %d tensors, wanted a result for each", i, kept)
		}
	}
	for i, o := range m.Outputs {
		if _, ok := seen[Slot{KindOutput, i}]; !ok {
			bad("slot", "output %d (%q) is no result of the program", i, o.Name)
		}
	}
	for i, slots := range p.Results {
		for _, s := range slots {
			if s.Kind != KindState {
				continue
			}
			changed[s.Index] = true
			if _, ok := args[s]; !ok {
				bad("slot", "result %d is %s, which is no argument", i, m.SlotName(s))
			}
		}
	}
	taken := make(map[int]bool)
	given := make(map[int]bool)
	for _, a := range p.Aliases {
		if a.Argument < 0 || a.Argument >= len(p.Args) || a.Result < 0 || a.Result >= len(p.Results) {
			bad("alias", "result %d is aliased to argument %d, wanted below %d and %d", a.Result, a.Argument, len(p.Results), len(p.Args))
			continue
		}
		arg, res := p.Args[a.Argument], p.Results[a.Result][0]
		switch {
		case taken[a.Argument] || given[a.Result]:
			bad("alias", "argument %d or result %d is aliased twice", a.Argument, a.Result)
		case arg.Kind == KindWeight || arg.Kind == KindConstant:
			bad("alias", "result %d takes the memory of %s, which later calls need", a.Result, m.SlotName(arg))
		case arg.Kind == KindState && !slices.Contains(p.Results[a.Result], arg):
			bad("alias", "result %d (%s) takes the memory of %s", a.Result, m.SlotName(res), m.SlotName(arg))
		case m.slotType(p, arg).String() != m.slotType(p, res).String():
			bad("alias", "result %d is %s, wanted %s as argument %d", a.Result, m.slotType(p, res), m.slotType(p, arg), a.Argument)
		}
		taken[a.Argument], given[a.Result] = true, true
	}
}

func isDigest(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 32 && s == hex.EncodeToString(b)
}
