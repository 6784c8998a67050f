package people

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/taxonomy"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

// maxEvents is the most events in one response.
const maxEvents = execution.MaxRows

// maxOffset is where pages end. Nobody pages that far, and sums with it fit an int.
const maxOffset = 1_000_000_000

// eventFilter says which events a caller requests.
type eventFilter struct {
	taxonomy.EventPage

	limit      int // of the response; the query asks for one more to see whether there are more
	properties any // property filters as JSON; nil if there are none
}

func readEventFilter(c *api.Caller, in *api.Input) (*eventFilter, error) {
	f := &eventFilter{}
	limit, offset, err := in.PageParams()
	if err != nil {
		return nil, err
	}
	f.limit = min(limit, maxEvents)
	f.Limit, f.Offset = min(f.limit+1, maxEvents), min(offset, maxOffset)
	given := in.URL.Query()
	f.Event, f.DistinctID = given.Get("event"), given.Get("distinct_id")
	if id := given.Get("person_id"); id != "" {
		var ok bool
		if f.Person, ok = uuidOf(id); !ok {
			return nil, api.Invalid("person_id", "invalid_input", "person_id must be the UUID of a person.")
		}
	}
	if f.OldestFirst, err = oldestFirst(given.Get("orderBy")); err != nil {
		return nil, err
	}
	if f.After, err = moment(c, given, "after"); err != nil {
		return nil, err
	}
	if f.Before, err = moment(c, given, "before"); err != nil {
		return nil, err
	}
	if f.Before.IsZero() { // clients' clocks may be slightly ahead of this server's
		f.Before = c.Start.Add(5 * time.Second)
	}
	f.properties, err = filters(in, "event")
	return f, err
}

// oldestFirst reads the parameter orderBy: an order, or a JSON list of one.
func oldestFirst(text string) (bool, error) {
	if strings.HasPrefix(text, "[") {
		var list []string
		if err := json.Unmarshal([]byte(text), &list); err != nil || len(list) != 1 {
			return false, api.Invalid("orderBy", "invalid_input", `orderBy must be ["-timestamp"] or ["timestamp"].`)
		}
		text = list[0]
	}
	switch text {
	case "", "-timestamp":
		return false, nil
	case "timestamp":
		return true, nil
	}
	return false, api.Invalid("orderBy", "invalid_input", `orderBy must be ["-timestamp"] or ["timestamp"].`)
}

// moment reads a bound of time: ISO 8601, or relative, such as -7d.
func moment(c *api.Caller, given url.Values, name string) (time.Time, error) {
	text := given.Get(name)
	if text == "" || name == "after" && text == "all" {
		return time.Time{}, nil
	}
	at, ok := filter.Date(text, c.Start, c.Snapshot.Schema(c.Project.ID).Location, c.Project.WeekStart)
	if !ok {
		return at, api.Invalid(name, "invalid_input", "The date is neither ISO 8601 nor relative, such as -7d")
	}
	return at, nil
}

// query returns the query for the events. An error is a mistake in the property filters.
func (f *eventFilter) query() (*query.HogQL, error) {
	q := f.Query()
	if f.properties == nil {
		return q, nil
	}
	node, err := compiler.Parse(jsontext.Append(nil, map[string]any{
		"kind": "HogQLQuery", "query": "select 1", "filters": map[string]any{"properties": f.properties},
	}))
	if err != nil {
		return nil, mistakeOf(err)
	}
	q.Filters = node.(*query.HogQL).Filters
	return q, nil
}

// next returns the URL of the events after the first n of found. As in PostHog's API, it bounds the time by that of the last event shown. If the event after
// it may have the same time, it loosens the bound by one microsecond to include that time, and skips the events of that time already shown by an offset, so
// that no event is left out.
func (f *eventFilter) next(in *api.Input, found []event, n int) *string {
	last := found[n-1].Timestamp
	bound, value, step := "before", last, time.Microsecond
	if f.OldestFirst {
		bound, step = "after", -time.Microsecond
	}
	passed := 0
	if n == len(found) || found[n].Timestamp.Equal(last) {
		first := n
		for first > 0 && found[first-1].Timestamp.Equal(last) {
			first--
		}
		value, passed = last.Add(step), n-first
		if first == 0 { // an offset may have skipped events of this time already
			passed += f.Offset
			value = f.Before
			if f.OldestFirst {
				value = f.After
			}
		}
	}
	params := in.URL.Query()
	params.Del("offset")
	if passed > 0 {
		params.Set("offset", strconv.Itoa(passed))
	}
	if params.Del(bound); !value.IsZero() {
		params.Set(bound, value.Format(time.RFC3339Nano))
	}
	link := in.Base() + (&url.URL{Path: in.URL.Path, RawQuery: params.Encode()}).String()
	return &link
}
