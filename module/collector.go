package module

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// The garbage collector runs whenever the heap has doubled. What this server keeps is small, so hits, each of which leaves a few kilobytes
// to collect, would have it run ten times a second, and every time it takes part of the processors from requests. While much is allocated
// the heap may therefore grow by more before it runs.
const (
	// busyHeap is by how much the heap may grow between two collections while much is allocated, in bytes.
	busyHeap = 64 << 20
	// leastLive is what is taken to be live at least: Go counts stacks and the least heap too.
	leastLive = 16 << 20
	// busyRate is how much has to be allocated in a second for that, in bytes.
	busyRate = 24 << 20
	// collectorPause is how often the collector is looked at.
	collectorPause = time.Second
	// defaultPercent is by how much the heap may grow otherwise, in percent, as Go has it.
	defaultPercent = 100
	// percentStep is what percentages are rounded to: each change stops the program for a moment.
	percentStep = 100
)

// growth returns by how much the heap may grow until it is collected, in percent of what is live.
func growth(allocatedPerSecond, live uint64) int {
	if allocatedPerSecond < busyRate {
		return defaultPercent
	}
	percent := busyHeap * 100 / max(live, leastLive)
	return int(max(defaultPercent, percent/percentStep*percentStep)) //nolint:gosec // at most 400
}

// tuneCollector adapts the garbage collector to what is allocated, until close is called. It does nothing if the environment has GOGC: then the
// operator has chosen. A memory limit, which Caddy sets to that of its container, holds in either case.
func tuneCollector() (_ struct{}, closeIt func() error, err error) {
	if os.Getenv("GOGC") != "" {
		return struct{}{}, func() error { return nil }, nil
	}
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		ticker := time.NewTicker(collectorPause)
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

// heap returns how many bytes were ever allocated, and how many were live when the heap was last collected.
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
