package plugin

import (
	"net/url"
	"path/filepath"
	"strings"
)

// netrcEntry is one machine of a netrc file; the default entry has an empty machine.
type netrcEntry struct{ Machine, Login, Password string }

// netrc reads NETRC, or .netrc in the home directory, as pip does. A file that cannot be read is no file.
func (o Options) netrc() []netrcEntry {
	name := o.env("NETRC")
	if name == "" {
		home := o.env("HOME")
		if home == "" {
			return nil
		}
		name = filepath.Join(home, ".netrc")
	}
	data, err := readSmall(o.expandHome(name), 1<<20)
	if err != nil {
		return nil
	}
	return parseNetrc(string(data))
}

// parseNetrc reads the format of ftp(1): machine, default, login, password, account and macdef, blank separated, with
// comments from a # that begins a token. What it does not know it skips.
func parseNetrc(text string) []netrcEntry {
	var (
		entries []netrcEntry
		macro   bool
	)
	for _, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 {
			macro = false // a macro ends at an empty line
			continue
		}
		if macro {
			continue
		}
		entries, macro = netrcLine(entries, words)
	}
	out := entries[:0] // those that say something
	for _, e := range entries {
		if e.Login != "" || e.Password != "" {
			out = append(out, e)
		}
	}
	return out
}

// netrcLine adds the words of one line; a key's value may stand on the next line only after "machine" has been seen whole.
func netrcLine(entries []netrcEntry, words []string) (_ []netrcEntry, macro bool) {
	for i := 0; i < len(words); i++ {
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		last := len(entries) - 1
		switch w := words[i]; {
		case strings.HasPrefix(w, "#"):
			return entries, false
		case w == "default":
			entries = append(entries, netrcEntry{})
		case w == "macdef": // commands of ftp up to an empty line, never credentials
			return entries, true
		case w == "machine":
			entries, i = append(entries, netrcEntry{Machine: strings.ToLower(next)}), i+1
		case w == "login" && last >= 0:
			entries[last].Login, i = unquote(next), i+1
		case w == "password" && last >= 0:
			entries[last].Password, i = unquote(next), i+1
		case w == "account":
			i++
		}
	}
	return entries, false
}

func unquote(s string) string {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return s[1 : len(s)-1]
	}
	return s
}

// netrcUser returns the credentials for a host, the first match winning and the default entry last.
func netrcUser(entries []netrcEntry, host string) *url.Userinfo {
	var fallback *url.Userinfo
	for _, e := range entries {
		if e.Machine == strings.ToLower(host) {
			return url.UserPassword(e.Login, e.Password)
		}
		if e.Machine == "" && fallback == nil {
			fallback = url.UserPassword(e.Login, e.Password)
		}
	}
	return fallback
}
