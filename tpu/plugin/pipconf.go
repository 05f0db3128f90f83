package plugin

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// defaultIndex is pip's own default.
const defaultIndex = "https://pypi.org/simple"

// pipConfig is the part of pip's configuration that says where packages come from.
// https://pip.pypa.io/en/stable/topics/configuration/
type pipConfig struct {
	Indexes      []string // index-url, then each extra-index-url; empty with no-index
	FindLinks    []string
	TrustedHosts []string // host or host:port whose certificate is not checked
	NoIndex      bool
	Cert         string        // CA bundle, added to the system's roots
	ClientCert   string        // PEM file with certificate and key
	Proxy        string        // overrides the proxy variables
	Timeout      time.Duration // zero if not configured
	Retries      int           // negative if not configured
	Files        []string      // the configuration files that were read, weakest first
}

// iniEntry is one assignment of a configuration file.
type iniEntry struct {
	Section, Key, Value string
	Line                int // of the key, from 1
}

// pipConfig reads the files and variables that pip reads for `pip download`, weakest first: files by kind (global, user,
// virtual environment, PIP_CONFIG_FILE), then sections ([global], [install], [download]), then PIP_ variables. An error
// is a file that exists but cannot be read or parsed.
func (o Options) pipConfig() (pipConfig, error) {
	c := pipConfig{Retries: -1}
	sections := map[string]map[string]string{"global": {}, "install": {}, "download": {}}
	for _, name := range o.pipFiles() {
		data, err := readSmall(name, 1<<20)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return c, fmt.Errorf("pip's configuration: %w", err)
		}
		entries, err := parseINI(name, data)
		if err != nil {
			return c, fmt.Errorf("pip's configuration: %w", err)
		}
		c.Files = append(c.Files, name)
		for _, e := range entries {
			if s := sections[e.Section]; s != nil {
				s[optionName(e.Key)] = e.Value
			}
		}
	}
	get := func(option string) string {
		// PIP_INDEX_URL and friends; pip ignores an empty one.
		if v := o.env("PIP_" + strings.ToUpper(strings.ReplaceAll(option, "-", "_"))); v != "" {
			return v
		}
		for _, s := range []string{"download", "install", "global"} {
			if v := sections[s][option]; v != "" {
				return v
			}
		}
		return ""
	}

	c.FindLinks = strings.Fields(get("find-links"))
	c.TrustedHosts = strings.Fields(get("trusted-host"))
	c.Cert, c.ClientCert, c.Proxy = get("cert"), get("client-cert"), get("proxy")
	c.NoIndex = truthy(get("no-index"))
	if !c.NoIndex {
		index := get("index-url")
		if index == "" {
			index = defaultIndex
		}
		c.Indexes = append(c.Indexes, strings.TrimSpace(index))
		c.Indexes = append(c.Indexes, strings.Fields(get("extra-index-url"))...)
	}
	timeout := get("timeout")
	if timeout == "" {
		timeout = get("default-timeout")
	}
	// A number that pip would refuse is no reason to refuse the index: the default stands.
	if s, err := strconv.ParseFloat(timeout, 64); err == nil && s > 0 && s < 86400 {
		c.Timeout = time.Duration(s * float64(time.Second))
	}
	if n, err := strconv.Atoi(get("retries")); err == nil && n >= 0 {
		c.Retries = min(n, 100)
	}
	return c, nil
}

// pipFiles lists the configuration files of pip, weakest first, whether they exist or not.
func (o Options) pipFiles() []string {
	const name = "pip.conf"
	explicit := o.env("PIP_CONFIG_FILE")
	if explicit == os.DevNull {
		return nil
	}
	var files []string
	xdg := o.env("XDG_CONFIG_DIRS")
	if xdg == "" {
		xdg = filepath.Join(o.etc, "xdg")
	}
	for _, d := range filepath.SplitList(xdg) {
		files = append(files, filepath.Join(d, "pip", name))
	}
	files = append(files, filepath.Join(o.etc, name))

	home := o.env("HOME")
	if _, err := os.Stat(explicit); (explicit == "" || err != nil) && home != "" {
		config := o.env("XDG_CONFIG_HOME")
		if config == "" {
			config = filepath.Join(home, ".config")
		}
		files = append(files, filepath.Join(home, ".pip", name), filepath.Join(config, "pip", name))
	}
	for _, prefix := range []string{"CONDA_PREFIX", "VIRTUAL_ENV"} {
		if d := o.env(prefix); d != "" {
			files = append(files, filepath.Join(d, name))
		}
	}
	if explicit != "" {
		files = append(files, explicit)
	}
	return files
}

// parseINI reads the dialect of Python's configparser.RawConfigParser, in which pip.conf is written: [section] lines,
// "key = value" or "key: value", # and ; comments on lines of their own, and values continued on indented lines. A key
// twice is taken at its last value. Errors name the file and the line.
func parseINI(name string, data []byte) ([]iniEntry, error) {
	var (
		entries []iniEntry
		section string
		indent  int // of the line that opened the current value
		open    = false
	)
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if bytes.IndexByte(data, 0) >= 0 {
		return nil, fmt.Errorf("%s: holds a zero byte, want text", name)
	}
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimRight(line, " \t\r\v\f")
		text := strings.TrimLeft(line, " \t\v\f")
		if text == "" || text[0] == '#' || text[0] == ';' {
			continue
		}
		depth := len(line) - len(text)
		if open && depth > indent {
			last := &entries[len(entries)-1]
			last.Value = strings.TrimPrefix(last.Value+"\n"+text, "\n")
			continue
		}
		if text[0] == '[' {
			end := strings.IndexByte(text, ']')
			if end < 0 {
				return nil, fmt.Errorf("%s:%d: section %q is not closed, want [name]", name, i+1, shorten(text))
			}
			section, open, indent = text[1:end], false, depth
			continue
		}
		at := strings.IndexAny(text, "=:")
		if at <= 0 {
			// The line may hold a password: it is not shown.
			return nil, fmt.Errorf("%s:%d: no key and value, want key = value", name, i+1)
		}
		if section == "" {
			return nil, fmt.Errorf("%s:%d: value outside a section, want [global] before it", name, i+1)
		}
		entries = append(entries, iniEntry{
			Section: section,
			Key:     strings.ToLower(strings.TrimSpace(text[:at])),
			Value:   strings.TrimSpace(text[at+1:]),
			Line:    i + 1,
		})
		open, indent = true, depth
	}
	return entries, nil
}

// optionName is pip's normal form of a key: index_url and --index-url are index-url.
func optionName(key string) string {
	return strings.TrimPrefix(strings.ReplaceAll(strings.ToLower(key), "_", "-"), "--")
}

// truthy reads a flag as pip does.
func truthy(v string) bool {
	switch strings.ToLower(strings.TrimSpace(v)) {
	case "1", "y", "yes", "t", "true", "on":
		return true
	}
	return false
}

// shorten cuts text that goes into an error.
func shorten(s string) string {
	if len(s) > 60 {
		return s[:60] + "..."
	}
	return s
}

// expandHome resolves a leading ~ as pip does for paths.
func (o Options) expandHome(p string) string {
	if home := o.env("HOME"); home != "" && (p == "~" || strings.HasPrefix(p, "~/")) {
		return filepath.Join(home, strings.TrimPrefix(p, "~"))
	}
	return p
}
