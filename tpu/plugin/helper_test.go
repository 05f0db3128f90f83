package plugin

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fixture is a pinned plugin of a few hundred kilobytes, its wheel, and options that see nothing of this machine.
type fixture struct {
	pin     Pin
	wheel   []byte
	library []byte
	opts    Options
	env     map[string]string
	notes   *lockedBuffer
	home    string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	library := make([]byte, 300_000)
	rand.New(rand.NewSource(1)).Read(library)
	copy(library, "\x7fELF")
	f := &fixture{library: library, notes: &lockedBuffer{}, home: t.TempDir()}
	f.wheel = zipped(t, map[string][]byte{
		"fake_pjrt/__init__.py": []byte("# nothing\n"),
		"fake_pjrt/pjrt_cpu.so": library,
	})
	f.pin = Pin{
		Kind: CPU, Name: "fake-pjrt", Version: "1.2", OS: "linux", Arch: "amd64",
		Wheel: "fake_pjrt-1.2-cp311-cp311-manylinux_2_31_x86_64.whl", WheelSHA256: sum(f.wheel), WheelSize: int64(len(f.wheel)),
		Member: "fake_pjrt/pjrt_cpu.so", LibrarySHA256: sum(library), LibrarySize: int64(len(library)),
		Licence: "Apache-2.0", Terms: "of the test",
	}
	f.env = map[string]string{"HOME": f.home, "PIP_RETRIES": "2", "PIP_INDEX_URL": "http://127.0.0.1:1/simple"}
	f.opts = Options{
		Progress: f.notes, Lookup: func(k string) (string, bool) { v, ok := f.env[k]; return v, ok },
		os: "linux", arch: "amd64", etc: filepath.Join(f.home, "etc"), pins: []Pin{f.pin}, backoff: time.Millisecond,
	}
	return f
}

// locate is Locate with a time limit, so that a fault fails rather than hangs.
func (f *fixture) locate(t *testing.T) (*Plugin, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	f.opts.pins = []Pin{f.pin}
	return Locate(ctx, CPU, f.opts)
}

// store is the directory of unpacked plugins.
func (f *fixture) store() string { return filepath.Join(f.home, ".cache", "tpuc", "plugins") }

// requireGood checks a plugin that was found against the fixture, down to the bytes, and that nothing else was left.
func (f *fixture) requireGood(t *testing.T, p *Plugin) {
	t.Helper()
	got, err := os.ReadFile(p.Path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(f.library, got), "the library's bytes differ")
	require.Equal(t, f.pin.LibrarySHA256, p.Digest)
	require.Equal(t, "fake-pjrt 1.2 Apache-2.0", p.Name+" "+p.Version+" "+p.Licence)
	require.True(t, p.Pinned)
	require.NoError(t, p.Verify(context.Background()))
	f.requireNoLeftovers(t)
}

// requireNoLeftovers fails on a partial or temporary file in the store.
func (f *fixture) requireNoLeftovers(t *testing.T) {
	t.Helper()
	_ = filepath.Walk(f.store(), func(path string, _ os.FileInfo, err error) error {
		name := filepath.Base(path)
		require.False(t, strings.HasSuffix(name, ".part") || strings.HasPrefix(name, tempPrefix), "left over: %s", path)
		return nil
	})
}

// index is a package index of one wheel, with faults to order.
type index struct {
	*httptest.Server
	f        *fixture
	html     bool   // the page is PEP 503's HTML rather than PEP 691's JSON
	says     string // digest on the page; empty: the pin's
	body     []byte // the wheel that is served; nil: the right one
	noRanges bool
	cut      int // bytes after which each of the first breaks answers ends
	breaks   int
	redirect string // a file is redirected to this base
	user     string // "name:password" that every request must carry
	header   func(http.ResponseWriter)

	mu    sync.Mutex
	pages int
	files []string // Range headers of the requests for the wheel
	auths []string
}

func newIndex(t *testing.T, f *fixture) *index {
	x := &index{f: f}
	x.Server = httptest.NewServer(x)
	t.Cleanup(x.Close)
	return x
}

func (x *index) simple() string { return x.URL + "/simple" }

func (x *index) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x.mu.Lock()
	defer x.mu.Unlock()
	name, password, _ := r.BasicAuth()
	x.auths = append(x.auths, name+":"+password)
	if x.user != "" && x.user != name+":"+password {
		http.Error(w, "who are you", http.StatusUnauthorized)
		return
	}
	switch r.URL.Path {
	case "/simple/fake-pjrt/":
		x.pages++
		x.page(w, r)
	case "/files/" + x.f.pin.Wheel:
		x.files = append(x.files, r.Header.Get("Range"))
		x.file(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (x *index) page(w http.ResponseWriter, r *http.Request) {
	digest := x.says
	if digest == "" {
		digest = x.f.pin.WheelSHA256
	}
	if x.html || !strings.Contains(r.Header.Get("Accept"), "json") {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, "<!DOCTYPE html><html><body><h1>Links</h1>\n<a href=\"../../files/other-1.0.tar.gz#sha256=00\">other-1.0.tar.gz</a><br/>\n"+
			"<a href=\"../../files/%s#sha256=%s\" data-requires-python=\"&gt;=3.8\">%[1]s</a></body></html>", x.f.pin.Wheel, digest)
		return
	}
	w.Header().Set("Content-Type", "application/vnd.pypi.simple.v1+json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"meta": map[string]any{"api-version": "1.1"}, "name": "fake-pjrt",
		"files": []map[string]any{
			{"filename": "fake_pjrt-1.1-py3-none-any.whl", "url": "/files/old.whl", "hashes": map[string]string{}},
			{"filename": x.f.pin.Wheel, "url": "../../files/" + x.f.pin.Wheel, "hashes": map[string]string{"sha256": digest}},
		},
	})
}

func (x *index) file(w http.ResponseWriter, r *http.Request) {
	if x.redirect != "" {
		http.Redirect(w, r, x.redirect+r.URL.Path+"?token=geheim", http.StatusFound)
		return
	}
	if x.header != nil {
		x.header(w)
	}
	body := x.body
	if body == nil {
		body = x.f.wheel
	}
	if x.noRanges {
		r.Header.Del("Range")
	}
	if x.breaks > 0 {
		x.breaks--
		w = &cutWriter{ResponseWriter: w, left: x.cut}
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// cutWriter ends an answer after some bytes, as a broken connection does.
type cutWriter struct {
	http.ResponseWriter
	left int
}

func (c *cutWriter) Write(p []byte) (int, error) {
	if len(p) > c.left {
		_, _ = c.ResponseWriter.Write(p[:c.left])
		c.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	c.left -= len(p)
	return c.ResponseWriter.Write(p)
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func zipped(t *testing.T, members map[string][]byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for _, n := range slices.Sorted(maps.Keys(members)) {
		w, err := z.Create(n)
		require.NoError(t, err)
		_, err = w.Write(members[n])
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return buf.Bytes()
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// write makes a file and its directories.
func write(t *testing.T, path string, data []byte) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, data, 0o644))
	return path
}
