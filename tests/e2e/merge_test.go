package e2e_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMergedPersonsCountOnce first imports events of two ids, and then merges their people.
func TestMergedPersonsCountOnce(t *testing.T) {
	c := newProject(t)
	importLines(t, c, `{"event":"a","distinct_id":"phone","timestamp":"2024-01-01T00:00:00Z"}
{"event":"a","distinct_id":"laptop","timestamp":"2024-01-02T00:00:00Z"}
{"event":"a","distinct_id":"stranger","timestamp":"2024-01-02T00:00:00Z"}
`)
	const people = "select count(distinct person_id), (select count() from persons) from events"
	if diff := cmp.Diff([]any{row(3.0, 3.0)}, c.Query(t, people)); diff != "" {
		t.Fatalf("before (-want +got):\n%s", diff)
	}
	importLines(t, c, `{"type":"person","distinct_ids":["phone","laptop"],"properties":{"email":"a@b.c"}}`)
	if diff := cmp.Diff([]any{row(2.0, 2.0)}, c.Query(t, people)); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{row(2.0)}, c.Query(t, "select uniq(event, person_id) from events")); diff != "" {
		t.Errorf("merged, counted otherwise (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{row("a@b.c")}, c.Query(t, "select properties.email from persons where properties.email is not null")); diff != "" {
		t.Errorf("the person (-want +got):\n%s", diff)
	}
}
