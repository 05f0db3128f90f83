package plugin

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// reporter tells the user what takes long: a bar on a terminal, otherwise one line at the start, at the end and now and then.
type reporter struct {
	w     io.Writer
	tty   bool
	quiet bool
	every time.Duration // between lines when w is no terminal
}

func (o Options) reporter() *reporter {
	r := &reporter{w: o.Progress, quiet: o.Quiet, every: 10 * time.Second}
	if f, ok := o.Progress.(*os.File); ok {
		r.tty = term.IsTerminal(int(f.Fd()))
	}
	return r
}

// say prints one line unless quiet.
func (r *reporter) say(format string, args ...any) {
	if !r.quiet {
		// Notes are a courtesy: a closed standard error stops nothing.
		_, _ = fmt.Fprintf(r.w, format+"\n", args...)
	}
}

// meter counts the bytes of one transfer. It is an io.Writer for io.MultiWriter.
type meter struct {
	r     *reporter
	label string
	total int64
	n     int64
	shown time.Time
	begun time.Time
	bar   *progressbar.ProgressBar // nil when w is no terminal or quiet
}

// start opens a meter of total bytes, of which done are there already.
func (r *reporter) start(label string, total, done int64) *meter {
	now := time.Now()
	m := &meter{r: r, label: label, total: total, n: done, shown: now, begun: now}
	switch {
	case r.quiet: // counts, shows nothing
	case r.tty:
		m.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(r.w),
			progressbar.OptionSetDescription(label),
			progressbar.OptionShowBytes(true),
			progressbar.OptionThrottle(100*time.Millisecond), // a write is a mebibyte: hundreds a second
			progressbar.OptionClearOnFinish(),                // what stays on the screen is the note, not the bar
		)
		_ = m.bar.Set64(done)
	case done > 0:
		r.say("%s: resumed at %s of %s", label, bytesText(done), bytesText(total))
	default:
		r.say("%s: %s", label, bytesText(total))
	}
	return m
}

func (m *meter) Write(p []byte) (int, error) {
	m.set(m.n + int64(len(p)))
	return len(p), nil
}

// set moves the meter, back to zero too when a transfer starts again.
func (m *meter) set(n int64) {
	m.n = n
	if m.bar != nil {
		_ = m.bar.Set64(n)
		return
	}
	if now := time.Now(); now.Sub(m.shown) >= m.r.every {
		m.shown = now
		m.r.say("%s: %s of %s", m.label, bytesText(n), bytesText(m.total))
	}
}

// finish closes the meter; without success only the bar is cleared, the caller reports.
func (m *meter) finish(ok bool) {
	if m.bar != nil {
		_ = m.bar.Clear()
		_ = m.bar.Exit()
		return
	}
	if ok {
		m.r.say("%s: done in %.1f s", m.label, time.Since(m.begun).Seconds())
	}
}

// bytesText writes a size in the decimal units that package indexes use.
func bytesText(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d bytes", n)
}
