package runlog

import (
	"net/http"
	"slices"
	"sync/atomic"
	"time"
)

// How runs are counted: those of the last hour per five minutes, those of the last day per hour.
const (
	fineStep  = 5 * time.Minute
	fineSteps = int(time.Hour / fineStep)
	dayStep   = time.Hour
	daySteps  = 24
	// versionsCounted is how many versions of an endpoint are counted separately. The runs of others only count for the endpoint.
	versionsCounted = 4
)

// counts are the runs of one version of an endpoint over time. Steps without runs take no memory.
type counts struct {
	last atomic.Int64 // when the newest run was, in Unix microseconds
	fine [fineSteps]atomic.Pointer[bucket]
	day  [daySteps]atomic.Pointer[bucket] // without what is in fine
}

// bucket counts the runs of one step of time.
type bucket struct {
	step                           int64 // steps since 1970
	took                           [durations]atomic.Uint32
	cached, mistaken, failed, held atomic.Uint32
}

// add counts a run. It takes no lock, and allocates only the first time in a step.
func (c *counts) add(r *Run) {
	c.last.Store(r.At.UnixMicro())
	if b := c.current(r.At); b != nil {
		b.add(r)
	}
}

func (b *bucket) add(r *Run) {
	switch {
	case r.Status < http.StatusBadRequest:
		b.took[durationIndex(r.Took)].Add(1)
		if r.Cache.Cached() {
			b.cached.Add(1)
		}
	case r.Status == http.StatusTooManyRequests:
		b.held.Add(1)
	case r.Status < http.StatusInternalServerError:
		b.mistaken.Add(1)
	default:
		b.failed.Add(1)
	}
}

// current returns the bucket for a time; nil if a later step has replaced it. A replaced bucket is added to its hour.
func (c *counts) current(at time.Time) *bucket {
	b, gone := take(c.fine[:], at.Unix()/int64(fineStep/time.Second))
	if gone != nil {
		if hour, _ := take(c.day[:], gone.step*int64(fineStep/time.Second)/int64(dayStep/time.Second)); hour != nil {
			hour.addAll(gone)
		}
	}
	return b
}

// take returns the bucket of a step in a ring. If the bucket is new, gone is the older one that it replaced. Both are nil if a later step has the slot.
func take(ring []atomic.Pointer[bucket], step int64) (b, gone *bucket) {
	slot := &ring[step%int64(len(ring))]
	for {
		b = slot.Load()
		switch {
		case b == nil || b.step < step:
			if made := (&bucket{step: step}); slot.CompareAndSwap(b, made) {
				return made, b
			}
		case b.step == step:
			return b, nil
		default:
			return nil, nil
		}
	}
}

func (b *bucket) addAll(other *bucket) {
	for i := range b.took {
		if n := other.took[i].Load(); n > 0 {
			b.took[i].Add(n)
		}
	}
	b.cached.Add(other.cached.Load())
	b.mistaken.Add(other.mistaken.Load())
	b.failed.Add(other.failed.Load())
	b.held.Add(other.held.Load())
}

// Counts counts runs of an endpoint.
type Counts struct {
	Answered, Cached int64 // Cached are those of Answered whose rows were stored
	ClientErrors     int64 // the caller's errors, without those in RateLimited
	ServerErrors     int64
	RateLimited      int64

	took [durations]int64 // of Answered, by duration
}

// Calls returns the total number of runs.
func (n *Counts) Calls() int64 { return n.Answered + n.Errors() + n.RateLimited }

// Errors returns how many runs failed, without those that a limit refused.
func (n *Counts) Errors() int64 { return n.ClientErrors + n.ServerErrors }

func (n *Counts) addAll(b *bucket) {
	for i := range b.took {
		took := int64(b.took[i].Load())
		n.took[i] += took
		n.Answered += took
	}
	n.Cached += int64(b.cached.Load())
	n.ClientErrors += int64(b.mistaken.Load())
	n.ServerErrors += int64(b.failed.Load())
	n.RateLimited += int64(b.held.Load())
}

// Window is the runs of the last hour or the last day.
type Window struct {
	Counts

	From, To time.Time // From is the beginning of the first step
	Step     time.Duration
	Steps    []Counts // oldest first; the last is still in progress
}

func newWindow(now time.Time, step time.Duration, steps int) Window {
	return Window{From: now.Truncate(step).Add(-time.Duration(steps-1) * step), To: now, Step: step, Steps: make([]Counts, steps)}
}

// add adds the runs of a bucket that is within the window.
func (w *Window) add(b *bucket, step time.Duration) {
	at := time.Unix(b.step*int64(step/time.Second), 0)
	if at.Before(w.From) || at.After(w.To) {
		return
	}
	w.addAll(b)
	w.Steps[at.Sub(w.From)/w.Step].addAll(b)
}

// Windows are the runs of the last hour and of the last day.
type Windows struct {
	Last      time.Time // when the newest run was; zero for none
	Hour, Day Window
}

func newWindows(now time.Time) Windows {
	now = now.UTC()
	return Windows{Hour: newWindow(now, fineStep, fineSteps), Day: newWindow(now, dayStep, daySteps)}
}

func (w *Windows) add(c *counts) {
	if last := c.last.Load(); last > 0 {
		if at := time.UnixMicro(last).UTC(); at.After(w.Last) {
			w.Last = at
		}
	}
	for i := range c.fine {
		if b := c.fine[i].Load(); b != nil {
			w.Hour.add(b, fineStep)
			w.Day.add(b, fineStep)
		}
	}
	for i := range c.day {
		if b := c.day[i].Load(); b != nil {
			w.Day.add(b, dayStep)
		}
	}
}

// VersionUsage is how one version of an endpoint was used.
type VersionUsage struct {
	Version int
	Windows
}

// Usage is how an endpoint was used.
type Usage struct {
	Windows

	Versions []VersionUsage // those that ran in the last day, newest first
}

// versionCounts are the runs of one version.
type versionCounts struct {
	version int
	counts
}

// Usage returns the runs of the last hour and the last day. A nil log has none.
func (l *Log) Usage(now time.Time) Usage {
	u := Usage{Windows: newWindows(now)}
	if l == nil {
		return u
	}
	u.add(&l.others)
	for _, v := range l.counted() {
		u.add(&v.counts)
		one := VersionUsage{Version: v.version, Windows: newWindows(now)}
		if one.add(&v.counts); one.Day.Calls() > 0 {
			u.Versions = append(u.Versions, one)
		}
	}
	slices.SortFunc(u.Versions, func(a, b VersionUsage) int { return b.Version - a.Version })
	return u
}

// Windows is Usage without the versions.
func (l *Log) Windows(now time.Time) Windows {
	w := newWindows(now)
	if l == nil {
		return w
	}
	w.add(&l.others)
	for _, v := range l.counted() {
		w.add(&v.counts)
	}
	return w
}

// Day returns the runs of the last day, at less cost than Windows.
func (l *Log) Day(now time.Time) Counts {
	w := Windows{Day: newWindow(now.UTC(), daySteps*dayStep, 1)}
	w.Day.From = newWindow(now.UTC(), dayStep, daySteps).From
	if l == nil {
		return w.Day.Counts
	}
	w.add(&l.others)
	for _, v := range l.counted() {
		w.add(&v.counts)
	}
	return w.Day.Counts
}

func (l *Log) counted() []*versionCounts {
	if list := l.versions.Load(); list != nil {
		return *list
	}
	return nil
}

// countsOf returns the counts for a run: those of its version, or the others.
func (l *Log) countsOf(r *Run) *counts {
	if r.Version == 0 {
		return &l.others
	}
	list := l.counted()
	for _, v := range list {
		if v.version == r.Version {
			return &v.counts
		}
	}
	if len(list) == versionsCounted && idle(list, r.At) < 0 {
		return &l.others
	}
	return l.countVersion(r)
}

// idle returns the index of a version without runs in the last day; -1 for none.
func idle(list []*versionCounts, now time.Time) int {
	return slices.IndexFunc(list, func(v *versionCounts) bool { return v.last.Load() < now.Add(-daySteps*dayStep).UnixMicro() })
}

// countVersion begins to count a version separately.
func (l *Log) countVersion(r *Run) *counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.counted()
	for _, v := range list {
		if v.version == r.Version {
			return &v.counts
		}
	}
	made := &versionCounts{version: r.Version}
	made.last.Store(r.At.UnixMicro())
	next := slices.Clone(list)
	if len(list) < versionsCounted {
		next = append(next, made)
	} else if free := idle(list, r.At); free >= 0 {
		next[free] = made
	} else {
		return &l.others
	}
	l.versions.Store(&next)
	return &made.counts
}
