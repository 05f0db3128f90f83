package tpuc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"tpuc/cache"
	"tpuc/internal/processor"
	"tpuc/tpu"
	"tpuc/tpu/plugin"
)

// CacheOptions steer OpenCache. The zero value is the cache of the user.
type CacheOptions struct {
	Dir          string            // base directory of all that is cached; empty: plugin.CacheDir's
	VerifyDigest bool              // read model files whole, weights too, instead of trusting a file that has not changed
	MaxSize      int64             // bytes: when something is kept, what was not used for longest goes until the rest fits; 0: no limit
	Explain      bool              // find out of every miss how the nearest entry differs
	Notify       func(line string) // warnings, and whom a compile waits for; called from any goroutine; may be nil
}

// Cache keeps what compiles make, between compiles and between processes. docs/cache.md says what is in the keys. A nil *Cache keeps nothing.
type Cache struct {
	o     CacheOptions
	store *cache.Store
}

// programsDir is the folder of the store below the base directory of everything that is cached.
const programsDir = "programs"

// OpenCache opens the store; its folder is made when something is kept.
func OpenCache(o CacheOptions) (*Cache, error) {
	base, err := plugin.CacheDir(plugin.Options{CacheDir: o.Dir})
	if err != nil {
		return nil, err
	}
	s, err := cache.Open(filepath.Join(base, programsDir), cache.Options{Notify: o.Notify, MaxSize: o.MaxSize})
	if err != nil {
		return nil, err
	}
	return &Cache{o, s}, nil
}

// Store is where the entries are.
func (c *Cache) Store() *cache.Store { return c.store }

// Sections of entries.
const (
	sectionExecutable = "executable"
	sectionProgram    = "program.mlir" // with the locations of the model that was compiled first
	sectionStats      = "stats.json"   // tpu.Stats
)

// built is an executable and how it was come by.
type built struct {
	*tpu.Result           // of a hit without usage and log
	Cached      Cached    // what a report says; zero without a cache
	key         cache.Key // zero without a cache
}

// Cached says what a compile found in the cache for one program.
type Cached struct {
	Key    string   `json:"key"`              // ID of the program's entry
	Hit    bool     `json:"hit"`              // the executable was there, or another process made it meanwhile
	Waited bool     `json:"waited,omitempty"` // for that process
	Kept   bool     `json:"kept"`             // it is there now
	Why    []string `json:"why,omitempty"`    // of a miss, when asked for: what differs from the nearest entry
}

// build gives the executable of the request's program: from the cache, or made by the plugin in a child process and kept. The request's time limit is of
// waiting for another process that makes it too. Errors are those of tpu.Compile, and nothing is kept then, or a *cache.HeldError.
func (c *Cache) build(ctx context.Context, req tpu.Request, pl *plugin.Plugin) (*built, error) {
	facts, err := c.facts(ctx, req, pl)
	if err != nil {
		return nil, err
	}
	if facts == nil {
		r, err := tpu.Compile(ctx, req)
		return &built{Result: r}, err
	}
	key := programKey(req, pl, facts)
	b := &built{key: key, Cached: Cached{Key: key.ID()}}
	begin := time.Now()
	useless, err := c.fetch(ctx, key, req.Timeout, func(ctx context.Context) ([]cache.Section, error) {
		if c.o.Explain {
			b.Cached.Why = c.why(key)
		}
		limited := req
		if req.Timeout > 0 { // what the wait has left of it
			limited.Timeout = max(req.Timeout-time.Since(begin).Truncate(100*time.Millisecond), 1)
		}
		var err error
		if b.Result, err = tpu.Compile(ctx, limited); err != nil {
			return nil, err
		}
		stats, err := json.Marshal(b.Stats)
		return []cache.Section{{Name: sectionProgram, Data: req.Program}, {Name: sectionStats, Data: stats}, {Name: sectionExecutable, Data: b.Executable}}, err
	}, func(e *cache.Entry, out cache.Outcome) (err error) {
		b.Cached.Hit, b.Cached.Waited, b.Cached.Kept = out.Hit, out.Waited, out.Kept == nil
		if out.Hit {
			b.Result, err = readProgram(e)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if useless {
		b.Cached.Hit, b.Cached.Kept = false, false
		b.Result, err = tpu.Compile(ctx, req)
	}
	return b, err
}

// fetch reads an entry that is there or is built. One that is whole, but not as tpuc writes it, which read says, is moved out of the way and built anew;
// where it could not be moved it is useless. Errors are those of the store and of build.
func (c *Cache) fetch(ctx context.Context, k cache.Key, wait time.Duration, build func(context.Context) ([]cache.Section, error),
	read func(*cache.Entry, cache.Outcome) error) (useless bool, err error) {
	for range 2 {
		e, out, err := c.store.DoWithin(ctx, k, wait, build)
		if err != nil {
			return false, held(err)
		}
		unread := read(e, out)
		if unread != nil {
			c.store.Reject(e, unread)
		}
		e.Close()
		if unread == nil {
			return false, nil
		}
	}
	return true, nil
}

// held says what to do about a wait that was too long.
func held(err error) error {
	var other *cache.HeldError
	if errors.As(err, &other) {
		return fmt.Errorf("%w: raise the time limit, wait for that process or end it, or compile beside it without the cache (--no-cache)", err)
	}
	return err
}

// readProgram is what an entry of a program holds.
func readProgram(e *cache.Entry) (*tpu.Result, error) {
	r := new(tpu.Result)
	if err := readJSON(e, sectionStats, &r.Stats); err != nil {
		return nil, err
	}
	exe, err := e.Section(sectionExecutable)
	r.Executable = bytes.Clone(exe)
	return r, err
}

func readJSON(e *cache.Entry, section string, into any) error {
	data, err := e.Section(section)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", section, err)
	}
	return nil
}

// facts are the plugin's of the request on this machine, asked once and kept. Without a cache, and where the plugin cannot be asked, they are
// nil: the compile itself will tell what is wrong with it.
func (c *Cache) facts(ctx context.Context, req tpu.Request, pl *plugin.Plugin) (*tpu.Stats, error) {
	if c == nil {
		return nil, nil
	}
	facts := new(tpu.Stats)
	useless, err := c.fetch(ctx, factsKey(req.Target.Platform, pl), req.Timeout, func(ctx context.Context) ([]cache.Section, error) {
		req.OnPhase = nil
		facts, err := tpu.Describe(ctx, req)
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(facts)
		return []cache.Section{{Name: sectionStats, Data: data}}, err
	}, func(e *cache.Entry, _ cache.Outcome) error {
		*facts = tpu.Stats{}
		return readJSON(e, sectionStats, facts)
	})
	var failed *tpu.CompileError
	switch {
	case errors.As(err, &failed) && ctx.Err() == nil:
		return nil, nil
	case err != nil || useless:
		return nil, err
	}
	return facts, nil
}

// factsKey names what a plugin's facts depend on.
func factsKey(platform string, pl *plugin.Plugin) cache.Key {
	var p parts
	p.add("plugin_sha256", pl.Digest)
	p.add("platform", platform)
	if platform == tpu.CPU {
		p.add("machine", processor.Here())
		p.add("cpu_cores", fmt.Sprint(runtime.NumCPU()))
	}
	p.add("compiler", compilerVersion)
	return cache.Key{Kind: kindPlugin, Parts: p}
}

// why says how the nearest entry of a key that is missing differs; nothing where there is none.
func (c *Cache) why(key cache.Key) []string {
	near, ok := c.store.Near(key)
	if !ok {
		return nil
	}
	return Explain(near.Key, key)
}
