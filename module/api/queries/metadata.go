package queries

import (
	"context"
	"net/http"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
)

// describe answers the kinds that ask about queries rather than for rows. They are computed in less time than a cached
// answer would take to find; ClickHouse is asked about nothing but events that were not seen before. It is false for every other kind. What
// is found out holds for this moment: a definition may be added in the next.
func (q *Queries) describe(ctx context.Context, c *api.Caller, node query.Node) (res api.Response, described bool, err error) {
	asked, about := node.(*query.Metadata)
	if _, tables := node.(*query.DatabaseSchema); !about && !tables {
		return res, false, nil
	}
	var found any
	if about {
		found, err = q.about(ctx, c, asked)
	} else {
		found, err = q.tables(ctx, c)
	}
	if err != nil {
		return res, true, err
	}
	res = api.JSON(http.StatusOK, found)
	res.Cache = api.Revalidate
	return res, true, nil
}

// about says what is right and what is wrong with a text.
func (q *Queries) about(ctx context.Context, c *api.Caller, asked *query.Metadata) (any, error) {
	found, err := q.Executor.Describe(ctx, c.Caller, asked)
	if err == nil && found.IsValid {
		found.Warnings = append(found.Warnings, q.Executor.UnseenEvents(ctx, c.Caller, asked)...)
	}
	return found, err
}

// tables describes the tables that the project's queries see.
func (q *Queries) tables(ctx context.Context, c *api.Caller) (any, error) {
	db, err := q.Executor.Database(ctx, c.Snapshot.Schema(c.Project.ID))
	if err != nil {
		return nil, err
	}
	return compiler.DescribeDatabase(db), nil
}
