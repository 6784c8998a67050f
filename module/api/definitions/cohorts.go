package definitions

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/taxonomy"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/contents"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
)

// shownCohort is a cohort in JSON. One without a name of its own is known by its members alone.
type shownCohort struct {
	ID            int64      `json:"id"`
	Name          string     `json:"name"`
	Description   string     `json:"description"`
	Deleted       bool       `json:"deleted"`
	IsCalculating bool       `json:"is_calculating"`
	CreatedAt     *time.Time `json:"created_at"`
	CreatedBy     *api.User  `json:"created_by"`
	// Count is how many people are in it.
	Count int64 `json:"count"`
	// IsStatic reports whether no member was computed.
	IsStatic bool `json:"is_static"`
}

// listCohorts answers GET cohorts/: those with names, by number, and then those that only another product's tables know.
func (d *Definitions) listCohorts(ctx context.Context, c api.Caller, in api.Input) (api.Response, error) {
	all, quotas, err := d.cohorts(ctx, &c)
	if err != nil {
		return api.Response{Quotas: quotas}, err
	}
	return pageOf(in, all, quotas)
}

// getCohort answers GET cohorts/:id/.
func (d *Definitions) getCohort(ctx context.Context, c api.Caller, in api.Input) (api.Response, error) {
	all, quotas, err := d.cohorts(ctx, &c)
	if err != nil {
		return api.Response{Quotas: quotas}, err
	}
	for _, found := range all {
		if strconv.FormatInt(found.ID, 10) == in.At.Name {
			return api.JSON(http.StatusOK, found).With(quotas), nil
		}
	}
	return api.Response{Quotas: quotas}, api.NotFound("Not found.")
}

// cohorts returns the cohorts that queries can ask for and that are known to be there.
func (d *Definitions) cohorts(ctx context.Context, c *api.Caller) ([]shownCohort, execution.Quotas, error) {
	db, err := d.Executor.Database(ctx, c.Snapshot.Schema(c.Project.ID))
	if err != nil {
		return nil, nil, err
	}
	out, at := []shownCohort{}, map[int64]int{}
	for _, known := range c.Snapshot.Cohorts(c.Project.ID) {
		at[known.ID] = len(out)
		out = append(out, shownCohort{ID: known.ID, Name: known.Title(), CreatedAt: api.OrNil(known.CreatedAt), IsStatic: known.Static})
	}
	var id, count, computed int64
	quotas, err := contents.Rows(ctx, d.Executor, c, taxonomy.Cohorts(), []any{&id, &count, &computed}, func() {
		place, named := at[id]
		switch {
		case named:
		case !db.Cohorts.Has(id):
			return // it was deleted, and its members are left
		default:
			place = len(out)
			out = append(out, shownCohort{ID: id, Name: db.Cohorts.Name(id)})
		}
		out[place].Count, out[place].IsStatic = count, computed == 0
	})
	return out, quotas, err
}
