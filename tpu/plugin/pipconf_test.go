package plugin

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestParseINI(t *testing.T) {
	cases := []struct {
		name, in string
		want     []iniEntry
		err      string
	}{
		{"empty", "", nil, ""},
		{"plain", "[global]\nindex-url = https://a/simple\ntimeout: 60\n", []iniEntry{
			{"global", "index-url", "https://a/simple", 2}, {"global", "timeout", "60", 3}}, ""},
		{"comments, blank lines, CRLF, mark", "\xef\xbb\xbf# hi\r\n[global]\r\n; x\r\n\r\nNo_Index = true\r\n", []iniEntry{
			{"global", "no_index", "true", 5}}, ""},
		{"continued", "[install]\nfind-links =\n    /a\n    # not this\n\n\thttps://b/\nextra-index-url = x\n y\n", []iniEntry{
			{"install", "find-links", "/a\nhttps://b/", 2}, {"install", "extra-index-url", "x\ny", 7}}, ""},
		{"equals sign in the value", "[global]\nindex-url = https://h/?a=b:c\n", []iniEntry{{"global", "index-url", "https://h/?a=b:c", 2}}, ""},
		{"indented keys", "[global]\n  cert = /c\n  proxy = p\n", []iniEntry{{"global", "cert", "/c", 2}, {"global", "proxy", "p", 3}}, ""},
		{"no section", "a = b", nil, `f:1: value outside a section, want [global] before it`},
		{"no value", "[global]\nhttps", nil, `f:2: no key and value, want key = value`},
		{"open section", "[global", nil, `f:1: section "[global" is not closed, want [name]`},
		{"binary", "[global]\x00", nil, `f: holds a zero byte, want text`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseINI("f", []byte(c.in))
			if c.err != "" {
				require.EqualError(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(c.want, got))
		})
	}
}

func TestPipConfigPrecedence(t *testing.T) {
	f := newFixture(t)
	put := func(path, text string) string { return write(t, filepath.Join(f.home, path), []byte(text)) }
	global := put("etc/pip.conf", "[global]\nindex-url = https://global/\ncert = /global.pem\ntimeout = 5\nextra-index-url =\n  https://x1/\n  https://x2/\n")
	user := put(".config/pip/pip.conf", "[global]\nindex-url = https://user/\nretries = 9\n[list]\nindex-url = https://other-command/\n")
	f.env["PIP_RETRIES"], f.env["PIP_INDEX_URL"] = "", ""

	c, err := f.opts.pipConfig()
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(pipConfig{
		Indexes: []string{"https://user/", "https://x1/", "https://x2/"}, FindLinks: []string{}, TrustedHosts: []string{},
		Cert: "/global.pem", Timeout: 5 * time.Second, Retries: 9, Files: []string{global, user},
	}, c))

	// A command's section is stronger than [global] of any file.
	f.env["VIRTUAL_ENV"] = filepath.Join(f.home, "venv")
	put("etc/pip.conf", "[global]\nindex-url = https://global/\n[install]\nindex-url = https://install/\nfind-links = /wheels ~/more\n")
	put("venv/pip.conf", "[global]\nindex-url = https://venv/\n")
	c, err = f.opts.pipConfig()
	require.NoError(t, err)
	require.Equal(t, []string{"https://install/"}, c.Indexes)
	require.Equal(t, []string{"/wheels", "~/more"}, c.FindLinks)

	// PIP_CONFIG_FILE replaces the user's file and is the strongest of the files; variables beat them all.
	f.env["PIP_CONFIG_FILE"] = put("named.conf", "[download]\nindex-url = https://named/\n")
	c, err = f.opts.pipConfig()
	require.NoError(t, err)
	require.Equal(t, []string{"https://named/"}, c.Indexes)
	require.NotContains(t, c.Files, user)
	f.env["PIP_INDEX_URL"] = "https://variable/"
	c, err = f.opts.pipConfig()
	require.NoError(t, err)
	require.Equal(t, []string{"https://variable/"}, c.Indexes)

	f.env["PIP_CONFIG_FILE"] = os.DevNull
	delete(f.env, "PIP_INDEX_URL")
	c, err = f.opts.pipConfig()
	require.NoError(t, err)
	require.Equal(t, []string{defaultIndex}, c.Indexes)
	require.Empty(t, c.Files)
}

func TestPipConfigThatCannotBeRead(t *testing.T) {
	f := newFixture(t)
	name := write(t, filepath.Join(f.home, "etc/pip.conf"), []byte("[global]\npassword secret\n"))
	_, err := f.locate(t)
	require.ErrorContains(t, err, name+":2: ")
	require.NotContains(t, err.Error(), "secret")
}

func TestLocateReadsPipConf(t *testing.T) {
	f := newFixture(t)
	x := newIndex(t, f)
	delete(f.env, "PIP_INDEX_URL")
	write(t, filepath.Join(f.home, ".pip", "pip.conf"), []byte("[global]\nindex_url = "+x.simple()+"\n"))
	p, err := f.locate(t)
	require.NoError(t, err)
	f.requireGood(t, p)
}

func FuzzParseINI(f *testing.F) {
	f.Add([]byte("[global]\nindex-url = https://a\n  b\n# c\n[install]\nx: y\n"))
	f.Add([]byte("\xef\xbb\xbf[a]\n b\n\tc=d\n e"))
	f.Add([]byte("key = before a section\n"))
	f.Add([]byte("[open\n"))
	f.Add([]byte("[a]\nno separator\n"))
	f.Add([]byte("[a]\n= no key\n"))
	f.Add([]byte("[a]\nk = \xff\xfe\n; c\n\n\n  continued after blanks\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseINI("f", data)
		if err != nil {
			return
		}
		for _, e := range entries {
			require.NotEmpty(t, e.Section+e.Key)
			require.Positive(t, e.Line)
		}
	})
}
