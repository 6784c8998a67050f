package people

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/deletions"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// maxDeleted is the most people that one request deletes.
const maxDeleted = 1000

// deletionRoutes returns the routes that delete people and events.
func (s *People) deletionRoutes() []api.Route {
	const write = "person:write"
	return []api.Route{
		{Method: http.MethodDelete, Pattern: "persons/:name", Scope: write, Handler: s.deletePerson},
		{Method: http.MethodPost, Pattern: "persons/:name/delete_events", Scope: write, Handler: s.deleteEvents},
		{Method: http.MethodPost, Pattern: "persons/bulk_delete", Scope: write, Handler: s.bulkDelete},
		{Method: http.MethodGet, Pattern: "persons/deletion_status", Scope: "person:read", Handler: s.deletionStatus},
	}
}

// deletePerson answers DELETE persons/:id/. The parameters delete_events and keep_person count if present, whatever their values.
func (s *People) deletePerson(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	if err := cannotRead(in); err != nil {
		return nil, err
	}
	given := in.URL.Query()
	return s.deleteOne(ctx, c, in, deletions.Request{Events: given.Has("delete_events"), Keep: given.Has("keep_person")})
}

// deleteEvents answers POST persons/:id/delete_events/.
func (s *People) deleteEvents(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	return s.deleteOne(ctx, c, in, deletions.Request{Events: true, Keep: true})
}

func (s *People) deleteOne(ctx context.Context, c *api.Caller, in *api.Input, r deletions.Request) (*api.Response, error) {
	id, err := personID(in.At.Name)
	if err != nil {
		return nil, err
	}
	if r.Keep && !r.Events { // nothing to delete
		_, got, err := s.person(ctx, c, id)
		if err != nil {
			return &api.Response{Quotas: got.Quotas}, err
		}
		return (&api.Response{Status: http.StatusAccepted}).With(got.Quotas), nil
	}
	r.Who.Persons = []uuid.UUID{uuid.MustParse(id)}
	done, err := s.delete(ctx, c, r)
	switch {
	case err != nil:
		return nil, err
	case len(done) == 0:
		return nil, api.NotFound("Not found.")
	}
	return &api.Response{Status: http.StatusAccepted}, nil
}

// personID reads the id of a person in a path. People have no numeric ids here, so a number is not found.
func personID(text string) (string, error) {
	if id, ok := uuidOf(text); ok {
		return id, nil
	}
	if _, err := strconv.ParseUint(text, 10, 64); err == nil {
		return "", api.NotFound("Not found.")
	}
	return "", api.Invalid("", "invalid_input",
		"The ID provided does not look like a personID. If you are using a distinctId, please use /persons?distinct_id=%s instead.", text)
}

// deleted is the response of POST persons/bulk_delete/.
type deleted struct {
	Found      int   `json:"persons_found"`
	Deleted    int   `json:"persons_deleted"`
	Events     bool  `json:"events_queued_for_deletion"`
	Recordings bool  `json:"recordings_queued_for_deletion"` // always false
	Errors     []any `json:"deletion_errors"`
}

// bulkDelete answers POST persons/bulk_delete/. Unknown ids are skipped.
func (s *People) bulkDelete(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	all, err := in.ReadObject()
	if err != nil {
		return nil, err
	}
	fields := &api.Fields{All: all}
	r := deletions.Request{Who: readNamed(fields)}
	fields.Read("delete_events", &r.Events)
	fields.Read("keep_person", &r.Keep)
	switch {
	case fields.Err != nil:
		return nil, fields.Err
	case len(r.Who.DistinctIDs) == 0 && r.Who.Persons == nil:
		return nil, api.Invalid("", "invalid_input", "You need to specify either distinct_ids or ids")
	}
	done, err := s.delete(ctx, c, r)
	if err != nil {
		return nil, err
	}
	out := deleted{Events: r.Events && len(done) > 0, Errors: []any{}}
	persons := map[string]bool{}
	for _, d := range done {
		persons[d.Person] = true
	}
	out.Found = len(persons)
	if !r.Keep {
		out.Deleted = len(persons)
	}
	return api.JSON(http.StatusAccepted, out), nil
}

// readNamed reads which people a request names: by distinct ids or, without those, by ids. Persons is nil if there are no ids.
func readNamed(fields *api.Fields) (who ingest.Named) {
	if who.DistinctIDs = readTexts(fields, "distinct_ids"); len(who.DistinctIDs) > 0 {
		return who
	}
	ids := readTexts(fields, "ids")
	if len(ids) > 0 {
		who.Persons = []uuid.UUID{}
	}
	for _, text := range ids {
		if id, ok := uuidOf(text); ok {
			who.Persons = append(who.Persons, uuid.MustParse(id))
		}
	}
	return who
}

// readTexts reads a list of up to a thousand texts or numbers.
func readTexts(fields *api.Fields, name string) (list []string) {
	raw, given := fields.TakeList(name, true)
	if !given || api.IsNull(raw) {
		return nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		fields.Fail(name, "not_a_list", "Expected a list of items.")
		return nil
	}
	if len(items) > maxDeleted {
		fields.Err = api.Invalid("", "invalid_input", "You can only pass %d %s in one call", maxDeleted, name)
		return nil
	}
	for _, item := range items {
		var text string
		if !api.Decode(item, &text) {
			fields.Fail(name, "invalid_input", "Not a valid string.")
			return nil
		}
		list = append(list, text)
	}
	return list
}

// delete deletes people of the caller's project.
func (s *People) delete(ctx context.Context, c *api.Caller, r deletions.Request) ([]*registry.Deletion, error) {
	r.Project = c.Project.ID
	if c.Key != nil {
		r.By = c.Key.ID
	}
	r.Enter = func(ctx context.Context) (leave func(), err error) {
		place, err := s.Executor.Places.Enter(ctx, admission.Request{Project: r.Project, Awaited: admission.Awaited, Uncounted: true})
		if err != nil {
			return nil, fmt.Errorf("waiting for a place: %w", err)
		}
		return place.Leave, nil
	}
	done, err := s.Deleter.Delete(ctx, r)
	if refused, ok := errors.AsType[*deletions.RefusedError](err); ok {
		return nil, api.Conflict("cannot_delete", refused.Reason, err)
	}
	return done, err
}

// status is the progress of a deletion, in PostHog's form for the deletion of events, with a few more fields.
type status struct {
	ID          string     `json:"id"`
	Person      string     `json:"person_uuid"`
	Status      string     `json:"status"` // pending, or completed when nothing is left on disk
	CreatedAt   time.Time  `json:"created_at"`
	HiddenAt    *time.Time `json:"hidden_at"`
	VerifiedAt  *time.Time `json:"delete_verified_at"`
	Gone        bool       `json:"person_deleted"`
	Events      bool       `json:"events_deleted"`
	DistinctIDs int        `json:"distinct_ids"`
	EventCount  int64      `json:"event_count"`
}

// The values of the parameter status.
const (
	anyStatus       = "all"
	pendingStatus   = "pending"
	completedStatus = "completed"
)

func statusOf(d *registry.Deletion) status {
	s := status{
		ID: d.ID, Person: d.Person, Status: pendingStatus, CreatedAt: d.RequestedAt, HiddenAt: api.OrNil(d.HiddenAt), VerifiedAt: api.OrNil(d.ErasedAt),
		Gone: d.Gone, Events: d.Events, DistinctIDs: d.DistinctIDs, EventCount: d.EventCount,
	}
	if s.VerifiedAt != nil {
		s.Status = completedStatus
	}
	return s
}

// deletionStatus answers GET persons/deletion_status/: deletions not yet erased first, then the newest.
func (s *People) deletionStatus(_ context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	if err := cannotRead(in); err != nil {
		return nil, err
	}
	given := in.URL.Query()
	wanted := given.Get("status")
	switch wanted {
	case "", anyStatus, pendingStatus, completedStatus:
	default:
		return nil, api.Invalid("status", "invalid_choice", "%q is not a valid choice.", wanted)
	}
	person := ""
	if text := given.Get("person_uuid"); text != "" {
		id, ok := uuidOf(text)
		if !ok {
			return nil, api.Invalid("person_uuid", "invalid", "Must be a valid UUID.")
		}
		person = id
	}
	all := []status{}
	for _, d := range c.Snapshot.Deletions(c.Project.ID) {
		one := statusOf(d)
		if (wanted == "" || wanted == anyStatus || wanted == one.Status) && (person == "" || person == one.Person) {
			all = append(all, one)
		}
	}
	return api.PageOf(in, all)
}
