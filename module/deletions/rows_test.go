package deletions_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/internal/eventually"
	"github.com/caddy-analytics/caddy-analytics/module/deletions"
)

// TestRows: after a deletion only the rows that mark it are left of a person. If events are kept, so are the rows that map them to the person.
func TestRows(t *testing.T) {
	for _, withEvents := range []bool{true, false} {
		s := start(t)
		s.run(t, noRecount)
		s.deliver(t, time.Now(), "a", "anon", `{"$set":{"plan":"free"}}`)
		s.deliver(t, time.Now(), "$identify", "ann", `{"$anon_distinct_id":"anon","$set":{"plan":"pro"}}`)
		s.deliver(t, time.Now(), "a", "bob", `{"$set":{"plan":"basic"}}`)
		if _, err := s.Delete(t.Context(), deletions.Request{Project: s.project, Who: ann, Events: withEvents}); err != nil {
			t.Fatal(err)
		}
		const ids, overrides = "SELECT DISTINCT distinct_id, is_deleted FROM person_distinct_id2 ORDER BY ALL", "SELECT DISTINCT distinct_id FROM person_distinct_id_overrides"
		want := map[string][]string{
			"SELECT DISTINCT toString(properties) AS p, is_deleted FROM person ORDER BY ALL": {`["{\"plan\":\"basic\"}", 0]`, `["{}", 1]`},
			ids:       {`["ann", 1]`, `["anon", 1]`, `["bob", 0]`},
			overrides: nil,
		}
		if !withEvents {
			delete(want, ids) // ClickHouse may have merged their rows
			want[overrides] = []string{`["ann"]`}
		}
		for sql, rows := range want {
			if diff := cmp.Diff(rows, s.ask(t, sql)); diff != "" {
				t.Errorf("with events: %t, %s (-want +got):\n%s", withEvents, sql, diff)
			}
		}
	}
}

// TestRowsOfMerged: a deletion includes the rows of persons who were merged into the deleted one, and their places in cohorts. Who comes in later with a
// distinct id of theirs is new.
func TestRowsOfMerged(t *testing.T) {
	conn := embeddedtest.Connect(t, engine.DSN())
	exec := func(sql string) {
		t.Helper()
		if err := conn.Exec(context.WithoutCancel(t.Context()), sql); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range []string{"person", "person_distinct_id2"} { // a merge would remove rows before the deletion does
		exec("ALTER TABLE " + table + " MODIFY SETTING max_bytes_to_merge_at_max_space_in_pool = 1")
		defer exec("ALTER TABLE " + table + " RESET SETTING max_bytes_to_merge_at_max_space_in_pool")
	}
	for _, withEvents := range []bool{true, false} {
		s := start(t)
		recounted := map[int64]bool{}
		s.run(t, func(_ context.Context, _ int64, cohorts []int64) error {
			for _, id := range cohorts {
				recounted[id] = true
			}
			return nil
		})
		// An import may give a person an id.
		imported := uuid.NewString()
		s.deliver(t, time.Now(), "a", "ann", `{"$set":{"plan":"pro"}}`)
		exec(fmt.Sprintf("INSERT INTO person (team_id, id, properties, is_deleted, version) VALUES (%[1]d, '%[2]s', '{\"email\":\"i@x.test\"}', 0, 0)", s.project, imported))
		exec(fmt.Sprintf("INSERT INTO person_distinct_id2 (team_id, distinct_id, person_id, version) VALUES (%d, 'imported', '%s', 0)", s.project, imported))
		s.deliver(t, time.Now(), "a", "user-7", `{"$set":{"email":"u@x.test"}}`)
		s.deliver(t, time.Now(), "a", "bob", `{"$set":{"email":"bob@x.test"}}`)
		exec(fmt.Sprintf("INSERT INTO person_static_cohort (team_id, id, person_id, cohort_id) SELECT %[1]d, generateUUIDv4(), person_id, if(distinct_id = 'imported', 6, 5) "+
			"FROM person_distinct_id2 WHERE team_id = %[1]d AND distinct_id IN ('user-7', 'imported', 'bob')", s.project))
		for _, other := range []string{"user-7", "imported"} {
			s.deliver(t, time.Now(), "$merge_dangerously", "ann", fmt.Sprintf(`{"alias":%q}`, other))
		}
		if got := s.ask(t, people); got[0] != "[2]" {
			t.Fatalf("there are %s people, want Ann and Bob", got[0])
		}
		if _, err := s.Delete(t.Context(), deletions.Request{Project: s.project, Who: ann, Events: withEvents}); err != nil {
			t.Fatal(err)
		}
		const (
			properties = "SELECT DISTINCT toString(properties) AS p FROM person ORDER BY p"
			members    = "SELECT cohort_id, person_id IN (SELECT person_id FROM person_distinct_id2 WHERE distinct_id = 'bob') FROM person_static_cohort"
		)
		for range 2 { // before and after somebody comes back
			for sql, want := range map[string][]string{properties: {`["{\"email\":\"bob@x.test\"}"]`, `["{}"]`}, members: {`[5, 1]`}} {
				if diff := cmp.Diff(want, s.ask(t, sql)); diff != "" {
					t.Errorf("with events: %t, %s (-want +got):\n%s", withEvents, sql, diff)
				}
			}
			s.deliver(t, time.Now(), "a", "user-7", `{}`)
		}
		if got := s.ask(t, people); got[0] != "[2]" {
			t.Errorf("there are %s people, want Bob and whoever came back", got[0])
		}
		if !recounted[5] || !recounted[6] {
			t.Errorf("the cohorts %v are recounted", recounted)
		}
	}
}

// TestErasedAgain: an erasure that is stopped and tried again takes nothing of whoever came back after the first try.
func TestErasedAgain(t *testing.T) {
	s := start(t)
	s.delay = 2 * time.Hour // the test erases by itself
	s.run(t, noRecount)
	const (
		properties = "SELECT DISTINCT toString(properties) AS p FROM person ORDER BY p"
		marks      = "SELECT (SELECT count() FROM person WHERE is_deleted) + (SELECT count() FROM person_distinct_id2 WHERE is_deleted)"
	)
	remove := func(who ingest.Named, ago time.Duration) {
		t.Helper()
		s.ago.Store(int64(ago))
		defer s.ago.Store(0)
		s.deliver(t, time.Now(), "a", who.DistinctIDs[0], `{"$set":{"plan":"pro"}}`)
		records, err := s.Delete(t.Context(), deletions.Request{Project: s.project, Who: who, Events: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.registry.HideDeletions(t.Context(), s.project, records, time.Now().Add(-ago)); err != nil {
			t.Fatal(err)
		}
	}
	eraseMarks := func() {
		t.Helper()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if _, err := s.EraseNow(ctx); err == nil {
				t.Error("the erasure is finished, although ClickHouse keeps replaced parts for minutes")
			}
		}()
		eventually.Is(t, "the rows that mark persons as deleted are erased", func() bool { return s.ask(t, marks)[0] == "[0]" })
		stop()
		<-ended
	}
	remove(ann, time.Hour)
	eraseMarks()
	s.deliver(t, time.Now(), "a", "ann", `{"$set":{"plan":"free"}}`)
	remove(ingest.Named{DistinctIDs: []string{"bob"}}, time.Hour)
	eraseMarks()
	for sql, want := range map[string]string{properties: `["{\"plan\":\"free\"}"]`, people: "[1]"} {
		if diff := cmp.Diff([]string{want}, s.ask(t, sql)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sql, diff)
		}
	}
	remove(ann, 30*time.Minute) // while the first deletion of her is not erased
	eraseMarks()
	if got := s.ask(t, "SELECT count() FROM person_distinct_id2"); got[0] != "[0]" {
		t.Errorf("after all, %s rows name distinct ids", got[0])
	}
}
