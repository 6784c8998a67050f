package query_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

const splitTrend = `{"kind": "TrendsQuery", "series": [{"event": "a"}], "dateRange": {"date_from": "-7d", "date_to": "-1d"}, "breakdownFilter": ` +
	`{"breakdowns": [{"property": "plan", "type": "person"}, {"property": "size", "type": "group", "group_type_index": 1}, {"property": "upper(event)", "type": "hogql"}]}}`

func TestVariableNames(t *testing.T) {
	t.Parallel()
	want := []string{"date_from", "date_to", "plan", "size", "upper(event)"}
	if diff := cmp.Diff(want, query.VariableNames(insighttest.Node[query.Insight](t, splitTrend))); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestBind(t *testing.T) {
	t.Parallel()
	leaf := func(name string, p query.Property) *query.Condition {
		return &query.Condition{At: "variables." + name, Filter: &p}
	}
	tests := []struct {
		name   string
		values map[string]any
		dates  query.DateRange
		want   *query.Condition
	}{
		{"one end of the range", map[string]any{"date_to": "2020-01-01"}, query.DateRange{From: "-7d", To: "2020-01-01", ToAt: "variables.date_to"}, nil},
		{"no date", map[string]any{"date_from": nil, "date_to": ""}, query.DateRange{From: "-7d", To: "-1d"}, nil},
		{"a value", map[string]any{"plan": "pro"}, query.DateRange{From: "-7d", To: "-1d"}, leaf("plan", query.Property{Type: "person", Key: "plan", Operator: "exact", Value: "pro"})},
		{"none", map[string]any{"size": ""}, query.DateRange{From: "-7d", To: "-1d"}, leaf("size", query.Property{Type: "group", Key: "size", Operator: "is_not_set", Group: 1})},
		{"of an expression", map[string]any{"upper(event)": "A' or 1=1"}, query.DateRange{From: "-7d", To: "-1d"}, leaf("upper(event)", query.Property{Type: "hogql", Key: `toString(upper(event)) = 'A\' or 1=1'`})},
	}
	for list, want := range map[string]string{
		`["A", 1]`:  "toString(upper(event)) IN ('A', '1')",
		`["A"]`:     "toString(upper(event)) IN ('A',)",
		`["A", ""]`: "toString(upper(event)) IN ('A',) OR toString(upper(event)) IS NULL",
		`[null]`:    "toString(upper(event)) IS NULL",
		`[]`:        "false",
	} {
		var values []any
		d := json.NewDecoder(strings.NewReader(list))
		d.UseNumber()
		if err := d.Decode(&values); err != nil {
			t.Fatal(err)
		}
		tests = append(tests, tests[0])
		last := &tests[len(tests)-1]
		last.name, last.values = "one of "+list, map[string]any{"upper(event)": values}
		last.dates, last.want = query.DateRange{From: "-7d", To: "-1d"}, leaf("upper(event)", query.Property{Type: "hogql", Key: want})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := insighttest.Node[query.Insight](t, splitTrend)
			before := string(n.Canonical())
			bound, err := query.Bind(n, tt.values)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.dates, bound.Parts().DateRange); diff != "" {
				t.Errorf("range (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, bound.Parts().Properties); diff != "" {
				t.Errorf("properties (-want +got):\n%s", diff)
			}
			if string(n.Canonical()) != before {
				t.Error("the insight itself has changed")
			}
		})
	}
	for name, values := range map[string]map[string]any{"variables.date_from": {"date_from": true}, "variables.plan": {"plan": map[string]any{}}} {
		_, err := query.Bind(insighttest.Node[query.Insight](t, splitTrend), values)
		if mistake, ok := errors.AsType[*diag.Error](err); !ok || mistake.Attr != name {
			t.Errorf("%v gives %v, want a mistake at %s", values, err, name)
		}
	}
}
