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

// changes keeps which data of which projects this process has changed, and when. Each change gives what it concerns a version that is greater than any
// before, when it is there. Until then, and as long as nobody knows whether it will be, the version is not known.
type changes struct {
	mu       sync.Mutex
	last     uint64 // the last version that was given
	all      uint64 // of all data of all projects
	others   uint64 // of the data of projects without a history
	projects map[int64]*history
	watched  map[int64]time.Time // when somebody asked about overrides, by project
	open     []*change           // of all projects
}

// history is what is known of a project's data.
type history struct {
	first     uint64 // the version when it began
	events    epochs
	overrides epochs            // of the persons of the events in an hour
	creations epochs            // of the times at which these were created, but for events without a profile
	tables    map[string]uint64 // by name, but for events; never changed, but replaced
	open      []*change
}

// change is one that has begun and not surely ended.
type change struct {
	table string // empty: all tables
	spans []span // of the events that are written, or get another person or one that was created at another time; nil: of all
	kind  changeKind
	began time.Time
	// When it failed, while ClickHouse may be at it still; zero before.
	failed time.Time
}

// changeKind says when a change has surely ended that failed.
type changeKind uint8

const (
	insertion changeKind = iota // when ingest has waited for it
	statement                   // when ClickHouse has ended it, which it does after a while
	mutation                    // when one of the same table is done that began later
)

// statementTime is after what time ClickHouse has ended a statement of which nobody knows more.
const statementTime = clickhouse.MaxFillTime + time.Minute

func newChanges() *changes {
	start := uint64(time.Now().UnixNano()) // no process gives a version that an earlier one gave
	return &changes{last: start, all: start, others: start, projects: map[int64]*history{}, watched: map[int64]time.Time{}}
}

// history is that of a project. The caller holds mu.
func (c *changes) history(project int64) *history {
	h := c.projects[project]
	if h == nil {
		first := max(c.all, c.others)
		h = &history{first: first, events: epochs{{firstHour, first}}, overrides: epochs{{firstHour, first}}, creations: epochs{{firstHour, first}}}
		c.projects[project] = h
	}
	return h
}

// next is a version that no data has had. The caller holds mu.
func (c *changes) next() uint64 {
	c.last++
	return c.last
}

// begin notes that a change of a project begins. end is called when it is done, or with the error.
func (c *changes) begin(project int64, one *change) (end func(error)) {
	end, _ = c.beginOne(project, one)
	return end
}

// beginOne is begin. alone is called instead of end if no statement ran that says that earlier ones are done.
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
		for _, h := range c.projects { // ClickHouse does those of a table one after the other
			c.doneIf(h, func(o *change) bool {
				return o.kind == mutation && !o.failed.IsZero() && !o.failed.After(one.began) && o.table == one.table
			})
		}
	}
	return end, alone
}

// ended notes the end of a change. The caller holds mu.
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

// settled reports whether nothing of a change is still to come that ended with an error: ClickHouse refused the rows, or the statement.
func settled(err error) bool {
	refused, ok := errors.AsType[*clickhouse.Error](err)
	return ok && (refused.ByData() || refused.Refused())
}

// done gives versions to what has changed. The caller holds mu.
func (c *changes) done(h *history, one *change) {
	at := slices.Index(h.open, one)
	if at < 0 {
		return
	}
	h.open = slices.Concat(h.open[:at], h.open[at+1:]) // others may be reading it
	c.move(h, one.table, one.spans)
}

// doneIf is done for some of the changes. The caller holds mu.
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

// changed notes that all data of a project may be others.
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

// outdating is begin for the removal of the events that are older than their projects keep them. ran says whether a statement hid some; else
// parts were dropped at most.
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

// forget drops the history of a project that was deleted, unless something of it goes on. So that no version returns, projects without a history get
// another one.
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

// now is what is known of a project's data. The result is never changed.
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

// watch notes that somebody asks about the persons of a project's events.
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
