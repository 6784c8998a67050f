package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/columntype"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// describeTimeout bounds the time for asking ClickHouse about one query that is published.
const describeTimeout = 5 * time.Second

// describer asks ClickHouse about one query that is published, with several values for its variables. It enters one place for all of that when it first
// asks.
type describer struct {
	*Publisher
	place *admission.Place
	until time.Time // when it has held the place for long enough
}

func (d *describer) enter(ctx context.Context) (err error) {
	if d.place == nil {
		d.place, err = d.admit(ctx)
		d.until = time.Now().Add(describeTimeout)
	}
	return err
}

func (d *describer) close() {
	if d.place != nil {
		d.place.Leave()
	}
}

// columns returns the columns of a query for a run without variables. A variable without a value is then NULL. If the query can't have NULL there, every
// run has to give the variable, so the columns are those of a run that does.
func (d *describer) columns(ctx context.Context, node query.Node, now time.Time) ([]registry.Column, error) {
	columns, err := d.columnsOf(ctx, node, now)
	if err == nil || execution.IsRefusal(err) {
		return columns, err
	}
	if filled := d.filled(node, typicalValue); filled != nil {
		if typical, again := d.columnsOf(ctx, filled, now); again == nil || execution.IsRefusal(again) {
			return typical, again
		}
	}
	return nil, err
}

func (d *describer) columnsOf(ctx context.Context, node query.Node, now time.Time) ([]registry.Column, error) {
	compiled, err := d.Compile(ctx, node, now)
	if err != nil {
		return nil, err
	}
	return d.describe(ctx, compiled)
}

// describe asks ClickHouse for the columns of a query. It returns an error if ClickHouse refuses the query, so that the author sees it before a customer's
// dashboard does. If ClickHouse is down or takes too long, the types remain unknown.
func (d *describer) describe(ctx context.Context, compiled *compiler.Compiled) ([]registry.Column, error) {
	if err := d.enter(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithDeadline(ctx, d.until)
	defer cancel()
	comment := execution.Comment(d.project.ID, map[string]any{"describe": true})
	found, err := d.exec.Shards.Of(d.project.ID).Describe(ctx, d.place, execution.QueryOf(compiled, d.project.ID, comment))
	var failure *clickhouse.Error
	switch {
	case errors.As(err, &failure) && failure.ByQuery():
		answer := api.EngineError(failure)
		answer.Attr = "query"
		return nil, answer
	case execution.StaleIsBetter(err), errors.Is(err, context.DeadlineExceeded):
		found = nil
	case err != nil:
		return nil, fmt.Errorf("describing a query: %w", err)
	}
	if compiled.Shape != nil {
		return nil, nil // the result of an insight has no columns
	}
	columns := make([]registry.Column, len(compiled.Columns))
	for i, name := range compiled.Columns {
		columns[i] = registry.Column{Name: name, Type: columntype.Unknown}
		if i < len(found) {
			columns[i].Type, columns[i].ClickHouse = columntype.Wire(found[i].Type), found[i].Type
		}
	}
	return columns, nil
}
