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

// writeProbe takes an artifact apart for the probe, its inputs among the arguments and the weights that it does not hold from the checkpoint.
func writeProbe(path, checkpoint, inputs, library, folder string) (err error) {
	var from sources
	if from.artifact, err = artifact.Open(path); err != nil {
		return err
	}
	defer from.artifact.Close()
	if from.checkpoint, err = weights.Open(checkpoint); err != nil {
		return err
	}
	defer from.checkpoint.Close()
	if from.inputs, err = weights.Open(inputs); err != nil {
		return err
	}
	defer from.inputs.Close()
	a := from.artifact
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
		x, err := from.elements(slot)
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

// sources are where arguments come from.
type sources struct {
	artifact           *artifact.Artifact
	checkpoint, inputs weights.Source
}

// elements are those of one argument of the artifact's program.
func (s sources) elements(slot artifact.Slot) (*tensor.Tensor, error) {
	m := &s.artifact.Manifest
	switch slot.Kind {
	case artifact.KindInput:
		return s.inputs.Load(fmt.Sprintf("input_%d", m.Inputs[slot.Index].Ordinal))
	case artifact.KindConstant:
		return s.artifact.Tensor(m.Constants[slot.Index])
	case artifact.KindWeight:
		w := m.Weights[slot.Index]
		if w.Section != "" {
			return s.artifact.Tensor(w)
		}
		e, err := w.Source()
		if err != nil {
			return nil, err
		}
		return weights.Lookup(s.checkpoint, e)
	}
	return nil, fmt.Errorf("the model has %s, wanted one without", slot.Kind)
}
