package schema_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

var own = &schema.Database{Project: 1, GroupTypes: map[string]int{"organization": 1, "event": 2, "lost": 9}}

func table(t *testing.T, name string) *schema.Table {
	t.Helper()
	found, ok := own.Table(name)
	if !ok {
		t.Fatalf("no table %s", name)
	}
	return found
}

func TestPhysicalTable(t *testing.T) {
	for name, want := range map[string][2]bool{
		"events": {true, true}, "person": {true, true}, "person_distinct_id2": {true, true}, "person_distinct_id_overrides": {true, true},
		"groups": {true, true}, "persons": {false, false}, "system.tables": {false, false}, "": {false, false},
	} {
		guarded, known := schema.PhysicalTable(name)
		if got := [2]bool{guarded, known}; got != want {
			t.Errorf("PhysicalTable(%q) = %v, want %v", name, got, want)
		}
	}
}

// Every table reads a guarded physical table, has the guard's column, and only has joins and merges that use existing columns.
func TestTablesHoldTogether(t *testing.T) {
	for name := range own.TableNames() {
		tbl := table(t, name)
		if guarded, known := schema.PhysicalTable(tbl.Physical); !guarded || !known {
			t.Errorf("%s reads %q, which is no guarded table", name, tbl.Physical)
		}
		if f, ok := own.Field(tbl, schema.ProjectColumn); !ok || !f.Hidden {
			t.Errorf("%s has no hidden %s", name, schema.ProjectColumn)
		}
		if m := tbl.Merge; m != nil {
			for _, key := range m.Keys {
				if _, ok := own.Field(tbl, key); !ok {
					t.Errorf("%s is merged by %s, which it has not", name, key)
				}
			}
			for _, column := range []string{m.Version, m.Deleted} {
				if column != "" && !schema.NativeLayout().Has(tbl.Physical, column) {
					t.Errorf("%s is merged by column %s, which %s has not", name, column, tbl.Physical)
				}
			}
		}
		for field := range own.FieldNames(tbl) {
			f, ok := own.Field(tbl, field)
			if !ok {
				t.Errorf("%s has a field %s that cannot be found", name, field)
				continue
			}
			checkJoin(t, tbl, f.Join)
			checkJoin(t, tbl, f.Override)
		}
	}
}

func checkJoin(t *testing.T, from *schema.Table, j *schema.LazyJoin) {
	t.Helper()
	if j == nil {
		return
	}
	to := table(t, j.Table)
	local, hasLocal := own.Field(from, j.Local)
	foreign, hasForeign := own.Field(to, j.Foreign)
	if !hasLocal || !hasForeign || local.Type.Kind != foreign.Type.Kind {
		t.Errorf("%s joins %s on %s = %s, which do not match", from.Name, to.Name, j.Local, j.Foreign)
	}
}

func TestStar(t *testing.T) {
	tests := []struct {
		table string
		want  []string
	}{
		{"persons", []string{"id", "created_at", "properties", "is_identified"}},
		{"raw_persons", []string{"id", "created_at", "properties", "is_identified", "is_deleted", "version"}},
		{"groups", []string{"index", "key", "created_at", "updated_at", "properties"}},
		{"person_distinct_ids", []string{"distinct_id", "person_id"}},
		{"events", []string{
			"uuid", "event", "properties", "timestamp", "distinct_id", "elements_chain", "created_at", "$session_id", "$window_id",
			"person_mode", "person_id", "$group_0", "$group_1", "$group_2", "$group_3", "$group_4",
			"elements_chain_href", "elements_chain_texts", "elements_chain_ids", "elements_chain_elements",
		}},
	}
	for _, tt := range tests {
		var got []string
		for f := range own.Star(table(t, tt.table)) {
			got = append(got, f.Name)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("* of %s (-want +got):\n%s", tt.table, diff)
		}
	}
}

func TestField(t *testing.T) {
	events := table(t, "events")
	f, ok := own.Field(events, "organization")
	if !ok || f.Join == nil || f.Join.Group != 1 {
		t.Errorf("organization is %+v, want the groups of type 1", f)
	}
	if f, ok := own.Field(events, "event"); !ok || f.Type.Kind != hogql.String {
		t.Errorf("event is %+v, want the column: a group type takes no name that is taken", f)
	}
	if _, ok := own.Field(events, "lost"); ok {
		t.Error("a group type with an impossible index is a field")
	}
	if _, ok := own.Field(table(t, "persons"), "organization"); ok {
		t.Error("persons have groups")
	}
	names := slices.Collect(own.FieldNames(events))
	if n := slices.Index(names, "lost"); n >= 0 {
		t.Error("an impossible group type is listed")
	}
}

func TestFieldsFollowTheLayout(t *testing.T) {
	db := &schema.Database{Layout: schema.NewLayout([]physical.Column{
		{Table: "events", Name: "event", Type: "String"},
		{Table: "events", Name: "created_at", Type: "Nullable(DateTime64(6, 'UTC'))"},
		{Table: "events", Name: "distinct_id", Type: "String"},
		{Table: "events", Name: "person_id", Type: "UUID"},
	})}
	events := table(t, "events")
	var star []string
	for f := range db.Star(events) {
		star = append(star, f.Name)
	}
	if diff := cmp.Diff([]string{"event", "distinct_id", "created_at", "person_id"}, star); diff != "" {
		t.Errorf("* (-want +got):\n%s", diff)
	}
	if _, ok := db.Field(events, "elements_chain"); ok {
		t.Error("a field without its column exists")
	}
	f, _ := db.Field(events, "created_at")
	if !db.FieldType(events, f).Nullable {
		t.Error("a field of a nullable column is not nullable")
	}
}

func TestPropertyTypes(t *testing.T) {
	types := schema.PropertyTypes{{Scope: schema.GroupProperty, Group: 2, Name: "n"}: schema.NumericProperty}
	if got := types.Of(schema.PropertyKey{Scope: schema.GroupProperty, Group: 2, Name: "n"}); got != schema.NumericProperty {
		t.Errorf("declared as Numeric, is %s", got)
	}
	if got := types.Of(schema.PropertyKey{Scope: schema.GroupProperty, Group: 1, Name: "n"}); got != schema.StringProperty {
		t.Errorf("not declared, is %s", got)
	}
}
