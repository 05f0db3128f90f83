package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tpuc"
	"tpuc/internal/atomicfile"
	"tpuc/ir/text"
	"tpuc/passes"
)

func newOpt() *cobra.Command {
	var names, dims []string
	var output, custom string
	var stats bool
	o := passes.Options{Verify: true, CrashDir: "."}
	c := &cobra.Command{
		Use:   "opt MODEL",
		Short: "Run passes on a model and print it as text",
		Long: `Run passes on a model, all of a compile's or those named, and print the module in tpuc's textual form.

MODEL is an archive (.pt2, .pt2.gz), StableHLO (.mlir, .mlirbc), or a module in textual form (.tpu); "--pass none" only prints it.
The module is verified before the first and after every pass.`,
		Example: `  tpuc opt model.pt2
  tpuc opt model.tpu --pass simplify,fold --stats
  tpuc opt model.pt2 --dim input_ids.1=8 --pass none -o model.tpu`,
		Args: argCount(1, "one MODEL"),
		RunE: func(c *cobra.Command, args []string) error {
			for _, n := range names {
				if err := oneOf("pass", n, append(passNames(), noPass)); err != nil {
					return err
				}
			}
			o.Passes = names
			if slices.Contains(names, noPass) {
				if len(names) > 1 {
					return usagef("--pass %s, wanted %s alone", strings.Join(names, ","), noPass)
				}
				o.Passes = []string{}
			}
			bound, err := parseDims(dims)
			if err != nil {
				return err
			}
			ops, err := tpuc.LoadCustomOps(custom)
			if err != nil {
				return err
			}
			return runOpt(c, args[0], o, tpuc.Shapes{Dims: bound, Custom: ops}, output, stats)
		},
	}
	c.Flags().StringSliceVar(&names, "pass", nil, "passes to run, in this order (default: all, in the compile's order); see tpuc list passes")
	c.Flags().StringVarP(&output, "output", "o", "-", "file to write; - is standard output")
	c.Flags().StringVar(&o.DumpDir, "dump", "", "write the module before the first and after every pass into this folder")
	c.Flags().BoolVar(&stats, "stats", false, "print nodes, weights, time and rules applied after every pass on standard error")
	addDims(c, &dims)
	addCustom(c, &custom)
	complete(c, "pass", func() []string { return append(passNames(), noPass) })
	return c
}

// noPass stands for an empty list of passes.
const noPass = "none"

func runOpt(c *cobra.Command, path string, o passes.Options, shapes tpuc.Shapes, output string, stats bool) (err error) {
	if output != "-" {
		if err := tpuc.CheckOutput(output); err != nil {
			return err
		}
	}
	m, err := tpuc.Load(c.Context(), path, shapes)
	if err != nil {
		return err
	}
	showNotes(c.ErrOrStderr(), m.Notes)
	defer func() { err = errors.Join(err, m.Close()) }()
	r, err := passes.Run(c.Context(), m.Module, o)
	if err != nil {
		return err
	}
	if stats {
		if err := writeStats(c.ErrOrStderr(), r); err != nil {
			return err
		}
	}
	write := func(w io.Writer) error {
		_, err := io.WriteString(w, text.Print(m.Module))
		return err
	}
	if output == "-" {
		return write(c.OutOrStdout())
	}
	return atomicfile.Write(output, write)
}

func writeStats(w io.Writer, r *passes.Report) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "pass\tnodes\tweights\ttime\trules applied")
	for i, p := range r.Passes {
		var hits []string
		for _, h := range p.Hits {
			hits = append(hits, fmt.Sprintf("%s %d", h.Rule, h.Count))
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%s\n", p.Pass, p.Nodes, p.Weights, r.Times[i].Round(1e4), strings.Join(hits, ", "))
	}
	return t.Flush()
}
