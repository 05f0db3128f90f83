package tpuc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"tpuc/frontend/pt2"
	"tpuc/frontend/weights"
	"tpuc/internal/compare"
	"tpuc/ir/diag"
	"tpuc/ir/tensor"
	"tpuc/tpu"
	"tpuc/tpu/artifact"
	"tpuc/tpu/chip"
	"tpuc/tpu/plugin"
	"tpuc/tpu/runtime"
)

// SuiteOptions steer RunCases. The zero value compiles for one CPU device and runs, one case after another.
type SuiteOptions struct {
	Target      chip.Target    // for a TPU cases are compiled and not run
	Evaluate    bool           // run on the reference evaluator instead of compiling
	CompileOnly bool           // run nothing
	Jobs        int            // cases at a time; 0: 1
	Timeout     time.Duration  // of one case; 0: none
	Select      *regexp.Regexp // matches Case.ID; nil: all
	Variants    string         // VariantRaw or VariantDecomposed; empty: both
	Sample      int            // take so many of what is left, the same ones every time; 0: all
	Plugin      plugin.Options
	Cache       *Cache             // where executables come from and are kept; nil: each is compiled
	Custom      *pt2.CustomOps     // functions for operators that torch does not define; may be nil
	CrashDir    string             // folder for reproducers of crashes; empty: the present one
	Exe         string             // program that can be a compile child; empty: this one
	Each        func(*CaseOutcome) // told every outcome, in the cases' order, one at a time; may be nil
}

// SelectCases are the cases that the options let through.
func SelectCases(cases []Case, o SuiteOptions) []Case {
	selected := slices.DeleteFunc(slices.Clone(cases), func(c Case) bool {
		return o.Select != nil && !o.Select.MatchString(c.ID()) || o.Variants != "" && c.Decomposed() != (o.Variants == VariantDecomposed)
	})
	if o.Sample <= 0 || o.Sample >= len(selected) {
		return selected
	}
	// By digests of their names, so that a case that comes or goes changes at most one of the others.
	rank := make(map[string]int, len(selected))
	ids := make([]string, len(selected))
	for i, c := range selected {
		ids[i] = c.ID()
	}
	slices.SortStableFunc(ids, func(a, b string) int {
		x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
		return bytes.Compare(x[:], y[:])
	})
	for i, id := range ids {
		rank[id] = i
	}
	return slices.DeleteFunc(selected, func(c Case) bool { return rank[c.ID()] >= o.Sample })
}

// RunCases runs the cases, whatever becomes of any of them: a plugin compiles in a child process, a panic is an outcome, and a case that does not
// end at its timeout is left behind. An error means that there is no report: the options contradict each other or there is no plugin. When ctx ends
// the cases that were not run are Failed.
func RunCases(ctx context.Context, cases []Case, o SuiteOptions) (*SuiteReport, error) {
	report := &SuiteReport{Target: o.Target.String(), Cases: make([]*CaseOutcome, len(cases))}
	switch {
	case o.Evaluate && o.CompileOnly:
		return nil, errors.New("the evaluator compiles nothing, wanted it to run or a plugin to compile only")
	case o.Evaluate:
		report.Target = "evaluator"
	case o.Target.Devices() != 1:
		return nil, fmt.Errorf("target %s has %d devices: models are compiled for one device, such as cpu or v6e:1x1", o.Target, o.Target.Devices())
	default: // once, and before the first case rather than in every one
		p, err := plugin.Locate(ctx, plugin.Kind(o.Target.Platform()), o.Plugin)
		if err != nil {
			return nil, err
		}
		report.Plugin = strings.TrimSpace(p.Name + " " + p.Version)
	}
	start := time.Now()
	next := make(chan int)
	var workers sync.WaitGroup
	done := make([]chan struct{}, len(cases))
	for i := range done {
		done[i] = make(chan struct{})
	}
	for range min(max(o.Jobs, 1), len(cases)) {
		workers.Go(func() {
			for i := range next {
				report.Cases[i] = runCase(ctx, cases[i], o)
				close(done[i])
			}
		})
	}
	go func() {
		for i := range cases {
			next <- i
		}
		close(next)
	}()
	for i := range cases {
		<-done[i]
		if o.Each != nil {
			o.Each(report.Cases[i])
		}
	}
	workers.Wait()
	report.Wall = time.Since(start).Seconds()
	report.count()
	return report, nil
}

// grace is how long a case may take to end after its time, which a plugin that is ended needs.
const grace = 5 * time.Second

// runCase runs one case to its outcome within its time.
func runCase(parent context.Context, c Case, o SuiteOptions) *CaseOutcome {
	start := time.Now()
	out := &CaseOutcome{Case: c}
	defer func() {
		out.Wall = time.Since(start).Seconds()
		out.Settle()
	}()
	if err := parent.Err(); err != nil {
		out.fail(StatusFailed, "not run: "+context.Cause(parent).Error())
		return out
	}
	ctx, cancel := context.WithCancel(parent)
	if o.Timeout > 0 {
		ctx, cancel = context.WithTimeout(parent, o.Timeout)
	}
	defer cancel()
	result := make(chan *CaseOutcome, 1)
	go func() {
		r := &caseRun{Case: c, o: o, out: &CaseOutcome{Case: c}}
		r.guarded(ctx)
		result <- r.out
	}()
	select {
	case out = <-result:
	case <-ctx.Done():
		select {
		case out = <-result:
		case <-time.After(grace): // inside a call that nothing interrupts
			out.fail(StatusFailed, "did not end")
		}
	}
	switch {
	case out.Status == StatusOK || out.Status == StatusDiffers:
	case parent.Err() != nil && out.Status == StatusBug:
	case parent.Err() != nil: // whatever it failed with says nothing about the model
		out.fail(StatusFailed, "interrupted: "+context.Cause(parent).Error())
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		out.fail(StatusFailed, fmt.Sprintf("timed out: it took more than %s", o.Timeout))
	}
	return out
}

// caseRun is one case on its way.
type caseRun struct {
	Case
	o       SuiteOptions
	out     *CaseOutcome
	phase   string // of the compile under way
	program program
	dims    string // the input shapes that program is for
	session Caller
	end     func() // of the session
}

// program is a model that is ready to be called.
type program interface {
	open(ctx context.Context) (Caller, func(), error)
	Close() error
}

// guarded runs the case; a panic is its outcome.
func (r *caseRun) guarded(ctx context.Context) {
	debug.SetPanicOnFault(true) // of this goroutine: files are mapped, and one that shrinks meanwhile faults
	defer func() {
		if p := recover(); p != nil {
			r.out.fail(StatusBug, fmt.Sprintf("panic: %v", p))
			r.out.Message += "\n" + string(debug.Stack())
		}
	}()
	if r.Problem != "" {
		r.out.fail(StatusFailed, r.Problem)
		return
	}
	err := r.run(ctx)
	err = errors.Join(err, r.close())
	r.judge(err)
}

func (r *caseRun) compileOnly() bool {
	return !r.o.Evaluate && (r.o.CompileOnly || r.CompileOnly || r.o.Target.IsTPU())
}

func (r *caseRun) run(ctx context.Context) error {
	if len(r.Calls) == 0 { // compile only, or to be refused
		return r.build(ctx, Shapes{})
	}
	for i, files := range r.Calls {
		if err := r.call(ctx, i, files); err != nil {
			if len(r.Calls) > 1 {
				return fmt.Errorf("call %d: %w", i+1, err)
			}
			return err
		}
	}
	return nil
}

// call makes call i, of a program for the shapes of its inputs.
func (r *caseRun) call(ctx context.Context, i int, paths CaseCall) error {
	calls, err := openCase(paths, r.Tolerance)
	if err != nil {
		return err
	}
	defer calls.Close()
	dims := calls.inputs[0].dims()
	if r.program == nil || dims != r.dims {
		if r.program != nil && r.Stateful {
			return errors.New("the inputs have other shapes than those of the call before, wanted the same: state cannot be carried over to another program")
		}
		if err := r.close(); err != nil {
			return err
		}
		if err := r.build(ctx, calls.Shapes(nil)); err != nil {
			return err
		}
		r.dims = dims
	}
	if r.compileOnly() {
		return nil
	}
	r.phase = phaseRun
	if r.session == nil || !r.Stateful {
		r.endSession()
		if r.session, r.end, err = r.program.open(ctx); err != nil {
			return err
		}
	}
	caller := &recorder{Caller: r.session, files: calls}
	report, err := calls.call(ctx, caller, 0)
	if err != nil {
		return err
	}
	r.check(ctx, i, calls, caller, report)
	r.out.Calls = append(r.out.Calls, CaseComparisons{report.Compared, report.NotCompared})
	return nil
}

// phaseRun follows the phases of a compile.
const phaseRun = "run"

// build makes the program for the shapes.
func (r *caseRun) build(ctx context.Context, shapes Shapes) error {
	r.phase = PhaseImport
	shapes.Custom = r.o.Custom
	if r.o.Evaluate {
		m, err := Load(ctx, r.Model, shapes)
		if err != nil {
			return err
		}
		r.program = evaluated{m}
		return nil
	}
	notify := func(phase string) {
		if !strings.Contains(phase, "/") { // those come from other goroutines
			r.phase = phase
		}
	}
	if r.compileOnly() {
		_, err := Compile(ctx, r.Model, CompileOptions{Target: r.o.Target, Shapes: shapes, Plugin: r.o.Plugin, Cache: r.o.Cache, CrashDir: r.o.CrashDir, Exe: r.o.Exe, Notify: notify})
		r.program = compiled{}
		return err
	}
	m, err := Open(ctx, r.Model, OpenOptions{Target: &r.o.Target, Shapes: shapes, Plugin: r.o.Plugin, Cache: r.o.Cache, CrashDir: r.o.CrashDir, Exe: r.o.Exe, Notify: notify})
	if err != nil {
		return err
	}
	r.program = onDevice{m}
	return nil
}

func (r *caseRun) endSession() {
	if r.end != nil {
		r.end()
	}
	r.session, r.end = nil, nil
}

func (r *caseRun) close() error {
	r.endSession()
	if r.program == nil {
		return nil
	}
	p := r.program
	r.program = nil
	return p.Close()
}

// judge turns how the case ended into its outcome.
func (r *caseRun) judge(err error) {
	bug := diag.IsBug(err)
	refused := err != nil && r.phase != "" && r.phase != phaseRun && r.phase != PhasePack && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission) &&
		!aboutInputs(err)
	var plugged *tpu.CompileError
	if errors.As(err, &plugged) {
		bug = bug || plugged.Kind == tpu.Crashed
		refused = plugged.Kind == tpu.Refused
	} else if r.phase == PhaseCompile {
		refused = false // the plugin is absent
	}
	switch {
	case bug:
		r.out.failWith(StatusBug, err)
	case r.Expect != nil && err == nil:
		r.out.fail(StatusFailed, fmt.Sprintf("it was not refused, wanted a refusal that names %q", *r.Expect))
	case r.Expect != nil && refused && r.names(err.Error()):
		r.out.failWith(StatusOK, err)
		r.out.Expected = true
	case r.Expect != nil && refused:
		r.out.failWith(StatusFailed, fmt.Errorf("it was refused without naming %q: %v", *r.Expect, err))
	case refused:
		r.out.failWith(StatusRefused, err)
	case err != nil:
		r.out.failWith(StatusFailed, err)
	case r.compileOnly():
		r.out.Status = StatusCompiled
	default:
		r.out.Status = StatusOK
		for _, call := range r.out.Calls {
			if slices.ContainsFunc(call.Compared, func(c Comparison) bool { return !c.OK }) {
				r.out.Status = StatusDiffers
			}
		}
	}
}

// names reports that a refusal names what it must. Decomposed, aten.linalg_svd is aten._linalg_svd.
func (r *caseRun) names(message string) bool {
	want := *r.Expect
	dot := strings.LastIndex(want, ".")
	return strings.Contains(message, want) || r.Decomposed() && strings.Contains(message, want[:dot+1]+"_"+want[dot+1:])
}

// aboutInputs reports that the files of a call are at fault, not the model.
func aboutInputs(err error) bool {
	var list diag.List
	return errors.As(err, &list) && slices.ContainsFunc(list, func(e *diag.Error) bool { return strings.HasPrefix(e.Code, "input/") })
}

// noiseFactor is how many times torch's own error a float of 16 bits may have: a tolerance relative to the maximum says little about most elements.
const noiseFactor = 3

// check goes over the comparisons of outputs again: it accepts the indices of equal elements in another order, and holds floats of 16 bits to
// torch's own error.
func (r *caseRun) check(ctx context.Context, i int, calls *Calls, caller *recorder, report *CallReport) {
	_, ports := caller.Ports()
	for k := range report.Compared {
		c := &report.Compared[k]
		c.Problem = r.out.local(c.Problem)
		if c.Kind != artifact.KindOutput || k >= len(ports) || c.Problem != "" {
			continue
		}
		switch d := caller.outputs[k].DType; {
		case !c.OK && d.IsInt():
			if want := expectedOutput(calls, ports, k); want != nil && r.sameUpToTies(ctx, i, k, caller.outputs[k], want) {
				c.OK, c.Ties = true, true
			}
		case !c.OK && d.IsFloat():
			if want := expectedOutput(calls, ports, k); want != nil && r.tiedOutput(ctx, i, k, caller.outputs[k], want) {
				c.OK, c.Ties = true, true
			}
		case c.OK && (d == tensor.BF16 || d == tensor.F16):
			r.checkNoise(c)
		}
	}
}

// checkNoise fails a comparison whose relative L2 error is beyond three times torch's own error, unless its largest difference is within that too,
// relative to 1 + the largest reference as torch's was measured: of references near zero a relative error says nothing.
func (r *caseRun) checkNoise(c *Comparison) {
	scale := 1.0
	if r.Tolerance != nil && r.Tolerance.RelToMax > 0 {
		scale = c.Limit / r.Tolerance.RelToMax
	}
	limit := noiseFactor * r.Noise
	if r.Noise == 0 || c.RelL2 <= limit || c.MaxAbs <= limit*scale {
		return
	}
	c.OK = false
	c.Problem = fmt.Sprintf("relative L2 error %.3g, wanted at most %.3g, %d times torch's own error", c.RelL2, limit, noiseFactor)
}

// expectedOutput is what is expected of output port k, or nil.
func expectedOutput(calls *Calls, ports []artifact.Port, k int) *tensor.Tensor {
	f := calls.expected[0]
	ports = f.numbering(ports, artifact.KindOutput)
	for _, want := range f.tensors {
		if runtime.Place(ports, artifact.KindOutput, want.Name) == k {
			return want.Tensor
		}
	}
	return nil
}

// openCase opens the files of one call. Those of state are taken together.
func openCase(files CaseCall, tol *compare.Tolerance) (*Calls, error) {
	o := CallOptions{Inputs: []string{files.Inputs}, Tolerance: tol}
	if files.Outputs != "" {
		o.Expected = []string{files.Outputs}
	}
	c, err := OpenCalls(o)
	if err != nil || len(files.State) == 0 {
		return c, err
	}
	state, err := openAll(files.State)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	all := &tensorFile{path: strings.Join(files.State, " and "), source: joined{state[0].source, state}}
	for _, f := range state {
		for _, t := range f.tensors {
			if !c.inputs[0].reshaped(t) {
				all.tensors = append(all.tensors, t)
			}
		}
	}
	c.state = []*tensorFile{all}
	return c, nil
}

// joined is the source of the tensors of several files, which are read already.
type joined struct {
	weights.Source
	files []*tensorFile
}

// Close closes all files.
func (j joined) Close() error { return closeFiles(j.files) }

// reshaped reports an input of another shape than the one that went into the call. No program changes the shape of its input: the caller's object,
// such as a cache that grows, holds another tensor afterwards.
func (f *tensorFile) reshaped(after weights.Named) bool {
	return slices.ContainsFunc(f.tensors, func(t weights.Named) bool { return t.Name == after.Name && !slices.Equal(t.Dims, after.Dims) })
}

// dims are the shapes of the file's tensors.
func (f *tensorFile) dims() string {
	var b strings.Builder
	for _, t := range f.tensors {
		fmt.Fprintf(&b, "%s%v ", t.Name, t.Dims)
	}
	return b.String()
}

// recorder keeps what the last call got and gave.
type recorder struct {
	Caller
	files           *Calls
	inputs, outputs []*tensor.Tensor
}

// Call implements Caller.
func (r *recorder) Call(ctx context.Context, inputs []*tensor.Tensor) ([]*tensor.Tensor, error) {
	var err error
	r.inputs = inputs
	r.outputs, err = r.Caller.Call(ctx, inputs)
	return r.outputs, err
}

// Changed implements Caller. An input that the file of expected state names is there too when the call leaves it as it was.
func (r *recorder) Changed(ctx context.Context) ([]Changed, error) {
	out, err := r.Caller.Changed(ctx)
	if err != nil || len(r.files.state) == 0 {
		return out, err
	}
	in, _ := r.Ports()
	in = r.files.numbering(0, in)
	for _, want := range r.files.state[0].tensors {
		i := runtime.Place(in, artifact.KindInput, want.Name)
		named := func(c Changed) bool { return slices.Contains(c.Names, want.Name) || c.Names == nil && c.Input == i }
		if i >= 0 && !slices.ContainsFunc(out, named) {
			out = append(out, Changed{nil, i, r.inputs[i]})
		}
	}
	return out, nil
}

type onDevice struct{ *Opened }

func (p onDevice) open(ctx context.Context) (Caller, func(), error) {
	s, err := p.Session(ctx)
	if err != nil {
		return nil, nil, err
	}
	return s, func() { s.Close() }, nil
}

type evaluated struct{ *Model }

func (p evaluated) open(context.Context) (Caller, func(), error) {
	e, err := NewEvaluator(p.Model, "")
	return e, nil, err // the model is closed, once
}

type compiled struct{}

func (compiled) open(context.Context) (Caller, func(), error) { return nil, nil, nil }
func (compiled) Close() error                                 { return nil }
