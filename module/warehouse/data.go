package warehouse

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolve"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Data says which data a project has, as of a moment. It is immutable.
type Data struct {
	unknown   bool
	all       uint64            // greater than all below if all data changed after that
	events    epochs            // nil: as old as all
	overrides epochs            // of the persons of events; nil: as old as all
	creations epochs            // of the times at which these were created; nil: as old as all
	tables    map[string]uint64 // by name, but for events
	open      []*change
	probed    *state // where others write too
}

// Version tells apart what a query that reads these tables finds in them, of events those of a span of time, whose end is not part of it; zero
// times mean all. Equal versions mean equal data. It is false when that is not known, such as while a batch is being written, or in doubt.
func (d *Data) Version(reads resolve.Reads, from, to time.Time) (version uint64, ok bool) {
	if d.unknown {
		return 0, false
	}
	version = d.all
	asked := spanOf(from, to)
	for _, table := range reads.Tables {
		touched := asked
		switch {
		case physical.HoldsEndpoint(table): // its rows never change
			continue
		case !physical.Has(table), physical.IsLog(table): // a log gets rows all the time, of other servers too
			return 0, false
		case table == physical.Events:
			version = max(version, d.events.of(asked))
		case table == physical.Overrides && !reads.Overrides:
			version = max(version, d.overrides.of(asked))
		case table == physical.Persons && reads.Created:
			version = max(version, d.creations.of(asked))
		default:
			touched = allTime[0]
			version = max(version, d.tables[table])
		}
		for _, o := range d.open {
			if o.concerns(table, touched) {
				return 0, false
			}
		}
	}
	if d.probed != nil {
		return d.probed.version(version, reads.Tables, asked)
	}
	return version, true
}

// Host is the host whose data they are: another replica may have older or newer rows for a while. It is the zero Host if no host was probed.
func (d *Data) Host() clickhouse.Host {
	if d == nil || d.probed == nil {
		return clickhouse.Host{}
	}
	return d.probed.host
}

// version tells apart what tables have, beside what this process knows of them.
func (s *state) version(own uint64, tables []string, asked span) (version uint64, ok bool) {
	text := append(binary.LittleEndian.AppendUint64(nil, own), s.host.String()...)
	for _, table := range tables {
		if physical.HoldsEndpoint(table) {
			continue
		}
		if text, ok = s.appendTo(text, table, asked); !ok {
			return 0, false
		}
	}
	return number(text), true
}

// concerns reports whether a change is one of a table, and of events or their persons of one in a span.
func (o *change) concerns(table string, asked span) bool {
	if o.table != "" && o.table != table {
		return false
	}
	return o.spans == nil || asked == allTime[0] || slices.ContainsFunc(o.spans, asked.overlaps)
}

// Data says which data a project has now. What is read later is at least as new. Where others write to the tables too, ClickHouse is
// asked about what the tables have, for which it takes the place; else the place may be nil.
func (w *Warehouse) Data(ctx context.Context, at *admission.Place, project int64, reads resolve.Reads) (*Data, error) {
	switch {
	case w.ingest.Alone:
		if slices.Contains(reads.Tables, physical.Overrides) {
			w.changes.watch(project)
		}
		return w.changes.now(project), nil
	case w.prober == nil:
		return &Data{unknown: true}, nil
	}
	data := w.changes.now(project) // before the probe, as what is done by then is seen by it
	var tables []string
	for _, table := range reads.Tables {
		if physical.Has(table) {
			tables = append(tables, table)
		}
	}
	if len(tables) == 0 || data.unknown {
		return data, nil
	}
	var err error
	data.probed, err = w.prober.probe(ctx, at, project, tables)
	if err != nil || data.probed == nil {
		return &Data{unknown: true}, err
	}
	return data, nil
}

// Probes reports whether Data asks ClickHouse, and needs a place for that.
func (w *Warehouse) Probes() bool { return w.prober != nil }
