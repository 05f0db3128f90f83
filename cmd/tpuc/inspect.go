package main

import (
	"github.com/spf13/cobra"

	"tpuc"
)

func newInspect() *cobra.Command {
	var dims []string
	var custom string
	var asJSON bool
	var o tpuc.InspectOptions
	c := &cobra.Command{
		Use:   "inspect FILE",
		Short: "Show what is inside a model, an artifact or a file of weights",
		Long: `Show what is inside an archive (.pt2, .pt2.gz), StableHLO (.mlir, .mlirbc), a module in textual form (.tpu), an artifact (.tpuc), a safetensors
or npz file, or a checkpoint folder. No plugin is needed.

Of an archive: the version of torch, inputs and outputs with symbolic dimensions and their ranges, state, weights
by class, operators with those that are not supported, and what else stands in the way of compiling it.`,
		Example: "  tpuc inspect model.pt2\n  tpuc inspect model.pt2 --ir --dim input_ids.1=8\n  tpuc inspect model.tpuc --json",
		Args:    argCount(1, "one FILE"),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if o.Dims, err = parseDims(dims); err != nil {
				return err
			}
			if o.Custom, err = tpuc.LoadCustomOps(custom); err != nil {
				return err
			}
			s, err := tpuc.Inspect(c.Context(), args[0], o)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), s)
			}
			return s.Write(c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&o.IR, "ir", false, "show the imported module too, with the example's sizes unless --dim gives others; of an artifact its StableHLO")
	c.Flags().BoolVar(&o.Verify, "verify", false, "check every byte of an artifact")
	addDims(c, &dims)
	addCustom(c, &custom)
	addJSON(c, &asJSON)
	return c
}
