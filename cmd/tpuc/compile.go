package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tpuc"
)

// textPhases leave text, which goes to standard output unless a file is named.
var textPhases = []string{tpuc.PhaseImport, tpuc.PhaseSimplify, tpuc.PhaseLower}

// sizesUsage is the help of --dim where it takes several sizes.
const sizesUsage = "give a symbolic dimension its sizes: NAME=SIZE[,SIZE...], NAME a symbol (s77) or INPUT.DIM (input_ids.1); may be repeated"

func newCompile() *cobra.Command {
	f := &compileFlags{}
	var o tpuc.CompileOptions
	var asJSON bool
	var examples []string
	c := &cobra.Command{
		Use:   "compile MODEL",
		Short: "Compile a model into an artifact",
		Long: `Compile a model into an artifact (.tpuc) that runs without Python and without compiling.

MODEL is an archive that torch.export.save wrote (.pt2, .pt2.gz), StableHLO as JAX writes it (.mlir, .mlirbc),
or a module in tpuc's textual form (.tpu). It may be an artifact (.tpuc) that was compiled from an archive, for other sizes or another
target: it holds the graph, and no archive is needed.
No TPU is needed to compile for one. Unless --embed-weights is given the artifact names the model's file and
reads the weights from there when it is opened: keep both in one folder, or give tpuc run --weights.

A symbolic dimension may have several sizes: the artifact gets a program for each size of the one with each of the others,
and a call runs the program of its shapes.

What was compiled is kept (docs/cache.md): a model that has not changed is not compiled again, and a model whose program is the same,
such as one with other weights, takes the executable from there.`,
		Example: `  tpuc compile model.pt2 -o model.tpuc
  tpuc compile model.pt2 --target v6e:1x1 --dim input_ids.1=512 --embed-weights
  tpuc compile model.pt2 --dim batch=1,4,8 --dim seq=128,512
  tpuc compile model.tpuc --dim seq=256 -o longer.tpuc
  tpuc compile model.pt2 --examples inputs.safetensors,outputs.safetensors
  tpuc compile model.pt2 --to lower | less
  tpuc compile model.pt2 --dump stages`,
		Args: argCount(1, "one MODEL"),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if o.Dims, err = parseSizes(f.dims); err != nil {
				return err
			}
			if o.Target, err = f.parseTarget(); err != nil {
				return err
			}
			if !c.Flags().Changed("target") {
				if o.Target, err = tpuc.DefaultTarget(args[0]); err != nil {
					return err
				}
			}
			if o.Shapes.Custom, err = tpuc.LoadCustomOps(f.custom); err != nil {
				return err
			}
			for _, e := range examples {
				in, out, _ := strings.Cut(e, ",")
				o.Examples = append(o.Examples, tpuc.Example{Inputs: in, Outputs: out})
			}
			if err := checkOutput(&o, args[0], asJSON); err != nil {
				return err
			}
			if err := f.check(); err != nil {
				return err
			}
			o.EmbedWeights = f.embed
			if o.EmbedWeights && o.DigestWeights {
				return usagef("--embed-weights and --digest-weights are given, wanted one of them: what is embedded is checked by the artifact itself")
			}
			if o.Jobs < 1 {
				return usagef("--jobs is %d, wanted 1 or more", o.Jobs)
			}
			return runCompile(c, args[0], f, o, asJSON)
		},
	}
	f.add(c)
	f.addCacheSize(c)
	c.Flags().Lookup("dim").Usage = sizesUsage
	c.Flags().StringVarP(&o.Output, "output", "o", "", "file to write (default: the model's name with .tpuc, in the present folder); - is standard output for text")
	c.Flags().StringVar(&o.To, "to", tpuc.PhasePack, "stop after this phase and write what it leaves: "+strings.Join(tpuc.Phases, ", "))
	c.Flags().StringVar(&o.DumpDir, "dump", "", "write the text after import, every pass and lowering into this folder")
	c.Flags().IntVarP(&o.Jobs, "jobs", "j", 1, "programs to compile side by side, of a model that has several")
	c.Flags().StringArrayVar(&examples, "examples", nil, "keep a call in the artifact for tpuc run --self-test: INPUTS[,OUTPUTS], files as of tpuc run --inputs and --expected; repeated: calls in order")
	f.addEmbed(c)
	c.Flags().BoolVar(&o.DigestWeights, "digest-weights", false, "record the SHA-256 of every tensor that stays in the model's file, which is read whole for that: tpuc run checks them where it finds the file beside the artifact")
	addJSON(c, &asJSON)
	complete(c, "to", func() []string { return tpuc.Phases })
	return c
}

// checkOutput finds out where to write.
func checkOutput(o *tpuc.CompileOptions, model string, asJSON bool) error {
	if err := oneOf("phase", o.To, tpuc.Phases); err != nil {
		return err
	}
	text := slices.Contains(textPhases, o.To)
	toStdout := o.Output == "-" || text && o.Output == ""
	switch {
	case toStdout && !text:
		return usagef("-o -, wanted a file: what phase %s leaves is no text", o.To)
	case toStdout && asJSON:
		return usagef("--json and the text of phase %s would both go to standard output, wanted -o FILE", o.To)
	case toStdout:
		o.Output = ""
	case o.Output == "" && o.To == tpuc.PhasePack && strings.HasSuffix(model, ".tpuc"):
		return usagef("-o is missing, wanted the file to write beside the artifact that it is made from")
	case o.Output == "" && o.To == tpuc.PhasePack:
		o.Output = tpuc.ModelName(model) + ".tpuc"
	}
	if o.Output != "" && filepath.Clean(o.Output) == filepath.Clean(model) {
		return usagef("-o %s would replace the model, wanted another file", o.Output)
	}
	return nil
}

func runCompile(c *cobra.Command, model string, f *compileFlags, o tpuc.CompileOptions, asJSON bool) error {
	p := newProgress(c.ErrOrStderr(), f)
	o.Plugin, o.Timeout, o.Notify = f.plugin(), f.timeout, p.enter
	stdout := o.Output == "" && slices.Contains(textPhases, o.To)
	if stdout {
		o.Text = c.OutOrStdout()
	}
	var err error
	if o.Cache, err = f.store(p.note); err != nil {
		p.stop()
		return err
	}
	report, err := tpuc.Compile(c.Context(), model, o)
	p.stop()
	if err != nil {
		return err
	}
	if f.verbose {
		showWhy(c.ErrOrStderr(), report.Cache)
	}
	showLog(c.ErrOrStderr(), report.Log, f.verbose)
	showNotes(c.ErrOrStderr(), report.Notes)
	switch {
	case stdout || f.quiet && !asJSON:
		return nil
	case asJSON:
		return writeJSON(c.OutOrStdout(), report)
	}
	return report.Write(c.OutOrStdout())
}

// showWhy prints what differs from the nearest program in the cache, of those that were compiled.
func showWhy(w io.Writer, r *tpuc.CacheReport) {
	if r == nil {
		return
	}
	for _, p := range r.Programs {
		if len(p.Why) > 0 {
			fmt.Fprintf(w, "compiled, because the nearest program in the cache differs: %s\n", strings.Join(p.Why, "; "))
		}
	}
}

// showNotes prints what the user should know.
func showNotes(w io.Writer, notes []string) {
	for _, n := range notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
}

// showLog prints what the plugin printed, whole when asked for.
func showLog(w io.Writer, log string, whole bool) {
	if !whole || strings.TrimSpace(log) == "" {
		return
	}
	fmt.Fprintf(w, "the plugin printed:\n%s\n", indent(log))
}

// headLines and tailLines are what is shown of a plugin's output after a failure: it begins with the cause and ends with what came of it.
const (
	headLines = 20
	tailLines = 10
)

// excerpt is a log without its middle, when it is long.
func excerpt(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	if n := len(lines) - headLines - tailLines; n > 1 {
		lines = slices.Concat(lines[:headLines], []string{fmt.Sprintf("... %d lines ...", n)}, lines[len(lines)-tailLines:])
	}
	return strings.Join(lines, "\n")
}

func indent(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n  ")
}
