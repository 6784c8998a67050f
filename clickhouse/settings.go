package clickhouse

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// guardedTables are the tables that have a team_id, our own and others of PostHog. Each query filters all of them
// by its project with additional_table_filters, whatever its SQL says.
var guardedTables = append(physical.Names(), "sharded_events", "events_json", "sharded_events_json", "events_recent",
	"raw_sessions", "sharded_raw_sessions", "raw_sessions_v3", "sharded_raw_sessions_v3")

// requiredSettings are the settings that a server must know.
var requiredSettings = []string{"additional_table_filters"}

// setting is a ClickHouse setting of a query.
type setting struct {
	name  string
	value any
}

// outputSettings give rows PostHog's format. The server sends times in ISO 8601 and UTC, which clock changes do not make
// ambiguous; timeWriter converts them to their zone.
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
	{"output_format_parallel_formatting", 0}, // starting its threads takes more than a small result takes to format, and large ones gain nothing
	{"json_type_escape_dots_in_keys", 1},
	{"session_timezone", "UTC"},
}

// dialectSettings define the semantics of HogQL.
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
	{"function_range_max_elements_in_block", 10_000_000}, // functions over longer arrays run for minutes without checking the time
}

// orderSettings make the engine evaluate conditions in the order in which they are written, the project's filter first.
// Otherwise it might evaluate an author's expression on another project's rows in the same granule, and an error would
// reveal or quote them.
var orderSettings = []setting{
	{"allow_reorder_prewhere_conditions", 0},
	{"move_primary_key_columns_to_end_of_prewhere", 0},
	{"short_circuit_function_evaluation", "enable"},
}

// planSettings limit an optimization that costs more than it saves: deriving comparisons from others (a < b and b < 5 imply
// a < 5) takes a third of the planning time of a funnel. The unit is parts of a query; small queries keep the
// optimization.
var planSettings = []setting{
	{"optimize_and_compare_chain_max_hash_work", 10_000},
}

// patternSettings limit the lists of patterns of multiMatchAny and similar functions, in bytes. The engine compiles each list,
// which no time limit stops (16 s for 90 kB), and caches the last 500 compiled lists: half a megabyte each at this limit.
var patternSettings = []setting{
	{"max_hyperscan_regexp_length", 200},
	{"max_hyperscan_regexp_total_length", 2000},
}

// passedRows is the block size in rows of a query whose result is passed on. The server holds several blocks of the result. The
// default is sixteen times as large, and no faster.
const passedRows = 4096

// A query that does not fit into its memory moves data to the disk that also holds the tables. It may move movedShare times its memory there, and must
// leave minFreeDisk bytes free.
const (
	movedShare  = 16
	minFreeDisk = 1 << 30
)

// settings returns the settings of a query, without those that the server does not know.
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
	set("max_execution_time", c.executionSeconds(ctx, q.longest))
	set("max_memory_usage", int(c.config.MaxMemory))
	set("max_temporary_data_on_disk_size_for_query", int(min(c.config.MaxMemory, 1<<50)*movedShare))
	set("min_free_disk_space_for_temporary_data", minFreeDisk)
	if q.Unbounded {
		set("max_block_size", passedRows)
	} else {
		set("max_result_rows", int(c.config.MaxResultRows))
		set("max_result_bytes", int(c.config.MaxResultBytes))
	}
	if q.Limit > 0 { // a server that does not know these must return an error
		all["limit"] = q.Limit
	}
	if q.Offset > 0 {
		all["offset"] = q.Offset
	}
	if q.inOrder {
		set("optimize_aggregation_in_order", 1)
	}
	if c.config.Embedded {
		c.setPriority(set, q)
	}
	// With readonly=1, no SETTINGS clause in a query's text can change these settings. A user whose profile has
	// readonly=2 may not lower it.
	switch {
	case q.rights:
	case s.readonly == "2":
		set("readonly", 2)
	default:
		set("readonly", 1)
	}
	if q.Comment != "" {
		set("log_comment", q.Comment)
	}
	if !q.system {
		set("additional_table_filters", tableFilters(c.database, q.owners(), q.EventsFrom, q.Tables...))
	}
	return all
}

// Nice values of threads: cache hits come before queries, and queries before those that yield.
const (
	niceOfQueries  = 5
	niceOfYielding = 19
)

// setPriority lowers the priority of a query's threads. On an idle machine this costs nothing.
func (c *Client) setPriority(set func(string, any), q Query) {
	switch {
	case !c.config.Priorities && q.Yields:
		set("max_threads", max(1, runtime.GOMAXPROCS(0)/2))
	case q.Yields:
		set("os_threads_nice_value_query", niceOfYielding)
	case c.config.Priorities:
		set("os_threads_nice_value_query", niceOfQueries)
	}
}

// executionSeconds returns the query's own limit or else the configured one, or the time until the caller's deadline if that is shorter.
func (c *Client) executionSeconds(ctx context.Context, own time.Duration) int {
	limit := cmp.Or(own, c.config.MaxExecutionTime)
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline))
	}
	return max(1, int(math.Ceil(limit.Seconds())))
}

// owners returns the projects whose rows a query may see.
func (q Query) owners() []int64 {
	if q.projects != nil {
		return q.projects
	}
	return []int64{q.Project}
}

// tableFilters returns the value of additional_table_filters that restricts a query to projects, and to events from a time on; zero for all. It
// consists only of our own names, the configured database and numbers.
func tableFilters(database string, projects []int64, from time.Time, more ...string) string {
	numbers := make([]string, len(projects))
	for i, project := range projects {
		numbers[i] = strconv.FormatInt(project, 10)
	}
	ofProject := fmt.Sprintf("%s = %s", physical.Project, numbers[0])
	if len(numbers) > 1 {
		ofProject = fmt.Sprintf("%s IN (%s)", physical.Project, strings.Join(numbers, ","))
	}
	filter := "'" + ofProject + "'"
	var b strings.Builder
	b.WriteByte('{')
	if !from.IsZero() {
		// The engine takes the first entry that matches. The short name would also match other tables that a query gives this name, which have no
		// such column.
		fmt.Fprintf(&b, "%s:'%s AND timestamp >= fromUnixTimestamp64Micro(%d)',", literal(database+"."+physical.Events), ofProject, from.UnixMicro())
	}
	for i, table := range slices.Concat(guardedTables, more) {
		if i > 0 {
			b.WriteByte(',')
		}
		// The engine compares the name as written in the query with the short name (for tables of the current
		// database) and with the full name.
		b.WriteString(literal(table) + ":" + filter + "," + literal(database+"."+table) + ":" + filter)
	}
	b.WriteByte('}')
	return b.String()
}
