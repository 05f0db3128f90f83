package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tpuc"
	"tpuc/internal/plural"
)

func newDoctor() *cobra.Command {
	var asJSON bool
	f := &compileFlags{}
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check that this machine can compile and run",
		Long: `Check that this machine can compile and run: the platform, the cache, pip's configuration, the plugins and their digests,
a tiny compile in a child process for the CPU and, where libtpu is on this machine, for v6e:1x1, and a run on the CPU.

The CPU plugin is fetched if it is absent, unless --offline is given. Exit status 1 says that there is a problem.`,
		Example: "  tpuc doctor\n  tpuc doctor --offline --json",
		Args:    argCount(0, "none"),
		RunE: func(c *cobra.Command, _ []string) error {
			checks := []tpuc.Check{}
			problems := 0
			tpuc.Doctor(c.Context(), tpuc.DoctorOptions{Plugin: f.plugin(), Timeout: f.timeout}, func(k tpuc.Check) {
				checks = append(checks, k)
				if k.Problem {
					problems++
				}
				if !asJSON {
					fmt.Fprintln(c.OutOrStdout(), checkText(k))
				}
			})
			if err := c.Context().Err(); err != nil {
				return err
			}
			if asJSON {
				if err := writeJSON(c.OutOrStdout(), checks); err != nil {
					return err
				}
			}
			if problems > 0 {
				return fmt.Errorf("%d of %s found a problem", problems, plural.Of(len(checks), "check"))
			}
			return nil
		},
	}
	f.addPlugin(c)
	c.Flags().DurationVar(&f.timeout, "timeout", 0, "end a compile after this time (default 2m)")
	c.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "show no progress of a download")
	addJSON(c, &asJSON)
	return c
}

// checkText is a check in one line, or several for a problem.
func checkText(k tpuc.Check) string {
	if !k.Problem {
		return fmt.Sprintf("ok       %s: %s", k.Name, k.Found)
	}
	s := fmt.Sprintf("PROBLEM  %s: %s", k.Name, strings.ReplaceAll(k.Found, "\n", "\n         "))
	if k.Advice != "" {
		s += "\n         what to do: " + k.Advice
	}
	return s
}
