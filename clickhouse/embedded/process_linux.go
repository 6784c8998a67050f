package embedded

import "syscall"

// childAttr puts the child in a group of its own, so that Ctrl-C reaches the parent alone, and lets the
// kernel kill it when the thread that started it ends.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
