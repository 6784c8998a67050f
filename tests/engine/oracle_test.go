package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
)

// Two projects whose events lie in the same granules: ours are all numbers, theirs all words.
const (
	ours   = 101
	theirs = 102
)

// TestForeignRowsAreNotEvaluated runs expressions that fail on another project's rows. An error would tell something of
// those rows, and its text could quote them; so the project's filter has to come before anything that its author wrote.
func TestForeignRowsAreNotEvaluated(t *testing.T) {
	fill(t)
	conditions := []string{
		"distinct_id::int >= 0",
		"event::int >= 0",
		"properties.v::int >= 0",
		"toInt(properties.v) is not null and distinct_id::int >= 0",
		"event::int >= 0 and properties.v::int >= 0 and distinct_id::int >= 0",
		"event::int >= 0 or distinct_id::int >= 0",
		"intDiv(1, 8 - length(distinct_id)) >= 0",
		"timestamp > '2020-01-01' and event::int >= 0",
		"event in (select toString(event::int) from events)",
	}
	for _, text := range []string{
		"select count() from events a join events b on a.event::int = b.event::int",
		"select count() from events a right join events b on a.event::int = b.distinct_id::int where b.event::int >= 0",
		"select count() from events a full join events b on a.event::int = b.event::int where a.event::int + b.event::int >= 0",
		"select count() from persons where toString(id)::text is not null and properties.v is null",
		"select count() from (select distinct_id::int as n from events union all select event::int from events) where n >= 0",
		"with e as (select event::int as n from events) select count() from e where n >= 0",
		"select count() from events where person_id is not null and event::int >= 0",
	} {
		t.Run(text, func(t *testing.T) { answers(t, text) })
	}
	for _, condition := range conditions {
		for _, shape := range []string{
			"select count() from events where %s",
			"select count() from events prewhere %s",
			"select countIf(%s) from events",
			"select count() from (select 1 from events where %s)",
			"select count() from (select if(%s, 1, 0) as x from events order by x)",
			"select count() from events a join events b on a.uuid = b.uuid where a.%s",
		} {
			text := fmt.Sprintf(shape, condition)
			if strings.Contains(shape, "a.%s") {
				if strings.Contains(condition, " ") && !strings.HasPrefix(condition, "event::int >= 0") && !strings.HasPrefix(condition, "distinct_id::int") {
					continue // the condition does not begin with the field
				}
				text = strings.NewReplacer(" event::", " a.event::", " properties.v::", " a.properties.v::", " distinct_id::", " a.distinct_id::").Replace(text)
			}
			t.Run(text, func(t *testing.T) { answers(t, text) })
		}
	}
}

// answers runs a query of one row that is not zero.
func answers(t *testing.T, text string) {
	t.Helper()
	compiled := compile(t, text)
	params := make([]clickhouse.Param, len(compiled.Params))
	for i, p := range compiled.Params {
		params[i] = clickhouse.Param(p)
	}
	var rows rowCollector
	_, err := client.Query(t.Context(), clickhouse.Query{SQL: compiled.SQL, Params: params, Project: ours}, &rows)
	if err != nil {
		t.Fatalf("%v (%v)\n%s", err, errors.Unwrap(err), compiled.SQL)
	}
	if len(rows) != 1 || rows[0] == "[0]" || strings.Contains(rows[0], "word") {
		t.Errorf("rows %v", rows)
	}
}

// fill writes both projects' events, and merges them into one part.
func fill(t *testing.T) {
	t.Helper()
	for _, p := range []struct {
		project int64
		form    string
	}{{ours, "%d"}, {theirs, "word-%d"}} {
		var lines strings.Builder
		for i := range 300 {
			value := fmt.Sprintf(p.form, i)
			fmt.Fprintf(&lines, `{"event":%[1]q,"distinct_id":%[1]q,"timestamp":"2024-01-01T00:00:00Z","properties":{"v":%[1]q}}`+"\n", value)
		}
		options := ingest.Options{Project: p.project, Now: time.Now()}
		if report, err := ingest.New(client).Import(t.Context(), options, ingesttest.Lines(lines.String())); err != nil || report.Bad > 0 {
			t.Fatalf("importing: %v: %+v", err, report)
		}
	}
	conn := embeddedtest.Connect(t, dsn)
	if err := conn.Exec(t.Context(), "OPTIMIZE TABLE events FINAL"); err != nil {
		t.Fatal(err)
	}
	var parts uint64
	err := conn.QueryRow(t.Context(), "SELECT count() FROM system.parts WHERE active AND table = 'events' AND rows >= 600").Scan(&parts)
	if err != nil || parts == 0 {
		t.Fatalf("the projects' events are not in one part: %d, %v", parts, err)
	}
}

func compile(t *testing.T, text string) *compiler.Compiled {
	t.Helper()
	db := &schema.Database{Project: ours, Location: time.UTC, Layout: schema.NativeLayout()}
	compiled, err := compiler.Compile(&query.HogQL{Query: text}, compiler.Env{Database: db, Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// rowCollector keeps the rows as text.
type rowCollector []string

func (*rowCollector) Columns([]clickhouse.Column) error { return nil }

func (r *rowCollector) Row(row []byte) error {
	*r = append(*r, string(row))
	return nil
}
