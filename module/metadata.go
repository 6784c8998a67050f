package module

import (
	"net/http"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
)

// describeQuery answers the kinds that ask about queries rather than for rows. They are computed in less time than a cached
// answer would take to find, and ClickHouse is not asked. The first result is false for every other kind.
func (rq *request) describeQuery(node query.Node) (bool, error) {
	asked, about := node.(*query.Metadata)
	if _, tables := node.(*query.DatabaseSchema); !about && !tables {
		return false, nil
	}
	if !about {
		db, err := rq.rt.Database(rq.r.Context(), rq.Snapshot.Schema(rq.Project.ID))
		if err != nil {
			return true, err
		}
		rq.writeDescription(compiler.DescribeDatabase(db))
		return true, nil
	}
	found, err := rq.rt.Describe(rq.r.Context(), rq.Caller.Caller, asked)
	if err != nil {
		return true, err
	}
	rq.writeDescription(found)
	return true, nil
}

// writeDescription sends what was found out. It holds for this moment: a definition may be added in the next.
func (rq *request) writeDescription(found any) {
	res := api.JSON(http.StatusOK, found)
	res.Cache = api.Revalidate
	rq.write(res)
}
