package tpu

import (
	"fmt"
	"regexp"
	"strings"

	"tpuc/tpu/pjrt"
)

// Kind says why there is no executable.
type Kind string

const (
	Refused   Kind = "refused"    // the plugin answered with an error: Code and Message are its own
	Crashed   Kind = "crashed"    // the child died
	TimedOut  Kind = "timed out"  // Request.Timeout passed
	Canceled  Kind = "canceled"   // the caller's context ended
	NotLoaded Kind = "not loaded" // the plugin could not be loaded, or has no such target
	NoChild   Kind = "no child"   // the child could not be started or is no compile child
)

// CompileError is every failure of a compile.
type CompileError struct {
	Kind       Kind
	Code       pjrt.Code // Refused and NotLoaded: the plugin's code, where it gave one
	Message    string    // the plugin's words, whole; or what happened
	Phase      Phase     // what the child was doing
	Signal     string    // Crashed by a signal: "SIGABRT"
	Log        string    // what the plugin printed, cut in the middle when long
	ModulePath string    // Crashed and TimedOut: the module that does it
	cause      error     // Canceled: the context's cause
}

// errorLines and errorBytes bound what Error shows of the plugin's words; Message has all of them.
const (
	errorLines = 12
	errorBytes = 2000
)

func (e *CompileError) Error() string {
	var b strings.Builder
	switch e.Kind {
	case Refused:
		fmt.Fprintf(&b, "the plugin refused the module: %s: ", e.Code)
	case Crashed:
		fmt.Fprintf(&b, "the plugin crashed in phase %s: ", e.Phase)
		if e.Signal != "" {
			fmt.Fprintf(&b, "%s: ", e.Signal)
		}
	case TimedOut, Canceled:
		fmt.Fprintf(&b, "compile %s in phase %s: ", e.Kind, e.Phase)
	case NotLoaded:
		b.WriteString("the plugin could not be loaded: ")
	case NoChild:
		b.WriteString("the compile child could not be started: ")
	}
	b.WriteString(firstLines(e.Message))
	if e.ModulePath != "" {
		fmt.Fprintf(&b, "\n  the module that does it: %s", e.ModulePath)
	}
	return b.String()
}

func (e *CompileError) Unwrap() error { return e.cause }

// firstLines shortens the plugin's words for a person.
func firstLines(s string) string {
	s = strings.TrimSpace(s)
	lines := strings.SplitN(s, "\n", errorLines+1)
	cut := len(lines) > errorLines
	if cut {
		s = strings.Join(lines[:errorLines], "\n")
	}
	if len(s) > errorBytes {
		s, cut = strings.ToValidUTF8(s[:errorBytes], ""), true
	}
	if cut {
		s += " ..."
	}
	return s
}

var (
	// goSignal is the line the Go runtime prints when a signal ends the child: plugins run inside it.
	goSignal = regexp.MustCompile(`(?m)^(?:\[signal )?(SIG[A-Z]+): `)
	// fatalLine is a fatal log line of absl or glog, for example "F1130 20:27:43.1 1 file.cc:1] Check failed: ...".
	fatalLine = regexp.MustCompile(`(?m)^F\d{4} .*$|^.*Check failed: .*$|^terminate called .*$`)
)

// crashMessage finds the words that say most about a crash in what the child printed.
func crashMessage(log, status string) string {
	if m := fatalLine.FindString(log); m != "" {
		return m
	}
	return status
}

// signalName finds the signal in what the child printed, "" when it was none.
func signalName(log string) string {
	if m := goSignal.FindStringSubmatch(log); m != nil {
		return m[1]
	}
	return ""
}
