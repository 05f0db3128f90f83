package main

import (
	"fmt"
	"io"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tpuc"
	"tpuc/internal/atomicfile"
	"tpuc/internal/plural"
)

// caseTimeout is how long a case may take unless another time is given.
const caseTimeout = 10 * time.Minute

func newTest() *cobra.Command {
	f := &testFlags{}
	c := &cobra.Command{
		Use:   "test DIR...",
		Short: "Run folders of models with inputs and expected outputs",
		Long: `Run folders of models with inputs and expected outputs, and say in a table what became of each.

A DIR is a case or holds cases at any depth: a folder with model.pt2 (or .pt2.gz), perhaps decomposed.pt2, inputs.safetensors,
outputs.safetensors, and perhaps case.json with a tolerance. Further calls are inputs_2, outputs_2 and so on; buffers_after and
inputs_after hold what a call must leave. docs/testing-models.md describes all forms.

Exit status: 0 all are ok; 3 numbers differ; 1 otherwise, as where a DIR holds no case.`,
		Example: `  tpuc test cases/
  tpuc test cases/ --eval --run llama -v
  tpuc test cases/ --target v6e:1x1 -j 4 --junit report.xml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("no folder is given, wanted DIR...")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			o, err := f.options(c)
			if err != nil {
				return err
			}
			return runTest(c, args, f, o)
		},
	}
	f.addPlugin(c)
	addCustom(c, &f.custom)
	fs := c.Flags()
	fs.BoolVar(&f.cached, "cached", false, "take compiled programs from the cache and keep them there; otherwise each case is compiled, whatever was kept")
	fs.StringVar(&f.target, "target", "cpu", "what to compile for; for a TPU cases are compiled but not run; see tpuc list targets")
	fs.BoolVar(&f.evaluate, "eval", false, "run on the reference evaluator, without any plugin")
	fs.BoolVar(&f.compileOnly, "compile-only", false, "compile but run nothing")
	fs.BoolVar(&f.raw, "raw", false, "leave decomposed archives out")
	fs.BoolVar(&f.decomposed, "decomposed", false, "take decomposed archives only")
	fs.IntVarP(&f.jobs, "jobs", "j", runtime.NumCPU(), "cases at a time")
	fs.StringVar(&f.selected, "run", "", "run only the cases whose NAME/VARIANT this regular expression matches")
	fs.IntVar(&f.sample, "sample", 0, "run only so many of the cases, chosen by their names: the same ones every time; 0: all")
	fs.DurationVar(&f.timeout, "timeout", caseTimeout, "end a case after this time; 0: no limit")
	fs.StringVar(&f.junit, "junit", "", "write a report for continuous integration to this file, as JUnit XML")
	fs.StringVar(&f.report, "report", "", "write what --json prints to this file too")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "show every comparison, and messages whole")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "show only the cases that are not ok, and the totals")
	addJSON(c, &f.json)
	complete(c, "target", targetNames)
	return c
}

type testFlags struct {
	compileFlags
	evaluate, compileOnly, raw, decomposed, cached, json bool
	jobs, sample                                         int
	selected, junit, report                              string
}

// options checks the flags and puts them together.
func (f *testFlags) options(c *cobra.Command) (tpuc.SuiteOptions, error) {
	o := tpuc.SuiteOptions{Evaluate: f.evaluate, CompileOnly: f.compileOnly, Jobs: f.jobs, Sample: f.sample, Timeout: f.timeout, Plugin: f.plugin()}
	if err := f.check(); err != nil {
		return o, err
	}
	switch {
	case f.evaluate && (f.compileOnly || f.cached || c.Flags().Changed("target")):
		return o, usagef("--eval compiles nothing, wanted it without --compile-only, --cached and --target")
	case f.raw && f.decomposed:
		return o, usagef("--raw and --decomposed are given, wanted at most one of them")
	case f.sample < 0:
		return o, usagef("--sample is %d, wanted 0 or more", f.sample)
	case f.jobs < 1:
		return o, usagef("--jobs is %d, wanted 1 or more", f.jobs)
	case f.raw:
		o.Variants = tpuc.VariantRaw
	case f.decomposed:
		o.Variants = tpuc.VariantDecomposed
	}
	var err error
	if o.Custom, err = tpuc.LoadCustomOps(f.custom); err != nil {
		return o, err
	}
	if o.Target, err = f.parseTarget(); err != nil {
		return o, err
	}
	if f.selected != "" {
		if o.Select, err = regexp.Compile(f.selected); err != nil {
			return o, usagef("--run %q: %v, wanted a regular expression", f.selected, err)
		}
	}
	return o, nil
}

func runTest(c *cobra.Command, dirs []string, f *testFlags, o tpuc.SuiteOptions) error {
	all, err := tpuc.FindCases(dirs)
	if err != nil {
		return err
	}
	cases := tpuc.SelectCases(all, o)
	if len(cases) == 0 {
		return fmt.Errorf("none of the %s in %s is selected, wanted one or more", plural.Of(len(all), "case"), strings.Join(dirs, ", "))
	}
	if f.cached {
		if o.Cache, err = f.store(func(line string) { fmt.Fprintln(c.ErrOrStderr(), line) }); err != nil {
			return err
		}
	}
	w := c.OutOrStdout()
	table := tpuc.NewCaseTable(w, cases)
	table.Verbose, table.OnlyBad = f.verbose, f.quiet
	var broken error // standard output is closed; the cases go on for --junit
	if !f.json {
		o.Each = func(out *tpuc.CaseOutcome) {
			if broken == nil {
				broken = table.Write(out)
			}
		}
	}
	r, err := tpuc.RunCases(c.Context(), cases, o)
	if err != nil {
		return err
	}
	if f.junit != "" {
		if err := atomicfile.Write(f.junit, func(w io.Writer) error { return r.WriteJUnit(w) }); err != nil {
			return err
		}
	}
	if f.report != "" {
		if err := atomicfile.Write(f.report, func(w io.Writer) error { return writeJSON(w, r) }); err != nil {
			return err
		}
	}
	switch {
	case broken != nil:
		return broken
	case f.json:
		if err := writeJSON(w, r); err != nil {
			return err
		}
		return r.Err()
	}
	if err := r.WriteGroups(w); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w, r.Totals()); err != nil {
		return err
	}
	return r.Err()
}
