package tpuc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"tpuc/frontend/pt2"
	"tpuc/internal/plural"
	"tpuc/ir"
	"tpuc/ir/diag"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
	"tpuc/lower"
	"tpuc/passes"
	"tpuc/tpu/chip"
)

// CheckOptions steer CheckModel. The zero value checks for one CPU device at the sizes of the export's example.
type CheckOptions struct {
	Target chip.Target
	Dims   map[string]int64 // sizes of symbolic dimensions, as far as they are given
	Custom *pt2.CustomOps   // functions for operators that torch does not define; may be nil
}

// CheckReport says what keeps a model from compiling.
type CheckReport struct {
	Model    string       `json:"model"`
	Torch    string       `json:"torch,omitempty"`
	Target   string       `json:"target"`
	Nodes    int          `json:"nodes"`           // of the model's graph
	Dims     []CheckedDim `json:"dims,omitempty"`  // sizes that were looked at
	Problems []Problem    `json:"problems"`        // in order of place; empty: nothing is known to be in the way
	Notes    []string     `json:"notes,omitempty"` // what is no problem
}

// CheckedDim is a symbolic dimension with the size that it was looked at with.
type CheckedDim struct {
	Name    string   `json:"name"`
	Where   []string `json:"where,omitempty"`
	Size    int64    `json:"size"`
	Given   bool     `json:"given"` // by the user; otherwise the example's
	Allowed string   `json:"allowed"`
}

// Problem is one thing that keeps a model from compiling, with all places of its kind in one line of source.
type Problem struct {
	Code    string   `json:"code,omitempty"`
	Layer   string   `json:"layer,omitempty"`
	File    string   `json:"file,omitempty"`
	Line    int      `json:"line,omitempty"`
	Source  string   `json:"source,omitempty"`
	Message string   `json:"message"`
	Notes   []string `json:"notes,omitempty"`
	Do      string   `json:"do,omitempty"` // what to do
}

// CheckError says that a model has problems.
type CheckError struct{ Problems int }

func (e *CheckError) Error() string {
	return plural.Of(e.Problems, "problem") + plural.Choose(e.Problems, " keeps", " keep") + " the model from compiling"
}

// Err is a *CheckError where there are problems.
func (r *CheckReport) Err() error {
	if len(r.Problems) == 0 {
		return nil
	}
	return &CheckError{len(r.Problems)}
}

// CheckModel takes the model at path through everything before the plugin, and reports all that would not compile at once. It compiles nothing and
// needs no plugin. The error is for a file that cannot be read, and for bugs.
func CheckModel(ctx context.Context, path string, o CheckOptions) (*CheckReport, error) {
	r := &CheckReport{Model: ModelName(path), Target: o.Target.String(), Problems: []Problem{}}
	m, err := r.module(ctx, path, o)
	if err != nil || m == nil {
		return r, err
	}
	defer m.Close()
	if err := r.rest(ctx, m.Module, o); err != nil {
		return r, located(path, err)
	}
	return r, nil
}

// module imports the model; nil with problems is one that cannot be.
func (r *CheckReport) module(ctx context.Context, path string, o CheckOptions) (*Model, error) {
	if strings.HasSuffix(path, ".tpu") || isArtifact(path) || isStableHLO(path) {
		m, err := Load(ctx, path, Shapes{Dims: o.Dims, Custom: o.Custom})
		if err != nil {
			return nil, r.take(err)
		}
		r.Nodes, r.Notes = len(m.Module.Func.Body), m.Notes
		return m, nil
	}
	p, err := pt2.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	r.Torch, r.Nodes = p.TorchVersion, p.Nodes
	p.SetCustomOps(o.Custom)
	im, err := r.imported(ctx, p, o)
	r.Notes = append(r.Notes, p.UnusedCustomOps()...)
	if err != nil || im == nil {
		return nil, errors.Join(err, p.Close())
	}
	return &Model{Module: im.Module, program: p}, nil
}

// imported imports the archive. Sizes that cannot be are problems; the operators are then looked at with those of the example.
func (r *CheckReport) imported(ctx context.Context, p *pt2.Program, o CheckOptions) (*pt2.Imported, error) {
	bound, open, err := p.BindOrExample(o.Dims)
	if err != nil {
		if err := r.take(err); err != nil {
			return nil, err
		}
		if bound, open, err = p.BindOrExample(nil); err != nil {
			return nil, r.take(err)
		}
	}
	for _, s := range p.Symbols {
		given := !slices.ContainsFunc(open, func(x pt2.Symbol) bool { return x.Name == s.Name })
		r.Dims = append(r.Dims, CheckedDim{s.Name, s.Where, bound[s.Name], given, s.Range()})
	}
	im, err := p.Import(ctx, bound)
	if err != nil {
		return nil, r.take(err)
	}
	return im, nil
}

// rest runs the passes and the lowering, and looks for what the target's plugin is known to refuse.
func (r *CheckReport) rest(ctx context.Context, m *ir.Module, o CheckOptions) error {
	if _, err := passes.Run(ctx, m, passes.Options{Target: o.Target, CrashDir: "."}); err != nil {
		return r.take(err)
	}
	if _, err := lower.Lower(m); err != nil {
		return r.take(err)
	}
	if !o.Target.IsTPU() {
		return nil
	}
	var errs diag.List
	for _, f := range m.Functions() {
		for _, n := range f.Body {
			if why, do := refusedByTPU(n); why != "" {
				errs.Addf(n.Loc, "check/target", "%s", why).Note("%s%s", pt2.DoNote, do)
			}
		}
	}
	return r.take(errs.Err())
}

// refusedByTPU says why libtpu does not take a node that every other plugin takes.
func refusedByTPU(n *ir.Node) (why, do string) {
	if op.FFT.Is(n) {
		for _, d := range []tensor.DType{n.Args[0].Type.DType, n.Outs[0].Type.DType} {
			if d == tensor.C128 {
				return fmt.Sprintf("a Fourier transform in %s: libtpu has none of 64-bit floats", d), "transform in complex64"
			}
		}
	}
	if op.ReducePrecision.Is(n) && n.Outs[0].Type.DType == tensor.F64 {
		return "rounding of f64 to fewer bits: libtpu rewrites f64 and has no rule for it", "round in f32"
	}
	return "", ""
}

// take turns an error about the model into problems, and hands others on.
func (r *CheckReport) take(err error) error {
	var list diag.List
	var one *diag.Error
	switch {
	case err == nil || diag.IsBug(err):
		return err
	case errors.As(err, &list):
	case errors.As(err, &one):
		list = diag.List{one}
	default:
		return err
	}
	for _, e := range list {
		p := Problem{Code: e.Code, Message: e.Msg}
		if l := e.Loc; l != nil {
			p.Layer, p.File, p.Line, p.Source = l.Layer, l.File, l.Line, l.Source
		}
		for _, n := range e.Notes {
			if do, ok := strings.CutPrefix(n, pt2.DoNote); ok {
				p.Do = do
			} else {
				p.Notes = append(p.Notes, n)
			}
		}
		r.Problems = append(r.Problems, p)
	}
	return nil
}

// Write prints the report for people.
func (r *CheckReport) Write(w io.Writer) error {
	var b strings.Builder
	model := r.Model
	if r.Torch != "" {
		model += " (torch " + r.Torch + ")"
	}
	fmt.Fprintf(&b, "model   %s, %s\ntarget  %s\n", model, plural.Of(r.Nodes, "node"), r.Target)
	for _, d := range r.Dims {
		from := "as given"
		if !d.Given {
			from = fmt.Sprintf("as in the export's example; --dim %s=N looks at another, of %s", d.Name, d.Allowed)
		}
		name := d.Name
		if len(d.Where) > 0 {
			name += " (" + strings.Join(d.Where, ", ") + ")"
		}
		fmt.Fprintf(&b, "size    %s = %d, %s\n", name, d.Size, from)
	}
	for _, p := range r.Problems {
		e := diag.Error{Code: p.Code, Msg: p.Message, Notes: p.Notes, Loc: &diag.Loc{Layer: p.Layer, File: p.File, Line: p.Line, Source: p.Source}}
		fmt.Fprintf(&b, "%s\n", e.Error())
		if p.Do != "" {
			fmt.Fprintf(&b, "  %s%s\n", pt2.DoNote, p.Do)
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	b.WriteString(r.summary() + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// summary counts the problems by kind.
func (r *CheckReport) summary() string {
	if len(r.Problems) == 0 {
		return "ok: nothing that tpuc knows of keeps the model from compiling"
	}
	count := make(map[string]int)
	for _, p := range r.Problems {
		count[kindOfProblem(p.Code)]++
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%d of %s", count[k], k))
	}
	return fmt.Sprintf("%v: %s", &CheckError{len(r.Problems)}, strings.Join(parts, ", "))
}

// kindOfProblem is what a code is about, in words.
func kindOfProblem(code string) string {
	switch code {
	case "pt2/unsupported":
		return "operators"
	case "pt2/dim", "pt2/range", "pt2/unbound":
		return "dimensions"
	case "check/target":
		return "the target"
	}
	return "the model itself"
}
