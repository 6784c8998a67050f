package warehouse

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Data describes the data of a project at a moment. It is immutable.
type Data struct {
	unknown   bool
	all       uint64            // greater than all below if all data changed after them
	events    epochs            // nil: as old as all
	overrides epochs            // of the persons of events; nil: as old as all
	creations epochs            // of the creation times of these persons; nil: as old as all
	tables    map[string]uint64 // by name, without events
	open      []*change
	probed    *state // where others write too
}

// Version identifies what a query that reads these tables finds in them; of events, only those from from until before to, where a zero time is
// unbounded. Equal versions mean equal data. ok is false if the version is unknown, such as while a batch is being written or is in doubt.
func (d *Data) Version(reads schema.Reads, from, to time.Time) (version uint64, ok bool) {
	if d.unknown {
		return 0, false
	}
	version = d.all
	asked := spanOf(from, to)
	for _, table := range reads.Tables {
		touched := asked
		switch {
		case physical.HoldsEndpoint(table): // rows never change
			continue
		case !physical.Has(table), physical.IsLog(table): // logs get rows all the time, from other servers too
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

// Host returns the host whose data these are: another replica may have older or newer rows for a while. It is the zero Host if no host was probed.
func (d *Data) Host() clickhouse.Host {
	if d == nil || d.probed == nil {
		return clickhouse.Host{}
	}
	return d.probed.host
}

// version identifies what the tables hold besides what this process itself knows.
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

// concerns reports whether the change affects a table and, for events and their persons, a span of time.
func (o *change) concerns(table string, asked span) bool {
	if o.table != "" && o.table != table {
		return false
	}
	return o.spans == nil || asked == allTime[0] || slices.ContainsFunc(o.spans, asked.overlaps)
}

// Data returns the state of a project's data. What is read later is at least as new. Where others write to the tables too, it asks ClickHouse what
// the tables hold, which needs the place; elsewhere the place may be nil.
func (w *Warehouse) Data(ctx context.Context, at *admission.Place, project int64, reads schema.Reads) (*Data, error) {
	switch {
	case w.ingest.Alone:
		if slices.Contains(reads.Tables, physical.Overrides) {
			w.changes.watch(project)
		}
		return w.changes.now(project), nil
	case w.prober == nil:
		return &Data{unknown: true}, nil
	}
	data := w.changes.now(project) // before the probe, which sees everything done by then
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
