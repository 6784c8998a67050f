package ingest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// store is the tables of a project.
type store struct {
	client  *clickhouse.Client
	project int64
	now     time.Time        // of the import
	layout  map[string]table // by name
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
	return &store{client, project, now, layout}, nil
}

// query runs a SELECT that has the parameter project.
func (s *store) query(ctx context.Context, sql string, row func([]clickhouse.Cell) error, params ...clickhouse.Param) error {
	params = append(params, clickhouse.Param{Name: "project", Type: "Int64", Value: strconv.FormatInt(s.project, 10)})
	return s.client.Collect(ctx, clickhouse.Query{SQL: sql, Params: params, Project: s.project}, row)
}

// knownEvents finds which events of a batch are in ClickHouse already. The conditions name every column of the
// primary key, so that only the parts are read where they could be.
func (s *store) knownEvents(ctx context.Context, records []record.Record) (map[uuid.UUID]bool, error) {
	ids := make([]string, 0, len(records))
	days, names, people := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for n := range records {
		if r := &records[n]; r.Kind == record.Event {
			ids = append(ids, r.UUID.String())
			days[r.Timestamp.Format(time.DateOnly)] = true
			names[r.Event] = true
			people[r.DistinctID] = true
		}
	}
	known := map[uuid.UUID]bool{}
	if len(ids) == 0 {
		return known, nil
	}
	keys := func(name, typ string, set map[string]bool) clickhouse.Param {
		return clickhouse.ArrayParam(name, typ, slices.Sorted(maps.Keys(set)))
	}
	err := s.query(ctx, "SELECT uuid FROM events WHERE team_id = {project:Int64} AND toDate(timestamp) IN {days:Array(Date)} "+
		"AND event IN {events:Array(String)} AND cityHash64(distinct_id) IN (SELECT cityHash64(arrayJoin({people:Array(String)}))) "+
		"AND uuid IN {ids:Array(UUID)}",
		func(cells []clickhouse.Cell) error {
			id, err := uuid.Parse(cells[0].Text())
			known[id] = true
			return err
		}, keys("days", "Date", days), keys("events", "String", names), keys("people", "String", people), clickhouse.ArrayParam("ids", "UUID", ids))
	return known, err
}
