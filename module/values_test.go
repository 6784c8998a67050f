package module

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/physical"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{`"512MiB"`: 512 << 20, `"1GB"`: 1e9, `1024`: 1024} {
		var got Size
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s reads as %d, %v", text, got, err)
		}
	}
	for _, text := range []string{`"lots"`, `true`, `"-1"`} {
		var got Size
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s is taken for a size", text)
		}
	}
}

// TestPropertyValuesChange: changes since a session began are returned once.
func TestPropertyValuesChange(t *testing.T) {
	w := newWorld(t)
	options := w.rt.ingestOptions(w.rt.registry.Snapshot(), w.project.ID)
	if got := options.Values.Changed(); got != nil {
		t.Errorf("before any change: %v", got)
	}
	if err := w.rt.registry.KnowValues(t.Context(), w.project.ID); err != nil {
		t.Fatal(err)
	}
	for _, kinds := range []physical.Kinds{physical.Texts, physical.Wholes} {
		if err := w.rt.registry.Widen(t.Context(), w.project.ID, []registry.PropertyValues{{
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
	if _, err := w.rt.registry.DeleteProject(t.Context(), w.project.ID, w.project.Name, began); err != nil {
		t.Fatal(err)
	}
	if got := options.Values.Changed(); got != nil {
		t.Errorf("after the deletion: %v", got)
	}
}
