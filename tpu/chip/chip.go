// Package chip holds what is known of the machines that programs are compiled for: the names users write, the shapes of
// slices, memories, speeds and their sources.
//
// It owns the target's spelling, in and out, and the table of facts. It never asks a plugin or the network, and knows
// nothing of compiling.
package chip

// Chip is a kind of machine: the host's CPU or a generation of TPU.
type Chip uint8

const (
	CPU Chip = iota
	V4
	V5e
	V5p
	V6e // Trillium
	V7x // TPU7x, Ironwood
)

// Chips lists the TPU generations, oldest first.
var Chips = []Chip{V4, V5e, V5p, V6e, V7x}

// String is the canonical name, which begins a target's.
func (c Chip) String() string { return c.Facts().Name }

// Facts returns the chip's row of the table. A value that is no chip has the CPU's, which claims nothing.
func (c Chip) Facts() Facts {
	if int(c) < len(table) {
		return table[c]
	}
	return table[CPU]
}

// Lanes and Sublanes are the extent of a vector register of 32-bit elements, the same on every TPU here
// (JAX, jax/_src/pallas/mosaic/tpu_info.py: num_lanes, num_sublanes).
const (
	Lanes    = 128
	Sublanes = 8
)

// Facts are the numbers of one chip. Zero means that no source was found, or that the chip does not do it; nothing is
// guessed. For the CPU all of them are zero.
type Facts struct {
	Name    string // canonical, lower case
	Product string // what Google calls it

	LibTPU     string // the name in libtpu's topologies
	ChipConfig string // value of libtpu's topology option chip_config_name; empty to leave it out

	CoresPerChip   int // TensorCores
	DevicesPerChip int // PJRT devices: the two cores of v4 and v5p act as one (megacore), those of TPU7x are two

	HBM          int64 // bytes a chip
	HBMUsable    int64 // bytes a device that a program may use; on large slices libtpu takes a few kilobytes more
	HBMBandwidth int64 // bytes per second, a chip
	VMEM         int64 // bytes a TensorCore
	SMEM         int64 // bytes a TensorCore

	MXUs    int // matrix units a TensorCore, as documented: on v6e and TPU7x the peak is more than one product a cycle of these
	MXUSize int // rows and columns of one

	PeakBF16 int64 // multiply-adds counted as two operations, per second, a chip
	PeakInt8 int64
	PeakFP8  int64

	ICIBandwidth int64 // bytes per second, both directions, a chip

	Dims        int  // axes of the slice's mesh or torus
	MaxChips    int  // of the largest slice
	CountsCores bool // "v5p-8" counts TensorCores, not chips

	aliases []string // further names users write, lower case
}

// HBMPerDevice is the HBM that one device sees, in bytes.
func (f Facts) HBMPerDevice() int64 {
	if f.DevicesPerChip == 0 {
		return 0
	}
	return f.HBM / int64(f.DevicesPerChip)
}

const (
	miB = 1 << 20
	giB = 1 << 30

	giga = 1_000_000_000
	tera = 1000 * giga
)
