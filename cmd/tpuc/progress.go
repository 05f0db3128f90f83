package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"tpuc"
)

// progress tells on standard error how long a compile has been in its phase: in place on a terminal, otherwise in a line now and then.
// Its methods may be called from several goroutines at once.
type progress struct {
	w       io.Writer
	tty     bool
	quiet   bool
	verbose bool
	tick    time.Duration
	stopped chan struct{}
	done    sync.WaitGroup

	mu    sync.Mutex
	phase string // "" while another part of the program writes: a download has a meter of its own
	start time.Time
	shown bool // there is a line to erase
}

const (
	ttyTick  = time.Second
	ttyAfter = 900 * time.Millisecond // a phase that takes less is not shown
	lineTick = 30 * time.Second       // where there is no terminal
)

// newProgress starts to watch. stop must be called.
func newProgress(w io.Writer, f *compileFlags) *progress {
	p := &progress{w: w, quiet: f.quiet, verbose: f.verbose, tick: lineTick, stopped: make(chan struct{})}
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		p.tty, p.tick = true, ttyTick
	}
	if !p.quiet {
		p.done.Go(p.watch)
	}
	return p
}

// enter is told the phases of a compile.
func (p *progress) enter(phase string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	p.phase, p.start = phase, time.Now()
	if phase == tpuc.PhaseCompile {
		p.phase = "" // the plugin is looked for, perhaps fetched; the child's phases follow
	}
	if p.verbose {
		p.say("%s", describe(phase))
	}
}

// note prints a line that is no phase.
func (p *progress) note(line string) {
	if p.quiet {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	p.say("%s", line)
}

// stop ends the watching and leaves a clean line.
func (p *progress) stop() {
	p.mu.Lock()
	p.erase()
	p.phase = ""
	p.mu.Unlock()
	close(p.stopped)
	p.done.Wait()
}

func (p *progress) watch() {
	t := time.NewTicker(p.tick)
	defer t.Stop()
	for {
		select {
		case <-p.stopped:
			return
		case <-t.C:
			p.show()
		}
	}
}

func (p *progress) show() {
	p.mu.Lock()
	defer p.mu.Unlock()
	passed := time.Since(p.start)
	switch {
	case p.phase == "":
	case !p.tty:
		p.say("%s: %s so far", describe(p.phase), passed.Round(time.Second))
	case passed >= ttyAfter:
		p.erase()
		fmt.Fprintf(p.w, "%s: %s", describe(p.phase), passed.Round(time.Second))
		p.shown = true
	}
}

// say prints a line. Progress is a courtesy: a closed standard error stops nothing.
func (p *progress) say(format string, args ...any) { fmt.Fprintf(p.w, format+"\n", args...) }

func (p *progress) erase() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K") // back to the line's start, and erase to its end
		p.shown = false
	}
}

// describe is a phase in words.
func describe(phase string) string {
	if of, ok := strings.CutPrefix(phase, tpuc.PhaseCompile+"/"); ok {
		return "compile, in the plugin (" + of + ")"
	}
	return phase
}
