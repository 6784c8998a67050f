package module

import (
	"net/http"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// describeQuery answers the kinds that ask about queries rather than for rows. They are computed in less time than a cached
// answer would take to find, and ClickHouse is not asked. The first result is false for every other kind.
func (rq *request) describeQuery(node query.Node) (bool, error) {
	asked, about := node.(*query.Metadata)
	if _, tables := node.(*query.DatabaseSchema); !about && !tables {
		return false, nil
	}
	db, err := rq.rt.database(rq.r.Context(), rq.snap.Schema(rq.project.ID))
	if err != nil {
		return true, err
	}
	if !about {
		rq.writeDescription(compiler.DescribeDatabase(db))
		return true, nil
	}
	found, err := rq.describe(asked, db)
	if err != nil {
		return true, err
	}
	rq.writeDescription(found)
	return true, nil
}

// describe asks the compiler what is right and what is wrong with a text, which takes its turn as any compile does.
func (rq *request) describe(asked *query.Metadata, db *schema.Database) (found *compiler.Metadata, err error) {
	env := compilerEnv(rq.snap, rq.project.ID, db, rq.start)
	err = rq.compiles().do(rq.r.Context(), func(expired func() error) error {
		env.Expired = expired
		found, err = compiler.Describe(asked, env)
		return err
	})
	return found, err
}

// writeDescription sends what was found out. It holds for this moment: a definition may be added in the next.
func (rq *request) writeDescription(found any) {
	h := rq.w.Header()
	h.Set("Cache-Control", "private, no-cache")
	rq.timing(h)
	writeJSON(rq.w, http.StatusOK, found)
}
