package ingest_test

import (
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/ingest"
)

// TestTooOld: events older than a project keeps them are left out, and change neither people nor groups nor types.
func TestTooOld(t *testing.T) {
	const (
		older = `{"event":"old","distinct_id":"a","timestamp":"2023-12-31T23:59:59.999Z","properties":{"$set":{"plan":"free"},"price":1,"$groups":{"org":"x"}}}` + "\n" +
			`{"event":"$identify","distinct_id":"a","timestamp":"2023-12-01T00:00:00Z","properties":{"$anon_distinct_id":"b"}}` + "\n"
		newer = `{"event":"new","distinct_id":"b","timestamp":"2024-01-01T00:00:00Z","properties":{"$set":{"plan":"pro"}}}` + "\n"
	)
	from := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	c, p, never := client(t), project(), project()
	options := ingest.Options{Project: p, Now: now, LearnTypes: true, EventsFrom: from}
	report := load(t, c, options, older+newer)
	options.Project = never
	want := load(t, c, options, newer)
	want.TooOld, want.Line = 2, 3
	if diff := gocmp.Diff(want, report); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	for _, sql := range []string{"SELECT event, distinct_id FROM events", "SELECT toJSONString(properties) FROM person", "SELECT distinct_id FROM person_distinct_id2", "SELECT group_key FROM groups"} {
		if diff := gocmp.Diff(ask(t, c, never, sql), ask(t, c, p, sql)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sql, diff)
		}
	}
	delivered := deliver(t, ingest.New(c), options, captured(t, older))
	if delivered.TooOld != 2 || delivered.Events != 0 {
		t.Errorf("captured: %+v", delivered)
	}
}
