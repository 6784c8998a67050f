package ingest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// store is the tables of a project.
type store struct {
	client  *clickhouse.Client
	project int64
	now     time.Time        // of the import
	layout  map[string]table // by name
	// Called before each insert, if it is there: tests break off with it.
	inserting func(table string) error
}

// table holds the types of the columns that can be written.
type table map[string]string

// text is the expression that reads a JSON column as text.
func (t table) text(column string) string {
	if strings.HasPrefix(t[column], "JSON") {
		return "toJSONString(" + column + ")"
	}
	return column
}

// or is a column, or another expression where the table has no such column.
func (t table) or(column, other string) string {
	if t[column] == "" {
		return other
	}
	return column
}

func newStore(ctx context.Context, client *clickhouse.Client, project int64, now time.Time) (*store, error) {
	columns, err := client.PhysicalColumns(ctx)
	if err != nil {
		return nil, err
	}
	layout := map[string]table{}
	for _, c := range columns {
		if layout[c.Table] == nil {
			layout[c.Table] = table{}
		}
		if c.DefaultKind != "MATERIALIZED" && c.DefaultKind != "ALIAS" {
			layout[c.Table][c.Name] = c.Type
		}
	}
	for _, t := range physical.Tables {
		if layout[t.Name] == nil && !t.Optional {
			return nil, fmt.Errorf("the table %s is missing", t.Name)
		}
	}
	return &store{client: client, project: project, now: now, layout: layout}, nil
}

// query runs a SELECT that has the parameter project.
func (s *store) query(ctx context.Context, sql string, row func([]clickhouse.Cell) error, params ...clickhouse.Param) error {
	params = append(params, clickhouse.Param{Name: "project", Type: "Int64", Value: strconv.FormatInt(s.project, 10)})
	return s.client.Collect(ctx, clickhouse.Query{SQL: sql, Params: params, Project: s.project}, row)
}
