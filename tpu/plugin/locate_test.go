package plugin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tpuc/internal/fileid"
)

func TestLocateFetchesOnceFromEitherFormOfIndex(t *testing.T) {
	for _, html := range []bool{false, true} {
		t.Run(fmt.Sprintf("html=%t", html), func(t *testing.T) {
			f := newFixture(t)
			x := newIndex(t, f)
			x.html = html
			f.env["PIP_INDEX_URL"] = x.simple()

			p, err := f.locate(t)
			require.NoError(t, err)
			f.requireGood(t, p)
			require.Equal(t, filepath.Join(f.store(), "fake-pjrt-1.2-"+f.pin.LibrarySHA256[:12], "pjrt_cpu.so"), p.Path)
			require.Equal(t, 1, strings.Count(f.notes.String(), "licence: Apache-2.0 (of the test)"), f.notes.String())

			again, err := f.locate(t)
			require.NoError(t, err)
			require.Equal(t, p, again)
			require.Equal(t, 1, x.pages)
			require.Len(t, x.files, 1)
		})
	}
}

func TestLocateQuietSaysNothing(t *testing.T) {
	f := newFixture(t)
	f.env["PIP_INDEX_URL"] = newIndex(t, f).simple()
	f.opts.Quiet = true
	_, err := f.locate(t)
	require.NoError(t, err)
	require.Empty(t, f.notes.String())
}

func TestLocateRefusesOtherBytes(t *testing.T) {
	other := func(f *fixture) []byte {
		b := append([]byte(nil), f.wheel...)
		b[len(b)/2] ^= 1
		return b
	}
	cases := []struct {
		name  string
		spoil func(*fixture, *index)
		want  string
		asked int // requests for the wheel
	}{
		{"index names another digest", func(f *fixture, x *index) { x.says = strings.Repeat("a", 64) }, "pinned is", 0},
		{"bytes differ though the index vouches", func(f *fixture, x *index) { x.body = other(f) }, "sha256 is", 1},
		{"another length", func(f *fixture, x *index) { x.body = append(f.wheel, 0) }, "want", 1},
		{"always truncated", func(f *fixture, x *index) { x.cut, x.breaks, x.noRanges = 0, 99, true }, "given up after 3 attempts", 3},
		{"wheel of another name only", func(f *fixture, x *index) {
			f.pin.Wheel = "fake_pjrt-1.3-py3-none-any.whl"
			x.f = &fixture{pin: newFixture(t).pin}
		}, "lists 2 files", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			x := newIndex(t, f)
			f.env["PIP_INDEX_URL"] = x.simple()
			c.spoil(f, x)
			_, err := f.locate(t)
			var absent *AbsentError
			require.ErrorAs(t, err, &absent)
			require.ErrorContains(t, err, c.want)
			require.Len(t, x.files, c.asked)
			_, err = os.Stat(filepath.Join(f.store(), f.pin.dir(), f.pin.library()))
			require.ErrorIs(t, err, os.ErrNotExist)
		})
	}
}

func TestLocateRefusesWheelsThatAreWrongInside(t *testing.T) {
	cases := []struct {
		name    string
		members func(*fixture) map[string][]byte
		raw     []byte
		want    string
	}{
		{"no zip", nil, []byte("not a zip at all"), "no usable wheel"},
		{"no member", func(f *fixture) map[string][]byte { return map[string][]byte{"x": nil} }, nil, "has no member fake_pjrt/pjrt_cpu.so"},
		{"member too long", func(f *fixture) map[string][]byte {
			return map[string][]byte{f.pin.Member: append(f.library, 1)}
		}, nil, "has 300001 bytes, want 300000"},
		{"member differs", func(f *fixture) map[string][]byte {
			b := append([]byte(nil), f.library...)
			b[9] ^= 1
			return map[string][]byte{f.pin.Member: b}
		}, nil, "pinned is"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			x := newIndex(t, f)
			f.env["PIP_INDEX_URL"] = x.simple()
			f.wheel = c.raw
			if c.members != nil {
				f.wheel = zipped(t, c.members(f))
			}
			// The wheel is as pinned, so that only the check of the library is left to refuse it.
			f.pin.WheelSHA256, f.pin.WheelSize = sum(f.wheel), int64(len(f.wheel))
			_, err := f.locate(t)
			require.ErrorContains(t, err, c.want)
			f.requireNoLeftovers(t)
		})
	}
}

func TestLocateResumesABrokenDownload(t *testing.T) {
	f := newFixture(t)
	x := newIndex(t, f)
	x.cut, x.breaks = 100_000, 2
	f.env["PIP_INDEX_URL"] = x.simple()
	p, err := f.locate(t)
	require.NoError(t, err)
	f.requireGood(t, p)
	require.Len(t, x.files, 3)
	require.Equal(t, "", x.files[0])
	require.Regexp(t, `^bytes=[1-9][0-9]*-$`, x.files[1])
	require.Regexp(t, `^bytes=[1-9][0-9]*-$`, x.files[2])
}

func TestLocateStartsAgainWhereRangesAreNotKnown(t *testing.T) {
	f := newFixture(t)
	x := newIndex(t, f)
	x.cut, x.breaks, x.noRanges = 100_000, 1, true
	f.env["PIP_INDEX_URL"] = x.simple()
	p, err := f.locate(t)
	require.NoError(t, err)
	f.requireGood(t, p)
	require.Len(t, x.files, 2)
}

func TestLocateGoesOnWithTheLastRunsPart(t *testing.T) {
	for _, good := range []bool{true, false} {
		t.Run(fmt.Sprintf("good=%t", good), func(t *testing.T) {
			f := newFixture(t)
			x := newIndex(t, f)
			f.env["PIP_INDEX_URL"] = x.simple()
			part := append([]byte(nil), f.wheel[:50_000]...)
			if !good {
				part[7] ^= 1
			}
			write(t, filepath.Join(f.store(), f.pin.Wheel+".part"), part)
			p, err := f.locate(t)
			require.NoError(t, err)
			f.requireGood(t, p)
			want := []string{"bytes=50000-"}
			if !good {
				want = append(want, "") // the digest was wrong at the end: once more from the start
			}
			require.Equal(t, want, x.files)
		})
	}
}

func TestLocateFollowsRedirectsWithoutShowingTheirTokens(t *testing.T) {
	f := newFixture(t)
	x, mirror := newIndex(t, f), newIndex(t, f)
	x.redirect = mirror.URL
	x.user = "me:secret"
	f.env["PIP_INDEX_URL"] = strings.Replace(x.simple(), "http://", "http://me:secret@", 1)
	mirror.body = f.wheel[:1000]
	_, err := f.locate(t)
	require.Error(t, err)
	require.NotContains(t, err.Error()+f.notes.String(), "secret")
	require.NotContains(t, err.Error()+f.notes.String(), "geheim")

	mirror.body = nil
	p, err := f.locate(t)
	require.NoError(t, err)
	f.requireGood(t, p)
	require.NotContains(t, p.Source, "secret")
	require.NotContains(t, f.notes.String(), "secret")
}

func TestLocateRetriesServerErrorsAndStalls(t *testing.T) {
	t.Run("503", func(t *testing.T) {
		f := newFixture(t)
		failures := 2
		x := newIndex(t, f)
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if failures > 0 {
				failures--
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			x.ServeHTTP(w, r)
		}))
		defer front.Close()
		f.env["PIP_INDEX_URL"] = front.URL + "/simple"
		p, err := f.locate(t)
		require.NoError(t, err)
		f.requireGood(t, p)
	})
	t.Run("silence", func(t *testing.T) {
		f := newFixture(t)
		release := make(chan struct{})
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<a href=")
			w.(http.Flusher).Flush()
			<-release
		}))
		defer front.Close()
		defer close(release)
		f.env["PIP_INDEX_URL"], f.env["PIP_TIMEOUT"], f.env["PIP_RETRIES"] = front.URL, "0.1", "1"
		_, err := f.locate(t)
		require.ErrorContains(t, err, "nothing received for 100ms")
	})
}

func TestLocateIndexOrder(t *testing.T) {
	f := newFixture(t)
	empty, wrong, right := newIndex(t, f), newIndex(t, f), newIndex(t, f)
	empty.f = &fixture{pin: Pin{Wheel: "none.whl"}}
	wrong.body = append([]byte(nil), f.wheel...)
	wrong.body[100] ^= 1
	f.env["PIP_INDEX_URL"] = empty.simple()
	f.env["PIP_EXTRA_INDEX_URL"] = wrong.simple() + "  " + right.simple()
	p, err := f.locate(t)
	require.NoError(t, err)
	f.requireGood(t, p)
	require.Equal(t, []int{1, 1, 1}, []int{empty.pages, wrong.pages, right.pages})
	require.Equal(t, "package index "+right.simple(), p.Source)
}

func TestLocateAbsentTellsEveryPlaceAndTheWayOut(t *testing.T) {
	f := newFixture(t)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	f.env["PIP_INDEX_URL"] = strings.Replace(gone.URL, "http://", "http://me:secret@", 1) + "/simple"
	f.env["PIP_EXTRA_INDEX_URL"] = "ftp://me:secret@example.invalid/simple"
	f.env["PIP_FIND_LINKS"] = filepath.Join(f.home, "nowhere")
	start := time.Now()
	_, err := f.locate(t)
	require.Less(t, time.Since(start), 5*time.Second)
	var absent *AbsentError
	require.ErrorAs(t, err, &absent)
	require.Len(t, absent.Tried, 3)
	require.ErrorContains(t, err, "connection refused")
	require.ErrorContains(t, err, "no http or https URL")
	require.ErrorContains(t, err, "no such file")
	require.ErrorContains(t, err, "pip download --no-deps --only-binary=:all: --platform manylinux_2_31_x86_64 --implementation cp --python-version 3.11 --abi cp311 -d DIR fake-pjrt==1.2")
	require.ErrorContains(t, err, "PJRT_PLUGIN_LIBRARY_PATH=DIR/"+f.pin.Wheel)
	require.NotContains(t, err.Error(), "secret")
}

func TestLocateOffline(t *testing.T) {
	f := newFixture(t)
	x := newIndex(t, f)
	f.env["PIP_INDEX_URL"] = x.simple()
	f.env["PIP_FIND_LINKS"] = x.URL + "/links " + filepath.Join(f.home, "wheels")
	f.opts.Offline = true
	_, err := f.locate(t)
	require.ErrorContains(t, err, "offline forbids fetching it")
	require.Empty(t, x.auths, "the network was asked")

	// A local find-links directory is no network.
	write(t, filepath.Join(f.home, "wheels", f.pin.Wheel), f.wheel)
	p, err := f.locate(t)
	require.NoError(t, err)
	f.requireGood(t, p)
	require.Empty(t, x.auths)
}

func TestLocateNoIndex(t *testing.T) {
	f := newFixture(t)
	x := newIndex(t, f)
	f.env["PIP_INDEX_URL"], f.env["PIP_NO_INDEX"] = x.simple(), "true"
	_, err := f.locate(t)
	require.ErrorContains(t, err, "no-index")
	require.Empty(t, x.auths)
}

func TestLocateFindLinks(t *testing.T) {
	place := func(t *testing.T, f *fixture, x *index) map[string]string {
		dir := filepath.Join(f.home, "wheels")
		other := strings.ReplaceAll(f.pin.Wheel, "cp311", "cp313")
		write(t, filepath.Join(f.home, "other", other), f.wheel)
		write(t, filepath.Join(f.home, "other", "fake_pjrt-1.20-py3-none-any.whl"), []byte("another version"))
		write(t, filepath.Join(dir, f.pin.Wheel), f.wheel)
		return map[string]string{
			"directory":                dir,
			"home directory":           "~/wheels",
			"file URL":                 "file://" + dir,
			"wheel":                    filepath.Join(dir, f.pin.Wheel),
			"another Python's wheel":   filepath.Join(f.home, "other"),
			"page":                     x.URL + "/simple/fake-pjrt/",
			"wheel over HTTP":          x.URL + "/files/" + f.pin.Wheel,
			"second after a bad first": filepath.Join(f.home, "none") + "\n" + dir,
		}
	}
	for name := range place(t, newFixture(t), newIndex(t, newFixture(t))) {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			x := newIndex(t, f)
			f.env["PIP_FIND_LINKS"] = place(t, f, x)[name]
			f.env["PIP_NO_INDEX"] = "1"
			p, err := f.locate(t)
			require.NoError(t, err)
			f.requireGood(t, p)
			require.FileExists(t, filepath.Join(f.home, "wheels", f.pin.Wheel), "a wheel of the user was removed")
		})
	}
}

func TestLocateCredentials(t *testing.T) {
	cases := []struct {
		name string
		set  func(t *testing.T, f *fixture, x *index)
		ok   bool
	}{
		{"none", func(t *testing.T, f *fixture, x *index) { f.env["PIP_INDEX_URL"] = x.simple() }, false},
		{"in the URL", func(t *testing.T, f *fixture, x *index) {
			f.env["PIP_INDEX_URL"] = strings.Replace(x.simple(), "http://", "http://user:p%40ss@", 1)
		}, true},
		{"netrc", func(t *testing.T, f *fixture, x *index) {
			f.env["PIP_INDEX_URL"] = x.simple()
			write(t, filepath.Join(f.home, ".netrc"), []byte("machine example.org login a password b\nmachine 127.0.0.1\n  login user\n  password p@ss\n"))
		}, true},
		{"netrc elsewhere, another host only", func(t *testing.T, f *fixture, x *index) {
			f.env["PIP_INDEX_URL"] = x.simple()
			f.env["NETRC"] = write(t, filepath.Join(f.home, "my-netrc"), []byte("machine example.org login user password p@ss"))
		}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			x := newIndex(t, f)
			x.user = "user:p@ss"
			c.set(t, f, x)
			p, err := f.locate(t)
			if !c.ok {
				require.ErrorContains(t, err, "401")
				return
			}
			require.NoError(t, err)
			f.requireGood(t, p)
		})
	}
}

func TestLocateConcurrentCallsFetchOnce(t *testing.T) {
	f := newFixture(t)
	x := newIndex(t, f)
	f.env["PIP_INDEX_URL"] = x.simple()
	f.opts.pins = []Pin{f.pin}
	var wg sync.WaitGroup
	paths := make([]string, 8)
	for i := range paths {
		wg.Go(func() {
			p, err := Locate(context.Background(), CPU, f.opts)
			if err == nil {
				paths[i] = p.Path
			}
		})
	}
	wg.Wait()
	for _, p := range paths {
		require.Equal(t, paths[0], p)
		require.NotEmpty(t, p)
	}
	require.Len(t, x.files, 1)
}

func TestLocateWaitsForTheLockAndSaysSo(t *testing.T) {
	f := newFixture(t)
	f.env["PIP_INDEX_URL"] = newIndex(t, f).simple()
	s := store{dir: f.store()}
	unlock, err := s.lock(context.Background(), f.pin.dir(), f.opts.withDefaults().reporter())
	require.NoError(t, err)

	f.opts.pins = []Pin{f.pin}
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	_, err = Locate(ctx, CPU, f.opts)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Contains(t, f.notes.String(), "waiting for another tpuc")

	time.AfterFunc(50*time.Millisecond, unlock)
	p, err := f.locate(t)
	require.NoError(t, err)
	f.requireGood(t, p)
}

func TestLocateCancelKeepsThePartForTheNextRun(t *testing.T) {
	f := newFixture(t)
	x := newIndex(t, f)
	f.env["PIP_INDEX_URL"] = x.simple()
	f.opts.pins = []Pin{f.pin}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	hold := make(chan struct{})
	defer close(hold)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/files/") {
			w.Header().Set("Content-Length", fmt.Sprint(len(f.wheel)))
			_, _ = w.Write(f.wheel[:120_000])
			w.(http.Flusher).Flush()
			time.AfterFunc(100*time.Millisecond, cancel)
			select {
			case <-hold:
			case <-r.Context().Done():
			}
			return
		}
		x.ServeHTTP(w, r)
	}))
	defer front.Close()
	f.env["PIP_INDEX_URL"] = front.URL + "/simple"
	_, err := Locate(ctx, CPU, f.opts)
	require.ErrorIs(t, err, context.Canceled)
	var absent *AbsentError
	require.False(t, errors.As(err, &absent), "an interruption is no absence")

	f.env["PIP_INDEX_URL"] = x.simple()
	p, err := f.locate(t)
	require.NoError(t, err)
	f.requireGood(t, p)
	require.Equal(t, []string{"bytes=120000-"}, x.files)
}

func TestLocateDamagedCache(t *testing.T) {
	cases := []struct {
		name   string
		damage func(t *testing.T, p *Plugin)
		asked  int // requests for the wheel afterwards
	}{
		{"library changed", func(t *testing.T, p *Plugin) { flip(t, p.Path) }, 1},
		{"library cut", func(t *testing.T, p *Plugin) { require.NoError(t, os.Truncate(p.Path, 10)) }, 1},
		{"library gone", func(t *testing.T, p *Plugin) { require.NoError(t, os.Remove(p.Path)) }, 1},
		{"mark gone", func(t *testing.T, p *Plugin) {
			require.NoError(t, os.Remove(filepath.Join(filepath.Dir(p.Path), markName)))
		}, 0},
		{"mark is nonsense", func(t *testing.T, p *Plugin) {
			write(t, filepath.Join(filepath.Dir(p.Path), markName), []byte("{\"sha256\": 7}"))
		}, 0},
		{"touched", func(t *testing.T, p *Plugin) {
			require.NoError(t, os.Chtimes(p.Path, time.Now(), time.Now().Add(time.Hour)))
		}, 0},
		{"temporary files of an interrupted run", func(t *testing.T, p *Plugin) {
			require.NoError(t, os.Remove(p.Path))
			write(t, filepath.Join(filepath.Dir(p.Path), tempPrefix+"1234"), []byte("half"))
		}, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			x := newIndex(t, f)
			f.env["PIP_INDEX_URL"] = x.simple()
			p, err := f.locate(t)
			require.NoError(t, err)
			c.damage(t, p)
			x.files = nil
			p, err = f.locate(t)
			require.NoError(t, err)
			f.requireGood(t, p)
			require.Len(t, x.files, c.asked)
		})
	}
}

// An overwrite that keeps the size, with the time of modification set back, shows in the time of change. Verify needs none.
func TestLocateSeesAnOverwriteWithTheTimeSetBack(t *testing.T) {
	f := newFixture(t)
	f.env["PIP_INDEX_URL"] = newIndex(t, f).simple()
	p, err := f.locate(t)
	require.NoError(t, err)
	fi, err := os.Stat(p.Path)
	require.NoError(t, err)
	time.Sleep(20 * time.Millisecond) // more than a tick of the file system's clock
	flip(t, p.Path)
	require.NoError(t, os.Chtimes(p.Path, fi.ModTime(), fi.ModTime()))
	require.ErrorContains(t, p.Verify(context.Background()), "has changed")
	if fileid.Of(p.Path) == "" {
		t.Skip("left out: this system does not tell a file's identity")
	}
	p, err = f.locate(t)
	require.NoError(t, err)
	f.requireGood(t, p)
}

// A library whose mark is of another mount serves from a cache that cannot be locked, for a hash each time; a damaged one does not.
func TestLocateStaleMarkInACacheThatCannotBeWritten(t *testing.T) {
	f := newFixture(t)
	f.env["PIP_INDEX_URL"] = newIndex(t, f).simple()
	p, err := f.locate(t)
	require.NoError(t, err)
	lock := filepath.Join(f.store(), f.pin.dir()+".lock")
	require.NoError(t, os.Remove(lock))
	require.NoError(t, os.Mkdir(lock, 0o755)) // which no user can open as a file, root neither
	require.NoError(t, os.Chtimes(p.Path, time.Now(), time.Now().Add(time.Hour)))
	for range 2 {
		p, err = f.locate(t)
		require.NoError(t, err)
		require.Equal(t, "the cache, verified again", p.Source)
	}
	flip(t, p.Path)
	_, err = f.locate(t)
	require.ErrorContains(t, err, "set TPUC_CACHE to a directory that can be written")
}

func flip(t *testing.T, path string) {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	data[len(data)/2] ^= 1
	require.NoError(t, os.WriteFile(path, data, 0o644))
}

func TestLocateOtherPlatform(t *testing.T) {
	f := newFixture(t)
	f.opts.os, f.opts.arch = "darwin", "arm64"
	_, err := f.locate(t)
	var platform *PlatformError
	require.ErrorAs(t, err, &platform)
	require.ErrorContains(t, err, "cpu plugin: none for darwin/arm64: plugins exist for linux/amd64 only; inspect, opt, eval")
}

func TestLocateUnknownKind(t *testing.T) {
	_, err := Locate(context.Background(), "gpu", newFixture(t).opts)
	require.EqualError(t, err, `plugin kind "gpu" is not known, want one of cpu`)
}

func TestLocateCacheThatCannotBeWritten(t *testing.T) {
	f := newFixture(t)
	f.env[EnvCache] = filepath.Join(write(t, filepath.Join(f.home, "file"), nil), "cache")
	_, err := f.locate(t)
	require.ErrorContains(t, err, "set TPUC_CACHE to a directory that can be written")
}

func TestLocateFullDisk(t *testing.T) {
	f := newFixture(t)
	f.env["PIP_INDEX_URL"] = newIndex(t, f).simple()
	f.pin.LibrarySize = 1 << 60
	_, err := f.locate(t)
	require.ErrorContains(t, err, "free some, or set TPUC_CACHE to a larger disk")
}

func TestLocateDoesNotFollowATricklingServerForEver(t *testing.T) {
	f := newFixture(t)
	x := newIndex(t, f)
	x.cut, x.breaks = 10, 1000
	f.env["PIP_INDEX_URL"] = x.simple()
	_, err := f.locate(t)
	require.ErrorContains(t, err, "given up after 3 attempts")
	require.Len(t, x.files, 3)
}

func TestCredentialsStayWithTheirOrigin(t *testing.T) {
	f := newFixture(t)
	plain := newIndex(t, f)
	host := strings.TrimPrefix(plain.URL, "http://")
	c, err := f.opts.newClient(pipConfig{Indexes: []string{"https://me:secret@" + host + "/simple"}})
	require.NoError(t, err)
	u, err := parseURL(plain.simple() + "/fake-pjrt/")
	require.NoError(t, err)
	_, err = c.page(context.Background(), u)
	require.NoError(t, err)
	require.Equal(t, []string{":"}, plain.auths)
}

func TestLocatePageThatIsNoneIsNotAskedForAgain(t *testing.T) {
	f := newFixture(t)
	asked := 0
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, "<html>")
	}))
	defer front.Close()
	f.env["PIP_INDEX_URL"] = front.URL
	_, err := f.locate(t)
	require.ErrorContains(t, err, "no JSON of the simple API")
	require.Equal(t, 1, asked)
}
