package delivery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/ingest/journal"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// work is what is being delivered. It survives a change of the target.
//
// Batches are read at two places of the log. At its front are the new entries of all projects but those that are behind: what was read of these was not delivered
// before the next batch was due. Their entries are read where the first of them continues, so that what they wait for holds up nobody else.
type work struct {
	*Delivery

	last   uint64           // the front of the log: up to here entries are in parts, delivered, or of projects that are behind
	behind map[int64]uint64 // project → up to where its entries are read
	parts  []*part          // what is still to be delivered, one for each project
	front  reading
	back   reading // of projects that are behind

	running  int
	ended    chan ended
	newest   time.Time // when a batch was last read at the front
	fruitful bool      // a part was delivered since

	noted  time.Time // when progress was last saved
	noting retry     // of saving it
	news   bool      // delivered since progress was last saved

	changed  bool      // the errors differ from those last reported
	reported time.Time // when they were last reported

	wake time.Time       // when to look again
	more <-chan struct{} // closed when there is more to read; nil if it can't be read yet
}

// reading is a place at which batches are read.
type reading struct {
	retry

	began time.Time // when its last batch was read
}

// retry is how something failed, and when it is tried again.
type retry struct {
	err   error         // of the last try
	pause time.Duration // before the next
	due   time.Time     // when to try again
}

// failed notes a failure.
func (r *retry) failed(err error) {
	r.err = err
	r.pause = min(max(2*r.pause, firstPause), lastPause)
	r.due = time.Now().Add(r.pause)
}

// hurry makes the next try due now.
func (r *retry) hurry() { r.pause, r.due = 0, time.Time{} }

// part holds entries of a project that were read and are not delivered yet.
type part struct {
	retry

	project  int64
	entries  []journal.Entry // nil if they are to be read again before the next try
	at       int             // bytes of the first entry that are delivered
	rejected rejected        // among these
	refused  error           // why it can't be delivered

	from    *reading // nil once the next batch is read there
	first   uint64   // the first of the entries when it was last tried
	last    uint64   // the last of them
	size    int      // bytes of the entries at that time
	dropped bool     // the entries take no memory
	running bool
}

// ended is the outcome of a try.
type ended struct {
	part *part
	err  error
}

const (
	// projectsAtOnce is how many projects are delivered to at the same time. They share their inserts.
	projectsAtOnce = 64
	// patience is how long the next batch waits for projects of the last one.
	patience = 2 * time.Second
	// maxParts is how many bytes of entries may wait in memory when the next batch is read.
	maxParts = 48 << 20
	// awayParts is how many projects must be stuck, and none be delivered, for ClickHouse to count as away.
	awayParts = 3
)

func newWork(d *Delivery) *work {
	p := d.journal.Progress()
	return &work{Delivery: d, last: p.Last, behind: p.Behind, ended: make(chan ended), fruitful: true}
}

// deliver delivers to a target until ctx ends.
func (w *work) deliver(ctx context.Context, target Target) {
	for _, r := range []*retry{&w.noting, &w.front.retry, &w.back.retry} {
		r.hurry()
	}
	for _, p := range w.parts {
		p.hurry()
	}
	for ctx.Err() == nil {
		w.wake, w.more = time.Now().Add(time.Hour), nil
		w.proceed(ctx)
		w.start(ctx, target)
		if w.changed && w.reached(w.reported.Add(time.Second)) {
			w.report()
		}
		w.await(ctx)
	}
	for w.running > 0 {
		w.end(ctx, <-w.ended)
	}
	if w.news { // so that the next start of the process does not deliver it again
		w.rejoin()
		w.advance(context.WithoutCancel(ctx))
	}
}

// await waits until there is something to do.
func (w *work) await(ctx context.Context) {
	timer := time.NewTimer(time.Until(w.wake))
	defer timer.Stop()
	select {
	case e := <-w.ended:
		w.end(ctx, e)
	case <-w.more:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// reached reports whether a time has come. If not, await ends then.
func (w *work) reached(at time.Time) bool {
	if !time.Now().Before(at) {
		return true
	}
	if at.Before(w.wake) {
		w.wake = at
	}
	return false
}

// proceed tells the journal what is delivered, and reads what may be read. What fails does not keep it from the rest: on a full disk, events must go on.
func (w *work) proceed(ctx context.Context) {
	w.rejoin()
	w.note(ctx)
	if idle := w.idle(); len(idle) > 0 && w.mayRead(&w.back) {
		w.used(ctx, &w.back.retry, w.readBehind(idle))
		w.rejoin()
	}
	if w.mayRead(&w.front) && (!w.away() || w.reached(w.front.began.Add(lastPause))) {
		w.used(ctx, &w.front.retry, w.readNew())
	}
}

// used notes how a use of the journal has ended.
func (w *work) used(ctx context.Context, r *retry, err error) {
	switch {
	case ctx.Err() != nil: // stopped, or the target changed
		return
	case err != nil:
		w.changed = w.changed || !same(r.err, err)
		r.failed(err)
		w.reached(r.due)
	case r.err != nil:
		w.changed = true
		*r = retry{}
	}
}

// waits reports whether the next batch of a place still waits for parts of the last one.
func (w *work) waits(r *reading) bool {
	return slices.ContainsFunc(w.parts, func(p *part) bool { return p.from == r && p.err == nil }) && !w.reached(r.began.Add(patience))
}

func (w *work) mayRead(r *reading) bool {
	if w.waits(r) || !w.reached(r.began.Add(interval)) || !w.reached(r.due) {
		return false
	}
	if r == &w.back {
		return w.hasRoom(maxParts - batchBytes) // the front must not wait for projects that are behind
	}
	return w.hasRoom(maxParts)
}

// hasRoom reports whether the entries in memory take less than so many bytes. Those of parts that wait for their next try are dropped if need be.
func (w *work) hasRoom(most int) bool {
	size := 0
	for _, p := range w.parts {
		size += p.counts()
	}
	for _, p := range w.parts {
		if size < most {
			break
		}
		if !p.running && p.err != nil && time.Now().Before(p.due) {
			size -= p.counts()
			p.entries, p.dropped = nil, true
		}
	}
	return size < most
}

// counts returns how many bytes of the memory for parts a part takes. An entry that is larger than a batch takes no more than the batch would have.
func (p *part) counts() int {
	if p.dropped {
		return 0
	}
	return min(p.size, batchBytes)
}

// mayLoad reports whether a part that was dropped from memory may be read again. It leaves as much room for the front as what is read behind, unless it
// is the only one that is tried again: where new events always take all the room, its turn must come too.
func (w *work) mayLoad() bool {
	again := slices.ContainsFunc(w.parts, func(p *part) bool { return p.running && p.err != nil })
	return w.hasRoom(maxParts-batchBytes) || !again && w.hasRoom(maxParts)
}

// load reads the entries of a part again.
func (w *work) load(p *part) error {
	again, err := w.journal.Next(p.first-1, p.last, math.MaxInt, func(project int64, _ uint64) bool { return project == p.project })
	if err != nil {
		return err
	}
	p.entries = slices.Grow(again.Entries, 1)              // not nil
	if len(p.entries) == 0 || p.entries[0].ID != p.first { // it is damaged by now
		p.at, p.rejected = 0, rejected{}
	}
	return nil
}

// away reports whether ClickHouse seems to be away: nothing of the last batch was delivered, and several projects are stuck.
func (w *work) away() bool {
	stuck := 0
	for _, p := range w.parts {
		if p.err != nil || p.from == nil || time.Since(p.from.began) >= patience {
			stuck++
		}
	}
	return !w.fruitful && stuck >= awayParts
}

// readNew reads a batch at the front of the log.
func (w *work) readNew() error {
	behind := maps.Clone(w.behind)
	for _, p := range w.parts {
		if _, known := behind[p.project]; !known {
			behind[p.project] = w.last
		}
	}
	next, err := w.journal.Next(w.last, math.MaxUint64, batchBytes, func(project int64, _ uint64) bool {
		_, known := behind[project]
		return !known
	})
	if err != nil {
		return err
	}
	w.more = next.More
	if next.Last > w.last {
		w.last, w.behind = next.Last, behind
	}
	if len(next.Entries) > 0 {
		w.add(next.Entries, &w.front)
		w.newest, w.fruitful, w.more = w.front.began, false, nil
	}
	return nil
}

// idle returns the projects that are behind and of which nothing is being delivered, with up to where they are read.
func (w *work) idle() map[int64]uint64 {
	idle := maps.Clone(w.behind)
	for _, p := range w.parts {
		delete(idle, p.project)
	}
	return idle
}

// readBehind reads a batch of projects that are behind. If that is all that there is of them, the next batch at the front waits for them, so that they are part of
// it unless they take too long again. It does not wait for one project after the other.
func (w *work) readBehind(idle map[int64]uint64) error {
	from := w.last
	for _, upTo := range idle {
		from = min(from, upTo)
	}
	next, err := w.journal.Next(from, w.last, batchBytes, func(project int64, id uint64) bool {
		upTo, is := idle[project]
		return is && id > upTo
	})
	if err != nil {
		return err
	}
	for project, upTo := range idle {
		w.behind[project] = max(upTo, next.Last)
	}
	to := &w.back
	if next.Last >= w.last && time.Since(w.newest) < patience {
		to = &w.front
	}
	w.add(next.Entries, to)
	return nil
}

// rejoin takes projects from those that are behind that no longer are.
func (w *work) rejoin() {
	for project, upTo := range w.idle() {
		if upTo >= w.last {
			delete(w.behind, project)
		}
	}
}

// add makes parts of a batch.
func (w *work) add(entries []journal.Entry, from *reading) {
	if len(entries) == 0 {
		return
	}
	for _, p := range w.parts {
		if p.from == from {
			p.from = nil
		}
	}
	from.began = time.Now()
	w.reached(from.began.Add(interval)) // to see how they do
	parts := map[int64]*part{}
	for _, entry := range entries {
		p := parts[entry.Project]
		if p == nil {
			p = &part{project: entry.Project, from: from}
			parts[entry.Project] = p
			w.parts = append(w.parts, p)
		}
		p.entries = append(p.entries, entry)
	}
	for _, p := range parts {
		p.measure()
	}
}

// measure notes what is left of a part.
func (p *part) measure() {
	p.first, p.last, p.size = p.entries[0].ID, p.entries[len(p.entries)-1].ID, 0
	for _, entry := range p.entries {
		p.size += len(entry.Data)
	}
}

// start starts to deliver what is due: what was not tried yet first, and then what has waited longest.
func (w *work) start(ctx context.Context, target Target) {
	due := slices.Clone(w.parts)
	slices.SortStableFunc(due, func(a, b *part) int { return a.due.Compare(b.due) })
	for _, p := range due {
		if w.running >= projectsAtOnce {
			return
		}
		if p.running || !w.reached(p.due) || p.dropped && !w.mayLoad() {
			continue
		}
		w.running++
		p.running, p.dropped = true, false
		go func() { w.ended <- ended{p, w.deliverPart(ctx, target, p)} }()
	}
}

// end notes how a try has ended.
func (w *work) end(ctx context.Context, e ended) {
	p := e.part
	w.running--
	p.running = false
	if e.err == nil {
		w.news, w.fruitful, w.changed = true, true, w.changed || p.err != nil
		w.parts = slices.DeleteFunc(w.parts, func(other *part) bool { return other == p })
	} else {
		was := p.first
		if p.dropped = p.entries == nil; !p.dropped {
			p.measure()
		}
		w.news = w.news || p.first > was
		if ctx.Err() == nil { // otherwise it was stopped, or the target changed
			w.changed = w.changed || !same(p.err, e.err)
			p.failed(e.err)
		}
	}
}

// note tells the journal what is delivered: at once if that is all, and otherwise from time to time.
func (w *work) note(ctx context.Context) {
	all := len(w.parts)+len(w.behind) == 0
	if !w.news || !all && (w.waits(&w.front) || !w.reached(w.noted.Add(interval))) || !w.reached(w.noting.due) {
		return
	}
	w.advance(ctx)
}

func (w *work) advance(ctx context.Context) {
	delivered := journal.Progress{Last: w.last, Behind: maps.Clone(w.behind)}
	for _, p := range w.parts {
		delivered.Behind[p.project] = p.first - 1
	}
	w.noted, w.news = time.Now(), false
	err := w.journal.Advance(ctx, delivered)
	w.news = err != nil
	w.used(ctx, &w.noting, err)
}

// joinDistinct joins errors, the first ten of different texts.
func joinDistinct(errs []error) error {
	const most = 10
	var distinct []error
	seen := map[string]bool{}
	for _, err := range errs {
		if err == nil || seen[err.Error()] {
			continue
		}
		seen[err.Error()] = true
		if len(seen) <= most {
			distinct = append(distinct, err)
		}
	}
	if more := len(seen) - most; more > 0 {
		distinct = append(distinct, fmt.Errorf("and %d other reasons", more))
	}
	return errors.Join(distinct...)
}

// same reports whether errors have the same text, of which the first may be nil.
func same(a, b error) bool { return a != nil && a.Error() == b.Error() }

func (w *work) deliverPart(ctx context.Context, target Target, p *part) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.entries == nil {
		if err := w.load(p); err != nil {
			return err
		}
	}
	var parser record.Parser
	for p.refused == nil && len(p.entries) > 0 {
		err := try(func() error { return w.deliverSome(ctx, target, p, p.next(&parser)) })
		if errors.As(err, new(*RefusedError)) {
			p.refused = err
		} else if err != nil {
			return err
		}
	}
	for len(p.entries) > 0 {
		if err := w.aside(ctx, p.entries[0], p.refused); err != nil {
			return err
		}
		p.entries = p.entries[1:]
	}
	return nil
}

// deliverSome delivers the next records of a part, and takes them out of it.
func (w *work) deliverSome(ctx context.Context, target Target, p *part, next some) error {
	bad := map[int]error{} // by place
	if len(next.records) > 0 {
		report, err := target.Deliver(ctx, p.project, next.records)
		if errors.As(err, new(*RefusedError)) {
			p.refused = err
			return nil
		}
		if err != nil {
			return err
		}
		w.delivered.Add(int64(report.Events))
		w.of(p.project).delivered.Add(int64(report.Events))
		for _, line := range report.BadLines {
			bad[line.Line-1] = errors.New(line.Reason)
		}
	}
	from, rejects := 0, p.rejected
	for n, end := range next.ends {
		rejects.add(next.lines[from:end], bad, from)
		if err := w.asideRejected(ctx, p.entries[n], rejects); err != nil {
			return err
		}
		from, rejects = end, rejected{}
	}
	rejects.add(next.lines[from:], bad, from)
	done := len(next.ends)
	if next.unreadable != nil {
		if err := w.aside(ctx, p.entries[done], next.unreadable); err != nil {
			return err
		}
		done, rejects = done+1, rejected{}
	}
	p.entries, p.at, p.rejected = p.entries[done:], next.at, rejects
	return nil
}

// try delivers something. A panic refuses it: the next try, or the next start of the process, would end in the same way.
func try(deliver func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = &RefusedError{fmt.Errorf("BUG: delivering them panics: %v\n%s", cause, debug.Stack())}
		}
	}()
	return deliver()
}

// aside writes what can't be delivered to a file, so that the rest can go on.
func (w *work) aside(ctx context.Context, entry journal.Entry, reason error) error {
	path, err := w.journal.SetAside(ctx, entry, reason.Error())
	if err != nil {
		return fmt.Errorf("setting aside what can't be delivered: %w", err)
	}
	w.setAside.Add(int64(entry.Events))
	w.of(entry.Project).setAside.Add(int64(entry.Events))
	w.logger.Error("captured events can't be delivered, and were set aside", zap.Int64("project", entry.Project), zap.Int("events", entry.Events),
		zap.Error(reason), zap.String("file", path))
	return nil
}

// rejected is the records of an entry that ClickHouse refuses.
type rejected struct {
	events  int
	data    []byte
	reasons []error
}

// add adds the bad ones of lines, the first of which has a place.
func (r *rejected) add(lines [][]byte, bad map[int]error, first int) {
	r.data, r.reasons = slices.Clip(r.data), slices.Clip(r.reasons) // what the part has stays, in case that it is delivered again
	for n, line := range lines {
		if reason := bad[first+n]; reason != nil {
			r.events++
			r.data = append(append(r.data, line...), '\n')
			r.reasons = append(r.reasons, reason)
		}
	}
}

// asideRejected sets aside the records of an entry that ClickHouse refuses, together.
func (w *work) asideRejected(ctx context.Context, entry journal.Entry, r rejected) error {
	if r.events == 0 {
		return nil
	}
	entry.Events, entry.Data = r.events, r.data
	return w.aside(ctx, entry, joinDistinct(r.reasons))
}

// report notes what can't be delivered now, and why.
func (w *work) report() {
	w.changed, w.reported = false, time.Now()
	err := joinDistinct(append([]error{w.noting.err, w.front.err, w.back.err}, w.failures()...))
	if err == nil {
		if w.failing.Swap(nil) != nil {
			w.logger.Info("captured events are delivered again")
		}
		return
	}
	why := err.Error()
	if was := w.failing.Swap(&why); was == nil {
		w.logger.Warn("captured events can't be delivered now; trying again", zap.Error(err))
	}
}

// failures returns why parts can't be delivered. A project is named if no other has the same reason: an outage fails all in the same way.
func (w *work) failures() (all []error) {
	projects := map[string]int{}
	for _, p := range w.parts {
		if p.err != nil {
			projects[p.err.Error()]++
		}
	}
	for _, p := range w.parts {
		switch {
		case p.err == nil:
		case projects[p.err.Error()] == 1:
			all = append(all, fmt.Errorf("project %d: %w", p.project, p.err))
		default:
			all = append(all, p.err)
		}
	}
	return all
}
