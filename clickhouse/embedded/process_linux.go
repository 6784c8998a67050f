package embedded

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// childAttr puts the child in a group of its own, so that Ctrl-C reaches the parent alone, and lets the
// kernel kill it when the thread that started it ends.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// capSysNice is the number of the capability CAP_SYS_NICE, without which ClickHouse sets no priorities.
const capSysNice = 23

// MaySetPriorities reports whether this process, and so the engine, may set the priorities of threads.
func MaySetPriorities() bool {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if set, ok := strings.CutPrefix(line, "CapEff:"); ok {
			bits, err := strconv.ParseUint(strings.TrimSpace(set), 16, 64)
			return err == nil && bits&(1<<capSysNice) != 0
		}
	}
	return false
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
