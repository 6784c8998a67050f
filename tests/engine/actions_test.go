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
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
)

// The project of the events that random actions are asked of, and its cohort.
const (
	actionProject = 311
	actionCohort  = 4
)

// TestActionsAgainstPlainGo asks which events match random actions, by matchesAction, as series of trends and as lists of events, and
// decides it a second time in plain Go.
func TestActionsAgainstPlainGo(t *testing.T) {
	random := rand.New(rand.NewPCG(14, 2)) // the same every time
	events := randomActionEvents(random)
	importActionEvents(t, events)
	const together = 20 // actions in one query
	batches := rounds(t, 40)
	matched, split := 0, 0
	for batch := range batches {
		actions := make([]plainAction, together)
		for i := range actions {
			actions[i] = randomAction(random, int64(batch*together+i+1))
			n := 0
			for k := range events {
				if actions[i].matches(&events[k]) {
					n++
				}
			}
			matched += n
			if 0 < n && n < len(events) {
				split++
			}
		}
		asker := actionAsker{t: t, env: actionEnv(t, actions), actions: actions, events: events}
		asker.byFunction()
		asker.bySeries()
		asker.byList(&actions[batch%together])
		if t.Failed() {
			return
		}
	}
	t.Logf("%d actions, %d of them matched some events and not all; %d matches", batches*together, split, matched)
	if split*2 < batches*together {
		t.Errorf("only %d of %d actions tell events apart", split, batches*together)
	}
}

type actionAsker struct {
	t       *testing.T
	env     compiler.Env
	actions []plainAction
	events  []actionEvent
}

// byFunction asks of each event which actions it matches, and whether it does not.
func (a *actionAsker) byFunction() {
	a.t.Helper()
	var columns []string
	for _, action := range a.actions {
		columns = append(columns, fmt.Sprintf("matchesAction(%d)", action.id), fmt.Sprintf("not matchesAction('action %d')", action.id))
	}
	text := "select toInt(substring(toString(uuid), 25, 12)), arrayMap(x -> toInt(x), [" + strings.Join(columns, ", ") + "]) from events order by 1 limit 1000"
	_, rows := a.ask(map[string]any{"kind": "HogQLQuery", "query": text})
	if len(rows) != len(a.events) {
		a.t.Fatalf("%d rows for %d events", len(rows), len(a.events))
	}
	for i, row := range rows {
		var number int
		var matches []int
		if err := json.Unmarshal([]byte(row), &[]any{&number, &matches}); err != nil {
			a.t.Fatal(err)
		}
		for k := range a.actions {
			want := [2]int{0, 1}
			if a.actions[k].matches(&a.events[i]) {
				want = [2]int{1, 0}
			}
			if got := [2]int(matches[2*k : 2*k+2]); got != want {
				a.t.Errorf("matches and does not: got %v, want %v: %s of %s", got, want, show(a.events[i]), show(a.wire(&a.actions[k])))
			}
		}
	}
}

// bySeries asks how many events of each day match, with filters beside the action.
func (a *actionAsker) bySeries() {
	a.t.Helper()
	var series []any
	for _, action := range a.actions {
		series = append(series, map[string]any{"kind": "ActionsNode", "id": action.id, "properties": []any{plainFilters[2].wire}})
	}
	compiled, rows := a.ask(map[string]any{"kind": "TrendsQuery", "series": series, "dateRange": map[string]any{"date_from": "2024-03-01", "date_to": "2024-03-05"}})
	answer, err := compiled.Shape(func(yield func([]byte) bool) {
		for _, row := range rows {
			if !yield([]byte(row)) {
				return
			}
		}
	})
	if err != nil {
		a.t.Fatal(err)
	}
	var items []struct {
		Data   []int  `json:"data"`
		Label  string `json:"label"`
		Action struct {
			ID   int64  `json:"id"`
			Type string `json:"type"`
		} `json:"action"`
	}
	if err := json.Unmarshal(answer.Results, &items); err != nil {
		a.t.Fatal(err)
	}
	for k := range a.actions {
		want := make([]int, 5)
		for i := range a.events {
			if a.actions[k].matches(&a.events[i]) && plainFilters[2].holds(&a.events[i]) {
				want[a.events[i].Timestamp.Day()-1]++
			}
		}
		if diff := cmp.Diff(want, items[k].Data); diff != "" {
			a.t.Errorf("of days (-plain Go +engine) of %s:\n%s", show(a.wire(&a.actions[k])), diff)
		}
		if got := items[k]; got.Action.ID != a.actions[k].id || got.Action.Type != "actions" || got.Label != fmt.Sprintf("action %d", a.actions[k].id) {
			a.t.Errorf("the item is called %q, with the action %+v", got.Label, got.Action)
		}
	}
}

// byList lists the events of one action.
func (a *actionAsker) byList(action *plainAction) {
	a.t.Helper()
	if len(action.steps) == 0 {
		return // is refused
	}
	_, rows := a.ask(map[string]any{
		"kind": "EventsQuery", "select": []string{"uuid"}, "actionId": action.id, "after": "all", "before": "2025-01-01", "orderBy": []string{"uuid"}, "limit": 1000,
	})
	want := []string{}
	for i := range a.events {
		if action.matches(&a.events[i]) {
			want = append(want, fmt.Sprintf("[%q]", a.events[i].UUID))
		}
	}
	if !slices.Equal(want, rows) {
		a.t.Errorf("events (-plain Go +engine) of %s:\n%s", show(a.wire(action)), cmp.Diff(want, []string(rows)))
	}
}

func (a *actionAsker) ask(node map[string]any) (*compiler.Compiled, rowCollector) {
	a.t.Helper()
	raw, err := json.Marshal(node)
	if err != nil {
		a.t.Fatal(err)
	}
	q, err := compiler.Parse(raw)
	if err != nil {
		a.t.Fatalf("%s: %v", raw, err)
	}
	compiled, err := compiler.Compile(q, a.env)
	if err != nil {
		a.t.Fatalf("%s: %v", raw, err)
	}
	params := make([]clickhouse.Param, len(compiled.Params))
	for i, p := range compiled.Params {
		params[i] = clickhouse.Param(p)
	}
	var rows rowCollector
	if _, err := client.Query(a.t.Context(), clickhouse.Query{SQL: compiled.SQL, Params: params, Project: actionProject}, &rows); err != nil {
		a.t.Fatalf("%s: %v\n%s", raw, err, compiled.SQL)
	}
	return compiled, rows
}

// wire is an action in the words of the API.
func (a *actionAsker) wire(action *plainAction) []map[string]any {
	var steps []map[string]any
	for _, s := range action.steps {
		var selector []string
		for i := range s.selector {
			if s.selector[i].child {
				selector = append(selector, ">")
			}
			selector = append(selector, s.selector[i].String())
		}
		filters := []any{}
		for _, f := range s.filters {
			filters = append(filters, f.wire)
		}
		steps = append(steps, map[string]any{
			"event": s.event, "url": s.url, "url_matching": s.urlHow, "text": s.text, "text_matching": s.textHow, "href": s.href, "href_matching": s.hrefHow,
			"tag_name": s.tag, "selector": strings.Join(selector, " "), "properties": filters,
		})
	}
	return steps
}

func show(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// actionEnv is the world with some actions, and with the action base, which is event a.
func actionEnv(t *testing.T, actions []plainAction) compiler.Env {
	t.Helper()
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	list := []query.Action{{ID: 1_000_000, Name: "base", Steps: []query.ActionStep{{Event: "a"}}}}
	var asker actionAsker
	for i := range actions {
		a := query.Action{ID: actions[i].id, Name: fmt.Sprintf("action %d", actions[i].id)}
		for k, wire := range asker.wire(&actions[i]) {
			s := &actions[i].steps[k]
			filters, err := query.ParseActionProperties([]byte(show(wire["properties"])))
			if err != nil {
				t.Fatal(err)
			}
			a.Steps = append(a.Steps, query.ActionStep{
				Event: text(s.event), URL: text(s.url), URLMatching: query.Matching(s.urlHow), Properties: filters, Selector: fmt.Sprint(wire["selector"]),
				TagName: s.tag, Text: s.text, TextMatching: query.Matching(s.textHow), Href: s.href, HrefMatching: query.Matching(s.hrefHow),
			})
		}
		list = append(list, a)
	}
	return compiler.Env{
		Database: &schema.Database{
			Project: actionProject, Location: time.UTC, Layout: schema.NativeLayout(),
			Cohorts: schema.NewCohorts([]schema.Cohort{{ID: actionCohort, Name: "members", Static: true}}, false),
		},
		Now: time.Date(2024, 4, 1, 0, 0, 0, 0, time.UTC), Actions: query.NewActions(list),
	}
}

func importActionEvents(t *testing.T, events []actionEvent) {
	t.Helper()
	var lines strings.Builder
	encoder := json.NewEncoder(&lines)
	encoder.SetEscapeHTML(false)
	write := func(line any) {
		if err := encoder.Encode(line); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for _, e := range events {
		if seen[e.DistinctID] {
			continue
		}
		seen[e.DistinctID] = true
		properties := map[string]any{}
		if e.plan != "" {
			properties["plan"] = e.plan
		}
		write(map[string]any{"type": "person", "distinct_ids": []string{e.DistinctID}, "properties": properties, "created_at": "2024-01-01T00:00:00Z"})
		if e.member {
			write(map[string]any{"type": "cohort", "cohort_id": actionCohort, "distinct_ids": []string{e.DistinctID}})
		}
	}
	for _, e := range events {
		write(e)
	}
	options := ingest.Options{Project: actionProject, Now: time.Now(), Cohorts: []int64{actionCohort}}
	report, err := ingest.New(client).Import(t.Context(), options, ingesttest.Lines(lines.String()))
	if err != nil || report.Bad > 0 {
		t.Fatalf("importing: %v: %+v", err, report)
	}
}
