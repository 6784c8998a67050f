package clickhouse

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// guardedTables are the tables that have a team_id, our own and others of PostHog. Each query filters all of them
// by its project with additional_table_filters, whatever its SQL says.
var guardedTables = append(physical.Names(), "sharded_events", "events_json", "sharded_events_json", "events_recent",
	"raw_sessions", "sharded_raw_sessions", "raw_sessions_v3", "sharded_raw_sessions_v3")

// requiredSettings are those without which a query may not run.
var requiredSettings = []string{"additional_table_filters"}

// setting is one engine setting of a query.
type setting struct {
	name  string
	value any
}

// outputSettings give the rows the form of the contract (hogql.md, section 1). Times are asked for in ISO 8601
// and UTC, which no clock change makes ambiguous, and put into their zone here.
var outputSettings = []setting{
	{"date_time_output_format", "iso"},
	{"output_format_json_quote_64bit_integers", 0},
	{"output_format_json_quote_64bit_floats", 0},
	{"output_format_json_quote_denormals", 0},
	{"output_format_json_quote_decimals", 1},
	{"output_format_json_named_tuples_as_objects", 0},
	{"output_format_json_escape_forward_slashes", 0},
	{"output_format_json_map_as_array_of_tuples", 0},
	{"output_format_json_validate_utf8", 1},
	{"output_format_native_write_json_as_string", 1},
	{"json_type_escape_dots_in_keys", 1},
	{"session_timezone", "UTC"},
}

// dialectSettings fix what the dialect means (hogql.md, sections 10, 12 and 15).
var dialectSettings = []setting{
	{"transform_null_in", 1},
	{"join_use_nulls", 0},
	{"max_ast_elements", 4_000_000},
	{"max_expanded_ast_elements", 4_000_000},
	{"max_query_size", 64 << 20},
	{"max_bytes_before_external_group_by", 0},
	{"allow_experimental_join_condition", 1},
	{"use_hive_partitioning", 0},
	{"use_query_cache", 0},
	{"timeout_overflow_mode", "throw"},
	{"result_overflow_mode", "throw"},
	{"http_write_exception_in_output_format", 0},
	{"cancel_http_readonly_queries_on_client_close", 1},
	{"function_range_max_elements_in_block", 10_000_000}, // functions over longer arrays run for minutes without a look at the clock
}

// orderSettings make the engine take conditions in the order in which they stand: the project's filter first. Without
// them it may try an author's expression on another project's rows of the same granule, whose failure would tell
// something of those rows and quote them.
var orderSettings = []setting{
	{"allow_reorder_prewhere_conditions", 0},
	{"move_primary_key_columns_to_end_of_prewhere", 0},
	{"short_circuit_function_evaluation", "enable"},
}

// planSettings bound what costs more than it saves: looking for comparisons that follow from others (a < b and b < 5 make
// a < 5) takes a third of the time in which the SQL of a funnel is planned. The unit is parts of a query; small ones
// keep the search.
var planSettings = []setting{
	{"optimize_and_compare_chain_max_hash_work", 10_000},
}

// patternSettings bound the lists of patterns of multiMatchAny and its like, in bytes. The engine makes a machine of each list,
// which no limit of time ends (16 s for 90 kB), and keeps the machines of the last 500
// lists: at this bound half a megabyte each.
var patternSettings = []setting{
	{"max_hyperscan_regexp_length", 200},
	{"max_hyperscan_regexp_total_length", 2000},
}

// passedRows is how many rows a server should handle at once in a query whose result is passed on: what it needs for the result
// is some times as many. By default it takes sixteen times as many, and is no faster.
const passedRows = 4096

// settings puts together what is sent with a query. The server gets only settings that it knows.
func (c *Client) settings(ctx context.Context, s *server, q Query) driver.Settings {
	all := make(driver.Settings, len(outputSettings)+len(dialectSettings)+len(orderSettings)+len(planSettings)+len(patternSettings)+8)
	set := func(name string, value any) {
		if s.settings[name] {
			all[name] = value
		}
	}
	for _, e := range outputSettings {
		set(e.name, e.value)
	}
	for _, e := range dialectSettings {
		set(e.name, e.value)
	}
	for _, e := range orderSettings {
		set(e.name, e.value)
	}
	for _, e := range planSettings {
		set(e.name, e.value)
	}
	for _, e := range patternSettings {
		set(e.name, e.value)
	}
	set("max_execution_time", c.executionSeconds(ctx))
	set("max_memory_usage", int(c.config.MaxMemory))
	if q.Unbounded {
		set("max_block_size", passedRows)
	} else {
		set("max_result_rows", int(c.config.MaxResultRows))
		set("max_result_bytes", int(c.config.MaxResultBytes))
	}
	if q.Limit > 0 { // a server that did not know these would have to say so
		all["limit"] = q.Limit
	}
	if q.Offset > 0 {
		all["offset"] = q.Offset
	}
	if c.config.Embedded {
		c.setPriority(set, q)
	}
	// With readonly=1 no SETTINGS clause in a query's text can change what is set here. A user whose profile
	// says 2 may not lower it.
	set("readonly", 1)
	if s.readonly == "2" {
		set("readonly", 2)
	}
	if q.Comment != "" {
		set("log_comment", q.Comment)
	}
	if !q.system {
		set("additional_table_filters", tableFilters(c.database, q.Project))
	}
	return all
}

// Nice values of threads: answers from the cache come before queries, queries before those that yield.
const (
	niceQuery  = 5
	niceYields = 19
)

// setPriority lets the threads of a query run after those that matter more. On an idle machine it costs nothing.
func (c *Client) setPriority(set func(string, any), q Query) {
	switch {
	case !c.config.Priorities && q.Yields:
		set("max_threads", max(1, runtime.NumCPU()/2))
	case q.Yields:
		set("os_threads_nice_value_query", niceYields)
	case c.config.Priorities:
		set("os_threads_nice_value_query", niceQuery)
	}
}

// executionSeconds is the limit of the configuration, or what the caller's deadline leaves of it.
func (c *Client) executionSeconds(ctx context.Context) int {
	limit := c.config.MaxExecutionTime
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline))
	}
	return max(1, int(math.Ceil(limit.Seconds())))
}

// tableFilters is the value of additional_table_filters that confines a query to one project. It is made of
// a closed list of names, the configured database and a number.
func tableFilters(database string, project int64) string {
	filter := fmt.Sprintf("'%s = %d'", physical.Project, project)
	var b strings.Builder
	b.WriteByte('{')
	for i, table := range guardedTables {
		if i > 0 {
			b.WriteByte(',')
		}
		// The engine compares the name as it stands in the query with the short name (for tables of
		// the current database) and with the full one.
		b.WriteString(literal(table) + ":" + filter + "," + literal(database+"."+table) + ":" + filter)
	}
	b.WriteByte('}')
	return b.String()
}
