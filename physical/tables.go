package physical

import (
	"slices"
	"strconv"
)

// Version counts the changes of Tables: version 2 came with cohorts, the index of sessions and settings for rare paths, version 3 with the logs.
// clickhouse.Client.Migrate adds what a table of an earlier version lacks; any other change needs a step of its own there.
const Version = 3

// Tables are all tables, in the order in which they are created. They are shared: never change one.
var Tables = inTables([]Table{
	{
		Name:      Events,
		Engine:    "ReplacingMergeTree(_timestamp)",
		Order:     "team_id, toDate(timestamp), event, cityHash64(distinct_id), cityHash64(uuid)",
		Partition: yearly,
		Sample:    "cityHash64(distinct_id)", // samples people, with all of their events
		Tuning:    []Setting{compactParts},
		Columns: slices.Concat([]Column{
			{Name: "uuid", Type: id},
			{Name: "event", Type: word},
			{Name: "properties", Type: eventJSON},
			{Name: "timestamp", Type: moment},
			{Name: Project, Type: number},
			{Name: "distinct_id", Type: text},
			{Name: "elements_chain", Type: text},
			{Name: "created_at", Type: moment},
			{Name: "person_id", Type: id},
			{Name: "person_created_at", Type: moment},
			{Name: "person_properties", Type: personJSON},
			{Name: "person_mode", Type: "Enum8('full' = 0, 'propertyless' = 1, 'force_upgrade' = 2)"},
		}, groupColumns(), []Column{
			{Name: "$session_id", Type: text},
			{Name: "$window_id", Type: text},
			materialized("elements_chain_href", text, `extract(elements_chain, '[:"]href="([^"]*)"')`),
			materialized("elements_chain_texts", texts, `arrayDistinct(extractAll(elements_chain, '[:"]text="([^"]*)"'))`),
			materialized("elements_chain_ids", texts, `arrayDistinct(extractAll(elements_chain, '[:"]attr_id="([^"]*)"'))`),
			materialized("elements_chain_elements", texts,
				`arrayDistinct(extractAll(elements_chain, '(?:^|;)(a|button|form|input|select|textarea|label)(?:[.:;]|$)'))`),
			written, offset,
			{Name: "inserted_at", Type: "Nullable(DateTime64(6, 'UTC'))", DefaultKind: "DEFAULT", DefaultExpression: "now64(6)"},
		}),
		Indexes: []string{sessionIndex},
	},
	{
		Name:   Persons,
		Engine: "ReplacingMergeTree(version)",
		Order:  "team_id, id",
		Columns: []Column{
			{Name: "id", Type: id},
			{Name: "created_at", Type: moment},
			{Name: Project, Type: number},
			{Name: "properties", Type: personJSON},
			{Name: "is_identified", Type: flag},
			{Name: "is_deleted", Type: flag},
			{Name: "version", Type: "UInt64"},
			createdGiven, written, offset,
		},
	},
	distinctIDs("person_distinct_id2"),
	distinctIDs(Overrides),
	{
		Name:   "groups",
		Engine: "ReplacingMergeTree(_timestamp)",
		Order:  "team_id, group_type_index, group_key",
		Columns: []Column{
			{Name: "group_type_index", Type: "UInt8"},
			{Name: "group_key", Type: text},
			{Name: "created_at", Type: moment},
			{Name: Project, Type: number},
			{Name: "group_properties", Type: groupJSON},
			createdGiven, written, offset,
		},
	},
	{
		Name:   ComputedMembers,
		Engine: "CollapsingMergeTree(sign)",
		Order:  "team_id, cohort_id, person_id, version",
		Columns: []Column{
			{Name: "person_id", Type: id},
			{Name: "cohort_id", Type: number},
			{Name: Project, Type: number},
			{Name: "sign", Type: flag},
			{Name: "version", Type: "UInt64"},
		},
		Optional: true,
	},
	{
		Name:   StaticMembers,
		Engine: "ReplacingMergeTree(_timestamp)",
		Order:  "team_id, cohort_id, person_id, id",
		Columns: []Column{
			{Name: "id", Type: id},
			{Name: "person_id", Type: id},
			{Name: "cohort_id", Type: number},
			{Name: Project, Type: number},
			written, offset,
		},
		Optional: true,
	},
	{
		Name:      QueryLog,
		Engine:    "MergeTree",
		Order:     "team_id, event_time",
		Partition: "toDate(event_time)",
		TTL:       ofLog("event_time"),
		Settings:  wholeDays,
		Columns: []Column{
			{Name: Project, Type: number},
			{Name: "id", Type: id},
			{Name: "event_time", Type: moment},
			{Name: "event_date", Type: "Date", DefaultKind: "DEFAULT", DefaultExpression: "toDate(event_time)"},
			{Name: "query_id", Type: text},
			{Name: "query_start_time", Type: moment},
			{Name: "query_duration_ms", Type: number},
			{Name: "kind", Type: word},
			{Name: "query", Type: text},
			{Name: "name", Type: text},
			{Name: "endpoint", Type: text},
			{Name: "endpoint_version", Type: number},
			{Name: "key_id", Type: text},
			{Name: "customer", Type: text},
			{Name: "created_by", Type: number},
			{Name: "is_personal_api_key_request", Type: number},
			{Name: "read_rows", Type: number, DefaultKind: "DEFAULT", DefaultExpression: "0"},
			{Name: "read_bytes", Type: number, DefaultKind: "DEFAULT", DefaultExpression: "0"},
			{Name: "result_rows", Type: number},
			{Name: "result_bytes", Type: number},
			{Name: "memory_usage", Type: "Nullable(Int64)"},
			{Name: "status", Type: word},
			{Name: "exception_code", Type: number},
			{Name: "exception", Type: word},
		},
		Indexes:  []string{"INDEX query_id query_id TYPE bloom_filter(0.01) GRANULARITY 1"},
		Optional: true,
	},
	{
		Name:      RunLog,
		Engine:    "MergeTree",
		Order:     "team_id, entry, endpoint_id, at",
		Partition: "toDate(at)",
		TTL:       ofLog("at"),
		Settings:  wholeDays,
		Columns: []Column{
			{Name: Project, Type: number},
			// An entry of type run is one run; a count is the number of runs in five minutes with the same outcome and duration.
			{Name: "entry", Type: "Enum8('run' = 0, 'count' = 1)"},
			{Name: "endpoint_id", Type: text},
			{Name: "at", Type: moment},
			// The origin of the row, and its number there: that of the run, or of the batch of counts.
			{Name: "origin", Type: id},
			{Name: "sequence", Type: number},
			{Name: "version", Type: number},
			{Name: "key_id", Type: text},
			{Name: "customer", Type: text},
			// Only for runs.
			{Name: "took", Type: number}, // µs
			{Name: "execution_id", Type: id},
			{Name: "status", Type: number},
			{Name: "cache", Type: word},
			{Name: "result_rows", Type: number},
			{Name: "code", Type: word},
			// Only for counts.
			{Name: "outcome", Type: word},
			{Name: "duration", Type: number},
			{Name: "calls", Type: number},
		},
		Optional: true,
	},
})

// ofLog returns the TTL of a log, by the column with its time.
func ofLog(column string) string {
	return "toDateTime(" + column + ") + toIntervalDay(" + strconv.Itoa(LogDays) + ")"
}

// wholeDays makes ClickHouse drop the parts of a day when all of its rows are too old, instead of rewriting them.
const wholeDays = "ttl_only_drop_parts = 1"

// The types of columns.
const (
	text   = "String"
	word   = "LowCardinality(String)"
	texts  = "Array(String)"
	id     = "UUID"
	moment = "DateTime64(6, 'UTC')"
	number = "Int64"
	flag   = "Int8"

	// The number of paths that get a column of their own. Rarer paths share one.
	eventJSON  = "JSON(max_dynamic_paths=256)"
	personJSON = "JSON(max_dynamic_paths=128)"
	groupJSON  = "JSON(max_dynamic_paths=64)"
)

var (
	written = Column{Name: "_timestamp", Type: moment}
	offset  = Column{Name: "_offset", Type: "UInt64"}
	// createdGiven says whether created_at was given. Otherwise it is the time of the first event, and may still become earlier.
	createdGiven = Column{Name: "created_at_given", Type: "UInt8", DefaultKind: "DEFAULT", DefaultExpression: "0"}
)

// yearly gives events one partition per year. With one per month, as in PostHog, the import of a project's whole past writes up to a hundred small
// parts with every batch: for 50,000 events over 14 years, an insert took 3 times as long, and a query over all of them 4.5 times. The primary key
// finds a range of time at the same speed in either case; without partitions, old years could not be dropped at once.
const yearly = "toYear(timestamp)"

// sessionIndex finds the events of one session. Among 12 million events, that took 0.07 s with the index and 1 s without; it adds 0.5 % to the size
// of the table.
const sessionIndex = "INDEX session_id `$session_id` TYPE bloom_filter(0.01) GRANULARITY 1"

// compactParts keeps small parts in a few files. In a wide part, every path of a JSON column has a file or two, so each batch of captured events
// would make a thousand files, and each merge of them again. Inserts of 10,000 events took 0.73 of the engine's processor time when it was
// measured, with a limit of 256 MiB against the default of 10.
var compactParts = Setting{"min_bytes_for_wide_part", "134217728"}

func materialized(name, typ, expression string) Column {
	return Column{Name: name, Type: typ, DefaultKind: "MATERIALIZED", DefaultExpression: expression}
}

func groupColumns() []Column {
	var columns []Column
	for i := range GroupTypes {
		n := strconv.Itoa(i)
		columns = append(columns,
			Column{Name: "$group_" + n, Type: text},
			Column{Name: "group" + n + "_properties", Type: groupJSON},
			Column{Name: "group" + n + "_created_at", Type: moment})
	}
	return columns
}

func distinctIDs(name string) Table {
	return Table{
		Name:     name,
		Engine:   "ReplacingMergeTree(version)",
		Order:    "team_id, distinct_id",
		Settings: "index_granularity = 512",
		Columns: []Column{
			{Name: Project, Type: number},
			{Name: "distinct_id", Type: text},
			{Name: "person_id", Type: id},
			{Name: "is_deleted", Type: flag},
			{Name: "version", Type: number},
			written, offset,
			{Name: "_partition", Type: "UInt64"},
		},
	}
}

// inTables sets the table name of each column.
func inTables(tables []Table) []Table {
	for _, t := range tables {
		for i := range t.Columns {
			t.Columns[i].Table = t.Name
		}
	}
	return tables
}
