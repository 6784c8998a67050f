package engine_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// outside matches the functions that do something, or see more than their arguments: files, the network, other tables,
// the server, its users and settings.
var outside = regexp.MustCompile(`(?i)^(ai|arrowflight|addressTo|authenticated|blockNumber|buildId|catboost|cluster|connectionI|current(Database|Profiles|QueryID|` +
	`Roles|Schemas|User)|default(Profiles|Roles)|demangle|dict(Get|Has|IsIn)|displayName|enabled(Profiles|Roles)|errorCodeTo|evalML|executable|file|` +
	`fqdn|fuzz|generateRandom|generateSerial|getClient|getMacro|getMaxTable|getMergeTree|getOS|getServer|getSetting|global|hasColumnIn|` +
	`hasThreadFuzzer|hostName|initializeAggregation|initialQuery|isMergeTree|joinGet|logTrace|mergeTree|mysql|naiveBayes|neighbor|obfuscate|` +
	`partitionId|queryID|query_id|region|remote|revision|rowNumberIn|running|serverUUID|serverTimezone|shard|showCertificate|sleep|` +
	`tcpPort|throwIf|tid$|transaction(ID|Latest|Oldest)|uptime|url$|user$|version|zookeeper|` +
	`stem$|lemmatize|synonyms|detect|database$|schema$|timeSeries|rowNumber|blockS|dumpColumn|lowCardinality)`)

// clocks are the functions of the schema whose answer is not made of their arguments alone.
var clocks = []string{
	"now", "now64", "nowInBlock", "today", "yesterday", "rand", "rand32", "rand64", "randCanonical", "generateUUIDv4", "generateUUIDv7",
	"UTCTimestamp", "current_timestamp", "current_date", "curdate",
	"timezone",  // of the server, but a macro of ours
	"arrayJoin", // makes rows, of its argument
}

// names reads one column of the engine's own description.
func names(t *testing.T, sql string) []string {
	t.Helper()
	conn := embeddedtest.Connect(t, dsn)
	var list []string
	if err := conn.QueryRow(t.Context(), "SELECT groupArray(x) FROM ("+sql+")").Scan(&list); err != nil {
		t.Fatal(err)
	}
	if len(list) < 50 {
		t.Fatalf("%s gives only %d names", sql, len(list))
	}
	return list
}

// mistakes compiles a query that must not compile, and gives the mistakes.
func mistakes(t *testing.T, text string) diag.Errors {
	t.Helper()
	db := &schema.Database{Project: ours, Location: time.UTC, Layout: schema.NativeLayout()}
	compiled, err := compiler.Compile(&query.HogQL{Query: text}, compiler.Env{Database: db, Now: day})
	if err == nil {
		t.Errorf("%s\nis not refused, but printed as\n%s", text, compiled.SQL)
		return nil
	}
	list := compiler.Mistakes(err)
	if list == nil {
		t.Errorf("%s\nis a bug instead of a mistake: %v", text, err)
	}
	return list
}

// refused fails unless a query is refused because of a name in it.
func refused(t *testing.T, text string) {
	t.Helper()
	list := mistakes(t, text)
	if len(list) > 0 && !slices.ContainsFunc(list, func(e *diag.Error) bool { return e.Code == diag.QueryError }) {
		t.Errorf("%s\nis refused with %v %v, not %s", text, list[0].Code, list, diag.QueryError)
	}
}

// TestTableFunctionsAreRefused asks for each table function that the engine has.
func TestTableFunctionsAreRefused(t *testing.T) {
	for _, name := range names(t, "SELECT name AS x FROM system.table_functions") {
		shapes := []string{
			"select * from %s()", "select * from %s(1)", "select * from %s('a', 'b')", "select * from %s('a', 'b', 'c') as t",
			"select 1 from events e join %s('a') f on 1 = 1", "select 1 from events, %s(1, 2)", "select 1 from (select * from %s('a'))",
			"select 1 in (select 1 from %s('a'))", "with x as (select * from %s('a')) select * from x", "select 1 union all select 1 from %s('a')",
		}
		if name == "numbers" {
			shapes = []string{"select * from %s()", "select * from %s(1, 2, 3)", "select * from %s((select count() from events))"}
		}
		for _, shape := range shapes {
			refused(t, fmt.Sprintf(shape, "`"+name+"`"))
		}
	}
}

// TestForeignTablesAreRefused asks for each table of the engine's own databases.
func TestForeignTablesAreRefused(t *testing.T) {
	list := names(t, "SELECT database || '.' || name AS x FROM system.tables WHERE database IN ('system', 'information_schema', 'INFORMATION_SCHEMA')")
	db := &schema.Database{Layout: schema.NativeLayout()}
	for _, name := range list {
		if _, offered := db.Table(name); offered {
			continue // a virtual table of ours under that name
		}
		database, table, _ := strings.Cut(name, ".")
		refused(t, "select * from "+name)
		refused(t, "select * from `"+name+"`")
		refused(t, "select 1 from events e join "+name+" s on 1 = 1")
		refused(t, "select count() from events where event in "+name)
		if _, offered := db.Table(table); !offered {
			refused(t, "select * from "+table)
		}
		refused(t, "select "+database+"."+table+".name from events")
	}
}

// TestFunctionsOutsideTheListAreRefused calls each function of the engine that the schema does not offer.
func TestFunctionsOutsideTheListAreRefused(t *testing.T) {
	refusedNames := 0
	for _, name := range names(t, "SELECT name AS x FROM system.functions") {
		if _, offered := schema.LookupFunction(name); offered || !word.MatchString(name) {
			continue
		}
		refusedNames++
		for _, shape := range []string{"select %s()", "select %s(event) from events", "select 1 from events where %s('a', 1) = 1 or %[1]s(1)(2) > 0"} {
			text := fmt.Sprintf(shape, name)
			want := "Unsupported function call '" + name + "(...)'"
			list := mistakes(t, text)
			if len(list) > 0 && !slices.ContainsFunc(list, func(e *diag.Error) bool {
				return e.Code == diag.QueryError && strings.HasPrefix(e.Detail, want) || e.Code == diag.SyntaxError && keywords[strings.ToLower(name)]
			}) {
				t.Errorf("%s\nis refused with %v, not %s", text, list, want)
			}
		}
	}
	if refusedNames < 300 {
		t.Errorf("only %d functions are refused: the test shows too little", refusedNames)
	}
}

// word matches what can be called: the operators have names of the same form.
var word = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// keywords are functions of the engine whose names are no names in the dialect.
var keywords = map[string]bool{"cast": true}

// TestNothingOutsideIsOffered goes through what the compiler may print: nothing that does something or sees more than its
// arguments, whatever a row of the schema calls it.
func TestNothingOutsideIsOffered(t *testing.T) {
	aliases := map[string]string{}
	for _, pair := range names(t, "SELECT name || ' ' || alias_to AS x FROM system.functions") {
		name, original, _ := strings.Cut(pair, " ")
		aliases[name] = original
	}
	for f := range schema.Functions() {
		if f.Rule == schema.RuleMacro { // it has nothing but functions of the table
			continue
		}
		for _, name := range []string{f.Name, f.ClickHouse(), aliases[f.ClickHouse()]} {
			if outside.MatchString(name) {
				t.Errorf("%s, printed %s, an alias of %q, looks as if it saw more than its arguments", f.Name, f.ClickHouse(), aliases[f.ClickHouse()])
			}
		}
	}
	shady := names(t, "SELECT name AS x FROM system.functions WHERE deterministic = 0 OR categories IN ("+
		"'AI', 'Dictionary', 'Embedded Dictionary', 'Encryption', 'Internal', 'Introspection', 'Machine Learning', 'Random Number', 'UDF')")
	for _, name := range slices.Sorted(maps.Keys(aliases)) {
		if outside.MatchString(name) {
			shady = append(shady, name)
		}
	}
	for _, name := range shady {
		if schema.NativeFunction(name) && !slices.Contains(clocks, name) {
			t.Errorf("the compiler may print %s, which is not made of its arguments alone", name)
		}
	}
}

// TestOtherStatementsAreRefused: the grammar has one SELECT and nothing else.
func TestOtherStatementsAreRefused(t *testing.T) {
	for _, text := range []string{
		"insert into events values (1)", "insert into events select * from events", "drop table events", "truncate table events",
		"alter table events delete where 1", "create table t (a Int8) engine = Memory", "create view v as select 1", "rename table a to b",
		"show tables", "show create table events", "describe events", "describe table events", "desc events", "explain select 1", "explain ast select 1",
		"set max_threads = 1", "set role x", "use system", "system shutdown", "kill query where 1", "optimize table events final", "attach table t", "detach table t",
		"grant select on *.* to x", "revoke all from x", "backup table events to File('a')", "restore table events from File('a')", "exists table events",
		"check table events", "begin transaction", "commit", "delete from events where 1", "update events set a = 1 where 1", "watch v", "undrop table t",
		"exchange tables a and b", "select 1; select 2", "select 1;; ", "select 1; drop table events", "select 1 select 2", "select 1 union select 2; select 3",
		"select 1 settings max_threads = 1", "select 1 from events settings additional_table_filters = {}", "select 1 limit 1 settings readonly = 0",
		"select * from (select 1 settings max_threads = 1)", "with x as (select 1 settings readonly = 0) select * from x",
		"select 1 format JSON", "select 1 limit 1 format Null", "select 1 into outfile 'x'", "select 1 into outfile '/tmp/x' format CSV",
		"select 1 from events final", "select 1 from events as e final", "select 1 from events e final where 1", "select 1 from events e join events f final on 1 = 1",
		"select 1 from events qualify 1", "values (1)", "select * from values ('a Int8', 1)", "from events select 1", "parallel with select 1",
		"select 1 where {x: Int8} = 1 settings param_x = 1", "select 1 as `x` format `JSON`", "(select 1) settings readonly = 0", "((select 1) format CSV)",
		"select 1\x00; drop table events", "select 1 -- \n; drop table events", "select 1 /* */ ; /* */ select 2",
	} {
		t.Run(text, func(t *testing.T) {
			if list := mistakes(t, text); len(list) > 0 && list[0].Code != diag.SyntaxError && list[0].Code != diag.QueryError {
				t.Errorf("refused with %v", list)
			}
		})
	}
}
