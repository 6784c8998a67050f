package warehouse

import (
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// changes records which data of which projects this process has changed. When a change becomes visible, the data it touched gets a version greater
// than all before. Until then, or while the outcome is in doubt, the version of that data is unknown.
type changes struct {
	mu       sync.Mutex
	last     uint64 // the last version given
	all      uint64 // the version of all data of all projects
	others   uint64 // the version of the data of projects without a history
	projects map[int64]*history
	watched  map[int64]time.Time // when somebody last asked about overrides, by project
	open     []*change           // changes of all projects
}

// history holds the versions of a project's data.
type history struct {
	first     uint64 // the version when the history began
	events    epochs
	overrides epochs            // of the persons of each hour's events
	creations epochs            // of the creation times of these persons, except for events without a profile
	tables    map[string]uint64 // by name, without events; replaced, never modified
	open      []*change
}

// change is a change that has begun and may not have ended.
type change struct {
	table string // empty: all tables
	spans []span // the times of events that are written, or whose person or whose person's creation time changes; nil: all events
	kind  changeKind
	began time.Time
	// When it failed although ClickHouse may still be executing it; zero before.
	failed time.Time
}

// changeKind says when a failed change has certainly ended.
type changeKind uint8

const (
	insertion changeKind = iota // once ingest has waited for it
	statement                   // once ClickHouse has ended it, which takes a limited time
	mutation                    // once a later one of the same table is done
)

// statementTime is the time after which ClickHouse has certainly ended a statement.
const statementTime = clickhouse.MaxFillTime + time.Minute

func newChanges() *changes {
	start := uint64(time.Now().UnixNano()) // no process gives a version that an earlier one gave
	return &changes{last: start, all: start, others: start, projects: map[int64]*history{}, watched: map[int64]time.Time{}}
}

// history returns the history of a project. The caller holds mu.
func (c *changes) history(project int64) *history {
	h := c.projects[project]
	if h == nil {
		first := max(c.all, c.others)
		h = &history{first: first, events: epochs{{firstHour, first}}, overrides: epochs{{firstHour, first}}, creations: epochs{{firstHour, first}}}
		c.projects[project] = h
	}
	return h
}

// next returns a version that no data has had. The caller holds mu.
func (c *changes) next() uint64 {
	c.last++
	return c.last
}

// begin records the beginning of a change of a project. end is called when it is done, or with its error.
func (c *changes) begin(project int64, one *change) (end func(error)) {
	end, _ = c.beginOne(project, one)
	return end
}

// beginOne is begin. alone is called instead of end if no statement ran that proves earlier ones done.
func (c *changes) beginOne(project int64, one *change) (end, alone func(error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.history(project)
	one.began = time.Now()
	h.open = append(h.open, one)
	alone = func(err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended(h, one, err)
	}
	end = func(err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended(h, one, err)
		if err != nil || one.kind != mutation {
			return
		}
		for _, h := range c.projects { // ClickHouse executes the mutations of a table one after the other
			c.doneIf(h, func(o *change) bool {
				return o.kind == mutation && !o.failed.IsZero() && !o.failed.After(one.began) && o.table == one.table
			})
		}
	}
	return end, alone
}

// ended records the end of a change. The caller holds mu.
func (c *changes) ended(h *history, one *change, err error) {
	switch {
	case errors.Is(err, errUnchanged):
		h.open = slices.DeleteFunc(slices.Clone(h.open), func(o *change) bool { return o == one })
	case err != nil && !settled(err):
		one.failed = time.Now()
	default:
		c.done(h, one)
	}
}

// errUnchanged ends a change that found nothing to change.
var errUnchanged = errors.New("nothing has changed")

// settled reports whether a change that ended with an error can have no further effect: ClickHouse refused the rows or the statement.
func settled(err error) bool {
	refused, ok := errors.AsType[*clickhouse.Error](err)
	return ok && (refused.ByData() || refused.Refused())
}

// done gives a new version to the data that changed. The caller holds mu.
func (c *changes) done(h *history, one *change) {
	at := slices.Index(h.open, one)
	if at < 0 {
		return
	}
	h.open = slices.Concat(h.open[:at], h.open[at+1:]) // others may be reading the old slice
	c.move(h, one.table, one.spans)
}

// doneIf calls done for the changes that have ended. The caller holds mu.
func (c *changes) doneIf(h *history, ended func(*change) bool) {
	for _, one := range slices.Clone(h.open) {
		if ended(one) {
			c.done(h, one)
		}
	}
}

func (c *changes) move(h *history, table string, spans []span) {
	version := c.next()
	if spans == nil {
		spans = allTime
	}
	tables := maps.Clone(h.tables)
	if tables == nil {
		tables = map[string]uint64{}
	}
	switch table {
	case physical.Events:
		h.events = h.events.with(spans, version)
		return
	case physical.Overrides:
		h.overrides = h.overrides.with(spans, version)
		tables[table] = version
	case physical.Persons:
		h.creations = h.creations.with(spans, version)
		tables[table] = version
	case "":
		h.events, h.overrides, h.creations = h.events.with(allTime, version), h.overrides.with(allTime, version), h.creations.with(allTime, version)
		for _, name := range physical.Names() {
			tables[name] = version
		}
	default:
		tables[table] = version
	}
	h.tables = tables
}

// changed records that all data of a project may have changed.
func (c *changes) changed(project int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.move(c.history(project), "", nil)
}

// beginAll is begin for a change of all projects.
func (c *changes) beginAll() (end func(error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := &change{}
	c.open = append(c.open, one)
	return func(err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if err != nil {
			one.failed = time.Now()
			return
		}
		c.open = slices.DeleteFunc(slices.Clone(c.open), func(o *change) bool { return o == one || !o.failed.IsZero() })
		c.all = c.next()
	}
}

// outdating is begin for the removal of events older than their projects keep them. ran reports whether a statement hid some; if not, only whole
// parts may have been dropped.
func (c *changes) outdating(kept []clickhouse.Kept) (end func(ran bool, err error)) {
	ends, alone := make([]func(error), len(kept)), make([]func(error), len(kept))
	for n, k := range kept {
		ends[n], alone[n] = c.beginOne(k.Project, &change{table: physical.Events, kind: mutation, spans: []span{spanOf(time.Time{}, k.From)}})
	}
	return func(ran bool, err error) {
		for n := range kept {
			if ran {
				ends[n](err)
			} else {
				alone[n](err)
			}
		}
	}
}

// forget drops the history of a deleted project, unless one of its changes is still in progress. Projects without a history get a new version, so
// that no version returns.
func (c *changes) forget(project int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.projects[project]
	if h == nil || slices.ContainsFunc(h.open, func(o *change) bool { return o.failed.IsZero() }) {
		return
	}
	delete(c.projects, project)
	delete(c.watched, project)
	c.others = c.next()
}

// now returns what is known of a project's data. The result is immutable.
func (c *changes) now(project int64) *Data {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.projects[project]
	if h == nil {
		return &Data{all: max(c.all, c.others), unknown: len(c.open) > 0}
	}
	c.doneIf(h, func(o *change) bool {
		return o.kind == statement && !o.failed.IsZero() && time.Since(o.failed) > statementTime
	})
	return &Data{
		all: max(c.all, h.first), unknown: len(c.open) > 0, events: h.events, overrides: h.overrides, creations: h.creations, tables: h.tables,
		open: slices.Clip(h.open),
	}
}

// watchedFor is how long it matters that somebody asked about the persons of events.
const watchedFor = 7 * 24 * time.Hour

// watch records that somebody asks about the persons of a project's events.
func (c *changes) watch(project int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watched[project] = time.Now()
}

// Watches implements ingest.Writes.
func (c *changes) Watches(project int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.watched[project]
	return ok && time.Since(at) < watchedFor
}

// Begin implements ingest.Writes.
func (c *changes) Begin(project int64, table string, times iter.Seq[time.Time]) (end func(error)) {
	one := &change{table: table}
	if times != nil {
		hours := map[int64]struct{}{}
		for at := range times {
			hours[hour(at)] = struct{}{}
		}
		if one.spans = spansOf(hours); one.spans == nil {
			one.spans = []span{}
		}
	}
	return c.begin(project, one)
}

// Doubtful implements ingest.Writes.
func (c *changes) Doubtful(project int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.projects[project]
	return h != nil && slices.ContainsFunc(h.open, func(o *change) bool { return o.kind == insertion && !o.failed.IsZero() })
}

// Settled implements ingest.Writes.
func (c *changes) Settled(project int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.projects[project]; h != nil {
		c.doneIf(h, func(o *change) bool { return o.kind == insertion && !o.failed.IsZero() })
	}
}
