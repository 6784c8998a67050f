package schema

import (
	"iter"
	"maps"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// HeldTable is a table whose rows are not in ClickHouse: the caller of the compiler provides them with the query, only those of the project.
type HeldTable struct {
	Name   string
	Fields []HeldField
}

// HeldField is a column of a held table.
type HeldField struct {
	Name string
	// Type is the type of the values: Int (also for booleans, as 0 and 1), Float, String, UUID (as text), Date and DateTime (as RFC 3339 text) and
	// JSON (as text).
	Type hogql.Type
}

// Column types of held tables. All may be NULL, except for keys.
var (
	heldInt   = hogql.Type{Kind: hogql.Int, Nullable: true}
	heldFloat = hogql.Type{Kind: hogql.Float, Nullable: true}
	heldText  = hogql.Type{Kind: hogql.String, Nullable: true}
	heldUUID  = hogql.Type{Kind: hogql.UUID, Nullable: true}
	heldDate  = hogql.Type{Kind: hogql.Date, Nullable: true}
	heldTime  = hogql.Type{Kind: hogql.DateTime, Nullable: true}
	heldJSON  = hogql.Type{Kind: hogql.JSON, Nullable: true}
)

// heldTables are the tables by their name in queries (contract: clients-queries.md, section 8). query_log may be in ClickHouse: see
// Database.Holds.
var heldTables = makeHeld(
	HeldTable{"query_log", []HeldField{
		{"event_date", heldDate},
		{"event_time", heldTime},
		{"query_id", stringType},
		{"endpoint", stringType},
		{"name", stringType},
		{"query", stringType},
		{"kind", stringType},
		{"query_type", stringType},
		{"query_start_time", heldTime},
		{"query_duration_ms", intType},
		{"created_by", intType},
		{"read_rows", intType},
		{"read_bytes", intType},
		{"result_rows", intType},
		{"result_bytes", intType},
		{"memory_usage", heldInt},
		{"status", stringType},
		{"exception_code", intType},
		{"exception", stringType},
		{"is_personal_api_key_request", intType},
		{"endpoint_version", intType},
		{"key_id", stringType},
		{"customer", stringType},
	}},
	HeldTable{"system.insights", []HeldField{
		{"id", intType},
		{"short_id", stringType},
		{ProjectColumn, intType},
		{"name", heldText},
		{"description", heldText},
		{"filters", heldJSON},
		{"query", heldJSON},
		{"query_metadata", heldJSON},
		{"deleted", intType},
		{"saved", intType},
		{"favorited", intType},
		{"created_at", heldTime},
		{"created_by_id", heldInt},
		{"last_modified_at", heldTime},
		{"last_modified_by_id", heldInt},
		{"updated_at", heldTime},
	}},
	HeldTable{"system.dashboards", []HeldField{
		{"id", intType},
		{ProjectColumn, intType},
		{"name", heldText},
		{"description", stringType},
		{"created_at", heldTime},
		{"created_by_id", heldInt},
		{"deleted", intType},
		{"pinned", intType},
		{"filters", heldJSON},
		{"variables", heldJSON},
	}},
	HeldTable{"system.cohorts", []HeldField{
		{"id", intType},
		{ProjectColumn, intType},
		{"name", heldText},
		{"description", stringType},
		{"deleted", intType},
		{"filters", heldJSON},
		{"groups", heldJSON},
		{"query", heldJSON},
		{"created_at", heldTime},
		{"created_by_id", heldInt},
		{"last_calculation", heldTime},
		{"version", heldInt},
		{"count", heldInt},
		{"is_static", intType},
	}},
	HeldTable{"system.alerts", []HeldField{
		{"id", heldUUID},
		{ProjectColumn, intType},
		{"name", heldText},
		{"insight_id", intType},
		{"enabled", intType},
		{"state", stringType},
		{"calculation_interval", stringType},
		{"condition", heldJSON},
		{"config", heldJSON},
		{"created_at", heldTime},
		{"last_notified_at", heldTime},
		{"last_checked_at", heldTime},
		{"next_check_at", heldTime},
		{"snoozed_until", heldTime},
		{"skip_weekend", heldInt},
		{"schedule_restriction", heldJSON},
	}},
	HeldTable{"system.insight_variables", []HeldField{
		{"id", heldUUID},
		{ProjectColumn, intType},
		{"name", stringType},
		{"type", stringType},
		{"code_name", stringType},
		{"values", heldJSON},
		{"default_value", heldJSON},
		{"created_at", heldTime},
	}},
	HeldTable{"system.teams", []HeldField{
		{"id", intType},
		{ProjectColumn, intType},
		{"name", stringType},
		{"timezone", stringType},
		{"test_account_filters", heldJSON},
		{"created_at", heldTime},
		{"updated_at", heldTime},
	}},
	HeldTable{"system.information_schema.tables", []HeldField{
		{"table_catalog", stringType},
		{"table_schema", stringType},
		{"table_name", stringType},
		{"table_type", stringType},
		{"description", heldText},
		{"row_count", heldInt},
		{"certification", heldText},
	}},
	HeldTable{"system.information_schema.columns", []HeldField{
		{"table_schema", stringType},
		{"table_name", stringType},
		{"column_name", stringType},
		{"ordinal_position", intType},
		{"data_type", stringType},
		{"is_nullable", intType},
		{"is_array", intType},
		{"field_kind", stringType},
		{"description", heldText},
		{"null_fraction", heldFloat},
		{"min_value", heldText},
		{"max_value", heldText},
	}},
	HeldTable{"system.information_schema.relationships", []HeldField{
		{"source_table", stringType},
		{"source_column", stringType},
		{"target_table", stringType},
		{"target_column", heldText},
		{"relationship_kind", stringType},
		{"via", heldText},
		{"confidence", heldFloat},
		{"reasoning", heldText},
	}},
	HeldTable{"system.information_schema.data_types", []HeldField{
		{"type_name", stringType},
		{"description", stringType},
	}},
	HeldTable{"system.information_schema.metrics", []HeldField{
		{"id", stringType},
		{"name", stringType},
		{"display_name", heldText},
		{"description", stringType},
		{"unit", heldText},
		{"status", stringType},
		{"is_drifted", intType},
		{"definition", heldText},
		{"definition_kind", heldText},
		{"owner", heldText},
		{"confidence", heldFloat},
		{"reasoning", heldText},
		{"source_insight_short_id", heldText},
		{"last_run_at", heldText},
		{"created_at", stringType},
	}},
)

func makeHeld(list ...HeldTable) map[string]*HeldTable {
	m := make(map[string]*HeldTable, len(list))
	for i := range list {
		m[list[i].Name] = &list[i]
	}
	return m
}

// Holds finds a held table by its name, which may be dotted. It finds none if the table is in ClickHouse.
func (db *Database) Holds(name string) (*HeldTable, bool) {
	if t, ok := tables[name]; ok && db.Stored(t) {
		return nil, false
	}
	return LookupHeld(name)
}

// LookupHeld finds a held table by its name, which may be dotted.
func LookupHeld(name string) (*HeldTable, bool) {
	t, ok := heldTables[name]
	return t, ok
}

// HeldNames yields the names of the held tables, in no order.
func HeldNames() iter.Seq[string] { return maps.Keys(heldTables) }
