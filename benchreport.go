package tpuc

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"tpuc/internal/plural"
)

// Write prints the report for people.
func (r *BenchReport) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "model\t%s for %s, plugin %s\n", r.Model, r.Target, r.Plugin)
	name := "inputs"
	for _, p := range r.Inputs {
		fmt.Fprintf(t, "%s\t%s : %s\n", name, p.Name, p.Type)
		name = ""
	}
	fmt.Fprintf(t, "calls\t%d in %.3f s by %s: %.1f a second\n", r.Calls, r.Wall, plural.Of(r.Concurrency, "session"), r.Throughput)
	if s := r.Stats; s.Padded+s.Compiled+s.Recompiled > 0 {
		fmt.Fprintf(t, "programs\t%s padded, %s compiled, %d of them released, %d compiled again\n", plural.Of(s.Padded, "call"), plural.Of(s.Compiled, "program"), s.Released, s.Recompiled)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tmin\tmean\tp50\tp90\tp95\tp99\tmax\t")
	row := func(name string, d Distribution) {
		fmt.Fprintf(t, "%s\t", name)
		for _, s := range []float64{d.Min, d.Mean, d.P50, d.P90, d.P95, d.P99, d.Max} {
			fmt.Fprintf(t, "%s\t", seconds3(s))
		}
		fmt.Fprintln(t)
	}
	row("latency", r.Latency)
	row("upload", r.Parts.Upload)
	row("dispatch", r.Parts.Dispatch)
	row("execute", r.Parts.Execute)
	row("download", r.Parts.Download)
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nlatency is of calls as they are; the parts are of %s, each part waited for, the dispatch within execute\n", plural.Of(r.Parts.Calls, "call"))
	return err
}

// seconds3 is a time with three digits.
func seconds3(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g us", seconds*1e6)
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", seconds*1e3)
	}
	return fmt.Sprintf("%.3g s", seconds)
}
