package admin

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/deletions"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// maxNamed is how many people one command deletes at most.
const maxNamed = 1000

func (s *Server) recordDeletion(d *registry.Deletion) adminapi.Deletion {
	out := adminapi.Deletion{
		ID: d.ID, Project: d.Project, Person: d.Person, Gone: d.Gone, Events: d.Events, DistinctIDs: d.DistinctIDs, EventCount: d.EventCount,
		RequestedAt: d.RequestedAt, HiddenAt: api.OrNil(d.HiddenAt), ErasedAt: api.OrNil(d.ErasedAt),
	}
	if out.ErasedAt == nil && out.HiddenAt != nil {
		out.EraseAt = new(d.HiddenAt.Add(s.Deleter.Delay))
	}
	return out
}

// deletePersons deletes people by their ids or distinct ids.
func (s *Server) deletePersons(_ http.ResponseWriter, r *http.Request) (any, error) {
	body, err := readBody[adminapi.DeletePersons](r)
	if err != nil {
		return nil, err
	}
	project, err := projectOf(s.Registry.Snapshot(), strconv.FormatInt(body.Project, 10))
	if err != nil {
		return nil, err
	}
	switch {
	case len(body.Persons) == 0:
		return nil, badRequest("name the people to delete by their ids or distinct ids")
	case len(body.Persons) > maxNamed:
		return nil, badRequest("%d people are named, and one command deletes at most %d", len(body.Persons), maxNamed)
	case body.KeepPerson && !body.Events:
		return nil, badRequest("the persons are to stay, and so are their events: there is nothing to delete")
	}
	asked := deletions.Request{Project: project.ID, Events: body.Events, Keep: body.KeepPerson}
	asked.Who.DistinctIDs = body.Persons
	for _, text := range body.Persons {
		if id, err := uuid.Parse(text); err == nil { // it may also be a distinct id
			asked.Who.Persons = append(asked.Who.Persons, id)
		}
	}
	done, err := s.Deleter.Delete(r.Context(), asked)
	if err != nil {
		return nil, err
	}
	if len(done) == 0 {
		return nil, fmt.Errorf("project %d has no person with any of these ids: %w", project.ID, registry.ErrNotFound)
	}
	out := adminapi.Deletions{Deletions: []adminapi.Deletion{}}
	for _, d := range done {
		out.Deletions = append(out.Deletions, s.recordDeletion(d))
	}
	return out, nil
}

func (s *Server) listDeletions(_ http.ResponseWriter, r *http.Request) (any, error) {
	snap := s.Registry.Snapshot()
	project, err := projectOf(snap, r.URL.Query().Get("project"))
	if err != nil {
		return nil, err
	}
	out := adminapi.Deletions{Deletions: []adminapi.Deletion{}}
	for _, d := range snap.Deletions(project.ID) {
		out.Deletions = append(out.Deletions, s.recordDeletion(d))
	}
	return out, nil
}

// erase erases deleted data now, and waits until nothing of it is on the disk.
func (s *Server) erase(w http.ResponseWriter, r *http.Request) (any, error) {
	if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("lifting the read deadline: %w", err)
	}
	erased, err := s.Deleter.EraseNow(r.Context())
	return adminapi.Erased{Erased: erased}, err
}
