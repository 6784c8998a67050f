package definitions

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/contents"
)

// eventRecord is an event in JSON. It counts as created when it was first seen.
type eventRecord struct {
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
	events, quotas, err := contents.Events(ctx, d.Executor, &c)
	if err != nil {
		return api.Response{Quotas: quotas}, err
	}
	slices.SortStableFunc(events, func(a, b contents.Event) int {
		if strings.HasPrefix(order, "-") {
			return by(b, a)
		}
		return by(a, b)
	})
	records := []eventRecord{}
	for _, e := range events {
		if searched(in, e.Name) {
			records = append(records, eventRecord{
				described: describe(&c, "event", e.Name), CreatedAt: e.FirstSeen, LastSeenAt: e.LastSeen, DefaultColumns: []string{},
			})
		}
	}
	return pageOf(in, records, quotas)
}

// eventOrders are the orders of events; without one it is contents.LatestFirst, then by name.
var eventOrders = map[string]func(a, b contents.Event) int{
	"":             contents.LatestFirst,
	"name":         func(a, b contents.Event) int { return strings.Compare(a.Name, b.Name) },
	"last_seen_at": func(a, b contents.Event) int { return a.LastSeen.Compare(b.LastSeen) },
}
