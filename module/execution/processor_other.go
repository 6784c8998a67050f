//go:build !linux

package execution

import "time"

var processBegan = time.Now()

// processorTime returns the time since the process began: where a thread's processor time can't be read, wall time is an upper bound.
func processorTime() time.Duration { return time.Since(processBegan) }

// processorClock reports whether processorTime excludes the time in which others work.
const processorClock = false
