package registry_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

func TestBoundKey(t *testing.T) {
	r, p := fresh(t)
	n := registry.NewKey{
		Project: p.ID, Kind: registry.Secret, Scopes: []string{"endpoint:read"},
		Fixed: map[string]any{"b": []any{"x", true}, "a": "<ü>"}, Endpoints: []string{"weekly", "daily", "weekly"},
	}
	k, _, err := r.CreateKey(t.Context(), n, now)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"a":"\u003cü\u003e","b":["x",true]}`, k.Fixed); diff != "" {
		t.Errorf("Fixed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"daily", "weekly"}, k.Endpoints); diff != "" {
		t.Errorf("Endpoints (-want +got):\n%s", diff)
	}
	rolled, _, err := r.RollKey(t.Context(), k.ID, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		key   *registry.Key
		bound bool
		may   map[string]bool
	}{
		{"bound to both", k, true, map[string]bool{"daily": true, "weekly": true, "Daily": false, "": false}},
		{"the same, rolled", rolled, true, map[string]bool{"daily": true, "other": false}},
		{"bound to variables", &registry.Key{Fixed: `{"a":1}`}, true, map[string]bool{"daily": true}},
		{"bound to no endpoint at all", &registry.Key{Endpoints: []string{}}, true, map[string]bool{"daily": false}},
		{"not bound", &registry.Key{}, false, map[string]bool{"daily": true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.key.Bound(); got != tt.bound {
				t.Errorf("Bound() = %t", got)
			}
			for name, want := range tt.may {
				if got := tt.key.MayRun(name); got != want {
					t.Errorf("MayRun(%q) = %t", name, got)
				}
			}
		})
	}
}

func TestBoundKeyMistakes(t *testing.T) {
	r, p := fresh(t)
	for _, tt := range []struct {
		name           string
		fixed          map[string]any
		endpoints      []string
		field, message string
	}{
		{"null", map[string]any{"a": nil}, nil, "fixed", "The value of a can't be empty."},
		{"an empty text", map[string]any{"a": ""}, nil, "fixed", "The value of a can't be empty."},
		{"an empty list", map[string]any{"a": []any{}}, nil, "fixed", "The value of a can't be empty."},
		{"too much", map[string]any{"a": strings.Repeat("x", 4<<10)}, nil, "fixed", "The fixed variables take more than 4096 bytes."},
		{"no endpoint", nil, []string{}, "endpoints", "Each endpoint needs a name."},
		{"an endpoint without a name", nil, []string{""}, "endpoints", "Each endpoint needs a name."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := registry.NewKey{Project: p.ID, Scopes: []string{"endpoint:read"}, Fixed: tt.fixed, Endpoints: tt.endpoints}
			_, _, err := r.CreateKey(t.Context(), n, now)
			want := &registry.FieldError{Field: tt.field, Code: registry.CodeInvalid, Message: tt.message}
			if diff := cmp.Diff(want, mistake(t, err)); diff != "" {
				t.Errorf("CreateKey() mistake (-want +got):\n%s", diff)
			}
		})
	}
}
