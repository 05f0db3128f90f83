package artifact

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"tpuc/ir/tensor"
)

// sample is a small artifact with every kind of list in use.
func sample() (Manifest, Contents) {
	x := Type{"f32", []int64{2, 3}}
	n := Type{"i64", []int64{}}
	constant := tensor.FromFloats(tensor.Make(tensor.F32, 2, 3), []float64{1, 2, 3, 4, 5, 6})
	zero := tensor.FromInts(tensor.Make(tensor.I64), []int64{0})
	w := tensor.FromFloats(tensor.Make(tensor.F32, 2, 3), []float64{9, 8, 7, 6, 5, 4})
	m := Manifest{
		Tpuc: "0.1.0", Model: Model{Name: "counter", Kind: "text"},
		Target: Target{"cpu", "cpu", 1}, Plugin: Plugin{Name: "cpu-plugin", Version: "1", SHA256: digest([]byte("library"))},
		Options: []Option{{"opt", "3"}}, Symbols: []Symbol{{Name: "s0", Min: 2}},
		Inputs:    []Signature{{Name: "x", Path: "args[0]", DType: "f32", Dims: []string{"s0", "3"}}},
		Outputs:   []Signature{{Name: "y", DType: "f32", Dims: []string{"s0", "3"}}},
		Weights:   []Weight{{Name: "w", Names: []string{"w", "tied.w"}, Class: "weight", Type: x, Expr: `"w"`}},
		State:     []Weight{{Name: "n", Class: "constant", Type: n}},
		Constants: []Weight{{Name: "c0", Class: "constant", Type: x}, {Name: "c1", Class: "constant", Type: x}},
		Programs: []Program{{
			Dims: []Dim{{"s0", 2}}, Inputs: []Type{x}, Outputs: []Type{x},
			Args:    []Slot{{KindInput, 0}, {KindWeight, 0}, {KindState, 0}, {KindConstant, 0}, {KindConstant, 1}},
			Results: [][]Slot{{{KindOutput, 0}}, {{KindState, 0}}, {{KindInput, 0}}},
			Aliases: []Alias{{1, 2}},
			Memory:  &Memory{Code: 1, Peak: 2},
		}},
	}
	return m, Contents{
		Programs:  []ProgramContents{{[]byte("module {}\n"), bytes.Repeat([]byte("machine code "), 20)}},
		Constants: func(int) (*tensor.Tensor, error) { return constant, nil },
		State:     func(int) (*tensor.Tensor, error) { return zero, nil },
		Weights:   func(int) (*tensor.Tensor, error) { return w, nil },
		Graph:     []byte("a graph"),
		Examples:  []ExampleContents{{Inputs: []byte("inputs"), Outputs: []byte("outputs")}, {Inputs: []byte("more")}},
	}
}

func write(t *testing.T, m Manifest, c Contents) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.tpuc")
	require.NoError(t, Write(path, m, c))
	return path
}

func TestRoundTrip(t *testing.T) {
	m, c := sample()
	a, err := Open(write(t, m, c))
	require.NoError(t, err)
	defer a.Close()
	require.NoError(t, a.Verify())

	got := a.Manifest
	require.Equal(t, Format, got.Format)
	require.Equal(t, digest(c.Programs[0].Program), got.Programs[0].SHA256)
	require.Equal(t, m.Inputs, got.Inputs)
	require.Equal(t, m.Programs[0].Args, got.Programs[0].Args)
	require.Equal(t, m.Programs[0].Memory, got.Programs[0].Memory)
	for name, want := range map[string][]byte{ProgramSection(0): c.Programs[0].Program, ExecutableSection(0): c.Programs[0].Executable} {
		data, err := a.Section(name)
		require.NoError(t, err)
		require.Equal(t, want, data)
	}
	// Equal constants lie in the file once, and everything lies where a plugin can use it in place.
	require.Equal(t, got.Constants[0].Offset, got.Constants[1].Offset)
	require.NotEqual(t, got.Constants[0].Offset, got.State[0].Offset)
	for _, w := range append(append(got.Weights, got.State...), got.Constants...) {
		x, err := a.Tensor(w)
		require.NoError(t, err)
		require.Zero(t, w.Offset%align)
		require.Equal(t, w.Type.String(), x.Type.String())
	}
	x, err := a.Tensor(got.Weights[0])
	require.NoError(t, err)
	require.Equal(t, []float64{9, 8, 7, 6, 5, 4}, x.Floats())
	require.Equal(t, WeightsSection, got.Weights[0].Section)
	require.Equal(t, ConstantsSection, got.State[0].Section)
}

func TestByReference(t *testing.T) {
	m, c := sample()
	m.Checkpoint = &Source{Name: "model.safetensors", Size: 100}
	c.Weights = nil
	a, err := Open(write(t, m, c))
	require.NoError(t, err)
	defer a.Close()
	_, err = a.Tensor(a.Manifest.Weights[0])
	require.ErrorContains(t, err, "checkpoint")
	_, err = a.Section(WeightsSection)
	require.ErrorContains(t, err, "no section weights.bin")
	require.NoError(t, a.Verify())
}

func TestEqualBytes(t *testing.T) {
	m, c := sample()
	a, err := os.ReadFile(write(t, m, c))
	require.NoError(t, err)
	b, err := os.ReadFile(write(t, m, c))
	require.NoError(t, err)
	require.True(t, bytes.Equal(a, b))

	// Another executable of the same program changes neither manifest nor program.
	c.Programs[0].Executable = bytes.Clone(c.Programs[0].Executable)
	c.Programs[0].Executable[3]++
	other, err := Open(write(t, m, c))
	require.NoError(t, err)
	defer other.Close()
	z, err := zip.NewReader(bytes.NewReader(a), int64(len(a)))
	require.NoError(t, err)
	off, err := z.File[0].DataOffset()
	require.NoError(t, err)
	data, err := other.Section(ManifestSection)
	require.NoError(t, err)
	require.Equal(t, string(a[off:off+int64(len(data))]), string(data))
}

// A stranger's zip reader sees what docs/artifact.md promises: the manifest first, everything stored and aligned, no time.
func TestContainer(t *testing.T) {
	m, c := sample()
	z, err := zip.OpenReader(write(t, m, c))
	require.NoError(t, err)
	defer z.Close()
	var names []string
	for _, f := range z.File {
		names = append(names, f.Name)
		off, err := f.DataOffset()
		require.NoError(t, err)
		require.Zero(t, off%align, f.Name)
		require.Equal(t, zip.Store, f.Method)
		require.Equal(t, 1980, f.Modified.Year())
		r, err := f.Open()
		require.NoError(t, err)
		var b bytes.Buffer
		_, err = b.ReadFrom(r)
		require.NoError(t, err) // the CRC-32 too
	}
	require.Equal(t, []string{ManifestSection, ProgramSection(0), ExecutableSection(0), ConstantsSection, WeightsSection, GraphSection,
		"example-0-inputs.safetensors", "example-0-outputs.safetensors", "example-1-inputs.safetensors", DirectorySection}, names)
}

// Every flipped bit is noticed, by Open or by Verify, and nothing panics.
func TestFlips(t *testing.T) {
	m, c := sample()
	whole, err := os.ReadFile(write(t, m, c))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "a.tpuc")
	for i := range whole {
		bad := bytes.Clone(whole)
		bad[i] ^= 1 << (i % 8)
		require.NoError(t, os.WriteFile(path, bad, 0o644))
		a, err := Open(path)
		if err == nil {
			err = a.Verify()
			a.Close()
		}
		require.Error(t, err, "byte %d of %d", i, len(whole))
		require.NotContains(t, err.Error(), "panic")
	}
}

func TestCuts(t *testing.T) {
	m, c := sample()
	whole, err := os.ReadFile(write(t, m, c))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "a.tpuc")
	for _, n := range []int{0, 1, 29, 64, len(whole) / 2, len(whole) - 1} {
		require.NoError(t, os.WriteFile(path, whole[:n], 0o644))
		_, err := Open(path)
		require.Error(t, err, "%d bytes", n)
	}
	require.NoError(t, os.WriteFile(path, append(bytes.Clone(whole), 0), 0o644))
	a, err := Open(path)
	if err == nil {
		require.Error(t, a.Verify())
		a.Close()
	}

	// What is left of a cut file may end with a section that is a zip file itself, as the graph is.
	var graph bytes.Buffer
	z := zip.NewWriter(&graph)
	_, err = z.Create("tensors.json")
	require.NoError(t, err)
	require.NoError(t, z.Close())
	c.Graph = graph.Bytes()
	whole, err = os.ReadFile(write(t, m, c))
	require.NoError(t, err)
	end := bytes.Index(whole, c.Graph) + len(c.Graph)
	for _, n := range []int{end, len(whole) - 1} {
		require.NoError(t, os.WriteFile(path, whole[:n], 0o644))
		_, err = Open(path)
		require.ErrorContains(t, err, "the artifact is damaged: it was cut", "%d bytes", n)
	}
}

// A damaged section is found before its bytes are given out; other sections stay readable.
func TestDamagedSection(t *testing.T) {
	m, c := sample()
	path := write(t, m, c)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	i := bytes.Index(whole, c.Programs[0].Executable)
	require.Positive(t, i)
	whole[i+5] ^= 4
	require.NoError(t, os.WriteFile(path, whole, 0o644))
	a, err := Open(path)
	require.NoError(t, err)
	defer a.Close()
	_, err = a.Section(ExecutableSection(0))
	require.ErrorContains(t, err, "section executable-0.bin is damaged: sha256 is ")
	_, err = a.Section(ProgramSection(0))
	require.NoError(t, err)
}

func TestFormatVersion(t *testing.T) {
	m, c := sample()
	path := write(t, m, c)
	// A later format, which this package cannot know otherwise.
	later := `{"format": "7", "tpuc": "9.1", "shape": {"new": true}}`
	var b bytes.Buffer
	require.NoError(t, writeZip(&b, []section{{ManifestSection, raw([]byte(later))}}))
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	_, err := Open(path)
	require.ErrorIs(t, err, ErrFormat)
	require.ErrorContains(t, err, `format version "7"`)
	require.ErrorContains(t, err, `wanted "1"`)
	require.ErrorContains(t, err, `tpuc "9.1"`)
}

func TestFormatWindow(t *testing.T) {
	for format, want := range map[string]string{"0": "it is older: compile the model again", "2": "it is newer: update tpuc", "01": "no format of tpuc", "x": "no format of tpuc"} {
		err := checkFormat(&format, "9")
		require.ErrorIs(t, err, ErrFormat)
		require.ErrorContains(t, err, want)
	}
	now := Format
	require.NoError(t, checkFormat(&now, ""))
}

func TestUnknownField(t *testing.T) {
	m, c := sample()
	_, blobs, err := layOut(m, c)
	require.NoError(t, err)
	require.Len(t, blobs, 2)
	var b bytes.Buffer
	require.NoError(t, writeZip(&b, []section{{ManifestSection, raw([]byte(`{"format":"1","surprise":1}`))}}))
	path := filepath.Join(t.TempDir(), "a.tpuc")
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	_, err = Open(path)
	require.ErrorContains(t, err, "surprise")
}

func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Manifest)
		want   string
	}{
		{"argument twice", func(m *Manifest) { m.Programs[0].Args[1] = m.Programs[0].Args[0] }, "argument 1 is input 0, as argument 0 already"},
		{"argument out of range", func(m *Manifest) { m.Programs[0].Args[1].Index = 5 }, "argument 1 is weight 5, wanted below 1"},
		{"negative index", func(m *Manifest) { m.Programs[0].Args[1].Index = -1 }, "argument 1 is weight -1"},
		{"argument kind", func(m *Manifest) { m.Programs[0].Args[1].Kind = KindOutput }, `argument 1 has kind "output"`},
		{"output missing", func(m *Manifest) { m.Programs[0].Results = m.Programs[0].Results[1:]; m.Programs[0].Aliases = nil }, `output 0 ("y") is no result`},
		{"state result missing", func(m *Manifest) { m.Programs[0].Results = m.Programs[0].Results[:1]; m.Programs[0].Aliases = nil }, `state 0 ("n") has no result`},
		{"two keep one result", func(m *Manifest) {
			m.Programs[0].Results[2] = []Slot{{KindInput, 0}, {KindState, 0}}
			m.Programs[0].Results[1] = []Slot{{KindOutput, 0}}
			m.Programs[0].Results = m.Programs[0].Results[1:]
		},
			"result 1 is the new contents of 2 tensors"},
		{"one result of two types", func(m *Manifest) {
			m.Programs[0].Results[1] = []Slot{{KindState, 0}, {KindOutput, 0}}
			m.Programs[0].Results[0] = []Slot{{KindInput, 0}}
			m.Programs[0].Results = m.Programs[0].Results[:2]
		},
			`result 1 is state "n" of type i64[] and output "y" of type f32[2,3]`},
		{"result of nothing", func(m *Manifest) { m.Programs[0].Results[2] = nil }, "result 2 is nothing"},
		{"weight donated", func(m *Manifest) { m.Programs[0].Aliases[0] = Alias{0, 1} }, `takes the memory of weight "w", which later calls need`},
		{"state to output", func(m *Manifest) { m.Programs[0].Aliases[0] = Alias{0, 2} }, `result 0 (output "y") takes the memory of state "n"`},
		{"alias range", func(m *Manifest) { m.Programs[0].Aliases[0] = Alias{9, 2} }, "result 9 is aliased"},
		{"alias twice", func(m *Manifest) { m.Programs[0].Aliases = append(m.Programs[0].Aliases, m.Programs[0].Aliases[0]) }, "aliased twice"},
		{"no programs", func(m *Manifest) { m.Programs = nil }, "contents of 1 programs, wanted 0"},
		{"symbol", func(m *Manifest) { m.Programs[0].Dims[0].Name = "s9" }, "s9 = 2, which is no symbol of the model"},
		{"symbols", func(m *Manifest) { m.Programs[0].Dims = nil }, "0 dimensions, wanted a value for each of 1 symbols"},
		{"inputs", func(m *Manifest) { m.Programs[0].Inputs = nil }, "0 inputs and 1 outputs, wanted 1 and 1"},
		{"signature", func(m *Manifest) { m.Programs[0].Outputs[0].Dims = []int64{2, 4} }, `output 0 ("y") is f32[2,4], wanted f32[s0,3]`},
		{"padding of no symbol", func(m *Manifest) { m.Programs[0].Pads = []Pad{{Symbol: "s9", Min: 1}} }, `padding of "s9"`},
		{"padding twice", func(m *Manifest) { m.Programs[0].Pads = []Pad{{Symbol: "s0", Min: 2}, {Symbol: "s0", Min: 2}} }, `padding of "s0"`},
		{"padding of larger sizes", func(m *Manifest) { m.Programs[0].Pads = []Pad{{Symbol: "s0", Min: 3}} }, "padding of s0 from 3 on"},
		{"padding of nothing", func(m *Manifest) { m.Programs[0].Pads = []Pad{{Symbol: "s0", Min: 1}} }, "along 0 input dimensions"},
		{"padding along no dimension", func(m *Manifest) {
			m.Programs[0].Pads = []Pad{{Symbol: "s0", Min: 1, Inputs: []PadAxis{{0, 2, 1, 0}}}}
		}, "along dimension 2 of input 0"},
		{"padding to another extent", func(m *Manifest) {
			m.Programs[0].Pads = []Pad{{Symbol: "s0", Min: 1, Inputs: []PadAxis{{0, 0, 2, 0}}}}
		}, "2 times the size plus 0, wanted 2 at size 2"},
		{"key", func(m *Manifest) { m.Programs[0].Key = "k" }, `key "k", wanted 64 hex digits`},
		{"state result alone", func(m *Manifest) { m.Programs[0].Args = m.Programs[0].Args[:2]; m.Programs[0].Aliases = nil }, `result 1 is state "n", which is no argument`},
		{"dtype", func(m *Manifest) { m.Programs[0].Inputs[0].DType = "f99" }, `input 0 ("x"): unknown dtype "f99"`},
		{"dims", func(m *Manifest) { m.Programs[0].Outputs[0].Dims = []int64{-1, 3} }, `output 0 ("y"): dimension 0 is -1`},
		{"no contents", func(m *Manifest) {}, `constant 0 ("c0") has neither contents nor a source expression`},
		{"class", func(m *Manifest) { m.Weights[0].Class = "gift" }, `weight 0 ("w"): class "gift"`},
		{"devices", func(m *Manifest) { m.Target.Devices = 0 }, "0 devices"},
		{"plugin digest", func(m *Manifest) { m.Plugin.SHA256 = "abc" }, `"abc" of the plugin`},
		{"contents of another type", func(m *Manifest) { m.Weights[0].Dims = []int64{3, 2} }, `weight "w" has contents of type f32[2,3], wanted f32[3,2]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, c := sample()
			tc.change(&m)
			path := filepath.Join(t.TempDir(), "a.tpuc")
			if tc.name == "no contents" {
				c.Constants = nil
			}
			require.ErrorContains(t, Write(path, m, c), tc.want)
			left, err := os.ReadDir(filepath.Dir(path))
			require.NoError(t, err)
			require.Empty(t, left, "a failed write leaves nothing behind")
		})
	}
}

// Offsets that a hostile manifest names are checked against the sections.
func TestHostileOffsets(t *testing.T) {
	m, c := sample()
	laid, _, err := layOut(m, c)
	require.NoError(t, err)
	sections := []File{{ConstantsSection, 128, digest(nil)}, {WeightsSection, 64, digest(nil)}}
	for _, off := range []int64{-64, 1, 63, 64, 1 << 62} {
		bad := laid
		bad.Weights = []Weight{laid.Weights[0]}
		bad.Weights[0].Offset = off
		require.ErrorContains(t, bad.check(sections), "wanted a multiple of 64 within the 64 bytes of weights.bin", "offset %d", off)
	}
	bad := laid
	bad.Weights = []Weight{laid.Weights[0]}
	bad.Weights[0].Section = ExecutableSection(0)
	require.ErrorContains(t, bad.check(sections), `section "executable-0.bin" is not there`)
}

func TestManifestJSON(t *testing.T) {
	m, c := sample()
	laid, _, err := layOut(m, c)
	require.NoError(t, err)
	data, err := encode(laid)
	require.NoError(t, err)
	var back Manifest
	require.NoError(t, json.Unmarshal(data, &back))
	require.Empty(t, cmp.Diff(laid, back))
	require.NotContains(t, string(data), "null")
	require.Less(t, strings.Index(string(data), `"format"`), 10)
}

// Another program's zip, an npz for instance, is not taken for an artifact.
func TestIsArtifact(t *testing.T) {
	m, c := sample()
	path := write(t, m, c)
	require.True(t, IsArtifact(path))
	other := filepath.Join(t.TempDir(), "other.zip")
	require.NoError(t, os.WriteFile(other, []byte("PK\x03\x04 something else that is long enough for a header"), 0o644))
	require.False(t, IsArtifact(other))
	require.False(t, IsArtifact(other+".missing"))
	_, err := Open(other)
	require.ErrorContains(t, err, "wanted a .tpuc artifact")
}

func FuzzOpen(f *testing.F) {
	m, c := sample()
	path := filepath.Join(f.TempDir(), "seed.tpuc")
	require.NoError(f, Write(path, m, c))
	seed, err := os.ReadFile(path)
	require.NoError(f, err)
	f.Add(seed)
	f.Add([]byte("PK\x03\x04"))
	f.Add(seed[:len(seed)-30])
	f.Add(append([]byte("before"), seed...))
	f.Add(append(slices.Clone(seed), 0))
	for _, name := range []string{"executable-0.bin", "program-0.mlir", DirectorySection, "constants.bin"} {
		f.Add(bytes.ReplaceAll(seed, []byte(name), bytes.Repeat([]byte("x"), len(name))))
		f.Add(bytes.Replace(seed, []byte(name), []byte("manifest.json.manifest.json")[:len(name)], 1))
	}
	f.Add(bytes.ReplaceAll(seed, []byte("machine code"), []byte("MACHINE CODE")))
	f.Add(bytes.ReplaceAll(seed, []byte(`"format"`), []byte(`"tamrof"`)))
	z, err := zip.NewReader(bytes.NewReader(seed), int64(len(seed)))
	require.NoError(f, err)
	for i := range z.File {
		for _, change := range []string{"leave out", "double", "deflate", "cut", "empty", "rename"} {
			f.Add(rezip(f, z, i, change))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "a.tpuc")
		require.NoError(t, os.WriteFile(path, data, 0o644))
		a, err := Open(path)
		if err != nil {
			return
		}
		defer a.Close()
		for _, list := range a.Manifest.weightLists() {
			for _, w := range list.list {
				if x, err := a.Tensor(w); err == nil && x.Bytes() != int64(len(x.Data)) {
					t.Fatalf("%s with %d bytes", x.Type, len(x.Data))
				}
			}
		}
		// What Open and Verify accept is what Write wrote: all tensors can be read.
		if a.Verify() == nil {
			for _, w := range a.Manifest.Constants {
				if _, err := a.Tensor(w); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// FuzzManifest changes the manifest of an artifact whose container and digests fit it.
func FuzzManifest(f *testing.F) {
	m, c := sample()
	path := filepath.Join(f.TempDir(), "seed.tpuc")
	require.NoError(f, Write(path, m, c))
	a, err := Open(path)
	require.NoError(f, err)
	f.Cleanup(func() { a.Close() })
	var rest []section
	for _, s := range a.Sections[1:] {
		data, err := a.Section(s.Name)
		require.NoError(f, err)
		rest = append(rest, section{s.Name, raw(data)})
	}
	manifest, err := a.Section(ManifestSection)
	require.NoError(f, err)
	f.Add(manifest)
	for _, r := range [][2]string{{`"0"`, `"9"`}, {`"format"`, `"x"`}, {`"tpuc"`, `"cupt"`}, {`{`, `[`}, {`}`, ``}, {`"f32"`, `"f33"`}, {`"i64"`, `"f32"`}, {`2,`, `-2,`}, {`2,`, `9223372036854775807,`},
		{`"devices": 1`, `"devices": 0`}, {`"sha256": "`, `"sha256": "z`}, {`"program_sha256": "`, `"program_sha256": "z`}, {`"class": "weight"`, `"class": "x"`}, {`"offset": 0`, `"offset": 1`},
		{`"offset": 64`, `"offset": 6400`}, {`"section": "`, `"section": "x`}, {`"section": "constants.bin"`, `"section": ""`}, {`"expr": "`, `"other": "`}, {`"index": 1`, `"index": 0`}, {`"index": 1`, `"index": 99`},
		{`"kind": "output"`, `"kind": "input"`}, {`"kind": "state"`, `"kind": "weight"`}, {`"kind": "state"`, `"kind": "output"`}, {`"kind": "input"`, `"kind": "state"`}, {`"kind": "constant"`, `"kind": "constants"`},
		{`"argument": 1`, `"argument": 3`}, {`"argument": 1`, `"argument": -1`}, {`"argument": 1`, `"argument": 0`}, {`"result": 2`, `"result": 0`}, {`"result": 2`, `"result": 9`}} {
		f.Add(bytes.Replace(manifest, []byte(r[0]), []byte(r[1]), 1))
		f.Add(bytes.ReplaceAll(manifest, []byte(r[0]), []byte(r[1])))
	}
	f.Fuzz(func(t *testing.T, manifest []byte) {
		var b bytes.Buffer
		require.NoError(t, writeZip(&b, append([]section{{ManifestSection, raw(manifest)}}, rest...)))
		path := filepath.Join(t.TempDir(), "a.tpuc")
		require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
		a, err := Open(path)
		if err != nil {
			return
		}
		defer a.Close()
		require.NoError(t, a.Verify())
		for _, list := range a.Manifest.weightLists() {
			for _, w := range list.list {
				if x, err := a.Tensor(w); err == nil {
					require.EqualValues(t, x.Bytes(), len(x.Data))
				} else {
					require.Empty(t, w.Section, "%v", err)
				}
			}
		}
	})
}

// rezip writes the entries again, aligned, with a change to entry i.
func rezip(t testing.TB, z *zip.Reader, i int, change string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := &zipWriter{zip: zip.NewWriter(&b)}
	for k, f := range z.File {
		r, err := f.Open()
		require.NoError(t, err)
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		name, times := f.Name, 1
		if k == i {
			switch change {
			case "leave out":
				times = 0
			case "double":
				times = 2
			case "cut":
				data = data[:len(data)/2]
			case "empty":
				data = nil
			case "rename":
				name = "../" + name
			case "deflate":
				e, err := w.zip.Create(name)
				require.NoError(t, err)
				_, err = e.Write(data)
				require.NoError(t, err)
				times = 0
			}
		}
		for range times {
			_, _, err = w.add(name, raw(data))
			require.NoError(t, err)
		}
	}
	require.NoError(t, w.zip.Close())
	return b.Bytes()
}

// Another program of the model may want a weight with its dimensions in another order, whichever of the two the artifact holds.
func TestLike(t *testing.T) {
	const straight, turned = `"w"`, `permute("w": f32[2,3], [1,0])`
	rows, columns := Type{"f32", []int64{2, 3}}, Type{"f32", []int64{3, 2}}
	for _, c := range []struct {
		held       Type
		expr, want string
		floats     []float64
	}{
		{rows, straight, straight, []float64{1, 2, 3, 4, 5, 6}},
		{rows, straight, turned, []float64{1, 4, 2, 5, 3, 6}},
		{columns, turned, straight, []float64{1, 3, 5, 2, 4, 6}},
	} {
		m, contents := sample()
		m.Weights[0].Type, m.Weights[0].Expr = c.held, c.expr
		held, err := c.held.Tensor()
		require.NoError(t, err)
		contents.Weights = func(int) (*tensor.Tensor, error) {
			return tensor.FromFloats(held, []float64{1, 2, 3, 4, 5, 6}), nil
		}
		a, err := Open(write(t, m, contents))
		require.NoError(t, err)
		like := m.Weights[0]
		if like.Expr = c.want; c.want != c.expr {
			like.Type = Type{"f32", []int64{c.held.Dims[1], c.held.Dims[0]}}
		}
		x, err := a.Like(like)
		require.NoError(t, err)
		require.Equal(t, c.floats, x.Floats())
		like.Names = []string{"other"}
		_, err = a.Like(like)
		require.ErrorContains(t, err, `the elements of "w" are not in the artifact`)
		require.NoError(t, a.Close())
	}
}
