package queries

import (
	"context"
	"net/http"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
)

// describe answers the kinds that ask about queries rather than for rows. They are computed in less time than a cached
// answer would take to find, and ClickHouse is not asked. It is false for every other kind. What is found out holds for this
// moment: a definition may be added in the next.
func (q *Queries) describe(ctx context.Context, c *api.Caller, node query.Node) (res api.Response, described bool, err error) {
	var found any
	switch asked := node.(type) {
	case *query.Metadata:
		found, err = q.Executor.Describe(ctx, c.Caller, asked)
	case *query.DatabaseSchema:
		db, schemaErr := q.Executor.Database(ctx, c.Snapshot.Schema(c.Project.ID))
		if err = schemaErr; err == nil {
			found = compiler.DescribeDatabase(db)
		}
	default:
		return res, false, nil
	}
	if err != nil {
		return res, true, err
	}
	res = api.JSON(http.StatusOK, found)
	res.Cache = api.Revalidate
	return res, true, nil
}
