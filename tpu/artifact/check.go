package artifact

import (
	"encoding/hex"
	"fmt"
	"slices"

	"tpuc/ir/diag"
)

// align is the multiple at which sections, and tensors in them, begin, so that a mapped file can be used in place.
const align = 64

// check reports everything that is wrong in a manifest: types, digests, lists that refer to each other, tensors outside of their section.
func (m *Manifest) check(sections []File) error {
	var errs diag.List
	bad := func(code, format string, args ...any) { errs.Addf(nil, "artifact/"+code, "manifest: "+format, args...) }
	for _, s := range sections {
		if s.Size < 0 || !isDigest(s.SHA256) {
			bad("section", "section %q has size %d and sha256 %q, wanted a size and 64 hex digits", s.Name, s.Size, s.SHA256)
		}
	}
	if !isDigest(m.Program) || !isDigest(m.Plugin.SHA256) {
		bad("digest", "sha256 %q of the program and %q of the plugin, wanted 64 hex digits", m.Program, m.Plugin.SHA256)
	}
	if m.Target.Devices < 1 {
		bad("target", "target %q has %d devices, wanted at least 1", m.Target.Name, m.Target.Devices)
	}
	ports := func(kind string, list []Port) {
		for i, p := range list {
			if _, err := p.Tensor(); err != nil {
				bad("type", "%s %d (%q): %v", kind, i, p.Name, err)
			}
		}
	}
	ports(KindInput, m.Inputs)
	ports(KindOutput, m.Outputs)
	for _, l := range m.weightLists() {
		for i, w := range l.list {
			checkWeight(fmt.Sprintf("%s %d (%q)", l.kind, i, w.Name), w, sections, bad)
		}
	}
	if len(errs) > 0 {
		return errs.Err() // what follows relies on types
	}
	m.checkSlots(bad)
	return errs.Err()
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

// checkSlots checks arguments, results and aliases against the lists.
func (m *Manifest) checkSlots(bad func(code, format string, args ...any)) {
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
	for i, s := range m.Args {
		walk("argument", i, []Slot{s}, KindInput, KindWeight, KindState, KindConstant)
	}
	clear(seen)
	for i, slots := range m.Results {
		if len(slots) == 0 {
			bad("slot", "result %d is nothing, wanted an output or new contents", i)
			valid = false
		}
		walk("result", i, slots, KindOutput, KindState, KindInput)
	}
	if !valid {
		return
	}
	for i, slots := range m.Results {
		kept := 0
		for _, s := range slots {
			if s.Kind != KindOutput {
				kept++
			}
			if m.slotType(s).String() != m.slotType(slots[0]).String() {
				bad("slot", "result %d is %s of type %s and %s of type %s", i, m.SlotName(slots[0]), m.slotType(slots[0]), m.SlotName(s), m.slotType(s))
			}
		}
		if kept > 1 {
			bad("slot", "result %d is the new contents of %d tensors, wanted a result for each", i, kept)
		}
	}
	for i, p := range m.Outputs {
		if _, ok := seen[Slot{KindOutput, i}]; !ok {
			bad("slot", "output %d (%q) is no result of the program", i, p.Name)
		}
	}
	for i, w := range m.State {
		if _, ok := seen[Slot{KindState, i}]; !ok {
			bad("slot", "state %d (%q) has no result with its new contents", i, w.Name)
		}
	}
	taken := make(map[int]bool)
	given := make(map[int]bool)
	for _, a := range m.Aliases {
		if a.Argument < 0 || a.Argument >= len(m.Args) || a.Result < 0 || a.Result >= len(m.Results) {
			bad("alias", "result %d is aliased to argument %d, wanted below %d and %d", a.Result, a.Argument, len(m.Results), len(m.Args))
			continue
		}
		arg, res := m.Args[a.Argument], m.Results[a.Result][0]
		switch {
		case taken[a.Argument] || given[a.Result]:
			bad("alias", "argument %d or result %d is aliased twice", a.Argument, a.Result)
		case arg.Kind == KindWeight || arg.Kind == KindConstant:
			bad("alias", "result %d takes the memory of %s, which later calls need", a.Result, m.SlotName(arg))
		case arg.Kind == KindState && !slices.Contains(m.Results[a.Result], arg):
			bad("alias", "result %d (%s) takes the memory of %s", a.Result, m.SlotName(res), m.SlotName(arg))
		case m.slotType(arg).String() != m.slotType(res).String():
			bad("alias", "result %d is %s, wanted %s as argument %d", a.Result, m.slotType(res), m.slotType(arg), a.Argument)
		}
		taken[a.Argument], given[a.Result] = true, true
	}
}

func isDigest(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 32 && s == hex.EncodeToString(b)
}
