package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	defaultRetries = 5 // pip's
	firstBackoff   = 500 * time.Millisecond
	maxBackoff     = 15 * time.Second
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
		return nil, err
	}
	defer unlock()
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
	if err := checkSpace(dir, pin.LibrarySize); err != nil {
		return nil, err
	}
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
		if local, ok := localPath(index); ok {
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
		return fmt.Errorf("%s plugin: fetching %s %s: %w", f.pin.Kind, f.pin.Name, f.pin.Version, context.Cause(ctx))
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
	for _, w := range wheels {
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
	// Whatever happens now, these bytes are used up: good ones are unpacked, others must not be resumed.
	defer os.Remove(part)
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

// download fills part with the pinned wheel, going on where an earlier attempt, or an earlier run, stopped. Only a file
// with the pinned size and digest is left without an error; one with wrong bytes is removed.
func (f *fetcher) download(ctx context.Context, c *client, u *url.URL, part string) error {
	file, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	d := &partial{file: file, hash: sha256.New(), size: f.pin.WheelSize}
	if err := d.load(ctx); err != nil {
		return err
	}
	for resumed := d.n > 0; ; resumed = false {
		d.meter = f.r.start("downloading "+f.pin.Wheel, d.size, d.n)
		err := f.retry(ctx, func() (bool, error) {
			before := d.n
			err := d.stream(ctx, c, u)
			return d.n > before, err
		})
		d.meter.finish(err == nil)
		if err != nil {
			return noSpace(err, filepath.Dir(part), d.size-d.n)
		}
		got := hex.EncodeToString(d.hash.Sum(nil))
		if got == f.pin.WheelSHA256 {
			return file.Sync()
		}
		if err := d.reset(); err != nil {
			return err
		}
		if !resumed {
			os.Remove(part)
			return fmt.Errorf("%s: sha256 is %s, pinned is %s: it is another file, or was changed on the way", redact(u.String()), got, f.pin.WheelSHA256)
		}
		// The earlier run's part may have been the wrong one: once more, from the start.
	}
}

// retry repeats an attempt that failed in a way that may pass, with growing pauses; progress starts the count again. A
// host that was never reached is not asked again: a machine without a network is told so at once.
func (f *fetcher) retry(ctx context.Context, attempt func() (progress bool, err error)) error {
	retries := defaultRetries
	if f.conf.Retries >= 0 {
		retries = f.conf.Retries
	}
	pause := f.backoff
	reached := false
	for failures := 0; ; {
		progress, err := attempt()
		if err == nil || ctx.Err() != nil || !passing(err) || (!reached && !progress && unreachable(err)) {
			return err
		}
		reached = true
		if progress {
			failures, pause = 0, f.backoff
		}
		if failures++; failures > retries {
			return fmt.Errorf("%w (given up after %d attempts)", err, failures)
		}
		f.r.say("%v; trying again in %s", err, pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		pause = min(2*pause, maxBackoff)
	}
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

// fatalError is a failure that another attempt cannot mend.
type fatalError struct{ error }

func (e fatalError) Unwrap() error { return e.error }

// passing tells whether an error may be gone at the next attempt.
func passing(err error) bool {
	var status *statusError
	if errors.As(err, &status) {
		return status.Code >= 500 || status.Code == http.StatusTooManyRequests || status.Code == http.StatusRequestTimeout
	}
	var fatal fatalError
	var path *os.PathError
	return !errors.As(err, &fatal) && !errors.As(err, &path) && !tlsError(err)
}

// partial is a wheel that is partly here, with the digest of that part.
type partial struct {
	file  *os.File
	hash  hash.Hash
	meter *meter
	n     int64 // bytes in file and hash
	size  int64 // bytes of the whole
}

// load hashes what an earlier run left.
func (d *partial) load(ctx context.Context) error {
	fi, err := d.file.Stat()
	if err != nil {
		return err
	}
	if fi.Size() > d.size {
		return d.reset()
	}
	d.n, err = copyContext(ctx, d.hash, d.file)
	return err
}

// reset begins anew.
func (d *partial) reset() error {
	d.hash.Reset()
	d.n = 0
	if err := d.file.Truncate(0); err != nil {
		return err
	}
	_, err := d.file.Seek(0, io.SeekStart)
	return err
}

// stream makes one request for the missing bytes and appends what comes.
func (d *partial) stream(ctx context.Context, c *client, u *url.URL) error {
	if d.n == d.size {
		return nil
	}
	header := map[string]string{"Accept-Encoding": "identity"}
	if d.n > 0 {
		header["Range"] = fmt.Sprintf("bytes=%d-", d.n)
	}
	resp, err := c.get(ctx, u, header)
	var status *statusError
	if errors.As(err, &status) && status.Code == http.StatusRequestedRangeNotSatisfiable {
		return errors.Join(err, d.restart())
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK && d.n > 0 {
		// No ranges here: the whole file comes again.
		if err := d.restart(); err != nil {
			return err
		}
	}
	if resp.StatusCode == http.StatusPartialContent && rangeStart(resp.Header.Get("Content-Range")) != d.n {
		return errors.Join(fmt.Errorf("%s answered with range %q, want one from %d", redact(u.String()), shorten(resp.Header.Get("Content-Range")), d.n), d.restart())
	}
	if resp.ContentLength >= 0 && d.n+resp.ContentLength != d.size {
		return fatalError{fmt.Errorf("%s has %d bytes, want %d: it is another file", redact(u.String()), d.n+resp.ContentLength, d.size)}
	}
	got, err := copyContext(ctx, io.MultiWriter(d.file, d.hash, d.meter), io.LimitReader(resp.Body, d.size-d.n))
	d.n += got
	if err != nil {
		return fmt.Errorf("%s after %d of %d bytes: %w", redact(u.String()), d.n, d.size, err)
	}
	if d.n < d.size {
		return fmt.Errorf("%s ended after %d of %d bytes", redact(u.String()), d.n, d.size)
	}
	return nil
}

// restart is reset with the meter moved back.
func (d *partial) restart() error {
	d.meter.set(0)
	return d.reset()
}

// rangeStart reads the first byte's position from "bytes 100-199/200", or returns -1.
func rangeStart(h string) int64 {
	h, ok := strings.CutPrefix(h, "bytes ")
	first, _, dash := strings.Cut(h, "-")
	n, err := strconv.ParseInt(first, 10, 64)
	if !ok || !dash || err != nil {
		return -1
	}
	return n
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
