// Package engine_test runs what the compiler prints on the real engine, without the server around it.
package engine_test

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/clickhousetest"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/internal/sqllayout"
)

// project is the one that the golden files are compiled for.
const project = 7

var (
	client *clickhouse.Client
	dsn    string // of the engine
)

func TestMain(m *testing.M) {
	clickhousetest.Main(m, func(e *embedded.Engine, c *clickhouse.Client) { dsn, client = e.DSN(), c })
}

// nothing takes a result that nobody looks at.
type nothing struct{}

func (nothing) Columns([]clickhouse.Column) error { return nil }
func (nothing) Row([]byte) error                  { return nil }

// TestEngineTakesGoldenSQL runs every golden SQL on our own tables, which are empty. Cases with columns of their own are for
// servers that keep properties otherwise.
func TestEngineTakesGoldenSQL(t *testing.T) {
	files, err := filepath.Glob("../../compiler/testdata/*/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, file := range files {
		sections := read(t, file)
		if sections["sql"] == "" || strings.Contains(sections["env"], `"columns"`) {
			continue
		}
		ran++
		t.Run(filepath.Base(filepath.Dir(file))+"/"+strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			q := clickhouse.Query{SQL: sqllayout.Joined(sections["sql"]), Params: params(t, sections["args"]), Project: project}
			if _, err := client.Query(t.Context(), q, nothing{}); err != nil {
				t.Errorf("%v (%v)\n%s", err, errors.Unwrap(err), q.SQL)
			}
		})
	}
	if ran < 50 {
		t.Errorf("only %d golden files hold SQL", ran)
	}
}

func read(t *testing.T, file string) map[string]string {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, section := range archive.Files {
		sections[section.Name] = string(section.Data)
	}
	return sections
}

// params reads the lines of the section args: name, type and quoted value.
func params(t *testing.T, text string) []clickhouse.Param {
	t.Helper()
	var out []clickhouse.Param
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		typ, quoted, _ := strings.Cut(rest, ` "`)
		value, err := strconv.Unquote(`"` + quoted)
		if err != nil {
			t.Fatalf("parameter %s: %v", line, err)
		}
		out = append(out, clickhouse.Param{Name: name, Type: typ, Value: value})
	}
	return out
}
