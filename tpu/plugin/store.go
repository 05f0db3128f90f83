package plugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"
)

// tempPrefix begins the names of files that are being written; what an interrupted run left is removed under the lock.
const tempPrefix = ".tmp-"

// markName is the file beside an unpacked library that says it was verified.
const markName = "verified.json"

// store is the directory of unpacked plugins:
//
//	<name>-<version>-<digest12>/<library>, verified.json   a pinned plugin
//	local-<digest12>/<library>, verified.json              unpacked from a wheel the user named
//	<wheel>.part, <name>.lock                              a download under way, and who may touch it
//	digests/<digest12>.json                                marks of libraries the user named
type store struct{ dir string }

// store opens the directory without creating it.
func (o Options) store() (store, error) {
	base, err := o.base()
	if err != nil {
		return store{}, err
	}
	return store{dir: filepath.Join(base, "plugins")}, nil
}

// path is where the pinned library is, or will be.
func (s store) path(pin Pin) string { return filepath.Join(s.dir, pin.dir(), pin.library()) }

// present returns the pinned plugin if it is unpacked and its mark holds, without any lock.
func (s store) present(pin Pin) *Plugin {
	file := s.path(pin)
	m, ok := readMark(filepath.Join(s.dir, pin.dir(), markName), file)
	// The mark is compared with the pin, so that a cache of an edited mark cannot pass another library off as pinned.
	if !ok || m.SHA256 != pin.LibrarySHA256 || m.Size != pin.LibrarySize {
		return nil
	}
	return pin.plugin(file, m.Source)
}

// recover takes a library whose mark is missing or stale (a copied cache, an interrupted run): hashed again it is good,
// or it is removed. The caller holds the lock.
func (s store) recover(ctx context.Context, pin Pin, r *reporter) (*Plugin, error) {
	p, err := s.verified(ctx, pin)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case p == nil:
		r.say("%s is not the pinned library (damaged or replaced): it is removed and fetched again", s.path(pin))
		return nil, os.Remove(s.path(pin))
	}
	m, err := markOf(p.Path, p.Digest, p.Source)
	if err == nil {
		err = m.write(filepath.Join(s.dir, pin.dir(), markName))
	}
	return p, err
}

// verified returns the library that is unpacked if it is the pinned one, whatever its mark says, and nil if it is another.
func (s store) verified(ctx context.Context, pin Pin) (*Plugin, error) {
	file := s.path(pin)
	fi, err := os.Lstat(file)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() || fi.Size() != pin.LibrarySize {
		return nil, nil
	}
	digest, _, err := hashFile(ctx, file)
	if err != nil || digest != pin.LibrarySHA256 {
		return nil, err
	}
	return pin.plugin(file, "the cache, verified again"), nil
}

// make creates the store's directory and one in it.
func (s store) make(name string) (string, error) {
	dir := filepath.Join(s.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("the plugin cache: %w; set %s to a directory that can be written", err, EnvCache)
	}
	return dir, nil
}

// clean removes temporary files that an interrupted run left. The caller holds the lock.
func clean(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempPrefix) {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// lock takes the lock file of a name, across goroutines and processes, and says so when it has to wait.
func (s store) lock(ctx context.Context, name string, r *reporter) (unlock func(), err error) {
	if _, err := s.make(""); err != nil {
		return nil, err
	}
	type result struct {
		unlock func()
		err    error
	}
	path := filepath.Join(s.dir, name+".lock")
	taken := make(chan result, 1) // room for one: the goroutine ends whether or not anyone still waits
	go func() {
		u, err := lockedfile.MutexAt(path).Lock()
		taken <- result{u, err}
	}()
	patience := time.NewTimer(300 * time.Millisecond)
	defer patience.Stop()
	for {
		select {
		case res := <-taken:
			if res.err != nil {
				return nil, fmt.Errorf("the plugin cache's lock: %w; set %s to a directory that can be written", res.err, EnvCache)
			}
			return res.unlock, nil
		case <-patience.C:
			r.say("waiting for another tpuc that fetches %s", name)
		case <-ctx.Done():
			// The kernel's lock cannot be waited for with a context: whoever gets it later gives it back.
			go func() {
				if res := <-taken; res.err == nil {
					res.unlock()
				}
			}()
			return nil, ctx.Err()
		}
	}
}
