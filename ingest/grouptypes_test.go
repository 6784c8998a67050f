package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
)

// TestGroupTypesAreKeptFirst: ingesters that keep group types in one place give each of them one index, even if a batch breaks off after it was given; and
// nothing is written with an index that can't be kept.
func TestGroupTypesAreKeptFirst(t *testing.T) {
	c := client(t)
	var kept []ingest.GroupType
	var broken error
	options := ingest.Options{Project: project(), Now: now, KeepGroupTypes: func(_ context.Context, found []ingest.GroupType) ([]ingest.GroupType, error) {
		if len(found) > 0 {
			if broken != nil {
				return nil, broken
			}
			kept = found
		}
		return kept, nil
	}}
	one, other := ingest.New(c), ingest.New(c)
	var oneDown, otherDown error
	one.Before(func(string) error { return oneDown })
	other.Before(func(string) error { return otherDown })
	event := func(name, groups string) string {
		return fmt.Sprintf(`{"event":%q,"distinct_id":"x","properties":{"$groups":%s}}`, name, groups)
	}
	deliver(t, one, options, captured(t, event("first", `{}`))) // both have a session from before there were types
	deliver(t, other, options, captured(t, event("second", `{}`)))

	oneDown = errors.New("down")
	org := event("org", `{"org":"o"}`)
	if _, err := one.Deliver(t.Context(), options, captured(t, org)); !errors.Is(err, oneDown) {
		t.Fatalf("a delivery that can't write: %v", err)
	}
	deliver(t, other, options, captured(t, event("team", `{"team":"t"}`)))

	broken, otherDown = errors.New("the registry is unavailable"), errors.New("something is written by an index that is not kept")
	third := event("third", `{"third":"3","":"none","`+strings.Repeat("é", 401)+`":"long"}`)
	if _, err := other.Deliver(t.Context(), options, captured(t, third)); !errors.Is(err, broken) {
		t.Fatalf("a delivery that can't keep a group type: %v", err)
	}
	broken, oneDown, otherDown = nil, nil, nil
	deliver(t, one, options, captured(t, org))
	deliver(t, other, options, captured(t, third))

	want := []ingest.GroupType{{Name: "org", Index: 0}, {Name: "team", Index: 1}, {Name: "third", Index: 2}}
	if diff := gocmp.Diff(want, kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	got := ask(t, c, options.Project, "SELECT event, `$group_0`, `$group_1`, `$group_2`, `$group_3` FROM events WHERE event NOT IN ('first', 'second') ORDER BY event")
	rows := []string{`["org", "o", "", "", ""]`, `["team", "", "t", "", ""]`, `["third", "", "", "3", ""]`}
	if diff := gocmp.Diff(rows, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestImportRefusesGroupTypes: a record whose group type has too long a name is left out, without affecting the others.
func TestImportRefusesGroupTypes(t *testing.T) {
	lines := `{"type":"group","group_type":"` + strings.Repeat("g", 401) + `","group_key":"k"}` + "\n" + `{"type":"group","group_type":"org","group_key":"k"}`
	report, err := ingest.New(client(t)).Import(t.Context(), ingest.Options{Project: project(), Now: now}, ingesttest.Lines(lines))
	if err != nil || report.Bad != 1 || report.Groups != 1 || len(report.GroupTypes) != 1 {
		t.Errorf("the report is %+v, %v", report, err)
	}
}
