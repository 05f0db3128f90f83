// Package fileid tells one state of a file from another without reading it.
package fileid

import (
	"fmt"
	"syscall"
	"time"
)

// Of names the state of the file at path: device, inode, size, and times of change in nanoseconds. It is empty where there is no file, and on systems
// that do not tell. A file that changes twice within a tick of the file system's clock may keep its name.
func Of(path string) string {
	var st syscall.Stat_t
	if syscall.Stat(path, &st) != nil {
		return ""
	}
	return fmt.Sprintf("device %d inode %d size %d mtime %d ctime %d", st.Dev, st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano())
}

// Changed is when the file at path changed last, its contents or what the system keeps of it: a program may set the time of modification and not
// that of change. It is the zero time where there is no file, and on systems that do not tell.
func Changed(path string) time.Time {
	var st syscall.Stat_t
	if syscall.Stat(path, &st) != nil {
		return time.Time{}
	}
	return time.Unix(0, max(st.Mtim.Nano(), st.Ctim.Nano()))
}
