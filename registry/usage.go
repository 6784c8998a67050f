package registry

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// How often the last use is rewritten (contract: api.md, sections 6.2 and 5.3).
const (
	keyUseEvery    = time.Hour
	executionEvery = 30 * time.Minute

	usesWaiting  = 1024
	usesPerWrite = 500 // in one write, which others wait for

	// usesOverlap is how far before the last reading uses are read again, because some were still being gathered then, and clocks differ.
	usesOverlap = 2 * time.Minute
	// Every lateUsesEvery, the uses of the last lateUses are read again, for those that a process could not write in time.
	lateUsesEvery = time.Hour
	lateUses      = 24 * time.Hour
)

// useLog is the name of the log of uses, which belongs to no project. For each key, and each version of an endpoint, it has one entry: the last use. Uses are
// not records, because other processes read all changes of records at once, but uses only from time to time.
const useLog = "use"

// use identifies what was used: a key, or a version of an endpoint.
type use struct {
	project  int64
	key      string // id; empty for an endpoint
	endpoint string // id
	version  int
}

// The first parts of the ids of entries.
const (
	usedKey     = "key"
	usedVersion = "version"
)

// entry returns the log entry of a use. Item is what was used, and By the number of its project, so that both can be forgotten.
func (u use) entry(at time.Time) Entry {
	e := Entry{Log: useLog, By: digits(u.project), At: at}
	if u.key != "" {
		e.ID, e.Item = usedKey+"/"+u.key, u.key
		return e
	}
	e.ID, e.Item = usedVersion+"/"+u.endpoint+"/"+strconv.Itoa(u.version), u.endpoint
	return e
}

// useOf returns what a log entry is about; the zero use if that is not known.
func useOf(e *Entry) use {
	project, err := strconv.ParseInt(e.By, 10, 64)
	if err != nil {
		return use{}
	}
	kind, rest, _ := strings.Cut(e.ID, "/")
	switch kind {
	case usedKey:
		return use{project: project, key: rest}
	case usedVersion:
		endpoint, number, _ := strings.Cut(rest, "/")
		if version, err := strconv.Atoi(number); err == nil {
			return use{project: project, endpoint: endpoint, version: version}
		}
	}
	return use{}
}

// forgetUses selects the uses of a key or an endpoint that is removed for good.
func forgetUses(id string) Forgotten { return Forgotten{Log: useLog, Item: id} }

// forgetUsesIn selects all uses in a project.
func forgetUsesIn(project int64) Forgotten { return Forgotten{Log: useLog, By: digits(project)} }

type timedUse struct {
	use
	at time.Time
}

// Touch notes that a key was used. It never waits: the time is written later, together with others, and at most once an hour.
func (r *Registry) Touch(k *Key, now time.Time) {
	snap := r.Snapshot()
	if snap.keys == nil {
		return
	}
	e, _ := snap.keys.Get(k.Hash)
	if e == nil {
		return // rolled or revoked in between
	}
	r.offer(e.used, keyUseEvery, now, use{project: e.Project, key: e.ID})
}

// Executed notes that a version of an endpoint was run with a key. It never waits: the time is written later, together with others, and at most every half
// hour.
func (r *Registry) Executed(e *Endpoint, version int, now time.Time) {
	entry := r.Snapshot().endpoint(e.Project, e.Name)
	if entry == nil || entry.ID != e.ID || version < 1 || version > len(entry.executed) {
		return // deleted in between
	}
	r.offer(entry.executed[version-1], executionEvery, now, use{project: e.Project, endpoint: e.ID, version: version})
}

// LastUsed returns when a key was last used, including uses that [Registry.Touch] has yet to write. The zero time means never. It may be up to an hour late,
// and two minutes more for a use on another server.
func (s *Snapshot) LastUsed(k *Key) time.Time {
	clock := s.clock(use{project: k.Project, key: k.ID})
	if clock == nil {
		return k.LastUsedAt
	}
	return timeOf(clock.Load())
}

// timeOf returns the time of a clock.
func timeOf(clock int64) time.Time {
	if clock == 0 {
		return time.Time{}
	}
	return time.UnixMicro(clock).UTC()
}

// LastExecuted returns when a version of an endpoint was last run with a key, including runs that [Registry.Executed] has yet to write. Version 0 means all of
// them. The zero time means never. It may be up to half an hour late, and two minutes more for a run on another server.
func (s *Snapshot) LastExecuted(e *Endpoint, version int) time.Time {
	entry := s.endpoint(e.Project, e.Name)
	if entry == nil || entry.ID != e.ID {
		return time.Time{}
	}
	var last int64
	for i, clock := range entry.executed {
		if version == 0 || version == i+1 {
			last = max(last, clock.Load())
		}
	}
	return timeOf(last)
}

// offer hands a use to the background if the last one is long enough ago. If too many are waiting, it is dropped, and the next use tries again.
func (r *Registry) offer(clock *atomic.Int64, every time.Duration, now time.Time, u use) {
	was := clock.Load()
	at := now.UnixMicro()
	if at-was < every.Microseconds() || !clock.CompareAndSwap(was, at) {
		return
	}
	select {
	case r.uses <- timedUse{u, moment(now)}:
	default:
		clock.CompareAndSwap(at, was)
	}
}

// recordUses writes uses until ctx ends, and then what is left.
func (r *Registry) recordUses(ctx context.Context, gather time.Duration) {
	pending := make(map[use]time.Time)
	ticker := time.NewTicker(gather)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case u := <-r.uses:
			pending[u.use] = u.at
		case <-ticker.C:
			r.writeUses(ctx, pending)
		}
	}
	for {
		select {
		case u := <-r.uses:
			pending[u.use] = u.at
			continue
		default:
		}
		r.writeUses(ctx, pending)
		return
	}
}

// writeUses writes the pending uses, and forgets them. If the store fails, they stay for the next time.
func (r *Registry) writeUses(ctx context.Context, pending map[use]time.Time) {
	if len(pending) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout) // Close waits for it
	defer cancel()
	var w Write
	snap := r.Snapshot()
	for u, at := range pending {
		clock := snap.clock(u)
		if clock == nil || clock.Load() > at.UnixMicro() { // gone, or another process wrote a later use
			delete(pending, u)
			continue
		}
		raise(clock, at)
		w.Append = append(w.Append, u.entry(at))
	}
	for part := range slices.Chunk(w.Append, usesPerWrite) {
		if _, err := r.store.Write(ctx, &Write{Append: part}); err != nil {
			r.log.Warn("writing when keys and endpoints were last used; trying again", zap.Int("waiting", len(pending)), zap.Error(err))
			return
		}
		for i := range part {
			delete(pending, useOf(&part[i]))
		}
	}
}

// readUses reads from time to time which uses other processes wrote, until ctx ends. All that were written before it starts are known.
func (r *Registry) readUses(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	read := time.Now() // all but late uses are known up to this time
	again := read      // when late ones were last looked for
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := time.Now()
		since, late := read.Add(-usesOverlap), now.Sub(again) >= lateUsesEvery
		if before := now.Add(-lateUses); late && before.Before(since) {
			since = before
		}
		limited, cancel := context.WithTimeout(ctx, readTimeout)
		entries, _, err := r.store.Entries(limited, 0, useLog, EntryPage{Since: since})
		cancel()
		if err != nil { // the poll logs that a store does not answer
			continue
		}
		r.Snapshot().noteUses(entries)
		if read = now; late {
			again = now
		}
	}
}

// noteUses moves the clocks forward to the uses in a store.
func (s *Snapshot) noteUses(entries []Entry) {
	for i := range entries {
		if clock := s.clock(useOf(&entries[i])); clock != nil {
			raise(clock, entries[i].At)
		}
	}
}

// clock returns the last known use of a key or a version, in Unix microseconds; nil if it is gone.
func (s *Snapshot) clock(u use) *atomic.Int64 {
	p := s.project(u.project)
	if p == nil {
		return nil
	}
	if u.key != "" {
		if e := p.keys.get(u.key); e != nil {
			return e.used
		}
		return nil
	}
	e := p.endpoints.get(u.endpoint)
	if e == nil || !e.deleted.IsZero() || u.version < 1 || u.version > len(e.executed) {
		return nil
	}
	return e.executed[u.version-1]
}

// raise moves a clock of Unix microseconds forward to t, never back.
func raise(clock *atomic.Int64, t time.Time) {
	if t.IsZero() {
		return
	}
	for {
		was := clock.Load()
		if t.UnixMicro() <= was || clock.CompareAndSwap(was, t.UnixMicro()) {
			return
		}
	}
}
