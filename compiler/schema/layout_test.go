package schema_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

func TestLayoutProperty(t *testing.T) {
	const fills = `replaceRegexpAll(JSONExtractRaw(properties, 'it\'s'), '^"|"$', '')`
	posthog := []physical.Column{
		{Table: "events", Name: "properties", Type: "String"},
		{Table: "events", Name: "person_properties", Type: "String"},
		{Table: "events", Name: "mat_$browser", Type: "String", Comment: "column_materializer::$browser"},
		{Table: "events", Name: "mat_url", Type: "Nullable(String)", Comment: "column_materializer::properties::url"},
		{Table: "events", Name: "mat_off", Type: "String", Comment: "column_materializer::properties::off::disabled"},
		{Table: "events", Name: "mat_colons", Type: "String", Comment: "column_materializer::properties::a::b"},
		{Table: "events", Name: "mat_pp_email", Type: "String", Comment: "column_materializer::person_properties::email"},
		{Table: "events", Name: "elements_chain_href", Type: "String", Comment: "column_materializer::elements_chain::href"},
		{Table: "events", Name: "mat_number", Type: "Float64", Comment: "column_materializer::properties::number"},
		{Table: "events", Name: "both_text", Type: "String", Comment: "column_materializer::properties::both"},
		{Table: "events", Name: "both_null", Type: "Nullable(String)", Comment: "column_materializer::properties::both"},
		{Table: "events", Name: "both_text_too", Type: "String", Comment: "column_materializer::properties::both"},
		{Table: "events", Name: "own", Type: "String", DefaultKind: "MATERIALIZED", DefaultExpression: fills},
		{
			Table: "events", Name: "own_null", Type: "Nullable(String)", DefaultKind: "MATERIALIZED",
			DefaultExpression: "JSONExtract(properties, 'n', 'Nullable(String)')",
		},
		{Table: "events", Name: "own_default", Type: "Nullable(String)", DefaultKind: "DEFAULT", DefaultExpression: "JSONExtract(properties, 'd', 'Nullable(String)')"},
		{Table: "secrets", Name: "properties", Type: "JSON", Comment: "column_materializer::properties::x"},
	}
	native := []physical.Column{{Table: "events", Name: "properties", Type: "JSON(max_dynamic_paths=256)"}}
	inText := schema.Storage{Kind: schema.StringColumn, Column: "properties"}
	tests := []struct {
		name, column, property string
		columns                []physical.Column
		want                   schema.Storage
	}{
		{"text", "properties", "x", posthog, inText},
		{"old comment", "properties", "$browser", posthog, schema.Storage{Kind: schema.Materialized, Column: "mat_$browser"}},
		{"nullable", "properties", "url", posthog, schema.Storage{Kind: schema.Materialized, Column: "mat_url", Nullable: true}},
		{"disabled", "properties", "off", posthog, inText},
		{"colons in the name", "properties", "a::b", posthog, schema.Storage{Kind: schema.Materialized, Column: "mat_colons"}},
		{"of persons", "person_properties", "email", posthog, schema.Storage{Kind: schema.Materialized, Column: "mat_pp_email"}},
		{"not of persons", "properties", "email", posthog, inText},
		{"of a column that is not JSON", "properties", "href", posthog, inText},
		{"no text", "properties", "number", posthog, inText},
		{"nullable goes first", "properties", "both", posthog, schema.Storage{Kind: schema.Materialized, Column: "both_null", Nullable: true}},
		{"by its expression", "properties", "it's", posthog, schema.Storage{Kind: schema.Materialized, Column: "own"}},
		{"nullable by its expression", "properties", "n", posthog, schema.Storage{Kind: schema.Materialized, Column: "own_null", Nullable: true}},
		{"a default may be overruled", "properties", "d", posthog, inText},
		{"native", "properties", "x", native, schema.Storage{Kind: schema.NativeJSON, Column: "properties"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := schema.NewLayout(tt.columns).Property("events", tt.column, tt.property)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Property(events, %s, %s) (-want +got):\n%s", tt.column, tt.property, diff)
			}
		})
	}
	if schema.NewLayout(posthog).Has("secrets", "properties") {
		t.Error("a table that is not physical is part of the layout")
	}
}

func TestLayoutZone(t *testing.T) {
	tests := []struct{ typ, want string }{
		{"DateTime64(6, 'UTC')", "UTC"},
		{"Nullable(DateTime('Asia/Tokyo'))", "Asia/Tokyo"},
		{"DateTime64(6)", ""},
		{"Enum8('full' = 0, 'propertyless' = 1)", ""},
		{"String", ""},
	}
	for _, tt := range tests {
		l := schema.NewLayout([]physical.Column{{Table: "events", Name: "c", Type: tt.typ}})
		if got := l.ColumnZone("events", "c"); got != tt.want {
			t.Errorf("ColumnZone of %s = %q, want %q", tt.typ, got, tt.want)
		}
	}
}
