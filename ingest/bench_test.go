package ingest_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
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
		if _, err := ingest.New(c).Import(b.Context(), ingest.Options{Project: project(), Now: now, LearnTypes: true}, ingesttest.Lines(lines.String())); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDeliver delivers batches of 10,000 events of a website, of about a kilobyte each, into one project: 2,000 visitors, one in ten
// new in each batch.
func BenchmarkDeliver(b *testing.B) {
	const size = 10_000
	c := client(b)
	i := ingest.New(c)
	i.Intents = ingest.IntentDir(b.TempDir())
	options := ingest.Options{Project: project(), Now: now, LearnTypes: true}
	b.ReportAllocs()
	batch := 0
	for b.Loop() {
		b.StopTimer()
		records := pageviews(b, batch, size)
		batch++
		b.StartTimer()
		report, err := i.Deliver(b.Context(), options, records)
		if err != nil || report.Bad > 0 {
			b.Fatal(err, report.BadLines)
		}
	}
	b.ReportMetric(float64(size*b.N)/b.Elapsed().Seconds(), "events/s")
}

func pageviews(tb testing.TB, batch, size int) []record.Record {
	tb.Helper()
	records := make([]record.Record, 0, size)
	for n := range size {
		visitor := n * 7919 % 2000
		if visitor%10 == 0 {
			visitor += 10_000 * (batch + 1)
		}
		line := fmt.Sprintf(`{"event":"$pageview","distinct_id":"0190f3c2-aaaa-7abc-8def-%012d","uuid":%q,"timestamp":%q,"properties":{`+
			`"$os":"Mac OS X","$os_version":"10.15.7","$browser":"Chrome","$device_type":"Desktop","$current_url":"https://example.com/docs/page-%d?utm=1",`+
			`"$host":"example.com","$pathname":"/docs/page-%d","$raw_user_agent":"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",`+
			`"$browser_version":126,"$browser_language":"en-US","$screen_height":1080,"$screen_width":1920,"$viewport_height":969,"$viewport_width":1920,`+
			`"$lib":"web","$lib_version":"1.449.2","$insert_id":"%016x","$time":%d.123,"$device_id":"0190f3c2-aaaa-7abc-8def-%012d","$user_id":null,`+
			`"$session_id":"0190f3c2-bbbb-7abc-8def-%012d","$window_id":"0190f3c2-cccc-7abc-8def-%012d","$pageview_id":"0190f3c2-dddd-7abc-8def-%012d",`+
			`"$referrer":"$direct","$referring_domain":"$direct","title":"Page %d of the docs","token":"phc_abcdefghijklmnopqrstuvwxyz","$ip":"10.1.%d.%d"}}`,
			visitor, uuid.New(), time.Date(2026, 11, 21, 10, batch%60, n%60, 0, time.UTC).Format(time.RFC3339), n%500, n%500,
			n, 1700000000+n, visitor, visitor, visitor, n, n%500, n%256, n/256)
		r, err := new(record.Parser).Parse([]byte(line))
		if err != nil {
			tb.Fatal(err)
		}
		r.Arrived = now
		records = append(records, r)
	}
	return records
}

// BenchmarkDeliverProjects delivers a batch to each of 60 projects that send at once: ten events of a website, one in ten of a new
// visitor.
func BenchmarkDeliverProjects(b *testing.B) {
	const projects, size = 60, 10
	i := ingest.New(client(b))
	i.Intents = ingest.IntentDir(b.TempDir())
	ids := make([]int64, projects)
	for n := range ids {
		ids[n] = project()
	}
	round := 0
	for b.Loop() {
		b.StopTimer()
		batches := make([][]record.Record, projects)
		for n := range batches {
			batches[n] = pageviews(b, round, size)
		}
		round++
		b.StartTimer()
		var all errgroup.Group
		all.SetLimit(64)
		for n, records := range batches {
			all.Go(func() error {
				_, err := i.Deliver(b.Context(), ingest.Options{Project: ids[n], Now: now, LearnTypes: true}, records)
				return err
			})
		}
		if err := all.Wait(); err != nil {
			b.Fatal(err)
		}
	}
}
