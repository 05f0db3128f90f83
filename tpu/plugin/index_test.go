package plugin

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestParsePage(t *testing.T) {
	base, err := url.Parse("https://h/simple/p/")
	require.NoError(t, err)
	cases := []struct {
		name, kind, in string
		want           []indexFile
		err            string
	}{
		{"json", "application/vnd.pypi.simple.v1+json", `{"meta":{"api-version":"1.3"},"files":[
			{"filename":"a.whl","url":"https://f/x/a.whl","hashes":{"sha256":"AB"},"size":7,"yanked":"why"},
			{"filename":"b.whl","url":"../../b.whl","hashes":{}},
			{"filename":"c.whl","url":"javascript:alert(1)"}, {"url":"d.whl"}]}`,
			[]indexFile{{"a.whl", "https://f/x/a.whl", "ab", 7}, {"b.whl", "https://h/b.whl", "", 0}, {"d.whl", "https://h/simple/p/d.whl", "", 0}}, ""},
		{"json of another major version", "application/json", `{"meta":{"api-version":"2.0"}}`, nil, `the index speaks version "2.0" of the simple API, want 1.x`},
		{"json that is none", "application/json; charset=utf-8", `<html>`, nil, "no JSON of the simple API"},
		{"html", "text/html", `<!DOCTYPE html><body><a href="../../x/a%2Bb-1.whl#sha256=CD">a</a><a name=x>none</a>
			<A HREF='https://f/c.whl#md5=1'>c</A><!-- <a href="no.whl"></a> --></body>`,
			[]indexFile{{"a+b-1.whl", "https://h/x/a%2Bb-1.whl", "cd", 0}, {"c.whl", "https://f/c.whl", "", 0}}, ""},
		{"html with a base", "text/html", `<base href="https://cdn/q/"><a href="a.whl">`, []indexFile{{"a.whl", "https://cdn/q/a.whl", "", 0}}, ""},
		{"no type is HTML", "", `<a href=/a.whl>`, []indexFile{{"a.whl", "https://h/a.whl", "", 0}}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := parsePage(c.kind, []byte(c.in), base)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(c.want, got))
		})
	}
}

func TestProjectURL(t *testing.T) {
	for in, want := range map[string]string{
		"https://h/simple":       "https://h/simple/p/",
		"https://h/simple/":      "https://h/simple/p/",
		"https://h":              "https://h/p/",
		"https://h/simple/?k=v":  "https://h/simple/p/?k=v",
		"https://u:p@h:8/a/b#x":  "https://u:p@h:8/a/b/p/",
		"https://h/a%2Fb/simple": "https://h/a%2Fb/simple/p/",
	} {
		u, err := url.Parse(in)
		require.NoError(t, err)
		require.Equal(t, want, projectURL(u, "p").String())
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"https://h/simple":                   "https://h/simple",
		"https://me:pw@h/simple?k=secret#x":  "https://***@h/simple",
		"https://token@h:8/":                 "https://***@h:8/",
		"https://me:p%zz@h/ malformed":       "https://***@h/ malformed",
		"https://a:b@h/ and https://c:d@i/x": "https://***@h/ and https://***@i/x",
	} {
		require.Equal(t, want, redact(in))
	}
}

func TestParseNetrc(t *testing.T) {
	got := parseNetrc("# comment\nmachine A.example login u password \"p\"\nmacdef init\n machine evil login x\n\n" +
		"machine b account z\n login v\n password w\ndefault login anon password @\nmachine")
	require.Empty(t, cmp.Diff([]netrcEntry{{"a.example", "u", "p"}, {"b", "v", "w"}, {"", "anon", "@"}}, got))
	require.Equal(t, "u:p", netrcUser(got, "a.example").String())
	require.Equal(t, "anon:%40", netrcUser(got, "elsewhere").String())
	require.Nil(t, netrcUser(got[:2], "elsewhere"))
}

func TestRangeStart(t *testing.T) {
	for in, want := range map[string]int64{"bytes 5-9/10": 5, "bytes 0-0/*": 0, "bytes */10": -1, "": -1, "bytes 5": -1, "items 5-9/10": -1} {
		require.Equal(t, want, rangeStart(in), in)
	}
}

func FuzzParsePage(f *testing.F) {
	f.Add(true, []byte(`{"meta":{"api-version":"1.0"},"files":[{"filename":"a","url":"b","hashes":{"sha256":"c"}}]}`))
	f.Add(false, []byte(`<base href=x><a href="../a.whl#sha256=00">a</a>`))
	f.Add(false, []byte(`<html><A HREF='a b.whl' data-requires-python="&gt;=3" data-yanked>a</A><a>none</a><a href="://">bad</a><a href="ftp://h/x">x</a><base><base href="::">`))
	f.Add(false, []byte(`<a href="x`))
	for _, s := range []string{`{`, `[]`, `{"meta":{"api-version":"2.0"},"files":[]}`, `{"meta":{"api-version":"x"}}`, `{"files":[{"filename":"a","url":"::"},{"filename":"b","url":"ftp://x","yanked":"why"}]}`,
		`{"meta":{"api-version":"1.4"},"files":[{"filename":"a","url":"b","hashes":{"sha256":"zz"},"size":-1,"yanked":true},{"filename":"","url":""}]}`} {
		f.Add(true, []byte(s))
	}
	base, err := url.Parse("https://h/simple/p/")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, json bool, data []byte) {
		kind := "text/html"
		if json {
			kind = "application/json"
		}
		files, err := parsePage(kind, data, base)
		if err != nil {
			return
		}
		for _, x := range files {
			_, err := parseURL(x.URL)
			require.NoError(t, err, x.URL)
		}
	})
}

func FuzzParseNetrc(f *testing.F) {
	f.Add("machine a login b password c\ndefault login d\nmacdef x\n\n")
	f.Add("# a comment\nmachine \"quoted host\" login 'single' account x password \"with \\\"escape\\\" inside\"\nmachine\n")
	f.Add("login nobody\nmachine a password \"open\nmachine b login c # not a password\nunknown token\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, e := range parseNetrc(text) {
			require.NotEmpty(t, e.Login+e.Password)
		}
	})
}
