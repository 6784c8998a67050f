package ingest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/clickhousetest"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// TestLargeLookups delivers batches for which much must be looked up: more than the result of a query may have.
func TestLargeLookups(t *testing.T) {
	const most = 256 << 10
	c := clickhousetest.Open(t, clickhouse.Config{DSN: engine.DSN(), MaxResultBytes: most})
	text := strings.Repeat("x", 20_000)
	lines := func(count int, line string) []record.Record {
		var all strings.Builder
		for n := range count {
			all.WriteString(`{"timestamp":"2024-03-04",` + strings.ReplaceAll(line[1:], "#", fmt.Sprint(n)) + "\n")
		}
		return captured(t, all.String())
	}
	sameUUID := func() (all []record.Record) {
		for _, r := range lines(60, `{"event":"a","distinct_id":"`+strings.Repeat("d", 100)+`#"}`) {
			for n := range 60 {
				r.Event, r.UUID = fmt.Sprint(strings.Repeat("e", 100), n), uuid.UUID{1}
				all = append(all, r)
			}
		}
		return all
	}
	tests := []struct {
		name          string
		first, second []record.Record
		sql           string
		want          []string
	}{
		{
			"people", lines(40, `{"event":"a","distinct_id":"u#","properties":{"$set":{"text":"`+text+`"}}}`),
			lines(40, `{"event":"b","distinct_id":"u#","properties":{"$set":{"n":#}}}`),
			"SELECT count(), sum(n), min(size) FROM (SELECT toInt64(argMax(properties, version).n) AS n, " +
				"length(toString(argMax(properties, version).text)) AS size FROM person GROUP BY id)",
			[]string{`[40, 780, 20000]`},
		},
		{
			"groups", lines(40, `{"event":"$groupidentify","distinct_id":"u","properties":{"$group_type":"org","$group_key":"o#","$group_set":{"text":"`+text+`"}}}`),
			lines(40, `{"event":"$groupidentify","distinct_id":"u","properties":{"$group_type":"org","$group_key":"o#","$group_set":{"n":#}}}`),
			"SELECT count(), sum(n), min(size) FROM (SELECT toInt64(argMax(group_properties, _timestamp).n) AS n, " +
				"length(toString(argMax(group_properties, _timestamp).text)) AS size FROM groups GROUP BY group_key)",
			[]string{`[40, 780, 20000]`},
		},
		{
			"the distinct ids of one person", lines(4000, `{"event":"$create_alias","distinct_id":"u","properties":{"alias":"`+strings.Repeat("d", 100)+`#"}}`),
			lines(1, `{"event":"$merge_dangerously","distinct_id":"other","properties":{"alias":"u"}}`),
			"SELECT count(), uniqExact(person) FROM (SELECT argMax(person_id, version) AS person FROM person_distinct_id2 GROUP BY distinct_id)",
			[]string{`[4002, 1]`},
		},
		{"events that share a uuid", sameUUID(), sameUUID(), "SELECT count() FROM events", []string{`[3600]`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			options := ingest.Options{Project: project(), Now: now}
			options.GroupTypes = deliver(t, ingest.New(c), options, tt.first).GroupTypes
			deliver(t, ingest.New(c), options, tt.second)
			if diff := cmp.Diff(tt.want, ask(t, c, options.Project, tt.sql)); diff != "" {
				t.Errorf("afterwards (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLargeRows delivers events that all repeat a person that changes: not all of their rows are made at once.
func TestLargeRows(t *testing.T) {
	c, options := client(t), ingest.Options{Project: project(), Now: now}
	var lines strings.Builder
	fmt.Fprintf(&lines, `{"event":"a","distinct_id":"x","properties":{"$set":{"text":%q}}}`+"\n", strings.Repeat("0123456789", 100))
	for n := range 40 {
		fmt.Fprintf(&lines, `{"event":"b","distinct_id":"x","properties":{"$set":{"n":%d}}}`+"\n", n)
	}
	records := captured(t, lines.String())
	i := ingest.New(c)
	i.Rows(10_000)
	kept := &keptIntents{IntentDir: ingest.IntentDir(t.TempDir())}
	i.Intents = kept
	report := deliver(t, i, options, records)
	if report.Events != 41 || report.Duplicates != 0 || report.People != 1 {
		t.Errorf("the report: %+v", report)
	}
	if kept.count < 4 || kept.count > 6 { // each row has a kilobyte and a few texts
		t.Errorf("the batch is written in %d parts", kept.count)
	}
	want := []string{`[41, 780, 41, 1000]`}
	got := ask(t, c, options.Project, "SELECT count(), sum(toInt64(person_properties.n)), uniqExact(uuid), min(length(toString(person_properties.text))) FROM events")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if report := deliver(t, i, options, slices.Clone(records)); report.Duplicates != 41 {
		t.Errorf("the second time: %+v", report)
	}
}

// keptIntents counts the batches that are kept.
type keptIntents struct {
	ingest.IntentDir

	count int
}

func (k *keptIntents) Save(ctx context.Context, project int64, batch []byte) error {
	if len(batch) > 0 {
		k.count++
	}
	return k.IntentDir.Save(ctx, project, batch)
}
