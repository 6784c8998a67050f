package engine_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
)

// behavioralProject is the project of the people that random behavioral filters are asked for.
const behavioralProject = 305

// TestBehavioralFiltersAgainstPlainGo asks for the people whose events pass a random behavioral filter, and for the people in a list with that
// filter, and finds both a second time in plain Go.
func TestBehavioralFiltersAgainstPlainGo(t *testing.T) {
	random := rand.New(rand.NewPCG(26, 9)) // the same every time
	w := randomMembers(t, random)
	w.project = behavioralProject
	w.fill(t)
	compared, empty := rounds(t, 200), 0
	for i := 0; i < compared; {
		now, zone := w.nows[random.IntN(len(w.nows))], w.zones[random.IntN(len(w.zones))]
		leaf := randomBehavior(random, now.In(zone))
		if kind := leaf["value"]; kind != "performed_event" && kind != "performed_event_multiple" || leaf["time_interval"] == "minute" || leaf["time_interval"] == "hour" {
			continue // cohorts alone have these
		}
		i++
		leaf["negation"] = random.IntN(3) == 0
		plain := plainMembers{memberWorld: w, now: now.In(zone)}
		var active, known []string
		for _, p := range w.people {
			if !plain.holds(leaf, p.name) {
				continue
			}
			if slices.ContainsFunc(w.events, func(e memberEvent) bool { return e.person == p.name }) {
				active = append(active, p.name)
			}
			if p.known && p.created.Before(now) {
				known = append(known, p.name)
			}
		}
		if len(active) == 0 {
			empty++
		}
		for name, want := range map[string][]string{
			`{"kind": "EventsQuery", "select": ["person_id", "count()"], "after": "all", "before": "2030-01-01", "limit": 1000`: active,
			`{"kind": "ActorsQuery", "select": ["id"], "limit": 1000`:                                                           known,
		} {
			raw, err := json.Marshal([]any{leaf})
			if err != nil {
				t.Fatal(err)
			}
			text := name + `, "properties": ` + string(raw) + "}"
			got := w.peopleOf(t, text, now, zone)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s at %s\npeople (-plain Go +engine):\n%s", text, plain.now, diff)
			}
		}
	}
	t.Logf("%d filters, %d of them for nobody", compared, empty)
	if empty > compared/2 {
		t.Errorf("of %d filters %d were for nobody", compared, empty)
	}
}

// peopleOf lists the people in the first column of an answer by name.
func (w *memberWorld) peopleOf(t *testing.T, text string, now time.Time, zone *time.Location) []string {
	t.Helper()
	node, err := compiler.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	compiled, err := compiler.Compile(node, compiler.Env{Now: now, Database: w.database(zone), Actions: w.actions(t)})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
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
		id, _, _ := strings.Cut(strings.TrimPrefix(row, `["`), `"`)
		name, ok := w.labels[id]
		if !ok {
			t.Fatalf("nobody is %s", row)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
