package module

import (
	"errors"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// TestLayoutKnowsMaterializedColumns: a column that holds a property is known by its comment, and without one by what fills it.
func TestLayoutKnowsMaterializedColumns(t *testing.T) {
	db := &schema.Database{Project: 1, Layout: layoutOf([]clickhouse.PhysicalColumn{
		{Table: "events", Name: "properties", Type: "String"},
		{Table: "events", Name: "mat_plan", Type: "Nullable(String)", Comment: "column_materializer::properties::plan"},
		{
			Table: "events", Name: "own_city", Type: "Nullable(String)", DefaultKind: "MATERIALIZED",
			DefaultExpression: "JSONExtract(properties, 'city', 'Nullable(String)')",
		},
	})}
	events, _ := db.Table("events")
	properties, _ := db.Field(events, "properties")
	for property, want := range map[string]string{"plan": "mat_plan", "city": "own_city", "other": "properties"} {
		if got := db.Storage(events, properties, property); got.Column != want {
			t.Errorf("property %s is read from %q, want %q", property, got.Column, want)
		}
	}
}

// TestReportLoad: of a panic the log has the place.
func TestReportLoad(t *testing.T) {
	core, logged := observer.New(zapcore.DebugLevel)
	app := &App{logger: zap.New(core)}
	app.reportLoad(cache.Key{}, &cache.PanicError{Value: "no such bucket", Stack: []byte("here")})
	app.reportLoad(cache.Key{}, errors.New("the server is gone"))
	app.reportLoad(cache.Key{}, throttled("Too many.", 0))
	var got []string
	for _, entry := range logged.All() {
		stack, _ := entry.ContextMap()["stack"].(string)
		got = append(got, strings.TrimSpace(entry.Message+" "+stack))
	}
	if want := "computing a result panicked here, a background refresh failed"; strings.Join(got, ", ") != want {
		t.Errorf("logged %q, want %q", got, want)
	}
}
