package journal_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/ingest/journal"
)

// events returns NDJSON of at least n bytes, about as compressible as what browsers send.
func events(n int) []byte {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		id := incompressible(i, 48)
		fmt.Fprintf(&b, `{"uuid":"%s","event":"$pageview","distinct_id":"%s","timestamp":"2026-05-01T12:00:%02d.%03dZ","properties":{`+
			`"$current_url":"https://example.com/items/%d","$browser":"Chrome","$os":"Mac OS X","$screen_height":1080,"$lib":"web","$session_id":"%s"}}`+"\n",
			id[:32], id[16:48], i%60, i%1000, i*7919%5000, id[8:40])
	}
	return []byte(b.String())
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{1000, 50_000} {
		for _, appenders := range []int{1, 16, 256} {
			b.Run(fmt.Sprintf("%dB/%d", size, appenders), func(b *testing.B) {
				j := open(b, b.TempDir(), journal.Options{MaxBytes: 64 << 30})
				e := journal.Entry{Project: 1, Arrived: arrived, Events: size / 500, Data: events(size)}
				var n atomic.Int64
				var wg sync.WaitGroup
				b.SetBytes(int64(len(e.Data)))
				b.ReportAllocs()
				b.ResetTimer()
				for range appenders {
					wg.Go(func() {
						for n.Add(1) <= int64(b.N) {
							if err := j.Append(b.Context(), e); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(j.Stats().Bytes)/float64(b.N), "disk-B/op")
			})
		}
	}
}

func BenchmarkRead(b *testing.B) {
	j := open(b, b.TempDir(), journal.Options{})
	data := events(50_000)
	for range 200 {
		appendAll(b, j, string(data))
	}
	b.SetBytes(int64(200 * len(data)))
	b.ReportAllocs()
	for b.Loop() {
		readAll(b, j, 0)
	}
}

func BenchmarkStats(b *testing.B) {
	j := open(b, b.TempDir(), journal.Options{})
	appendAll(b, j, "a")
	for b.Loop() {
		_ = j.Stats()
	}
}
