package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"tpuc/internal/mmap"
	"tpuc/tpu/pjrt"
)

// plan is all that the probe knows: a library, an executable beside it, and arguments at offsets of weights.bin.
type plan struct {
	Library string
	Args    []argument
	Output  int64 // bytes of the one output
}

// argument is a tensor in weights.bin.
type argument struct {
	Type   string // StableHLO element type
	Dims   []int64
	Offset int64
	Size   int64
}

// shape is such as 2x3xf32.
func (a argument) shape(sep string) string {
	var b strings.Builder
	for _, d := range a.Dims {
		fmt.Fprintf(&b, "%d%s", d, sep)
	}
	return b.String() + a.Type
}

// write copies the argument's bytes into a file of its own.
func (a argument) write(folder, file string) error {
	f, err := os.Open(filepath.Join(folder, "weights.bin"))
	if err != nil {
		return err
	}
	defer f.Close()
	data := make([]byte, a.Size)
	if _, err := f.ReadAt(data, a.Offset); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o666)
}

func readArguments(folder string) ([]argument, error) {
	var p plan
	err := readJSON(filepath.Join(folder, "plan.json"), &p)
	return p.Args, err
}

// probe does what any program must do to run the executable, and nothing else.
func probe(folder string) error {
	var p plan
	if err := readJSON(filepath.Join(folder, "plan.json"), &p); err != nil {
		return err
	}
	lib, err := pjrt.Open(p.Library)
	if err != nil {
		return err
	}
	client, err := lib.NewClient()
	if err != nil {
		return err
	}
	code, err := os.ReadFile(filepath.Join(folder, "executable.bin"))
	if err != nil {
		return err
	}
	exe, err := client.Load(code)
	if err != nil {
		return err
	}
	data, err := mmap.Open(filepath.Join(folder, "weights.bin"))
	if err != nil {
		return err
	}
	args := make([]*pjrt.Buffer, len(p.Args))
	for i, a := range p.Args {
		kind, err := pjrt.ParseBufferType(a.Type)
		if err != nil {
			return err
		}
		args[i], err = client.BufferFromHost(pjrt.HostBuffer{Type: kind, Dims: a.Dims, Data: data.Data[a.Offset : a.Offset+a.Size], Semantics: pjrt.ImmutableZeroCopy})
		if err != nil {
			return err
		}
	}
	results, err := exe.Execute(context.Background(), args, pjrt.ExecuteOptions{})
	if err != nil {
		return err
	}
	out := make([]byte, p.Output)
	if err := results[0].ToHost(context.Background(), out); err != nil {
		return err
	}
	fmt.Println("mean", average(floats(out)))
	return nil
}

// floats are the elements of an f32 tensor.
func floats(data []byte) []float64 {
	out := make([]float64, len(data)/4)
	for i := range out {
		out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])))
	}
	return out
}
