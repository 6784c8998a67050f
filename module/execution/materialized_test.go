package execution_test

import (
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestMarkOfTable: the mark of a table's plan changes with the values on which its query depends and the settings of the project, and with no others.
func TestMarkOfTable(t *testing.T) {
	s := start(t)
	ctx, project := t.Context(), s.project.ID
	steps := func(url string) registry.Field[[]registry.ActionStep] {
		return registry.To([]registry.ActionStep{{Event: new("clicked"), URL: &url}})
	}
	named := func(name string) registry.ActionFields {
		return registry.ActionFields{Name: registry.To(&name), Steps: steps("/a")}
	}
	used, err := s.registry.CreateAction(ctx, project, named("used"), "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	unused, err := s.registry.CreateAction(ctx, project, named("unused"), "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	members, err := s.registry.CreateCohort(ctx, registry.NewCohort{Project: project, CohortFields: registry.CohortFields{Static: registry.To(true)}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if used.ID != 1 || members.ID != 1 {
		t.Fatalf("the action has the number %d, the cohort %d", used.ID, members.ID)
	}
	node, err := compiler.Parse([]byte(`{"kind": "TrendsQuery", "series": [{"kind": "ActionsNode", "id": 1}], "filterTestAccounts": true,
		"properties": [{"type": "cohort", "key": "id", "value": 1}]}`))
	if err != nil {
		t.Fatal(err)
	}
	mark := func() string {
		t.Helper()
		of := execution.Subject{Project: project, Endpoint: "e", Version: 1, Node: node}
		plan, err := s.PlanTable(ctx, s.registry.Snapshot(), execution.Uncounted(project), of, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		known, err := s.KnownTable(ctx, s.registry.Snapshot(), execution.Uncounted(project), "version", of, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if known.Mark != plan.Mark {
			t.Error("the cached plan has another mark")
		}
		return plan.Mark
	}
	testAccounts := func(host string) error {
		filters := `[{"type": "event", "key": "$host", "operator": "is_not", "value": "` + host + `"}]`
		_, err := s.registry.UpdateProject(ctx, project, registry.ProjectChange{TestAccountFilters: &filters})
		return err
	}
	if err := testAccounts("localhost"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		write   func() error
		changes bool
	}{
		{"nothing", func() error { return nil }, false},
		{"a value in the action", func() error {
			_, err := s.registry.UpdateAction(ctx, project, used.ID, registry.ActionFields{Steps: steps("/b")}, time.Now())
			return err
		}, true},
		{"the action's description", func() error {
			_, err := s.registry.UpdateAction(ctx, project, used.ID, registry.ActionFields{Description: registry.To("text")}, time.Now())
			return err
		}, false},
		{"another action", func() error {
			_, err := s.registry.UpdateAction(ctx, project, unused.ID, registry.ActionFields{Steps: steps("/b")}, time.Now())
			return err
		}, false},
		{"the members of the cohort", func() error {
			_, err := s.registry.SetCohortMembers(ctx, project, members.ID, 2, time.Now())
			return err
		}, true},
		{"a value in a test account filter", func() error { return testAccounts("127.0.0.1") }, true},
		{"the type of a property that the query does not read", func() error {
			return s.registry.SetProperty(ctx, project, registry.PropertyDefinition{Scope: registry.EventProperty, Name: "unread", Type: "Numeric"})
		}, false},
	} {
		before := mark()
		if err := tt.write(); err != nil {
			t.Fatal(tt.name, err)
		}
		if changed := mark() != before; changed != tt.changes {
			t.Errorf("%s: the mark changed is %t, want %t", tt.name, changed, tt.changes)
		}
	}
}
