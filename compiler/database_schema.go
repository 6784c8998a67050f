package compiler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// DatabaseSchema is the answer that lists what queries can read (contract: api.md, section 1.6).
type DatabaseSchema struct {
	Tables map[string]SchemaTable `json:"tables"`
	// Joins are the joins that a project defines itself: always empty here.
	Joins []struct{} `json:"joins"`
}

// SchemaTable is one table.
type SchemaTable struct {
	ID     string       `json:"id"`
	Name   string       `json:"name"`
	Type   string       `json:"type"` // posthog for tables of events and people, system for tables whose rows the server holds
	Fields SchemaFields `json:"fields"`
}

// SchemaFields are the fields of a table in order. In JSON they are an object keyed by name.
type SchemaFields []SchemaField

// SchemaField is one field. Table and Fields are set if it leads to the fields of another table, Chain if it is an alias of a field, ID if it
// is a join.
type SchemaField struct {
	Name  string `json:"name"`
	HogQL string `json:"hogql_value"` // the name as a query writes it
	Type  string `json:"type"`
	// Valid is always true: every listed field exists.
	Valid  bool     `json:"schema_valid"`
	Table  string   `json:"table,omitempty"`
	Fields []string `json:"fields,omitempty"`
	Chain  []string `json:"chain,omitempty"`
	ID     string   `json:"id,omitempty"`
}

// MarshalJSON keeps the order of the fields.
func (fields SchemaFields) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range fields {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(f.Name)
		if err != nil {
			return nil, fmt.Errorf("encoding the name of a field: %w", err)
		}
		field, err := json.Marshal(f)
		if err != nil {
			return nil, fmt.Errorf("encoding field %s: %w", f.Name, err)
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(field)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// DescribeDatabase lists the tables of a project and their fields: the tables in its ClickHouse with the fields reached by * or by name, and
// the held tables that the caller may read.
func DescribeDatabase(db *schema.Database) *DatabaseSchema {
	out := &DatabaseSchema{Tables: map[string]SchemaTable{}, Joins: []struct{}{}}
	for name := range db.TableNames() {
		t, ok := db.Table(name)
		if _, held := db.Holds(name); !ok || held {
			continue
		}
		typ := "posthog"
		if _, held := schema.LookupHeld(name); held { // a held table that ClickHouse has
			typ = "system"
		}
		out.Tables[name] = SchemaTable{ID: name, Name: name, Type: typ, Fields: schemaFields(db, t)}
	}
	for _, t := range db.ReadableHeld() {
		fields := SchemaFields{}
		for _, f := range t.Fields {
			if f.Name != schema.ProjectColumn {
				fields = append(fields, SchemaField{Name: f.Name, HogQL: schema.QuotedName(f.Name), Type: fieldType(f.Type.Kind), Valid: true})
			}
		}
		out.Tables[t.Name] = SchemaTable{ID: t.Name, Name: t.Name, Type: "system", Fields: fields}
	}
	return out
}

func schemaFields(db *schema.Database, t *schema.Table) SchemaFields {
	fields := SchemaFields{}
	own := map[string]bool{}
	for i := range t.Fields {
		f, ok := db.Field(t, t.Fields[i].Name)
		if !ok || f.Hidden {
			continue
		}
		own[f.Name] = true
		fields = append(fields, schemaField(db, t, f))
	}
	for _, name := range slices.Sorted(maps.Keys(db.GroupTypes)) { // aliases of group_0 to group_4
		if f, ok := db.Field(t, name); ok && !own[name] {
			fields = append(fields, SchemaField{
				Name: name, HogQL: schema.QuotedName(name), Type: "field_traverser", Valid: true, Chain: []string{f.Name},
			})
		}
	}
	return fields
}

func schemaField(db *schema.Database, t *schema.Table, f *schema.Field) SchemaField {
	out := SchemaField{Name: f.Name, HogQL: schema.QuotedName(f.Name), Valid: true}
	switch {
	case f.Join != nil:
		out.Type, out.Table, out.ID = "lazy_table", f.Join.Table, f.Name
		if joined, ok := db.Table(f.Join.Table); ok {
			out.Fields = reachable(joined, joined.Fields, db.Field)
		}
	case f.Fields != nil:
		below := func(t *schema.Table, name string) (*schema.Field, bool) { return db.Below(t, f, name) }
		out.Type, out.Table, out.Fields = "virtual_table", t.Name, reachable(t, f.Fields, below)
	case f.Same != "":
		out.Type, out.Chain = "field_traverser", strings.Split(f.Same, ".")
	case f.Formula != nil && f.Type.Kind == hogql.Unknown:
		out.Type = "expression"
	default:
		out.Type = fieldType(f.Type.Kind)
	}
	return out
}

// reachable returns the names of the visible fields that find knows.
func reachable(t *schema.Table, fields []schema.Field, find func(*schema.Table, string) (*schema.Field, bool)) []string {
	names := []string{}
	for i := range fields {
		if f, ok := find(t, fields[i].Name); ok && !f.Hidden {
			names = append(names, f.Name)
		}
	}
	return names
}

// fieldType returns PostHog's word for a type. It has none for UUID, which it calls a string.
func fieldType(kind hogql.Kind) string {
	switch kind {
	case hogql.String, hogql.UUID:
		return "string"
	case hogql.Int:
		return "integer"
	case hogql.Float:
		return "float"
	case hogql.Decimal:
		return "decimal"
	case hogql.Bool:
		return "boolean"
	case hogql.DateTime:
		return "datetime"
	case hogql.Date:
		return "date"
	case hogql.JSON:
		return "json"
	case hogql.ArrayKind:
		return "array"
	case hogql.Unknown, hogql.Null, hogql.IntervalKind, hogql.TupleKind, hogql.MapKind, hogql.State:
	}
	return "unknown"
}
