package definitions

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/taxonomy"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
)

// Event is an event in JSON. It counts as created when it was first seen.
type Event struct {
	described
	Owner          *api.User `json:"owner"`
	CreatedAt      time.Time `json:"created_at"`
	LastSeenAt     time.Time `json:"last_seen_at"`
	IsAction       bool      `json:"is_action"`
	PostToSlack    bool      `json:"post_to_slack"`
	DefaultColumns []string  `json:"default_columns"`
}

// listEvents answers GET event_definitions/: the events that were seen, the latest first.
func (d *Definitions) listEvents(ctx context.Context, c api.Caller, in api.Input) (api.Response, error) {
	order := in.URL.Query().Get("ordering")
	by, ok := eventOrders[strings.TrimPrefix(order, "-")]
	if !ok {
		return api.Response{}, api.Invalid("ordering", "invalid_choice", "%q is not a valid choice.", order)
	}
	records, quotas, err := d.Events(ctx, &c)
	if err != nil {
		return api.Response{Quotas: quotas}, err
	}
	records = slices.DeleteFunc(records, func(r Event) bool { return !searched(in, r.Name) })
	slices.SortStableFunc(records, func(a, b Event) int {
		if strings.HasPrefix(order, "-") {
			return by(b, a)
		}
		return by(a, b)
	})
	return pageOf(in, records, quotas)
}

// Events returns the events that were seen, by name, and the caller's quotas.
func (d *Definitions) Events(ctx context.Context, c *api.Caller) ([]Event, execution.Quotas, error) {
	got, err := d.ask(ctx, c, taxonomy.Events())
	if err != nil {
		return nil, got.Quotas, err
	}
	records := []Event{}
	for row := range got.Answer.Entry.Result.Rows() {
		var name string
		record := Event{DefaultColumns: []string{}}
		if err := json.Unmarshal(row, &[]any{&name, &record.CreatedAt, &record.LastSeenAt}); err != nil {
			return nil, got.Quotas, fmt.Errorf("reading an event: %w", err)
		}
		record.described = describe(c, "event", name)
		records = append(records, record)
	}
	return records, got.Quotas, nil
}

// eventOrders are the orders of events; without one it is LatestFirst, then by name.
var eventOrders = map[string]func(a, b Event) int{
	"":             LatestFirst,
	"name":         func(a, b Event) int { return strings.Compare(a.Name, b.Name) },
	"last_seen_at": func(a, b Event) int { return a.LastSeenAt.Compare(b.LastSeenAt) },
}

// LatestFirst compares the days on which two events were last seen.
func LatestFirst(a, b Event) int {
	const day = 24 * time.Hour
	return b.LastSeenAt.Truncate(day).Compare(a.LastSeenAt.Truncate(day))
}
