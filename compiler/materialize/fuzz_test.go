package materialize_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/materialize"
)

// FuzzPlan checks that every query is planned or refused, that reads are compiled or refused as mistakes, and that both read only tables
// with the project's guard: the printer refuses others as bugs.
func FuzzPlan(f *testing.F) {
	for _, seed := range []string{
		"select event, count() as n from events where timestamp >= {variables.since} and event = {variables.event_name} group by event order by n",
		"select count() / uniq(distinct_id), 'x' from events where event = {variables.other}",
		"select minIf(timestamp, event = 'a') as m, m + 1 from events where toDate(timestamp) < {variables.until} having m > 1",
		"select *, cnt_v1 from (select event as cnt_v1, 1 as since from events) where cnt_v1 like {variables.pattern} limit 3 offset 1",
		"with 1 as one select distinct event as since, one from events e where e.event = {variables.since} order by 1",
		"select toStartOfDay(timestamp) as timestamp, sum(properties.price) from events where timestamp > {variables.since} group by 1, timestamp",
		"select event as e from events where e = {variables.event_name} and -{variables.least} < properties.price",
		"select (sum(x as y), max(y)) from (select properties.price as x from events where {filters}) where x >= {variables.least}",
		"select a.event, count() from events a join persons p on a.person_id = p.id where p.created_at > {variables.since} group by 1 limit 1 by 1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2048 {
			return
		}
		p, err := materialize.New(hogqlNode(text), env(), materialize.Options{Endpoint: "cnt", Version: 1, Buckets: map[string]string{"timestamp": "hour"}})
		if _, refused := errors.AsType[*materialize.Refusal](err); refused {
			return
		}
		if err != nil {
			t.Fatalf("%q is refused with a bug: %v", text, err)
		}
		if !strings.HasPrefix(p.Fill.SQL, "SELECT") && !strings.HasPrefix(p.Fill.SQL, "WITH") {
			t.Errorf("%q is filled with %s", text, p.Fill.SQL)
		}
		values := map[string]any{}
		for _, name := range p.Required {
			values[name] = "2024-01-01"
		}
		read, err := p.Read(materialize.Run{Table: "endpoint_7_x", Values: values}, env())
		if err != nil && compiler.Mistakes(err) == nil {
			t.Fatalf("the read of %q is refused with a bug: %v\n%s", text, err, p.Execution)
		}
		if err == nil && strings.Count(read.SQL, "FROM") == strings.Count(read.SQL, "FROM endpoint_7_x ") && !strings.Contains(read.SQL, "team_id = 7") {
			t.Errorf("the read of %q has no guard: %s", text, read.SQL)
		}
	})
}

// TestReadNeedsItsTable: a read reaches no table but that of an endpoint.
func TestReadNeedsItsTable(t *testing.T) {
	t.Parallel()
	p, err := materialize.New(hogqlNode("select event from events where event = {variables.event_name}"), env(), materialize.Options{Endpoint: "a", Version: 1})
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{"event_name": "x"}
	for _, table := range []string{"", "system.query_log", "users", "endpoint_", "endpoint_1; drop table events", "endpoint_1`", "ENDPOINT_1"} {
		if read, err := p.Read(materialize.Run{Table: table, Values: values}, env()); err == nil {
			t.Errorf("table %q is read: %s", table, read.SQL)
		}
	}
	if _, err := p.Read(materialize.Run{Table: "endpoint_1", Values: values}, env()); err != nil {
		t.Error(err)
	}
}

// TestServes: a run that leaves out a variable, or gives another, is not served.
func TestServes(t *testing.T) {
	t.Parallel()
	text := "select event from events where event = {variables.event_name} and timestamp > {variables.since}"
	p, err := materialize.New(hogqlNode(text), env(), materialize.Options{Endpoint: "a", Version: 1})
	if err != nil {
		t.Fatal(err)
	}
	trend, err := compiler.Parse([]byte(`{"kind": "TrendsQuery", "series": [{"kind": "EventsNode"}], "breakdownFilter": {"breakdown": "b", "breakdown_type": "event"}}`))
	if err != nil {
		t.Fatal(err)
	}
	split, err := materialize.New(trend, env(), materialize.Options{Endpoint: "a", Version: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		plan   *materialize.Plan
		values map[string]any
		want   bool
	}{
		{"all", p, map[string]any{"event_name": "a", "since": "2024-01-01"}, true},
		{"one is missing", p, map[string]any{"event_name": "a"}, false},
		{"one is null", p, map[string]any{"event_name": "a", "since": nil}, false},
		{"one too many", p, map[string]any{"event_name": "a", "since": "2024-01-01", "date_from": "-1d"}, false},
		{"a value", split, map[string]any{"b": "x"}, true},
		{"no value", split, nil, false},
		{"a missing value", split, map[string]any{"b": ""}, false},
		{"a number", split, map[string]any{"b": 1}, false},
		{"a value that is cut", split, map[string]any{"b": strings.Repeat("x", 400)}, false},
		{"dates", split, map[string]any{"b": "x", "date_from": "-1d"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.plan.Serves(tt.values); got != tt.want {
				t.Errorf("Serves(%v) = %v, want %v", tt.values, got, tt.want)
			}
			if _, err := tt.plan.Read(materialize.Run{Table: "endpoint_1", Values: tt.values}, env()); errors.Is(err, materialize.ErrNotServed) == tt.want {
				t.Errorf("Read() = %v", err)
			}
		})
	}
}

// TestMark: tables that were filled by another query, or in another time zone, have another mark.
func TestMark(t *testing.T) {
	t.Parallel()
	marks := map[string]string{}
	for _, tt := range []struct{ name, text, bucket string }{
		{"a", "select event from events where timestamp > {variables.since}", "day"},
		{"another bucket", "select event from events where timestamp > {variables.since}", "hour"},
		{"another query", "select event, uuid from events where timestamp > {variables.since}", "day"},
	} {
		p, err := materialize.New(hogqlNode(tt.text), env(), materialize.Options{Endpoint: "a", Version: 1, Buckets: map[string]string{"timestamp": tt.bucket}})
		if err != nil {
			t.Fatal(err)
		}
		if known := marks[p.Mark]; known != "" {
			t.Errorf("%s and %s have the same mark", tt.name, known)
		}
		marks[p.Mark] = tt.name
	}
	e := env()
	db := *e.Database
	db.WeekStart = 1
	e.Database = &db
	p, err := materialize.New(hogqlNode("select event from events where timestamp > {variables.since}"), e,
		materialize.Options{Endpoint: "a", Version: 1, Buckets: map[string]string{"timestamp": "day"}})
	if err != nil {
		t.Fatal(err)
	}
	if known := marks[p.Mark]; known != "" {
		t.Errorf("another week and %s have the same mark", known)
	}
}
