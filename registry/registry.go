package registry

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/internal/pause"
)

// Options tune a Registry; the zero value is ready for use.
type Options struct {
	// How often to ask the store whether another process wrote. Default: 500ms, so that others see a write within a second even if they are not told of it.
	Poll time.Duration
	// How long to gather uses of keys and endpoints before writing them together. Default: 20s.
	Gather time.Duration
	// How often to read the uses that other processes wrote. Default: 1m.
	Uses time.Duration
	// How often to purge what was deleted PurgeAfter ago. Default: 1h.
	Purge time.Duration
	// What one project may keep. Default: those of Limits. See [Registry.SetLimits].
	Limits Limits
	// Logs failures of the store in the background. Default: none.
	Logger *zap.Logger
}

// defaultPoll is the default of Options.Poll.
const defaultPoll = 500 * time.Millisecond

const (
	// storeTimeout limits background requests to the store that are small.
	storeTimeout = 10 * time.Second
	// readTimeout limits those that may be large, such as all records. It is longer than any registry takes: a read that is cut short would start over each time.
	readTimeout = 15 * time.Minute
)

// Registry is the one place for reads and writes of what a Store keeps. It is safe for concurrent use.
type Registry struct {
	store    Store
	log      *zap.Logger
	snapshot atomic.Pointer[Snapshot]
	uses     chan timedUse
	limits   atomic.Pointer[Limits]
	logged   sync.Map // ids of ended keys that are known to be in an activity log

	turn   chan struct{} // holds a value while someone replaces the snapshot
	closed atomic.Bool   // set in the turn

	stop context.CancelFunc
	done sync.WaitGroup
}

// Open reads the whole store. From then on the registry owns the store, unless Open fails.
func Open(ctx context.Context, store Store, opts Options) (*Registry, error) {
	r := &Registry{store: store, log: cmp.Or(opts.Logger, zap.NewNop()), uses: make(chan timedUse, usesWaiting), turn: make(chan struct{}, 1)}
	r.snapshot.Store(&Snapshot{})
	r.SetLimits(opts.Limits)
	if err := r.reload(ctx); err != nil {
		return nil, fmt.Errorf("reading the registry: %w", err)
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stop = stop
	r.done.Go(func() { r.poll(background, cmp.Or(opts.Poll, defaultPoll)) })
	r.done.Go(func() { r.watch(background, cmp.Or(opts.Poll, defaultPoll)) })
	r.done.Go(func() { r.purgeDeleted(background, cmp.Or(opts.Purge, time.Hour)) })
	r.done.Go(func() { r.recordUses(background, cmp.Or(opts.Gather, 20*time.Second)) })
	r.done.Go(func() { r.readUses(background, cmp.Or(opts.Uses, time.Minute)) })
	return r, nil
}

// Close ends the background work, writes the uses still gathered, and closes the store. Snapshots stay usable.
func (r *Registry) Close() error {
	r.stop()
	r.done.Wait()
	r.turn <- struct{}{}
	defer r.next()
	if r.closed.Swap(true) {
		return nil
	}
	if err := r.store.Close(); err != nil {
		return fmt.Errorf("closing the registry: %w", err)
	}
	return nil
}

// wait waits for the turn to replace the snapshot, until ctx ends. Whoever gets it calls next.
func (r *Registry) wait(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("waiting for other writes: %w", context.Cause(ctx))
	}
	if r.closed.Load() {
		r.next()
		return ErrClosed
	}
	return nil
}

// next gives up the turn.
func (r *Registry) next() { <-r.turn }

// Snapshot returns the registry as it is now.
func (r *Registry) Snapshot() *Snapshot { return r.snapshot.Load() }

// Refresh reads what other processes wrote, now rather than with the next poll.
func (r *Registry) Refresh(ctx context.Context) error {
	if r.closed.Load() {
		return ErrClosed
	}
	// Ask first without the turn, so that writers do not wait for a store that does not answer.
	if behind, err := r.behind(ctx); err != nil || !behind {
		return err
	}
	if err := r.wait(ctx); err != nil {
		return err
	}
	defer r.next()
	_, err := r.catchUp(ctx)
	return err
}

// Ping checks that the store answers. It does not wait for writers.
func (r *Registry) Ping(ctx context.Context) error {
	if r.closed.Load() {
		return ErrClosed
	}
	_, err := r.behind(ctx)
	return err
}

// behind reports whether the store has something that the snapshot does not show.
func (r *Registry) behind(ctx context.Context) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	revision, mark, err := r.store.Revision(limited)
	if err != nil {
		return false, fmt.Errorf("asking for the registry's revision: %w", err)
	}
	now := r.Snapshot()
	return revision != now.Revision || mark != now.mark, nil
}

// catchUp reads what other processes wrote, and reports whether there was anything. The caller has the turn.
func (r *Registry) catchUp(ctx context.Context) (later bool, err error) {
	if behind, err := r.behind(ctx); err != nil || !behind {
		return false, err
	}
	if err := r.reload(ctx); err != nil {
		return false, fmt.Errorf("reading the registry: %w", err)
	}
	return true, nil
}

// reload brings the snapshot up to date with the store. The caller has the turn, or is alone.
func (r *Registry) reload(ctx context.Context) error {
	before := r.Snapshot()
	from := before
	changes, err := r.store.Load(ctx, from.Revision)
	if err != nil {
		return err
	}
	// A backup that was restored on purpose: who restores it reserves numbers. Without marks, nothing else is known to set a store back.
	restored := changes.Whole && from.Revision <= changes.Revision && (changes.SinceMark != from.mark || changes.Mark == 0)
	setBack := changes.SinceMark != from.mark
	if !changes.Whole && (setBack || slices.ContainsFunc(changes.Records, func(rec Record) bool { return from.broken[rec.Project] })) {
		if changes, err = r.store.Load(ctx, 0); err != nil { // the rest is not known here, nor is a project that was left out
			return err
		}
	}
	if changes.Whole {
		from = &Snapshot{}
	}
	d := newDraft(from)
	for project, err := range d.load(changes.Records) {
		// One project that can't be used must not keep the others from seeing a revoked key.
		r.log.Error("leaving out a project", zap.Int64("project", project), zap.Error(err))
	}
	if changes.Whole { // the clocks of uses are new
		uses, _, err := r.store.Entries(ctx, 0, useLog, EntryPage{})
		if err != nil {
			return err
		}
		d.next.noteUses(uses)
		if !restored {
			d.keepNumbers(before)
		}
	}
	d.next.mark = changes.Mark
	r.snapshot.Store(d.finish(changes.Revision))
	return nil
}

// watch refreshes as soon as the store reports a write of another process, until ctx ends.
func (r *Registry) watch(ctx context.Context, again time.Duration) {
	for ctx.Err() == nil {
		err := r.store.Watch(ctx, func() {
			limited, cancel := context.WithTimeout(ctx, readTimeout)
			defer cancel()
			_ = r.Refresh(limited) // the poll logs that a store does not answer
		})
		if err != nil && ctx.Err() == nil {
			r.log.Debug("watching the store; the poll goes on", zap.Error(err))
		}
		_ = pause.For(ctx, again)
	}
}

// pollAway is the time between polls while the store can't be reached: a node that has missed a revocation must learn of it soon after the store is back.
const pollAway = 100 * time.Millisecond

func (r *Registry) poll(ctx context.Context, every time.Duration) {
	timer := time.NewTimer(every)
	defer timer.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		limited, cancel := context.WithTimeout(ctx, readTimeout)
		err := r.Refresh(limited)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			failing = true
			r.log.Warn("the store does not answer; serving what is known", zap.Error(err))
		case err == nil && failing:
			failing = false
			r.log.Info("the store answers again")
		}
		if failing {
			timer.Reset(min(every, pollAway))
		} else {
			timer.Reset(every)
		}
	}
}

// Lock takes a lock that one caller at a time holds, among all processes that share the store: see [Store.Lock].
func (r *Registry) Lock(ctx context.Context, name, holder string) (others bool, release func(), err error) {
	return r.store.Lock(ctx, name, holder)
}

// TryLock takes a lock unless another caller has it: see [Store.TryLock].
func (r *Registry) TryLock(ctx context.Context, name, holder string) (others bool, release func(), err error) {
	return r.store.TryLock(ctx, name, holder)
}

// CheckLocks returns an error if another caller may have got one of the locks since this registry took them: see [LockChecker].
func (r *Registry) CheckLocks(ctx context.Context, names []string) error {
	if c, ok := r.store.(LockChecker); ok {
		return c.CheckLocks(ctx, names)
	}
	return nil
}

// Keep stores data under a name, in place of what was there: see [Store.Keep].
func (r *Registry) Keep(ctx context.Context, name string, data []byte) error {
	return r.store.Keep(ctx, name, data)
}

// Kept returns what is kept under a name; nil for nothing.
func (r *Registry) Kept(ctx context.Context, name string) ([]byte, error) {
	return r.store.Kept(ctx, name)
}
