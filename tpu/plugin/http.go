package plugin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/http/httpproxy"
)

const (
	dialTimeout  = 30 * time.Second
	stallTimeout = 60 * time.Second // nothing received for so long ends an attempt
)

// client asks package indexes over HTTP as pip would: its proxies, certificates and credentials.
type client struct {
	http  *http.Client
	stall time.Duration
}

// statusError is an answer of HTTP that is no success.
type statusError struct {
	Code int
	URL  string // redacted
}

func (e *statusError) Error() string {
	hint := ""
	switch e.Code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		hint = "; put credentials into the index URL or ~/.netrc"
	case http.StatusNotFound:
		hint = "; the index does not have it"
	}
	return fmt.Sprintf("%s answered %d %s%s", e.URL, e.Code, http.StatusText(e.Code), hint)
}

// stallError ends an attempt whose server fell silent.
type stallError struct{ after time.Duration }

func (e stallError) Error() string { return fmt.Sprintf("nothing received for %s", e.after) }

// newClient builds the client of a configuration. An error is a certificate file that cannot be used.
func (o Options) newClient(c pipConfig) (*client, error) {
	roots, err := o.roots(c)
	if err != nil {
		return nil, err
	}
	proxy, err := o.proxy(c)
	if err != nil {
		return nil, err
	}
	stall := stallTimeout
	if c.Timeout > 0 {
		stall = c.Timeout
	}
	conf := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if c.ClientCert != "" {
		name := o.expandHome(c.ClientCert)
		cert, err := tls.LoadX509KeyPair(name, name)
		if err != nil {
			return nil, fmt.Errorf("pip's client-cert: %w", err)
		}
		conf.Certificates = []tls.Certificate{cert}
	}
	// No limit on the whole transfer: a slow line is no fault, silence is (stallBody).
	secure := &http.Transport{
		Proxy:                 proxy,
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: stall,
		TLSClientConfig:       conf,
		ForceAttemptHTTP2:     true,
	}
	t := &transport{secure: secure, trusted: c.TrustedHosts, netrc: o.netrc(), users: map[string]*url.Userinfo{}}
	if len(c.TrustedHosts) > 0 {
		// pip's --trusted-host: the pin still fixes every byte that is kept.
		loose := secure.Clone()
		loose.TLSClientConfig.InsecureSkipVerify = true
		t.loose = loose
	}
	// Files often lie on the index's own host, under URLs without its credentials; pip uses them there too.
	for _, index := range append(append([]string{}, c.Indexes...), c.FindLinks...) {
		if u, err := url.Parse(index); err == nil && u.User != nil {
			if _, seen := t.users[origin(u)]; !seen {
				t.users[origin(u)] = u.User
			}
		}
	}
	return &client{http: &http.Client{Transport: t}, stall: stall}, nil
}

// get asks for u. The body ends with stallError when the server falls silent, and must be closed. An answer other than
// 200 and 206 is a *statusError. Errors show no credentials.
func (c *client) get(ctx context.Context, u *url.URL, header map[string]string) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		cancel(nil)
		return nil, fmt.Errorf("%s is no usable address", redact(u.String()))
	}
	req.Header.Set("User-Agent", "tpuc")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		defer cancel(nil)
		return nil, fmt.Errorf("%s: %w", redact(u.String()), bare(ctx, err))
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusPartialContent {
		resp.Body.Close()
		cancel(nil)
		return nil, &statusError{Code: resp.StatusCode, URL: redact(resp.Request.URL.String())}
	}
	b := &stallBody{ctx: ctx, body: resp.Body, cancel: cancel, stall: c.stall}
	b.timer = time.AfterFunc(c.stall, func() { cancel(stallError{c.stall}) })
	resp.Body = b
	return resp, nil
}

// page fetches and parses an index or find-links page.
func (c *client) page(ctx context.Context, u *url.URL) ([]indexFile, error) {
	resp, err := c.get(ctx, u, map[string]string{"Accept": acceptPage})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := readAll(resp.Body, maxPage)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", redact(u.String()), err)
	}
	// Links are relative to where redirects led, and must not carry the index's credentials into other places.
	base := *resp.Request.URL
	base.User = nil
	files, err := parsePage(resp.Header.Get("Content-Type"), data, &base)
	if err != nil {
		return nil, fatalError{fmt.Errorf("%s: %w", redact(u.String()), err)}
	}
	return files, nil
}

// stallBody cancels its request when no byte arrives for the stall time.
type stallBody struct {
	ctx    context.Context
	body   io.ReadCloser
	cancel context.CancelCauseFunc
	timer  *time.Timer
	stall  time.Duration
}

func (b *stallBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if err == nil {
		b.timer.Reset(b.stall)
	} else if !errors.Is(err, io.EOF) {
		err = bare(b.ctx, err)
	}
	return n, err
}

func (b *stallBody) Close() error {
	b.timer.Stop()
	err := b.body.Close()
	b.cancel(nil)
	return err
}

// transport adds credentials to each hop by its own host, and leaves certificates of trusted hosts unchecked.
type transport struct {
	secure, loose http.RoundTripper // loose is nil without trusted hosts
	trusted       []string
	netrc         []netrcEntry
	users         map[string]*url.Userinfo // credentials of configured URLs, by origin
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.User == nil && req.Header.Get("Authorization") == "" {
		user := t.users[origin(req.URL)]
		if user == nil {
			user = netrcUser(t.netrc, req.URL.Hostname())
		}
		if user != nil {
			req = req.Clone(req.Context()) // a RoundTripper must not change what it was given
			password, _ := user.Password()
			req.SetBasicAuth(user.Username(), password)
		}
	}
	for _, host := range t.trusted {
		if strings.EqualFold(host, req.URL.Host) || strings.EqualFold(host, req.URL.Hostname()) {
			return t.loose.RoundTrip(req)
		}
	}
	return t.secure.RoundTrip(req)
}

// origin is what credentials belong to: a password for https is never sent to the same host over http.
func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// CloseIdleConnections lets http.Client release both transports.
func (t *transport) CloseIdleConnections() {
	for _, rt := range []http.RoundTripper{t.secure, t.loose} {
		if c, ok := rt.(interface{ CloseIdleConnections() }); ok {
			c.CloseIdleConnections()
		}
	}
}

// roots are the system's certificates and those of pip's cert option and of the variables that curl, requests and
// OpenSSL know. A file that pip's own option names must be usable; the variables' files are taken if they are.
func (o Options) roots(c pipConfig) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil { // a system without certificates: ours may do
		pool = x509.NewCertPool()
	}
	for _, name := range []string{"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"} {
		if file := o.env(name); file != "" {
			_ = addCerts(pool, file)
		}
	}
	if c.Cert != "" {
		if err := addCerts(pool, o.expandHome(c.Cert)); err != nil {
			return nil, fmt.Errorf("pip's cert: %w", err)
		}
	}
	return pool, nil
}

// addCerts adds a PEM bundle, or every readable bundle of a directory.
func addCerts(pool *x509.CertPool, name string) error {
	fi, err := os.Stat(name)
	if err != nil {
		return err
	}
	files := []string{name}
	if fi.IsDir() {
		files = nil
		for _, pattern := range []string{"*.pem", "*.crt"} {
			found, err := filepath.Glob(filepath.Join(name, pattern))
			if err != nil {
				return err
			}
			files = append(files, found...)
		}
	}
	added := false
	for _, f := range files {
		data, err := readSmall(f, 16<<20)
		if err != nil {
			return err
		}
		added = pool.AppendCertsFromPEM(data) || added
	}
	if !added {
		return fmt.Errorf("%s holds no PEM certificate", name)
	}
	return nil
}

// proxy is pip's proxy option, or the usual variables.
func (o Options) proxy(c pipConfig) (func(*http.Request) (*url.URL, error), error) {
	if c.Proxy != "" {
		raw := c.Proxy
		if !strings.Contains(raw, "://") {
			raw = "http://" + raw
		}
		u, err := url.Parse(raw)
		if err != nil {
			return nil, fmt.Errorf("pip's proxy %s is no URL", redact(c.Proxy))
		}
		return http.ProxyURL(u), nil
	}
	either := func(names ...string) string {
		for _, n := range names {
			if v := o.env(n); v != "" {
				return v
			}
		}
		return ""
	}
	conf := httpproxy.Config{
		HTTPProxy:  either("HTTP_PROXY", "http_proxy"),
		HTTPSProxy: either("HTTPS_PROXY", "https_proxy"),
		NoProxy:    either("NO_PROXY", "no_proxy"),
		CGI:        o.env("REQUEST_METHOD") != "", // there HTTP_PROXY is the client's to set (httpoxy)
	}
	find := conf.ProxyFunc()
	return func(r *http.Request) (*url.URL, error) { return find(r.URL) }, nil
}

// userinfo matches credentials in anything that looks like an address, since what url.Parse refuses is shown too.
var userinfo = regexp.MustCompile(`//[^/?#\s"]*@`)

// redact hides what may be secret in an address, well formed or not: user, password, query and fragment.
func redact(raw string) string {
	raw = userinfo.ReplaceAllString(raw, "//***@")
	if i := strings.IndexAny(raw, "?#"); i >= 0 {
		raw = raw[:i]
	}
	return raw
}

// bare takes the address, with its secrets, out of net/http's errors, and prefers the reason the request was cancelled for.
func bare(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var u *url.Error
	for errors.As(err, &u) {
		err = u.Err
	}
	return err
}

// unreachable tells a host that is not there, or a network that is not.
func unreachable(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EHOSTUNREACH)
}

// tlsError tells a refused certificate, which no attempt mends, from a passing failure.
func tlsError(err error) bool {
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	return errors.As(err, &cert) || errors.As(err, &record)
}
