package plugin

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// fetcher gets one pinned plugin into the store. Its caller holds the pin's lock.
type fetcher struct {
	o       Options
	pin     Pin
	s       store
	r       *reporter
	conf    pipConfig
	client  *client
	backoff time.Duration
	said    string   // the last announcement
	tried   []string // one line a place that failed
	cause   error    // of the last of them
}

// fetch takes the lock, looks again, and unpacks the plugin from the first place that has it.
func (s store) fetch(ctx context.Context, pin Pin, o Options) (*Plugin, error) {
	r := o.reporter()
	unlock, err := s.lock(ctx, pin.dir(), r)
	if err != nil {
		// A cache that can only be read, in a container's image for one, cannot be marked anew: a library that is whole serves.
		if p, e := s.verified(ctx, pin); p != nil && e == nil {
			return p, nil
		}
		return nil, err
	}
	defer unlock()
	// Another process may have fetched it while we waited.
	if p := s.present(pin); p != nil {
		return p, nil
	}
	dir, err := s.make(pin.dir())
	if err != nil {
		return nil, err
	}
	clean(dir)
	if p, err := s.recover(ctx, pin, r); p != nil || err != nil {
		return p, err
	}

	conf, err := o.pipConfig()
	if err != nil {
		return nil, err
	}
	f := &fetcher{o: o, pin: pin, s: s, r: r, conf: conf, backoff: firstBackoff}
	if o.backoff > 0 {
		f.backoff = o.backoff
	}
	// Before anything is downloaded: a full disk in the last second of a long transfer is the worst time to learn of it.
	if err := checkSpace(dir, pin.LibrarySize); err != nil {
		return nil, err
	}
	defer f.close()
	p, err := f.run(ctx, dir)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, &AbsentError{Pin: pin, Offline: o.Offline, Tried: f.tried, Cause: f.cause}
	}
	return p, nil
}

// run tries find-links, then the indexes, in pip's order. It returns nil, nil when all failed; an error ends the search.
func (f *fetcher) run(ctx context.Context, dir string) (*Plugin, error) {
	for _, link := range f.conf.FindLinks {
		p, err := f.fromLink(ctx, link, dir)
		if p != nil {
			return p, nil
		}
		if err := f.failed(ctx, "find-links "+redact(link), err); err != nil {
			return nil, err
		}
	}
	if f.conf.NoIndex {
		f.tried = append(f.tried, "package index: pip's no-index forbids it")
	}
	for _, index := range f.conf.Indexes {
		var p *Plugin
		var err error
		if local, ok := localPath(index); ok { // a mirror on disk: file:///srv/simple
			p, err = f.fromDir(ctx, filepath.Join(local, f.pin.Name), index, dir)
		} else if f.o.Offline {
			continue
		} else {
			p, err = f.fromIndex(ctx, index, dir)
		}
		if p != nil {
			return p, nil
		}
		if err := f.failed(ctx, "package index "+redact(index), err); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// failed notes why a place did not serve; the context's end is an end of everything.
func (f *fetcher) failed(ctx context.Context, place string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s plugin: fetching %s %s: %w", f.pin.Kind, f.pin.Name, f.pin.Version, ctx.Err())
	}
	f.tried = append(f.tried, fmt.Sprintf("%s: %v", place, err))
	f.cause = err
	return nil
}

// fromLink serves one find-links entry: a directory, a wheel, or a page of links.
func (f *fetcher) fromLink(ctx context.Context, link, dir string) (*Plugin, error) {
	if local, ok := localPath(link); ok {
		return f.fromDir(ctx, f.o.expandHome(local), link, dir)
	}
	if f.o.Offline {
		return nil, errors.New("offline")
	}
	u, err := parseURL(link)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(u.Path, ".whl") {
		if filepath.Base(u.Path) != f.pin.Wheel {
			return nil, fmt.Errorf("is another wheel, want %s", f.pin.Wheel)
		}
		return f.fromURL(ctx, u, "find-links "+redact(link), dir)
	}
	return f.fromPage(ctx, u, "find-links "+redact(link), dir)
}

// fromDir looks for a wheel of the pinned version in a local directory, or takes the wheel that the path itself is.
// Another Python's wheel of that version will do: the library in it is the same, and is checked.
func (f *fetcher) fromDir(ctx context.Context, path, place, dir string) (*Plugin, error) {
	wheels := []string{path}
	if !strings.HasSuffix(path, ".whl") {
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		wheels = nil
		prefix, _, _ := strings.Cut(f.pin.Wheel, "-")
		for _, e := range entries { // sorted by name
			switch name := e.Name(); {
			case name == f.pin.Wheel:
				wheels = append([]string{filepath.Join(path, name)}, wheels...)
			case strings.HasPrefix(name, prefix+"-"+f.pin.Version+"-") && strings.HasSuffix(name, ".whl"):
				wheels = append(wheels, filepath.Join(path, name))
			}
		}
	}
	if len(wheels) == 0 {
		return nil, fmt.Errorf("has no wheel of %s %s", f.pin.Name, f.pin.Version)
	}
	var errs []error
	for _, w := range wheels { // a bad one does not hide a good one
		f.announce(redact(place))
		p, err := unpack(ctx, w, f.pin, dir, redact(place), f.r)
		if err == nil {
			return p, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// fromIndex looks for the pinned wheel on an index.
func (f *fetcher) fromIndex(ctx context.Context, index, dir string) (*Plugin, error) {
	u, err := parseURL(index)
	if err != nil {
		return nil, err
	}
	return f.fromPage(ctx, projectURL(u, f.pin.Name), "package index "+redact(index), dir)
}

// fromPage fetches a page and the pinned wheel from it.
func (f *fetcher) fromPage(ctx context.Context, page *url.URL, place, dir string) (*Plugin, error) {
	c, err := f.http()
	if err != nil {
		return nil, err
	}
	var files []indexFile
	err = f.retry(ctx, func() (bool, error) {
		files, err = c.page(ctx, page)
		return false, err
	})
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if file.Name != f.pin.Wheel {
			continue
		}
		// Only to save a useless download: a digest that agrees is still checked against the bytes.
		if file.SHA256 != "" && file.SHA256 != f.pin.WheelSHA256 {
			return nil, fmt.Errorf("lists %s with sha256 %s, pinned is %s: it is another file", file.Name, shorten(file.SHA256), f.pin.WheelSHA256)
		}
		u, err := parseURL(file.URL)
		if err != nil {
			return nil, err
		}
		return f.fromURL(ctx, u, place, dir)
	}
	return nil, fmt.Errorf("lists %d files of %s, want %s among them", len(files), f.pin.Name, f.pin.Wheel)
}

// fromURL downloads the pinned wheel beside the unpacked plugins, verifies and unpacks it, and removes it.
func (f *fetcher) fromURL(ctx context.Context, u *url.URL, place, dir string) (*Plugin, error) {
	c, err := f.http()
	if err != nil {
		return nil, err
	}
	if err := checkSpace(dir, f.pin.WheelSize+f.pin.LibrarySize); err != nil {
		return nil, err
	}
	f.announce(place)
	part := filepath.Join(f.s.dir, f.pin.Wheel+".part")
	if err := f.download(ctx, c, u, part); err != nil {
		return nil, err
	}
	defer func() {
		// These bytes are used up, unless the user stopped: then the next run need not fetch them.
		if ctx.Err() == nil {
			os.Remove(part)
		}
	}()
	return unpack(ctx, part, f.pin, dir, place, f.r)
}

// announce says what is fetched and from where, and once under which licence.
func (f *fetcher) announce(place string) {
	licence := fmt.Sprintf("; licence: %s (%s)", f.pin.Licence, f.pin.Terms)
	if f.said != "" {
		licence = ""
	}
	if f.said != place {
		f.r.say("%s plugin: %s %s from %s%s", f.pin.Kind, f.pin.Name, f.pin.Version, place, licence)
	}
	f.said = place
}

// http builds the client at first need: a search that ends at a local file needs no certificates.
func (f *fetcher) http() (*client, error) {
	if f.client == nil {
		c, err := f.o.newClient(f.conf)
		if err != nil {
			return nil, err
		}
		f.client = c
	}
	return f.client, nil
}

// close lets go of the connections to the index.
func (f *fetcher) close() {
	if f.client != nil {
		f.client.http.CloseIdleConnections()
	}
}

// parseURL takes http and https only, and never shows what it was given.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, errors.New("is no http or https URL")
	}
	return u, nil
}

// localPath returns the path that a file: URL or a plain path names.
func localPath(link string) (string, bool) {
	if strings.HasPrefix(link, "file:") {
		u, err := url.Parse(link)
		if err != nil || (u.Host != "" && u.Host != "localhost") {
			return "", false
		}
		return filepath.FromSlash(u.Path), true
	}
	return link, !strings.Contains(link, "://")
}
