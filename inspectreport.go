package tpuc

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"tpuc/internal/plural"
	"tpuc/tpu/artifact"
)

// Write prints the inspection for people.
func (s *Inspection) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("file", "%s", s.File)
	switch s.Kind {
	case KindArchive:
		s.writeArchive(row)
	case KindText:
		row("kind", "module in textual form, %s", Bytes(s.Size))
	case KindStableHLO:
		row("kind", "StableHLO, %s", Bytes(s.Size))
	case KindArtifact:
		s.writeArtifact(row)
	case KindWeights:
		total := int64(0)
		for _, x := range s.Tensors {
			total += x.Bytes
		}
		row("kind", "weights: %s, %s", plural.Of(len(s.Tensors), "tensor"), Bytes(total))
		storedRows(row, "tensors", s.Tensors)
	}
	if s.Kind == KindArchive || s.Kind == KindText || s.Kind == KindStableHLO {
		s.writeProgram(row)
		for _, n := range s.Notes {
			row("note", "%s", n)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if s.IR != "" {
		_, err := fmt.Fprintf(w, "\n%s", s.IR)
		return err
	}
	return nil
}

// rower prints a line of a name and what there is to say.
type rower func(name, format string, args ...any)

// writeArchive prints what is particular to archives: who wrote them, and symbolic dimensions.
func (s *Inspection) writeArchive(row rower) {
	dialect := "as captured"
	if s.Decomposed {
		dialect = "decomposed"
	}
	row("kind", "torch.export archive, %s", Bytes(s.Size))
	row("torch", "%s, schema %s, %s", s.Torch, s.Schema, dialect)
	name := "symbols"
	for _, y := range s.Symbols {
		limits := symbolRange(y.Min, y.Max)
		if y.Hint != 0 {
			limits += fmt.Sprintf(", %d in the example", y.Hint)
		}
		row(name, "%s (%s): %s", y.Name, strings.Join(y.Where, ", "), limits)
		name = ""
	}
}

// writeProgram prints what archives and text have in common.
func (s *Inspection) writeProgram(row rower) {
	leafRows(row, "inputs", "input", s.Inputs)
	leafRows(row, "outputs", "output", s.Outputs)
	storedRows(row, "state", s.State)
	name := "weights"
	for _, c := range s.Classes {
		line := fmt.Sprintf("%s: %s, %s", c.Class, plural.Of(c.Count, "tensor"), Bytes(c.Bytes))
		if c.Absent > 0 {
			line += fmt.Sprintf(" (%d without their bytes)", c.Absent)
		}
		row(name, "%s", line)
		name = ""
	}
	storedRows(row, "largest", s.Largest)
	name = "operators"
	for _, o := range s.Ops {
		note := ""
		if o.Unsupported {
			note = "  not supported"
		}
		row(name, "%5d  %s%s", o.Count, o.Op, note)
		name = ""
	}
	name = "problems"
	for _, p := range s.Problems {
		row(name, "%s", p)
		name = ""
	}
}

// writeArtifact prints the manifest and the sizes of the sections.
func (s *Inspection) writeArtifact(row rower) {
	m := s.Manifest
	row("kind", "artifact of format %s, written by tpuc %s, %s", m.Format, m.Tpuc, Bytes(s.Size))
	row("model", "%s (%s)", m.Model.Name, m.Model.Kind)
	row("target", "%s", m.Target.Name)
	row("plugin", "%s %s", m.Plugin.Name, m.Plugin.Version)
	if c := m.CPU; c != nil {
		row("processor", "%s, %s, %s", c.Processor, plural.Of(len(c.Features), "feature"), plural.Of(c.Cores, "core"))
	}
	name := "symbols"
	for _, y := range m.Symbols {
		row(name, "%s: %s", y.Name, y.Range())
		name = ""
	}
	manifestPorts(row, "inputs", artifact.KindInput, m.Inputs)
	manifestPorts(row, "outputs", artifact.KindOutput, m.Outputs)
	manifestWeights(row, "state", m.State)
	manifestWeights(row, "weights", m.Weights)
	manifestWeights(row, "constants", m.Constants)
	if m.Checkpoint != nil {
		row("checkpoint", "%s, %s", m.Checkpoint.Name, Bytes(m.Checkpoint.Size))
	}
	name = "programs"
	for _, p := range m.Programs {
		row(name, "%s", programLine(&p))
		name = ""
		for _, pad := range p.Pads {
			row(name, "  %s", padLine(pad, p.Dim(pad.Symbol)))
		}
	}
	if n := len(m.Examples); n > 0 {
		row("examples", "%d", n)
	}
	name = "sections"
	for _, f := range s.Sections {
		row(name, "%s, %s", f.Name, Bytes(f.Size))
		name = ""
	}
	if s.Verified {
		row("verified", "every byte")
	}
}

// leafRows prints inputs or outputs, a line each; a list's name stands before its first line only.
func leafRows(row rower, name, kind string, list []Leaf) {
	for _, l := range list {
		text := fmt.Sprintf("%s_%d", kind, l.Ordinal)
		if l.Name != "" && l.Name != text {
			text += " " + l.Name
		}
		if l.DType != "" {
			text += fmt.Sprintf(" : %s[%s]", l.DType, strings.Join(l.Dims, ","))
		} else {
			text += " = " + l.Value
		}
		if l.Path != "" {
			text += "  " + l.Path
		}
		row(name, "%s", text)
		name = ""
	}
}

func storedRows(row rower, name string, list []Stored) {
	for _, x := range list {
		text := fmt.Sprintf("%s : %s, %s", x.Name, x.Type, Bytes(x.Bytes))
		if len(x.Names) > 0 {
			text += " (also " + listed(x.Names) + ")"
		}
		row(name, "%s", text)
		name = ""
	}
}

// symbolRange is the sizes that a symbolic dimension may have.
func symbolRange(least int64, most *int64) string {
	return artifact.Symbol{Min: least, Max: most}.Range()
}

// programLine is a program's dimensions and what a call of it takes.
func programLine(p *artifact.Program) string {
	var parts []string
	if len(p.Dims) > 0 {
		parts = append(parts, dimsLine(p.Dims))
	}
	if x := p.Memory; x != nil {
		parts = append(parts, fmt.Sprintf("peak %s, temporary %s, code %s", Bytes(x.Peak), Bytes(x.Temp), Bytes(x.Code)))
	}
	return strings.Join(parts, ", ")
}

// padLine says which smaller sizes a program of a size may serve with padding.
func padLine(p artifact.Pad, size int64) string {
	line := p.Symbol + ": refused"
	if p.Safe(size) {
		line = fmt.Sprintf("%s: safe to pad from %d on", p.Symbol, p.Min)
	}
	if p.Reason != "" {
		line += fmt.Sprintf("; at %d: %s", min(p.Min, size)-1, p.Reason)
	}
	return line
}

func manifestPorts(row rower, name, kind string, list []artifact.Signature) {
	for _, s := range list {
		row(name, "%s : %s", leafName(kind, s.Ordinal, s.Name), s)
		name = ""
	}
}

// manifestWeights counts what is embedded and what is not, and lists the largest.
func manifestWeights(row rower, name string, list []artifact.Weight) {
	if len(list) == 0 {
		return
	}
	var all []Stored
	total, inside := int64(0), 0
	for _, w := range list {
		x := Stored{Name: w.Name, Type: w.Type.String()}
		if len(w.Names) > 0 {
			x.Name, x.Names = w.Names[0], w.Names[1:]
		}
		if t, err := w.Tensor(); err == nil {
			x.Bytes = t.Bytes()
		}
		if w.Section != "" {
			inside++
		}
		total += x.Bytes
		all = append(all, x)
	}
	row(name, "%s, %s, %d of them in the artifact", plural.Of(len(list), "tensor"), Bytes(total), inside)
	storedRows(row, "", largest(all)[:min(len(all), 3)])
}
