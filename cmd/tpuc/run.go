package main

import (
	"errors"

	"github.com/spf13/cobra"

	"tpuc"
	"tpuc/tpu/runtime"
)

func newRun() *cobra.Command {
	f, calls := &compileFlags{}, &callFlags{}
	var noCompile bool
	var onMiss missFlags
	c := &cobra.Command{
		Use:   "run ARTIFACT|MODEL",
		Short: "Run an artifact, or compile a model and run it",
		Long: `Run an artifact, or compile a model and run it, and compare what it gives with what is expected.

Without --expected and --expected-state the outputs are listed with their smallest, largest and mean element.
With them every comparison is printed with its worst element, and the exit status is 3 if any differs.

A MODEL is compiled for --target first, with symbolic dimensions of --dim or else of the first inputs. An ARTIFACT is
compiled again only where its executable was made by another plugin. A call of shapes that it has no program for is what
--on-miss says: an error; run by a larger program, with padding, where that is proved to change nothing; or a reason to
compile a further program (docs/runtime.md).`,
		Example: `  tpuc run model.tpuc --random 1
  tpuc run model.tpuc --inputs inputs.safetensors --expected outputs.safetensors
  tpuc run decode.tpuc --inputs step1.npz --inputs step2.npz --expected-state cache1.safetensors -o out.safetensors
  tpuc run model.tpuc --weights checkpoint/ --no-compile --random 1
  tpuc run model.tpuc --self-test`,
		Args: argCount(1, "one ARTIFACT or MODEL"),
		RunE: func(c *cobra.Command, args []string) error {
			co, err := calls.options(c)
			if err != nil {
				return err
			}
			dims, err := parseDims(f.dims)
			if err != nil {
				return err
			}
			target, err := f.parseTarget()
			if err != nil {
				return err
			}
			o := tpuc.OpenOptions{Weights: calls.weights, NoCompile: noCompile, Plugin: f.plugin(), Timeout: f.timeout}
			if c.Flags().Changed("target") {
				o.Target = &target
			}
			if err := onMiss.set(&o); err != nil {
				return err
			}
			if err := f.check(); err != nil {
				return err
			}
			return runRun(c, args[0], f, calls, o, co, dims)
		},
	}
	f.add(c)
	calls.add(c)
	onMiss.add(c)
	c.Flags().BoolVar(&calls.selfTest, "self-test", false, "run the examples that the artifact keeps (tpuc compile --examples) and compare with what is expected of them")
	c.Flags().BoolVar(&noCompile, "no-compile", false, "never compile: exit with status 4 where that would be needed")
	return c
}

// missFlags say, for the verbs that run artifacts, what becomes of shapes that no program has.
type missFlags struct {
	policy string
	most   int
}

func (f *missFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.policy, "on-miss", string(runtime.Strict), "what becomes of shapes that no program has: strict (an error), compile or pad")
	complete(c, "on-miss", func() []string {
		var out []string
		for _, p := range runtime.Policies {
			out = append(out, string(p))
		}
		return out
	})
	c.Flags().IntVar(&f.most, "max-programs", runtime.DefaultMaxPrograms, "with --on-miss compile, keep at most so many compiled programs in memory: those not used for longest go; 0: no limit")
}

// set puts the flags into o.
func (f *missFlags) set(o *tpuc.OpenOptions) error {
	p, err := runtime.ParsePolicy(f.policy)
	switch {
	case err != nil:
		return usagef("--on-miss: %v", err)
	case f.most < 0:
		return usagef("--max-programs is %d, wanted 0 or more", f.most)
	case f.most == 0:
		f.most = -1
	}
	o.OnMiss, o.MaxPrograms = p, f.most
	return nil
}

func runRun(c *cobra.Command, path string, f *compileFlags, calls *callFlags, o tpuc.OpenOptions, co tpuc.CallOptions, dims map[string]int64) (err error) {
	if err := exists(path); err != nil {
		return err
	}
	files, err := calls.open(path, co)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	o.Shapes = files.Shapes(dims)
	if o.Shapes.Custom, err = tpuc.LoadCustomOps(f.custom); err != nil {
		return err
	}
	p := newProgress(c.ErrOrStderr(), f)
	o.Notify, o.Note = p.enter, p.note
	if o.Cache, err = f.store(p.note); err != nil {
		p.stop()
		return err
	}
	m, err := tpuc.Open(c.Context(), path, o)
	p.stop()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	if m.Report != nil {
		showLog(c.ErrOrStderr(), m.Report.Log, f.verbose)
		showNotes(c.ErrOrStderr(), m.Report.Notes)
	}
	s, err := m.Session(c.Context())
	if err != nil {
		return err
	}
	defer s.Close()
	r, err := files.Run(c.Context(), s)
	r.Model, r.Target = m.Manifest().Model.Name, m.Manifest().Target.Name
	return calls.report(c.OutOrStdout(), r, err)
}
