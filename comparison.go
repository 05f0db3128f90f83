package tpuc

import (
	"fmt"
	"slices"
	"strconv"

	"tpuc/internal/compare"
	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
	"tpuc/tpu/runtime"
)

// compareOutputs compares the ports in their order, each by one; what the file has beyond comes last, in the file's order. Numbers need not be in the
// file.
func compareOutputs(f *tensorFile, ports []artifact.Port, numbers []artifact.Number, one func(i int, want *tensor.Tensor) compare.Result, tol *compare.Tolerance) []Comparison {
	const kind = artifact.KindOutput
	ports = f.numbering(ports, kind)
	found := make([]*Comparison, len(ports))
	var extra []Comparison
	for _, want := range f.tensors {
		i := runtime.Place(ports, kind, want.Name)
		n := slices.IndexFunc(numbers, func(n artifact.Number) bool {
			return want.Name == n.Name || want.Name == n.Path || want.Name == fmt.Sprintf("%s_%d", kind, n.Ordinal)
		})
		switch {
		case i < 0 && n >= 0:
			extra = append(extra, compareNumber(numbers[n], want.Tensor, tol))
		case i < 0:
			extra = append(extra, problem(kind, want.Name, "in %s, but the model has no such output", f.path))
		case found[i] != nil:
			extra = append(extra, problem(kind, want.Name, "in %s under two names", f.path))
		default:
			c := Comparison{Kind: kind, Name: portName(kind, ports[i]), Type: ports[i].String(), Result: one(i, want.Tensor)}
			found[i] = &c
		}
	}
	var out []Comparison
	for i, c := range found {
		if c == nil {
			out = append(out, problem(kind, portName(kind, ports[i]), "not in %s", f.path))
			continue
		}
		out = append(out, *c)
	}
	return append(out, extra...)
}

// compareState compares in the file's order. unnamed is the state and the changed inputs that the file does not name: it may name any part.
func compareState(f *tensorFile, inputs []artifact.Port, changed []Changed, tol *compare.Tolerance) (out []Comparison, unnamed []string) {
	const kind = artifact.KindState
	seen := make([]bool, len(changed))
	for _, want := range f.tensors {
		in := runtime.Place(inputs, artifact.KindInput, want.Name)
		i := slices.IndexFunc(changed, func(c Changed) bool { return slices.Contains(c.Names, want.Name) })
		if i < 0 && in >= 0 {
			i = slices.IndexFunc(changed, func(c Changed) bool { return c.Input == in })
		}
		if i < 0 {
			out = append(out, problem(kind, want.Name, "in %s, but a call changes no state and no input of that name", f.path))
			continue
		}
		seen[i] = true
		name := want.Name
		if changed[i].Input >= 0 {
			name = portName(artifact.KindInput, inputs[in])
		}
		out = append(out, Comparison{Kind: kind, Name: name, Type: changed[i].Type.String(), Result: compareTensors(changed[i].Tensor, want.Tensor, tol)})
	}
	for i, c := range changed {
		switch {
		case seen[i]:
		case c.Input >= 0:
			unnamed = append(unnamed, portName(artifact.KindInput, inputs[c.Input]))
		default:
			unnamed = append(unnamed, c.Names[0])
		}
	}
	return out, unnamed
}

// compareNumber compares a number with the 0-d tensor that stands for it.
func compareNumber(n artifact.Number, want *tensor.Tensor, tol *compare.Tolerance) Comparison {
	c := Comparison{Kind: artifact.KindOutput, Name: numberName(n), Type: "number"}
	x, err := strconv.ParseFloat(n.Value, 64)
	i, exact := strconv.ParseInt(n.Value, 10, 64)
	b, truth := strconv.ParseBool(n.Value) // True and False too
	one := tensor.Make(want.DType)
	switch {
	case want.Rank() != 0:
		c.Problem = fmt.Sprintf("it is a number, wanted %s", want.Type)
	case exact == nil && !want.DType.IsFloat():
		c.Result = compareTensors(tensor.FromInts(one, []int64{i}), want, tol)
	case err == nil && want.DType.IsFloat():
		c.Result = compareTensors(tensor.FromFloats(one, []float64{x}), want, tol)
	case truth == nil && want.DType == tensor.Bool:
		c.Result = compareTensors(tensor.Scalar(tensor.Bool, map[bool]float64{true: 1}[b]), want, tol)
	default:
		c.Problem = fmt.Sprintf("it is %s, wanted a number of dtype %s", n.Value, want.DType)
	}
	return c
}

// compareTensors applies the user's tolerance, or the dtype's own.
func compareTensors(got, want *tensor.Tensor, tol *compare.Tolerance) compare.Result {
	if tol == nil {
		t := compare.Default(want.DType)
		tol = &t
	}
	return compare.Compare(got, want, *tol)
}

// problem is a comparison that fails before any element is looked at.
func problem(kind, name, format string, args ...any) Comparison {
	return Comparison{Kind: kind, Name: name, Result: compare.Result{Problem: fmt.Sprintf(format, args...)}}
}

// portName is such as output_0, with the model's own name where it says more.
func portName(kind string, p artifact.Port) string {
	return leafName(kind, p.Ordinal, p.Name)
}

func numberName(n artifact.Number) string { return leafName(artifact.KindOutput, n.Ordinal, n.Name) }

// leafName is how leaves are named in reports: by the key that files use, then by the model's own name.
func leafName(kind string, ordinal int, own string) string {
	name := fmt.Sprintf("%s_%d", kind, ordinal)
	if own != "" && own != name {
		name += " " + own
	}
	return name
}
