package references

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

// TestOnlyTextsOfTheSnapshotAreKept: texts that are only checked, such as those of refused writes, do not stay in memory.
func TestOnlyTextsOfTheSnapshotAreKept(t *testing.T) {
	r := sqlitetest.Open(t, registry.Options{})
	p, err := r.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	filters := func(value int) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"properties": {"type": "AND", "values": [{"type": "person", "key": "age", "operator": "exact", "value": %d}]}}`, value))
	}
	steps := []registry.ActionStep{{Properties: json.RawMessage(`[{"type": "event", "key": "a", "operator": "exact", "value": "b"}]`)}}
	if _, err := r.CreateAction(t.Context(), p.ID, registry.ActionFields{Name: registry.To(new("Joined")), Steps: registry.To(steps)}, "k", time.Now()); err != nil {
		t.Fatal(err)
	}
	fields := registry.CohortFields{Name: registry.To(new("c")), Filters: registry.To(filters(0))}
	if _, err := r.CreateCohort(t.Context(), registry.NewCohort{Project: p.ID, CohortFields: fields}, time.Now()); err != nil {
		t.Fatal(err)
	}
	var x Index
	snap := r.Snapshot()
	for n := range 3 {
		x.OfDefinition(snap, &registry.Cohort{Project: p.ID, Filters: filters(n)})
		x.OfSteps(snap, p.ID, []registry.ActionStep{{Properties: json.RawMessage(`[]`)}})
		x.OfQuery(snap, p.ID, json.RawMessage(`{"kind": "HogQLQuery", "query": "select 1"}`))
	}
	if k := x.known(p.ID); len(k.reader.read) != 2 || k.reader.before != nil {
		t.Errorf("%d texts are kept, and %d of before, want 2 and none", len(k.reader.read), len(k.reader.before))
	}
}

// TestReachVisitsOnce: what many refer to is looked at once, however many ways lead there, and memory is taken for it once.
func TestReachVisitsOnce(t *testing.T) {
	r := sqlitetest.Open(t, registry.Options{})
	p, err := r.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	const size = 190 // a cohort has at most 200 conditions
	var conditions []string
	var last *registry.Cohort
	for n := range size {
		filters := `{"properties": {"type": "AND", "values": [` + strings.Join(append(conditions, `{"type": "person", "key": "a", "operator": "exact", "value": "b"}`), ",") + `]}}`
		fields := registry.CohortFields{Name: registry.To(new(fmt.Sprint(n))), Filters: registry.To(json.RawMessage(filters))}
		if last, err = r.CreateCohort(t.Context(), registry.NewCohort{Project: p.ID, CohortFields: fields}, time.Now()); err != nil {
			t.Fatal(err)
		}
		conditions = append(conditions, fmt.Sprintf(`{"type": "cohort", "key": "id", "value": %d}`, last.ID))
	}
	var x Index
	snap := r.Snapshot()
	x.OfDefinition(snap, last) // reads all texts
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := x.OfDefinition(snap, last)
	runtime.ReadMemStats(&after)
	if len(got.Cohorts) != size-1 {
		t.Errorf("%d cohorts are reached, want %d", len(got.Cohorts), size-1)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("it took %d bytes of memory", took)
	}
}
