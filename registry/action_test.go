package registry_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

func TestActionMistakes(t *testing.T) {
	r, p := fresh(t)
	must(r.CreateAction(t.Context(), p.ID, registry.ActionFields{Name: registry.To(new("taken"))}, "k", now))(t)
	before := r.Snapshot()
	matching := func(m string) *registry.TextMatching { return new(registry.TextMatching(m)) }
	step := func(s registry.ActionStep) registry.ActionFields {
		return registry.ActionFields{Steps: registry.To([]registry.ActionStep{{}, s})}
	}
	tests := []struct {
		name string
		in   registry.ActionFields
		want registry.FieldError
	}{
		{"a blank name", registry.ActionFields{Name: registry.To(new(" "))}, registry.FieldError{Field: "name", Code: registry.CodeBlank, Message: "This field may not be blank."}},
		{
			"a long name",
			registry.ActionFields{Name: registry.To(new(strings.Repeat("é", 401)))},
			registry.FieldError{Field: "name", Code: registry.CodeTooLong, Message: "Ensure this field has no more than 400 characters."},
		},
		{
			"a taken name",
			registry.ActionFields{Name: registry.To(new("taken"))},
			registry.FieldError{Field: "name", Code: registry.CodeUnique, Message: "This project already has an action with this name, ID 1"},
		},
		{
			"many steps",
			registry.ActionFields{Steps: registry.To(make([]registry.ActionStep, 101))},
			registry.FieldError{Field: "steps", Code: registry.CodeInvalid, Message: "An action can have 100 steps, and this one has 101."},
		},
		{
			"no such matching", step(registry.ActionStep{TextMatching: matching("fuzzy")}),
			registry.FieldError{Field: "steps__1__text_matching", Code: registry.CodeNotChoice, Message: `"fuzzy" is not a valid choice.`},
		},
		{
			"no regular expression", step(registry.ActionStep{URL: new("a(b"), URLMatching: matching("regex")}),
			registry.FieldError{
				Field: "steps__1__url", Code: registry.CodeInvalid, Message: `"a(b" is not a valid regular expression: missing closing ): ` + "`a(b`.",
			},
		},
		{
			"a regular expression that grows", step(registry.ActionStep{URL: new(strings.Repeat("(?:a{999})", 11)), URLMatching: matching("regex")}),
			registry.FieldError{
				Field: "steps__1__url", Code: registry.CodeInvalid,
				Message: `"` + strings.Repeat("(?:a{999})", 11) + `" is not a valid regular expression: it has more than 20000 states.`,
			},
		},
		{
			"properties that are no list", step(registry.ActionStep{Properties: json.RawMessage(`{}`)}),
			registry.FieldError{Field: "steps__1__properties", Code: registry.CodeInvalid, Message: "Expected a list of property filters."},
		},
		{
			"a long tag",
			registry.ActionFields{Tags: registry.To([]string{strings.Repeat("x", 256)})},
			registry.FieldError{Field: "tags", Code: registry.CodeTooLong, Message: "Ensure this field has no more than 255 characters."},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := r.CreateAction(t.Context(), p.ID, tt.in, "k", now)
			got := mistake(t, err)
			if got == nil {
				t.Fatal("no mistake")
			}
			if diff := cmp.Diff(tt.want, *got); diff != "" {
				t.Errorf("mistake (-want +got):\n%s", diff)
			}
		})
	}
	checkSame(t, before, r.Snapshot())
	keeps := registry.ActionFields{Name: registry.To(new("taken"))}
	must(r.UpdateAction(t.Context(), p.ID, 1, keeps, now))(t)
	must(r.CreateAction(t.Context(), p.ID, step(registry.ActionStep{URL: new("a(b"), URLMatching: matching("contains"), TextMatching: matching("regex")}), "k", now))(t)
}

// TestActionsAndSchema: the schema changes with the definition of an action, and with nothing else of it.
func TestActionsAndSchema(t *testing.T) {
	r, p := fresh(t)
	must(r.CreateAction(t.Context(), p.ID, registry.ActionFields{Name: registry.To(new("a")), Steps: registry.To([]registry.ActionStep{{Event: new("x")}})}, "k", now))(t)
	tests := []struct {
		name    string
		in      registry.ActionFields
		changes bool
	}{
		{"a description", registry.ActionFields{Description: registry.To("d")}, false},
		{"a pin", registry.ActionFields{Pinned: registry.To(true)}, false},
		{"tags", registry.ActionFields{Tags: registry.To([]string{"t"})}, false},
		{"Slack", registry.ActionFields{PostToSlack: registry.To(true), SlackMessageFormat: registry.To("m")}, false},
		{"the same definition", registry.ActionFields{Name: registry.To(new("a")), Steps: registry.To([]registry.ActionStep{{Event: new("x")}})}, false},
		{"a name", registry.ActionFields{Name: registry.To(new("b"))}, true},
		{"steps", registry.ActionFields{Steps: registry.To([]registry.ActionStep{{Event: new("y")}})}, true},
		{"deleting it", registry.ActionFields{Deleted: registry.To(true)}, true},
		{"restoring it", registry.ActionFields{Deleted: registry.To(false)}, true},
	}
	at := now
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			at = at.Add(time.Second)
			before := r.Snapshot()
			a := must(r.UpdateAction(t.Context(), p.ID, 1, tt.in, at))(t)
			if changed := before.Schema(p.ID) != r.Snapshot().Schema(p.ID); changed != tt.changes {
				t.Errorf("the schema changed: %t, want %t", changed, tt.changes)
			}
			if moved := a.ChangedAt.Equal(at.Truncate(time.Microsecond)); moved != tt.changes {
				t.Errorf("ChangedAt moved: %t, want %t", moved, tt.changes)
			}
		})
	}
	got := r.Snapshot().Schema(p.ID).Actions
	want := []registry.ActionDefinition{{ID: 1, Name: new("b"), Steps: []registry.ActionStep{{Event: new("y")}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Schema().Actions (-want +got):\n%s", diff)
	}
	must(r.UpdateAction(t.Context(), p.ID, 1, registry.ActionFields{Deleted: registry.To(true)}, at))(t)
	if !r.Snapshot().Schema(p.ID).Actions[0].Deleted {
		t.Error("the schema does not know of an action that was deleted")
	}
	must(r.Purge(t.Context(), p.ID, at))(t)
	if n := len(r.Snapshot().Schema(p.ID).Actions); n != 0 {
		t.Errorf("the schema has %d actions after a purge", n)
	}
	if _, err := r.UpdateAction(t.Context(), p.ID, 1, registry.ActionFields{}, at); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("updating what was purged: %v", err)
	}
}

func TestTags(t *testing.T) {
	r, p := fresh(t)
	a := must(r.CreateAction(t.Context(), p.ID, registry.ActionFields{Name: registry.To(new("a")), Tags: registry.To([]string{" Team A ", "team a", "", "b"})}, "k", now))(t)
	if diff := cmp.Diff([]string{"team a", "b"}, a.Tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	stored := []string{"Old ", "b"} // by a release that stored tags as they were sent
	for _, tt := range []struct {
		wanted []string
		want   bool
	}{{[]string{"old"}, true}, {[]string{" OLD", "c"}, true}, {[]string{"B"}, true}, {[]string{"c"}, false}, {[]string{""}, false}, {nil, false}} {
		if got := registry.HasTag(tt.wanted)(stored); got != tt.want {
			t.Errorf("HasTag() of %q is %t", tt.wanted, got)
		}
	}
}
