package intake_test

import (
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/module/intake"
	"github.com/caddy-analytics/caddy-analytics/physical"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

// newIntake returns an intake of a registry with a project, without ClickHouse.
func newIntake(t *testing.T) (*intake.Intake, *registry.Project) {
	t.Helper()
	reg := sqlitetest.Open(t, registry.Options{})
	p, err := reg.CreateProject(t.Context(), registry.NewProject{Name: "p"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &intake.Intake{Registry: reg, Logger: zap.NewNop()}, p
}

// TestPropertyValuesChange: changes since a session began are returned once.
func TestPropertyValuesChange(t *testing.T) {
	i, p := newIntake(t)
	options := i.Options(i.Registry.Snapshot(), p.ID)
	if got := options.Values.Changed(); got != nil {
		t.Errorf("before any change: %v", got)
	}
	if err := i.Registry.KnowValues(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	for _, kinds := range []physical.Kinds{physical.Texts, physical.Wholes} {
		if err := i.Registry.Widen(t.Context(), p.ID, []registry.PropertyValues{{
			PropertyDefinition: registry.PropertyDefinition{Scope: registry.EventProperty, Name: "p", Type: registry.PropertyString}, Kinds: kinds,
		}}, false); err != nil {
			t.Fatal(err)
		}
		want := ingest.LearnedProperty{Scope: "event", Name: "p", Type: "String", Kinds: physical.Texts | kinds}
		if got := options.Values.Changed(); !slices.Contains(got, want) {
			t.Errorf("changed are %v, want %v among them", got, want)
		}
		if got := options.Values.Changed(); got != nil {
			t.Errorf("told again: %v", got)
		}
	}
	if _, err := i.Registry.DeleteProject(t.Context(), p.ID, p.Name, time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := options.Values.Changed(); got != nil {
		t.Errorf("after the deletion: %v", got)
	}
}

// TestValuesWithoutRoom: values of properties for which the registry has no room are written, and are not known from then on.
func TestValuesWithoutRoom(t *testing.T) {
	i, p := newIntake(t)
	if err := i.Registry.KnowValues(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	i.Registry.SetLimits(registry.Limits{Bytes: 1})
	values := i.Options(i.Registry.Snapshot(), p.ID).Values
	if !values.Known() {
		t.Error("the values of an empty project are not known")
	}
	if err := values.Widen(t.Context(), []ingest.LearnedProperty{{Scope: "event", Name: "long", Type: "String", Kinds: physical.Texts}}, false); err != nil {
		t.Error(err)
	}
	if known := i.Registry.Snapshot().PropertyDefinitions(p.ID); values.Known() || len(known) > 0 {
		t.Errorf("known are %v", known)
	}
}
