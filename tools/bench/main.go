// Command bench compares the start-up of tpuc run with that of its peers, in one run on one machine: the time from the start of a process to its
// first output, of a model whose compiled form lies ready on disk.
//
// usage: go run ./tools/bench [-tpuc FILE] [-python FILE] [-jax FILE] [-iree DIR] [-n 15] FOLDER
//
// FOLDER is what model.py made. Contenders: "probe", which is this program with the PJRT calls alone (library, executable, weights in place, one run), of
// either program of tpuc's; "tpuc run", with embedded weights and by reference, each beside the probe of its program; and, where they are named, JAX
// with a warm persistent cache (-jax: a Python that has it), AOTInductor (-python: a Python with torch) and iree-run-module (-iree: the folder of
// IREE's programs). Every contender prints the mean of the outputs, and one that differs from torch's is an error. The runs go round by round, so that all
// of them meet the machine in the same states. Private memory is looked at in a run of its own.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"tpuc/frontend/weights"
	"tpuc/tpu/plugin"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "probe" {
		exit(probe(os.Args[2]))
	}
	var b bench
	flag.StringVar(&b.tpuc, "tpuc", "", "the tpuc program; empty: built from this module")
	flag.StringVar(&b.python, "python", "", "a Python with torch, for AOTInductor; empty: not measured")
	flag.StringVar(&b.jax, "jax", "", "a Python with JAX; empty: not measured")
	flag.StringVar(&b.iree, "iree", "", "folder of iree-compile and iree-run-module; empty: not measured")
	flag.IntVar(&b.runs, "n", 15, "counted runs of each")
	flag.IntVar(&b.cold, "cold", 3, "further runs after the files were dropped from the page cache")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	b.folder = flag.Arg(0)
	exit(b.run(context.Background()))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// bench is one comparison.
type bench struct {
	tpuc, python, jax, iree string
	folder                  string
	runs, cold              int
	want                    float64 // mean of torch's outputs
	contenders              []*contender
}

// contender is a command that runs the model once.
type contender struct {
	name  string
	probe *contender // what it is compared with; nil: the first contender
	args  []string
	mean  *regexp.Regexp // of the line that is printed once the outputs are there: the first group is their mean
	files []string       // what it reads, for cold runs
	anon  int64          // largest RssAnon seen, in bytes
	warm  []sample
	cold  []sample
}

// sample is what one run took.
type sample struct {
	first time.Duration // from the start of the process to the line with the outputs
	whole time.Duration // to its end
	anon  int64         // largest RssAnon seen, in bytes; 0: not looked at
}

var meanLine = regexp.MustCompile(`^mean (\S+)`)

func (b *bench) run(ctx context.Context) error {
	if err := b.prepare(ctx); err != nil {
		return err
	}
	for _, c := range b.contenders { // warms up, and is no run of the others: looking at a process slows it down
		s, err := b.measure(ctx, c, true)
		if err != nil {
			return err
		}
		c.anon = s.anon
	}
	for range b.runs {
		for _, c := range b.contenders {
			s, err := b.measure(ctx, c, false)
			if err != nil {
				return err
			}
			c.warm = append(c.warm, s)
		}
	}
	for range b.cold {
		for _, c := range b.contenders {
			if err := drop(c.files); err != nil {
				return err
			}
			s, err := b.measure(ctx, c, false)
			if err != nil {
				return err
			}
			c.cold = append(c.cold, s)
		}
	}
	return b.report(os.Stdout)
}

// prepare compiles the model for every contender, so that only loading is measured.
func (b *bench) prepare(ctx context.Context) error {
	var err error
	if b.want, err = mean(b.file("outputs.safetensors")); err != nil {
		return err
	}
	if b.tpuc == "" {
		b.tpuc = b.file("tpuc")
		if err := command(ctx, "go", "build", "-o", b.tpuc, "./cmd/tpuc"); err != nil {
			return err
		}
	}
	lib, err := plugin.Locate(ctx, plugin.CPU, plugin.Options{})
	if err != nil {
		return err
	}
	model, inputs := b.file("model.pt2"), b.file("inputs.safetensors")
	reference, embedded := b.file("model.tpuc"), b.file("embedded.tpuc")
	if err := command(ctx, b.tpuc, "compile", "-q", model, "-o", reference); err != nil {
		return err
	}
	if err := command(ctx, b.tpuc, "compile", "-q", model, "-o", embedded, "--embed-weights"); err != nil {
		return err
	}
	for path, folder := range map[string]string{reference: "probe-reference", embedded: "probe"} {
		if err := writeProbe(path, model, inputs, lib.Path, b.file(folder)); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	// tpuc's table has the mean in the last column, and only then ends the line.
	table := regexp.MustCompile(`mean (\S+)`)
	probe := func(name, folder string) *contender {
		return &contender{name: name, args: []string{self, "probe", b.file(folder)}, mean: meanLine,
			files: []string{lib.Path, filepath.Join(b.file(folder), "weights.bin"), filepath.Join(b.file(folder), "executable.bin")}}
	}
	run := func(name string, probe *contender, path string, files ...string) *contender {
		return &contender{name: name, probe: probe, args: []string{b.tpuc, "run", path, "--inputs", inputs}, mean: table, files: append(files, lib.Path, path)}
	}
	bare, bareReference := probe("probe, embedded's program", "probe"), probe("probe, by reference's program", "probe-reference")
	b.contenders = []*contender{
		bare, run("tpuc run, weights embedded", bare, embedded),
		bareReference, run("tpuc run, weights by reference", bareReference, reference, model),
	}
	if b.iree != "" {
		c, err := b.prepareIREE(ctx)
		if err != nil {
			return err
		}
		b.contenders = append(b.contenders, c)
	}
	if b.jax != "" {
		b.contenders = append(b.contenders, &contender{name: "JAX, persistent cache", args: []string{b.jax, "tools/bench/jax_run.py", b.folder}, mean: meanLine,
			files: []string{b.file("weights.safetensors")}})
	}
	if b.python != "" {
		b.contenders = append(b.contenders, &contender{name: "AOTInductor", args: []string{b.python, "tools/bench/aoti_run.py", b.folder}, mean: meanLine,
			files: []string{b.file("model.aoti.pt2")}})
	}
	return nil
}

func (b *bench) file(name string) string { return filepath.Join(b.folder, name) }

// prepareIREE compiles tpuc's StableHLO with iree-compile and gives the weights as one raw file an argument.
func (b *bench) prepareIREE(ctx context.Context) (*contender, error) {
	program, module := b.file("program.mlir"), b.file("model.vmfb")
	if err := command(ctx, b.tpuc, "compile", b.file("model.pt2"), "--embed-weights", "--to", "lower", "-o", program); err != nil {
		return nil, err
	}
	if err := command(ctx, filepath.Join(b.iree, "iree-compile"), "--iree-input-type=stablehlo", "--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu",
		"--iree-llvmcpu-target-cpu=host", program, "-o", module); err != nil {
		return nil, err
	}
	args, err := readArguments(b.file("probe"))
	if err != nil {
		return nil, err
	}
	c := &contender{name: "iree-run-module", files: []string{module}, mean: meanLine}
	outputs := b.file("iree-output.bin")
	c.args = []string{filepath.Join(b.iree, "iree-run-module"), "--device=local-task", "--module=" + module, "--function=main", "--output=@" + outputs}
	for i, a := range args {
		file := b.file(fmt.Sprintf("probe/argument_%d.bin", i))
		if err := a.write(b.file("probe"), file); err != nil {
			return nil, err
		}
		c.args = append(c.args, fmt.Sprintf("--input=%s=@%s", a.shape("x"), file))
		c.files = append(c.files, file)
	}
	return c, nil
}

// measure runs c once and checks what it computed. With watch it looks at the memory meanwhile.
func (b *bench) measure(ctx context.Context, c *contender, watch bool) (sample, error) {
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return sample{}, err
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return sample{}, err
	}
	done := make(chan int64, 1)
	if watch {
		go func() { done <- watchAnon(cmd.Process.Pid) }()
	} else {
		done <- 0
	}
	var s sample
	got := math.NaN()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if m := c.mean.FindStringSubmatch(lines.Text()); m != nil && s.first == 0 {
			s.first = time.Since(start)
			if got, err = strconv.ParseFloat(m[1], 64); err != nil {
				return s, fmt.Errorf("%s: mean %q: %w", c.name, m[1], err)
			}
		}
	}
	err = errors.Join(lines.Err(), cmd.Wait())
	s.whole = time.Since(start)
	s.anon = <-done
	if err != nil {
		return s, fmt.Errorf("%s: %w\n%s", c.name, err, stderr.String())
	}
	if c.name == "iree-run-module" { // it writes a file; its end is when the outputs are there
		s.first = s.whole
		got, err = meanOf(b.file("iree-output.bin"))
		if err != nil {
			return s, err
		}
	}
	if !(math.Abs(got-b.want) <= 1e-4*max(1, math.Abs(b.want))) {
		return s, fmt.Errorf("%s: the outputs' mean is %g, wanted torch's %g", c.name, got, b.want)
	}
	return s, nil
}

// watchAnon is the largest RssAnon of a process, in bytes, looked at until its end.
func watchAnon(pid int) int64 {
	most := int64(0)
	for {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return most
		}
		at := strings.Index(string(data), "RssAnon:")
		if at < 0 {
			return most // it has ended
		}
		var kb int64
		if _, err := fmt.Sscanf(string(data[at:]), "RssAnon: %d kB", &kb); err == nil {
			most = max(most, kb<<10)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// drop asks the kernel to forget files.
func drop(files []string) error {
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		err = errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close())
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (b *bench) report(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tfirst output, ms\tmin\tmax\tover probe\tcold\twhole process\tRssAnon, MB\t")
	for _, c := range b.contenders {
		base := b.contenders[0]
		if c.probe != nil {
			base = c.probe
		}
		firsts := make([]float64, len(c.warm))
		for i, s := range c.warm {
			firsts[i] = first(s)
		}
		fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%.0f\t%+.0f\t%.0f\t%.0f\t%.0f\t\n", c.name, median(c.warm, first), slices.Min(firsts), slices.Max(firsts),
			median(c.warm, first)-median(base.warm, first), median(c.cold, first), median(c.warm, func(s sample) float64 { return ms(s.whole) }),
			float64(c.anon)/1e6)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	size, err := os.Stat(b.file("probe/weights.bin"))
	if err == nil {
		fmt.Fprintf(w, "medians of %d runs, page cache warm; cold: of %d runs; weights %.0f MB\n", b.runs, b.cold, float64(size.Size())/1e6)
	}
	return err
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func first(s sample) float64 { return ms(s.first) }

func median(samples []sample, of func(sample) float64) float64 {
	if len(samples) == 0 {
		return math.NaN()
	}
	xs := make([]float64, len(samples))
	for i, s := range samples {
		xs[i] = of(s)
	}
	slices.Sort(xs)
	return (xs[(len(xs)-1)/2] + xs[len(xs)/2]) / 2
}

// mean is that of the one output in a safetensors file.
func mean(path string) (float64, error) {
	src, err := weights.Open(path)
	if err != nil {
		return 0, err
	}
	defer src.Close()
	x, err := src.Load("output_0")
	if err != nil {
		return 0, err
	}
	return average(x.Floats()), nil
}

func average(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// meanOf is the mean of a file of f32.
func meanOf(path string) (float64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return average(floats(data)), nil
}

func command(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args[:min(len(args), 4)], " "), err, out)
	}
	return nil
}

// readJSON reads what the preparation wrote.
func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}
