package registry

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// How often the last use is rewritten (contract: api.md, sections 6.2 and 5.3).
const (
	keyUseEvery    = time.Hour
	executionEvery = 30 * time.Minute

	usesWaiting = 1024
)

// use names what was used: a key, or a version of an endpoint.
type use struct {
	project  int64
	key      string // id; empty for an endpoint
	endpoint string // id
	version  int
}

type timedUse struct {
	use
	at time.Time
}

// Touch says that a key was used. It never waits: the time is written later, together with others, and at most once an hour.
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

// Executed says that a version of an endpoint was run with a key. It never waits: the time is written later, together with
// others, and at most every half hour.
func (r *Registry) Executed(e *Endpoint, version int, now time.Time) {
	entry := r.Snapshot().endpoint(e.Project, e.Name)
	if entry == nil || entry.ID != e.ID || version < 1 || version > len(entry.executed) {
		return // deleted in between
	}
	r.offer(entry.executed[version-1], executionEvery, now, use{project: e.Project, endpoint: e.ID, version: version})
}

// LastExecuted is when a version of an endpoint was last run with a key, as of now: what [Registry.Executed] has yet to write
// counts too. Version 0 means all of them. The zero time means never.
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
	if last == 0 {
		return time.Time{}
	}
	return time.UnixMicro(last).UTC()
}

// offer hands a use to the background when the last one is long enough ago. When too many wait it is dropped, and the next
// use tries again.
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

// recordUses writes the uses until ctx ends, and then what is left.
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

// writeUses writes the uses in one transaction, and forgets them. When the store fails they stay for the next time.
func (r *Registry) writeUses(ctx context.Context, pending map[use]time.Time) {
	if len(pending) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout) // Close waits for it
	defer cancel()
	err := r.write(ctx, 0, func(t *tx) error {
		for u, at := range pending {
			if err := t.used(u, at); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		r.log.Warn("writing when keys and endpoints were last used; trying again", zap.Int("waiting", len(pending)), zap.Error(err))
		return
	}
	clear(pending)
}

// used moves a last use forward, never back. What is gone is passed over.
func (t *tx) used(u use, at time.Time) error {
	p := t.next.project(u.project)
	if p == nil {
		return nil
	}
	if u.key != "" {
		e := p.keys.get(u.key)
		if e == nil || !e.LastUsedAt.Before(at) {
			return nil
		}
		k := e.Key
		k.LastUsedAt = at
		return t.put(&k)
	}
	entry := p.endpoints.get(u.endpoint)
	if entry == nil || !entry.deleted.IsZero() || u.version > len(entry.Versions) || !entry.Versions[u.version-1].LastExecutedAt.Before(at) {
		return nil
	}
	e := entry.Endpoint
	e.Versions = slices.Clone(e.Versions)
	e.Versions[u.version-1].LastExecutedAt = at
	if at.After(e.LastExecutedAt) {
		e.LastExecutedAt = at
	}
	return t.putEndpoint(e, u.version)
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
