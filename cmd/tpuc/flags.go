package main

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tpuc"
	"tpuc/cache"
	"tpuc/internal/compare"
	"tpuc/internal/plural"
	"tpuc/passes"
	"tpuc/tpu/chip"
	"tpuc/tpu/plugin"
)

// compileFlags are those of every verb that may compile.
type compileFlags struct {
	target  string
	dims    []string
	custom  string
	cache   string
	offline bool
	timeout time.Duration
	verbose bool
	quiet   bool

	noCache, verifyDigest, embed bool
	cacheSize                    string
}

func (f *compileFlags) add(c *cobra.Command) {
	f.addTarget(c)
	addDims(c, &f.dims)
	addCustom(c, &f.custom)
	c.Flags().DurationVar(&f.timeout, "timeout", 0, "end the compile of a program after this time, such as 10m, waiting for another process that compiles it included; 0: no limit")
	f.addPlugin(c)
	f.addStore(c)
	f.addVerbosity(c)
}

// addEmbed adds the flag of verbs that make programs of artifacts: a program may have embedded weights lie otherwise.
func (f *compileFlags) addEmbed(c *cobra.Command) {
	c.Flags().BoolVar(&f.embed, "embed-weights", false, "put the weights into the artifact")
}

// addStore adds the flags of verbs that take compiled programs from the cache.
func (f *compileFlags) addStore(c *cobra.Command) {
	c.Flags().BoolVar(&f.noCache, "no-cache", false, "neither look for compiled programs in the cache nor keep them there")
	c.Flags().BoolVar(&f.verifyDigest, "verify-digest", false, "read the model's file whole to find out whether it has changed, its weights too")
}

// addCacheSize adds the flag that bounds the cache.
func (f *compileFlags) addCacheSize(c *cobra.Command) {
	c.Flags().StringVar(&f.cacheSize, "cache-size", "", "keep at most so much compiled, such as 10GB: what was not used for longest goes (default: no limit; see tpuc cache prune)")
}

// store opens the cache of compiled programs; nil where it is not wanted. note is told its warnings, and whom a compile waits for. A cache that is not to
// be had is a warning.
func (f *compileFlags) store(note func(line string)) (*tpuc.Cache, error) {
	if f.noCache {
		return nil, nil
	}
	o := tpuc.CacheOptions{Dir: f.cache, VerifyDigest: f.verifyDigest, Explain: f.verbose, Notify: note}
	if f.cacheSize != "" {
		var err error
		if o.MaxSize, err = parseBytes(f.cacheSize); err != nil {
			return nil, err
		}
	}
	c, err := tpuc.OpenCache(o)
	if err != nil && !errors.Is(err, cache.ErrNotCache) {
		note("warning: nothing is kept: " + err.Error())
		return nil, nil
	}
	return c, err
}

func (f *compileFlags) addTarget(c *cobra.Command) {
	c.Flags().StringVar(&f.target, "target", "cpu", "what to compile for, such as cpu, v6e:2x4 or v5litepod-16; see tpuc list targets")
	complete(c, "target", targetNames)
}

func (f *compileFlags) addPlugin(c *cobra.Command) {
	c.Flags().StringVar(&f.cache, "cache", "", "folder for everything that is cached, plugins too (default: $TPUC_CACHE, else tpuc in the user's cache folder)")
	c.Flags().BoolVar(&f.offline, "offline", false, "ask nothing over the network; plugins must be on this machine")
}

func (f *compileFlags) addVerbosity(c *cobra.Command) {
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "show every phase as it begins, and what the plugin prints")
	c.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "show no progress and no summary")
}

// check refuses flags that contradict each other.
func (f *compileFlags) check() error {
	switch {
	case f.verbose && f.quiet:
		return usagef("--verbose and --quiet are given, wanted one of them")
	case f.timeout < 0:
		return usagef("--timeout is %s, wanted 0 or more", f.timeout)
	case f.noCache && f.verifyDigest:
		return usagef("--no-cache and --verify-digest are given, wanted one of them")
	}
	return nil
}

func (f *compileFlags) plugin() plugin.Options {
	return plugin.Options{CacheDir: f.cache, Offline: f.offline, Quiet: f.quiet}
}

func (f *compileFlags) parseTarget() (chip.Target, error) {
	t, err := chip.Parse(f.target)
	if err != nil {
		return t, &usageError{err}
	}
	return t, nil
}

func addDims(c *cobra.Command, dims *[]string) {
	c.Flags().StringArrayVar(dims, "dim", nil, "give a symbolic dimension its size: NAME=SIZE, NAME a symbol (s77) or INPUT.DIM (input_ids.1); may be repeated")
}

func addCustom(c *cobra.Command, file *string) {
	c.Flags().StringVar(file, "custom-ops", "", "take what operators of your own compute from this .tpu file: a function an operator (docs/custom-ops.md)")
}

// parseSizes reads --dim flags with any number of sizes each.
func parseSizes(list []string) (map[string][]int64, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out, given := make(map[string][]int64), make(map[string]string)
	for _, s := range list {
		name, sizes, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return nil, usagef("--dim %q, wanted NAME=SIZE, such as s77=8", s)
		}
		if given[name] != "" {
			return nil, usagef("--dim gives %s twice, wanted all its sizes in one: --dim %s=%s,%s", name, name, given[name], sizes)
		}
		given[name] = sizes
		for _, size := range strings.Split(sizes, ",") {
			n, err := strconv.ParseInt(size, 10, 64)
			if err != nil || n < 0 {
				return nil, usagef("--dim %q, wanted NAME=SIZE with whole sizes of 0 or more, such as s77=8", s)
			}
			out[name] = append(out[name], n)
		}
	}
	return out, nil
}

// parseDims reads --dim flags with one size each.
func parseDims(list []string) (map[string]int64, error) {
	seen := make(map[string]bool)
	for _, s := range list {
		name, _, _ := strings.Cut(s, "=")
		if seen[name] {
			return nil, usagef("--dim gives %s twice, wanted one size", name)
		}
		seen[name] = true
	}
	sizes, err := parseSizes(list)
	if err != nil || sizes == nil {
		return nil, err
	}
	out := make(map[string]int64)
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		if len(sizes[name]) != 1 {
			return nil, usagef("--dim gives %s %d sizes, wanted one", name, len(sizes[name]))
		}
		out[name] = sizes[name][0]
	}
	return out, nil
}

// callFlags are those of the verbs that run a model.
type callFlags struct {
	inputs, expected, state []string
	random                  uint64
	tolerance, rtol, atol   float64
	weights                 string
	output                  string
	json                    bool
	selfTest                bool // inputs and what is expected come from the artifact
}

// weightsUsage is the help of --weights.
const weightsUsage = "take the weights from this safetensors file, .pt2 archive, checkpoint folder, or artifact that embeds them, instead"

func (f *callFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.StringArrayVar(&f.inputs, "inputs", nil, "safetensors or npz file keyed input_0, input_1, ... in flattened order, or by name; repeated: calls in order, state carried over")
	fs.Uint64Var(&f.random, "random", 0, "make the inputs of one call from this seed: floats normal, integers 0 or 1")
	fs.StringArrayVar(&f.expected, "expected", nil, "file of expected outputs, keyed output_0, ... or by name; one a call")
	fs.StringArrayVar(&f.state, "expected-state", nil, "file of the state and changed inputs that a call must leave, keyed by name or input_<i>; one a call")
	fs.Float64Var(&f.tolerance, "tolerance", 0, "allow max|got-want| up to T*(1+max|want|) in each output (default: 2e-5 for f32 and f64, 2e-2 for bf16 and f16)")
	fs.Float64Var(&f.rtol, "rtol", 0, "with --atol, allow |got-want| up to ATOL + RTOL*|want| in each element instead, as numpy.allclose does")
	fs.Float64Var(&f.atol, "atol", 0, "see --rtol")
	fs.StringVar(&f.weights, "weights", "", weightsUsage)
	fs.StringVarP(&f.output, "output", "o", "", "write the outputs to this safetensors file, keyed output_<i>; further calls get _2, _3 before the extension")
	addJSON(c, &f.json)
}

// options checks the flags and puts them together.
func (f *callFlags) options(c *cobra.Command) (tpuc.CallOptions, error) {
	changed := c.Flags().Changed
	o := tpuc.CallOptions{Inputs: f.inputs, Expected: f.expected, ExpectedState: f.state, Output: f.output}
	calls := max(len(f.inputs), 1)
	elementwise := changed("rtol") || changed("atol")
	switch {
	case f.selfTest && (changed("random") || len(f.inputs)+len(f.expected)+len(f.state) > 0 || f.output != ""):
		return o, usagef("--self-test takes inputs and what is expected from the artifact, wanted no --inputs, --random, --expected, --expected-state or --output")
	case !f.selfTest && changed("random") == (len(f.inputs) > 0):
		return o, usagef("inputs are missing or given in two ways, wanted --inputs FILE (once a call) or --random SEED")
	case len(f.expected) > calls:
		return o, usagef("%d --expected for %s, wanted at most one a call", len(f.expected), plural.Of(calls, "call"))
	case len(f.state) > calls:
		return o, usagef("%d --expected-state for %s, wanted at most one a call", len(f.state), plural.Of(calls, "call"))
	case changed("tolerance") && elementwise:
		return o, usagef("--tolerance and --rtol or --atol are given, wanted one rule")
	case (changed("tolerance") || elementwise) && len(f.expected)+len(f.state) == 0 && !f.selfTest:
		return o, usagef("a tolerance is given but nothing to compare with, wanted --expected or --expected-state too")
	case !(f.tolerance >= 0 && f.rtol >= 0 && f.atol >= 0):
		return o, usagef("a tolerance is negative or not a number, wanted 0 or more")
	case strings.HasSuffix(f.output, ".npz"):
		return o, usagef("--output %s, wanted a safetensors file: npz is only read", f.output)
	}
	if changed("random") {
		o.Random = &f.random
	}
	if changed("tolerance") || elementwise {
		o.Tolerance = &compare.Tolerance{RelToMax: f.tolerance, Elementwise: elementwise, Rtol: f.rtol, Atol: f.atol}
	}
	return o, nil
}

// open opens what the calls are made with: files, or the examples of the artifact at path.
func (f *callFlags) open(path string, o tpuc.CallOptions) (*tpuc.Calls, error) {
	if f.selfTest {
		return tpuc.OpenExamples(path, o.Tolerance)
	}
	return tpuc.OpenCalls(o)
}

// report prints what calls gave, those before an error included, and hands the error on.
func (f *callFlags) report(w io.Writer, r *tpuc.RunReport, err error) error {
	if f.json {
		return errors.Join(err, writeJSON(w, r))
	}
	return errors.Join(err, r.Write(w))
}

func addJSON(c *cobra.Command, on *bool) {
	c.Flags().BoolVar(on, "json", false, "print JSON instead of text")
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// complete offers the values of a flag to shells.
func complete(c *cobra.Command, flag string, values func() []string) {
	err := c.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values(), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil { // there is no such flag: a mistake here
		panic(err)
	}
}

func targetNames() []string {
	var out []string
	for _, e := range chip.List() {
		out = append(out, e.Target.String())
	}
	return out
}

func passNames() []string {
	var out []string
	for _, p := range passes.All() {
		out = append(out, p.Name)
	}
	return out
}

// oneOf refuses a word that is not in the list, with those that look like it.
func oneOf(what, word string, list []string) error {
	if slices.Contains(list, word) {
		return nil
	}
	if near := nearest(word, list); len(near) > 0 {
		return usagef("%s %q is not known, did you mean %s? All: %s", what, word, strings.Join(near, " or "), strings.Join(list, ", "))
	}
	return usagef("%s %q is not known, wanted one of %s", what, word, strings.Join(list, ", "))
}

// exists refuses a file that is not there before anything else is done.
func exists(path string) error {
	_, err := os.Stat(path)
	return err
}

// nearest are the words of the list that a slip or two make of word.
func nearest(word string, list []string) []string {
	var out []string
	for _, w := range list {
		if d := distance(word, w); d <= max(1, len(w)/3) || len(word) > 2 && strings.HasPrefix(w, word) {
			out = append(out, w)
		}
	}
	return out
}

// distance is the number of letters that are wrong, missing, too many or swapped with their neighbour (optimal string alignment).
func distance(a, b string) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			differ := 1
			if a[i-1] == b[j-1] {
				differ = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+differ)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
