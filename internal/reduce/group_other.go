//go:build !unix

package reduce

import "os/exec"

// group does nothing where there are no process groups: the shell alone is ended.
func group(*exec.Cmd) {}
