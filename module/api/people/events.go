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
	shown := min(len(found), f.limit)
	page := eventPage{events: found[:shown]}
	if shown < len(found) || len(found) == maxEvents {
		page.next = f.next(in, found, shown)
	}
	res := page.response().With(got.Quotas)
	if res.Stream != nil { // the events stay in memory until the client has them
		err = api.MemoryError(in.Memory.Take(ctx, int64(page.size())))
	}
	return res, err
}

// eventPage is a page of a list of events. It has as many as the caller asked for, however large they are, because clients that page by offset take a
// shorter page for the last one.
type eventPage struct {
	next   *string
	events []event
}

// response returns the page as a response. A page of more than api.MaxListBytes is encoded while it is sent: its elements can take many times the memory of
// its events.
func (p *eventPage) response() *api.Response {
	body := append(jsontext.Append([]byte(`{"next":`), p.next), `,"results":[`...)
	body, rest := p.append(body, 0, api.MaxListBytes)
	if rest == len(p.events) {
		return api.Raw(http.StatusOK, append(body, `]}`...))
	}
	return &api.Response{Stream: func(w http.ResponseWriter) error {
		p.send(w, body, rest)
		return nil
	}}
}

// size returns roughly how many bytes the events take.
func (p *eventPage) size() (bytes int) {
	for _, one := range p.events {
		bytes += len(one.Properties) + len(one.ElementsChain)
	}
	return bytes
}

// append appends events to dst, from a given one, until it has a size. It returns the number of the first event that it left out.
func (p *eventPage) append(dst []byte, from, size int) (body []byte, rest int) {
	for ; from < len(p.events) && len(dst) < size; from++ {
		one := p.events[from]
		one.Elements = elements.Of(one.ElementsChain)
		if from > 0 {
			dst = append(dst, ',')
		}
		dst = jsontext.Append(dst, one)
	}
	return dst, from
}

// pieceSize is roughly how much of a page is encoded at a time, in bytes.
const pieceSize = 64 << 10

// send sends the beginning of a page, and then the events from a given one. It ends early only if the client is gone.
func (p *eventPage) send(w http.ResponseWriter, piece []byte, rest int) {
	w.Header()["Content-Type"] = []string{api.JSONType}
	w.Header()["Cache-Control"] = []string{"no-store"}
	w.WriteHeader(http.StatusOK)
	defer api.LimitSending(w, p.size())()
	for {
		last := rest == len(p.events)
		if last {
			piece = append(piece, `]}`...)
		}
		if _, err := w.Write(piece); err != nil || last {
			return
		}
		piece, rest = p.append(piece[:0], rest, pieceSize)
	}
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
