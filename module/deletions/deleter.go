// Package deletions deletes people and their events. It hides them at once from everything that queries read, and later erases them from the disk, on
// one server at a time of those that share a registry. The package knows neither HTTP nor Caddy.
package deletions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/module/background"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

const (
	// defaultDelay is how long deleted rows stay on the disk before they are erased. Each erasure rewrites whatever has such rows, so deletions made
	// close together are erased together.
	defaultDelay = time.Hour
	// pollInterval is how often to look for deletions made by other servers.
	pollInterval = time.Second
	// completeAfter is how old a deletion is before it is completed because its server does not seem to do it.
	completeAfter = 10 * time.Second
	// eraseEvery is how often to look for deletions to erase.
	eraseEvery = time.Minute
	// maxTime is how long a deletion may take.
	maxTime = 10 * time.Minute
)

// Config configures a Deleter.
type Config struct {
	Registry *registry.Registry
	Shards   *warehouse.Shards
	Logger   *zap.Logger
	// Options returns the options with which a project's people are written.
	Options func(project int64) ingest.Options
	// Forget makes this server forget everything it computed for a project before a time.
	Forget func(project int64, before time.Time)
	// Recount recounts the members of cohorts that lost some.
	Recount func(ctx context.Context, project int64, cohorts []int64) error
	// EraseCaptured waits until the events captured so far for a shard are delivered and off this server's disk. From the events that were set aside,
	// it removes those for which gone returns true.
	EraseCaptured func(ctx context.Context, shard string, gone func(project int64, distinctID string) bool) error
	// EraseImports removes from this server's disk what import reports quote from their files.
	EraseImports func(project int64) error
	// Delay is the least time that deleted rows stay on the disk. Default: an hour.
	Delay time.Duration
}

// Deleter deletes people and their events. The registry holds what is to be deleted, so that nothing is forgotten when a server dies. Its methods are
// safe for concurrent use.
type Deleter struct {
	Config

	metrics *metrics
	worker  *background.Worker
	open    context.Context // ends with Close

	completing, erasing *background.PerShard
}

// New returns a Deleter, which begins to look for deletions to complete and to erase.
func New(config Config) *Deleter {
	config.Delay = cmp.Or(config.Delay, defaultDelay)
	w := background.New(config.Registry, config.Logger)
	d := &Deleter{Config: config, metrics: newMetrics(), worker: w, open: w.Context(), completing: w.PerShard(), erasing: w.PerShard()}
	d.follow()
	d.completeDue()
	w.Every(min(eraseEvery, d.Delay), d.eraseDue)
	return d
}

// Close stops work in progress. It continues after the next start.
func (d *Deleter) Close() error { return d.worker.Close() }

// RefusedError reports that rows can't be deleted here.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// Request says what to delete from a project.
type Request struct {
	Project int64
	Who     ingest.Named
	Events  bool   // their events
	Keep    bool   // the persons stay
	By      string // id of a key
	// Enter waits until the project may run one more statement on ClickHouse, and leave ends that; nil if there is nothing to wait for. It is not called
	// in the project's turn.
	Enter func(context.Context) (leave func(), err error)
}

// Delete deletes persons, their events, or both. It returns a record for each person that exists, or several for a person with very many distinct
// ids. When it returns, no answer of this server contains the deleted data; other servers follow within a second or two. If the server does not let
// us delete, the error is a *RefusedError. After any other error the deletion may have begun, and is then completed in the background.
func (d *Deleter) Delete(ctx context.Context, r Request) ([]*registry.Deletion, error) {
	if r.Keep && !r.Events {
		return nil, nil
	}
	records, cohorts, err := d.delete(ctx, &r)
	if err != nil || len(records) == 0 {
		return nil, err
	}
	d.recount(ctx, r.Project, cohorts)
	return records, nil
}

// delete is Delete without recounting the cohorts that lost members, which it returns: recounting needs a place, and those that wait for this deletion
// may hold all of them.
func (d *Deleter) delete(ctx context.Context, r *Request) (records []*registry.Deletion, cohorts []int64, err error) {
	if err := d.check(ctx, r.Project); err != nil {
		return nil, nil, err
	}
	ctx, cancel := d.detached(ctx)
	defer cancel()
	found := func(ctx context.Context, persons []ingest.Gone) (err error) {
		known, added, err := d.record(ctx, r, persons)
		if err != nil || len(known)+len(added) == 0 {
			return err
		}
		// Nobody writes meanwhile, so all events have arrived before. Events come first, so that a refusal leaves the persons.
		records, err = d.hideEvents(ctx, r.Project, slices.Concat(known, added), farFuture)
		if refused, ok := errors.AsType[*clickhouse.Error](err); ok && refused.Refused() {
			return errors.Join(err, d.Registry.RemoveDeletions(ctx, r.Project, added))
		}
		return err
	}
	hide := func(ctx context.Context, _ []ingest.Gone) (err error) {
		cohorts, err = d.hideRest(ctx, r.Project, records)
		return err
	}
	options := d.Options(r.Project)
	options.Enter = r.Enter
	if err := d.Shards.Of(r.Project).DeletePeople(ctx, options, r.Who, !r.Keep, found, hide); err != nil {
		d.metrics.failures.Inc()
		return nil, nil, refusal(err)
	}
	if len(records) > 0 {
		d.Forget(r.Project, time.Now())
	}
	return records, cohorts, nil
}

// record records what is to be deleted. Unfinished deletions of earlier requests are returned as known and not recorded again: a client may repeat
// its request every second while a replica of ClickHouse is unavailable.
func (d *Deleter) record(ctx context.Context, r *Request, persons []ingest.Gone) (known, added []*registry.Deletion, err error) {
	open := map[string][]*registry.Deletion{} // by person
	for _, one := range d.Registry.Snapshot().PendingDeletions(r.Project) {
		if one.HiddenAt.IsZero() && one.Gone == !r.Keep && one.Events == r.Events {
			open[one.Person] = append(open[one.Person], one)
		}
	}
	var fresh []ingest.Gone
	for _, p := range persons {
		if one := open[p.ID.String()]; covers(one, p) {
			known = append(known, one...)
		} else {
			fresh = append(fresh, p)
		}
	}
	if asked := recordsOf(r, fresh); len(asked) > 0 {
		added, err = d.Registry.AddDeletions(ctx, r.Project, asked, time.Now())
	}
	return known, added, err
}

// covers reports whether deletions match a person's current state.
func covers(list []*registry.Deletion, p ingest.Gone) bool {
	versions := map[registry.DeletedName]bool{}
	for _, one := range list {
		if one.Version != p.Version {
			return false
		}
		for _, n := range one.Names {
			versions[n] = true
		}
	}
	for _, n := range p.Names {
		if !versions[registry.DeletedName(n)] {
			return false
		}
	}
	return len(list) > 0
}

// recount recounts the members of cohorts that lost some.
func (d *Deleter) recount(ctx context.Context, project int64, cohorts []int64) {
	ctx, cancel := d.detached(ctx)
	defer cancel()
	if err := d.Recount(ctx, project, cohorts); err != nil { // the members are already gone
		d.Logger.Warn("the members of cohorts are not counted after a deletion", zap.Int64("project", project), clickhouse.Logged(err))
	}
}

// farFuture is later than any event.
var farFuture = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// detached returns a context that lasts until a deletion is finished, even if nobody waits for it any more.
func (d *Deleter) detached(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxTime)
	stop := context.AfterFunc(d.open, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// check reports that ClickHouse is unavailable, or does not let us delete rows of a project.
func (d *Deleter) check(ctx context.Context, project int64) error {
	wh := d.Shards.Of(project)
	if _, err := wh.Layout(ctx); err != nil {
		return err
	}
	reason, err := wh.CanDelete(ctx)
	if err == nil && reason != "" {
		err = &RefusedError{reason}
	}
	return err
}

// refusal turns a refusal by ClickHouse into a *RefusedError.
func refusal(err error) error {
	if e, ok := errors.AsType[*clickhouse.Error](err); ok && e.Refused() {
		return fmt.Errorf("%w (%s)", &RefusedError{"The ClickHouse user of this server may not delete rows of these tables."}, e.Name)
	}
	return err
}

// namesBytes is how many bytes of distinct ids one record holds.
const namesBytes = registry.MaxRecord / 2

// recordsOf returns the records of a deletion.
func recordsOf(r *Request, persons []ingest.Gone) []registry.Deletion {
	var all []registry.Deletion
	for _, p := range persons {
		of := registry.Deletion{Person: p.ID.String(), Gone: !r.Keep, Events: r.Events, Version: p.Version, By: r.By}
		all = append(all, of)
		at, size := &all[len(all)-1], 0
		for _, name := range p.Names {
			if size += len(name.Name) + 30; size > namesBytes {
				all = append(all, of)
				at, size = &all[len(all)-1], len(name.Name)
			}
			at.Names = append(at.Names, registry.DeletedName(name))
			at.DistinctIDs++
		}
	}
	return all
}

// hideEvents hides the events of records that arrived by a given time, and returns the records with the number of events.
func (d *Deleter) hideEvents(ctx context.Context, project int64, records []*registry.Deletion, until time.Time) ([]*registry.Deletion, error) {
	var persons, names []string
	counted := make([]*registry.Deletion, len(records))
	for n, r := range records {
		copied := *r
		counted[n] = &copied
		if r.Events {
			persons = append(persons, r.Person)
			for _, n := range r.Names {
				names = append(names, n.Name)
			}
		}
	}
	if len(persons) == 0 {
		return counted, nil
	}
	counts, err := d.Shards.Of(project).CountEvents(ctx, project, names, until)
	if err != nil {
		return nil, err
	}
	for _, r := range counted {
		for _, n := range r.Names {
			if r.Events {
				r.EventCount += counts[n.Name]
			}
		}
	}
	return counted, d.Shards.Of(project).DeleteEvents(ctx, project, persons, names, until)
}

// hideRest hides the rest of records whose persons and events are already hidden, and records that. It returns the cohorts that the persons were in.
func (d *Deleter) hideRest(ctx context.Context, project int64, records []*registry.Deletion) (cohorts []int64, err error) {
	if len(records) == 0 {
		return nil, nil
	}
	wh := d.Shards.Of(project)
	former, err := formerPersons(ctx, wh, project, records)
	if err != nil {
		return nil, err
	}
	gone := slices.Collect(maps.Keys(former))
	for _, r := range records {
		if r.Gone {
			gone = append(gone, r.Person)
		}
	}
	if len(gone) > 0 {
		// Members come first, because rows of distinct ids name former persons.
		if cohorts, err = wh.DeleteMembers(ctx, project, gone); err != nil {
			return nil, err
		}
		if err := hideRows(ctx, wh, project, records, former, false); err != nil {
			return nil, err
		}
	}
	now := time.Now()
	if err := d.Registry.HideDeletions(ctx, project, records, now); err != nil {
		return nil, err
	}
	for _, r := range records {
		r.HiddenAt = now.UTC()
	}
	d.metrics.hidden.Add(float64(len(records)))
	return cohorts, nil
}

// formerPersons returns the persons that were merged into deleted ones, and others that no longer exist and had their distinct ids, with what is earlier
// than the row that marks each as deleted.
func formerPersons(ctx context.Context, wh *warehouse.Warehouse, project int64, list []*registry.Deletion) (map[string]warehouse.Earlier, error) {
	var names []string
	for _, one := range list {
		if one.Gone {
			for _, n := range one.Names {
				names = append(names, n.Name)
			}
		}
	}
	return wh.FormerPersons(ctx, project, names)
}

// hideRows hides the earlier versions of the rows of deleted and former persons, and those of the distinct ids unless events still have them, and belong to
// the person through them. The rows that mark them as deleted stay until the erasure, so that whoever comes back has later versions. Unless events need
// them, marks hides these rows of the deleted persons too, if they are not younger than the deletion: once they are gone, whoever comes back begins with the
// first version again, and the erasure may be tried again after that.
func hideRows(
	ctx context.Context, wh *warehouse.Warehouse, project int64, list []*registry.Deletion, former map[string]warehouse.Earlier, marks bool,
) error {
	persons, names := maps.Clone(former), map[string]warehouse.Earlier{}
	add := func(to map[string]warehouse.Earlier, key string, version uint64, written time.Time) {
		known := to[key]
		if written.Before(known.Written) {
			written = known.Written
		}
		to[key] = warehouse.Earlier{Version: max(version, known.Version), Written: written}
	}
	for _, one := range list {
		if !one.Gone {
			continue
		}
		step, written := uint64(0), time.Time{}
		if marks {
			written = one.HiddenAt.Add(background.ClockSkew)
			if one.Events {
				step = 1
			}
		}
		add(persons, one.Person, one.Version+step, written)
		if one.Events {
			for _, n := range one.Names {
				add(names, n.Name, uint64(n.Version)+step, written) //nolint:gosec // versions begin at 0
			}
		}
	}
	return wh.DeletePersonRows(ctx, project, persons, names)
}

// DeletionsOf returns what was deleted from a project, for those who write incoming data.
func DeletionsOf(snap *registry.Snapshot, project int64) ingest.Deletions {
	var out ingest.Deletions
	if p := snap.Project(project); p != nil {
		out.Epoch = p.Epoch
	}
	for _, d := range snap.PendingDeletions(project) {
		for _, n := range d.Names {
			if out.Late == nil {
				out.Late = map[string]ingest.Late{}
			}
			late := out.Late[n.Name]
			if d.RequestedAt.After(late.Until) {
				late.Until = d.RequestedAt
			}
			if d.Events && d.RequestedAt.After(late.EventsUntil) {
				late.EventsUntil = d.RequestedAt
			}
			out.Late[n.Name] = late
		}
	}
	return out
}
