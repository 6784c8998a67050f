// Package people shows the people of a project and their events: lists, single records, and the values of properties. It also changes the properties of
// people (contract clients.md section 1). It reads through queries of the caller, which obey the limits and fences of every other query.
package people

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/deletions"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
)

// People handles the routes of people and events.
type People struct {
	Executor *execution.Executor
	// Change changes the properties of a person, so that the next response shows it.
	Change  func(ctx context.Context, project int64, change ingest.Change) error
	Deleter *deletions.Deleter
}

// Routes returns the routes of people and events.
func (s *People) Routes() []api.Route {
	const readPerson, writePerson, readEvents = "person:read", "person:write", result.QueryScope
	return append(s.deletionRoutes(), []api.Route{
		{Method: http.MethodGet, Pattern: "events", Scope: readEvents, Handler: s.listEvents},
		{Method: http.MethodGet, Pattern: "events/values", Scope: readEvents, Handler: s.eventValues},
		{Method: http.MethodGet, Pattern: "events/:name", Scope: readEvents, Handler: s.getEvent},

		{Method: http.MethodGet, Pattern: "persons", Scope: readPerson, Handler: s.listPersons},
		{Method: http.MethodPost, Pattern: "persons", Scope: writePerson, Handler: createPerson},
		{Method: http.MethodGet, Pattern: "persons/values", Scope: readPerson, Handler: s.personValues},
		{Method: http.MethodGet, Pattern: "persons/:name", Scope: readPerson, Handler: s.getPerson},
		{Method: http.MethodPatch, Pattern: "persons/:name", Scope: writePerson, Handler: s.setProperties},
		{Method: http.MethodPut, Pattern: "persons/:name", Scope: writePerson, Handler: s.setProperties},
		{Method: http.MethodPost, Pattern: "persons/:name/update_property", Scope: writePerson, Handler: s.setProperty},
		{Method: http.MethodPost, Pattern: "persons/:name/delete_property", Scope: writePerson, Handler: s.unsetProperties},
	}...)
}

// createPerson answers POST persons/.
func createPerson(context.Context, *api.Caller, *api.Input) (*api.Response, error) {
	refused := api.MethodNotAllowed(http.MethodPost, "GET, HEAD, OPTIONS")
	refused.Detail = "Creating persons via this API is not allowed. Send an event with the distinct ID of the person instead."
	return nil, refused
}

// rows runs a query on the current data, and calls each with the values of every row.
func (s *People) rows(ctx context.Context, c *api.Caller, q query.Node, each func(row []json.RawMessage) error) (execution.Result, error) {
	return s.namedRows(ctx, c, q, "", each)
}

// namedRows is rows for a query that the caller has named, so that it can be canceled while it runs.
func (s *People) namedRows(
	ctx context.Context, c *api.Caller, q query.Node, clientID string, each func(row []json.RawMessage) error,
) (execution.Result, error) {
	p, err := result.PlanNode(s.Executor, &c.Caller, q, result.Overrides{}, execution.RefreshForceBlocking)
	if err != nil {
		return execution.Result{}, mistakeOf(err)
	}
	p.ClientID = clientID
	got, err := s.Executor.Refresh(ctx, &c.Caller, p.Query, &p.Freshness, execution.Origin{}, p)
	if err != nil {
		return got, mistakeOf(err)
	}
	for row := range got.Answer.Entry.Result.Rows() {
		var values []json.RawMessage
		if err := json.Unmarshal(row, &values); err != nil {
			return got, fmt.Errorf("reading a row: %w", err)
		}
		if err := each(values); err != nil {
			return got, err
		}
	}
	return got, nil
}

// mistakeOf returns a mistake in a parameter under the parameter's name. The server wrote the rest of the query, so it leaves out the position.
func mistakeOf(err error) error {
	found := api.ErrorOf(err)
	if found.Status != http.StatusBadRequest {
		return err
	}
	told := *found
	if attr, ok := told.Attr.(string); ok {
		told.Attr = strings.TrimPrefix(attr, "filters.")
	}
	told.Extra = nil
	return &told
}

// into decodes the values of a row; null leaves the target unchanged.
func into(row []json.RawMessage, pointers ...any) error {
	if len(row) < len(pointers) {
		return fmt.Errorf("a row has %d values, want %d", len(row), len(pointers))
	}
	for i, p := range pointers {
		if err := json.Unmarshal(row[i], p); err != nil {
			return fmt.Errorf("reading value %d of a row: %w", i, err)
		}
	}
	return nil
}

// uuidOf parses a UUID as clients write it, with or without hyphens.
func uuidOf(text string) (string, bool) {
	id, err := uuid.Parse(text)
	if err != nil || len(text) != 36 && len(text) != 32 {
		return "", false
	}
	return id.String(), true
}

// cannotRead refuses a malformed query string: its parameters would count as not given.
func cannotRead(in *api.Input) error {
	_, _, err := in.QueryInt("")
	return err
}

var errNotText = errors.New("properties are not text")

// object returns a JSON object that is stored as text; an empty text is an empty object.
func object(text string) (json.RawMessage, error) {
	if text == "" {
		return json.RawMessage("{}"), nil
	}
	if !json.Valid([]byte(text)) {
		return nil, errNotText
	}
	return json.RawMessage(text), nil
}
