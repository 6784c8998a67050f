package runlog

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// The bounds on counting by version, key and customer: how many combinations are counted separately per endpoint, and how long one without runs is kept.
const (
	talliesKept  = 1024
	talliesOfAll = 32_768 // for all endpoints together
	tallyIdle    = time.Hour
)

// Who is the key under which runs of an endpoint are counted.
type Who struct {
	Version  int    // 0 for runs that were refused before they had one
	Key      string // id
	Customer string // the variables that the key fixes; empty for none
}

// Tally counts the runs of one version, key and customer until [Logs.Collect] takes the counts.
type Tally struct {
	Who

	log  *Log
	gone atomic.Bool
	last atomic.Int64 // when the newest run was, in Unix microseconds
	ring [2]atomic.Pointer[bucket]
}

// Gone reports whether the tally or its log was forgotten, so that its holder must look up the new one.
func (t *Tally) Gone() bool { return t.gone.Load() || t.log.gone.Load() }

// Tally returns the tally for a version, a key and a customer. If there are too many tallies, it returns one that counts all others.
func (l *Log) Tally(who Who) *Tally {
	if found, ok := l.tallies.Load(who); ok {
		t, _ := found.(*Tally)
		return t
	}
	if l.tallied.Load() >= talliesKept || l.of != nil && l.of.tallied.Load() >= talliesOfAll {
		who = Who{}
	}
	found, loaded := l.tallies.LoadOrStore(who, &Tally{Who: who, log: l})
	if !loaded {
		l.tally(1)
	}
	t, _ := found.(*Tally)
	return t
}

// tally adjusts the number of tallies.
func (l *Log) tally(more int64) {
	l.tallied.Add(more)
	if l.of != nil {
		l.of.tallied.Add(more)
	}
}

// count counts a run. It takes no lock, and allocates only the first time in five minutes.
func (t *Tally) count(r *Run) {
	t.last.Store(r.At.UnixMicro())
	b, _ := take(t.ring[:], r.At.Unix()/int64(fineStep/time.Second))
	if b == nil { // the run took so long that its bucket is gone
		b, _ = take(t.ring[:], r.At.Add(r.Took).Unix()/int64(fineStep/time.Second))
	}
	if b != nil {
		b.add(r)
	}
}

// Outcome is how runs ended.
type Outcome string

// The outcomes of runs. Cached runs are also counted as Answered.
const (
	Answered    Outcome = "answered"
	Cached      Outcome = "cached"
	ClientError Outcome = "client_error"
	ServerError Outcome = "server_error"
	RateLimited Outcome = "rate_limited"
)

// Counted identifies a count of an endpoint's runs in five minutes.
type Counted struct {
	Who

	Project  int64
	Endpoint string // id
	From     int64  // the beginning of the five minutes, in Unix seconds
	Outcome  Outcome
	Duration int // the range of the durations, for Answered only
}

// Collect takes the counts of the runs since its last call: it calls add for each, with the number of runs. One caller at a time.
func (l *Logs) Collect(now time.Time, add func(what Counted, calls int64)) {
	l.each(func(log *Log) {
		if log.tallied.Load() == 0 {
			return
		}
		last := log.last.Load()
		if log.swept == last && now.UnixMicro()-last > 2*fineStep.Microseconds() {
			log.retire(now)
			return
		}
		log.swept = last
		log.collect(add)
		log.retire(now)
	})
	leaving, counts := l.left()
	for _, log := range leaving {
		log.collect(add)
	}
	for what, calls := range counts {
		add(what, calls)
	}
}

// left returns the logs that were forgotten in favor of others, and the counts of those that it does not return again. A log is returned twice, since a run
// may be added to it that found it before.
func (l *Logs) left() (leaving []*Log, counts map[Counted]int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	leaving = slices.Clone(l.leaving)
	l.leaving = slices.DeleteFunc(l.leaving, func(log *Log) bool {
		if log.left {
			l.reduce(log)
		}
		old := log.left
		log.left = true
		return old
	})
	counts, l.counts = l.counts, nil
	return leaving, counts
}

// collect takes the counts of a log's tallies.
func (l *Log) collect(add func(Counted, int64)) {
	l.tallies.Range(func(_, value any) bool {
		if t, ok := value.(*Tally); ok {
			t.collect(add)
		}
		return true
	})
}

// retire forgets tallies without runs for a long time. A run is lost if its caller looked up the tally just before and counts it afterwards.
func (l *Log) retire(now time.Time) {
	l.tallies.Range(func(who, value any) bool {
		// A new one that has counted nothing yet is idle from now on.
		if t, ok := value.(*Tally); ok && !t.last.CompareAndSwap(0, now.UnixMicro()) && now.UnixMicro()-t.last.Load() > tallyIdle.Microseconds() {
			t.gone.Store(true)
			l.tallies.Delete(who)
			l.tally(-1)
		}
		return true
	})
}

// collect takes the counts of a tally.
func (t *Tally) collect(add func(Counted, int64)) {
	for i := range t.ring {
		b := t.ring[i].Load()
		if b == nil {
			continue
		}
		what := Counted{Who: t.Who, Project: t.log.Project, Endpoint: t.log.Endpoint, From: b.step * int64(fineStep/time.Second)}
		give := func(outcome Outcome, duration int, n *atomic.Uint32) {
			if n.Load() == 0 {
				return
			}
			what.Outcome, what.Duration = outcome, duration
			add(what, int64(n.Swap(0)))
		}
		for d := range b.took {
			give(Answered, d, &b.took[d])
		}
		give(Cached, 0, &b.cached)
		give(ClientError, 0, &b.mistaken)
		give(ServerError, 0, &b.failed)
		give(RateLimited, 0, &b.held)
	}
}

// Taken is a run returned by [Logs.Take], with the project and id of its endpoint.
type Taken struct {
	Project  int64
	Endpoint string
	Origin   uuid.UUID // of its log
	Run
}

// Take returns the runs added since its last call, oldest first: of each log the newest, at most ofEach. One caller at a time.
func (l *Logs) Take(ofEach int, add func(Taken)) {
	l.mu.Lock()
	left, leaving := l.runs, slices.Clone(l.leaving)
	l.runs = nil
	l.mu.Unlock()
	for _, r := range left {
		add(r)
	}
	for _, log := range leaving {
		log.take(ofEach, add)
	}
	l.each(func(log *Log) { log.take(ofEach, add) })
}

func (l *Log) take(most int, add func(Taken)) {
	l.taking.Lock()
	defer l.taking.Unlock()
	newest := l.next.Load()
	if newest == l.taken {
		return
	}
	runs := l.read(newest, min(newest-l.taken, uint64(min(most, runsKept)))) //nolint:gosec // never negative
	l.taken = newest
	for _, r := range slices.Backward(runs) {
		add(Taken{l.Project, l.Endpoint, l.Origin, r})
	}
}

// Count adds counted runs to the hour and the day.
func (w *Windows) Count(what Counted, calls int64) {
	at := time.Unix(what.From, 0)
	if at.After(w.Last) {
		w.Last = at.UTC()
	}
	w.Hour.count(at, what, calls)
	w.Day.count(at, what, calls)
}

// Covers reports whether counted runs are within the window.
func (w *Window) Covers(what Counted) bool {
	at := time.Unix(what.From, 0)
	return !at.Before(w.From) && !at.After(w.To)
}

// count adds runs that are within the window.
func (w *Window) count(at time.Time, what Counted, calls int64) {
	if !w.Covers(what) {
		return
	}
	w.Count(what, calls)
	w.Steps[at.Sub(w.From)/w.Step].Count(what, calls)
}

// Count adds counted runs, whenever they were.
func (n *Counts) Count(what Counted, calls int64) {
	switch what.Outcome {
	case Answered:
		n.took[min(max(what.Duration, 0), durations-1)] += calls
		n.Answered += calls
	case Cached:
		n.Cached += calls
	case ClientError:
		n.ClientErrors += calls
	case ServerError:
		n.ServerErrors += calls
	case RateLimited:
		n.RateLimited += calls
	}
}

// NewWindows returns the hour and the day until now, without runs.
func NewWindows(now time.Time) Windows { return newWindows(now) }
