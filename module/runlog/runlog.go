// Package runlog keeps the recent runs of each endpoint and counts those of the last day, in memory. Package querylog takes from it what is stored in
// ClickHouse.
package runlog

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

const (
	// runsKept is how many runs of an endpoint are kept.
	runsKept = 256
	// endpointsKept is how many endpoints are kept; beyond that, the one whose last run is oldest is forgotten.
	endpointsKept = 2048
	// pendingKept is how many logs, forgotten in favor of others, are kept until their runs and counts are taken.
	pendingKept = 512
)

// Logs are the recent runs of each endpoint: at most 256 for each of the 2,048 endpoints that were run last. The input and output of runs are not
// kept. It is safe for concurrent use.
type Logs struct {
	byEndpoint sync.Map // endpoint id → *Log
	mu         sync.Mutex
	count      int
	untaken    []*Log // forgotten in favor of others before Take saw them
	unswept    []*Log // the same for Collect
	tallied    atomic.Int64
	since      atomic.Int64 // for endpoints without a log: from when on all runs are known, in Unix microseconds
}

// New returns Logs without runs, as of now.
func New(now time.Time) *Logs {
	l := new(Logs)
	l.since.Store(now.UnixMicro())
	return l
}

// each calls f for each log.
func (l *Logs) each(f func(*Log)) {
	l.byEndpoint.Range(func(_, value any) bool {
		if log, ok := value.(*Log); ok {
			f(log)
		}
		return true
	})
}

// Find returns the log of an endpoint, nil if it has no runs, and the time from which all its runs are counted.
func (l *Logs) Find(endpoint string) (log *Log, since time.Time) {
	if found, ok := l.byEndpoint.Load(endpoint); ok {
		log, _ = found.(*Log)
		return log, time.UnixMicro(log.since).UTC()
	}
	return nil, time.UnixMicro(l.since.Load()).UTC()
}

// Of returns the log of a project's endpoint by id; an empty one for an endpoint without runs.
func (l *Logs) Of(project int64, endpoint string) *Log {
	if found, ok := l.byEndpoint.Load(endpoint); ok {
		log, _ := found.(*Log)
		return log
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	found, loaded := l.byEndpoint.LoadOrStore(endpoint, &Log{Project: project, Endpoint: endpoint, Origin: uuid.New(), of: l, since: l.since.Load()})
	if !loaded {
		l.count++
		l.shrink(endpoint)
	}
	log, _ := found.(*Log)
	return log
}

// shrink forgets the endpoint whose last run is oldest if there are too many, but never the given one. The caller holds mu.
func (l *Logs) shrink(but string) {
	if l.count <= endpointsKept {
		return
	}
	var oldest any
	last := int64(0)
	l.byEndpoint.Range(func(id, value any) bool {
		log, _ := value.(*Log)
		if at := log.last.Load(); id != but && (oldest == nil || at < last) {
			oldest, last = id, at
		}
		return true
	})
	if log := l.drop(oldest); log != nil {
		l.untaken, l.unswept = pend(l.untaken, log), pend(l.unswept, log)
	}
	l.since.Store(max(last, l.since.Load())) // its runs until then are no longer known
}

// pend adds a log to a list of pending ones, unless there are too many.
func pend(logs []*Log, log *Log) []*Log {
	if len(logs) >= pendingKept {
		return logs
	}
	return append(logs, log)
}

// pending empties a list and returns its logs.
func (l *Logs) pending(list *[]*Log) []*Log {
	l.mu.Lock()
	defer l.mu.Unlock()
	logs := *list
	*list = nil
	return logs
}

// drop removes a log and returns it; nil for none. The caller holds mu.
func (l *Logs) drop(endpoint any) *Log {
	found, ok := l.byEndpoint.LoadAndDelete(endpoint)
	if !ok {
		return nil
	}
	log, _ := found.(*Log)
	log.gone.Store(true)
	log.tally(-log.tallied.Load())
	l.count--
	return log
}

// Forget removes an endpoint's log.
func (l *Logs) Forget(endpoint string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(endpoint)
}

// Log holds the last runs of one endpoint in a ring, and the counts for the last day. Adding a run takes no lock and allocates nothing, except for
// the first run in five minutes: there may be a hundred thousand cached runs per second.
type Log struct {
	Project  int64
	Endpoint string    // id
	Origin   uuid.UUID // identifies runs, together with their numbers

	next  atomic.Uint64
	last  atomic.Int64 // when the newest run was, in Unix microseconds
	gone  atomic.Bool
	slots [runsKept]runSlot

	since    int64 // from when on all runs are counted, in Unix microseconds
	mu       sync.Mutex
	versions atomic.Pointer[[]*versionCounts]
	others   counts // runs not counted by version

	of      *Logs    // nil for a Log outside Logs
	tallies sync.Map // Who → *Tally
	tallied atomic.Int64
	taken   uint64 // the newest run that Take returned; only used by Take
	swept   int64  // the newest run when tallies were last collected, in Unix microseconds; only used by Collect
}

// runSlot holds one run in atomic words. turn tells which run the words belong to; it is odd while they change.
type runSlot struct {
	turn  atomic.Uint64
	words [6]atomic.Uint64
	code  atomic.Pointer[string]
	by    atomic.Pointer[Tally]
}

// Source is where the rows of a run are from.
type Source uint8

// The sources of rows.
const (
	Unrecorded   Source = iota // of a run read from ClickHouse
	Inline                     // the query itself; refused runs too
	Materialized               // the table of the version
)

// Run is one run of an endpoint: how it went, but not what it was about.
type Run struct {
	At        time.Time
	Took      time.Duration
	Execution uuid.UUID // zero if the run was refused before it had one
	Version   int       // 0 if the run was refused before it had one
	Rows      int       // negative: not counted
	Status    int       // HTTP status
	Cache     cache.Status
	Source    Source
	Code      *string // of the error; nil for none
	Number    uint64  // within the log, from 1; set by Add
	Key       string  // id
	Customer  string  // the variables that the key fixes; empty for none
}

// Gone reports whether the log was forgotten, so that its holder must look up the endpoint's new one.
func (l *Log) Gone() bool { return l.gone.Load() }

// Add records a run and counts it.
func (l *Log) Add(r Run) { l.Tally(Who{r.Version, r.Key, r.Customer}).Add(r) }

// Add records a run of the tally's version, key and customer, and counts it. The run is not recorded if its slot is still being written by a much
// earlier run.
func (t *Tally) Add(r Run) {
	l := t.log
	l.countsOf(&r).add(&r)
	t.count(&r)
	n := l.next.Add(1)
	at := r.At.UnixMicro()
	l.last.Store(at)
	slot := &l.slots[n%runsKept]
	if turn := slot.turn.Load(); turn%2 == 1 || turn > 2*n || !slot.turn.CompareAndSwap(turn, 2*n+1) {
		return
	}
	for i, word := range [...]uint64{
		uint64(at), uint64(r.Took), binary.BigEndian.Uint64(r.Execution[:8]), binary.BigEndian.Uint64(r.Execution[8:]), //nolint:gosec // bits, read back as they were
		uint64(r.Version)<<32 | uint64(uint32(r.Rows)), uint64(r.Source)<<32 | uint64(r.Status)<<8 | uint64(r.Cache), //nolint:gosec // the same
	} {
		slot.words[i].Store(word)
	}
	slot.code.Store(r.Code)
	slot.by.Store(t)
	slot.turn.Store(2*n + 2)
}

// All returns the recorded runs, newest first; none for a nil log. It omits a run that is just being written.
func (l *Log) All() []Run {
	if l == nil {
		return nil
	}
	return l.read(l.next.Load(), runsKept)
}

// read returns up to most runs up to newest, newest first.
func (l *Log) read(newest, most uint64) []Run {
	runs := make([]Run, 0, min(newest, most))
	for n := newest; n > 0 && newest-n < most; n-- {
		slot := &l.slots[n%runsKept]
		if slot.turn.Load() != 2*n+2 {
			continue
		}
		var words [6]uint64
		for i := range words {
			words[i] = slot.words[i].Load()
		}
		code, by := slot.code.Load(), slot.by.Load()
		if slot.turn.Load() != 2*n+2 {
			continue
		}
		r := Run{
			At: time.UnixMicro(int64(words[0])).UTC(), Took: time.Duration(words[1]), Version: int(words[4] >> 32), Rows: int(int32(words[4])), //nolint:gosec // as add wrote them
			Status: int(words[5] >> 8 & 0xffffff), Cache: cache.Status(words[5] & 0xff), Source: Source(words[5] >> 32 & 0xff), Code: code,
			Number: n, Key: by.Key, Customer: by.Customer,
		}
		binary.BigEndian.PutUint64(r.Execution[:8], words[2])
		binary.BigEndian.PutUint64(r.Execution[8:], words[3])
		runs = append(runs, r)
	}
	return runs
}
