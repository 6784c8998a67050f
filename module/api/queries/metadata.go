package queries

import (
	"context"
	"net/http"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
)

// describes reports whether a query is about queries and returns no rows.
func describes(node query.Node) bool {
	switch node.(type) {
	case *query.Metadata, *query.DatabaseSchema, *query.Autocomplete:
		return true
	}
	return false
}

// describe answers kinds of queries that are about queries and return no rows. Computing the response takes less time than finding it in the cache would,
// and does not involve ClickHouse. It holds only for now: the next moment may add a definition.
func (q *Queries) describe(ctx context.Context, c *api.Caller, node query.Node) (res *api.Response, err error) {
	var found any
	switch node := node.(type) {
	case *query.Metadata:
		found, err = q.about(ctx, c, node)
	case *query.Autocomplete:
		return q.complete(ctx, c, node)
	default:
		found, err = q.tables(ctx, c)
	}
	if err != nil {
		return res, err
	}
	res = api.JSON(http.StatusOK, found)
	res.Cache = api.Revalidate
	return res, nil
}

// complete returns what can be written at a position in a text.
func (q *Queries) complete(ctx context.Context, c *api.Caller, asked *query.Autocomplete) (*api.Response, error) {
	found, err := q.Executor.Complete(ctx, &c.Caller, asked, readable(c))
	if err != nil {
		return nil, err
	}
	res := api.Raw(http.StatusOK, found.AppendJSON(nil))
	res.Cache = api.Revalidate
	return res, nil
}

// about returns the mistakes and warnings for a text.
func (q *Queries) about(ctx context.Context, c *api.Caller, asked *query.Metadata) (any, error) {
	found, err := q.Executor.Describe(ctx, &c.Caller, asked, denied(c))
	if err == nil && found.IsValid {
		found.Warnings = append(found.Warnings, q.Executor.UnseenEvents(ctx, &c.Caller, asked)...)
	}
	return found, err
}

// tables describes the tables that the project's queries see.
func (q *Queries) tables(ctx context.Context, c *api.Caller) (any, error) {
	db, err := q.Executor.Database(ctx, c.Snapshot.Schema(c.Project.ID))
	if err != nil {
		return nil, err
	}
	own := *db
	own.Readable = readable(c)
	return compiler.DescribeDatabase(&own), nil
}

// denied returns a function that returns why the caller may not read a held table; nil if it may.
func denied(c *api.Caller) func(table string) error {
	return func(table string) error { return result.DeniedTable(c, table) }
}

// readable returns a function that reports whether the caller may read a held table.
func readable(c *api.Caller) func(table string) bool {
	return func(table string) bool { return result.DeniedTable(c, table) == nil }
}
