// Package golden owns test cases in txtar files: reading them, refusing what nobody reads, comparing what a family of cases produces
// with the want.* sections, and rewriting those. docs/testing.md describes the format. It is imported by tests alone.
package golden

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// Family is one kind of case, a folder of testdata.
type Family struct {
	Headers []string // header keys that cases may have
	Inputs  []string // sections that cases may have beside Wants
	Wants   []string // sections that Run may produce, in the order in which they are written
	// Run gives the want.* sections of one group. An error is a case that is wrong in itself or fails its semantic check; it is
	// never written to the file.
	Run func(g *Group) (map[string]string, error)
	// Same compares a section beyond equality of bytes, such as numbers within a tolerance. Nil: bytes alone.
	Same func(section, want, got string) bool
}

// Group is what one run sees: the sections of a file with a common folder, such as "int8/in.tpu" and "int8/want.eval". Most files
// have the one group without a folder.
type Group struct {
	File     string            // path of the txtar file
	Name     string            // folder of the sections, or empty
	Header   map[string]string // of the file
	Sections map[string]string // by name without the folder, want.* left out
}

// Case is a txtar file.
type Case struct {
	file     string
	comment  []byte
	header   map[string]string
	groups   []string // in order of appearance
	sections map[string][]txtar.File
}

// Load reads a case and checks it against the family.
func Load(file string, f Family) (*Case, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	a := txtar.Parse(data)
	c := &Case{file: file, comment: a.Comment, header: make(map[string]string), sections: make(map[string][]txtar.File)}
	prose := false
	for line := range strings.Lines(string(a.Comment)) {
		line = strings.TrimSpace(line)
		key, value, ok := strings.Cut(strings.TrimPrefix(line, "#"), ":")
		switch {
		case line == "":
		case !strings.HasPrefix(line, "#"):
			prose = true
		case !ok || !slices.Contains(f.Headers, key):
			return nil, fmt.Errorf("header line %q, wanted one of %q", line, f.Headers)
		default:
			c.header[key] = strings.TrimSpace(value)
		}
	}
	if !prose {
		return nil, fmt.Errorf("no prose before the first section, wanted a sentence that says what must hold")
	}
	for _, s := range a.Files {
		group, name := path.Split(s.Name)
		if !slices.Contains(f.Inputs, name) && !slices.Contains(f.Wants, name) {
			return nil, fmt.Errorf("unknown section %q, wanted one of %q", s.Name, slices.Concat(f.Inputs, f.Wants))
		}
		if !slices.Contains(c.groups, group) {
			c.groups = append(c.groups, group)
		}
		if slices.ContainsFunc(c.sections[group], func(o txtar.File) bool { return o.Name == s.Name }) {
			return nil, fmt.Errorf("section %q stands twice", s.Name)
		}
		c.sections[group] = append(c.sections[group], s)
	}
	if len(c.groups) == 0 {
		return nil, fmt.Errorf("no sections, wanted some of %q", slices.Concat(f.Inputs, f.Wants))
	}
	return c, nil
}

// Run runs every group and compares. With update it rewrites the want.* sections instead, provided that no group has an error.
func (c *Case) Run(f Family, update bool) error {
	var out []txtar.File
	for _, name := range c.groups {
		g := &Group{File: filepath.ToSlash(c.file), Name: strings.TrimSuffix(name, "/"), Header: c.header, Sections: make(map[string]string)}
		want := make(map[string]string)
		for _, s := range c.sections[name] {
			if base := path.Base(s.Name); slices.Contains(f.Wants, base) {
				want[base] = string(s.Data)
			} else {
				g.Sections[base] = string(s.Data)
				out = append(out, s)
			}
		}
		got, err := f.Run(g)
		if err != nil {
			return c.at(name, err)
		}
		if update {
			for _, s := range f.Wants {
				text, ok := got[s]
				if old, had := want[s]; had && ok && f.same(s, old, newline(text)) {
					text = old // keep the file still where nothing changed
				}
				if ok {
					out = append(out, txtar.File{Name: name + s, Data: []byte(newline(text))})
				}
			}
			continue
		}
		if err := f.compare(want, got); err != nil {
			return c.at(name, err)
		}
	}
	if !update {
		return nil
	}
	data := txtar.Format(&txtar.Archive{Comment: c.comment, Files: out})
	if old, err := os.ReadFile(c.file); err == nil && string(old) == string(data) {
		return nil
	}
	return os.WriteFile(c.file, data, 0o666)
}

// at puts the group's name before an error.
func (c *Case) at(group string, err error) error {
	if group == "" {
		return err
	}
	return fmt.Errorf("%s: %w", strings.TrimSuffix(group, "/"), err)
}

// compare wants the same sections with the same contents.
func (f Family) compare(want, got map[string]string) error {
	for _, s := range slices.Sorted(maps.Keys(got)) {
		w, ok := want[s]
		if !ok {
			return fmt.Errorf("no section %s for what the case gives (-update writes it):\n%s", s, got[s])
		}
		if g := newline(got[s]); !f.same(s, w, g) {
			return fmt.Errorf("%s differs (-want +got):\n%s", s, cmp.Diff(strings.Split(w, "\n"), strings.Split(g, "\n")))
		}
	}
	for _, s := range slices.Sorted(maps.Keys(want)) {
		if _, ok := got[s]; !ok {
			return fmt.Errorf("section %s is an orphan: the case does not give it", s)
		}
	}
	return nil
}

// same compares by bytes first.
func (f Family) same(section, want, got string) bool {
	return want == got || f.Same != nil && f.Same(section, want, got)
}

// newline ends text as txtar does.
func newline(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}
