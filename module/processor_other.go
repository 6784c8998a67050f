//go:build !linux

package module

import "time"

var processBegan = time.Now()

// processorTime is the time since the process began: where the processor time of a thread cannot be read, the time on the clock bounds
// it.
func processorTime() time.Duration { return time.Since(processBegan) }

// processorClock reports whether processorTime leaves out the time in which others work.
const processorClock = false
