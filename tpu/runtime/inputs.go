package runtime

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tpuc/frontend/weights"
	"tpuc/ir/diag"
	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
)

// pick is the program whose inputs have these shapes.
func (m *Model) pick(inputs []*tensor.Tensor) (int, error) {
	man := m.Manifest()
	for i := range man.Programs {
		if fits(man.Programs[i].Inputs, inputs) {
			return i, nil
		}
	}
	if len(man.Programs) == 1 {
		ports, _ := man.Ports(&man.Programs[0])
		return 0, CheckInputs(ports, inputs)
	}
	given := make([]string, len(inputs))
	for i, x := range inputs {
		given[i] = "nothing"
		if x != nil {
			given[i] = x.Type.String()
		}
	}
	var errs diag.List
	e := errs.Addf(nil, "input/shape", "no program takes inputs (%s)", strings.Join(given, ", "))
	for i, p := range man.Programs {
		e.Note("program %d takes (%s)", i, typeList(p.Inputs))
	}
	return 0, errs.Err()
}

func fits(want []artifact.Type, inputs []*tensor.Tensor) bool {
	if len(want) != len(inputs) {
		return false
	}
	for i, x := range inputs {
		if x == nil || x.DType.String() != want[i].DType || !slices.Equal(x.Dims, want[i].Dims) || int64(len(x.Data)) != x.Bytes() {
			return false
		}
	}
	return true
}

func typeList(list []artifact.Type) string {
	out := make([]string, len(list))
	for i, t := range list {
		out[i] = t.String()
	}
	return strings.Join(out, ", ")
}

// CheckInputs compares inputs with the ports, by place. All that differ are in one diag.List, each with its name, what is wanted and what was given.
func CheckInputs(ports []artifact.Port, inputs []*tensor.Tensor) error {
	var errs diag.List
	if len(inputs) != len(ports) {
		e := errs.Addf(nil, "input/count", "%d inputs, wanted %d", len(inputs), len(ports))
		for i, p := range ports {
			e.Note("input %d is %q : %s", i, p.Name, p.Type)
		}
	}
	for i := range min(len(inputs), len(ports)) {
		p, x := ports[i], inputs[i]
		want, err := p.Tensor()
		switch {
		case err != nil:
			return err
		case x == nil:
			errs.Addf(nil, "input/missing", "input %d (%q) is missing, wanted %s", i, p.Name, want)
		case x.DType != want.DType && !slices.Equal(x.Dims, want.Dims):
			errs.Addf(nil, "input/type", "input %d (%q) is %s, wanted %s", i, p.Name, x.Type, want)
		case x.DType != want.DType:
			errs.Addf(nil, "input/dtype", "input %d (%q) has dtype %s, wanted %s (%s)", i, p.Name, x.DType, want.DType, want)
		case !slices.Equal(x.Dims, want.Dims):
			errs.Addf(nil, "input/shape", "input %d (%q) has shape %v, wanted %v%s", i, p.Name, x.Dims, want.Dims, dimension(x.Dims, want.Dims))
		case int64(len(x.Data)) != want.Bytes():
			errs.Addf(nil, "input/bytes", "input %d (%q) has %d bytes, wanted %d for %s", i, p.Name, len(x.Data), want.Bytes(), want)
		}
	}
	return errs.Err()
}

// dimension names the one dimension that differs, or nothing.
func dimension(got, want []int64) string {
	if len(got) != len(want) {
		return fmt.Sprintf(": %d dimensions, wanted %d", len(got), len(want))
	}
	at := -1
	for i := range got {
		if got[i] != want[i] {
			if at >= 0 {
				return ""
			}
			at = i
		}
	}
	return fmt.Sprintf(": dimension %d is %d, wanted %d", at, got[at], want[at])
}

// Arrange puts named tensors into the order of the ports. A name is a port's name or path, or input_<i> for the one with Ordinal i.
// Names that fit nothing, inputs given twice and inputs not given are in one diag.List.
func Arrange(ports []artifact.Port, named []weights.Named) ([]*tensor.Tensor, error) {
	var errs diag.List
	out := make([]*tensor.Tensor, len(ports))
	by := make([]string, len(ports)) // the name that gave it
	for _, n := range named {
		i := Place(ports, artifact.KindInput, n.Name)
		switch {
		case i < 0:
			errs.Addf(nil, "input/unknown", "no input %q, wanted one of %s", n.Name, portNames(ports))
		case out[i] != nil:
			errs.Addf(nil, "input/twice", "input %d (%q) is given twice, as %q and as %q", i, ports[i].Name, by[i], n.Name)
		default:
			out[i], by[i] = n.Tensor, n.Name
		}
	}
	for i, p := range ports {
		if out[i] == nil {
			errs.Addf(nil, "input/missing", "input %d (%q) is missing, wanted %s", i, p.Name, p.Type)
		}
	}
	if len(errs) > 0 {
		return nil, errs.Err()
	}
	return out, nil
}

// Place is the index of the port that name means, or -1: a port's name or path, or <kind>_<i> for the port with Ordinal i. Real names come first.
func Place(ports []artifact.Port, kind, name string) int {
	if i := slices.IndexFunc(ports, func(p artifact.Port) bool { return p.Name == name }); i >= 0 {
		return i
	}
	if i := slices.IndexFunc(ports, func(p artifact.Port) bool { return p.Path == name && name != "" }); i >= 0 {
		return i
	}
	return slices.IndexFunc(ports, func(p artifact.Port) bool { return name == kind+"_"+strconv.Itoa(p.Ordinal) })
}

func portNames(ports []artifact.Port) string {
	names := make([]string, len(ports))
	for i, p := range ports {
		names[i] = strconv.Quote(p.Name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
