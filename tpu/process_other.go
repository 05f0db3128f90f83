//go:build !linux

package tpu

import (
	"os"
	"syscall"
)

// Plugins exist for linux only; here a child can only say so.

func ownGroup() *syscall.SysProcAttr { return nil }

func killGroup(p *os.Process) error { return p.Kill() }

func awaitExit(*os.Process) {}

func stateSignal(*os.ProcessState) string { return "" }

func maxRSS(*os.ProcessState) int64 { return 0 }

func prepareChild() {}
