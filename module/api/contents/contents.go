// Package contents lists what the data of a project contains: events, their properties, and the values of these. Each list is computed by a query of the
// caller, and may be up to maxAge old unless its function says otherwise. The functions return the caller's quotas, even with an error.
package contents

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/taxonomy"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
)

// maxAge is the maximum age of a list.
const maxAge = 5 * time.Minute

// Event is an event with the times at which it was first and last seen.
type Event struct {
	Name                string
	FirstSeen, LastSeen time.Time
}

// CompareDays compares the days of two times, in UTC.
func CompareDays(a, b time.Time) int {
	const day = 24 * time.Hour
	return a.Truncate(day).Compare(b.Truncate(day))
}

// Events returns the events that were seen, by name.
func Events(ctx context.Context, e *execution.Executor, c *api.Caller) (events []Event, quotas execution.Quotas, err error) {
	var one Event
	quotas, err = Rows(ctx, e, c, taxonomy.Events(), []any{&one.Name, &one.FirstSeen, &one.LastSeen}, func() { events = append(events, one) })
	return events, quotas, err
}

// EventsNow is Events on the current data.
func EventsNow(ctx context.Context, e *execution.Executor, c *api.Caller) (events []Event, quotas execution.Quotas, err error) {
	var one Event
	quotas, err = RowsNow(ctx, e, c, taxonomy.Events(), []any{&one.Name, &one.FirstSeen, &one.LastSeen}, func() { events = append(events, one) })
	return events, quotas, err
}

// PropertiesOf returns the names of the properties of the latest events with these names.
func PropertiesOf(ctx context.Context, e *execution.Executor, c *api.Caller, events []string) (map[string]bool, execution.Quotas, error) {
	return properties(ctx, e, c, taxonomy.Properties(events))
}

// PropertiesOfAction returns the names of the properties of the latest events that match an action.
func PropertiesOfAction(ctx context.Context, e *execution.Executor, c *api.Caller, action int64) (map[string]bool, execution.Quotas, error) {
	return properties(ctx, e, c, taxonomy.ActionProperties(action))
}

func properties(ctx context.Context, e *execution.Executor, c *api.Caller, q *query.HogQL) (map[string]bool, execution.Quotas, error) {
	seen, name := map[string]bool{}, ""
	quotas, err := Rows(ctx, e, c, q, []any{&name}, func() { seen[name] = true })
	return seen, quotas, err
}

// Property is a property of an event. Kinds are the first characters of its values as JSON.
type Property struct {
	Event, Name string
	Kinds       []string
}

// PropertiesByEvent returns the properties of the latest events of each name, except those that SDKs set.
func PropertiesByEvent(ctx context.Context, e *execution.Executor, c *api.Caller) (all []Property, quotas execution.Quotas, err error) {
	var one Property
	quotas, err = Rows(ctx, e, c, taxonomy.PropertiesByEvent(), []any{&one.Event, &one.Name, &one.Kinds}, func() {
		all = append(all, one)
		one.Kinds = nil // the next row must not overwrite these
	})
	return all, quotas, err
}

// Rows runs a query. For each row, it decodes the values into the pointers and then calls each.
func Rows(ctx context.Context, e *execution.Executor, c *api.Caller, q *query.HogQL, pointers []any, each func()) (execution.Quotas, error) {
	got, err := result.Ask(ctx, e, c, q, maxAge)
	if err != nil {
		return got.Quotas, err
	}
	return got.Quotas, decode(got, pointers, each)
}

// RowsNow is Rows on the current data.
func RowsNow(ctx context.Context, e *execution.Executor, c *api.Caller, q *query.HogQL, pointers []any, each func()) (execution.Quotas, error) {
	got, err := result.Compute(ctx, e, c, q)
	if err != nil {
		return got.Quotas, err
	}
	return got.Quotas, decode(got, pointers, each)
}

func decode(got execution.Result, pointers []any, each func()) error {
	for row := range got.Answer.Entry.Result.Rows() {
		values := slices.Clone(pointers)
		if err := json.Unmarshal(row, &values); err != nil {
			return fmt.Errorf("reading a row: %w", err)
		}
		each()
	}
	return nil
}
