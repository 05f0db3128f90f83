package tpuc

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"tpuc/internal/compare"
	"tpuc/internal/plural"
	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
)

// RunReport says what calls gave.
type RunReport struct {
	Model  string       `json:"model"`
	Target string       `json:"target"` // or "evaluator"
	Calls  []CallReport `json:"calls"`
}

// CallReport says what one call gave.
type CallReport struct {
	Inputs      string            `json:"inputs"`             // file, or "random" and the seed
	Wall        float64           `json:"wall_s"`             // seconds, the transfer of inputs and outputs included
	Outputs     []Summary         `json:"outputs"`            // in the model's order
	Numbers     []artifact.Number `json:"numbers,omitempty"`  // outputs that are no tensors
	Output      string            `json:"output,omitempty"`   // file written
	Compared    []Comparison      `json:"compared,omitempty"` // with what was expected
	NotCompared []string          `json:"unnamed,omitempty"`  // state that the file of expected state does not name
}

// Summary describes one output. Minimum, maximum and mean are over its finite elements, absent without any and for complex numbers.
type Summary struct {
	artifact.Port
	Min       *float64 `json:"min,omitempty"`
	Max       *float64 `json:"max,omitempty"`
	Mean      *float64 `json:"mean,omitempty"`
	NonFinite int64    `json:"non_finite,omitempty"` // elements that are NaN or infinite
}

// Comparison is one output, piece of state or changed input beside what was expected.
type Comparison struct {
	Kind string `json:"kind"` // "output" or "state"
	Name string `json:"name"`
	Type string `json:"type,omitempty"`
	Ties bool   `json:"ties,omitempty"` // indices of equal elements, in another order than expected
	compare.Result
}

// DifferError says that a run's results are not the expected ones.
type DifferError struct {
	Failed, Compared int
}

func (e *DifferError) Error() string {
	return fmt.Sprintf("%d of %s %s", e.Failed, plural.Of(e.Compared, "result"), plural.Choose(e.Failed, "differs from the expected one", "differ from the expected ones"))
}

// differ is nil or a *DifferError.
func (r *RunReport) differ() error {
	e := &DifferError{}
	for _, c := range r.Calls {
		for _, x := range c.Compared {
			e.Compared++
			if !x.OK {
				e.Failed++
			}
		}
	}
	if e.Failed == 0 {
		return nil
	}
	return e
}

// Write prints the report for people: of every call the outputs, or where something was expected the comparisons.
func (r *RunReport) Write(w io.Writer) error {
	compared := 0
	for i, c := range r.Calls {
		head := c.Inputs
		if len(r.Calls) > 1 {
			head = fmt.Sprintf("call %d, %s", i+1, head)
		}
		if _, err := fmt.Fprintf(w, "%s: %s\n", head, seconds(c.Wall)); err != nil {
			return err
		}
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		if len(c.Compared) == 0 {
			for _, o := range c.Outputs {
				fmt.Fprintf(t, "  %s\t%s\t%s\n", portName(artifact.KindOutput, o.Port), o.Port.Type, o.figures())
			}
			for _, n := range c.Numbers {
				fmt.Fprintf(t, "  %s\tnumber\t%s\n", numberName(n), n.Value)
			}
		}
		for _, x := range c.Compared {
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", x.Name, x.Type, x.verdict(), x.figures())
		}
		if err := t.Flush(); err != nil {
			return err
		}
		if n := len(c.NotCompared); n > 0 {
			fmt.Fprintf(w, "  not in the expected state: %s\n", listed(c.NotCompared))
		}
		if c.Output != "" {
			fmt.Fprintf(w, "  written to %s\n", c.Output)
		}
		compared += len(c.Compared)
	}
	if compared > 0 && r.differ() == nil {
		_, err := fmt.Fprintf(w, "everything is as expected (%d compared)\n", compared)
		return err
	}
	return nil
}

func (c Comparison) verdict() string {
	if c.OK {
		return "ok"
	}
	return "DIFFERS"
}

// figures shows the worst element: its index, what came and what was wanted.
func (c Comparison) figures() string {
	switch {
	case c.Problem != "":
		return c.Problem
	case c.Worst == nil:
		return "no elements"
	case c.MaxAbs == 0 && c.Failed == 0:
		return "equal"
	}
	s := fmt.Sprintf("worst %v: got %s, wanted %s; max abs diff %.3g (limit %.3g), rel L2 %.3g", c.Worst, c.Got, c.Want, c.MaxAbs, c.Limit, c.RelL2)
	if c.Failed > 0 {
		s += fmt.Sprintf("; %s %s", plural.Of(c.Failed, "element"), plural.Choose(c.Failed, "differs", "differ"))
	}
	return s
}

func (s Summary) figures() string {
	var parts []string
	if s.Min != nil {
		parts = append(parts, fmt.Sprintf("min %.6g, max %.6g, mean %.6g", *s.Min, *s.Max, *s.Mean))
	}
	if s.NonFinite > 0 {
		parts = append(parts, plural.Of(s.NonFinite, "element")+" not finite")
	}
	return strings.Join(parts, "; ")
}

func summarize(p artifact.Port, x *tensor.Tensor) Summary {
	p.Type = artifact.MakeType(x.Type)
	s := Summary{Port: p}
	if x.DType.IsComplex() {
		for _, c := range x.Complexes() {
			if !finite(real(c)) || !finite(imag(c)) {
				s.NonFinite++
			}
		}
		return s
	}
	lo, hi, mean, n := math.Inf(1), math.Inf(-1), 0.0, 0.0
	for _, v := range x.Floats() {
		if !finite(v) {
			s.NonFinite++
			continue
		}
		n++
		lo, hi, mean = min(lo, v), max(hi, v), mean+(v-mean)/n // a running mean does not overflow where a sum does
	}
	if n > 0 && finite(mean) {
		s.Min, s.Max, s.Mean = &lo, &hi, &mean
	}
	return s
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// listed joins names, up to a few.
func listed(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
