package module

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestCreateKeyNumbersLabels: an operator may reuse a label, and a project's secret keys get distinct ones.
func TestCreateKeyNumbersLabels(t *testing.T) {
	w := newWorld(t)
	other := w.newProject(t)
	tests := []struct {
		name    string
		project int64
		kind    registry.KeyKind
		label   string
		want    string
	}{
		{"the first", w.project.ID, registry.Secret, "backend", "backend"},
		{"the second", w.project.ID, registry.Secret, "backend", "backend 2"},
		{"the third", w.project.ID, registry.Secret, " backend ", "backend 3"},
		{"a personal one", w.project.ID, registry.Personal, "backend", "backend"},
		{"one of another project", other.ID, registry.Secret, "backend", "backend"},
		{"a long one", w.project.ID, registry.Secret, strings.Repeat("ä", 40), strings.Repeat("ä", 40)},
		{"a long one again", w.project.ID, registry.Secret, strings.Repeat("ä", 40), strings.Repeat("ä", 38) + " 2"},
		{"none", w.project.ID, registry.Secret, "", ""},
		{"none again", w.project.ID, registry.Secret, "", ""},
	}
	for _, tt := range tests {
		wanted := registry.NewKey{Project: tt.project, Kind: tt.kind, Label: tt.label, Scopes: []string{"endpoint:read"}}
		key, _, err := createKey(t.Context(), w.rt.registry, wanted, began)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.want, key.Label); diff != "" {
			t.Errorf("%s: label (-want +got):\n%s", tt.name, diff)
		}
	}
	_, _, err := createKey(t.Context(), w.rt.registry, registry.NewKey{Project: w.project.ID, Kind: registry.Secret, Label: "x", Scopes: []string{"*"}}, began)
	if got := api.ErrorOf(err); got.Status != 400 || got.Attr != "scopes" {
		t.Errorf("another mistake is answered with %v", got)
	}
}
