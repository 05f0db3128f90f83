// Package artifact owns the .tpuc file: a model's compiled programs with everything that running them needs, in one zip of 64-byte aligned, stored
// sections (docs/artifact.md).
//
// It writes files that are equal byte for byte for equal contents, and reads them mapped, checking every size, offset and digest itself. It
// never loads a plugin, never compiles and never looks for weights outside of the file.
package artifact

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tpuc/ir/tensor"
	"tpuc/ir/weight"
)

// Format is the version of the format that this package writes, and Oldest the first that it reads: whole numbers.
const (
	Format = "1"
	Oldest = "1"
)

// Names of the sections. The programs' are ProgramSection and ExecutableSection; sectionOrder has them all.
const (
	ManifestSection  = "manifest.json" // Manifest
	ConstantsSection = "constants.bin" // elements that belong to the programs
	WeightsSection   = "weights.bin"   // embedded elements of the checkpoint; may be missing
	GraphSection     = "graph.bin"     // what other programs of the model are compiled from; may be missing
	DirectorySection = "sections.json" // sizes and digests of all others
)

// sectionName is a section that a file has, or may have.
type sectionName struct {
	name     string
	optional bool
}

// sectionOrder is the order in which the sections lie in the file, the directory excepted.
func (m *Manifest) sectionOrder() []sectionName {
	out := []sectionName{{name: ManifestSection}}
	for i := range m.Programs {
		out = append(out, sectionName{name: ProgramSection(i)}, sectionName{name: ExecutableSection(i)})
	}
	out = append(out, sectionName{name: ConstantsSection}, sectionName{WeightsSection, true}, sectionName{GraphSection, true})
	for _, e := range m.Examples {
		out = append(out, sectionName{name: e.Inputs})
		if e.Outputs != "" {
			out = append(out, sectionName{name: e.Outputs})
		}
	}
	return out
}

// ProgramSection is the name of program i's StableHLO text.
func ProgramSection(i int) string { return fmt.Sprintf("program-%d.mlir", i) }

// ExecutableSection is the name of what the plugin serialized for program i.
func ExecutableSection(i int) string { return fmt.Sprintf("executable-%d.bin", i) }

// exampleSections are the names of example i's sections.
func exampleSections(i int) (inputs, outputs string) {
	return fmt.Sprintf("example-%d-inputs.safetensors", i), fmt.Sprintf("example-%d-outputs.safetensors", i)
}

// Manifest describes an artifact; it is readable without a plugin. Lists have the order that the programs or the user give them. Nothing in it
// depends on the executables' bytes, which on CPU differ from compile to compile: equal compiles have equal manifests.
type Manifest struct {
	Format     string      `json:"format"`
	Tpuc       string      `json:"tpuc"` // version of tpuc that wrote the file
	Model      Model       `json:"model"`
	Target     Target      `json:"target"`
	Plugin     Plugin      `json:"plugin"`
	CPU        *CPU        `json:"cpu,omitempty"`        // what the executables for a CPU were made for, when known
	Options    []Option    `json:"options,omitempty"`    // compile options that are not at their default
	Symbols    []Symbol    `json:"symbols,omitempty"`    // symbolic dimensions of the model, sorted by name
	Inputs     []Signature `json:"inputs"`               // user inputs in flattened order
	Outputs    []Signature `json:"outputs"`              // user outputs in flattened order
	Weights    []Weight    `json:"weights"`              // tensors of the checkpoint that the programs only read
	State      []Weight    `json:"state"`                // tensors that a program changes; their contents are the initial ones
	Constants  []Weight    `json:"constants"`            // tensors that belong to the programs
	Programs   []Program   `json:"programs"`             // at least one; no two take inputs of the same shapes
	Checkpoint *Source     `json:"checkpoint,omitempty"` // what weights by reference were compiled with
	Examples   []Example   `json:"examples,omitempty"`   // calls of one session, one after another; filled by Write
}

// Example names the sections of a call, which are safetensors files.
type Example struct {
	Inputs  string `json:"inputs"`            // keyed input_<ordinal>
	Outputs string `json:"outputs,omitempty"` // what is expected, keyed output_<ordinal> or by name or path
}

// Program is the model with its dimensions fixed. Its sections are ProgramSection and ExecutableSection of its number.
type Program struct {
	Dims    []Dim    `json:"dims,omitempty"`    // a value for each symbol that the model has
	Inputs  []Type   `json:"inputs"`            // of the manifest's inputs
	Outputs []Type   `json:"outputs"`           // of the manifest's outputs
	Numbers []Number `json:"numbers,omitempty"` // user outputs that are no tensors but numbers known when compiling, such as a size
	Args    []Slot   `json:"arguments"`         // the program's arguments in order
	Results [][]Slot `json:"results"`           // the program's results in order; one result may be an output and new contents at once
	Aliases []Alias  `json:"aliases"`           // results that take their memory from an argument
	Pads    []Pad    `json:"pads,omitempty"`    // of symbols for which padding was looked at, in the order of Dims
	SHA256  string   `json:"program_sha256"`    // of its StableHLO text; filled by Write
	Key     string   `json:"key,omitempty"`     // under which a cache keeps the executable
	Flops   int64    `json:"flops,omitempty"`   // of a call, by tpuc's own count
	Memory  *Memory  `json:"memory,omitempty"`  // of a call, by the plugin's
}

// Model is what was compiled.
type Model struct {
	Name   string `json:"name"`             // base name without its extension
	Kind   string `json:"kind"`             // container: "pt2", "stablehlo", "text"
	SHA256 string `json:"sha256,omitempty"` // of text, and of an archive of all but the weights' bytes, which their checksums stand for
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

// CPU is what executables for a CPU were made for. A processor without one of the features would stop at an instruction that it does not know.
type CPU struct {
	Processor string   `json:"processor,omitempty"` // name and digest of all that tells it apart (internal/processor)
	Features  []string `json:"features,omitempty"`  // LLVM's, sorted: "+avx2" is used, "-sse4a" is not
	Cores     int      `json:"cores,omitempty"`     // that work was divided for; any other number runs it
}

// Option is a compile option in words.
type Option struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Symbol is a symbolic dimension and the sizes that the model allows.
type Symbol struct {
	Name string `json:"name"`
	Min  int64  `json:"min"`
	Max  *int64 `json:"max,omitempty"` // none: unbounded
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

// Signature is a user input or output whose dimensions may be open.
type Signature struct {
	Name string `json:"name"`           // such as "input_ids"
	Path string `json:"path,omitempty"` // place in the model's call, such as args[0]["mask"], when it says more than the name
	// Ordinal is its place among all flattened leaves, those that are no tensors included: the i of input_<i> and output_<i>.
	Ordinal int      `json:"ordinal"`
	DType   string   `json:"dtype"`
	Dims    []string `json:"dims"` // each a number, or an expression of symbols such as "s77" or "2*s77"
}

// Port is a user input or output of one program.
type Port struct {
	Name    string `json:"name"` // as in Signature, with Path and Ordinal
	Path    string `json:"path,omitempty"`
	Ordinal int    `json:"ordinal"`
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

// Source is the weight's source expression. A constant may have none.
func (w Weight) Source() (weight.Expr, error) {
	t, err := w.Tensor()
	if err != nil {
		return nil, err
	}
	return weight.Parse(w.Expr, t)
}

// Same reports that both have the same elements of the same checkpoint.
func (w Weight) Same(v Weight) bool {
	return w.Expr == v.Expr && slices.Equal(w.Names, v.Names) && w.Type.String() == v.Type.String()
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

// String is such as "f32[s77,16]".
func (s Signature) String() string { return fmt.Sprintf("%s[%s]", s.DType, strings.Join(s.Dims, ",")) }

// Range is the sizes that the model allows, such as "2 or more".
func (y Symbol) Range() string {
	if y.Max == nil {
		return fmt.Sprintf("%d or more", y.Min)
	}
	return fmt.Sprintf("%d to %d", y.Min, *y.Max)
}

// Fixed is the signature of p, whose dimensions are fixed.
func Fixed(p Port) Signature {
	dims := make([]string, len(p.Dims))
	for i, d := range p.Dims {
		dims[i] = strconv.FormatInt(d, 10)
	}
	return Signature{p.Name, p.Path, p.Ordinal, p.DType, dims}
}

// Ports are the inputs and outputs of program p.
func (m *Manifest) Ports(p *Program) (inputs, outputs []Port) {
	join := func(list []Signature, types []Type) []Port {
		out := make([]Port, len(list))
		for i, s := range list {
			out[i] = Port{s.Name, s.Path, s.Ordinal, types[i]}
		}
		return out
	}
	return join(m.Inputs, p.Inputs), join(m.Outputs, p.Outputs)
}

// slotType is the type of what s stands for in p; s must be valid.
func (m *Manifest) slotType(p *Program, s Slot) Type {
	switch s.Kind {
	case KindInput:
		return p.Inputs[s.Index]
	case KindOutput:
		return p.Outputs[s.Index]
	case KindWeight:
		return m.Weights[s.Index].Type
	case KindState:
		return m.State[s.Index].Type
	default:
		return m.Constants[s.Index].Type
	}
}

// ArgumentType is the type of p's argument i.
func (m *Manifest) ArgumentType(p *Program, i int) Type { return m.slotType(p, p.Args[i]) }

// ResultType is the type of p's result i.
func (m *Manifest) ResultType(p *Program, i int) Type { return m.slotType(p, p.Results[i][0]) }

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

// constants are the tensors in the constants' section by the digests of their elements.
func (m *Manifest) constants() map[string]Weight {
	out := make(map[string]Weight)
	for _, list := range [][]Weight{m.Constants, m.State} {
		for _, w := range list {
			if w.Section == ConstantsSection && w.SHA256 != "" {
				out[w.SHA256] = w
			}
		}
	}
	return out
}
