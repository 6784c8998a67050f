package ingest

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

// question looks things up by lists of their names. Its SQL has a parameter for each list and the parameter projects, and its first column is the project.
// Questions of several projects are asked as one with all their lists, so each may find more than it asked for.
type question struct {
	sql   string
	lists []list
	rows  [][]clickhouse.Cell // the answer, without the first column
}

// list is a parameter with values of a type.
type list struct {
	name, typ string
	values    []string
}

func (q *question) count() (n int) {
	for _, l := range q.lists {
		n += len(l.values)
	}
	return n
}

// ask asks a question and calls row for each row of the answer. Rows that were not asked for are still of the project.
func (s *store) ask(ctx context.Context, sql string, row func([]clickhouse.Cell) error, lists ...list) error {
	q := &question{sql: sql, lists: lists}
	one := &gathered{asked: q, store: s}
	err := errAlone
	if s.gathering != nil {
		err = s.gathering.share(ctx, one)
	}
	if err == errAlone { //nolint:errorlint // it is never wrapped
		q.rows = nil
		err = askAll(ctx, s.client, []*gathered{one}, s.bounded)
	}
	if err != nil {
		return err
	}
	for _, cells := range q.rows {
		if err := row(cells); err != nil {
			return err
		}
	}
	return nil
}

// askAll asks questions with the same SQL as one.
func askAll(ctx context.Context, client *clickhouse.Client, all []*gathered, bounded bool) error {
	first := all[0].asked
	byProject := make(map[int64]*question, len(all))
	values := make([]map[string]bool, len(first.lists))
	for n := range values {
		values[n] = map[string]bool{}
	}
	for _, one := range all {
		byProject[one.store.project] = one.asked
		for n, l := range one.asked.lists {
			for _, value := range l.values {
				values[n][value] = true
			}
		}
	}
	projects := slices.Sorted(maps.Keys(byProject))
	params := make([]clickhouse.Param, 0, 1+len(values))
	for n, l := range first.lists {
		params = append(params, clickhouse.ArrayParam(l.name, l.typ, slices.Sorted(maps.Keys(values[n]))))
	}
	params = append(params, projectsParam(projects))
	query := clickhouse.Query{SQL: first.sql, Params: params, MaxBytes: maxFound, Unbounded: !bounded}
	return client.CollectOf(ctx, projects, query, func(cells []clickhouse.Cell) error {
		project, err := cells[0].Int()
		if err != nil {
			return err
		}
		q := byProject[project]
		row := make([]clickhouse.Cell, len(cells)-1)
		for n, cell := range cells[1:] {
			row[n] = bytes.Clone(cell)
		}
		q.rows = append(q.rows, row)
		return nil
	})
}

// projectsParam is the parameter projects.
func projectsParam(projects []int64) clickhouse.Param {
	numbers := make([]string, len(projects))
	for n, project := range projects {
		numbers[n] = strconv.FormatInt(project, 10)
	}
	return clickhouse.Param{Name: "projects", Type: "Array(Int64)", Value: "[" + strings.Join(numbers, ",") + "]"}
}
