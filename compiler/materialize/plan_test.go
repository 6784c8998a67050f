package materialize_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/materialize"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// TestReadNeedsItsTable: a read only accesses the table of its endpoint.
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

// TestServes: a run that omits a variable, or gives an unknown one, is not served.
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

// TestMark: tables filled by another query, or in another time zone, have another mark.
func TestMark(t *testing.T) {
	t.Parallel()
	marks := map[string]string{}
	for _, tt := range []struct{ name, text, bucket string }{
		{"a", "select event from events where timestamp > {variables.since}", "day"},
		{"another bucket", "select event from events where timestamp > {variables.since}", "hour"},
		{"another query", "select event, uuid from events where timestamp > {variables.since}", "day"},
		{"days of a zone", "select toStartOfDay(timestamp, 'Asia/Tokyo') as day from events", "day"},
		{"days of another zone", "select toStartOfDay(timestamp, 'Asia/Seoul') as day from events", "day"},
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

// TestMarkOfValues: a table of the values that a trend shows has another mark than one of every value.
func TestMarkOfValues(t *testing.T) {
	t.Parallel()
	trend, err := compiler.Parse([]byte(`{"kind": "TrendsQuery", "series": [{"kind": "EventsNode"}], "breakdownFilter": {"breakdown": "b", "breakdown_type": "event"}}`))
	if err != nil {
		t.Fatal(err)
	}
	marks := map[string]bool{}
	for _, optional := range [][]string{nil, {"b"}} {
		p, err := materialize.New(trend, env(), materialize.Options{Endpoint: "a", Version: 1, Optional: optional})
		if err != nil {
			t.Fatal(err)
		}
		marks[p.Mark] = true
	}
	if len(marks) != 2 {
		t.Error("both have the same mark")
	}
}

// TestMarkStays: the mark of a query does not depend on the time.
func TestMarkStays(t *testing.T) {
	t.Parallel()
	for _, request := range []string{
		`{"kind": "TrendsQuery", "series": [{"kind": "EventsNode"}], "interval": "month", "dateRange": {"date_from": "-100d"}}`,
		`{"kind": "RetentionQuery", "retentionFilter": {"period": "Week"}, "dateRange": {"date_from": "-3m"}}`,
		`{"kind": "StickinessQuery", "series": [{"kind": "EventsNode"}], "dateRange": {"date_from": "mStart"}}`,
		`{"kind": "LifecycleQuery", "series": [{"kind": "EventsNode"}], "dateRange": {"date_from": "-9d"}}`,
		`{"kind": "FunnelsQuery", "series": [{"event": "a"}, {"event": "b"}], "dateRange": {"date_from": "-3m"}}`,
		`{"kind": "PathsQuery", "pathsFilter": {}, "dateRange": {"date_from": "-3m"}}`,
		`{"kind": "TrendsQuery", "series": [{"kind": "EventsNode"}], "breakdownFilter": {"breakdown": "b", "breakdown_type": "event"}}`,
		`{"kind": "HogQLQuery", "query": "select groupArray(event), [1] from events"}`,
		`{"kind": "HogQLQuery", "query": "select event, now() from events where timestamp > now() - interval 3 day"}`,
	} {
		n, err := compiler.Parse([]byte(request))
		if err != nil {
			t.Fatal(err)
		}
		e, mark := env(), ""
		for range 40 {
			p, err := materialize.New(n, e, materialize.Options{Endpoint: "a", Version: 1})
			if err != nil {
				t.Fatalf("%s: %v", request, err)
			}
			if mark != "" && p.Mark != mark {
				t.Errorf("%s: another mark at %s", request, e.Now)
				break
			}
			mark, e.Now = p.Mark, e.Now.Add(17*time.Hour)
		}
	}
}

// brokenNode is a query that cannot be planned.
type brokenNode struct{ *query.HogQL }

// TestPlanBug: a panic is an error, not a reason for the author.
func TestPlanBug(t *testing.T) {
	t.Parallel()
	_, err := materialize.New(brokenNode{hogqlNode("select 1")}, env(), materialize.Options{Endpoint: "cnt", Version: 1})
	if _, refused := errors.AsType[*materialize.Refusal](err); err == nil || refused || !strings.HasPrefix(err.Error(), "BUG: ") {
		t.Errorf("the error is %v", err)
	}
}

func BenchmarkNew(b *testing.B) {
	n := hogqlNode("select event, count() as n from events where timestamp >= {variables.since} and event = {variables.event_name} group by event order by n desc limit 10")
	e := env()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := materialize.New(n, e, materialize.Options{Endpoint: "a", Version: 1}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	n := hogqlNode("select event, count() as n from events where timestamp >= {variables.since} and event = {variables.event_name} group by event order by n desc limit 10")
	e := env()
	p, err := materialize.New(n, e, materialize.Options{Endpoint: "a", Version: 1})
	if err != nil {
		b.Fatal(err)
	}
	r := materialize.Run{Table: "endpoint_1", Values: map[string]any{"since": "2024-01-01", "event_name": "a"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Read(r, e); err != nil {
			b.Fatal(err)
		}
	}
}

func TestDefaultsAreAddedUp(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"sumOrDefault(properties.price)": "sum", "countOrDefault()": "sum", "sumOrDefaultIf(properties.price, event = 'a')": "sum",
		"minOrDefault(properties.price)": "", "maxOrDefaultIf(properties.price, event = 'a')": "",
	} {
		p, err := materialize.New(hogqlNode("select event, "+name+" as x from events where timestamp >= {variables.since} group by event"), env(),
			materialize.Options{Endpoint: "a", Version: 1})
		got := ""
		switch {
		case err == nil:
			got = *p.Aggregates[0].ReaggregateFn
		case !errors.As(err, new(*materialize.Refusal)):
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s is merged by %q, want %q (%v)", name, got, want, err)
		}
	}
}
