package embedded

import "syscall"

// childAttr puts the child in a group of its own, so that Ctrl-C reaches the parent alone. When the parent
// dies the child sees the end of its control pipe.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
