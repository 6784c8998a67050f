package cohorts

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/cohort"
	"github.com/caddy-analytics/caddy-analytics/compiler/taxonomy"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/contents"
	"github.com/caddy-analytics/caddy-analytics/module/api/references"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// record is a cohort in JSON: contract cohorts.md section 1.
type record struct {
	basic

	Groups  json.RawMessage `json:"groups"`
	Filters json.RawMessage `json:"filters"`
	Query   json.RawMessage `json:"query"`
}

// basic is a record without the fields that define the members.
type basic struct {
	ID                int64      `json:"id"`
	Name              *string    `json:"name"`
	Description       string     `json:"description"`
	Deleted           bool       `json:"deleted"`
	IsCalculating     bool       `json:"is_calculating"`
	CreatedBy         *api.User  `json:"created_by"`
	CreatedAt         *time.Time `json:"created_at"`
	LastCalculation   *time.Time `json:"last_calculation"`
	ErrorsCalculating int        `json:"errors_calculating"`
	LastErrorMessage  *string    `json:"last_error_message"`
	Count             *int64     `json:"count"`
	IsStatic          bool       `json:"is_static"`
	CohortType        *string    `json:"cohort_type"`
	ExperimentSet     []int64    `json:"experiment_set"`
	Version           *uint64    `json:"version"`
	PendingVersion    *uint64    `json:"pending_version"`
	// ReferenceCount is the number of uses of the cohort; UsedBy lists the first of them.
	ReferenceCount int                 `json:"reference_count"`
	UsedBy         []references.Record `json:"used_by"`
	// SearchMatchType says how a search found the cohort.
	SearchMatchType *string `json:"search_match_type,omitempty"`
}

func recordOf(c *api.Caller, known *registry.Cohort, uses *references.Uses) *record {
	found := uses.OfCohort(known.ID)
	r := &record{
		basic: basic{
			ID: known.ID, Name: known.Name, Description: known.Description, Deleted: known.Deleted, IsCalculating: known.Calculating(),
			CreatedBy: c.User(known.CreatedBy), CreatedAt: api.OrNil(known.CreatedAt), LastCalculation: api.OrNil(known.LastCalculation),
			ErrorsCalculating: known.Errors, LastErrorMessage: api.OrNull(known.LastError), Count: known.Count, IsStatic: known.Static,
			ExperimentSet: []int64{}, Version: orNull(known.Version), PendingVersion: orNull(known.PendingVersion),
			ReferenceCount: len(found), UsedBy: references.Records(c, found),
		},
		Groups: known.Groups, Filters: filtersOf(known), Query: known.Query,
	}
	if r.Groups == nil {
		r.Groups = json.RawMessage("[]")
	}
	return r
}

// filtersOf returns the filters of a cohort, or its groups as filters: clients expect an object.
func filtersOf(known *registry.Cohort) json.RawMessage {
	if known.Filters != nil {
		return known.Filters
	}
	filters, err := cohort.FromGroups(known.Groups)
	if err != nil {
		return json.RawMessage(`{"properties":{}}`)
	}
	return filters
}

func orNull(version uint64) *uint64 {
	if version == 0 {
		return nil
	}
	return &version
}

func (s *Cohorts) answer(status int, c *api.Caller, known *registry.Cohort) *api.Response {
	c = c.Now(s.Registry)
	return api.JSON(status, recordOf(c, known, s.References.Of(c.Snapshot, c.Project.ID)))
}

// records returns the records of known, then those of cohorts that exist only in another product's tables. It counts the members of cohorts that were never
// counted.
func (s *Cohorts) records(ctx context.Context, c *api.Caller, known []*registry.Cohort) ([]*record, execution.Quotas, error) {
	db, err := s.Executor.Database(ctx, c.Snapshot.Schema(c.Project.ID))
	if err != nil {
		return nil, nil, err
	}
	uses := s.References.Of(c.Snapshot, c.Project.ID)
	out, at, uncounted := make([]*record, len(known)), make(map[int64]*record, len(known)), db.Cohorts.Open()
	for i, k := range known {
		out[i] = recordOf(c, k, uses)
		at[k.ID] = out[i]
		uncounted = uncounted || k.Static && k.Count == nil && !k.Calculating()
	}
	if !uncounted {
		return out, nil, nil
	}
	var id, count, computed int64
	quotas, err := contents.Rows(ctx, s.Executor, c, taxonomy.Cohorts(), []any{&id, &count, &computed}, func() {
		r := at[id]
		switch {
		case r == nil && db.Cohorts.Open() && db.Cohorts.Has(id) && c.Snapshot.AnyCohort(c.Project.ID, id) == nil:
			name := db.Cohorts.Name(id)
			r = recordOf(c, &registry.Cohort{ID: id, Name: &name}, uses)
			out = append(out, r)
		case r == nil:
			return
		}
		if r.Count == nil {
			r.Count = new(count)
		}
		if db.Cohorts.Open() {
			r.IsStatic = computed == 0
		}
	})
	for _, r := range out {
		if r.Count == nil && r.IsStatic && !r.IsCalculating {
			r.Count = new(int64(0))
		}
	}
	return out, quotas, err
}

// success is the response of the routes that change members.
func success() *api.Response { return api.JSON(http.StatusOK, map[string]bool{"success": true}) }
