package module

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// The garbage collector runs whenever the heap has doubled. This server keeps little in memory, so cache hits, each of which leaves a few kilobytes
// of garbage, would make it run ten times per second, and each run takes part of the processors from requests. While much is allocated, the heap may
// therefore grow more between two runs.
const (
	// busyHeap is by how many bytes the heap may grow between two collections while much is allocated.
	busyHeap = 64 << 20
	// minLiveHeap is the least that is assumed to be live: Go counts stacks and the minimum heap too.
	minLiveHeap = 16 << 20
	// busyRate is how many bytes per second have to be allocated for that.
	busyRate = 24 << 20
	// gcPause is how often the setting is adapted.
	gcPause = time.Second
	// defaultPercent is how much the heap may grow otherwise, in percent: Go's default.
	defaultPercent = 100
	// percentStep is what percentages are rounded to: each change stops the program for a moment.
	percentStep = 100
)

// growth returns how much the heap may grow before it is collected, in percent of the live heap.
func growth(allocatedPerSecond, live uint64) int {
	if allocatedPerSecond < busyRate {
		return defaultPercent
	}
	percent := busyHeap * 100 / max(live, minLiveHeap)
	return int(max(defaultPercent, percent/percentStep*percentStep)) //nolint:gosec // at most 400
}

// tuneGC adapts the garbage collector to the rate of allocation, until close is called. It does nothing if GOGC is set in the environment:
// then the operator has chosen. A memory limit, which Caddy sets to that of its container, applies in either case.
func tuneGC() (_ struct{}, closeIt func() error, err error) {
	if os.Getenv("GOGC") != "" {
		return struct{}{}, func() error { return nil }, nil
	}
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		ticker := time.NewTicker(gcPause)
		defer ticker.Stop()
		percent := defaultPercent
		last, _ := heap()
		for {
			select {
			case <-stop:
				debug.SetGCPercent(defaultPercent)
				return
			case <-ticker.C:
			}
			allocated, live := heap()
			if now := growth(allocated-last, live); now != percent {
				debug.SetGCPercent(now)
				percent = now
			}
			last = allocated
		}
	})
	return struct{}{}, func() error { close(stop); done.Wait(); return nil }, nil
}

// heap returns how many bytes were allocated in total, and how many were live at the last collection.
func heap() (allocated, live uint64) {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	for i, into := range []*uint64{&allocated, &live} {
		if samples[i].Value.Kind() == metrics.KindUint64 {
			*into = samples[i].Value.Uint64()
		}
	}
	return allocated, live
}
