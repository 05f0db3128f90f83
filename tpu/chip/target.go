package chip

import (
	"fmt"
	"strings"
)

// Target is what a program is compiled for: CPU devices, or a slice of a TPU. It is comparable; the zero value is one
// CPU device.
type Target struct {
	Chip Chip

	shape   [3]int // chips along each axis of a TPU slice, axes beyond Facts.Dims being zero
	devices int    // of the CPU; zero means one, and one is always written so
}

// Entry is one line of `tpuc list targets`.
type Entry struct {
	Target  Target
	Cloud   string // the hyphenated name that Google Cloud gives the slice, such as "v6e-8"; empty for the CPU
	Chips   int
	Devices int
}

// String is the canonical spelling: "cpu", "cpu:4", "v6e:2x4", "tpu7x:2x2x1". Parse takes it back.
func (t Target) String() string {
	if !t.IsTPU() {
		if t.devices == 0 {
			return "cpu"
		}
		return fmt.Sprintf("cpu:%d", t.devices)
	}
	return t.Chip.String() + ":" + t.shapeText()
}

// Topology is the name that libtpu takes, such as "TPU7x:2x2x1", along with the option Facts.ChipConfig; empty for the CPU.
func (t Target) Topology() string {
	if !t.IsTPU() {
		return ""
	}
	return t.Chip.Facts().LibTPU + ":" + t.shapeText()
}

// Cloud is the hyphenated name that Google Cloud gives a slice of so many chips, such as "v6e-8"; empty for the CPU. It
// names the number only, so parsing it gives the standard shape.
func (t Target) Cloud() string {
	f := t.Chip.Facts()
	switch {
	case !t.IsTPU():
		return ""
	case t.Chip == V5e:
		return fmt.Sprintf("v5litepod-%d", t.Chips())
	case f.CountsCores:
		return fmt.Sprintf("%s-%d", f.Name, t.Cores())
	}
	return fmt.Sprintf("%s-%d", f.Name, t.Chips())
}

// IsTPU tells a TPU slice from the host's CPU.
func (t Target) IsTPU() bool { return t.Chip != CPU && int(t.Chip) < len(table) }

// Platform is the kind of plugin that compiles for the target: "cpu" or "tpu".
func (t Target) Platform() string {
	if t.IsTPU() {
		return "tpu"
	}
	return "cpu"
}

// Shape is chips along each axis of the slice, a new slice; nil for the CPU.
func (t Target) Shape() []int {
	if !t.IsTPU() {
		return nil
	}
	return append([]int(nil), t.shape[:t.Chip.Facts().Dims]...)
}

// Chips counts TPU chips; zero for the CPU.
func (t Target) Chips() int {
	if !t.IsTPU() {
		return 0
	}
	return product(t.Shape())
}

// Cores counts TensorCores; zero for the CPU.
func (t Target) Cores() int { return t.Chips() * t.Chip.Facts().CoresPerChip }

// Devices counts PJRT devices, which is what a program's partitions are laid over.
func (t Target) Devices() int {
	if !t.IsTPU() {
		return max(t.devices, 1)
	}
	return t.Chips() * t.Chip.Facts().DevicesPerChip
}

// Facts are those of the target's chip.
func (t Target) Facts() Facts { return t.Chip.Facts() }

// MarshalText is String, for manifests.
func (t Target) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText is Parse.
func (t *Target) UnmarshalText(text []byte) error {
	got, err := Parse(string(text))
	if err == nil {
		*t = got
	}
	return err
}

// List returns the CPU and every standard slice, by chip and size.
func List() []Entry {
	entries := []Entry{{Devices: 1}}
	for _, c := range Chips {
		for _, s := range standardShapes(c.Facts()) {
			t := tpu(c, s)
			entries = append(entries, Entry{Target: t, Cloud: t.Cloud(), Chips: t.Chips(), Devices: t.Devices()})
		}
	}
	return entries
}

// tpu is the target of a slice; the shape has the chip's number of axes.
func tpu(c Chip, shape []int) Target {
	t := Target{Chip: c}
	copy(t.shape[:], shape)
	return t
}

func (t Target) shapeText() string { return shapeText(t.Shape()) }

func shapeText(shape []int) string {
	parts := make([]string, len(shape))
	for i, n := range shape {
		parts[i] = fmt.Sprint(n)
	}
	return strings.Join(parts, "x")
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
