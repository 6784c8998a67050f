package deletions

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/module/rescue"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// follow makes this server forget what other servers have deleted. It compares the deletions rather than their times, because clocks differ.
func (d *Deleter) follow() {
	known := map[string]map[string]bool{} // hidden deletions by shard
	d.each(func(shard string, list []*registry.Deletion) {
		hidden, forgotten := map[string]bool{}, map[int64]bool{}
		for _, one := range list {
			if one.HiddenAt.IsZero() {
				continue
			}
			if hidden[one.ID] = true; !known[shard][one.ID] && !forgotten[one.Project] {
				forgotten[one.Project] = true
				_ = rescue.Do(d.Logger, func() error { d.Forget(one.Project, time.Now()); return nil }, zap.Int64("project", one.Project)) // it is logged
			}
		}
		known[shard] = hidden
	})
}

// completeDue completes aborted deletions, on each shard independently. Each may take long.
func (d *Deleter) completeDue() {
	retried := map[string]map[string]time.Time{} // by shard and deletion
	d.each(func(shard string, list []*registry.Deletion) {
		of := retried[shard]
		if of == nil {
			of = map[string]time.Time{}
			retried[shard] = of
		}
		d.completing.Begin(shard, func() {
			for _, one := range list {
				if now := time.Now(); one.HiddenAt.IsZero() && now.Sub(one.RequestedAt) > completeAfter && now.Sub(of[one.ID]) > completeAfter {
					d.complete(one)
					of[one.ID] = time.Now()
				}
			}
		})
	})
}

// each calls look again and again, with the deletions of each shard that are not erased yet.
func (d *Deleter) each(look func(shard string, list []*registry.Deletion)) {
	d.worker.Look(pollInterval, nil, func() {
		snap, of := d.Registry.Snapshot(), map[string][]*registry.Deletion{}
		for _, p := range snap.Projects() {
			of[p.Shard] = append(of[p.Shard], snap.PendingDeletions(p.ID)...)
		}
		for shard, list := range of {
			if len(list) > 0 {
				look(shard, list)
			}
		}
	})
}

// complete hides what an aborted deletion has left.
func (d *Deleter) complete(one *registry.Deletion) {
	ctx, cancel := context.WithTimeout(d.open, maxTime)
	defer cancel()
	of := []zap.Field{zap.Int64("project", one.Project), zap.String("deletion", one.ID)}
	if err := rescue.Do(d.Logger, func() error { return d.hideAgain(ctx, one) }, of...); err != nil && d.open.Err() == nil {
		d.metrics.failures.Inc()
		d.Logger.Warn("a deletion is not complete yet; trying again", append(of, clickhouse.Logged(err))...)
	}
}

func (d *Deleter) hideAgain(ctx context.Context, one *registry.Deletion) error {
	if err := d.check(ctx, one.Project); err != nil {
		return err
	}
	id, err := uuid.Parse(one.Person)
	if err != nil {
		return err
	}
	current := one
	found := func(ctx context.Context, persons []ingest.Gone) error {
		if err := d.Registry.Refresh(ctx); err != nil {
			return err
		}
		if current = pending(d.Registry.Snapshot(), one); current == nil {
			return errDone
		}
		copied := *current
		current = &copied
		for _, p := range persons { // the person may have changed since
			current.Version = p.Version
			current.Names = newer(current.Names, p.Names)
		}
		counted, err := d.hideEvents(ctx, one.Project, []*registry.Deletion{current}, one.RequestedAt)
		if err == nil {
			current = counted[0]
		}
		return err
	}
	var cohorts []int64
	hide := func(ctx context.Context, _ []ingest.Gone) (err error) {
		cohorts, err = d.hideRest(ctx, one.Project, []*registry.Deletion{current})
		return err
	}
	if pending(d.Registry.Snapshot(), one) == nil {
		return nil // the original request has completed it
	}
	if err := d.Shards.Of(one.Project).DeletePeople(ctx, d.Options(one.Project), ingest.Named{Persons: []uuid.UUID{id}, Still: still(one)}, one.Gone, found, hide); errors.Is(err, errDone) {
		return nil
	} else if err != nil {
		return refusal(err)
	}
	d.Forget(one.Project, time.Now())
	d.recount(ctx, one.Project, cohorts)
	return nil
}

// pending returns the current state of a deletion that is not hidden yet; nil if it is.
func pending(snap *registry.Snapshot, one *registry.Deletion) *registry.Deletion {
	for _, d := range snap.PendingDeletions(one.Project) {
		if d.ID == one.ID && d.HiddenAt.IsZero() {
			return d
		}
	}
	return nil
}

// errDone stops work that another server has done meanwhile.
var errDone = errors.New("the deletion is complete")

// still reports whether a person is the one to be deleted. If it came back after its deletion, all its distinct ids have later versions; if it was
// never deleted, some have not, whatever else has changed.
func still(one *registry.Deletion) func(ingest.Gone) bool {
	versions := map[string]int64{}
	for _, n := range one.Names {
		versions[n.Name] = n.Version
	}
	return func(g ingest.Gone) bool {
		if g.Version <= one.Version {
			return true
		}
		for _, n := range g.Names {
			if v, known := versions[n.Name]; known && n.Version <= v {
				return true
			}
		}
		return false
	}
}

// newer updates a deletion's distinct ids, and adds the ones found.
func newer(names []registry.DeletedName, found []ingest.GoneName) []registry.DeletedName {
	versions := map[string]int64{}
	for _, n := range found {
		versions[n.Name] = n.Version
	}
	var all []registry.DeletedName
	for _, n := range names {
		if v, known := versions[n.Name]; known {
			n.Version = v
			delete(versions, n.Name)
		}
		all = append(all, n)
	}
	for _, n := range found {
		if v, left := versions[n.Name]; left {
			all = append(all, registry.DeletedName{Name: n.Name, Version: v})
		}
	}
	return all
}
