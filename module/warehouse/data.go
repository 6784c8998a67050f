package warehouse

import (
	"context"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/resolve"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
)

// Data says which data a project has, as of a moment. It is immutable.
type Data struct{}

// Version tells apart what a query that reads these tables finds in them, of events those of a span of time, whose end is not part of it; zero
// times mean all. Equal versions mean equal data. It is false when that is not known, such as while a batch is in doubt.
func (*Data) Version(resolve.Reads, time.Time, time.Time) (version uint64, ok bool) { return 0, false }

// Data says which data a project has now. What is read later is at least as new. Where others write to the tables too, ClickHouse is
// asked about what the tables have of the span, for which it takes the place; else the place may be nil.
func (w *Warehouse) Data(_ context.Context, _ *admission.Place, _ int64, _ resolve.Reads, _, _ time.Time) (*Data, error) {
	return &Data{}, nil
}

// Probes reports whether Data asks ClickHouse, and needs a place for that.
func (w *Warehouse) Probes() bool { return false }
