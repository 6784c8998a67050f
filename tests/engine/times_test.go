package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// TestTextsThatAreTimes compares which constant texts the compiler refuses beside a time with what the engine can read: it must
// refuse nothing that the engine reads.
func TestTextsThatAreTimes(t *testing.T) {
	texts := []string{
		"", " ", "yesterday", "now", "noon", "Z", "UTC", "-", "Jan", "may", "Mon", "Mon Jan", "12:30", "1704067200", "1704067200.5", "20240131", "20240131 12:00",
		"2024-01-31T12:00:00Z", "2024-01-31T12:00:00+02:00", "2024-01-31 12:00:00.123456789", "31 Jan 2024", "Jan 31 2024", "31/01/2024", "2024/01/31", "2024-1-31",
		"2024-01", "2024", "2024-13-45", "2024-13-45x", "tomorrow 12:00",
	}
	for month := range 15 {
		for _, day := range []int{0, 1, 28, 29, 30, 31, 32} {
			for _, form := range []string{"%04d-%02d-%02d", "%04d-%02d-%02d 12:00:00", "%04d-%02d-%02d 12:00:00.5", "%04d-%02d-%02dT12:00:00Z", "%04d-%02d-%02d 12:00"} {
				texts = append(texts, fmt.Sprintf(form, 2023, month, day), fmt.Sprintf(form, 2024, month, day))
			}
		}
	}
	db := &schema.Database{Project: ours, Location: time.UTC, Layout: schema.NativeLayout()}
	refused := 0
	for _, text := range texts {
		_, err := compiler.Compile(&query.HogQL{Query: "select now() > '" + text + "'"}, compiler.Env{Database: db, Now: day})
		if err == nil {
			continue
		}
		refused++
		for _, function := range []string{"parseDateTime64BestEffort", "toDateTime64"} {
			q := clickhouse.Query{SQL: "SELECT " + function + "({t:String}, 6, 'UTC')", Params: []clickhouse.Param{{Name: "t", Type: "String", Value: text}}, Project: ours}
			var rows rowCollector
			if _, err := client.Query(t.Context(), q, &rows); err == nil {
				t.Errorf("%q is refused, but %s reads %v", text, function, rows)
			}
		}
	}
	if refused < 20 {
		t.Errorf("only %d of %d texts are refused", refused, len(texts))
	}
}
