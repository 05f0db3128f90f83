package main

import (
	"errors"

	"github.com/spf13/cobra"

	"tpuc"
)

func newCheck() *cobra.Command {
	f := &compileFlags{}
	var o tpuc.CheckOptions
	var asJSON bool
	c := &cobra.Command{
		Use:   "check MODEL",
		Short: "List everything that keeps a model from compiling",
		Long: `List everything that keeps a model from compiling: operators, dtypes and dimensions, each with its layer, the line of
the model's source, and what to do. Nothing is compiled, and no plugin is needed.

Symbolic dimensions without --dim have the sizes of the export's example. What only the plugin finds out, such as a program that
does not fit into a TPU's memory, is not in the list.

Exit status: 0 nothing is in the way; 1 the list is not empty, or MODEL cannot be read.`,
		Example: "  tpuc check model.pt2\n  tpuc check model.pt2 --target v6e:1x1 --dim input_ids.1=512 --json",
		Args:    argCount(1, "one MODEL"),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if o.Dims, err = parseDims(f.dims); err != nil {
				return err
			}
			if o.Target, err = f.parseTarget(); err != nil {
				return err
			}
			if o.Custom, err = tpuc.LoadCustomOps(f.custom); err != nil {
				return err
			}
			r, err := tpuc.CheckModel(c.Context(), args[0], o)
			if err != nil {
				return err
			}
			if asJSON {
				return errors.Join(writeJSON(c.OutOrStdout(), r), r.Err())
			}
			return errors.Join(r.Write(c.OutOrStdout()), r.Err())
		},
	}
	f.addTarget(c)
	addDims(c, &f.dims)
	addCustom(c, &f.custom)
	addJSON(c, &asJSON)
	return c
}
