// Package plugin finds, fetches, pins and verifies the PJRT plugins that compile and run programs.
//
// It owns the table of pinned plugins, the search order, the download from a Python package index as the machine's pip is
// configured, and the unpacked copies under the user's cache directory. It never loads a plugin, never runs pip or Python,
// and trusts no index: what is unpacked has the size and the SHA-256 digest that the table names.
package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Kind names what a plugin drives: "cpu" or "tpu".
type Kind string

const (
	CPU Kind = "cpu"
	TPU Kind = "tpu"
)

// EnvLibrary names a local library or wheel, or a path list of those and of directories that hold them, to be used
// before anything else.
const EnvLibrary = "PJRT_PLUGIN_LIBRARY_PATH"

// EnvCache names the base directory of everything tpuc caches; the default is "tpuc" under the user's cache directory.
const EnvCache = "TPUC_CACHE"

// Plugin is a PJRT library on this machine whose bytes are known.
type Plugin struct {
	Kind    Kind
	Path    string // absolute path of the shared library
	Digest  string // SHA-256 of the library, lower-case hex
	Size    int64  // bytes of the library
	Name    string // package name; the file's base name for an unpinned local library
	Version string // package version; empty for an unpinned local library
	Licence string // as the package's metadata names it; empty for an unpinned local library
	Source  string // where the bytes came from, in words, without credentials
	Pinned  bool   // Digest is the one in the table
}

// Options say where to look and how to report. The zero value does what pip and the environment say.
type Options struct {
	CacheDir string    // base directory; overrides TPUC_CACHE and the user's cache directory
	Library  string    // a local library or wheel; overrides PJRT_PLUGIN_LIBRARY_PATH
	Offline  bool      // nothing is asked over the network; local find-links directories are still read
	Quiet    bool      // no progress and no notes
	Progress io.Writer // progress and notes; nil means standard error

	// Lookup reads an environment variable; nil means os.LookupEnv.
	Lookup func(string) (string, bool)

	os, arch string        // platform, for tests; empty means this machine's
	etc      string        // stands for /etc in tests
	pins     []Pin         // stands for the table in tests
	backoff  time.Duration // first pause between attempts; zero means the default
}

// PlatformError says that no pinned plugin exists for this operating system and processor.
type PlatformError struct {
	Kind     Kind
	OS, Arch string // as runtime.GOOS and runtime.GOARCH spell them
}

func (e *PlatformError) Error() string {
	return fmt.Sprintf("%s plugin: none for %s/%s: plugins exist for linux/amd64 only; inspect, opt, eval and check work here; "+
		"for compile and run use a linux/amd64 machine, or name a plugin of your own in %s", e.Kind, e.OS, e.Arch, EnvLibrary)
}

// AbsentError says that the plugin is not on this machine and could not be fetched, why, and how to get it by hand.
type AbsentError struct {
	Pin     Pin
	Offline bool     // the network was forbidden by Options
	Tried   []string // one line a place, in order
	Cause   error    // the last place's failure; may be nil
}

func (e *AbsentError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s plugin: %s %s is not on this machine and ", e.Pin.Kind, e.Pin.Name, e.Pin.Version)
	if e.Offline {
		b.WriteString("offline forbids fetching it")
	} else {
		b.WriteString("could not be fetched")
	}
	for _, t := range e.Tried {
		b.WriteString("\n  " + strings.ReplaceAll(t, "\n", "\n    "))
	}
	fmt.Fprintf(&b, "\nto get it by hand, with a network:\n  %s\nthen here:\n  %s=DIR/%s", e.Pin.PipCommand(), EnvLibrary, e.Pin.Wheel)
	return b.String()
}

func (e *AbsentError) Unwrap() error { return e.Cause }

// Locate returns the plugin of the kind, fetching it when this machine has none. It looks at, in order: the library of
// Options or PJRT_PLUGIN_LIBRARY_PATH; the unpacked copy in the cache; pip's find-links; the package index. Errors are
// *PlatformError, *AbsentError, the context's, or of the local file named. It is safe to call at once from several
// goroutines and processes: one fetches and the others wait.
func Locate(ctx context.Context, kind Kind, opts Options) (*Plugin, error) {
	o := opts.withDefaults()
	pin, err := o.pin(kind)
	if err != nil {
		return nil, err
	}
	if p, err := o.local(ctx, pin); p != nil || err != nil {
		return p, err
	}
	if o.os != pin.OS || o.arch != pin.Arch {
		return nil, &PlatformError{Kind: kind, OS: o.os, Arch: o.arch}
	}
	s, err := o.store()
	if err != nil {
		return nil, err
	}
	if p := s.present(pin); p != nil {
		return p, nil
	}
	return s.fetch(ctx, pin, o)
}

// Verify hashes the whole library again and compares it with Digest.
func (p *Plugin) Verify(ctx context.Context) error {
	got, n, err := hashFile(ctx, p.Path)
	if err != nil {
		return fmt.Errorf("%s plugin: %w", p.Kind, err)
	}
	if got != p.Digest {
		return fmt.Errorf("%s plugin: %s has changed: sha256 is %s (%d bytes), want %s (%d bytes); remove its directory and it is fetched again",
			p.Kind, p.Path, got, n, p.Digest, p.Size)
	}
	return nil
}

// withDefaults fills every field that has a default, so that the rest of the package reads none of them twice.
func (o Options) withDefaults() Options {
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	if o.Lookup == nil {
		o.Lookup = os.LookupEnv
	}
	if o.os == "" {
		o.os, o.arch = runtime.GOOS, runtime.GOARCH
	}
	if o.etc == "" {
		o.etc = "/etc"
	}
	if o.pins == nil {
		o.pins = Pins
	}
	return o
}

func (o Options) pin(kind Kind) (Pin, error) {
	var kinds []string
	for _, p := range o.pins {
		if p.Kind == kind {
			return p, nil
		}
		kinds = append(kinds, string(p.Kind))
	}
	return Pin{}, fmt.Errorf("plugin kind %q is not known, want one of %s", kind, strings.Join(kinds, ", "))
}

// env returns the variable's value, empty when it is unset.
func (o Options) env(name string) string {
	v, _ := o.Lookup(name)
	return v
}

// CacheDir is the base directory of everything tpuc caches, absolute. It may not exist yet.
func CacheDir(opts Options) (string, error) { return opts.withDefaults().base() }

// base is the cache's base directory, absolute.
func (o Options) base() (string, error) {
	dir := o.CacheDir
	if dir == "" {
		dir = o.env(EnvCache)
	}
	if dir == "" {
		d, err := o.userCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(d, "tpuc")
	}
	return filepath.Abs(dir)
}

// userCacheDir is os.UserCacheDir over Lookup, for systems that follow the XDG directories.
func (o Options) userCacheDir() (string, error) {
	if o.os == "windows" || o.os == "darwin" || o.os == "ios" || o.os == "plan9" {
		return os.UserCacheDir()
	}
	if d := o.env("XDG_CACHE_HOME"); filepath.IsAbs(d) {
		return d, nil
	}
	if h := o.env("HOME"); h != "" {
		return filepath.Join(h, ".cache"), nil
	}
	return "", errors.New("no cache directory: XDG_CACHE_HOME and HOME are unset; set " + EnvCache)
}
