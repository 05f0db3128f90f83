// Command tpuc compiles captured models ahead of time into executables for TPUs and CPUs, and runs them.
// Every verb is one file here and holds flags and printing only; the work is in the packages.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"tpuc"
	"tpuc/internal/plural"
	"tpuc/ir/diag"
	"tpuc/tpu"
	"tpuc/tpu/runtime"
)

// Exit statuses, part of the interface.
const (
	exitOK        = 0
	exitInput     = 1  // the input is at fault
	exitUsage     = 2  // the command line is at fault
	exitDiffer    = 3  // numbers differ from the expected ones
	exitForbidden = 4  // a compile would be needed but is forbidden
	exitBug       = 70 // a fault of tpuc or of a plugin

	exitInterrupted = 130 // Ctrl-C or SIGTERM, as shells count it
)

func main() {
	tpu.ChildMain()
	os.Exit(run(os.Args[1:]))
}

// run executes one command line and returns the exit status.
func run(args []string) (code int) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(os.Stderr, "tpuc: internal error: %v\n%s\nThis is a bug in tpuc.\n", r, debug.Stack())
			code = exitBug
		}
	}()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "tpuc: %v\n", err)
		explain(err)
		if ctx.Err() != nil {
			return exitInterrupted
		}
	}
	return exitStatus(err)
}

// explain shows what is known of a failed plugin or a bug beyond the message.
func explain(err error) {
	var compile *tpu.CompileError
	if errors.As(err, &compile) && compile.Kind != tpu.Canceled && compile.Kind != tpu.TimedOut && strings.TrimSpace(compile.Log) != "" {
		fmt.Fprintf(os.Stderr, "the plugin printed:\n%s\n", indent(excerpt(compile.Log)))
	}
	var bug *diag.Bug
	if errors.As(err, &bug) {
		fmt.Fprintf(os.Stderr, "This is a bug in tpuc, at:\n%s\n", indent(bug.Stack))
	}
}

// exitStatus classifies an error.
func exitStatus(err error) int {
	var usage *usageError
	var differ *tpuc.DifferError
	var compile *tpu.CompileError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &differ):
		return exitDiffer
	case errors.Is(err, runtime.ErrCompileForbidden):
		return exitForbidden
	case diag.IsBug(err), errors.As(err, &compile) && compile.Kind == tpu.Crashed:
		return exitBug
	}
	return exitInput
}

// usageError is a fault of the command line.
type usageError struct{ err error }

func (e *usageError) Error() string {
	return e.err.Error() + "\nrun it with --help to see how it is used"
}
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "tpuc",
		Short: "Compile captured models ahead of time for TPUs and CPUs, and run them without Python",
		Long: `tpuc turns a model captured by torch.export into an executable for a TPU or a CPU: compile once on any
machine, no TPU needed, and run the artifact anywhere without Python and without compiling.

Exit status: 0 ok; 1 the input is at fault; 2 usage; 3 numbers differ from the expected ones;
4 a compile would be needed but is forbidden; 70 a bug in tpuc or a plugin; 130 interrupted.`,
		Version:       tpuc.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			var verbs []string
			for _, v := range c.Commands() {
				if v.IsAvailableCommand() {
					verbs = append(verbs, v.Name())
				}
			}
			return oneOf("command", args[0], verbs)
		},
		Args: cobra.ArbitraryArgs, // an unknown command is an argument of this one
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddCommand(newCompile(), newPlan(), newRun(), newBench(), newInspect(), newCheck(), newOpt(), newEval(), newList(), newDoctor(), newCache(), newTest(), newReduce())
	return root
}

// args checks the number of positional arguments as a matter of usage.
func argCount(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return usagef("%s, wanted %s", plural.Of(len(args), "argument"), what)
		}
		return nil
	}
}
