package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"

	"tpuc/internal/fileid"
)

// mark records that a file had a digest when it was in this state, so that a start of tpuc does not read half a gigabyte.
// It guards against accidents, not against someone who can write the cache: Plugin.Verify is for that.
type mark struct {
	SHA256   string `json:"sha256"`
	Size     int64  `json:"size"`
	MTime    int64  `json:"mtime_ns"`           // Unix nanoseconds
	Identity string `json:"identity,omitempty"` // see fileid; empty where the system does not tell
	Source   string `json:"source,omitempty"`
}

// markOf describes the file as it is on disk now.
func markOf(file, digest, source string) (mark, error) {
	fi, err := os.Stat(file)
	if err != nil {
		return mark{}, err
	}
	return mark{SHA256: digest, Size: fi.Size(), MTime: fi.ModTime().UnixNano(), Identity: fileid.Of(file), Source: source}, nil
}

// readMark returns the mark kept at path if the file is still in the state that it had. Another mount of the same file system may
// be another state, which costs a hash.
func readMark(path, file string) (mark, bool) {
	data, err := readSmall(path, 64<<10)
	if err != nil {
		return mark{}, false
	}
	var m mark
	if json.Unmarshal(data, &m) != nil || len(m.SHA256) != sha256.Size*2 {
		return mark{}, false
	}
	// Nanoseconds of times of change: an overwrite within one tick of the clock that keeps the size goes unseen.
	now, err := markOf(file, m.SHA256, m.Source)
	return m, err == nil && now == m
}

// write keeps the mark at path.
func (m mark) write(path string) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return writeAtomic(path, func(w io.Writer) error {
		_, err := w.Write(append(data, '\n'))
		return err
	})
}

// hashFile returns the SHA-256 digest and the size of a file.
func hashFile(ctx context.Context, file string) (digest string, size int64, err error) {
	f, err := os.Open(file)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	size, err = copyContext(ctx, h, f)
	if err != nil {
		return "", size, err
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}

// copyContext is io.Copy that stops within a mebibyte of the context's end.
func copyContext(ctx context.Context, w io.Writer, r io.Reader) (int64, error) {
	var n int64
	buf := make([]byte, 1<<20)
	for {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		k, err := r.Read(buf)
		if k > 0 {
			if _, werr := w.Write(buf[:k]); werr != nil {
				return n, werr
			}
			n += int64(k)
		}
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// writeAtomic writes path through a temporary file beside it: the name appears whole or not at all.
func writeAtomic(path string, fill func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), tempPrefix+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err = fill(f); err != nil {
		return err
	}
	// CreateTemp makes files private; a shared cache is read by others.
	if err = f.Chmod(0o644); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename in dir durable where the system can.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	// Some file systems refuse to sync a directory: the rename has happened all the same.
	_ = d.Sync()
	return nil
}

// readSmall reads a file of at most limit bytes.
func readSmall(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, limit)
}

// readAll reads at most limit bytes and refuses more.
func readAll(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, errTooLong(limit)
	}
	return data, nil
}
