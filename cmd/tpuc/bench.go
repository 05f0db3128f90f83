package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"tpuc"
)

func newBench() *cobra.Command {
	f, o := &compileFlags{}, tpuc.BenchOptions{}
	var inputs, dims []string
	var random uint64
	var weights string
	var onMiss missFlags
	var noCompile, asJSON bool
	c := &cobra.Command{
		Use:   "bench ARTIFACT",
		Short: "Measure how fast an artifact runs",
		Long: `Measure how fast an artifact runs: throughput, the latency of calls by percentiles, and the parts of a call: upload of
the inputs, dispatch (host time), execution (device time) and download of the outputs.

Calls are made until --duration has passed and at least --iterations of them were made, by --concurrency sessions
side by side, each with its own state. Before them calls are made for --warmup that do not count.`,
		Example: `  tpuc bench model.tpuc --random 1
  tpuc bench model.tpuc --inputs inputs.safetensors --concurrency 4 --duration 10s
  tpuc bench model.tpuc --random 1 --dim s0=8 --duration 0 --iterations 100 --json`,
		Args: argCount(1, "one ARTIFACT"),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("random") == (len(inputs) > 0) {
				return usagef("inputs are missing or given in two ways, wanted --inputs FILE (one after another) or --random SEED")
			}
			co := tpuc.CallOptions{Inputs: inputs}
			if len(inputs) == 0 {
				co.Random = &random
			}
			var err error
			if o.Dims, err = parseDims(dims); err != nil {
				return err
			}
			if err := o.Check(); err != nil {
				return usagef("%v", err)
			}
			oo := tpuc.OpenOptions{Weights: weights, NoCompile: noCompile, Plugin: f.plugin()}
			if err := onMiss.set(&oo); err != nil {
				return err
			}
			return runBench(c, args[0], f, oo, co, o, asJSON)
		},
	}
	fs := c.Flags()
	fs.DurationVar(&o.Warmup, "warmup", 200*time.Millisecond, "make calls that do not count for so long first; at least one")
	fs.DurationVar(&o.Duration, "duration", 3*time.Second, "make calls for so long; 0: --iterations alone")
	fs.IntVar(&o.Iterations, "iterations", 10, "make at least so many calls")
	fs.IntVar(&o.Concurrency, "concurrency", 1, "sessions that call side by side")
	fs.StringArrayVar(&inputs, "inputs", nil, "safetensors or npz file keyed input_0, input_1, ... in flattened order, or by name; repeated: one after another")
	fs.Uint64Var(&random, "random", 0, "make the inputs from this seed: floats normal, integers 0 or 1")
	fs.StringArrayVar(&dims, "dim", nil, "make random inputs for the program with this size: NAME=SIZE; may be repeated")
	fs.StringVar(&weights, "weights", "", weightsUsage)
	onMiss.add(c)
	fs.BoolVar(&noCompile, "no-compile", false, "never compile: exit with status 4 where that would be needed")
	f.addPlugin(c)
	f.addStore(c)
	f.addVerbosity(c)
	addJSON(c, &asJSON)
	return c
}

func runBench(c *cobra.Command, path string, f *compileFlags, oo tpuc.OpenOptions, co tpuc.CallOptions, o tpuc.BenchOptions, asJSON bool) (err error) {
	if err := exists(path); err != nil {
		return err
	}
	files, err := tpuc.OpenCalls(co)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	p := newProgress(c.ErrOrStderr(), f)
	oo.Notify, oo.Note = p.enter, p.note
	if oo.Cache, err = f.store(p.note); err != nil {
		p.stop()
		return err
	}
	m, err := tpuc.Open(c.Context(), path, oo)
	p.stop()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	r, err := tpuc.Bench(c.Context(), m, files, o)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(c.OutOrStdout(), r)
	}
	return r.Write(c.OutOrStdout())
}
