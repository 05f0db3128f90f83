package plugin

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLibrary bounds a library of a wheel that no pin describes.
const maxLibrary = 4 << 30

// unpack writes the pinned library of a wheel into dir and marks it. The wheel itself need not be the pinned one (each
// Python version has its own, with the same library): the library's size and digest decide.
func unpack(ctx context.Context, wheel string, pin Pin, dir, source string, r *reporter) (*Plugin, error) {
	z, err := zip.OpenReader(wheel)
	if err != nil {
		return nil, fmt.Errorf("%s is no usable wheel: %w", wheel, err)
	}
	defer z.Close()
	for _, f := range z.File {
		if f.Name != pin.Member {
			continue
		}
		// The directory of a zip is only its word; extract counts the bytes that come.
		if f.UncompressedSize64 != uint64(pin.LibrarySize) {
			return nil, fmt.Errorf("%s: %s has %d bytes, want %d", wheel, f.Name, f.UncompressedSize64, pin.LibrarySize)
		}
		file := filepath.Join(dir, pin.library())
		digest, err := extract(ctx, f, file, pin.LibrarySize, pin.LibrarySHA256, "unpacking "+pin.Name, r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", wheel, err)
		}
		m, err := markOf(file, digest, source)
		if err == nil {
			err = m.write(filepath.Join(dir, markName))
		}
		if err != nil {
			return nil, err
		}
		return pin.plugin(file, source), nil
	}
	return nil, fmt.Errorf("%s has no member %s", wheel, pin.Member)
}

// libraryMember finds the PJRT library in a wheel that no pin describes: the pinned member's path, or the only shared
// library, or the only one named like a PJRT plugin.
func libraryMember(z *zip.Reader, pin Pin) (*zip.File, error) {
	var all, named []*zip.File
	for _, f := range z.File {
		if f.Name == pin.Member {
			return f, nil
		}
		base := path.Base(f.Name)
		if !strings.HasSuffix(base, ".so") && !strings.HasSuffix(base, ".dylib") && !strings.HasSuffix(base, ".dll") {
			continue
		}
		all = append(all, f)
		if strings.Contains(base, "pjrt") || strings.HasPrefix(base, "libtpu.") {
			named = append(named, f)
		}
	}
	switch {
	case len(all) == 1:
		return all[0], nil
	case len(named) == 1:
		return named[0], nil
	}
	return nil, fmt.Errorf("has %d shared libraries, %d of them named like a PJRT plugin, want one: unpack the one you mean and name it", len(all), len(named))
}

// extract writes a zip member of size bytes to file through a temporary file and returns its digest; one other than want
// (unless that is empty), or another size, leaves no file.
func extract(ctx context.Context, f *zip.File, file string, size int64, want, label string, r *reporter) (string, error) {
	in, err := f.Open()
	if err != nil {
		return "", fmt.Errorf("%s: %w", f.Name, err)
	}
	defer in.Close()
	var digest string
	m := r.start(label, size, 0)
	err = writeAtomic(file, func(w io.Writer) error {
		h := sha256.New()
		n, err := copyContext(ctx, io.MultiWriter(w, h, m), io.LimitReader(in, size+1))
		if err != nil { // a wrong CRC-32 among others
			return noSpace(err, filepath.Dir(file), size-n)
		}
		digest = hex.EncodeToString(h.Sum(nil))
		if n != size {
			return fmt.Errorf("%s has %d bytes or more, want %d", f.Name, n, size)
		}
		if want != "" && digest != want {
			return fmt.Errorf("%s: sha256 is %s, pinned is %s", f.Name, digest, want)
		}
		return nil
	})
	m.finish(err == nil)
	return digest, err
}

// checkSpace refuses early when the file system of dir cannot hold need bytes.
func checkSpace(dir string, need int64) error {
	if free, ok := freeBytes(dir); ok && free < need {
		return fmt.Errorf("%s has %s free, want %s: free some, or set %s to a larger disk", dir, bytesText(free), bytesText(need), EnvCache)
	}
	return nil
}

// noSpace explains a full disk.
func noSpace(err error, dir string, missing int64) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %s needs %s more: free some, or set %s to a larger disk", err, dir, bytesText(missing), EnvCache)
	}
	return err
}
