package compiler_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// usesEnv has cohorts 5 to 8, named five to eight, and actions: 1 "one" uses cohort 7, 2 "two" uses action 1 in an expression, 3 and 4 use nothing and
// are both named "same". Test accounts are the members of cohort 8.
func usesEnv(t *testing.T) compiler.Env {
	t.Helper()
	env := surveyEnv()
	env.Database.Cohorts = schema.NewCohorts([]schema.Cohort{{ID: 5, Name: "five"}, {ID: 6, Name: "six"}, {ID: 7, Name: "seven"}, {ID: 8, Name: "eight"}}, false)
	accounts, err := query.ParseTestAccounts([]byte(`[{"type": "cohort", "key": "id", "value": 8, "operator": "not_in"}]`))
	if err != nil {
		t.Fatal(err)
	}
	env.TestAccounts = accounts
	env.Actions = query.NewActions([]query.Action{
		{ID: 1, Name: "one", Steps: []query.ActionStep{{}, {Properties: stepProperties(t, `[{"type": "cohort", "key": "id", "value": 7}]`)}}},
		{ID: 2, Name: "two", Steps: []query.ActionStep{{Properties: stepProperties(t, `[{"type": "hogql", "key": "matchesAction('one')"}]`)}}},
		{ID: 3, Name: "same"},
		{ID: 4, Name: "same"},
	})
	return env
}

func stepProperties(t *testing.T, raw string) *query.Condition {
	t.Helper()
	c, err := query.ParseActionProperties([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// showUses formats uses as text, such as: actions 1 2, cohorts 5, labels 5.
func showUses(u compiler.Uses) string {
	var out []string
	show := func(name string, all bool, ids []int64) {
		if all {
			out = append(out, "all "+name)
		}
		if len(ids) > 0 {
			out = append(out, name+" "+strings.Trim(fmt.Sprint(ids), "[]"))
		}
	}
	show("actions", u.AllActions, u.Actions)
	show("cohorts", u.AllCohorts, u.Cohorts)
	show("labels", false, u.Labels)
	return strings.Join(out, ", ")
}

// TestUses checks which actions and cohorts a query depends on.
func TestUses(t *testing.T) {
	t.Parallel()
	sql := func(text string) string { return fmt.Sprintf(`{"kind": "HogQLQuery", "query": %q}`, text) }
	trend := func(fields string) string {
		return `{"kind": "TrendsQuery", "series": [{"event": "a"}], ` + fields + `}`
	}
	tests := []struct{ name, in, want string }{
		{"nothing", trend(`"interval": "day"`), ""},
		{"an action as a series", `{"kind": "TrendsQuery", "series": [{"event": "a"}, {"kind": "ActionsNode", "id": 3}]}`, "actions 3"},
		{"by a number as text", `{"kind": "TrendsQuery", "series": [{"kind": "ActionsNode", "id": "3"}]}`, "actions 3"},
		{"an unknown one", `{"kind": "TrendsQuery", "series": [{"kind": "ActionsNode", "id": 99}]}`, "actions 99"},
		{"a cohort in its step", `{"kind": "TrendsQuery", "series": [{"kind": "ActionsNode", "id": 1}]}`, "actions 1, cohorts 7"},
		{"an action in its step", `{"kind": "TrendsQuery", "series": [{"kind": "ActionsNode", "id": 2}]}`, "actions 1 2, cohorts 7"},
		{"in a group", `{"kind": "StickinessQuery", "series": [{"kind": "GroupNode", "nodes": [{"kind": "ActionsNode", "id": 3}, {"event": "a"}]}]}`, "actions 3"},
		{
			"in a funnel and its exclusions", `{"kind": "FunnelsQuery", "series": [{"kind": "ActionsNode", "id": 3}, {"event": "b"}],
				"funnelsFilter": {"exclusions": [{"kind": "ActionsNode", "id": 4, "funnelFromStep": 0, "funnelToStep": 1}]}}`, "actions 3 4",
		},
		{
			"in a retention", `{"kind": "RetentionQuery", "retentionFilter": {"targetEntity": {"type": "actions", "id": 3}, "returningEntity": {"type": "actions", "id": "4"}}}`,
			"actions 3 4",
		},
		{"a retention of every event", `{"kind": "RetentionQuery", "retentionFilter": {"targetEntity": {"type": "actions", "id": null}}}`, ""},
		{
			"in the funnel of paths", `{"kind": "PathsQuery", "pathsFilter": {}, "funnelPathsFilter": {"funnelPathType": "funnel_path_before_step", "funnelStep": 1,
				"funnelSource": {"kind": "FunnelsQuery", "series": [{"kind": "ActionsNode", "id": 3}, {"event": "b"}]}}}`, "actions 3",
		},
		{
			"of steps of a list of events", `{"kind": "EventsQuery", "select": ["event"], "actionSteps": [{"properties": [
				{"type": "cohort", "key": "id", "value": 7}, {"type": "hogql", "key": "matchesAction(3)"}]}]}`, "actions 3, cohorts 7",
		},
		{"of a list of events", `{"kind": "EventsQuery", "select": ["event"], "actionId": 3}`, "actions 3"},
		{"of the events behind a number", `{"kind": "EventsQuery", "select": ["event"], "source": {"kind": "InsightActorsQuery", "source": {"kind": "TrendsQuery", "series": [{"kind": "ActionsNode", "id": 3}]}}}`, "actions 3"},
		{"of actors", `{"kind": "ActorsQuery", "source": {"kind": "InsightActorsQuery", "source": {"kind": "TrendsQuery", "series": [{"kind": "ActionsNode", "id": 3}]}}}`, "actions 3"},
		{"a filter by cohort", trend(`"properties": {"type": "OR", "values": [{"type": "AND", "values": [{"type": "cohort", "key": "id", "value": "5"}]}]}`), "cohorts 5"},
		{"a filter of actors", `{"kind": "ActorsQuery", "properties": [{"type": "cohort", "key": "id", "value": 6}]}`, "cohorts 6"},
		{"a breakdown", trend(`"breakdownFilter": {"breakdown_type": "cohort", "breakdown": [5, "all", 6]}`), "cohorts 5 6, labels 5 6"},
		{"test accounts", trend(`"filterTestAccounts": true`), "cohorts 8"},
		{"no test accounts", trend(`"filterTestAccounts": false`), ""},
		{"test accounts of a list", `{"kind": "EventsQuery", "select": ["event"], "filterTestAccounts": true}`, "cohorts 8"},
		{"an expression in a filter", trend(`"properties": [{"type": "hogql", "key": "person_id in cohort 'six' or matchesAction(3)"}]`), "actions 3, cohorts 6"},
		{"an expression as math", `{"kind": "TrendsQuery", "series": [{"event": "a", "math": "hogql", "math_hogql": "countIf(matchesAction(3))"}]}`, "actions 3"},
		{"an expression in a list", `{"kind": "EventsQuery", "select": ["matchesAction('one')"], "where": ["person_id IN COHORT 5"], "orderBy": ["matchesAction(3) desc"]}`, "actions 1 3, cohorts 5 7"},
		{"a text", sql("select matchesAction(3), matchesAction('one') from events where person_id not in cohort 'five' and person_id in cohort 6"), "actions 1 3, cohorts 5 6 7"},
		{"several of one name", sql("select matchesAction('same') from events"), "actions 3 4"},
		{"names that nothing has", sql("select matchesAction('none') from events where person_id in cohort 'none'"), ""},
		{"a table of members", sql("select count() from cohort_people"), "all cohorts"},
		{"a table of members in a join", sql("select 1 from events e join static_cohort_people p on p.person_id = e.person_id"), "all cohorts"},
		{"a table behind an escape", sql("select 1 from `\\x63ohort_people`"), "all cohorts"},
		{"words in a constant", sql("select 'in cohort 5', 'matchesAction(3)' from events"), ""},
		{"a comment between", sql("select 1 from events where person_id in /* x */ cohort /* y */ 5"), "cohorts 5"},
		{"values", `{"kind": "HogQLQuery", "query": "select matchesAction({a}) from events where person_id in cohort {c}", "values": {"a": "one", "c": 5}}`, "actions 1, cohorts 5 7"},
		{
			"a variable", `{"kind": "HogQLQuery", "query": "select matchesAction({variables.a}) from events", "variables": {"v": {"variableId": "v", "code_name": "a", "value": 3}}}`,
			"actions 3",
		},
		{"a placeholder that nothing stands for", sql("select matchesAction({variables.a}) from events where person_id in cohort {c}"), "all actions, all cohorts"},
		{
			"filters of a text", `{"kind": "HogQLQuery", "query": "select 1 from events where {filters}",
				"filters": {"filterTestAccounts": true, "properties": [{"type": "cohort", "key": "id", "value": 5}]}}`, "cohorts 5 8",
		},
		{"a text that does not parse", sql("select matchesAction(3"), ""},
		{"a query of its own as a source", `{"kind": "ActorsQuery", "source": {"kind": "HogQLQuery", "query": "select person_id from events where matchesAction(3)"}}`, "actions 3"},
	}
	env := usesEnv(t)
	env.Variables = map[string]any{"a": 4}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := showUses(compiler.UsesOf(mustRead(t, tt.in), env)); got != tt.want {
				t.Errorf("uses %q, want %q", got, tt.want)
			}
		})
	}
}

// TestDirectUses: without actions and test accounts, only what the query names itself is found.
func TestDirectUses(t *testing.T) {
	t.Parallel()
	env := usesEnv(t)
	env.Actions, env.TestAccounts = nil, nil
	node := mustRead(t, `{"kind": "TrendsQuery", "filterTestAccounts": true, "series": [{"kind": "ActionsNode", "id": 1}]}`)
	if got := showUses(compiler.UsesOf(node, env)); got != "actions 1" {
		t.Errorf("uses %q, want the action alone", got)
	}
	if got := showUses(compiler.UsesOf(node, compiler.Env{})); got != "actions 1" {
		t.Errorf("uses %q without a database, want the action alone", got)
	}
}

// TestUsesOfTooMuch: a query that is too large to be searched may depend on anything.
func TestUsesOfTooMuch(t *testing.T) {
	t.Parallel()
	values := "1" + strings.Repeat(", 1", 400_000)
	node := mustRead(t, `{"kind": "HogQLQuery", "query": "select {many}, matchesAction(3) from events", "values": {"many": [`+values+`]}}`)
	if got := showUses(compiler.UsesOf(node, usesEnv(t))); got != "all actions, all cohorts" {
		t.Errorf("a query with many values uses %q, want all", got)
	}
	node = mustRead(t, `{"kind": "HogQLQuery", "query": "select matchesAction(3)`+strings.Repeat(" ", 100_000)+`from events"}`)
	if got := showUses(compiler.UsesOf(node, usesEnv(t))); got != "all actions, all cohorts" {
		t.Errorf("a long text uses %q, want all", got)
	}
}

// TestUsesOfCondition finds the uses in filters on their own.
func TestUsesOfCondition(t *testing.T) {
	t.Parallel()
	env := usesEnv(t)
	if got := showUses(compiler.UsesOfCondition(env.TestAccounts, env)); got != "cohorts 8" {
		t.Errorf("uses %q, want cohort 8", got)
	}
	if got := compiler.UsesOfCondition(nil, env); !cmp.Equal(got, compiler.Uses{}) || !got.IsZero() {
		t.Errorf("no condition uses %+v", got)
	}
}

// brokenNode is a query that panics when it is looked at.
type brokenNode struct{ *query.HogQL }

func (brokenNode) ActionID() (int64, bool) { panic("broken") }

// TestUsesBug: a query that cannot be searched because of a bug may use anything.
func TestUsesBug(t *testing.T) {
	t.Parallel()
	if got := showUses(compiler.UsesOf(brokenNode{}, usesEnv(t))); got != "all actions, all cohorts" {
		t.Errorf("uses %q", got)
	}
}
