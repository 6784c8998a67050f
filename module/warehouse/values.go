package warehouse

import (
	"context"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// eventsAtOnce is how many events one query about stored values reads, unless a single day has more.
const eventsAtOnce = 1_000_000

// BeginNotes is ingest.Ingester.BeginNotes. It takes turns with other servers, and waits for no place.
func (w *Warehouse) BeginNotes(ctx context.Context, options ingest.Options, note func(context.Context) error) error {
	options.Turn = w.turnOf(options.Project)
	return w.ingest.BeginNotes(ctx, options, note)
}

// StoredValues finds out which kinds of values the properties of a project have in the tables. It reads all columns of properties in pieces, each of
// which waits in the background for a place of its own.
func (w *Warehouse) StoredValues(ctx context.Context, places *admission.Scheduler, project int64) (*ingest.Stored, error) {
	var days []clickhouse.Day
	err := inBackground(ctx, places, project, func(at *admission.Place) (err error) {
		days, err = w.client.EventDays(ctx, project, at.Yields())
		return err
	})
	if err != nil {
		return nil, err
	}
	found := new(ingest.Stored)
	for _, of := range ingest.PropertyColumns() {
		spans := datesOf(days)
		if of.Table != physical.Events {
			spans = []dates{{}}
		}
		for _, span := range spans {
			in := clickhouse.JSONColumn{Table: of.Table, Name: of.Column, From: span.from, To: span.to, Group: of.Group}
			err := inBackground(ctx, places, project, func(at *admission.Place) error {
				paths, err := w.client.Paths(ctx, project, in, at.Yields())
				for _, p := range paths {
					found.Add(of, p.Key, p.Kinds)
				}
				return err
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// inBackground calls do in a place that nobody waits for.
func inBackground(ctx context.Context, places *admission.Scheduler, project int64, do func(*admission.Place) error) error {
	at, err := places.Enter(ctx, admission.Request{Project: project, Uncounted: true})
	if err != nil {
		return err
	}
	defer at.Leave()
	return do(at)
}

// dates is a range from a first to a last day.
type dates struct{ from, to string }

// datesOf divides days into ranges with a limited number of events.
func datesOf(days []clickhouse.Day) (spans []dates) {
	events := int64(0)
	for n, d := range days {
		if events += d.Events; n == 0 || events > eventsAtOnce {
			spans, events = append(spans, dates{from: d.Date}), d.Events
		}
		spans[len(spans)-1].to = d.Date
	}
	return spans
}
