package engine_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/cohort"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
)

// membersProject is the project of the people among whom random cohorts are looked for.
const membersProject = 303

// memberPerson is somebody with events. Nobody knows more than the events of one without a profile.
type memberPerson struct {
	name    string
	ids     []string
	known   bool
	plan    any // "-" for none
	created time.Time
}

// memberEvent is one random event.
type memberEvent struct {
	name, id, browser string
	at                time.Time
	person            string
}

// memberEvents are the names of events. One is what no text of SQL may hold.
var memberEvents = []string{"a", "b", "it's {p0:String} \\ `--"}

// memberWorld is what random cohorts are asked of.
type memberWorld struct {
	project int64
	people  []memberPerson
	events  []memberEvent
	cohorts map[int][]string // their members
	nows    []time.Time
	zones   []*time.Location
	labels  map[string]string // names of people by their ids
}

// TestMembersAgainstPlainGo asks the engine for the members of random cohorts, and looks for them a second time in plain Go.
func TestMembersAgainstPlainGo(t *testing.T) {
	random := rand.New(rand.NewPCG(14, 5)) // the same every time
	w := randomMembers(t, random)
	w.fill(t)
	compared, refused, empty := rounds(t, 600), 0, 0
	for i := 0; i < compared; {
		now, zone := w.nows[random.IntN(len(w.nows))], w.zones[random.IntN(len(w.zones))]
		tree := w.randomGroup(random, now.In(zone), 3)
		raw, err := json.Marshal(map[string]any{"properties": tree})
		if err != nil {
			t.Fatal(err)
		}
		plain := plainMembers{memberWorld: w, now: now.In(zone)}
		d, err := cohort.Read(raw, nil)
		if negated := plain.holds(tree, ""); negated || err != nil {
			if refused++; !negated || err == nil || !strings.Contains(err.Error(), "cannot be negated") {
				t.Errorf("%s gives %v; everybody but some: %t", raw, err, negated)
			}
			continue
		}
		i++
		var want []string
		for _, p := range w.people {
			if plain.holds(tree, p.name) {
				want = append(want, p.name)
			}
		}
		slices.Sort(want)
		if len(want) == 0 {
			empty++
		}
		got, sql := w.ask(t, d, now, zone)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s at %s\n%s\nmembers (-plain Go +engine):\n%s", raw, plain.now, sql, diff)
		}
	}
	t.Logf("%d cohorts, %d of them without members; %d others were refused", compared, empty, refused)
	if empty > compared/2 {
		t.Errorf("of %d cohorts %d had no members", compared, empty)
	}
}

// TestLargeCohorts: the engine takes the queries for cohorts with as many filters as there may be.
func TestLargeCohorts(t *testing.T) {
	w := &memberWorld{project: membersProject + 1} // which has no people
	window := `"event_type": "events", "time_value": 9, "time_interval": "day"`
	for name, leaf := range map[string]string{
		"events":    `{"type": "behavioral", "key": "e%d", "value": "performed_event", ` + window + `}`,
		"first":     `{"type": "behavioral", "key": "e%d", "value": "performed_event_first_time", ` + window + `}`,
		"regularly": `{"type": "behavioral", "key": "e%d", "value": "performed_event_regularly", "operator_value": 2, "total_periods": 9, "min_periods": 2, ` + window + `}`,
		"sequences": `{"type": "behavioral", "key": "e%[1]d", "value": "performed_event_sequence", "seq_event": "f%[1]d", "seq_event_type": "events",
			"seq_time_value": 1, "seq_time_interval": "day", ` + window + `}`,
		"people":  `{"type": "person", "key": "p%d", "operator": "icontains", "value": "x"}`,
		"cohorts": `{"type": "cohort", "key": "id", "value": 6}`,
	} {
		leaves := make([]string, 200)
		for i := range leaves {
			leaves[i] = leaf
			if name != "cohorts" {
				leaves[i] = fmt.Sprintf(leaf, i)
			}
		}
		d, err := cohort.Read([]byte(`{"properties": {"type": "AND", "values": [`+strings.Join(leaves, ",")+`]}}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		w.ask(t, d, day, time.UTC)
	}
}

// ask lists the members of a cohort by name.
func (w *memberWorld) ask(t *testing.T, d *cohort.Definition, now time.Time, zone *time.Location) ([]string, string) {
	t.Helper()
	compiled, err := compiler.CompileCohort(d, compiler.Env{Now: now, Database: w.database(zone), Actions: w.actions(t)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{cohort.PersonID}, compiled.Columns); diff != "" {
		t.Fatalf("columns (-want +got):\n%s", diff)
	}
	params := make([]clickhouse.Param, len(compiled.Params))
	for i, p := range compiled.Params {
		params[i] = clickhouse.Param(p)
	}
	var rows rowCollector
	if _, err := client.Query(t.Context(), clickhouse.Query{SQL: compiled.SQL, Params: params, Project: w.project}, &rows); err != nil {
		t.Fatalf("%v\n%s", err, compiled.SQL)
	}
	var names []string
	for _, row := range rows {
		name, ok := w.labels[strings.Trim(row, `["]`)]
		if !ok {
			t.Fatalf("nobody is %s", row)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, compiled.SQL
}

func (w *memberWorld) database(zone *time.Location) *schema.Database {
	return &schema.Database{
		Project: w.project, Location: zone, Layout: schema.NativeLayout(),
		Cohorts: schema.NewCohorts([]schema.Cohort{{ID: 5, Static: true}, {ID: 6, Version: 2}}, false),
	}
}

// memberActions are actions as the API has their steps.
var memberActions = map[int64][]map[string]any{
	1: {{"event": memberEvents[0], "properties": []any{map[string]any{"type": "event", "key": "browser", "operator": "exact", "value": "Chrome"}}}},
	2: {{"event": memberEvents[1]}, {"event": memberEvents[2]}},
	3: {{"properties": []any{map[string]any{"type": "cohort", "key": "id", "value": 5}}}},
	4: {}, // every event
}

func (w *memberWorld) actions(t *testing.T) *query.Actions {
	t.Helper()
	var out []query.Action
	for id, steps := range memberActions {
		action := query.Action{ID: id}
		for _, step := range steps {
			event, _ := step["event"].(string)
			one := query.ActionStep{Event: event}
			if step["properties"] != nil {
				raw, err := json.Marshal(step["properties"])
				if err != nil {
					t.Fatal(err)
				}
				if one.Properties, err = query.ParseActionProperties(raw); err != nil {
					t.Fatal(err)
				}
			}
			action.Steps = append(action.Steps, one)
		}
		out = append(out, action)
	}
	return query.NewActions(out)
}

// randomMembers makes people and events. Many events lie where a window could begin or end, or at the time of another one.
func randomMembers(t *testing.T, r *rand.Rand) *memberWorld {
	t.Helper()
	w := &memberWorld{project: membersProject, cohorts: map[int][]string{}, labels: map[string]string{}}
	for _, name := range []string{"UTC", "America/New_York", "Asia/Kolkata"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		w.zones = append(w.zones, zone)
	}
	w.nows = []time.Time{
		time.Date(2024, 4, 1, 13, 45, 10, 123_456_000, time.UTC),
		time.Date(2024, 3, 31, 4, 20, 0, 0, time.UTC),
		time.Date(2024, 3, 10, 15, 0, 0, 0, time.UTC), // a short day in New York
		time.Date(2024, 3, 1, 8, 0, 0, 0, time.UTC),   // after a short month
	}
	plans := []any{"pro", "free", "Preview", "-", "", 5, 12.5, true, nil}
	for i := range 16 {
		p := memberPerson{
			name: fmt.Sprintf("p%d", i), known: i < 13, plan: plans[i%len(plans)],
			created: w.nows[3].Add(-time.Duration(r.IntN(60*24)) * time.Hour).Truncate(time.Second),
		}
		ids := 1 + i%2
		if i == 13 {
			ids = 1 // two would be two people
		}
		for k := range ids {
			p.ids = append(p.ids, fmt.Sprintf("%s_%d", p.name, k))
		}
		w.people = append(w.people, p)
		for c := 5; c <= 6; c++ {
			if r.IntN(3) == 0 {
				w.cohorts[c] = append(w.cohorts[c], p.name)
			}
		}
	}
	for range 1000 {
		p := w.people[r.IntN(len(w.people))]
		w.events = append(w.events, memberEvent{
			name: memberEvents[r.IntN(4)%3], id: p.ids[r.IntN(len(p.ids))], person: p.name,
			browser: []string{"Chrome", "Firefox", "", "-"}[r.IntN(4)], at: w.randomTime(r, p.name),
		})
	}
	return w
}

func (w *memberWorld) randomTime(r *rand.Rand, person string) time.Time {
	now := w.nows[r.IntN(len(w.nows))].In(w.zones[r.IntN(len(w.zones))])
	switch r.IntN(6) {
	case 0: // the time of another event
		for _, e := range w.events {
			if e.person == person {
				return e.at
			}
		}
	case 1: // about a border
		unit := []string{"minute", "hour", "day", "day", "week", "month", "year"}[r.IntN(7)]
		t := plainBack(now, r.IntN(4), unit)
		if r.IntN(2) == 0 {
			t = plainMidnight(t)
		}
		return t.Add(time.Duration(r.IntN(3)-1) * time.Microsecond)
	case 2: // long ago
		return now.Add(-time.Duration(r.IntN(3*365*24*60)) * time.Minute)
	case 3: // just now
		return now.Add(-time.Duration(r.IntN(5*60)) * time.Minute)
	}
	return now.Add(-time.Duration(r.IntN(40*24*60)) * time.Minute)
}

// fill imports the world. One person has an event that another one sent before both became one.
func (w *memberWorld) fill(t *testing.T) {
	t.Helper()
	var records []any
	unknown := map[string]bool{}
	for _, p := range w.people {
		unknown[p.name] = !p.known
		if p.known {
			properties := map[string]any{"plan": p.plan}
			if p.plan == "-" {
				delete(properties, "plan")
			}
			records = append(records, map[string]any{"type": "person", "distinct_ids": p.ids, "properties": properties, "created_at": p.created.Format(time.RFC3339)})
		}
	}
	for _, e := range w.events {
		properties := map[string]any{"browser": e.browser}
		if e.browser == "-" {
			delete(properties, "browser")
		}
		if unknown[e.person] {
			properties["$process_person_profile"] = false
		}
		records = append(records, map[string]any{"event": e.name, "distinct_id": e.id, "timestamp": e.at.UTC().Format(time.RFC3339Nano), "properties": properties})
	}
	report, err := ingest.New(client).Import(t.Context(), ingest.Options{Project: w.project, Now: time.Now()}, ingesttest.Records(t, records...))
	if err != nil || report.Bad > 0 {
		t.Fatalf("importing: %v: %+v", err, report)
	}
	w.readLabels(t)
	// The second id of p1 becomes one of p2, and that of a person without profile one of p3, after their events.
	for from, to := range map[string]string{"p1_1": "p2", "p15_1": "p3"} {
		execute(t, dsn, fmt.Sprintf("INSERT INTO person_distinct_id_overrides (team_id, distinct_id, person_id, version, is_deleted) VALUES (%d, '%s', '%s', 9, 0)",
			w.project, from, w.id(to)))
		for i := range w.events {
			if w.events[i].id == from {
				w.events[i].person = to
			}
		}
	}
	for i, name := range w.cohorts[5] {
		execute(t, dsn, fmt.Sprintf("INSERT INTO person_static_cohort (id, person_id, cohort_id, team_id) VALUES (generateUUIDv4(), '%s', 5, %d)", w.id(name), w.project))
		if i == 0 {
			execute(t, dsn, fmt.Sprintf("INSERT INTO cohortpeople VALUES ('%s', 6, %d, 1, 1)", w.id(name), w.project)) // an older version
		}
	}
	for _, name := range w.cohorts[6] {
		execute(t, dsn, fmt.Sprintf("INSERT INTO cohortpeople VALUES ('%s', 6, %d, 1, 2)", w.id(name), w.project))
	}
}

// readLabels finds out which ids people have got.
func (w *memberWorld) readLabels(t *testing.T) {
	t.Helper()
	var rows rowCollector
	ids := clickhouse.Query{Project: w.project, SQL: fmt.Sprintf("SELECT distinct_id, toString(person_id) FROM events WHERE team_id = %d "+
		"UNION DISTINCT SELECT distinct_id, toString(person_id) FROM person_distinct_id2 WHERE team_id = %[1]d", w.project)}
	if _, err := client.Query(t.Context(), ids, &rows); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		var pair [2]string
		if err := json.Unmarshal([]byte(row), &pair); err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(pair[0], "_")
		w.labels[pair[1]] = name
	}
}

func (w *memberWorld) id(name string) string {
	for id, label := range w.labels {
		if label == name {
			return id
		}
	}
	panic("nobody is called " + name)
}

// randomGroup is a tree of filters as the API takes them.
func (w *memberWorld) randomGroup(r *rand.Rand, now time.Time, depth int) map[string]any {
	var values []any
	for range 1 + r.IntN(3) {
		if depth > 0 && r.IntN(4) == 0 {
			values = append(values, w.randomGroup(r, now, depth-1))
		} else {
			values = append(values, w.randomLeaf(r, now))
		}
	}
	return map[string]any{"type": []string{"AND", "OR"}[r.IntN(2)], "values": values}
}

func (w *memberWorld) randomLeaf(r *rand.Rand, now time.Time) map[string]any {
	var leaf map[string]any
	switch r.IntN(8) {
	case 0:
		leaf = randomPersonFilter(r)
	case 1:
		leaf = map[string]any{
			"type": "person_metadata", "key": "created_at", "operator": []string{"is_date_before", "is_date_after"}[r.IntN(2)],
			"value": []string{"-7d", "-30d", "2024-03-01"}[r.IntN(3)],
		}
	case 2:
		leaf = map[string]any{"type": "cohort", "key": "id", "value": 5 + r.IntN(2)}
	default:
		leaf = randomBehavior(r, now)
	}
	if r.IntN(4) == 0 {
		leaf["negation"] = true
	}
	return leaf
}

func randomPersonFilter(r *rand.Rand) map[string]any {
	leaf := map[string]any{"type": "person", "key": "plan"}
	switch r.IntN(4) {
	case 0:
		leaf["operator"], leaf["value"] = []string{"exact", "is_not"}[r.IntN(2)], []any{"pro", []any{"free", "5"}, "", "true"}[r.IntN(4)]
	case 1:
		leaf["operator"], leaf["value"] = []string{"icontains", "not_icontains"}[r.IntN(2)], []any{"PR", "e", "5"}[r.IntN(3)]
	case 2:
		leaf["operator"] = []string{"is_set", "is_not_set"}[r.IntN(2)]
	case 3:
		leaf["operator"], leaf["value"] = []string{"gte", "lt"}[r.IntN(2)], 6
	}
	return leaf
}

// randomBehavior is a behavioral leaf. Its windows are of all units and often end where an event is.
func randomBehavior(r *rand.Rand, now time.Time) map[string]any {
	kinds := []string{
		"performed_event", "performed_event", "performed_event_multiple", "performed_event_first_time", "performed_event_sequence",
		"stopped_performing_event", "restarted_performing_event", "performed_event_regularly",
	}
	events := slices.Concat(memberEvents, []string{"none"})
	kind := kinds[r.IntN(len(kinds))]
	unit := []string{"minute", "hour", "day", "day", "day", "week", "month", "year"}[r.IntN(8)]
	length := 1 + r.IntN(3)
	if unit == "day" || unit == "minute" {
		length = 1 + r.IntN(45)
	}
	leaf := map[string]any{
		"type": "behavioral", "value": kind, "key": events[r.IntN(4)%3], "event_type": "events", "time_value": length, "time_interval": unit,
	}
	if r.IntN(4) == 0 {
		leaf["event_type"], leaf["key"] = "actions", 1+r.IntN(len(memberActions))
	}
	if r.IntN(3) == 0 {
		leaf["event_filters"] = []any{randomEventFilter(r)}
	}
	switch kind {
	case "performed_event_multiple":
		leaf["operator_value"] = 1 + r.IntN(4)
		if op := []string{"gte", "lte", "gt", "lt", "eq", "exact", ""}[r.IntN(7)]; op != "" {
			leaf["operator"] = op
		}
	case "performed_event_regularly":
		total := 1 + r.IntN(5)
		leaf["operator"], leaf["operator_value"] = []string{"gte", "gte", "lte", "exact"}[r.IntN(4)], 1+r.IntN(2)
		leaf["total_periods"], leaf["min_periods"] = total, 1+r.IntN(total)
	case "performed_event_sequence":
		leaf["seq_event"], leaf["seq_event_type"] = events[r.IntN(4)], "events"
		if r.IntN(3) == 0 {
			leaf["seq_event"], leaf["seq_event_type"] = fmt.Sprint(1+r.IntN(len(memberActions))), "actions"
		}
	}
	if strings.HasPrefix(kind, "st") || strings.HasPrefix(kind, "re") || kind == "performed_event_sequence" {
		leaf["seq_time_interval"] = unit
		leaf["seq_time_value"] = 1 + r.IntN(length)
		if unit == "month" || unit == "year" || unit == "week" {
			leaf["seq_time_interval"], leaf["seq_time_value"] = []string{"hour", "day"}[r.IntN(2)], 1+r.IntN(7)
		}
	}
	explicit := kind != "restarted_performing_event" && kind != "performed_event_regularly"
	if explicit && r.IntN(4) == 0 {
		back := now.AddDate(0, 0, -r.IntN(40))
		leaf["explicit_datetime"] = []string{back.Format(time.DateOnly), back.Format("2006-01-02T15:04:05"), fmt.Sprintf("-%dd", r.IntN(40)), fmt.Sprintf("-%dh", r.IntN(40))}[r.IntN(4)]
		if r.IntN(2) == 0 {
			to := back.AddDate(0, 0, r.IntN(20))
			leaf["explicit_datetime_to"] = []string{to.Format(time.DateOnly), to.Format("2006-01-02T15:04:05"), fmt.Sprintf("-%dd", r.IntN(10))}[r.IntN(3)]
		}
	}
	return leaf
}

func randomEventFilter(r *rand.Rand) map[string]any {
	switch r.IntN(4) {
	case 0:
		return map[string]any{"type": "hogql", "key": "not matchesAction(2) or person_id in cohort 6"}
	case 1:
		return map[string]any{"type": "event", "key": "browser", "operator": []string{"exact", "is_not"}[r.IntN(2)], "value": []any{"Chrome", []any{"Chrome", "Firefox"}}[r.IntN(2)]}
	case 2:
		return map[string]any{"type": "event", "key": "browser", "operator": []string{"is_set", "is_not_set"}[r.IntN(2)]}
	}
	return map[string]any{"type": "hogql", "key": "properties.browser = 'Chrome'"}
}
