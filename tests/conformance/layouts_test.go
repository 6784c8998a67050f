package conformance_test

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/tests/conformance"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestLayouts runs the cases that read properties on tables like PostHog's, where properties are JSON strings: once with only
// these, and once with columns for single properties. TestCases runs them on native JSON.
func TestLayouts(t *testing.T) {
	pending := readPending(t)
	var cases []conformance.Case
	for _, folder := range []string{"hogql", "own_hogql", "own_insights", "own_semantics", "own_sessions"} {
		some, err := conformance.Load(filepath.Join("testdata", folder))
		if err != nil {
			t.Fatal(err)
		}
		cases = append(cases, slices.DeleteFunc(some, func(c conformance.Case) bool { return pending[c.Name] })...)
	}
	if len(cases) == 0 {
		t.Fatal("no cases in testdata")
	}
	engine := startEngine(t)
	for _, layout := range []struct {
		name  string
		alter []string
	}{
		{"strings", nil},
		{"materialized", materialize(cases)},
	} {
		dsn := engine.database(t, layout.name, layout.alter)
		server := harness.Start(t, "clickhouse "+dsn)
		t.Run(layout.name, func(t *testing.T) {
			for _, c := range cases {
				if layout.name == "materialized" && c.Name == holdsEscapes {
					continue
				}
				t.Run(c.Name, func(t *testing.T) {
					t.Parallel()
					if err := conformance.Play(server, c); err != nil {
						t.Errorf("%s\n%v", c.What, err)
					}
				})
			}
		})
	}
}

// holdsEscapes is the case that fails with a materialized column: PostHog fills the column with the JSON text, including
// escapes.
const holdsEscapes = "own_property_escapes"

// engine is a ClickHouse shared by several servers.
type engine struct {
	dsn    string
	tables map[string]string // the CREATE statements of this product's tables
}

func startEngine(t *testing.T) *engine {
	t.Helper()
	binary, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	child, err := embedded.Start(t.Context(), embedded.Config{DataDir: t.TempDir(), Command: []string{binary, embedded.Subcommand}}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := child.Close(); err != nil {
			t.Errorf("stopping the engine: %v", err)
		}
	})
	client, err := clickhouse.Open(clickhouse.Config{DSN: child.DSN()}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := client.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := &engine{dsn: child.DSN(), tables: map[string]string{}}
	e.connect(t, e.dsn, func(ctx context.Context, conn driver.Conn) error {
		var tables []struct {
			Name   string `ch:"name"`
			Create string `ch:"create_table_query"`
		}
		err := conn.Select(ctx, &tables, "SELECT name, create_table_query FROM system.tables WHERE database = currentDatabase()")
		for _, table := range tables {
			e.tables[table.Name] = table.Create
		}
		return err
	})
	return e
}

func (e *engine) connect(t *testing.T, dsn string, use func(context.Context, driver.Conn) error) {
	t.Helper()
	conn := embeddedtest.Connect(t, dsn)
	if err := use(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
}

var jsonType = regexp.MustCompile(`JSON\(max_dynamic_paths *= *\d+\)`)

// database creates a database with this product's tables, but with JSON as strings, alters them, and returns its DSN.
func (e *engine) database(t *testing.T, name string, alter []string) string {
	t.Helper()
	dsn, err := url.Parse(e.dsn)
	if err != nil {
		t.Fatal(err)
	}
	statements := []string{}
	texts := 0
	for table, create := range e.tables {
		create = strings.Replace(create, "CREATE TABLE "+embedded.Database+".", "CREATE TABLE "+name+".", 1)
		texts += len(jsonType.FindAllString(create, -1))
		statements = append(statements, jsonType.ReplaceAllString(create, "String"))
		if !strings.Contains(create, "CREATE TABLE "+name+".") {
			t.Fatalf("%s is not created as expected: %s", table, create)
		}
	}
	if texts < 9 { // properties of events, of their persons and groups, of persons and of groups
		t.Fatalf("only %d columns of JSON in %v", texts, e.tables)
	}
	e.connect(t, e.dsn, func(ctx context.Context, conn driver.Conn) error {
		return conn.Exec(ctx, "CREATE DATABASE "+name)
	})
	dsn.Path = "/" + name
	e.connect(t, dsn.String(), func(ctx context.Context, conn driver.Conn) error {
		for _, sql := range append(statements, alter...) {
			if err := conn.Exec(ctx, sql); err != nil {
				return fmt.Errorf("%w\n%s", err, sql)
			}
		}
		return nil
	})
	return dsn.String()
}

// materialize creates columns for properties in the cases, like PostHog: of every three properties,
// one gets a column of the older kind, which is not nullable, one gets a column of the newer kind, and one gets none.
func materialize(cases []conformance.Case) []string {
	ofEvents, ofPersons, ofGroups := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, c := range cases {
		collectNames(ofEvents, c.Data.Events)
		collectNames(ofPersons, c.Data.Persons)
		collectNames(ofGroups, c.Data.Groups)
	}
	return []string{
		materializeColumn("events", "properties", ofEvents),
		materializeColumn("events", "person_properties", ofPersons),
		materializeColumn("events", "group0_properties", ofGroups),
		materializeColumn("person", "properties", ofPersons),
		materializeColumn("groups", "group_properties", ofGroups),
	}
}

func collectNames(names map[string]bool, items []map[string]any) {
	for _, item := range items {
		properties, _ := item["properties"].(map[string]any)
		for name := range properties {
			names[name] = true
		}
	}
}

func materializeColumn(table, column string, names map[string]bool) string {
	quoted := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	var adds []string
	for i, name := range slices.Sorted(maps.Keys(names)) {
		literal := quoted.Replace(name)
		var definition string
		switch i % 3 {
		case 0:
			definition = fmt.Sprintf(`String MATERIALIZED replaceRegexpAll(JSONExtractRaw(%s, '%s'), '^"|"$', '')`, column, literal)
		case 1:
			definition = fmt.Sprintf(`Nullable(String) MATERIALIZED JSONExtract(%s, '%s', 'Nullable(String)')`, column, literal)
		default:
			continue
		}
		if i%2 == 0 { // the others are recognized by their expression
			definition += fmt.Sprintf(" COMMENT 'column_materializer::%s::%s'", column, literal)
		}
		adds = append(adds, fmt.Sprintf("ADD COLUMN mat_%s_%d %s", column, i, definition))
	}
	return "ALTER TABLE " + table + " " + strings.Join(adds, ", ")
}
