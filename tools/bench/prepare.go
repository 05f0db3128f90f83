package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tpuc/frontend/weights"
	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
)

// align is a multiple at which a plugin uses host memory in place.
const align = 64

// writeProbe takes an artifact with embedded weights apart for the probe, its inputs among the arguments.
func writeProbe(path, inputs, library, folder string) (err error) {
	a, err := artifact.Open(path)
	if err != nil {
		return err
	}
	defer a.Close()
	given, err := weights.Open(inputs)
	if err != nil {
		return err
	}
	defer given.Close()
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	code, err := a.Section(artifact.ExecutableSection(0))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "executable.bin"), code, 0o666); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(folder, "weights.bin"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w, at := bufio.NewWriter(f), int64(0)
	program := &a.Manifest.Programs[0]
	p := plan{Library: library}
	for _, slot := range program.Args {
		x, err := elements(a, given, slot)
		if err != nil {
			return err
		}
		pad := (align - at%align) % align
		at += pad
		if _, err := w.Write(append(make([]byte, pad), x.Data...)); err != nil {
			return err
		}
		p.Args = append(p.Args, argument{Type: x.DType.MLIR(), Dims: x.Dims, Offset: at, Size: int64(len(x.Data))})
		at += int64(len(x.Data))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	out, err := a.Manifest.ResultType(program, 0).Tensor()
	if err != nil {
		return err
	}
	p.Output = out.Bytes()
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "plan.json"), data, 0o666)
}

// elements are those of one argument of the artifact's program.
func elements(a *artifact.Artifact, given weights.Source, slot artifact.Slot) (*tensor.Tensor, error) {
	switch slot.Kind {
	case artifact.KindInput:
		return given.Load(fmt.Sprintf("input_%d", a.Manifest.Inputs[slot.Index].Ordinal))
	case artifact.KindWeight:
		return a.Tensor(a.Manifest.Weights[slot.Index])
	case artifact.KindConstant:
		return a.Tensor(a.Manifest.Constants[slot.Index])
	}
	return nil, fmt.Errorf("the model has %s, wanted one without", slot.Kind)
}
