package runtime

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tpuc/frontend/weights"
	"tpuc/internal/plural"
	"tpuc/ir/diag"
	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
)

// CheckSignatures compares inputs with signatures, by place, as far as these are fixed. All that differ are in one diag.List.
func CheckSignatures(signatures []artifact.Signature, inputs []*tensor.Tensor) error {
	var errs diag.List
	ports := make([]artifact.Port, len(signatures))
	for i, s := range signatures {
		ports[i] = artifact.Port{Name: s.Name, Path: s.Path, Ordinal: s.Ordinal, Type: artifact.Type{DType: s.DType, Dims: make([]int64, len(s.Dims))}}
		if i >= len(inputs) || inputs[i] == nil {
			continue
		}
		x := inputs[i]
		if x.Rank() != len(s.Dims) {
			errs.Addf(nil, "input/shape", "input %d (%q) has shape %v, wanted %s: %s, wanted %d", i, s.Name, x.Dims, s, plural.Of(x.Rank(), "dimension"), len(s.Dims))
			ports[i].Dims = x.Dims // said
			continue
		}
		for d, text := range s.Dims {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				n = x.Dims[d] // open: whatever it is
			}
			ports[i].Dims[d] = n
		}
	}
	err := CheckInputs(ports, inputs)
	if list, ok := err.(diag.List); ok || err == nil {
		return append(errs, list...).Err()
	}
	return err
}

// CheckInputs compares inputs with the ports, by place. All that differ are in one diag.List, each with its name, what is wanted and what was given.
func CheckInputs(ports []artifact.Port, inputs []*tensor.Tensor) error {
	var errs diag.List
	if len(inputs) != len(ports) {
		e := errs.Addf(nil, "input/count", "%s, wanted %d", plural.Of(len(inputs), "input"), len(ports))
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
			errs.Addf(nil, "input/bytes", "input %d (%q) has %s, wanted %d for %s", i, p.Name, plural.Of(len(x.Data), "byte"), want.Bytes(), want)
		}
	}
	return errs.Err()
}

// dimension names the one dimension that differs, or nothing.
func dimension(got, want []int64) string {
	if len(got) != len(want) {
		return fmt.Sprintf(": %s, wanted %d", plural.Of(len(got), "dimension"), len(want))
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
