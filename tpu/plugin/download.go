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

	// minProgress is what an attempt must bring to count as one that worked: a server that gives a byte and hangs up is
	// not followed for ever.
	minProgress = 1 << 20
)

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
			return d.n >= before+minProgress, err
		})
		d.meter.finish(err == nil)
		if err != nil {
			return noSpace(err, filepath.Dir(part), d.size-d.n)
		}
		got := hex.EncodeToString(d.hash.Sum(nil))
		if got == f.pin.WheelSHA256 {
			// Synced, so that a crash of the machine cannot leave a hole that a later run takes for a whole part.
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
	var path *os.PathError // the disk's, not the network's
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
	if fi.Size() > d.size { // not of this wheel
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
	// A compressed transfer would have another length, and ranges of it would not be ranges of the wheel (RFC 9110, 14).
	header := map[string]string{"Accept-Encoding": "identity"}
	if d.n > 0 {
		header["Range"] = fmt.Sprintf("bytes=%d-", d.n)
	}
	resp, err := c.get(ctx, u, header)
	var status *statusError
	if errors.As(err, &status) && status.Code == http.StatusRequestedRangeNotSatisfiable {
		// Its file is shorter than our part: what we have is of another file.
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
	// Appending bytes of another position would spoil the whole part; the digest would tell, but 137 MB later.
	if resp.StatusCode == http.StatusPartialContent && rangeStart(resp.Header.Get("Content-Range")) != d.n {
		return errors.Join(fmt.Errorf("%s answered with range %q, want one from %d", redact(u.String()), shorten(resp.Header.Get("Content-Range")), d.n), d.restart())
	}
	if resp.ContentLength >= 0 && d.n+resp.ContentLength != d.size {
		return fatalError{fmt.Errorf("%s has %d bytes, want %d: it is another file", redact(u.String()), d.n+resp.ContentLength, d.size)}
	}
	// The length may be unknown (chunked): the limit keeps a server from filling the disk.
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
