package e2e_test

import (
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// cohortLines are four people on three days. Ann and Bob are in cohort 1, Ann and Cid in 2, nobody in 3.
const cohortLines = `{"type": "person", "distinct_ids": ["ann", "ann@home"], "properties": {"name": "Ann"}}
{"type": "person", "distinct_ids": ["bob"], "properties": {"name": "Bob"}}
{"type": "person", "distinct_ids": ["cid"], "properties": {"name": "Cid"}}
{"event": "a", "distinct_id": "ann", "timestamp": "2024-02-01T10:00:00Z", "properties": {"k": "x", "$groups": {"organization": "o1"}}}
{"event": "b", "distinct_id": "ann@home", "timestamp": "2024-02-02T10:00:00Z", "properties": {"k": "x"}}
{"event": "a", "distinct_id": "bob", "timestamp": "2024-02-01T10:00:00Z", "properties": {"k": "y", "$groups": {"organization": "o2"}}}
{"event": "a", "distinct_id": "cid", "timestamp": "2024-02-01T10:00:00Z", "properties": {"k": "x"}}
{"event": "a", "distinct_id": "cid", "timestamp": "2024-02-02T10:00:00Z", "properties": {"k": "y"}}
{"event": "b", "distinct_id": "cid", "timestamp": "2024-02-03T10:00:00Z", "properties": {"k": "y"}}
{"event": "c", "distinct_id": "bob", "timestamp": "2024-02-01T10:10:00Z"}
{"event": "a", "distinct_id": "dan", "timestamp": "2024-02-02T10:00:00Z"}
{"type": "cohort", "cohort_id": 1, "distinct_ids": ["ann", "bob", "ann@home"]}
{"type": "cohort", "cohort_id": 2, "distinct_ids": ["ann@home", "cid"]}
`

// cohortProject is a project with these people and the cohorts trial, paying and "nobody's".
func cohortProject(t *testing.T) *harness.Client {
	t.Helper()
	c := newProject(t)
	for i, name := range []string{"trial", "paying", "nobody's"} {
		var made struct{ ID int }
		c.Server.MustCommand(t, &made, nil, "cohort", "create", "--project", strconv.FormatInt(c.Project, 10), "--name", name)
		if made.ID != i+1 {
			t.Fatalf("the cohort %s has the number %d, want %d", name, made.ID, i+1)
		}
	}
	importLines(t, c, cohortLines)
	return c
}

// seriesOf returns the events with some names, as nodes.
func seriesOf(names ...string) []any {
	var out []any
	for _, name := range names {
		out = append(out, map[string]any{"kind": "EventsNode", "event": name})
	}
	return out
}

// cohortNode returns a query about the three days, with additional fields.
func cohortNode(kind string, more ...map[string]any) map[string]any {
	node := map[string]any{"kind": kind, "dateRange": map[string]any{"date_from": "2024-02-01", "date_to": "2024-02-03"}}
	for _, fields := range more {
		maps.Copy(node, fields)
	}
	return node
}

type fields = map[string]any

func TestCohortsInHogQL(t *testing.T) {
	c := cohortProject(t)
	tests := []struct {
		name, query string
		want        []any
	}{
		{"events of members", "select count() from events where person_id in cohort 1", []any{[]any{4.0}}},
		{"by name", "select count() from events where person_id in cohort 'paying'", []any{[]any{5.0}}},
		{"a name with a quote", `select count() from events where person_id not in cohort 'nobody\'s'`, []any{[]any{8.0}}},
		{"events of others", "select count() from events where person_id not in cohort 1", []any{[]any{4.0}}},
		{"negated", "select count() from events where not (person_id in cohort 1)", []any{[]any{4.0}}},
		{"persons", "select properties.name from persons where id in cohort 2 order by 1", []any{[]any{"Ann"}, []any{"Cid"}}},
		{
			"a joined table", "select p.properties.name, count() from events e join persons p on e.person_id = p.id where p.id in cohort 1 and e.person_id not in cohort 2 group by 1",
			[]any{[]any{"Bob", 2.0}},
		},
		{"in a join's condition", "select count() from events e join persons p on e.person_id = p.id and p.id in cohort 'trial'", []any{[]any{4.0}}},
		{"a lazy join", "select count() from events where pdi.person.id in cohort 2", []any{[]any{5.0}}},
		{"as a value", "select person_id in cohort 1 as member, count() from events group by member order by member", []any{[]any{0.0, 4.0}, []any{1.0, 4.0}}},
		{"nobody", "select count() from events where person_id in cohort 3", []any{[]any{0.0}}},
		{"a CTE that is called like the table of members", "with person_static_cohort as (select 1 as person_id) select count() from events, person_static_cohort where events.person_id in cohort 1", []any{[]any{4.0}}},
		{"the table of members", "select cohort_id, count(), countIf(person.properties.name = 'Ann') from static_cohort_people group by cohort_id order by cohort_id", []any{[]any{1.0, 2.0, 1.0}, []any{2.0, 2.0, 1.0}}},
		{"computed members, of which there are none", "select count() from cohort_people union all select count() from raw_cohort_people", []any{[]any{0.0}, []any{0.0}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, c.Query(t, tt.query)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.query, diff)
			}
		})
	}
	for _, tt := range []struct{ name, query, want string }{
		{"an unknown cohort", "select 1 from events where person_id in cohort 9", "Could not find cohort with ID 9"},
		{"an unknown name", "select 1 from events where person_id in cohort 'payng'", "Could not find a cohort with the name 'payng'"},
		{"no person", "select 1 from events where event in cohort 1", "IN COHORT takes the id of a person on its left side, such as person_id"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer := c.HogQL(t, tt.query)
			if answer.Status != http.StatusBadRequest || answer.Body["detail"] != tt.want {
				t.Errorf("%s: %d %s, want %q", tt.query, answer.Status, answer.Raw, tt.want)
			}
		})
	}
}

// TestCohortFilters uses cohort filters in every kind of query.
func TestCohortFilters(t *testing.T) {
	c := cohortProject(t)
	in := func(id any) map[string]any { return fields{"type": "cohort", "key": "id", "value": id} }
	not := func(id any) map[string]any {
		return fields{"type": "cohort", "key": "id", "value": id, "operator": "not_in", "cohort_name": "whatever"}
	}
	a := fields{"series": seriesOf("a")}
	only := func(filters ...any) map[string]any { return fields{"properties": filters} }
	first := func(answer harness.Answer) any {
		list, _ := answer.Body["results"].([]any)
		if len(list) == 0 {
			return list
		}
		switch item := list[0].(type) {
		case map[string]any:
			if values, ok := item["values"].([]any); ok {
				var counts []any
				for _, v := range values {
					counts = append(counts, v.(map[string]any)["count"])
				}
				return counts
			}
			for _, name := range []string{"data", "count", "value"} {
				if value, ok := item[name]; ok {
					return value
				}
			}
			return item
		case []any:
			return item[0]
		}
		return list[0]
	}
	steps := fields{"series": seriesOf("a", "b")}
	comeback := fields{"retentionFilter": fields{"totalIntervals": 2, "targetEntity": fields{"id": "a"}, "returningEntity": fields{"id": "b"}}, "dateRange": fields{"date_to": "2024-02-02"}}
	trend := cohortNode("TrendsQuery", a, only(in(1)))
	trend["series"] = []any{fields{"kind": "EventsNode", "event": "a", "math": "dau"}}
	tests := []struct {
		name string
		node map[string]any
		want any
	}{
		{"trends", cohortNode("TrendsQuery", a, only(in(2))), []any{2.0, 1.0, 0.0}},
		{"trends, an id as text", cohortNode("TrendsQuery", a, only(in("2"))), []any{2.0, 1.0, 0.0}},
		{"trends, not in", cohortNode("TrendsQuery", a, only(not(1))), []any{1.0, 2.0, 0.0}},
		{"trends, a series of members", cohortNode("TrendsQuery", fields{"series": []any{fields{"kind": "EventsNode", "event": "a", "properties": []any{in(1), not(2)}}}}), []any{1.0, 0.0, 0.0}},
		{"trends, a group of filters", cohortNode("TrendsQuery", a, fields{"properties": fields{"type": "OR", "values": []any{in(3), in(1)}}}), []any{2.0, 0.0, 0.0}},
		{"lifecycle", cohortNode("LifecycleQuery", a, only(in(1))), []any{2.0, 0.0, 0.0}},
		{"stickiness", cohortNode("StickinessQuery", a, only(in(2))), []any{1.0, 1.0, 0.0}},
		{"funnels", cohortNode("FunnelsQuery", steps, only(in(1))), 2.0},
		{"retention", cohortNode("RetentionQuery", comeback, only(in(2))), []any{2.0, 1.0}},
		{"paths", cohortNode("PathsQuery", fields{"pathsFilter": fields{"includeEventTypes": []string{"custom_event"}}}, only(in(1))), 1.0},
		{"events", fields{"kind": "EventsQuery", "select": []string{"count()"}, "after": "all", "properties": []any{in(1)}}, 4.0},
		{"fixed events", fields{"kind": "EventsQuery", "select": []string{"count()"}, "after": "all", "fixedProperties": []any{not(1)}}, 4.0},
		{"actors", fields{"kind": "ActorsQuery", "select": []string{"count()"}, "properties": []any{in(2)}}, 2.0},
		{"actors of a point, the second", fields{"kind": "ActorsQuery", "select": []string{"event_distinct_ids"}, "orderBy": []string{"event_distinct_ids"}, "offset": 1, "source": fields{"kind": "InsightActorsQuery", "source": trend, "day": "2024-02-01"}}, []any{"bob"}},
		{"SQL", fields{"kind": "HogQLQuery", "query": "select count() from events e where {filters}", "filters": only(not(2))}, 3.0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			answer := c.Do(t, http.MethodPost, "query/", fields{"query": tt.node})
			if answer.Status != http.StatusOK {
				t.Fatalf("%d %s", answer.Status, answer.Raw)
			}
			if diff := cmp.Diff(tt.want, first(answer)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", answer.Raw, diff)
			}
		})
	}
	project := strconv.FormatInt(c.Project, 10)
	c.Server.MustCommand(t, nil, nil, "project", "set", "--project", project, "--test-account-filters", `[{"type": "cohort", "key": "id", "value": 1, "operator": "not_in"}]`)
	answer := c.Do(t, http.MethodPost, "query/", fields{"query": cohortNode("TrendsQuery", a, fields{"filterTestAccounts": true})})
	if diff := cmp.Diff([]any{1.0, 2.0, 0.0}, first(answer)); diff != "" {
		t.Errorf("without test accounts (-want +got):\n%s", diff)
	}
	_, stderr, err := server.Command(nil, "project", "set", "--project", project, "--test-account-filters", `[{"type": "cohort", "key": "id", "value": 9}]`)
	if err == nil || !strings.Contains(stderr, "Could not find cohort with ID 9") {
		t.Errorf("test accounts by a cohort that is not there: %q", stderr)
	}
}

// TestCohortBreakdowns breaks down trends, funnels and retentions by cohorts: a person counts in each of its cohorts, and everyone in "all".
func TestCohortBreakdowns(t *testing.T) {
	c := cohortProject(t)
	by := func(breakdown any, more ...map[string]any) map[string]any {
		out := fields{"breakdownFilter": fields{"breakdown_type": "cohort", "breakdown": breakdown}}
		for _, m := range more {
			maps.Copy(out, m)
		}
		return out
	}
	series := func(math string, names ...string) map[string]any {
		var out []any
		for _, name := range names {
			out = append(out, fields{"kind": "EventsNode", "event": name, "math": math})
		}
		return fields{"series": out}
	}
	filter := func(display string) map[string]any { return fields{"trendsFilter": fields{"display": display}} }
	three := []any{1, 2, "all"}
	trends := []struct {
		name string
		more []map[string]any
		want []any
	}{
		{"all of them, in the order of the query", []map[string]any{series("total", "a"), by(three)}, []any{
			fields{"label": "trial", "breakdown_value": 1.0, "data": []any{2.0, 0.0, 0.0}},
			fields{"label": "paying", "breakdown_value": 2.0, "data": []any{2.0, 1.0, 0.0}},
			fields{"label": "all users", "breakdown_value": "all", "data": []any{3.0, 2.0, 0.0}},
		}},
		{"one of them", []map[string]any{series("total", "a"), by(1)}, []any{fields{"label": "trial", "breakdown_value": 1.0, "data": []any{2.0, 0.0, 0.0}}}},
		{"nobody's", []map[string]any{series("total", "a"), by([]any{3})}, []any{}},
		{"nobody's beside another", []map[string]any{series("total", "a"), by([]any{3, "1"})}, []any{fields{"label": "trial", "breakdown_value": 1.0, "data": []any{2.0, 0.0, 0.0}}}},
		{"more than a limit", []map[string]any{series("total", "a"), fields{"breakdownFilter": fields{"breakdown_type": "cohort", "breakdown": []any{1, 2}, "breakdown_limit": 1}}}, []any{
			fields{"label": "paying", "data": []any{2.0, 1.0, 0.0}}, fields{"label": "trial", "data": []any{2.0, 0.0, 0.0}},
		}},
		{"several series", []map[string]any{series("dau", "a", "b"), by([]any{1, 2})}, []any{
			fields{"label": "a - paying", "data": []any{2.0, 1.0, 0.0}},
			fields{"label": "a - trial", "data": []any{2.0, 0.0, 0.0}},
			fields{"label": "b - paying", "data": []any{0.0, 1.0, 1.0}},
			fields{"label": "b - trial", "data": []any{0.0, 1.0, 0.0}},
		}},
		{"one number", []map[string]any{series("dau", "a"), by(three), filter("BoldNumber")}, []any{
			fields{"label": "trial", "aggregated_value": 2.0}, fields{"label": "paying", "aggregated_value": 2.0}, fields{"label": "all users", "aggregated_value": 4.0},
		}},
		{"first times", []map[string]any{series("first_time_for_user", "a"), by(three)}, []any{
			fields{"label": "trial", "data": []any{2.0, 0.0, 0.0}}, fields{"label": "paying", "data": []any{2.0, 0.0, 0.0}}, fields{"label": "all users", "data": []any{3.0, 1.0, 0.0}},
		}},
		{"a running total", []map[string]any{series("dau", "a"), by([]any{2}), filter("ActionsLineGraphCumulative")}, []any{fields{"label": "paying", "data": []any{2.0, 2.0, 2.0}}}},
		{"active in a week", []map[string]any{series("weekly_active", "a"), by([]any{1, 2})}, []any{
			fields{"label": "trial", "data": []any{2.0, 2.0, 2.0}}, fields{"label": "paying", "data": []any{2.0, 2.0, 2.0}},
		}},
		{"events of each person", []map[string]any{series("avg_count_per_actor", "a"), by(three), filter("ActionsTable")}, []any{
			fields{"label": "trial", "aggregated_value": 1.0}, fields{"label": "paying", "aggregated_value": 1.5}, fields{"label": "all users", "aggregated_value": 1.25},
		}},
		{"groups", []map[string]any{{"series": []any{fields{"kind": "EventsNode", "event": "a", "math": "unique_group", "math_group_type_index": 0}}}, by(three), filter("BoldNumber")}, []any{
			fields{"label": "trial", "aggregated_value": 2.0}, fields{"label": "paying", "aggregated_value": 1.0}, fields{"label": "all users", "aggregated_value": 2.0},
		}},
		{"a formula", []map[string]any{series("total", "a", "b"), by([]any{1, 2}), {"trendsFilter": fields{"formula": "A + B"}}}, []any{
			fields{"breakdown_value": 2.0, "data": []any{2.0, 2.0, 1.0}}, fields{"breakdown_value": 1.0, "data": []any{2.0, 1.0, 0.0}},
		}},
		{"a comparison", []map[string]any{series("total", "a"), by([]any{1}), {"dateRange": fields{"date_from": "2024-02-02", "date_to": "2024-02-02"}, "compareFilter": fields{"compare": true}}}, []any{
			fields{"label": "trial", "compare_label": "previous", "data": []any{2.0}},
		}},
		{"beside a property", []map[string]any{series("total", "a"), {"breakdownFilter": fields{"breakdowns": []any{fields{"type": "cohort", "property": 2}, fields{"property": "k"}}}}}, []any{
			fields{"label": "paying::x", "breakdown_value": []any{2.0, "x"}, "data": []any{2.0, 0.0, 0.0}},
			fields{"label": "paying::y", "breakdown_value": []any{2.0, "y"}, "data": []any{0.0, 1.0, 0.0}},
		}},
		{"in two at once", []map[string]any{series("total", "a"), {"breakdownFilter": fields{"breakdowns": []any{fields{"type": "cohort", "property": 2}, fields{"type": "cohort", "property": "1"}}}}}, []any{
			fields{"label": "paying::trial", "breakdown_value": []any{2.0, 1.0}, "data": []any{1.0, 0.0, 0.0}},
		}},
	}
	for _, tt := range trends {
		t.Run("trends, "+tt.name, func(t *testing.T) {
			answer := c.Do(t, http.MethodPost, "query/", fields{"query": cohortNode("TrendsQuery", tt.more...)})
			if answer.Status != http.StatusOK || answer.Body["hasMore"] != false {
				t.Fatalf("%d %s", answer.Status, answer.Raw)
			}
			if diff := cmp.Diff(any(tt.want), harness.Only(tt.want, answer.Body["results"])); diff != "" {
				t.Errorf("%s (-want +got):\n%s", answer.Raw, diff)
			}
		})
	}
	t.Run("trends, the echo", func(t *testing.T) {
		items := results(t, c, cohortNode("TrendsQuery", series("total", "a"), by(three)))
		filter, _ := items[0]["filter"].(map[string]any)
		if diff := cmp.Diff([]any{1.0, 2.0, "all"}, filter["breakdown"]); diff != "" {
			t.Errorf("filter.breakdown (-want +got):\n%s", diff)
		}
	})
	steps := series("total", "a", "b")
	for _, attribution := range []string{"first_touch", "last_touch", "all_events", "step"} {
		t.Run("funnels, "+attribution, func(t *testing.T) {
			node := cohortNode("FunnelsQuery", steps, by(three), fields{"funnelsFilter": fields{"breakdownAttributionType": attribution, "breakdownAttributionValue": 1}})
			row := func(name string, id, first, second float64) []any {
				return []any{fields{"breakdown": name, "breakdown_value": id, "count": first}, fields{"breakdown": name, "breakdown_value": id, "count": second}}
			}
			want := []any{row("all users", 0, 4, 2), row("paying", 2, 2, 2), row("trial", 1, 2, 1)}
			answer := c.Do(t, http.MethodPost, "query/", fields{"query": node})
			if diff := cmp.Diff(any(want), harness.Only(want, answer.Body["results"])); diff != "" {
				t.Errorf("%s (-want +got):\n%s", answer.Raw, diff)
			}
		})
	}
	t.Run("funnels, rates", func(t *testing.T) {
		node := cohortNode("FunnelsQuery", steps, by(three), fields{"funnelsFilter": fields{"funnelVizType": "trends"}})
		want := []any{
			fields{"breakdown_value": "all users", "data": []any{66.67, 50.0, 0.0}},
			fields{"breakdown_value": "paying", "data": []any{100.0, 100.0, 0.0}},
			fields{"breakdown_value": "trial", "data": []any{50.0, 0.0, 0.0}},
		}
		answer := c.Do(t, http.MethodPost, "query/", fields{"query": node})
		if diff := cmp.Diff(any(want), harness.Only(want, answer.Body["results"])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", answer.Raw, diff)
		}
	})
	for _, tt := range []struct {
		kind string
		want []any
	}{
		{"retention_recurring", []any{[]any{"0", 3.0, 1.0, 1.0}, []any{"2", 2.0, 1.0, 1.0}, []any{"1", 2.0, 1.0, 0.0}}}, // by all starts
		{"retention_first_time", []any{[]any{"0", 3.0, 1.0, 1.0}, []any{"1", 2.0, 1.0, 0.0}, []any{"2", 2.0, 1.0, 1.0}}},
		{"retention_first_ever_occurrence", []any{[]any{"0", 3.0, 1.0, 1.0}, []any{"1", 2.0, 1.0, 0.0}, []any{"2", 2.0, 1.0, 1.0}}},
	} {
		t.Run("retention, "+tt.kind, func(t *testing.T) {
			node := cohortNode("RetentionQuery", by(three), fields{
				"dateRange":       fields{"date_to": "2024-02-03"},
				"retentionFilter": fields{"totalIntervals": 3, "retentionType": tt.kind, "targetEntity": fields{"id": "a"}, "returningEntity": fields{"id": "b"}},
			})
			var got []any
			for _, row := range results(t, c, node) {
				if row["label"] != "Day 0" {
					continue
				}
				line := []any{row["breakdown_value"]}
				values, _ := row["values"].([]any)
				for _, v := range values {
					line = append(line, v.(map[string]any)["count"])
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("the rows of the first day (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("actors", func(t *testing.T) { cohortActors(t, c, by) })
}

// cohortActors lists the people behind numbers of insights with cohort breakdowns.
func cohortActors(t *testing.T, c *harness.Client, by func(any, ...map[string]any) map[string]any) {
	t.Helper()
	trend := func(math string) map[string]any {
		return cohortNode("TrendsQuery", by([]any{1, 2, "all"}), fields{"series": []any{fields{"kind": "EventsNode", "event": "a", "math": math}}})
	}
	point := func(source map[string]any, more ...map[string]any) map[string]any {
		out := fields{"kind": "InsightActorsQuery", "source": source, "day": "2024-02-01"}
		for _, m := range more {
			maps.Copy(out, m)
		}
		return out
	}
	retention := cohortNode("RetentionQuery", by([]any{1, 2}), fields{
		"dateRange":       fields{"date_to": "2024-02-03"},
		"retentionFilter": fields{"totalIntervals": 3, "targetEntity": fields{"id": "a"}, "returningEntity": fields{"id": "b"}},
	})
	funnel := fields{"kind": "FunnelsActorsQuery", "funnelStep": 2, "funnelStepBreakdown": 2, "source": cohortNode("FunnelsQuery", by([]any{1, 2}), fields{"series": seriesOf("a", "b")})}
	for _, tt := range []struct {
		name   string
		source map[string]any
		want   string
	}{
		{"of one", point(trend("total"), fields{"breakdown": 1}), "Ann Bob"},
		{"of another, as text", point(trend("total"), fields{"breakdown": []any{"2"}}), "Ann Cid"},
		{"of everybody", point(trend("total"), fields{"breakdown": "all"}), "Ann Bob Cid"},
		{"of all that are shown, each once", point(trend("total")), "Ann Bob Cid"},
		{"by first times", point(trend("first_time_for_user"), fields{"breakdown": 2}), "Ann Cid"},
		{"by first times, each once", point(trend("first_time_for_user")), "Ann Bob Cid"},
		{"of a retention", fields{"kind": "InsightActorsQuery", "source": retention, "interval": 0, "breakdown": 2}, "Ann Cid"},
		{"of a retention, each once", fields{"kind": "InsightActorsQuery", "source": retention, "interval": 0}, "Ann Bob Cid"},
		{"of a funnel", funnel, "Ann Cid"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, rows := askActors(t, c, fields{"source": tt.source, "select": []string{"properties.name"}, "orderBy": []string{"properties.name"}})
			var names []string
			for _, row := range rows {
				name, _ := row[0].(string)
				names = append(names, name)
			}
			if got := strings.Join(names, " "); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	answer := c.Do(t, http.MethodPost, "query/", fields{"query": fields{"kind": "ActorsQuery", "source": point(trend("total"), fields{"breakdown": 3})}})
	if answer.Status != http.StatusBadRequest || answer.Body["attr"] != "source.breakdown" {
		t.Errorf("a cohort that is not shown: %d %s", answer.Status, answer.Raw)
	}
}

// TestCohortList lists the cohorts with their people, newest first, and reads one. A deleted one can be read, but is not listed.
func TestCohortList(t *testing.T) {
	c := cohortProject(t)
	want := []any{
		fields{"id": 3.0, "name": "nobody's", "count": 0.0, "is_static": true, "deleted": false},
		fields{"id": 2.0, "name": "paying", "count": 2.0, "is_static": true, "deleted": false},
		fields{"id": 1.0, "name": "trial", "count": 2.0, "is_static": true, "deleted": false},
	}
	list := c.Do(t, http.MethodGet, "cohorts/", nil)
	if diff := cmp.Diff(any(want), harness.Only(want, list.Body["results"])); diff != "" || list.Body["count"] != 3.0 {
		t.Errorf("%s (-want +got):\n%s", list.Raw, diff)
	}
	one := c.Do(t, http.MethodGet, "cohorts/2/", nil)
	if diff := cmp.Diff(want[1], harness.Only(want[1], any(one.Body))); diff != "" {
		t.Errorf("%s (-want +got):\n%s", one.Raw, diff)
	}
	c.Server.MustCommand(t, nil, nil, "cohort", "delete", "--project", strconv.FormatInt(c.Project, 10), "2")
	if one = c.Do(t, http.MethodGet, "cohorts/2/", nil); one.Status != http.StatusOK || one.Body["deleted"] != true {
		t.Errorf("the deleted cohort: %d %s", one.Status, one.Raw)
	}
	id, key := c.Server.Project(t, "elsewhere")
	other := c.Server.Client(id, key)
	for _, tt := range []struct {
		client *harness.Client
		path   string
	}{{c, "cohorts/9/"}, {c, "cohorts/x/"}, {other, "cohorts/1/"}, {other, "cohorts/2/"}} {
		if answer := tt.client.Do(t, http.MethodGet, tt.path, nil); answer.Status != http.StatusNotFound {
			t.Errorf("%s of project %d answers %d %s", tt.path, tt.client.Project, answer.Status, answer.Raw)
		}
	}
	if list = c.Do(t, http.MethodGet, "cohorts/?limit=1&offset=1", nil); list.Body["count"] != 2.0 || list.Body["next"] != nil {
		t.Errorf("the second of what is left: %s", list.Raw)
	}
	if list = other.Do(t, http.MethodGet, "cohorts/", nil); list.Body["count"] != 0.0 {
		t.Errorf("another project lists %s", list.Raw)
	}
}

// TestCohortNames renames and deletes a cohort: answers and plans with the old name are not reused.
func TestCohortNames(t *testing.T) {
	c := cohortProject(t)
	project := strconv.FormatInt(c.Project, 10)
	node := cohortNode("TrendsQuery", fields{"series": seriesOf("a"), "breakdownFilter": fields{"breakdown_type": "cohort", "breakdown": 2}})
	label := func() any {
		items := results(t, c, node)
		return items[0]["label"]
	}
	const named = "select count() from events where person_id in cohort 'paying'"
	if got := label(); got != "paying" {
		t.Errorf("the label is %v, want paying", got)
	}
	if answer := c.HogQL(t, named); answer.Status != http.StatusOK {
		t.Errorf("by its name: %d %s", answer.Status, answer.Raw)
	}
	var renamed map[string]any
	c.Server.MustCommand(t, &renamed, nil, "cohort", "rename", "--project", project, "--name", "customers", "2")
	delete(renamed, "created_at")
	want := fields{"id": 2.0, "project": float64(c.Project), "name": "customers", "is_static": true, "count": 2.0, "is_calculating": false}
	if diff := cmp.Diff(want, renamed); diff != "" {
		t.Errorf("the renamed cohort (-want +got):\n%s", diff)
	}
	if got := label(); got != "customers" {
		t.Errorf("after a new name the label is %v, want customers", got)
	}
	if answer := c.HogQL(t, named); answer.Status != http.StatusBadRequest {
		t.Errorf("by its old name: %d %s", answer.Status, answer.Raw)
	}
	c.Server.MustCommand(t, nil, nil, "cohort", "delete", "--project", project, "2")
	answer := c.Do(t, http.MethodPost, "query/", fields{"query": node})
	if answer.Status != http.StatusBadRequest || answer.Body["attr"] != "breakdownFilter.breakdown" || answer.Body["detail"] != `Cohort "customers" (ID 2) was deleted.` {
		t.Errorf("by a deleted cohort: %d %s", answer.Status, answer.Raw)
	}
	var left struct {
		Cohorts []struct {
			ID   int
			Name string
		}
	}
	c.Server.MustCommand(t, &left, nil, "cohort", "list", "--project", project)
	if len(left.Cohorts) != 2 || left.Cohorts[0].ID != 3 || left.Cohorts[1].Name != "trial" {
		t.Errorf("cohorts that are left: %v", left.Cohorts)
	}
	for _, tt := range []struct {
		name, want string
		args       []string
	}{
		{"no name", "name: This field is required.", []string{"create", "--project", project, "--name", " "}},
		{"a taken number", "id: A cohort with this id exists already.", []string{"create", "--project", project, "--name", "x", "--id", "1"}},
		{"no project", "not found", []string{"create", "--project", "999999", "--name", "x"}},
		{"renaming a deleted one", "not found", []string{"rename", "--project", project, "--name", "x", "2"}},
		{"deleting what is not a number", "is not the number of a cohort", []string{"delete", "--project", project, "trial"}},
		{"listing those of no project", "not found", []string{"list", "--project", "999999"}},
	} {
		if _, stderr, err := c.Server.Command(nil, append([]string{"cohort"}, tt.args...)...); err == nil || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: it says %q, want %q", tt.name, stderr, tt.want)
		}
	}
	stdout, stderr, err := c.Server.Command(stringReader(`{"type": "cohort", "cohort_id": 2, "distinct_ids": ["ann"]}`), "import", "--project", project, "-")
	if err == nil || !strings.Contains(stderr, "line 1: the project has no cohort 2") || !strings.Contains(stdout, `"bad":1`) {
		t.Errorf("importing into a deleted cohort: %q %q", stdout, stderr)
	}
}

// TestCohortsOfOneName gives two cohorts the same name: neither can be found by name, but both by number.
func TestCohortsOfOneName(t *testing.T) {
	c := cohortProject(t)
	project := strconv.FormatInt(c.Project, 10)
	var second struct{ ID int }
	c.Server.MustCommand(t, &second, nil, "cohort", "create", "--project", project, "--name", "trial")
	if second.ID != 4 {
		t.Fatalf("the second cohort trial has the number %d, want 4", second.ID)
	}
	const named = "select count() from events where person_id in cohort 'trial'"
	answer := c.HogQL(t, named)
	if answer.Status != http.StatusBadRequest || answer.Body["detail"] != "Found multiple cohorts with name 'trial'" {
		t.Errorf("by the name of two: %d %s", answer.Status, answer.Raw)
	}
	if diff := cmp.Diff([]any{[]any{4.0}}, c.Query(t, "select count() from events where person_id in cohort 1")); diff != "" {
		t.Errorf("by its number (-want +got):\n%s", diff)
	}
	c.Server.MustCommand(t, nil, nil, "cohort", "delete", "--project", project, "4")
	if diff := cmp.Diff([]any{[]any{4.0}}, c.Query(t, named)); diff != "" {
		t.Errorf("by the name, once the other is deleted (-want +got):\n%s", diff)
	}
}
