// Package cohorts answers the routes of cohorts: contract cohorts.md section 1.
package cohorts

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/cohort"
	"github.com/caddy-analytics/caddy-analytics/internal/trigram"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/references"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Cohorts handles the routes of cohorts.
type Cohorts struct {
	Executor *execution.Executor
	Registry *registry.Registry
	// References knows the uses of cohorts.
	References *references.Index
	// Calculate starts the calculation of a cohort that waits for one, and returns at once.
	Calculate func(project, cohort int64)
}

// Routes returns the routes of cohorts. There is no DELETE: a cohort is deleted with PATCH, so that it can be restored.
func (s *Cohorts) Routes() []api.Route {
	const read, write = "cohort:read", "cohort:write"
	return []api.Route{
		{Method: http.MethodGet, Pattern: "cohorts", Scope: read, Handler: s.list},
		{Method: http.MethodPost, Pattern: "cohorts", Scope: write, Handler: s.create},
		{Method: http.MethodGet, Pattern: "cohorts/:name", Scope: read, Handler: s.get},
		{Method: http.MethodPut, Pattern: "cohorts/:name", Scope: write, Handler: s.update},
		{Method: http.MethodPatch, Pattern: "cohorts/:name", Scope: write, Handler: s.update},
		{Method: http.MethodGet, Pattern: "persons/cohorts", Scope: read, Handler: s.ofPerson},
		{Method: http.MethodGet, Pattern: "cohorts/:name/persons", Scope: read, Handler: s.persons},
		{Method: http.MethodGet, Pattern: "cohorts/:name/duplicate_as_static_cohort", Scope: write, Handler: s.duplicate},
		{Method: http.MethodPatch, Pattern: "cohorts/:name/add_persons_to_static_cohort", Scope: write, Handler: s.add},
		{Method: http.MethodPatch, Pattern: "cohorts/:name/remove_person_from_static_cohort", Scope: write, Handler: s.remove},
	}
}

// find finds the cohort named in the path, deleted or not.
func find(c *api.Caller, in *api.Input) (*registry.Cohort, error) {
	id, err := in.ID()
	if err != nil {
		return nil, err
	}
	if found := c.Snapshot.AnyCohort(c.Project.ID, id); found != nil {
		return found, nil
	}
	return nil, api.NotFound("Not found.")
}

// list answers GET cohorts/: cohorts that are not deleted, newest first, then those that exist only in another product's tables. A search lists exact matches
// first.
func (s *Cohorts) list(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	w, err := wantedOf(in)
	if err != nil {
		return nil, err
	}
	all, quotas, err := s.records(ctx, c, c.Snapshot.Cohorts(c.Project.ID))
	if err != nil {
		return &api.Response{Quotas: quotas}, err
	}
	b := behaviors{c.Snapshot, c.Project.ID, map[int64]bool{}}
	all = slices.DeleteFunc(all, func(r *record) bool { return !w.has(r) || w.hideBehavioral && b.has(r.ID) })
	slices.SortStableFunc(all, func(a, b *record) int {
		return strings.Compare(api.Deref(a.SearchMatchType), api.Deref(b.SearchMatchType))
	})
	res, err := api.PageBy(in, all, func(r *record) any { return w.shown(r) })
	return res.With(quotas), err
}

// wanted says which cohorts a list contains, and in which form.
type wanted struct {
	search, kind   string
	term           trigram.Term // of search
	createdBy      int
	byAnybody      bool
	hideBehavioral bool
	basic          bool
}

func wantedOf(in *api.Input) (*wanted, error) {
	params := in.URL.Query()
	search, err := api.SearchText(in)
	if err != nil {
		return nil, err
	}
	w := &wanted{
		search: search, term: trigram.New(search), kind: params.Get("type"),
		hideBehavioral: api.IsTrue(params.Get("hide_behavioral_cohorts")), basic: api.IsTrue(params.Get("basic")),
	}
	if w.kind != "" && w.kind != "static" && w.kind != "dynamic" {
		return nil, api.Invalid("type", "invalid_choice", "%q is not a valid choice.", w.kind)
	}
	id, given, err := in.QueryInt("created_by_id")
	w.createdBy, w.byAnybody = id, !given
	return w, err
}

// has reports whether the list contains a cohort, and notes in its record how a search found it.
func (w *wanted) has(r *record) bool {
	if w.search != "" {
		if r.SearchMatchType = api.MatchName(w.search, w.term, api.Deref(r.Name)); r.SearchMatchType == nil {
			return false
		}
	}
	switch {
	case w.kind != "" && (w.kind == "static") != r.IsStatic,
		!w.byAnybody && (r.CreatedBy == nil || r.CreatedBy.ID != int64(w.createdBy)):
		return false
	}
	return true
}

// behaviors knows the cohorts of a project whose members depend on events, be it through other cohorts.
type behaviors struct {
	snap    *registry.Snapshot
	project int64
	known   map[int64]bool
}

func (b behaviors) has(id int64) bool {
	if found, known := b.known[id]; known {
		return found
	}
	b.known[id] = false // ends a loop
	c := b.snap.Cohort(b.project, id)
	if c == nil || c.Static {
		return false
	}
	d, err := cohort.Read(c.Filters, c.Groups)
	b.known[id] = err == nil && (cohort.Behavioral(d) || slices.ContainsFunc(cohort.Cohorts(d), b.has))
	return b.known[id]
}

// shown returns a record in the list's form.
func (w *wanted) shown(r *record) any {
	if !w.basic {
		return r
	}
	return &r.basic
}

// get answers GET cohorts/:id/.
func (s *Cohorts) get(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	id, err := in.ID()
	if err != nil {
		return nil, err
	}
	var known []*registry.Cohort
	if found := c.Snapshot.AnyCohort(c.Project.ID, id); found != nil {
		known = append(known, found)
	}
	all, quotas, err := s.records(ctx, c, known)
	if err != nil {
		return &api.Response{Quotas: quotas}, err
	}
	for _, r := range all {
		if r.ID == id {
			return api.JSON(http.StatusOK, r).With(quotas), nil
		}
	}
	return &api.Response{Quotas: quotas}, api.NotFound("Not found.")
}
