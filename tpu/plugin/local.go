package plugin

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// local returns the plugin that the user named, or nil if none is named for this kind. PJRT_PLUGIN_LIBRARY_PATH may be a
// path list; its directories are searched for the pinned library's name, and a file that is plainly another kind's
// (libtpu.so when the CPU plugin is asked for) is passed over, so that one setting serves a TPU compile and a CPU run.
func (o Options) local(ctx context.Context, pin Pin) (*Plugin, error) {
	if o.Library != "" { // said on this very command: no guessing of kinds
		return o.localFile(ctx, pin, o.expandHome(o.Library), "the library option")
	}
	for _, entry := range filepath.SplitList(o.env(EnvLibrary)) {
		if entry == "" {
			continue
		}
		entry = o.expandHome(entry)
		// Named and absent is an error, not a reason to fetch another: the user would run what they did not choose.
		fi, err := os.Stat(entry)
		if err != nil {
			return nil, fmt.Errorf("%s plugin: %s: %w", pin.Kind, EnvLibrary, err)
		}
		if fi.IsDir() {
			for _, name := range []string{pin.library(), pin.Wheel} {
				file := filepath.Join(entry, name)
				if fi, err := os.Stat(file); err == nil && fi.Mode().IsRegular() {
					return o.localFile(ctx, pin, file, EnvLibrary)
				}
			}
			continue
		}
		if k := kindOf(entry); k == "" || k == pin.Kind {
			return o.localFile(ctx, pin, entry, EnvLibrary)
		}
	}
	return nil, nil
}

// kindOf guesses a kind from a file's name; empty if the name says nothing.
func kindOf(file string) Kind {
	name := strings.ToLower(filepath.Base(file))
	// libtpu.so, pjrt_c_api_tpu_plugin.so, pjrt_c_api_cpu_plugin.so, libpjrt_cpu.so
	switch {
	case strings.Contains(name, "tpu"):
		return TPU
	case strings.Contains(name, "cpu"):
		return CPU
	}
	return ""
}

// localFile describes a library or unpacks a wheel that the user named.
func (o Options) localFile(ctx context.Context, pin Pin, file, source string) (*Plugin, error) {
	fail := func(err error) (*Plugin, error) {
		return nil, fmt.Errorf("%s plugin: %s names %s: %w", pin.Kind, source, file, err)
	}
	file, err := filepath.Abs(file)
	if err != nil {
		return fail(err)
	}
	fi, err := os.Stat(file)
	if err != nil {
		return fail(err)
	}
	if !fi.Mode().IsRegular() {
		return fail(fmt.Errorf("it is no regular file, want a shared library or a wheel"))
	}
	if strings.EqualFold(filepath.Ext(file), ".whl") {
		p, err := o.localWheel(ctx, pin, file, source)
		if err != nil {
			return fail(err)
		}
		return p, nil
	}
	if err := o.checkLibrary(file); err != nil {
		return fail(err)
	}
	digest, err := o.digestOf(ctx, file)
	if err != nil {
		return fail(err)
	}
	return o.describe(pin, file, digest, fi.Size(), source), nil
}

// describe names a local library: by its pin when it is a pinned one, else by its file.
func (o Options) describe(pin Pin, file, digest string, size int64, source string) *Plugin {
	if digest == pin.LibrarySHA256 {
		return pin.plugin(file, source)
	}
	return &Plugin{Kind: pin.Kind, Path: file, Digest: digest, Size: size, Name: filepath.Base(file), Source: source}
}

// localWheel unpacks a wheel's library once into the cache.
func (o Options) localWheel(ctx context.Context, pin Pin, wheel, source string) (*Plugin, error) {
	s, err := o.store()
	if err != nil {
		return nil, err
	}
	wheelDigest, err := o.digestOf(ctx, wheel)
	if err != nil {
		return nil, err
	}
	z, err := zip.OpenReader(wheel)
	if err != nil {
		return nil, fmt.Errorf("no usable wheel: %w", err)
	}
	defer z.Close()
	f, err := libraryMember(&z.Reader, pin)
	if err != nil {
		return nil, err
	}
	if f.UncompressedSize64 > maxLibrary {
		return nil, fmt.Errorf("%s has %d bytes, want at most %d", f.Name, f.UncompressedSize64, int64(maxLibrary))
	}
	size := int64(f.UncompressedSize64)
	// By the wheel's digest: a rebuilt wheel of the same name is unpacked anew.
	name := "local-" + wheelDigest[:12]
	file := filepath.Join(s.dir, name, filepath.Base(f.Name)) // Base: a member's path never leaves the directory
	markFile := filepath.Join(s.dir, name, markName)
	if m, ok := readMark(markFile, file); ok {
		return o.describe(pin, file, m.SHA256, m.Size, source), nil
	}
	r := o.reporter()
	unlock, err := s.lock(ctx, name, r)
	if err != nil {
		return nil, err
	}
	defer unlock()
	// Another process may have unpacked it while we waited.
	if m, ok := readMark(markFile, file); ok {
		return o.describe(pin, file, m.SHA256, m.Size, source), nil
	}
	dir, err := s.make(name)
	if err != nil {
		return nil, err
	}
	clean(dir)
	if err := checkSpace(dir, size); err != nil {
		return nil, err
	}
	digest, err := extract(ctx, f, file, size, "", "unpacking "+filepath.Base(wheel), r)
	if err != nil {
		return nil, err
	}
	m, err := markOf(file, digest, source)
	if err == nil {
		err = m.write(markFile)
	}
	if err != nil {
		return nil, err
	}
	return o.describe(pin, file, digest, size, source), nil
}

// digestOf hashes a file the user named, or recalls the digest it had in this state. A cache that cannot be
// written costs a hash at each start, no more.
func (o Options) digestOf(ctx context.Context, file string) (string, error) {
	var markFile string
	if s, err := o.store(); err == nil {
		key := sha256.Sum256([]byte(file))
		markFile = filepath.Join(s.dir, "digests", hex.EncodeToString(key[:6])+".json")
		if m, ok := readMark(markFile, file); ok && m.Source == file {
			return m.SHA256, nil
		}
	}
	before, err := markOf(file, "", file)
	if err != nil {
		return "", err
	}
	digest, _, err := hashFile(ctx, file)
	if err != nil {
		return "", err
	}
	after, err := markOf(file, "", file)
	if err != nil {
		return "", err
	}
	// A library that is being linked or copied would get the digest of no file.
	if before != after {
		return "", fmt.Errorf("it changed while it was read")
	}
	if markFile != "" && os.MkdirAll(filepath.Dir(markFile), 0o755) == nil {
		after.SHA256 = digest
		_ = after.write(markFile)
	}
	return digest, nil
}

// checkLibrary tells a shared library from a text file or a half download before the loader does, less clearly.
func (o Options) checkLibrary(file string) error {
	if o.os != "linux" { // Mach-O has several magic numbers; elsewhere the loader decides
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	magic := make([]byte, 4)
	if _, err := io.ReadFull(f, magic); err != nil || !bytes.Equal(magic, []byte("\x7fELF")) {
		return fmt.Errorf("it begins with %q, want an ELF shared library or a .whl", magic)
	}
	return nil
}
