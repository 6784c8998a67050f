package cohorts_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/clickhousetest"
	"github.com/caddy-analytics/caddy-analytics/internal/eventually"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/cohorts"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// countedMembers returns one count after the other, and then always the last.
type countedMembers []int64

func (c *countedMembers) CountMembers(context.Context, *admission.Place, int64, int64) (int64, error) {
	count := (*c)[0]
	if len(*c) > 1 {
		*c = (*c)[1:]
	}
	return count, nil
}

// TestCountStatic: the recorded number is the final one, whoever changes the members meanwhile.
func TestCountStatic(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	c, err := s.registry.CreateCohort(t.Context(), registry.NewCohort{Project: s.project, CohortFields: registry.CohortFields{Static: registry.To(true)}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, counts := range []countedMembers{{0}, {1}, {1, 2}, {1, 3, 2}} {
		last := counts[len(counts)-1]
		got, err := cohorts.CountStatic(t.Context(), s.registry, &counts, nil, s.project, c.ID)
		if err != nil {
			t.Fatal(err)
		}
		if stored := s.registry.Snapshot().Cohort(s.project, c.ID); *got.Count != last || *stored.Count != last {
			t.Errorf("%d is returned and %d stored, want %d", *got.Count, *stored.Count, last)
		}
	}
}

// TestStaticWhileMerged: a person who is merged into another one while the people of a query are added to a static cohort is not lost.
func TestStaticWhileMerged(t *testing.T) {
	for _, numbers := range []int{20_000_000, 100_000_000, 500_000_000} { // on a fast machine, a short query ends before the merge
		if mergedWhileFilled(t, numbers) {
			return
		}
	}
	t.Error("no query took long enough for a merge")
}

// mergedWhileFilled merges people while a query that counts to a number fills a static cohort, and checks its members. It reports whether the query was
// still running when they had been merged.
func mergedWhileFilled(t *testing.T, numbers int) bool {
	t.Helper()
	s := start(t, t.TempDir(), nil)
	s.load(t, `{"event":"a","distinct_id":"ann","timestamp":"2024-01-01T00:00:00Z","properties":{"$set":{"plan":"paid"}}}
{"event":"a","distinct_id":"bob","timestamp":"2024-01-01T00:00:00Z","properties":{"$set":{"plan":"paid"}}}
{"type":"person","distinct_ids":["cid"],"properties":{"plan":"free"}}
`)
	// The ids are read at once, and then it takes a while.
	slow := fmt.Sprintf("select events.person_id as person_id from numbers(%d) as n cross join events where cityHash64(n.number) != 7", numbers)
	query, err := json.Marshal(map[string]string{"kind": "HogQLQuery", "query": slow})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.registry.CreateCohort(t.Context(), registry.NewCohort{Project: s.project, CohortFields: registry.CohortFields{
		Static: registry.To(true), Query: registry.To(json.RawMessage(query)),
	}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	filling := func() bool {
		return len(clickhousetest.Ask(t, client, s.project,
			"SELECT query_id FROM system.processes WHERE query LIKE '%INSERT INTO%person_static_cohort%' AND query NOT LIKE '%system.processes%'")) > 0
	}
	s.Calculate(s.project, c.ID)
	eventually.Is(t, "the members are written", func() bool { return filling() || !s.registry.Snapshot().Cohort(s.project, c.ID).Calculating() })
	s.load(t, `{"event":"$merge_dangerously","distinct_id":"cid","timestamp":"2024-01-02T00:00:00Z","properties":{"alias":"ann"}}`)
	meanwhile := filling()
	got := s.settled(t, c.ID)
	rows := clickhousetest.Ask(t, client, s.project, fmt.Sprintf("SELECT distinct_id FROM person_distinct_id2 FINAL WHERE person_id IN ("+
		"SELECT person_id FROM person_static_cohort WHERE cohort_id = %d) ORDER BY distinct_id", c.ID))
	if diff := cmp.Diff([]string{`["ann"]`, `["bob"]`, `["cid"]`}, rows); diff != "" || got.Count == nil || *got.Count != 2 {
		t.Errorf("the record is %+v, the members (-want +got):\n%s", got, diff)
	}
	return meanwhile
}
