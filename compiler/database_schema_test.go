package compiler_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

func TestDescribeDatabase(t *testing.T) {
	t.Parallel()
	out := compiler.DescribeDatabase(asked.env(t).Database)
	field := func(table, name string) compiler.SchemaField {
		t.Helper()
		for _, f := range out.Tables[table].Fields {
			if f.Name == name {
				return f
			}
		}
		t.Fatalf("%s has no %s", table, name)
		return compiler.SchemaField{}
	}
	plain := func(name, typ string) compiler.SchemaField {
		return compiler.SchemaField{Name: name, HogQL: name, Type: typ, Valid: true}
	}
	tests := []struct {
		table string
		want  compiler.SchemaField
	}{
		{"events", plain("event", "string")},
		{"events", plain("uuid", "string")},
		{"events", plain("timestamp", "datetime")},
		{"events", plain("properties", "json")},
		{"events", plain("elements_chain_texts", "array")},
		{"events", compiler.SchemaField{Name: "$group_0", HogQL: "`$group_0`", Type: "string", Valid: true}},
		{"events", compiler.SchemaField{Name: "pdi", HogQL: "pdi", Type: "lazy_table", Valid: true, Table: "person_distinct_ids", Fields: []string{"distinct_id", "person_id", "person"}, ID: "pdi"}},
		{"events", compiler.SchemaField{Name: "goe_0", HogQL: "goe_0", Type: "virtual_table", Valid: true, Table: "events", Fields: []string{"key", "created_at", "properties"}}},
		{"events", compiler.SchemaField{Name: "organization", HogQL: "organization", Type: "field_traverser", Valid: true, Chain: []string{"group_0"}}},
		{"persons", plain("is_identified", "boolean")},
		{"groups", plain("index", "integer")},
	}
	for _, tt := range tests {
		t.Run(tt.table+"."+tt.want.Name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, field(tt.table, tt.want.Name)); diff != "" {
				t.Errorf("field (-want +got):\n%s", diff)
			}
		})
	}
	if len(out.Joins) != 0 {
		t.Errorf("joins %v", out.Joins)
	}
	if _, listed := out.Tables["system.insights"]; listed {
		t.Error("a table is listed that the caller may not read")
	}
	for name, table := range out.Tables {
		typ := "posthog"
		if _, held := schema.LookupHeld(name); held {
			typ = "system"
		}
		if table.ID != name || table.Name != name || table.Type != typ {
			t.Errorf("table %s is %q, %q, %q", name, table.ID, table.Name, table.Type)
		}
		for _, f := range table.Fields {
			if f.Name == "team_id" || f.Name == "event_person_id" {
				t.Errorf("%s shows %s, which is hidden", name, f.Name)
			}
			if f.Type == "unknown" {
				t.Errorf("%s.%s has no type", name, f.Name)
			}
		}
	}
}

// Every listed name can be read as it is written there.
func TestDescribedFieldsResolve(t *testing.T) {
	t.Parallel()
	env := asked.env(t)
	env.Database.Readable = func(string) bool { return true }
	tables := compiler.DescribeDatabase(env.Database).Tables
	if _, listed := tables["system.teams"]; !listed {
		t.Error("a table is not listed that the caller may read")
	}
	for name, table := range tables {
		for _, f := range table.Fields {
			text := "select " + f.HogQL
			if len(f.Fields) > 0 {
				text += "." + "`" + f.Fields[0] + "`"
			} else if f.Type == "field_traverser" {
				continue // it may lead to a table
			}
			text += " from " + name
			if _, err := compiler.Compile(&query.HogQL{Query: text}, env); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

func TestDescribeDatabaseOfOtherLayout(t *testing.T) {
	t.Parallel()
	db := *asked.env(t).Database
	db.Layout = schema.NewLayout([]physical.Column{
		{Table: "events", Name: "team_id", Type: "Int64"}, {Table: "events", Name: "event", Type: "String"}, {Table: "events", Name: "properties", Type: "String"},
	})
	var names []string
	for _, f := range compiler.DescribeDatabase(&db).Tables["events"].Fields {
		if f.Type == "string" || f.Type == "json" || f.Type == "datetime" {
			names = append(names, f.Name)
		}
	}
	if !slices.Contains(names, "event") || slices.Contains(names, "elements_chain") || slices.Contains(names, "timestamp") {
		t.Errorf("the columns of a table with event and properties are %v", names)
	}
}

func TestSchemaFieldsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(compiler.SchemaFields{{Name: "b", HogQL: "b", Type: "string", Valid: true}, {Name: `a"`, HogQL: "a", Type: "lazy_table", Valid: true, Table: "t", Fields: []string{"x"}, ID: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"b":{"name":"b","hogql_value":"b","type":"string","schema_valid":true},` +
		`"a\"":{"name":"a\"","hogql_value":"a","type":"lazy_table","schema_valid":true,"table":"t","fields":["x"],"id":"a"}}`
	if diff := cmp.Diff(want, string(raw)); diff != "" {
		t.Errorf("as JSON (-want +got):\n%s", diff)
	}
}
