package embedded

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// childAttr puts the child in its own process group, so that Ctrl-C reaches only the parent. When the parent
// dies, the child sees the end of its control pipe.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// resident returns the resident memory of a process in bytes, or 0 if it is unknown.
func resident(pid int) int64 {
	out, err := exec.Command("ps", "-o", "rss=", "-p", strconv.Itoa(pid)).Output() //nolint:gosec // a number
	if err != nil {
		return 0
	}
	kib, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}

// MaySetPriorities reports whether the engine may set thread priorities, which it can only on Linux.
func MaySetPriorities() bool { return false }

func yieldToParent() {}

func setNice(string) (restore func()) { return func() {} }
