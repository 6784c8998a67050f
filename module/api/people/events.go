package people

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/elements"
	"github.com/caddy-analytics/caddy-analytics/compiler/taxonomy"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

// event is an event in JSON.
type event struct {
	ID            string             `json:"id"`
	DistinctID    string             `json:"distinct_id"`
	Properties    json.RawMessage    `json:"properties"`
	Event         string             `json:"event"`
	Timestamp     time.Time          `json:"timestamp"`
	PersonID      string             `json:"person_id"`
	Person        *eventPerson       `json:"person"` // null if there is none
	Elements      []elements.Element `json:"elements"`
	ElementsChain string             `json:"elements_chain"`
}

// eventPerson holds the fields of an event's person that are shown.
type eventPerson struct {
	IsIdentified bool           `json:"is_identified"`
	DistinctIDs  []string       `json:"distinct_ids"`
	Properties   map[string]any `json:"properties"`
}

// eventOf decodes a row of taxonomy.EventPage. It does not parse the chain of elements, which can take much more memory.
func eventOf(row []json.RawMessage) (event, error) {
	var (
		e          event
		properties string
		person     eventPerson
		known      int
		identified int
		shown      [3]any
	)
	err := into(row, &e.ID, &e.Event, &properties, &e.Timestamp, &e.DistinctID, &e.ElementsChain, &e.PersonID,
		&known, &identified, &shown[0], &shown[1], &shown[2])
	if err != nil {
		return e, err
	}
	if known == 1 {
		person.IsIdentified = identified == 1
		person.DistinctIDs, person.Properties = []string{e.DistinctID}, map[string]any{}
		for i, name := range taxonomy.ShownProperties {
			if shown[i] != nil {
				person.Properties[name] = shown[i]
			}
		}
		e.Person = &person
	}
	e.Properties, err = object(properties)
	return e, err
}

// listEvents answers GET events/: newest first, unless the caller asks for the oldest first.
func (s *People) listEvents(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	f, err := readEventFilter(c, in)
	if err != nil {
		return nil, err
	}
	q, err := f.query()
	if err != nil {
		return nil, err
	}
	var found []event
	got, err := s.rows(ctx, c, q, func(row []json.RawMessage) error {
		e, err := eventOf(row)
		found = append(found, e)
		return err
	})
	if err != nil {
		return &api.Response{Quotas: got.Quotas}, err
	}
	body, shown := []byte(`"results":[`), 0
	for ; shown < min(len(found), f.limit); shown++ {
		one := found[shown]
		one.Elements = elements.Of(one.ElementsChain)
		record := jsontext.Append(nil, one)
		if shown > 0 {
			if len(body)+len(record) > api.MaxListBytes {
				break
			}
			body = append(body, ',')
		}
		body = append(body, record...)
	}
	var next *string
	if shown < len(found) || len(found) == maxEvents {
		next = f.next(in, found, shown)
	}
	head := append(jsontext.Append([]byte(`{"next":`), next), ',')
	return api.Raw(http.StatusOK, append(append(head, body...), `]}`...)).With(got.Quotas), nil
}

// getEvent answers GET events/:id/.
func (s *People) getEvent(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	id, ok := uuidOf(in.At.Name)
	if !ok {
		return nil, api.Invalid("", "invalid", "Invalid UUID")
	}
	var found *event
	got, err := s.rows(ctx, c, taxonomy.OneEvent(id), func(row []json.RawMessage) error {
		e, err := eventOf(row)
		found = &e
		return err
	})
	switch {
	case err != nil:
		return &api.Response{Quotas: got.Quotas}, err
	case found == nil:
		return &api.Response{Quotas: got.Quotas}, api.NotFound("No events exist for event UUID " + in.At.Name)
	}
	found.Elements = elements.Of(found.ElementsChain)
	if !api.IsTrue(in.URL.Query().Get("include_person")) {
		found.Person = nil
	}
	return api.JSON(http.StatusOK, found).With(got.Quotas), nil
}
