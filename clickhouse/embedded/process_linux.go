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

// childAttr puts the child in its own process group, so that Ctrl-C reaches only the parent, and lets the
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
	// baseNice is the nice value of the engine's threads, so that the parent, which serves cache hits, has priority. Lowering a
	// priority needs no capability.
	baseNice = 5
	// baseSlice is the time slice of the engine's threads. A waking thread with a shorter slice, which all other threads have, can
	// preempt them. It takes effect on Linux 6.12 and newer.
	baseSlice = 4 * time.Millisecond
)

// yieldToParent lowers the priority of all threads of this process, and so of those that they start. If the system refuses, the
// engine runs with its normal priority.
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

// setNice sets the nice value of the calling thread for a query, and returns a function that restores it. The engine sets the nice value
// of the threads in its pools, but not of the calling thread, which plans the query. setNice does nothing if the value is not a number or
// the process may not set priorities.
func setNice(value string) (restore func()) {
	nice, err := strconv.Atoi(value)
	if err != nil || !MaySetPriorities() {
		return func() {}
	}
	thread := syscall.Gettid()
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, thread, nice) // the query runs anyway
	return func() { _ = syscall.Setpriority(syscall.PRIO_PROCESS, thread, baseNice) }
}

// resident returns the resident memory of a process in bytes, or 0 if it is unknown.
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
