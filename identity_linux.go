package tpuc

import (
	"fmt"
	"syscall"
)

func identityOf(path string) identity {
	var st syscall.Stat_t
	if syscall.Stat(path, &st) != nil {
		return ""
	}
	return identity(fmt.Sprintf("device %d inode %d size %d mtime %d ctime %d", st.Dev, st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano()))
}
