package schema_test

import (
	"slices"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// TestInformation checks that the rows of information_schema have a value for each column, and that its data types are described, once each.
func TestInformation(t *testing.T) {
	t.Parallel()
	rows := map[string][][]any{}
	for _, name := range []string{"tables", "columns", "relationships", "data_types", "metrics"} {
		full := "system.information_schema." + name
		table, held := schema.LookupHeld(full)
		found, known := own.Information(full)
		if !held || !known {
			t.Fatalf("%s is missing", full)
		}
		for _, row := range found {
			if len(row) != len(table.Fields) {
				t.Errorf("%s has %d columns, but a row has %d values: %v", full, len(table.Fields), len(row), row)
			}
		}
		rows[name] = found
	}
	if len(rows["metrics"]) != 0 {
		t.Errorf("there are metrics: %v", rows["metrics"])
	}
	var described []string
	for _, row := range rows["data_types"] {
		described = append(described, row[0].(string))
	}
	if slices.Sort(described); len(slices.Compact(slices.Clone(described))) != len(described) {
		t.Errorf("a type is described twice: %v", described)
	}
	seen := 0
	for _, row := range rows["columns"] {
		seen++
		if typ := row[4].(string); !slices.Contains(described, typ) {
			t.Errorf("the type %s of %s.%s is not described", typ, row[1], row[2])
		}
	}
	if seen < 50 {
		t.Errorf("only %d columns are listed", seen)
	}
}
