package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/url"
	"path"
	"strings"

	"golang.org/x/net/html"
)

// maxPage bounds an index page: the largest projects have a few mebibytes.
const maxPage = 64 << 20

// acceptPage prefers the JSON form (PEP 691) and takes the HTML form (PEP 503) from older indexes.
const acceptPage = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"

// indexFile is one file that an index page offers. The digest is the index's word, used only to refuse early.
type indexFile struct {
	Name   string
	URL    string // absolute
	SHA256 string // lower-case hex; empty if not given
	Size   int64  // bytes; zero if not given
}

// parsePage reads a project page of the simple repository API, or any HTML page of links, which was fetched from base.
func parsePage(contentType string, data []byte, base *url.URL) ([]indexFile, error) {
	kind, _, _ := mime.ParseMediaType(contentType)
	if strings.HasSuffix(kind, "json") {
		return parseJSONPage(data, base)
	}
	return parseHTMLPage(data, base)
}

// parseJSONPage reads PEP 691's form. Entries that are no usable file are left out; a page that is not of the form is an error.
func parseJSONPage(data []byte, base *url.URL) ([]indexFile, error) {
	var page struct {
		Meta struct {
			Version string `json:"api-version"`
		} `json:"meta"`
		Files []struct {
			Filename string            `json:"filename"`
			URL      string            `json:"url"`
			Hashes   map[string]string `json:"hashes"`
			Size     int64             `json:"size"`
		} `json:"files"`
	}
	if err := json.Unmarshal(data, &page); err != nil {
		return nil, fmt.Errorf("the index page is no JSON of the simple API: %w", err)
	}
	if v := page.Meta.Version; v != "" && !strings.HasPrefix(v, "1.") {
		return nil, fmt.Errorf("the index speaks version %q of the simple API, want 1.x", shorten(v))
	}
	var files []indexFile
	for _, f := range page.Files {
		u, ok := resolve(base, f.URL) // PEP 691 lets it be relative
		if !ok {
			continue
		}
		name := f.Filename
		if name == "" {
			name = path.Base(u.Path)
		}
		files = append(files, indexFile{Name: name, URL: u.String(), SHA256: strings.ToLower(f.Hashes["sha256"]), Size: f.Size})
	}
	return files, nil
}

// parseHTMLPage reads PEP 503's form: anchors whose address ends in the file's name, with an optional #sha256=... fragment.
func parseHTMLPage(data []byte, base *url.URL) ([]indexFile, error) {
	var files []indexFile
	// A tokenizer, no tree: index pages are long and flat, and nesting them would cost memory that an attacker chooses.
	z := html.NewTokenizer(bytes.NewReader(data))
	z.SetMaxBuf(1 << 20)
	for {
		switch z.Next() {
		case html.ErrorToken:
			if err := z.Err(); !errors.Is(err, io.EOF) {
				return nil, fmt.Errorf("the index page is no HTML: %w", err)
			}
			return files, nil
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			href, ok := attribute(t, "href")
			if !ok {
				continue
			}
			u, ok := resolve(base, href)
			if !ok {
				continue
			}
			switch t.Data {
			case "base": // applies to the links after it
				base = u
			case "a":
				f := indexFile{Name: path.Base(u.Path)}
				if algorithm, digest, _ := strings.Cut(u.Fragment, "="); algorithm == "sha256" {
					f.SHA256 = strings.ToLower(digest)
				}
				u.Fragment, u.RawFragment = "", ""
				f.URL = u.String()
				files = append(files, f)
			}
		}
	}
}

func attribute(t html.Token, key string) (string, bool) {
	for _, a := range t.Attr {
		if a.Key == key {
			return strings.TrimSpace(a.Val), true
		}
	}
	return "", false
}

// resolve makes ref absolute; only what can be fetched over HTTP is taken.
func resolve(base *url.URL, ref string) (*url.URL, bool) {
	u, err := url.Parse(ref)
	if err != nil {
		return nil, false
	}
	u = base.ResolveReference(u)
	return u, (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// projectURL is the address of a project's page: the name is already in PEP 503's normal form.
func projectURL(index *url.URL, name string) *url.URL {
	u := index.JoinPath(name, "/")
	u.Fragment = ""
	return u
}

// errTooLong reports data beyond a bound.
func errTooLong(limit int64) error {
	return fmt.Errorf("longer than %s, the most that is read", bytesText(limit))
}
