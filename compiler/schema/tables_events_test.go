package schema_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// In each mode, * has the same columns, and everything that leads to the person leads somewhere.
func TestEventsInEachMode(t *testing.T) {
	star := func(db *schema.Database) []string {
		events, _ := db.Table("events")
		var names []string
		for f := range db.Star(events) {
			names = append(names, f.Name)
		}
		return names
	}
	want := star(own)
	for name, mode := range schema.PersonModes {
		t.Run(name, func(t *testing.T) {
			db := &schema.Database{Project: 1, Modifiers: schema.Modifiers{Persons: mode}}
			if diff := cmp.Diff(want, star(db)); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
			}
			events, _ := db.Table("events")
			for _, field := range []string{"person_id", "person", "poe", "pdi", "override", "session"} {
				f, ok := db.Field(events, field)
				if !ok {
					t.Errorf("no field %s", field)
					continue
				}
				if table := field != "person_id"; f.IsColumn() == table {
					t.Errorf("%s is a column: %t", field, f.IsColumn())
				}
				checkJoin(t, events, f.Join)
				checkJoin(t, events, f.Override)
			}
		})
	}
}

// A server whose events have no session ids has no sessions; one that does not store when rows were inserted lacks that field.
func TestSessionsFollowTheLayout(t *testing.T) {
	fields := func(columns ...string) []string {
		var stored []physical.Column
		for _, name := range columns {
			stored = append(stored, physical.Column{Table: "events", Name: name, Type: "String"})
		}
		db := &schema.Database{Project: 1, Layout: schema.NewLayout(stored)}
		sessions, _ := db.Table("sessions")
		var out []string
		for _, name := range []string{"session_id", "$channel_type", "max_inserted_at"} {
			if _, ok := db.Field(sessions, name); ok {
				out = append(out, name)
			}
		}
		return out
	}
	for _, tt := range []struct {
		name    string
		columns []string
		want    []string
	}{
		{"all", []string{"$session_id", "inserted_at"}, []string{"session_id", "$channel_type", "max_inserted_at"}},
		{"no time of insertion", []string{"$session_id"}, []string{"session_id", "$channel_type"}},
		{"no ids", []string{"timestamp", "inserted_at"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, fields(tt.columns...)); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}
