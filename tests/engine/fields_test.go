package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// TestEveryField selects every field of every table on the engine, and those of the tables that it leads to, in each mode of
// persons: a formula that ClickHouse refuses cannot hide.
func TestEveryField(t *testing.T) {
	zone, err := time.LoadLocation("Asia/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	for name, mode := range schema.PersonModes {
		t.Run(name, func(t *testing.T) {
			db := &schema.Database{
				Project: project, Location: zone, Modifiers: schema.Modifiers{Persons: mode}, GroupTypes: map[string]int{"team": 2},
			}
			ran := 0
			for table := range db.TableNames() {
				for _, field := range columnsOf(t, db, table) {
					ran++
					selects(t, compiler.Env{Database: db}, "select "+field+" from "+table)
				}
			}
			if ran < 150 {
				t.Errorf("only %d fields", ran)
			}
		})
	}
}

// columnsOf lists the columns of a table, and those one table below.
func columnsOf(t *testing.T, db *schema.Database, name string) []string {
	t.Helper()
	table, ok := db.Table(name)
	if !ok {
		t.Fatalf("no table %s", name)
	}
	var out []string
	for field := range db.FieldNames(table) {
		f, ok := db.Field(table, field)
		switch {
		case !ok:
			t.Errorf("%s lists %s, which it has not", name, field)
		case f.IsColumn():
			out = append(out, field)
		case f.Fields != nil:
			for i := range f.Fields {
				out = append(out, field+"."+f.Fields[i].Name)
			}
		case f.Join != nil && field == f.Join.Name:
			joined, _ := db.Table(f.Join.Table)
			for below := range db.FieldNames(joined) {
				if b, _ := db.Field(joined, below); b.IsColumn() {
					out = append(out, field+"."+below)
				}
			}
		}
	}
	return out
}

func selects(t *testing.T, env compiler.Env, text string) {
	t.Helper()
	env.Now = time.Now()
	compiled, err := compiler.Compile(&query.HogQL{Query: text}, env)
	if err != nil {
		t.Errorf("%s: %v", text, err)
		return
	}
	params := make([]clickhouse.Param, len(compiled.Params))
	for i, p := range compiled.Params {
		params[i] = clickhouse.Param(p)
	}
	if _, err := client.Query(t.Context(), clickhouse.Query{SQL: compiled.SQL, Params: params, Project: project}, nothing{}); err != nil {
		t.Errorf("%s: %v\n%s", text, err, strings.TrimSpace(compiled.SQL))
	}
}
