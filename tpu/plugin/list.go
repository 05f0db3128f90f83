package plugin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Status is what is known of one pinned plugin without fetching or hashing it, for `tpuc list plugins`.
type Status struct {
	Kind    Kind
	Name    string
	Version string
	Licence string
	Digest  string // of the pinned library, SHA-256, lower-case hex
	Size    int64  // bytes of the unpacked library
	Fetch   int64  // bytes of the download
	Present bool   // unpacked in the cache
	Path    string // where it is, or will be
	Usable  bool   // this machine's platform is the plugin's
	Local   string // the value of PJRT_PLUGIN_LIBRARY_PATH or Options.Library, which goes before; empty if unset
}

// List returns the status of every pinned plugin, in the table's order.
func List(opts Options) ([]Status, error) {
	o := opts.withDefaults()
	s, err := o.store()
	if err != nil {
		return nil, err
	}
	local := o.Library
	if local == "" {
		local = o.env(EnvLibrary)
	}
	var out []Status
	for _, pin := range o.pins {
		out = append(out, Status{
			Kind: pin.Kind, Name: pin.Name, Version: pin.Version, Licence: pin.Licence,
			Digest: pin.LibrarySHA256, Size: pin.LibrarySize, Fetch: pin.WheelSize,
			Present: s.present(pin) != nil,
			Path:    s.path(pin),
			Usable:  o.os == pin.OS && o.arch == pin.Arch,
			Local:   local,
		})
	}
	return out, nil
}

// Fact is one line of `tpuc doctor`.
type Fact struct {
	Name, Value string
	Problem     bool // the value stands in the way of compiling
}

// Facts tells how plugins would be found and fetched on this machine. Nothing is asked over the network, and no
// credentials are in it.
func Facts(opts Options) []Fact {
	o := opts.withDefaults()
	usable := false
	for _, p := range o.pins {
		usable = usable || (o.os == p.OS && o.arch == p.Arch)
	}
	facts := []Fact{{"platform", o.os + "/" + o.arch, !usable}}

	s, err := o.store()
	if err != nil {
		facts = append(facts, Fact{"plugin cache", err.Error(), true})
	} else {
		facts = append(facts, Fact{"plugin cache", s.dir, false})
		if free, ok := freeBytes(existing(s.dir)); ok {
			facts = append(facts, Fact{"free in the cache", bytesText(free), free < 1e9})
		}
		for _, p := range o.pins {
			state := "absent, fetched at first need (" + bytesText(p.WheelSize) + ")"
			if s.present(p) != nil {
				state = "present, verified"
			}
			facts = append(facts, Fact{fmt.Sprintf("%s plugin", p.Kind), fmt.Sprintf("%s %s: %s", p.Name, p.Version, state), false})
		}
	}
	if v := o.env(EnvLibrary); v != "" {
		facts = append(facts, Fact{EnvLibrary, v, false})
	}

	c, err := o.pipConfig()
	if err != nil {
		return append(facts, Fact{"pip's configuration", err.Error(), true})
	}
	facts = append(facts, Fact{"pip's configuration", orNone(c.Files), false})
	index := orNone(redacted(c.Indexes))
	if c.NoIndex {
		index = "none (no-index)"
	}
	facts = append(facts, Fact{"package index", index, false}, Fact{"find-links", orNone(redacted(c.FindLinks)), false})
	if c.Cert != "" {
		facts = append(facts, Fact{"extra certificates", c.Cert, false})
	}
	if c.Proxy != "" {
		facts = append(facts, Fact{"proxy", redact(c.Proxy), false})
	}
	if _, err := o.newClient(c); err != nil {
		facts = append(facts, Fact{"network", err.Error(), true})
	}
	return facts
}

func redacted(urls []string) []string {
	out := make([]string, len(urls))
	for i, u := range urls {
		out[i] = redact(u)
	}
	return out
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// existing is the nearest ancestor of dir that exists.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return dir
		}
		dir = parent
	}
}
