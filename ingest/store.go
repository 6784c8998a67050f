package ingest

import (
	"context"
	"errors"
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
	now     time.Time        // of the import, or of the delivery
	written time.Time        // when the batch began: cohorts that are filled meanwhile look for merges since
	epoch   int64            // see Deletions
	layout  map[string]table // by name
	// Shared by the deliveries; nil for an import.
	gathering *gathering
	reading   chan struct{} // has an element for each running query of a delivery
	seen      *seen         // of the project whose turn it is; nil if events are always looked up
	// Lookups fail with a tooLarge error if they find more than maxFound bytes. It is set while they can be divided.
	bounded bool
	// Called before each insert if it is set: tests break off with it.
	inserting func(block) error
	writes    Writes // nil if nobody is told
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

// or returns a column, or another expression if the table has no such column.
func (t table) or(column, other string) string {
	if t[column] == "" {
		return other
	}
	return column
}

func (i *Ingester) newStore(ctx context.Context, project int64, now time.Time) (*store, error) {
	layout, err := i.tables(ctx)
	if err != nil {
		return nil, err
	}
	return &store{client: i.client, project: project, now: now, layout: layout, writes: i.Writes}, nil
}

// layout holds the tables by name, as they were found at a time.
type layout struct {
	tables map[string]table
	found  time.Time
}

// layoutFor is how long a layout is trusted. After a batch that failed, the tables are looked at again.
const layoutFor = time.Minute

// tables returns the tables that records are written to.
func (i *Ingester) tables(ctx context.Context) (map[string]table, error) {
	if known := i.layout.Load(); known != nil && time.Since(known.found) < layoutFor {
		return known.tables, nil
	}
	tables, err := findTables(ctx, i.client)
	if err != nil {
		return nil, err
	}
	i.layout.Store(&layout{tables, time.Now()})
	return tables, nil
}

func findTables(ctx context.Context, client *clickhouse.Client) (map[string]table, error) {
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
	return layout, nil
}

// query runs a SELECT with the parameter project.
func (s *store) query(ctx context.Context, sql string, row func([]clickhouse.Cell) error, params ...clickhouse.Param) error {
	if s.reading != nil {
		select {
		case s.reading <- struct{}{}:
			defer func() { <-s.reading }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	params = append(params, clickhouse.Param{Name: "project", Type: "Int64", Value: strconv.FormatInt(s.project, 10)})
	q := clickhouse.Query{SQL: sql, Params: params, Project: s.project, MaxBytes: maxFound, Unbounded: !s.bounded}
	return s.client.Collect(ctx, q, row)
}

// maxFound is how many bytes one lookup may find, unless it cannot be divided.
const maxFound = 64 << 20

// bound sets whether lookups are bounded, until restore is called.
func (s *store) bound(bounded bool) (restore func()) {
	was := s.bounded
	s.bounded = bounded
	return func() { s.bounded = was }
}

// tooLarge reports whether a lookup failed because of how much it finds, so that less should be looked up at once.
func tooLarge(err error) bool {
	e, ok := errors.AsType[*clickhouse.Error](err)
	return ok && (e.Kind == clickhouse.TooLarge || e.Kind == clickhouse.Memory)
}
