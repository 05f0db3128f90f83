package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tpuc"
	"tpuc/internal/atomicfile"
	"tpuc/internal/plural"
	"tpuc/internal/reduce"
	"tpuc/ir/text"
)

func newReduce() *cobra.Command {
	f := &reduceFlags{}
	c := &cobra.Command{
		Use:   "reduce FILE.tpu",
		Short: "Shrink a module that makes a command fail",
		Long: `Shrink a module in tpuc's textual form for as long as a command fails on it, as on the reproducer that a crash leaves.

The command is run by sh -c in the present folder; {} in it is the file with the smaller module, which is appended where there is
no {}. It fails by an exit status other than 0, or by that of --exit; --match demands words too, so that another failure is not taken for
this one. What is written passes the verifier. Ctrl-C ends the search and keeps what it has found.

To have a module of an archive: tpuc opt model.pt2 --pass none -o model.tpu.`,
		Example: `  tpuc reduce tpuc-crash-fold.tpu --command 'tpuc opt {} --pass fold' --exit 70
  tpuc reduce model.tpu --command 'tpuc compile {} --target v6e:1x1 -q -o x.tpuc' --match 'RET_CHECK failure' -o small.tpu`,
		Args: argCount(1, "one FILE.tpu"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(args[0]); err != nil {
				return err
			}
			return runReduce(c, args[0], f)
		},
	}
	fs := c.Flags()
	fs.StringVar(&f.command.Line, "command", "", "command that fails on the module; {} is its file")
	fs.IntVar(&f.command.Exit, "exit", 0, "exit status that counts as failing (default: every one but 0)")
	fs.StringVar(&f.match, "match", "", "regular expression that must match what the command prints when it fails")
	fs.DurationVar(&f.command.Timeout, "timeout", time.Minute, "end a run of the command after this time, as not failing; 0: no limit")
	fs.StringVarP(&f.output, "output", "o", "", "file to write (default: the module's name with .reduced.tpu, in the present folder); - is standard output")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress and no summary")
	return c
}

type reduceFlags struct {
	command       reduce.Command
	match, output string
	quiet         bool
}

func (f *reduceFlags) check(file string) error {
	switch {
	case strings.TrimSpace(f.command.Line) == "":
		return usagef("--command is missing, wanted a command that fails on the module")
	case !strings.HasSuffix(file, ".tpu"):
		return usagef("%s, wanted a module in textual form (.tpu); tpuc opt MODEL --pass none -o FILE.tpu makes one", file)
	case f.command.Timeout < 0:
		return usagef("--timeout is %s, wanted 0 or more", f.command.Timeout)
	case f.command.Exit < 0 || f.command.Exit > 255:
		return usagef("--exit is %d, wanted 1 to 255", f.command.Exit)
	}
	if f.output == "" {
		f.output = tpuc.ModelName(file) + ".reduced.tpu"
	}
	if filepath.Clean(f.output) == filepath.Clean(file) {
		return usagef("-o %s would replace the module, wanted another file", f.output)
	}
	if f.match != "" {
		re, err := regexp.Compile(f.match)
		if err != nil {
			return usagef("--match %q: %v, wanted a regular expression", f.match, err)
		}
		f.command.Match = re
	}
	return nil
}

func runReduce(c *cobra.Command, file string, f *reduceFlags) error {
	m, err := tpuc.Load(c.Context(), file, tpuc.Shapes{})
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tpuc-reduce-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	o := reduce.Options{Progress: func(s reduce.Stats) {
		if !f.quiet {
			fmt.Fprintf(c.ErrOrStderr(), "%s after %s\n", s.Now, plural.Of(s.Checks, "run"))
		}
	}}
	small, stats, err := reduce.Module(c.Context(), m.Module, func(ctx context.Context, src string) (bool, error) {
		return f.command.Fails(ctx, dir, src)
	}, o)
	if errors.Is(err, reduce.ErrHolds) {
		return fmt.Errorf("the command does not fail on %s, wanted one that does: %s", file, f.command.Line)
	}
	ended := errors.Is(err, context.Canceled)
	if err != nil && !ended || stats.Checks == 1 && ended {
		return err
	}
	write := func(w io.Writer) error {
		_, err := io.WriteString(w, text.Print(small))
		return err
	}
	if f.output == "-" {
		return errors.Join(write(c.OutOrStdout()), err)
	}
	if werr := atomicfile.Write(f.output, write); werr != nil {
		return errors.Join(werr, err)
	}
	if !f.quiet {
		fmt.Fprintf(c.OutOrStdout(), "before   %s\nafter    %s\nruns     %d\nwritten  %s\n", stats.Before, stats.Now, stats.Checks, f.output)
	}
	return err
}
