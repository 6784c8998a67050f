package ingest_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ndjson"
)

// BenchmarkImport imports 10,000 events into a project of its own.
func BenchmarkImport(b *testing.B) {
	c := client(b)
	var lines bytes.Buffer
	for i := range 10_000 {
		fmt.Fprintf(&lines, `{"event":"e","distinct_id":"p%d","timestamp":"2024-01-01T00:00:00Z","properties":{"i":%d,"s":"some text","b":true,"$set":{"n":%d}}}`+"\n", i%500, i, i%7)
	}
	b.SetBytes(int64(lines.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ingest.New(c).Import(b.Context(), ingest.Options{Project: project(), Now: now, LearnTypes: true}, ndjson.NewReader(bytes.NewReader(lines.Bytes()))); err != nil {
			b.Fatal(err)
		}
	}
}
