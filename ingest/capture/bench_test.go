//go:build unix

package capture_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/ingest/capture"
)

func BenchmarkDecode(b *testing.B) {
	const events = 100
	plain := typical(events)
	for _, tt := range []struct {
		name string
		body []byte
	}{{"gzip", gzipped(b, plain)}, {"plain", plain}} {
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			before := cpuTime(b)
			for b.Loop() {
				batch, err := capture.Decode(&capture.Request{Body: tt.body, IP: "203.0.113.7", Now: time.Unix(1717236004, 0)})
				if err != nil || batch.Events != events {
					b.Fatal(batch, err)
				}
			}
			b.ReportMetric(float64(b.N)*events/(cpuTime(b)-before).Seconds(), "events/cpu-s")
		})
	}
}

// cpuTime is the CPU time of the process: other programs on the machine do not change it.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
