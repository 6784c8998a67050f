package people

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/taxonomy"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

// maxPersons is the most people on one page.
const maxPersons = 1000

// listed is a person in a list. There are no recordings here and no counted values.
type listed struct {
	api.Person

	Recordings []string `json:"matched_recordings"`
	Value      *float64 `json:"value_at_data_point"`
}

// single is a person on its own.
type single struct {
	api.Person

	LastSeenAt *time.Time `json:"last_seen_at"`
}

// personOf decodes a person in the result of an actors query.
func personOf(c *api.Caller, raw json.RawMessage) (p api.Person, err error) {
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, err
	}
	p.Complete(c)
	return p, nil
}

// listPersons answers GET persons/: newest first.
func (s *People) listPersons(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	limit, offset, err := in.PageParams()
	if err != nil {
		return nil, err
	}
	limit = min(limit, maxPersons)
	properties, err := filters(in, "person")
	if err != nil {
		return nil, err
	}
	if err := mayFilter(c, properties); err != nil {
		return nil, err
	}
	clientID := in.URL.Query().Get("client_query_id")
	if !result.ValidQueryID(clientID) {
		clientID = "" // no path can name it, so nobody can ask for it
	}
	asked := actors(properties, personConditions(in))
	offset = min(offset, maxOffset)
	q, err := asked.page(limit, offset)
	if err != nil {
		return nil, err
	}
	out := struct {
		Count    *int64   `json:"count,omitempty"`
		Next     *string  `json:"next"`
		Previous *string  `json:"previous"`
		Results  []listed `json:"results"`
	}{Results: []listed{}}
	rows, size := 0, 0
	got, err := s.namedRows(ctx, c, q, clientID, func(row []json.RawMessage) error {
		if rows++; size > api.MaxListBytes {
			return nil
		}
		p, err := personOf(c, row[0])
		out.Results = append(out.Results, listed{Person: p, Recordings: []string{}})
		size += len(row[0])
		return err
	})
	if err != nil {
		return &api.Response{Quotas: got.Quotas}, err
	}
	quotas := got.Quotas
	if in.URL.Query().Has("include_total") { // counts whatever its value
		var count int64
		if q, err = asked.count(); err != nil {
			return &api.Response{Quotas: quotas}, err
		}
		got, err = s.namedRows(ctx, c, q, clientID, func(row []json.RawMessage) error { return into(row, &count) })
		if err != nil {
			return &api.Response{Quotas: got.Quotas}, err
		}
		out.Count, quotas = &count, got.Quotas
	}
	if rows == limit || len(out.Results) < rows {
		out.Next = in.PageURL(limit, offset+len(out.Results))
	}
	if offset >= limit {
		out.Previous = in.PreviousURL(limit, offset)
	}
	return api.JSON(http.StatusOK, out).With(quotas), nil
}

// personList is a list of people as a query node, without its limit.
type personList map[string]any

func actors(properties any, condition string) personList {
	list := personList{"kind": "ActorsQuery"}
	if properties != nil {
		list["properties"] = properties
	}
	if condition != "" {
		list["fixedProperties"] = []any{map[string]any{"type": "hogql", "key": condition}}
	}
	return list
}

func (l personList) page(limit, offset int) (query.Node, error) {
	l["select"], l["orderBy"], l["limit"], l["offset"] = []string{"person"}, []string{"created_at DESC", "id DESC"}, limit, offset
	return l.node()
}

func (l personList) count() (query.Node, error) {
	l["select"], l["orderBy"] = []string{"count()"}, []string{}
	delete(l, "limit")
	delete(l, "offset")
	return l.node()
}

func (l personList) node() (query.Node, error) {
	node, err := compiler.Parse(jsontext.Append(nil, l))
	if err != nil {
		return nil, mistakeOf(err)
	}
	return node, nil
}

// personConditions returns the HogQL condition on the people of a list, besides property filters; empty for all people.
func personConditions(in *api.Input) string {
	given := in.URL.Query()
	var all []string
	if id := given.Get("distinct_id"); id != "" {
		all = append(all, ofDistinctID(id))
	}
	if email := given.Get("email"); email != "" {
		all = append(all, "properties.email = "+text(email))
	}
	if search := strings.TrimSpace(given.Get("search")); search != "" {
		pattern := text(filter.Containing(search))
		either := []string{"toString(properties.email) ilike " + pattern, "toString(properties.name) ilike " + pattern, ofDistinctID(search)}
		if id, ok := uuidOf(search); ok {
			either = append(either, ofID(id))
		}
		all = append(all, "("+strings.Join(either, " or ")+")")
	}
	return strings.Join(all, " and ")
}

// ofDistinctID returns the condition that a person has a distinct id.
func ofDistinctID(id string) string {
	return "id in (select person_id from person_distinct_ids where distinct_id = " + text(id) + ")"
}

// ofID returns the condition on a person's id.
func ofID(id string) string { return "id = toUUID(" + text(id) + ")" }

// text returns a text as a HogQL literal.
func text(s string) string { return hogql.PrintExpr(&hogql.Const{Value: s}) }

// getPerson answers GET persons/:id/.
func (s *People) getPerson(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	id, err := personID(in.At.Name)
	if err != nil {
		return nil, err
	}
	found, got, err := s.person(ctx, c, id)
	if err != nil {
		return &api.Response{Quotas: got.Quotas}, err
	}
	got, err = s.rows(ctx, c, taxonomy.LastSeen(id), func(row []json.RawMessage) error {
		var at time.Time
		err := into(row, &at)
		found.LastSeenAt = api.OrNil(at)
		return err
	})
	if err != nil {
		return &api.Response{Quotas: got.Quotas}, err
	}
	return api.JSON(http.StatusOK, found).With(got.Quotas), nil
}

// person finds a person by its id.
func (s *People) person(ctx context.Context, c *api.Caller, id string) (*single, execution.Result, error) {
	q, err := actors(nil, ofID(id)).page(1, 0)
	if err != nil {
		return nil, execution.Result{}, err
	}
	var found *single
	got, err := s.rows(ctx, c, q, func(row []json.RawMessage) error {
		p, err := personOf(c, row[0])
		found = &single{Person: p}
		return err
	})
	if err == nil && found == nil {
		err = api.NotFound("Not found.")
	}
	return found, got, err
}
