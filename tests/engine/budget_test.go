package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// TestEngineTakesHostileSQL runs what the compiler lets through of the queries that try to grow, on tables that are empty: the engine has
// to plan each in the end, whatever the compiler makes of it.
func TestEngineTakesHostileSQL(t *testing.T) {
	files, err := filepath.Glob("../../compiler/testdata/hostile/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	db := &schema.Database{Project: project, Location: time.UTC, Properties: schema.PropertyTypes{}, Cohorts: schema.NewCohorts([]schema.Cohort{{ID: 1, Name: "a", Version: 3}}, false)}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".sql"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			compiled, err := compiler.Compile(&query.HogQL{Query: string(text)}, compiler.Env{Database: db, Now: time.Now()})
			if err != nil {
				return // which the compiler's own tests look at
			}
			q := clickhouse.Query{SQL: compiled.SQL, Project: project}
			for _, p := range compiled.Params {
				q.Params = append(q.Params, clickhouse.Param(p))
			}
			const most = 30 * time.Second
			ctx, cancel := context.WithTimeout(t.Context(), most)
			defer cancel()
			began := time.Now()
			_, err = client.Query(ctx, q, nothing{})
			t.Logf("%d bytes of SQL: %s (%v)", len(q.SQL), time.Since(began).Round(time.Millisecond), err)
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the engine takes more than %s for %d bytes of SQL", most, len(q.SQL))
			}
		})
	}
}
