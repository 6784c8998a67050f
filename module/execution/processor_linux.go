package execution

import (
	"time"

	"golang.org/x/sys/unix"
)

// processorTime is the processor time that the current thread has used. Differences mean something to a goroutine that is locked to
// its thread.
func processorTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic("BUG: no clock of a thread: " + err.Error()) // Linux has one since 2.6
	}
	return time.Duration(t.Nano())
}

// processorClock reports whether processorTime leaves out the time in which others work.
const processorClock = true
