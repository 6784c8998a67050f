package execution

import (
	"time"

	"golang.org/x/sys/unix"
)

// processorTime returns the processor time that the current thread has used. A difference is meaningful only to a goroutine that is locked to its thread.
func processorTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic("BUG: no clock of a thread: " + err.Error()) // Linux has one since 2.6
	}
	return time.Duration(t.Nano())
}

// processorClock reports whether processorTime excludes the time in which others work.
const processorClock = true
