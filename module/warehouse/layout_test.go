package warehouse

import (
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// TestLayoutKnowsMaterializedColumns: a column that holds a property is recognized by its comment, or else by the expression that fills it.
func TestLayoutKnowsMaterializedColumns(t *testing.T) {
	db := &schema.Database{Project: 1, Layout: schema.NewLayout([]physical.Column{
		{Table: "events", Name: "properties", Type: "String"},
		{Table: "events", Name: "mat_plan", Type: "Nullable(String)", Comment: "column_materializer::properties::plan"},
		{
			Table: "events", Name: "own_city", Type: "Nullable(String)", DefaultKind: "MATERIALIZED",
			DefaultExpression: "JSONExtract(properties, 'city', 'Nullable(String)')",
		},
	})}
	events, _ := db.Table("events")
	properties, _ := db.Field(events, "properties")
	for property, want := range map[string]string{"plan": "mat_plan", "city": "own_city", "other": "properties"} {
		if got := db.Storage(events, properties, property); got.Column != want {
			t.Errorf("property %s is read from %q, want %q", property, got.Column, want)
		}
	}
}
