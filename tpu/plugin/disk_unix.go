//go:build linux || darwin || freebsd

package plugin

import "golang.org/x/sys/unix"

// freeBytes is what an unprivileged user may still write to the file system of dir.
func freeBytes(dir string) (int64, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
