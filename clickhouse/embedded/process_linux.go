package embedded

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// childAttr puts the child in a group of its own, so that Ctrl-C reaches the parent alone, and lets the
// kernel kill it when the thread that started it ends.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// resident is the memory that a process takes, in bytes, or 0 when the system does not say.
func resident(pid int) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
