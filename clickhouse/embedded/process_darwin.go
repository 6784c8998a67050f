package embedded

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// childAttr puts the child in a group of its own, so that Ctrl-C reaches the parent alone. When the parent
// dies the child sees the end of its control pipe.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// resident is the memory that a process takes, in bytes, or 0 when the system does not say.
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

// MaySetPriorities reports whether the engine may set the priorities of threads: only on Linux.
func MaySetPriorities() bool { return false }

func yieldToParent() {}

func setNice(string) (restore func()) { return func() {} }
