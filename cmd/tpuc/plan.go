package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"tpuc"
	"tpuc/internal/plural"
	"tpuc/tpu/artifact"
)

func newPlan() *cobra.Command {
	f := &compileFlags{}
	var asJSON bool
	c := &cobra.Command{
		Use:   "plan MODEL...",
		Short: "List what would be compiled",
		Long: `List the programs of models that tpuc compile would compile with the same flags, and those that the cache has already.

Nothing is compiled. A model that has not changed is not even read. What is missing is told with what differs from the nearest
program that is there; docs/cache.md explains the parts.`,
		Example: `  tpuc plan model.pt2
  tpuc plan model.pt2 --dim batch=1,4,8 --target v6e:1x1
  tpuc plan models/*.pt2 --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("no model is given, wanted MODEL...")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			plans, err := f.plans(c, args)
			switch {
			case len(plans) == 0:
				return err
			case asJSON:
				return errors.Join(err, writeJSON(c.OutOrStdout(), plans))
			}
			return errors.Join(err, writePlans(c.OutOrStdout(), plans))
		},
	}
	f.addTarget(c)
	addDims(c, &f.dims)
	c.Flags().Lookup("dim").Usage = sizesUsage
	addCustom(c, &f.custom)
	f.addPlugin(c)
	f.addEmbed(c)
	c.Flags().BoolVar(&f.verifyDigest, "verify-digest", false, "read the models' files whole to find out whether they have changed, their weights too")
	f.addVerbosity(c)
	addJSON(c, &asJSON)
	return c
}

// plans makes the plan of each model that has one; the error is of all others.
func (f *compileFlags) plans(c *cobra.Command, models []string) ([]*tpuc.Plan, error) {
	o := tpuc.CompileOptions{EmbedWeights: f.embed}
	var err error
	if o.Dims, err = parseSizes(f.dims); err != nil {
		return nil, err
	}
	if o.Target, err = f.parseTarget(); err != nil {
		return nil, err
	}
	if o.Shapes.Custom, err = tpuc.LoadCustomOps(f.custom); err != nil {
		return nil, err
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	p := newProgress(c.ErrOrStderr(), f)
	defer p.stop()
	o.Plugin, o.Notify = f.plugin(), p.enter
	o.Cache, err = tpuc.OpenCache(tpuc.CacheOptions{Dir: f.cache, VerifyDigest: f.verifyDigest, Explain: true, Notify: p.note})
	if err != nil {
		return nil, err
	}
	plans := []*tpuc.Plan{}
	var errs []error
	for _, m := range models {
		if err := exists(m); err != nil {
			errs = append(errs, err)
			continue
		}
		plan, err := tpuc.MakePlan(c.Context(), m, o)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		plans = append(plans, plan)
	}
	return plans, errors.Join(errs...)
}

func writePlans(w io.Writer, plans []*tpuc.Plan) error {
	programs, compiles := 0, 0
	for _, p := range plans {
		programs, compiles = programs+len(p.Programs), compiles+p.Compiles()
		if err := writePlan(w, p); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s, %d to compile\n", plural.Of(programs, "program"), compiles)
	return err
}

// writePlan lists a model's programs, and of those that are missing what differs from the nearest that is there.
func writePlan(w io.Writer, p *tpuc.Plan) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", p.Model)
	if p.Unchanged {
		b.WriteString("  unchanged: nothing is to be done but to write the artifact\n")
	}
	for _, d := range p.Why {
		fmt.Fprintf(&b, "  the model: %s\n", d)
	}
	for _, x := range p.Programs {
		what := "to compile"
		if x.Hit {
			what = "in the cache"
		}
		fmt.Fprintf(&b, "  %s  %s%s\n", x.Key[:shownID], what, dimsOf(x.Dims))
		for _, d := range x.Why {
			fmt.Fprintf(&b, "    %s\n", d)
		}
		if !x.Hit && len(x.Why) == 0 {
			b.WriteString("    there is no program to compare with\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// dimsOf is such as "  batch = 4, seq = 128".
func dimsOf(dims []artifact.Dim) string {
	var out []string
	for _, d := range dims {
		out = append(out, fmt.Sprintf("%s = %d", d.Name, d.Value))
	}
	if len(out) == 0 {
		return ""
	}
	return "  " + strings.Join(out, ", ")
}
