package cohorts

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/cohorts"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

const (
	maxAdded  = 1000 // people that one request can add by id
	chunkSize = 1000 // names in one query
)

// add answers PATCH cohorts/:id/add_persons_to_static_cohort/.
func (s *Cohorts) add(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	to, err := s.static(ctx, c, in, "Can only add users to static cohorts")
	if err != nil {
		return nil, err
	}
	ids, err := readIDs(in)
	if err != nil {
		return nil, err
	}
	place, err := s.enter(ctx, c)
	if err != nil {
		return nil, err
	}
	known, err := s.Executor.Shards.Of(c.Project.ID).CountPeople(ctx, place, c.Project.ID, clickhouse.ByPersonID, ids)
	place.Leave()
	if err != nil {
		return nil, err
	}
	if known == 0 {
		return nil, api.Invalid("person_ids", "invalid_input", "No valid users to add to cohort")
	}
	if _, err = s.putIn(ctx, c, to, people{clickhouse.ByPersonID, ids}); err != nil {
		return nil, err
	}
	return success(), nil
}

// readIDs reads the ids of the people to add, and skips invalid ones.
func readIDs(in *api.Input) ([]string, error) {
	const field = "person_ids"
	fields, err := in.ReadObject()
	if err != nil {
		return nil, err
	}
	var given []any
	raw, _ := (&api.Fields{All: fields}).TakeList(field, true)
	if json.Unmarshal(raw, &given) != nil || given == nil {
		return nil, api.Invalid(field, "invalid_input", "person_ids must be a list")
	}
	switch {
	case len(given) == 0:
		return nil, api.Invalid(field, "invalid_input", "person_ids cannot be empty")
	case len(given) > maxAdded:
		return nil, api.Invalid(field, "invalid_input", "List size exceeds limit")
	}
	var ids []string
	for _, one := range given {
		text, _ := one.(string)
		if id, err := uuid.Parse(text); err == nil {
			ids = append(ids, id.String())
		}
	}
	return ids, nil
}

// remove answers PATCH cohorts/:id/remove_person_from_static_cohort/.
func (s *Cohorts) remove(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	const field = "person_id"
	from, err := s.static(ctx, c, in, "Can only remove users from static cohorts")
	if err != nil {
		return nil, err
	}
	fields, err := in.ReadObject()
	if err != nil {
		return nil, err
	}
	if fields[field] == nil || api.IsNull(fields[field]) {
		return nil, api.Invalid(field, "required", "person_id is required")
	}
	var text string
	_ = json.Unmarshal(fields[field], &text) // a value that is not a text is no valid id
	person, err := uuid.Parse(text)
	if err != nil {
		return nil, api.Invalid(field, "invalid_input", "person_id must be a valid UUID")
	}
	place, err := s.enter(ctx, c)
	if err != nil {
		return nil, err
	}
	defer place.Leave()
	found, err := s.Executor.Shards.Of(c.Project.ID).RemoveMember(ctx, place, c.Project.ID, from.ID, person)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, api.NotFound("Person is not part of the cohort")
	}
	if _, err := s.counted(ctx, place, from); err != nil {
		return nil, err
	}
	return success(), nil
}

// static finds the static cohort named in the path; for another cohort, the error is otherwise.
func (s *Cohorts) static(ctx context.Context, c *api.Caller, in *api.Input, otherwise string) (*registry.Cohort, error) {
	found, err := find(c, in)
	switch {
	case err != nil:
		return nil, err
	case found.Deleted:
		return nil, api.NotFound("Not found.")
	case !found.Static:
		return nil, api.Invalid("", "invalid_input", "%s", otherwise)
	}
	return found, s.writable(ctx, c.Project.ID)
}

// putIn adds people to a static cohort, except those already in it, and returns the updated cohort.
func (s *Cohorts) putIn(ctx context.Context, c *api.Caller, to *registry.Cohort, p people) (*registry.Cohort, error) {
	place, err := s.enter(ctx, c)
	if err != nil {
		return nil, err
	}
	defer place.Leave()
	for chunk := range slices.Chunk(p.names, chunkSize) {
		if err := s.Executor.Shards.Of(to.Project).AddMembers(ctx, place, to.Project, to.ID, p.by, chunk); err != nil {
			return nil, err
		}
	}
	return s.counted(ctx, place, to)
}

// counted counts the members of a static cohort after a change, and returns the updated cohort.
func (s *Cohorts) counted(ctx context.Context, place *admission.Place, of *registry.Cohort) (*registry.Cohort, error) {
	return cohorts.CountStatic(ctx, s.Registry, s.Executor.Shards.Of(of.Project), place, of.Project, of.ID)
}

// enter waits for one of the project's places.
func (s *Cohorts) enter(ctx context.Context, c *api.Caller) (*admission.Place, error) {
	return s.Executor.Places.Enter(ctx, admission.Request{Project: c.Project.ID, Awaited: admission.Awaited, Uncounted: true})
}
