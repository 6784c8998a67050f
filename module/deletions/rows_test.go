package deletions_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
