package module

import (
	"encoding/binary"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

const (
	// runsKept is how many runs of an endpoint are remembered.
	runsKept = 256
	// endpointsKept is how many endpoints are remembered; then the one that was run longest ago is forgotten.
	endpointsKept = 2048
)

// runLogs are the recent runs of each endpoint, in memory: what a run was given and gave is not among what is kept. It
// survives reloads.
type runLogs struct {
	byEndpoint sync.Map // id of the endpoint → *runLog
	mu         sync.Mutex
	count      int
}

// of returns the log of an endpoint.
func (l *runLogs) of(endpoint string) *runLog {
	if found, ok := l.byEndpoint.Load(endpoint); ok {
		log, _ := found.(*runLog)
		return log
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	found, loaded := l.byEndpoint.LoadOrStore(endpoint, new(runLog))
	if !loaded {
		l.count++
		l.shrink(endpoint)
	}
	log, _ := found.(*runLog)
	return log
}

// shrink forgets the endpoint that was run longest ago when there are too many, but not the one given. The caller holds mu.
func (l *runLogs) shrink(but string) {
	if l.count <= endpointsKept {
		return
	}
	var oldest any
	last := int64(0)
	l.byEndpoint.Range(func(id, value any) bool {
		log, _ := value.(*runLog)
		if at := log.last.Load(); id != but && (oldest == nil || at < last) {
			oldest, last = id, at
		}
		return true
	})
	l.drop(oldest)
}

// drop takes a log away. The caller holds mu.
func (l *runLogs) drop(endpoint any) {
	found, ok := l.byEndpoint.LoadAndDelete(endpoint)
	if !ok {
		return
	}
	log, _ := found.(*runLog)
	log.gone.Store(true)
	l.count--
}

// forget takes an endpoint's log away.
func (l *runLogs) forget(endpoint string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(endpoint)
}

// runLog is a ring of the last runs of one endpoint. Adding one takes no lock and allocates nothing: a cached run may be one of
// a hundred thousand a second.
type runLog struct {
	next  atomic.Uint64
	last  atomic.Int64 // when the newest run was, in Unix microseconds
	gone  atomic.Bool  // it was forgotten: who holds on to it looks for the endpoint's new one
	slots [runsKept]runSlot
}

// runSlot holds one run in words, each written at once. The turn tells which run the words are of: odd while they change.
type runSlot struct {
	turn  atomic.Uint64
	words [6]atomic.Uint64
	code  atomic.Pointer[string]
}

// loggedRun is one run: how it went, and nothing of what it was about.
type loggedRun struct {
	At        time.Time
	Took      time.Duration
	Execution uuid.UUID // zero for a run that was refused before it had one
	Version   int       // 0 when the run was refused before it had one
	Rows      int       // negative: not counted
	Status    int       // of HTTP
	Cache     cache.Status
	Code      *string // of the error; nil for none
}

// add remembers a run. One whose slot is being written by a run that came so much earlier is dropped.
func (l *runLog) add(r loggedRun) {
	n := l.next.Add(1)
	at := r.At.UnixMicro()
	l.last.Store(at)
	slot := &l.slots[n%runsKept]
	if turn := slot.turn.Load(); turn%2 == 1 || turn > 2*n || !slot.turn.CompareAndSwap(turn, 2*n+1) {
		return
	}
	for i, word := range [...]uint64{
		uint64(at), uint64(r.Took), binary.BigEndian.Uint64(r.Execution[:8]), binary.BigEndian.Uint64(r.Execution[8:]), //nolint:gosec // bits, read back as they were
		uint64(r.Version)<<32 | uint64(uint32(r.Rows)), uint64(r.Status)<<8 | uint64(r.Cache), //nolint:gosec // the same
	} {
		slot.words[i].Store(word)
	}
	slot.code.Store(r.Code)
	slot.turn.Store(2*n + 2)
}

// all returns the runs that are remembered, newest first. One that is being written just now is left out.
func (l *runLog) all() []loggedRun {
	newest := l.next.Load()
	runs := make([]loggedRun, 0, min(newest, runsKept))
	for n := newest; n > 0 && newest-n < runsKept; n-- {
		slot := &l.slots[n%runsKept]
		if slot.turn.Load() != 2*n+2 {
			continue
		}
		var words [6]uint64
		for i := range words {
			words[i] = slot.words[i].Load()
		}
		code := slot.code.Load()
		if slot.turn.Load() != 2*n+2 {
			continue
		}
		r := loggedRun{
			At: time.UnixMicro(int64(words[0])).UTC(), Took: time.Duration(words[1]), Version: int(words[4] >> 32), Rows: int(int32(words[4])), //nolint:gosec // as add wrote them
			Status: int(words[5] >> 8), Cache: cache.Status(words[5] & 0xff), Code: code,
		}
		binary.BigEndian.PutUint64(r.Execution[:8], words[2])
		binary.BigEndian.PutUint64(r.Execution[8:], words[3])
		runs = append(runs, r)
	}
	return runs
}

// logRun remembers a run that was answered.
func (rq *request) logRun(p *plan, got cache.Answer) {
	run := loggedRun{At: rq.start, Took: time.Since(rq.start), Version: p.version.Number, Rows: -1, Status: http.StatusOK, Cache: got.Status}
	if done, ok := got.Entry.Meta.(*outcome); ok {
		run.Execution = done.executionID
		if done.insight == nil {
			run.Rows = max(0, got.Entry.Result.Len()-p.offset)
			if p.limit >= 0 {
				run.Rows = min(run.Rows, p.limit)
			}
		}
	}
	log := p.logged.Load()
	if log == nil || log.gone.Load() {
		log = rq.rt.logs.of(p.endpoint.ID)
		p.logged.Store(log)
	}
	log.add(run)
}

// brokenOff is the code of an export that ended before its end: its status had been sent.
var brokenOff = "broken_off"

// logExport remembers a run whose rows were streamed; they are not counted.
func (rq *request) logExport(p *plan, execution string, status int) {
	run := loggedRun{At: rq.start, Took: time.Since(rq.start), Version: p.version.Number, Rows: -1, Status: status, Cache: cache.Miss}
	run.Execution, _ = uuid.Parse(execution) // made by uuid.NewString
	if status != http.StatusOK {
		run.Code = &brokenOff
	}
	rq.rt.logs.of(p.endpoint.ID).add(run)
}

// logRefusal remembers a run that was answered with an error.
func (rq *request) logRefusal(e *registry.Endpoint, err error) {
	if rq.r.Context().Err() != nil && errors.Is(err, rq.r.Context().Err()) {
		return // nobody was answered
	}
	answer := toAPIError(err, "")
	rq.rt.logs.of(e.ID).add(loggedRun{At: rq.start, Took: time.Since(rq.start), Rows: -1, Status: answer.Status, Code: &answer.Code})
}
