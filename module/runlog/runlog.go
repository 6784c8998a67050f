// Package runlog keeps the recent runs of each endpoint and counts those of the last day, in memory. Package querylog takes from it what is stored in
// ClickHouse.
package runlog

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

const (
	// runsKept is how many runs of an endpoint are kept, and chunk for how many there is memory at a time.
	runsKept = 256
	chunk    = 32
	// endpointsKept is how many endpoints are kept at least. Those beyond it whose last runs are oldest are forgotten, endpointsOver at a time: finding
	// them takes a look at all.
	endpointsKept = 2048
	endpointsOver = 128
	// leavingKept is how many logs, forgotten in favor of others, are kept as they are: a run that found its log before that may still be added.
	leavingKept = 512
	// runsWaiting and countsWaiting are how many runs and counts of forgotten logs wait to be taken. What exceeds them is dropped and counted.
	runsWaiting   = 16_384
	countsWaiting = 32_768
)

// Logs are the recent runs of each endpoint: at most 256 for each of the 2,048 or more endpoints that were run last. The input and output of runs are not
// kept. It is safe for concurrent use.
type Logs struct {
	byEndpoint sync.Map // endpoint id → *Log
	mu         sync.Mutex
	count      int
	leaving    []*Log            // forgotten in favor of others, oldest first
	runs       []Taken           // of logs that have left, which Take has not seen
	counts     map[Counted]int64 // of logs that have left, which Collect has not seen
	dropped    atomic.Int64
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
		if l.count++; l.count > endpointsKept+endpointsOver {
			l.shrink()
		}
	}
	log, _ := found.(*Log)
	return log
}

// shrink forgets the endpoints beyond endpointsKept whose last runs are oldest. The caller holds mu.
func (l *Logs) shrink() {
	type run struct {
		endpoint string
		at       int64
	}
	var last []run
	l.each(func(log *Log) {
		if at := log.last.Load(); at > 0 { // otherwise its first run is about to be added
			last = append(last, run{log.Endpoint, at})
		}
	})
	slices.SortFunc(last, func(a, b run) int { return cmp.Compare(a.at, b.at) })
	for _, oldest := range last[:min(len(last), l.count-endpointsKept)] {
		if log := l.drop(oldest.endpoint); log != nil {
			l.leave(log)
		}
		l.since.Store(max(oldest.at, l.since.Load())) // its runs until then are no longer known
	}
}

// leave keeps a log that was forgotten until its runs and counts are taken. The caller holds mu.
func (l *Logs) leave(log *Log) {
	if l.leaving = append(l.leaving, log); len(l.leaving) > leavingKept {
		l.reduce(l.leaving[0])
		l.leaving = slices.Delete(l.leaving, 0, 1)
	}
}

// reduce keeps of a log only the runs and counts that were not taken. The caller holds mu.
func (l *Logs) reduce(log *Log) {
	log.take(runsKept, func(r Taken) {
		if len(l.runs) < runsWaiting {
			l.runs = append(l.runs, r)
		} else {
			l.dropped.Add(1)
		}
	})
	log.collect(func(what Counted, calls int64) {
		if _, known := l.counts[what]; known || len(l.counts) < countsWaiting {
			if l.counts == nil {
				l.counts = map[Counted]int64{}
			}
			l.counts[what] += calls
		} else {
			l.dropped.Add(1)
		}
	})
}

// Dropped returns how many runs and counts were never taken, because too many were waiting.
func (l *Logs) Dropped() int64 { return l.dropped.Load() }

// drop removes a log and returns it; nil for none. The caller holds mu.
func (l *Logs) drop(endpoint string) *Log {
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
// the first run in five minutes and the first runs of all: there may be a hundred thousand cached runs per second.
type Log struct {
	Project  int64
	Endpoint string    // id
	Origin   uuid.UUID // identifies runs, together with their numbers

	next  atomic.Uint64
	last  atomic.Int64 // when the newest run was, in Unix microseconds
	gone  atomic.Bool
	slots [runsKept / chunk]atomic.Pointer[[chunk]runSlot] // nil before the first run in each

	since    int64 // from when on all runs are counted, in Unix microseconds
	mu       sync.Mutex
	versions atomic.Pointer[[]*versionCounts]
	others   counts // runs not counted by version

	of      *Logs    // nil for a Log outside Logs
	tallies sync.Map // Who → *Tally
	tallied atomic.Int64
	taking  sync.Mutex
	taken   uint64 // the newest run that was taken; guarded by taking
	swept   int64  // the newest run when tallies were last collected, in Unix microseconds; only used by Collect
	left    bool   // whether Collect has seen it since it was forgotten; guarded by the Logs' mu
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
	slot := l.slot(n)
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

// slot returns the slot of a run.
func (l *Log) slot(n uint64) *runSlot {
	at := &l.slots[n%runsKept/chunk]
	slots := at.Load()
	if slots == nil {
		at.CompareAndSwap(nil, new([chunk]runSlot))
		slots = at.Load()
	}
	return &slots[n%chunk]
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
		slot := l.slot(n)
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
