package main

import (
	"errors"

	"github.com/spf13/cobra"

	"tpuc"
)

func newEval() *cobra.Command {
	calls := &callFlags{}
	var dims []string
	var custom string
	c := &cobra.Command{
		Use:   "eval MODEL",
		Short: "Run a model on the reference evaluator, without any plugin",
		Long: `Run a model on the reference evaluator: slow, but on any machine, without a plugin, and the yardstick of everything else.

MODEL is an archive (.pt2, .pt2.gz), StableHLO (.mlir, .mlirbc), or a module in textual form (.tpu), which is run as it stands, before any pass. It may be an
artifact (.tpuc) that was compiled from an archive, whose graph is run, with the weights that it embeds or those of --weights.
Inputs, comparisons and exit status are those of tpuc run.`,
		Example: `  tpuc eval model.pt2 --inputs inputs.safetensors --expected outputs.safetensors
  tpuc opt model.pt2 -o opt.tpu && tpuc eval opt.tpu --weights model.pt2 --random 1`,
		Args: argCount(1, "one MODEL"),
		RunE: func(c *cobra.Command, args []string) error {
			co, err := calls.options(c)
			if err != nil {
				return err
			}
			bound, err := parseDims(dims)
			if err != nil {
				return err
			}
			ops, err := tpuc.LoadCustomOps(custom)
			if err != nil {
				return err
			}
			return runEval(c, args[0], calls, co, tpuc.Shapes{Dims: bound, Custom: ops})
		},
	}
	addDims(c, &dims)
	addCustom(c, &custom)
	calls.add(c)
	return c
}

func runEval(c *cobra.Command, path string, calls *callFlags, co tpuc.CallOptions, shapes tpuc.Shapes) (err error) {
	files, err := tpuc.OpenCalls(co)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	shapes.Inputs = files.Shapes(nil).Inputs
	m, err := tpuc.Load(c.Context(), path, shapes)
	if err != nil {
		return err
	}
	showNotes(c.ErrOrStderr(), m.Notes)
	e, err := tpuc.NewEvaluator(m, calls.weights)
	if err != nil {
		return errors.Join(err, m.Close())
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	r, err := files.Run(c.Context(), e)
	r.Model, r.Target = m.Name, "evaluator"
	return calls.report(c.OutOrStdout(), r, err)
}
