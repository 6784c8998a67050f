package execution

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestMark: the key of an answer changes with what its query depends on, and with nothing else.
func TestMark(t *testing.T) {
	t.Parallel()
	name := func(s string) *string { return &s }
	event := func(s string) []registry.ActionStep { return []registry.ActionStep{{Event: &s}} }
	inCohort := []registry.ActionStep{{Properties: json.RawMessage(`[{"type": "cohort", "key": "id", "value": 6}]`)}}
	world := func(change func(*registry.ProjectSchema)) *registry.ProjectSchema {
		of := &registry.ProjectSchema{
			Project: registry.Project{ID: 1, Timezone: "UTC"},
			Actions: []registry.ActionDefinition{
				{ID: 1, Name: name("one"), Steps: event("a")}, {ID: 2, Name: name("two"), Steps: inCohort}, {ID: 3, Name: name("three"), Steps: event("c")},
			},
			Cohorts: []registry.SchemaCohort{{ID: 5, Name: "five", Version: 1}, {ID: 6, Name: "six", Version: 1}},
			Properties: []registry.PropertyDefinition{
				{Scope: registry.EventProperty, Name: "amount", Type: registry.PropertyNumeric}, {Scope: registry.PersonProperty, Name: "billing plan", Type: registry.PropertyString},
			},
		}
		if change != nil {
			change(of)
		}
		return of
	}
	const (
		byOne      = `{"kind": "TrendsQuery", "series": [{"kind": "ActionsNode", "id": 1}]}`
		byTwo      = `{"kind": "TrendsQuery", "series": [{"kind": "ActionsNode", "id": 2}]}`
		byText     = `{"kind": "HogQLQuery", "query": "select count() from events where matchesAction('one')"}`
		byNothing  = `{"kind": "TrendsQuery", "series": [{"event": "a"}]}`
		filtered   = `{"kind": "TrendsQuery", "series": [{"event": "a"}], "properties": [{"type": "cohort", "key": "id", "value": 5}]}`
		brokenDown = `{"kind": "TrendsQuery", "series": [{"event": "a"}], "breakdownFilter": {"breakdown_type": "cohort", "breakdown": [5]}}`
		byAll      = `{"kind": "HogQLQuery", "query": "select count() from cohort_people"}`
	)
	byAmount := `{"kind": "HogQLQuery", "query": "select properties.amount from events"}`
	byPlan := `{"kind": "TrendsQuery", "series": [{"event": "a"}], "properties": [{"type": "person", "key": "billing plan", "value": "pro", "operator": "exact"}]}`
	huge := `{"kind": "HogQLQuery", "query": "select '` + strings.Repeat("a ", 600_000) + `'"}` // too much to search
	all := []string{byOne, byTwo, byText, byNothing, filtered, brokenDown, byAll, byAmount, byPlan, huge}
	typed := func(scope registry.PropertyScope, name string, typ registry.PropertyType) func(*registry.ProjectSchema) {
		return func(of *registry.ProjectSchema) {
			of.Properties = append(of.Properties, registry.PropertyDefinition{Scope: scope, Name: name, Type: typ})
		}
	}
	tests := []struct {
		name    string
		change  func(*registry.ProjectSchema)
		changed []string
	}{
		{"nothing", nil, nil},
		{"the steps of an action", func(of *registry.ProjectSchema) { of.Actions[0].Steps = event("b") }, []string{byOne, byText}},
		{"the name of an action", func(of *registry.ProjectSchema) { of.Actions[1].Name = name("deux") }, []string{byTwo}},
		{"a name that moves to another action", func(of *registry.ProjectSchema) {
			of.Actions[0].Name, of.Actions[2].Name = name("uno"), name("one")
		}, []string{byOne, byText}},
		{"an action is deleted", func(of *registry.ProjectSchema) { of.Actions[0].Deleted = true }, []string{byOne, byText}},
		{"an action is gone", func(of *registry.ProjectSchema) { of.Actions = of.Actions[1:] }, []string{byOne, byText}},
		{"the name of a cohort", func(of *registry.ProjectSchema) { of.Cohorts[0].Name = "cinq" }, []string{brokenDown}},
		{"the members of a cohort", func(of *registry.ProjectSchema) { of.Cohorts[0].Version = 2 }, []string{filtered, brokenDown, byAll}},
		{"a cohort is deleted", func(of *registry.ProjectSchema) { of.Cohorts[0].Deleted = true }, []string{filtered, brokenDown, byAll}},
		{"a cohort is gone", func(of *registry.ProjectSchema) { of.Cohorts = of.Cohorts[1:] }, []string{filtered, brokenDown, byAll}},
		{"a cohort in the step of an action is gone", func(of *registry.ProjectSchema) { of.Cohorts = of.Cohorts[:1] }, []string{byTwo, byAll}},
		{"the type of a property", func(of *registry.ProjectSchema) { of.Properties[0].Type = registry.PropertyBoolean }, []string{byAmount, huge}},
		{"a property is text", func(of *registry.ProjectSchema) { of.Properties[0].Type = registry.PropertyString }, []string{byAmount, huge}},
		{"a property is no text", func(of *registry.ProjectSchema) { of.Properties[1].Type = registry.PropertyNumeric }, []string{byPlan, huge}},
		{"a property has no type", func(of *registry.ProjectSchema) { of.Properties = of.Properties[1:] }, []string{byAmount, huge}},
		{"a text has no type", func(of *registry.ProjectSchema) { of.Properties = of.Properties[:1] }, nil},
		{"a new property", typed(registry.EventProperty, "other", registry.PropertyNumeric), []string{huge}},
		{"a new text", typed(registry.EventProperty, "other", registry.PropertyString), nil},
		{"a new property of persons with a name in use", typed(registry.PersonProperty, "amount", registry.PropertyNumeric), []string{byAmount, huge}},
		{"a new property without letters", typed(registry.EventProperty, "-", registry.PropertyNumeric), []string{huge}},
		{"a new property that begins like a query", typed(registry.EventProperty, "select count", registry.PropertyNumeric), []string{huge}},
		{"a new property that the compiler knows", typed(registry.EventProperty, "$current_url", registry.PropertyNumeric), all},
		{"the zone", func(of *registry.ProjectSchema) { of.Project.Timezone = "Asia/Tokyo" }, all},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, text := range all {
				node, err := compiler.Parse([]byte(text))
				if err != nil {
					t.Fatal(err)
				}
				changed := new(known).mark(world(nil), nil, node) != new(known).mark(world(tt.change), nil, node)
				want := false
				for _, other := range tt.changed {
					want = want || other == text
				}
				if changed != want {
					t.Errorf("changed is %t, want %t: %s", changed, want, text)
				}
			}
		})
	}
}

// TestMarkIsKept: the schema of a project is processed once, as long as it stays the same.
func TestMarkIsKept(t *testing.T) {
	t.Parallel()
	var k known
	first, second := &registry.ProjectSchema{Project: registry.Project{ID: 1}}, &registry.ProjectSchema{Project: registry.Project{ID: 1}}
	found := k.schemaOf(first)
	if k.schemaOf(first) != found {
		t.Error("the same schema was looked at again")
	}
	if k.schemaOf(second) == found {
		t.Error("another schema has what follows from the first")
	}
}
