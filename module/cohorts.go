package module

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/taxonomy"
	"github.com/caddy-analytics/caddy-analytics/module/api"
)

// cohortList is the resource of cohorts.
const cohortList = "cohorts"

// cohortRoutes are the routes that show the cohorts of a project. They are made and filled by the operator.
func cohortRoutes() map[address]methods {
	return map[address]methods{
		{resource: cohortList}:                {http.MethodGet: {scope: "cohort:read", serve: (*request).listCohorts}},
		{resource: cohortList, name: ":name"}: {http.MethodGet: {scope: "cohort:read", serve: (*request).getCohort}},
	}
}

// shownCohort is a cohort on the wire. One without a name of its own is known by its members alone.
type shownCohort struct {
	ID            int64      `json:"id"`
	Name          string     `json:"name"`
	Description   string     `json:"description"`
	Deleted       bool       `json:"deleted"`
	IsCalculating bool       `json:"is_calculating"`
	CreatedAt     *time.Time `json:"created_at"`
	CreatedBy     *user      `json:"created_by"`
	// Count is how many people are in it.
	Count int64 `json:"count"`
	// IsStatic tells that no member was computed.
	IsStatic bool `json:"is_static"`
}

// listCohorts answers GET cohorts/: those with names, by number, and then those that only another product's tables know.
func (rq *request) listCohorts() error {
	all, err := rq.cohorts()
	if err != nil {
		return err
	}
	return writePage(rq, all)
}

// getCohort answers GET cohorts/:id/.
func (rq *request) getCohort() error {
	all, err := rq.cohorts()
	if err != nil {
		return err
	}
	for _, c := range all {
		if strconv.FormatInt(c.ID, 10) == rq.at.Name {
			rq.reply(http.StatusOK, c)
			return nil
		}
	}
	return api.NotFound("Not found.")
}

// cohorts gives the cohorts that queries can ask for and that are known to be there.
func (rq *request) cohorts() ([]shownCohort, error) {
	db, err := rq.rt.Database(rq.r.Context(), rq.Snapshot.Schema(rq.Project.ID))
	if err != nil {
		return nil, err
	}
	rows, err := rq.ask(taxonomy.Cohorts())
	if err != nil {
		return nil, err
	}
	out, at := []shownCohort{}, map[int64]int{}
	for _, c := range rq.Snapshot.Cohorts(rq.Project.ID) {
		at[c.ID] = len(out)
		out = append(out, shownCohort{ID: c.ID, Name: c.Name, CreatedAt: orNil(c.CreatedAt), IsStatic: true})
	}
	for row := range rows.Rows() {
		var id, count, computed int64
		if err := json.Unmarshal(row, &[]any{&id, &count, &computed}); err != nil {
			return nil, fmt.Errorf("reading a cohort: %w", err)
		}
		place, named := at[id]
		switch {
		case named:
		case !db.Cohorts.Has(id):
			continue // it was deleted, and its members are left
		default:
			place = len(out)
			out = append(out, shownCohort{ID: id, Name: db.Cohorts.Name(id)})
		}
		out[place].Count, out[place].IsStatic = count, computed == 0
	}
	return out, nil
}
