package cohorts

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/taxonomy"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/contents"
)

// maxPersons is the most people on one page.
const maxPersons = 1000

// persons answers GET cohorts/:id/persons/.
func (s *Cohorts) persons(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	if !c.Key.Allows("person:read") {
		return nil, api.MissingScope("person:read")
	}
	of, err := find(c, in)
	if err != nil {
		return nil, err
	}
	if of.Deleted {
		return nil, api.NotFound("Not found.")
	}
	limit, offset, err := in.PageParams()
	if err != nil {
		return nil, err
	}
	if err := refuseFilters(in); err != nil {
		return nil, err
	}
	limit = min(limit, maxPersons)
	out := struct {
		Results  []api.Person `json:"results"`
		Next     *string      `json:"next"`
		Previous *string      `json:"previous"`
	}{Results: []api.Person{}}
	var (
		one        api.Person
		properties string
		identified json.RawMessage // true or 1
	)
	quotas, err := contents.RowsNow(ctx, s.Executor, c, personsOf(of.ID, in.URL.Query().Get("search"), limit, offset),
		[]any{&one.ID, &one.CreatedAt, &properties, &identified, &one.DistinctIDs}, func() {
			one.IsIdentified = string(identified) == "true" || string(identified) == "1"
			one.Properties = api.OrNone(properties)
			one.Complete(c)
			out.Results = append(out.Results, one)
			one, properties = api.Person{}, ""
		})
	if err != nil {
		return &api.Response{Quotas: quotas}, err
	}
	if len(out.Results) == limit {
		out.Next = in.PageURL(limit, offset+limit)
	}
	if offset >= limit {
		out.Previous = in.PreviousURL(limit, offset)
	}
	return api.JSON(http.StatusOK, out).With(quotas), nil
}

// refuseFilters refuses the parameter properties, unless it has no filters: without them a page would have more people than asked for.
func refuseFilters(in *api.Input) error {
	switch text := strings.TrimSpace(in.URL.Query().Get("properties")); text {
	case "", "[]", "{}", "null":
		return nil
	}
	return api.Invalid("properties", "invalid_input",
		`Members of a cohort cannot be filtered by properties here. Use /persons/ and add {"type": "cohort", "key": "id", "value": %s} to the filters.`, in.At.Name)
}

// ofPerson answers GET persons/cohorts/: the cohorts that contain a person.
func (s *Cohorts) ofPerson(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	if !c.Key.Allows("person:read") {
		return nil, api.MissingScope("person:read")
	}
	id, err := uuid.Parse(in.URL.Query().Get("person_id"))
	if err != nil {
		return nil, api.Invalid("person_id", "invalid_input", "person_id must be the UUID of a person.")
	}
	of, number := map[int64]bool{}, int64(0)
	quotas, err := contents.RowsNow(ctx, s.Executor, c, taxonomy.CohortsOf(id.String()), []any{&number}, func() { of[number] = true })
	if err != nil {
		return &api.Response{Quotas: quotas}, err
	}
	all, counted, err := s.records(ctx, c, c.Snapshot.Cohorts(c.Project.ID))
	if counted != nil {
		quotas = counted
	}
	if err != nil {
		return &api.Response{Quotas: quotas}, err
	}
	found := api.OrEmpty(slices.DeleteFunc(all, func(r *record) bool { return !of[r.ID] }))
	return api.JSON(http.StatusOK, map[string][]*record{"results": found}).With(quotas), nil
}

// personsOf returns the query for a page of a cohort's members, newest first. It returns up to ten distinct ids of each: first those that somebody chose,
// which are not UUIDs.
func personsOf(id int64, search string, limit, offset int) *query.HogQL {
	q := &query.HogQL{Values: map[string]any{"cohort": id}}
	where := "id in cohort {cohort}"
	if search != "" {
		where += " and (toString(id) = {search} or properties.email ilike {pattern} or properties.name ilike {pattern}" +
			" or id in (select person_id from person_distinct_ids where distinct_id ilike {pattern}))"
		q.Values["search"], q.Values["pattern"] = search, filter.Containing(search)
	}
	page := fmt.Sprintf("select id, created_at, properties, is_identified from persons where %s order by created_at desc, id limit %d offset %d", where, limit, offset)
	q.Query = "select p.id, p.created_at, toString(p.properties), p.is_identified, d.ids from (" + page + ") p left join " +
		"(select person_id, arraySlice(arraySort(id -> (isNotNull(toUUID(id)), id), groupArray(distinct_id)), 1, 10) as ids from person_distinct_ids where person_id in (select id from (" + page + ")) group by person_id) d " +
		"on p.id = d.person_id order by p.created_at desc, p.id limit 1000"
	return q
}
