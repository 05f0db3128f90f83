package plugin

import (
	"context"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLocateCertificates(t *testing.T) {
	cases := []struct {
		name string
		set  func(f *fixture, bundle, host string)
		want string // error; empty for success
	}{
		{"unknown authority", func(*fixture, string, string) {}, "certificate"},
		{"pip's cert", func(f *fixture, bundle, _ string) { f.env["PIP_CERT"] = bundle }, ""},
		{"pip.conf's cert", func(f *fixture, bundle, _ string) {
			f.env["PIP_CONFIG_FILE"] = bundle + ".conf"
			_ = os.WriteFile(bundle+".conf", []byte("[global]\ncert = "+bundle), 0o644)
		}, ""},
		{"SSL_CERT_FILE", func(f *fixture, bundle, _ string) { f.env["SSL_CERT_FILE"] = bundle }, ""},
		{"REQUESTS_CA_BUNDLE", func(f *fixture, bundle, _ string) { f.env["REQUESTS_CA_BUNDLE"] = bundle }, ""},
		{"directory", func(f *fixture, bundle, _ string) { f.env["PIP_CERT"] = filepath.Dir(bundle) }, ""},
		{"trusted host", func(f *fixture, _, host string) { f.env["PIP_TRUSTED_HOST"] = "elsewhere " + host }, ""},
		{"absent cert", func(f *fixture, bundle, _ string) { f.env["PIP_CERT"] = bundle + "x" }, "pip's cert"},
		{"cert without certificates", func(f *fixture, bundle, _ string) {
			f.env["PIP_CERT"] = bundle
			_ = os.WriteFile(bundle, []byte("hello"), 0o644)
		}, "holds no PEM certificate"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			x := &index{f: f}
			srv := httptest.NewUnstartedServer(x)
			srv.Config.ErrorLog = log.New(io.Discard, "", 0)
			srv.StartTLS()
			defer srv.Close()
			u, err := url.Parse(srv.URL)
			require.NoError(t, err)
			bundle := write(t, filepath.Join(f.home, "ca", "bundle.pem"),
				pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
			f.env["PIP_INDEX_URL"] = srv.URL + "/simple"
			c.set(f, bundle, u.Host)
			p, err := f.locate(t)
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				return
			}
			require.NoError(t, err)
			f.requireGood(t, p)
		})
	}
}

func TestLocateThroughAProxy(t *testing.T) {
	for _, set := range []struct{ name, key, scheme string }{{"variable", "http_proxy", "http://"}, {"pip's proxy", "PIP_PROXY", ""}} {
		t.Run(set.name, func(t *testing.T) {
			f := newFixture(t)
			x := newIndex(t, f)
			var asked []string
			proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.URL.String())
				x.ServeHTTP(w, r)
			}))
			defer proxy.Close()
			f.env[set.key] = set.scheme + strings.TrimPrefix(proxy.URL, "http://")
			f.env["PIP_INDEX_URL"] = "http://index.invalid/simple"
			p, err := f.locate(t)
			require.NoError(t, err)
			f.requireGood(t, p)
			require.Equal(t, "http://index.invalid/simple/fake-pjrt/", asked[0])
		})
	}
}

func TestListAndFacts(t *testing.T) {
	f := newFixture(t)
	x := newIndex(t, f)
	f.env["PIP_INDEX_URL"] = strings.Replace(x.simple(), "http://", "http://me:secret@", 1)
	list, err := List(f.opts)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.False(t, list[0].Present)
	require.True(t, list[0].Usable)

	p, err := f.locate(t)
	require.NoError(t, err)
	list, err = List(f.opts)
	require.NoError(t, err)
	require.Equal(t, []Status{{
		Kind: CPU, Name: "fake-pjrt", Version: "1.2", Licence: "Apache-2.0", Digest: f.pin.LibrarySHA256,
		Size: f.pin.LibrarySize, Fetch: f.pin.WheelSize, Present: true, Path: p.Path, Usable: true,
	}}, list)

	facts := map[string]string{}
	for _, fact := range Facts(f.opts) {
		require.False(t, fact.Problem, fact)
		require.NotContains(t, fact.Value, "secret")
		facts[fact.Name] = fact.Value
	}
	require.Equal(t, "fake-pjrt 1.2: present, verified", facts["cpu plugin"])
	require.Equal(t, strings.Replace(x.simple(), "http://", "http://***@", 1), facts["package index"])
	require.Equal(t, f.store(), facts["plugin cache"])

	f.opts.os = "windows"
	f.opts.CacheDir = f.home
	require.True(t, Facts(f.opts)[0].Problem)
}

func TestPinsAreWellFormed(t *testing.T) {
	require.Len(t, Pins, 2)
	for _, p := range Pins {
		require.Regexp(t, `^[0-9a-f]{64} [0-9a-f]{64}$`, p.WheelSHA256+" "+p.LibrarySHA256)
		require.Contains(t, p.Wheel, strings.ReplaceAll(p.Name, "-", "_")+"-"+p.Version+"-")
		require.True(t, strings.HasSuffix(p.Wheel, "_x86_64.whl"))
		require.Greater(t, p.LibrarySize, p.WheelSize)
		require.NotEmpty(t, p.Licence)
		require.Equal(t, p.Kind, kindOf(p.library()))
		require.Equal(t, p.Kind, kindOf(p.Wheel))
	}
}

// TestLocateReal fetches the CPU plugin as a user's first start does, into the cache that the other tests use.
func TestLocateReal(t *testing.T) {
	for _, kind := range []Kind{CPU, TPU} {
		t.Run(string(kind), func(t *testing.T) {
			if !strings.Contains(os.Getenv("TPUC_REQUIRE"), string(kind)) {
				t.Skipf("TPUC_REQUIRE does not name %s", kind)
			}
			p, err := Locate(context.Background(), kind, Options{})
			require.NoError(t, err)
			require.NoError(t, p.Verify(context.Background()))
		})
	}
}
