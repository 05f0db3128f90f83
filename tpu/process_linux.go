package tpu

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup puts the child in a process group of its own, out of reach of the terminal's Ctrl-C, and has the
// kernel kill it when the caller dies.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// killGroup kills the child and whatever it started.
func killGroup(p *os.Process) error {
	if err := syscall.Kill(-p.Pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		return err
	}
	return nil
}

// awaitExit returns when the child has ended, having killed what it may have started. The child is left to be
// reaped by Wait: until then nobody else can get its group's id.
func awaitExit(p *os.Process) {
	for unix.Waitid(unix.P_PID, p.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	_ = killGroup(p)
}

// stateSignal is the name of the signal that ended the process, "" when it exited.
func stateSignal(s *os.ProcessState) string {
	if s == nil {
		return ""
	}
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return unix.SignalName(w.Signal())
	}
	return ""
}

// maxRSS is the largest resident memory of the process in bytes; Linux counts in KiB.
func maxRSS(s *os.ProcessState) int64 {
	if u, ok := s.SysUsage().(*syscall.Rusage); ok {
		return int64(u.Maxrss) << 10
	}
	return 0
}

// prepareChild keeps a crash of the plugin from leaving a core file the size of its memory, and keeps the
// answer pipe from programs the plugin starts.
func prepareChild() {
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	syscall.CloseOnExec(answerFD)
}
