package plugin

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/internal/fileid"
)

func TestLocateLocalLibrary(t *testing.T) {
	own := []byte("\x7fELF my own build")
	cases := []struct {
		name   string
		set    func(t *testing.T, f *fixture) string // returns the path that must be found
		pinned bool
	}{
		{"option", func(t *testing.T, f *fixture) string {
			f.opts.Library = write(t, filepath.Join(f.home, "own.so"), own)
			f.env[EnvLibrary] = "/not/looked/at"
			return f.opts.Library
		}, false},
		{"variable", func(t *testing.T, f *fixture) string {
			f.env[EnvLibrary] = write(t, filepath.Join(f.home, "own.so"), own)
			return f.env[EnvLibrary]
		}, false},
		{"the pinned library itself", func(t *testing.T, f *fixture) string {
			f.env[EnvLibrary] = write(t, filepath.Join(f.home, "renamed.so"), f.library)
			return f.env[EnvLibrary]
		}, true},
		{"directory", func(t *testing.T, f *fixture) string {
			p := write(t, filepath.Join(f.home, "lib", "pjrt_cpu.so"), own)
			f.env[EnvLibrary] = filepath.Dir(p)
			return p
		}, false},
		{"list, with the other kind's first", func(t *testing.T, f *fixture) string {
			tpu := write(t, filepath.Join(f.home, "libtpu.so"), own)
			cpu := write(t, filepath.Join(f.home, "libpjrt_cpu.so"), own)
			f.env[EnvLibrary] = tpu + string(os.PathListSeparator) + cpu
			return cpu
		}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			// A local library works where no plugin is published.
			f.opts.arch = "arm64"
			want := c.set(t, f)
			p, err := f.locate(t)
			require.NoError(t, err)
			require.Equal(t, want, p.Path)
			require.Equal(t, c.pinned, p.Pinned)
			require.NoError(t, p.Verify(context.Background()))
			if !c.pinned {
				require.Equal(t, sum(own), p.Digest)
				require.Equal(t, filepath.Base(want)+"||", p.Name+"|"+p.Version+"|"+p.Licence)
			}
		})
	}
}

func TestLocateLocalOfAnotherKindIsPassedOver(t *testing.T) {
	f := newFixture(t)
	f.env[EnvLibrary] = write(t, filepath.Join(f.home, "libtpu.so"), []byte("\x7fELF"))
	f.env["PIP_INDEX_URL"] = newIndex(t, f).simple()
	p, err := f.locate(t)
	require.NoError(t, err)
	f.requireGood(t, p)
}

func TestLocateLocalDigestFollowsTheFile(t *testing.T) {
	f := newFixture(t)
	f.env[EnvLibrary] = write(t, filepath.Join(f.home, "own.so"), []byte("\x7fELF one"))
	one, err := f.locate(t)
	require.NoError(t, err)
	write(t, f.env[EnvLibrary], []byte("\x7fELF another"))
	two, err := f.locate(t)
	require.NoError(t, err)
	require.NotEqual(t, one.Digest, two.Digest)
	require.NoError(t, two.Verify(context.Background()))

	// Another one of the same size and time, as an installer leaves it.
	st, err := os.Stat(two.Path)
	require.NoError(t, err)
	write(t, two.Path, []byte("\x7fELF anothex"))
	require.NoError(t, os.Chtimes(two.Path, st.ModTime(), st.ModTime()))
	if fileid.Of(two.Path) == "" {
		t.Skip("left out: this system does not tell a file's identity")
	}
	three, err := f.locate(t)
	require.NoError(t, err)
	require.NoError(t, three.Verify(context.Background()))
}

func TestLocateLocalWheel(t *testing.T) {
	f := newFixture(t)
	f.env[EnvLibrary] = write(t, filepath.Join(f.home, "w", f.pin.Wheel), f.wheel)
	p, err := f.locate(t)
	require.NoError(t, err)
	f.requireGood(t, p)
	again, err := f.locate(t)
	require.NoError(t, err)
	require.Equal(t, p, again)

	own := zipped(t, map[string][]byte{"pkg/libhelper.so": []byte("\x7fELF"), "pkg/libpjrt_mine.so": []byte("\x7fELF mine")})
	f.env[EnvLibrary] = write(t, filepath.Join(f.home, "w", "own-1-py3-none-any.whl"), own)
	p, err = f.locate(t)
	require.NoError(t, err)
	require.False(t, p.Pinned)
	require.Equal(t, "libpjrt_mine.so", filepath.Base(p.Path))
	require.Equal(t, sum([]byte("\x7fELF mine")), p.Digest)
}

func TestLocateLocalErrors(t *testing.T) {
	cases := []struct {
		name string
		file string
		data []byte
		want string
	}{
		{"absent", "", nil, "no such file"},
		{"text", "a.so", []byte("hello"), `begins with "hell", want an ELF shared library or a .whl`},
		{"empty", "a.so", nil, "want an ELF shared library"},
		{"no zip", "a.whl", []byte("hello"), "no usable wheel"},
		{"no library", "a.whl", zipped(t, map[string][]byte{"x.py": nil}), "has 0 shared libraries"},
		{"two libraries", "a.whl", zipped(t, map[string][]byte{"a.so": nil, "b.so": nil}), "has 2 shared libraries, 0 of them named like a PJRT plugin"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.env[EnvLibrary] = filepath.Join(f.home, "gone.so")
			if c.file != "" {
				f.env[EnvLibrary] = write(t, filepath.Join(f.home, c.file), c.data)
			}
			_, err := f.locate(t)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, EnvLibrary)
		})
	}
}

func TestWheelMemberCannotLeaveTheCache(t *testing.T) {
	f := newFixture(t)
	f.env[EnvLibrary] = write(t, filepath.Join(f.home, "evil.whl"), zipped(t, map[string][]byte{"../../../evil.so": []byte("\x7fELF")}))
	p, err := f.locate(t)
	if err == nil {
		require.Contains(t, p.Path, f.store())
	}
	require.NoFileExists(t, filepath.Join(f.home, "evil.so"))
}
