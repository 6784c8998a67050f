package embedded

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// childAttr puts the child in a group of its own, so that Ctrl-C reaches the parent alone, and lets the
// kernel kill it when the thread that started it ends.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// capSysNice is the number of the capability CAP_SYS_NICE, without which ClickHouse sets no priorities.
const capSysNice = 23

// MaySetPriorities reports whether this process, and so the engine, may set the priorities of threads.
var MaySetPriorities = sync.OnceValue(func() bool {
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
})

const (
	// baseNice is the nice value of the engine's threads: its parent, which answers from its cache, comes first. Lowering a priority
	// needs no capability.
	baseNice = 5
	// baseSlice is how long the engine's threads want to run at a time. A thread that wakes up and wants less, as all others do, need
	// not wait for the end of such a slice. Linux heeds it from 6.12 on.
	baseSlice = 4 * time.Millisecond
)

// yieldToParent lets others come before this process: before all threads that there are, and so before those that they start. Where the
// system refuses that, the engine runs all the same.
func yieldToParent() {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			continue
		}
		attr, err := unix.SchedGetAttr(id, 0)
		if err != nil {
			continue
		}
		attr.Nice, attr.Runtime = max(attr.Nice, baseNice), uint64(baseSlice)
		_ = unix.SchedSetAttr(id, attr, 0)
	}
}

// setNice gives the calling thread the nice value that a query is to run with, and returns how to take it back. The engine sets that of
// the threads of its pools by itself, but not of the one that it is called on, which plans the query. A value that is not a number,
// and a process that may not set priorities, change nothing.
func setNice(value string) (restore func()) {
	nice, err := strconv.Atoi(value)
	if err != nil || !MaySetPriorities() {
		return func() {}
	}
	thread := syscall.Gettid()
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, thread, nice) // it runs all the same
	return func() { _ = syscall.Setpriority(syscall.PRIO_PROCESS, thread, baseNice) }
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
