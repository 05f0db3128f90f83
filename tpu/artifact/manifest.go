// Package artifact owns the .tpuc file: a compiled program with everything that running it needs, in one zip of 64-byte aligned, stored
// sections (docs/artifact.md).
//
// It writes files that are equal byte for byte for equal contents, and reads them mapped, checking every size, offset and digest itself. It
// never loads a plugin, never compiles and never looks for weights outside of the file.
package artifact

import (
	"fmt"

	"tpuc/ir/tensor"
)

// Format is the version of the format that this package writes and the only one that it reads.
const Format = "0"

// Names of the sections, in the order in which they lie in the file.
const (
	ManifestSection   = "manifest.json"  // Manifest
	ProgramSection    = "program.mlir"   // StableHLO text
	ExecutableSection = "executable.bin" // what the plugin serialized
	ConstantsSection  = "constants.bin"  // elements that belong to the program
	WeightsSection    = "weights.bin"    // embedded elements of the checkpoint; may be missing
	DirectorySection  = "sections.json"  // sizes and digests of all others
)

// Manifest describes an artifact; it is readable without a plugin. Lists have the order that the program or the user gives them. Nothing in it
// depends on the executable's bytes, which on CPU differ from compile to compile: equal compiles have equal manifests.
type Manifest struct {
	Format     string   `json:"format"`
	Tpuc       string   `json:"tpuc"` // version of tpuc that wrote the file
	Model      Model    `json:"model"`
	Target     Target   `json:"target"`
	Plugin     Plugin   `json:"plugin"`
	Options    []Option `json:"options,omitempty"`    // compile options that are not at their default
	Dims       []Dim    `json:"dims,omitempty"`       // symbolic dimensions of the model and their values in this program
	Inputs     []Port   `json:"inputs"`               // user inputs in flattened order
	Outputs    []Port   `json:"outputs"`              // user outputs in flattened order
	Numbers    []Number `json:"numbers,omitempty"`    // user outputs that are no tensors but numbers known when compiling, such as a size
	Weights    []Weight `json:"weights"`              // tensors of the checkpoint that the program only reads
	State      []Weight `json:"state"`                // tensors that the program changes; their contents are the initial ones
	Constants  []Weight `json:"constants"`            // tensors that belong to the program
	Args       []Slot   `json:"arguments"`            // the program's arguments in order
	Results    [][]Slot `json:"results"`              // the program's results in order; one result may be an output and new contents at once
	Aliases    []Alias  `json:"aliases"`              // results that take their memory from an argument
	Program    string   `json:"program_sha256"`       // of program.mlir; filled by Write
	Checkpoint *Source  `json:"checkpoint,omitempty"` // what weights by reference were compiled with
	Memory     *Memory  `json:"memory,omitempty"`
}

// Model is what was compiled.
type Model struct {
	Name   string `json:"name"`             // base name without its extension
	Kind   string `json:"kind"`             // container: "pt2", "stablehlo", "text"
	SHA256 string `json:"sha256,omitempty"` // of the model file, when it was computed
}

// Target is what the program runs on.
type Target struct {
	Name     string `json:"name"`     // as tpuc spells it: "cpu", "v6e:2x4"
	Platform string `json:"platform"` // "cpu" or "tpu"
	Devices  int    `json:"devices"`
}

// Plugin is the PJRT library that made the executable and, alone, may run it.
type Plugin struct {
	Name            string `json:"name"`
	Version         string `json:"version,omitempty"`
	SHA256          string `json:"sha256"`                     // of the library
	PlatformVersion string `json:"platform_version,omitempty"` // as the plugin reports it
}

// Option is a compile option in words.
type Option struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Dim binds a symbolic dimension.
type Dim struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
}

// Type is the element type, by tensor's name, and the row-major shape of a tensor.
type Type struct {
	DType string  `json:"dtype"`
	Dims  []int64 `json:"dims"`
}

// Port is a user input or output.
type Port struct {
	Name string `json:"name"`           // such as "input_ids"
	Path string `json:"path,omitempty"` // place in the model's call, such as args[0]["mask"], when it says more than the name
	// Ordinal is its place among all flattened leaves, those that are no tensors included: the i of input_<i> and output_<i>.
	Ordinal int `json:"ordinal"`
	Type
}

// Number is a user output that is no tensor.
type Number struct {
	Name    string `json:"name,omitempty"`
	Path    string `json:"path,omitempty"`
	Ordinal int    `json:"ordinal"` // as in Port
	Value   string `json:"value"`   // as Python writes it
}

// Weight is a tensor that the program takes as an argument and the user does not give.
type Weight struct {
	Name  string   `json:"name"`            // symbol in the program's text
	Names []string `json:"names,omitempty"` // all names in the checkpoint; several for tied weights
	Class string   `json:"class"`           // ir.Class: "weight", "buffer" or "constant"
	Type
	Expr    string `json:"expr,omitempty"`    // source expression, ir/weight's text
	SHA256  string `json:"sha256,omitempty"`  // of the row-major elements, when known
	Section string `json:"section,omitempty"` // where the elements are embedded; empty: by reference, in the checkpoint
	Offset  int64  `json:"offset,omitempty"`  // byte in that section, a multiple of 64
}

// Slot says what an argument or result of the program stands for.
type Slot struct {
	Kind  string `json:"kind"`  // arguments: input, weight, state, constant; results: output, state, input (new contents of a changed one)
	Index int    `json:"index"` // in the manifest's list of that kind
}

// Kinds of slots.
const (
	KindInput    = "input"
	KindOutput   = "output"
	KindWeight   = "weight"
	KindState    = "state"
	KindConstant = "constant"
)

// Alias says that a call takes the memory of an argument for a result: the argument's buffer is gone afterwards.
type Alias struct {
	Result   int `json:"result"`
	Argument int `json:"argument"`
}

// Source is the checkpoint that an artifact was compiled with, by its base name: where that lies is not recorded.
type Source struct {
	Name     string `json:"name"`
	Size     int64  `json:"size"`
	Identity string `json:"identity,omitempty"` // of an archive's contents (weights.Archive.Identity), otherwise empty
}

// File is a section of the artifact.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256,omitempty"`
}

// Memory is the plugin's figures of a call, in bytes a device.
type Memory struct {
	Code     int64 `json:"code"`
	Argument int64 `json:"argument"`
	Output   int64 `json:"output"`
	Alias    int64 `json:"alias"` // part of Argument that outputs take over
	Temp     int64 `json:"temp"`
	Peak     int64 `json:"peak"`
}

// MakeType is the manifest's form of t.
func MakeType(t tensor.Type) Type { return Type{t.DType.String(), append([]int64{}, t.Dims...)} }

// Tensor is the type in tensor's form, checked.
func (t Type) Tensor() (tensor.Type, error) {
	d, err := tensor.ParseDType(t.DType)
	if err != nil {
		return tensor.Type{}, err
	}
	out := tensor.Make(d, t.Dims...)
	return out, out.Check()
}

// String is such as "f32[2,3]".
func (t Type) String() string {
	if tt, err := t.Tensor(); err == nil {
		return tt.String()
	}
	return fmt.Sprintf("%s%v", t.DType, t.Dims)
}

// slotType is the type of what s stands for; s must be valid.
func (m *Manifest) slotType(s Slot) Type {
	switch s.Kind {
	case KindInput:
		return m.Inputs[s.Index].Type
	case KindOutput:
		return m.Outputs[s.Index].Type
	case KindWeight:
		return m.Weights[s.Index].Type
	case KindState:
		return m.State[s.Index].Type
	default:
		return m.Constants[s.Index].Type
	}
}

// ArgumentType is the type of the program's argument i.
func (m *Manifest) ArgumentType(i int) Type { return m.slotType(m.Args[i]) }

// ResultType is the type of the program's result i.
func (m *Manifest) ResultType(i int) Type { return m.slotType(m.Results[i][0]) }

// SlotName names a slot in messages, such as: input "x".
func (m *Manifest) SlotName(s Slot) string {
	name := ""
	switch s.Kind {
	case KindInput:
		name = m.Inputs[s.Index].Name
	case KindOutput:
		name = m.Outputs[s.Index].Name
	case KindWeight:
		name = m.Weights[s.Index].Name
	case KindState:
		name = m.State[s.Index].Name
	case KindConstant:
		name = m.Constants[s.Index].Name
	}
	return fmt.Sprintf("%s %q", s.Kind, name)
}
