package registry_test

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// unitsOf are the records of one entity of each kind, number n of project 1.
var unitsOf = map[registry.Kind]func(put putter, n int){
	registry.KindKey: func(put putter, n int) {
		put(registry.KindKey, fmt.Sprint("k", n), `{"id": "k%d", "user": %d, "kind": "personal", "label": "key %d", "mask": "phx_...abcd", "hash": "%x", "scopes": ["query:read", "endpoint:read"], "created_at": %q}`,
			n, n, n, registry.HashKey(strconv.Itoa(n)), now.Format(time.RFC3339))
	},
	registry.KindInsight: func(put putter, n int) {
		put(registry.KindInsight, strconv.Itoa(n), `{"short_id": "s%07d", "name": "insight %d", "query": %s, "filters": {}, "saved": true, "tags": []}`, n, n,
			`{"kind": "InsightVizNode", "source": {"kind": "TrendsQuery", "series": [{"kind": "EventsNode", "event": "$pageview"}]}}`)
	},
	registry.KindEndpoint: func(put putter, n int) {
		id := fmt.Sprint("e", n)
		put(registry.KindEndpoint, id, `{"id": "e%d", "name": "e%d", "active": true, "current_version": 1, "created_at": %q}`, n, n, now.Format(time.RFC3339))
		put(registry.KindVersion, id+"/1", `{"id": "v%d", "number": 1, "query": %s, "active": true}`, n, query("select 1"))
	},
	registry.KindProperty: func(put putter, n int) {
		put(registry.KindProperty, fmt.Sprintf(`event/0/"p%d"`, n), `{"scope": "event", "name": "p%d", "type": "String"}`, n)
	},
}

// BenchmarkUnits measures what an entity of each kind costs a node: the memory that it takes, and its part of the time of a start.
func BenchmarkUnits(b *testing.B) {
	const many = 50_000
	for kind, unit := range unitsOf {
		benchmarkUnit(b, string(kind), many, unit, nil)
	}
	benchmarkUnit(b, "key that was used", many, unitsOf[registry.KindKey], func(n int) registry.Entry {
		id := fmt.Sprint("k", n)
		return registry.Entry{Log: "use", ID: "key/" + id, Item: id, By: "1", At: now}
	})
}

// benchmarkUnit measures a unit; use is the entry of the last use of what number n put, nil for none.
func benchmarkUnit(b *testing.B, name string, many int, unit func(put putter, n int), use func(n int) registry.Entry) {
	b.Helper()
	b.Run(name, func(b *testing.B) {
		path := filledWith(b, many, func(w *registry.Write, put putter, n int) {
			unit(put, n)
			if use != nil {
				w.Append = append(w.Append, use(n))
			}
		})
		var taken uint64
		var took time.Duration
		for b.Loop() {
			before := heap()
			began := time.Now()
			r := openAt(b, path, quiet)
			took += time.Since(began)
			taken += heap() - before
			runtime.KeepAlive(r)
		}
		b.ReportMetric(float64(taken)/float64(b.N)/float64(many), "B/entity")
		b.ReportMetric(float64(took.Nanoseconds())/float64(b.N)/float64(many), "ns/entity")
		b.ReportMetric(0, "ns/op")
	})
}

// heap returns the bytes that are in use.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
