package warehouse_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/clickhousetest"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse/warehousetest"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

var (
	engine *embedded.Engine
	client *clickhouse.Client
)

func TestMain(m *testing.M) {
	clickhousetest.Main(m, func(e *embedded.Engine, c *clickhouse.Client) { engine, client = e, c })
}

// house is a warehouse on the engine with a project of its own.
type house struct {
	*warehouse.Warehouse
	places  *admission.Scheduler
	project int64
}

// build opens a warehouse. Without alone, others may write to its ClickHouse.
func build(t *testing.T, alone bool) *house {
	t.Helper()
	_, w := warehousetest.Open(t, t.TempDir(), clickhouse.Config{DSN: engine.DSN(), Embedded: alone})
	return &house{w, admission.New(admission.Limits{Places: 8, Project: 4, Queue: 10}), clickhousetest.Project()}
}

func (h *house) options() ingest.Options { return ingest.Options{Project: h.project, Now: time.Now()} }

func (h *house) place(t *testing.T) *admission.Place {
	t.Helper()
	place, err := h.places.Enter(t.Context(), admission.Request{Project: h.project})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(place.Leave)
	return place
}

func (h *house) load(t *testing.T, lines ...string) {
	t.Helper()
	report, err := h.Import(t.Context(), h.places, h.options(), ingesttest.Lines(lines...))
	if err != nil || report.Bad > 0 {
		t.Fatal(err, report)
	}
}

// event is a line with a new event.
func event(person, at string) string {
	return fmt.Sprintf(`{"event":"a","distinct_id":%q,"timestamp":%q,"uuid":%q}`, person, at, uuid.NewString())
}

func (h *house) capture(t *testing.T, line string) {
	t.Helper()
	var parser record.Parser
	r, err := parser.Parse([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	r.Arrived = time.Now()
	if _, err := h.Deliver(t.Context(), h.options(), []record.Record{r}); err != nil {
		t.Fatal(err)
	}
}

// person is the id of the person of a distinct id.
func (h *house) person(t *testing.T, name string) uuid.UUID {
	t.Helper()
	rows := clickhousetest.Ask(t, client, h.project, "SELECT toString(argMax(person_id, version)) FROM person_distinct_id2 WHERE distinct_id = {name:String}",
		clickhouse.Param{Name: "name", Type: "String", Value: name})
	return uuid.MustParse(strings.Trim(rows[0], `["]`))
}

// version returns the version of tables; "unknown" if it is unknown.
func (h *house) version(t *testing.T, from, to time.Time, tables ...string) string {
	t.Helper()
	return h.versionOf(t, from, to, schema.Reads{Tables: tables})
}

// versionOf returns the version of what a query reads; "unknown" if it is unknown.
func (h *house) versionOf(t *testing.T, from, to time.Time, reads schema.Reads) string {
	t.Helper()
	place, err := h.places.Enter(t.Context(), admission.Request{Project: h.project})
	if err != nil {
		t.Fatal(err)
	}
	defer place.Leave()
	data, err := h.Data(t.Context(), place, h.project, reads)
	if err != nil {
		t.Fatal(err)
	}
	version, ok := data.Version(reads, from, to)
	if !ok {
		return "unknown"
	}
	return fmt.Sprint(version)
}

// day is the day of the events that tests write.
var day = time.Date(2024, 3, 4, 0, 0, 0, 0, time.UTC)

// versions returns the versions that tests compare, by name.
func (h *house) versions(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{
		"day":    h.version(t, day, day.AddDate(0, 0, 1), physical.Events),
		"before": h.version(t, day.AddDate(0, 0, -3), day.AddDate(0, 0, -1), physical.Events),
		"events": h.version(t, time.Time{}, time.Time{}, physical.Events),
	}
	for _, table := range []string{"person", "person_distinct_id2", "person_distinct_id_overrides", "groups", physical.StaticMembers, physical.ComputedMembers} {
		out[table] = h.version(t, time.Time{}, time.Time{}, table)
	}
	return out
}

const cohort = 7

// kinds are the ways in which data change, with the versions that each changes.
var kinds = []struct {
	name   string
	change func(*testing.T, *house)
	moves  string
}{
	{"import", func(t *testing.T, h *house) {
		t.Helper()
		h.load(t, event("ann", "2024-03-04T12:00:00Z"))
	}, "day events"},
	{"import of a person", func(t *testing.T, h *house) {
		t.Helper()
		h.load(t, `{"type":"person","distinct_ids":["new"],"properties":{"a":1}}`)
	}, "person person_distinct_id2"},
	{"import of a group", func(t *testing.T, h *house) {
		t.Helper()
		h.load(t, `{"type":"group","group_type":"org","group_key":"k","properties":{"a":1}}`)
	}, "groups"},
	{"capture", func(t *testing.T, h *house) {
		t.Helper()
		h.capture(t, event("ann", "2024-03-04T13:00:00Z"))
	}, "day events"},
	{"capture of an earlier day", func(t *testing.T, h *house) {
		t.Helper()
		h.capture(t, event("ann", "2024-03-02T13:00:00Z"))
	}, "before events"},
	{"merge", func(t *testing.T, h *house) {
		t.Helper()
		h.capture(t, fmt.Sprintf(`{"event":"$merge_dangerously","distinct_id":"ann","timestamp":"2024-03-04T13:00:00Z","uuid":%q,"properties":{"alias":"bob"}}`, uuid.NewString()))
	}, "day events person person_distinct_id2 person_distinct_id_overrides"},
	{"change of a person", func(t *testing.T, h *house) {
		t.Helper()
		if _, err := h.Change(t.Context(), h.places, h.options(), ingest.Change{Person: h.person(t, "eve"), Unset: []string{"color"}}); err != nil {
			t.Fatal(err)
		}
	}, "person"},
	{"people put into a cohort", func(t *testing.T, h *house) {
		t.Helper()
		if err := h.AddMembers(t.Context(), h.place(t), h.project, cohort, clickhouse.ByDistinctID, []string{"ann"}); err != nil {
			t.Fatal(err)
		}
	}, physical.StaticMembers},
	{"people taken out of a cohort", func(t *testing.T, h *house) {
		t.Helper()
		if err := h.RemoveMembers(t.Context(), h.place(t), h.project, cohort); err != nil {
			t.Fatal(err)
		}
	}, physical.StaticMembers},
	{"deletion of a person", func(t *testing.T, h *house) {
		t.Helper()
		none := func(context.Context, []ingest.Gone) error { return nil }
		if err := h.DeletePeople(t.Context(), h.options(), ingest.Named{DistinctIDs: []string{"eve"}}, true, none, none); err != nil {
			t.Fatal(err)
		}
	}, "person person_distinct_id2"},
	{"deletion of events", func(t *testing.T, h *house) {
		t.Helper()
		if err := h.DeleteEvents(t.Context(), h.project, nil, []string{"ann"}, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}, "day before events"},
	{"removal of old events", func(t *testing.T, h *house) {
		t.Helper()
		h.capture(t, event("zoe", "2024-03-02T13:00:00Z"))
		var dropped int64
		for try := 0; dropped == 0; try++ {
			var err error
			if dropped, err = h.DropOutdated(t.Context(), []clickhouse.Kept{{Project: h.project, From: day}}); err != nil && try == 10 { // a merge may have come first
				t.Fatal(err)
			}
		}
	}, "before events person person_distinct_id2"},
	{"what others may have done", func(_ *testing.T, h *house) { h.ForgetPeople(h.project) }, "all"},
	{"removal of the project", func(t *testing.T, h *house) {
		t.Helper()
		if err := h.RemoveProject(t.Context(), h.project); err != nil {
			t.Fatal(err)
		}
	}, "all"},
}

// TestVersionsMove: any change of data changes the versions of these data, of this project only, and what changes no data changes no version.
func TestVersionsMove(t *testing.T) {
	h := build(t, true)
	other := &house{h.Warehouse, h.places, clickhousetest.Project()}
	other.load(t, event("ann", "2024-03-04T10:00:00Z"))
	h.load(t, event("ann", "2024-03-04T10:00:00Z"), event("bob", "2024-03-04T11:00:00Z"), event("cid", "2024-03-01T11:00:00Z"),
		`{"type":"person","distinct_ids":["eve"],"properties":{"color":"red"}}`)
	for _, kind := range kinds {
		before, others := h.versions(t), other.versions(t)
		if again := h.versions(t); fmt.Sprint(again) != fmt.Sprint(before) {
			t.Errorf("before the %s, the versions move by themselves: %v, %v", kind.name, before, again)
		}
		kind.change(t, h)
		after := h.versions(t)
		for what := range before {
			moves := kind.moves == "all" || strings.Contains(" "+kind.moves+" ", " "+what+" ")
			if moved := after[what] != before[what]; moved != moves || after[what] == "unknown" {
				t.Errorf("the %s moves %s: %t, from %s to %s", kind.name, what, moved, before[what], after[what])
			}
		}
		if now := other.versions(t); fmt.Sprint(now) != fmt.Sprint(others) {
			t.Errorf("the %s of one project moves %v of another to %v", kind.name, others, now)
		}
	}
}

// TestCreationsMove: a query that reads when the persons of events were created sees another version only for hours with events of persons whose
// creation time has changed. New persons have no earlier events with a profile.
func TestCreationsMove(t *testing.T) {
	h := build(t, true)
	reads := schema.Reads{Tables: []string{physical.Persons, physical.Overrides}, Created: true}
	line := func(name, person, at, properties string) string {
		return fmt.Sprintf(`{"event":%q,"distinct_id":%q,"timestamp":%q,"uuid":%q,"properties":%s}`, name, person, at, uuid.NewString(), properties)
	}
	const on, before = "2024-03-04T12:00:00Z", "2024-03-02T12:00:00Z" // the days whose versions are looked at
	versions := func() [2]string {
		return [...]string{
			h.versionOf(t, day, day.AddDate(0, 0, 1), reads), h.versionOf(t, day.AddDate(0, 0, -3), day.AddDate(0, 0, -1), reads),
		}
	}
	versions() // from now on somebody asks
	h.capture(t, line("a", "ann", on, "{}"))
	h.capture(t, line("a", "ann", before, "{}")) // she is as old as the first event that came
	h.capture(t, line("a", "bob", before, "{}"))
	h.capture(t, line("a", "cid", on, "{}"))
	h.capture(t, line("a", "eve", "2024-01-01T12:00:00Z", "{}"))
	for _, step := range []struct {
		name  string
		do    func()
		moves [2]bool
	}{
		{"nothing", func() {}, [2]bool{}},
		{"somebody new", func() { h.capture(t, line("a", "dan", on, `{"$set":{"plan":"pro"}}`)) }, [2]bool{}},
		{"a property", func() { h.capture(t, line("$set", "ann", on, `{"$set":{"plan":"pro"}}`)) }, [2]bool{}},
		{"a property, by hand", func() {
			if _, err := h.Change(t.Context(), h.places, h.options(), ingest.Change{Person: h.person(t, "ann"), Unset: []string{"plan"}}); err != nil {
				t.Fatal(err)
			}
		}, [2]bool{}},
		{"somebody new with events without profile", func() {
			h.capture(t, line("a", "fay", before, `{"$process_person_profile":false}`))
			h.capture(t, line("a", "fay", on, "{}"))
		}, [2]bool{}},
		{"a new name of somebody known", func() { h.capture(t, line("$identify", "cid", on, `{"$anon_distinct_id":"new"}`)) }, [2]bool{}},
		{"somebody known who gets a new name", func() { h.capture(t, line("$identify", "gus", on, `{"$anon_distinct_id":"dan"}`)) }, [2]bool{}},
		{"somebody older who becomes somebody known", func() { h.capture(t, line("$identify", "ann", on, `{"$anon_distinct_id":"bob"}`)) }, [2]bool{true, true}},
		{"somebody younger who becomes somebody known", func() { h.capture(t, line("$merge_dangerously", "eve", on, `{"alias":"cid"}`)) }, [2]bool{true, false}},
		{"somebody who is deleted and returns", func() {
			none := func(context.Context, []ingest.Gone) error { return nil }
			if err := h.DeletePeople(t.Context(), h.options(), ingest.Named{DistinctIDs: []string{"ann"}}, true, none, none); err != nil {
				t.Fatal(err)
			}
			h.capture(t, line("a", "ann", on, "{}"))
		}, [2]bool{true, true}},
		{"an import of somebody new", func() { h.load(t, line("a", "hal", on, "{}")) }, [2]bool{}},
		{"an import of earlier events", func() { h.load(t, line("a", "hal", before, "{}")) }, [2]bool{true, true}},
	} {
		was := versions()
		step.do()
		now := versions()
		if got := [2]bool{now[0] != was[0], now[1] != was[1]}; got != step.moves || now[0] == "unknown" || now[1] == "unknown" {
			t.Errorf("%s moves the versions of the day and of those before: %v, want %v", step.name, got, step.moves)
		}
	}
}

// TestNoStatementSettlesNothing: a removal that finds nothing, or only drops whole parts, does not prove that earlier statements are finished.
func TestNoStatementSettlesNothing(t *testing.T) {
	h := build(t, true)
	h.load(t, event("ann", "1971-03-04T10:00:00Z"))
	others := &house{h.Warehouse, h.places, clickhousetest.Project()}
	for _, table := range []string{physical.Events, physical.StaticMembers, physical.ComputedMembers} {
		others.FailMutation(others.project, table)
	}
	place := h.place(t)
	_, err := h.RemoveMember(t.Context(), place, h.project, cohort, uuid.New())
	if err = errors.Join(
		err, h.RemoveMembers(t.Context(), place, h.project, cohort), h.DropVersion(t.Context(), place, h.project, cohort, 1),
		h.DropOtherVersions(t.Context(), place, h.project, cohort, 1),
	); err != nil {
		t.Fatal(err)
	}
	if n, err := h.DropOutdated(t.Context(), []clickhouse.Kept{{Project: h.project, From: day.AddDate(-20, 0, 0)}}); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	for _, table := range []string{physical.Events, physical.StaticMembers, physical.ComputedMembers} {
		if version := others.version(t, time.Time{}, time.Time{}, table); version != "unknown" {
			t.Errorf("the version of %s is %s", table, version)
		}
	}
	if err := h.AddMembers(t.Context(), place, h.project, cohort, clickhouse.ByDistinctID, []string{"ann"}); err != nil {
		t.Fatal(err)
	}
	if err := h.RemoveMembers(t.Context(), place, h.project, cohort); err != nil {
		t.Fatal(err)
	}
	if version := others.version(t, time.Time{}, time.Time{}, physical.StaticMembers); version == "unknown" {
		t.Error("a statement that was done says nothing of those before it")
	}
}

// TestForgetsRemovedProject: nothing is kept in memory of a project whose rows were removed.
func TestForgetsRemovedProject(t *testing.T) {
	h := build(t, true)
	h.load(t, event("ann", "2024-03-04T10:00:00Z"))
	if h.Histories() != 1 {
		t.Fatalf("%d histories", h.Histories())
	}
	if err := h.RemoveProject(t.Context(), h.project); err != nil {
		t.Fatal(err)
	}
	if n := h.Histories(); n != 0 {
		t.Errorf("%d histories are left", n)
	}
}

// TestVersionsOfRestore: a restored part changes the versions of all projects.
func TestVersionsOfRestore(t *testing.T) {
	h := build(t, true)
	before := h.versions(t)
	if err := h.AttachPart(t.Context(), physical.Events, "none"); err == nil {
		t.Fatal("a part that is not there is attached")
	}
	if after := h.versions(t); after["events"] != "unknown" || after["groups"] != "unknown" {
		t.Errorf("after a restore that failed the versions are %v", after)
	}
	if err := h.Truncate(t.Context(), physical.ComputedMembers); err != nil {
		t.Fatal(err)
	}
	for what, version := range h.versions(t) {
		if version == "unknown" || version == before[what] {
			t.Errorf("after a restore %s has version %s, %s before", what, version, before[what])
		}
	}
}
