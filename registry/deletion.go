package registry

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Deletion is the deletion of a person, of its events, or of both. It tells the servers that share the registry what they must no longer show, and users how
// far it is. Once it is erased, it does not say who the person was.
type Deletion struct {
	ID      string `json:"-"` // a UUID
	Project int64  `json:"-"`
	Person  string `json:"person"` // its UUID
	// Gone says that the person is deleted, and Events that its events are.
	Gone   bool `json:"gone,omitempty"`
	Events bool `json:"events,omitempty"`
	// Names are the distinct ids of the person, with the version of each that is deleted. They are kept until everything is erased.
	Names []DeletedName `json:"names,omitempty"`
	// Version is the version of the person that is deleted.
	Version uint64 `json:"version,omitempty"`
	// DistinctIDs and EventCount say how many there were; for events, how many were in ClickHouse.
	DistinctIDs int   `json:"distinct_ids"`
	EventCount  int64 `json:"event_count,omitempty"`

	By          string    `json:"by,omitempty"` // id of a key; empty for the operator
	RequestedAt time.Time `json:"requested_at"`
	// HiddenAt is when it was gone from all answers, and ErasedAt when it was gone from the disk; zero until then.
	HiddenAt time.Time `json:"hidden_at,omitzero"`
	ErasedAt time.Time `json:"erased_at,omitzero"`
}

// DeletedName is a distinct id of a person that is deleted.
type DeletedName struct {
	Name    string `json:"n"`
	Version int64  `json:"v"`
}

func readDeletion(rec *Record) (entity, error) {
	d := &Deletion{ID: rec.ID, Project: rec.Project}
	return d, decode(rec, d)
}

func (d *Deletion) name() recordName { return recordName{d.Project, KindDeletion, d.ID} }
func (d *Deletion) unique() []string { return nil }

func (d *Deletion) size() int {
	size := 200
	for _, n := range d.Names {
		size += len(n.Name) + len(`{"n":"","v":0},`)
	}
	return size
}

func (d *Deletion) checkSize() error { return checkSize("", "This deletion", d.size(), MaxRecord) }

func (d *Deletion) key() string  { return d.ID }
func (d *Deletion) code() string { return "" }
func (d *Deletion) listed() bool { return true }

// compare puts those in progress first, and then the newest.
func (d *Deletion) compare(other *Deletion) int {
	if d.ErasedAt.IsZero() != other.ErasedAt.IsZero() {
		if d.ErasedAt.IsZero() {
			return -1
		}
		return 1
	}
	return cmp.Or(other.RequestedAt.Compare(d.RequestedAt), cmp.Compare(d.ID, other.ID))
}

func (d *Deletion) put(_ *draft, p *projectState) (Stored, error) { return p.deletions.put(d), nil }
func (d *Deletion) remove(_ *draft, p *projectState) Stored       { return p.deletions.remove(d.ID) }

// AddDeletions records that something is to be deleted, and returns the records in the order given. An unknown project is ErrNotFound.
func (r *Registry) AddDeletions(ctx context.Context, project int64, asked []Deletion, now time.Time) ([]*Deletion, error) {
	added := make([]*Deletion, len(asked))
	err := r.write(ctx, project, func(t *tx) error {
		before := t.next.Project(project)
		if before == nil {
			return fmt.Errorf("project %d: %w", project, ErrNotFound)
		}
		p := *before
		p.Epoch++
		if err := t.put(&p); err != nil {
			return err
		}
		for n := range asked {
			d := asked[n]
			d.ID, d.Project, d.RequestedAt = uuid.NewString(), project, moment(now)
			added[n] = &d
			if err := t.put(&d); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("recording a deletion: %w", err)
	}
	return added, nil
}

// HideDeletions records that deletions are no longer in any answer, with what else is known about them now. Runs no longer read the current tables of
// materialized endpoints, which are filled anew. Unknown deletions are skipped.
func (r *Registry) HideDeletions(ctx context.Context, project int64, hidden []*Deletion, now time.Time) error {
	err := r.changeDeletions(ctx, project, hidden, func(d, given *Deletion) {
		*d = *given
		d.HiddenAt = moment(now)
	}, func(t *tx, p *projectState) error { return t.refill(p, now) })
	if err != nil {
		return fmt.Errorf("recording that deletions are hidden: %w", err)
	}
	return nil
}

// RemoveDeletions removes the records of deletions that were refused: nothing of them is hidden yet.
func (r *Registry) RemoveDeletions(ctx context.Context, project int64, refused []*Deletion) error {
	err := r.write(ctx, project, func(t *tx) error {
		p, err := t.state()
		if err != nil {
			return err
		}
		for _, d := range refused {
			if known := p.deletions.get(d.ID); known != nil {
				t.remove(known)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("removing the record of a deletion that was refused: %w", err)
	}
	return nil
}

// EraseDeletions records that deletions are no longer on the disk, and forgets whose they were. Unknown deletions are skipped.
func (r *Registry) EraseDeletions(ctx context.Context, project int64, erased []*Deletion, now time.Time) error {
	err := r.changeDeletions(ctx, project, erased, func(d, _ *Deletion) {
		d.Names, d.ErasedAt = nil, moment(now)
	}, nil)
	if err != nil {
		return fmt.Errorf("recording that deletions are erased: %w", err)
	}
	return nil
}

// ForgetDeleted forgets the distinct ids of deletions that are about to be erased.
func (r *Registry) ForgetDeleted(ctx context.Context, project int64, deleted []*Deletion) error {
	err := r.changeDeletions(ctx, project, deleted, func(d, _ *Deletion) { d.Names = nil }, nil)
	if err != nil {
		return fmt.Errorf("forgetting whom deletions were of: %w", err)
	}
	return nil
}

// EraseRemoved makes removed and overwritten data leave the disk, if the store can do that. Other stores do it by themselves, sooner or later.
func (r *Registry) EraseRemoved(ctx context.Context) error {
	s, ok := r.store.(interface{ EraseRemoved(context.Context) error })
	if !ok {
		return nil
	}
	if err := s.EraseRemoved(ctx); err != nil {
		return fmt.Errorf("erasing what was removed: %w", err)
	}
	return nil
}

// changeDeletions changes those deletions that exist, and then calls then.
func (r *Registry) changeDeletions(
	ctx context.Context, project int64, given []*Deletion, change func(d, given *Deletion), then func(*tx, *projectState) error,
) error {
	return r.write(ctx, project, func(t *tx) error {
		p, err := t.state()
		if err != nil {
			return err
		}
		for _, g := range given {
			before := p.deletions.get(g.ID)
			if before == nil {
				continue
			}
			d := *before
			change(&d, g)
			if err := t.put(&d); err != nil {
				return err
			}
		}
		if then == nil {
			return nil
		}
		return then(t, p)
	})
}

// refill makes runs of the project stop reading the current tables of materialized endpoints.
func (t *tx) refill(p *projectState, now time.Time) error {
	for _, e := range valuesOf(p.endpoints.byID, func(e *endpointEntry) bool { return e.deleted.IsZero() }) {
		for i := range e.Versions {
			if e.Versions[i].Table == nil {
				continue
			}
			v := e.Versions[i]
			table := *v.Table
			table.refill(now)
			v.Table = &table
			if err := t.put(&versionRecord{Version: v, project: t.project, endpoint: e.ID}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Deletions returns the deletions of a project: first those that are not erased yet, and then the newest.
func (s *Snapshot) Deletions(project int64) []*Deletion {
	if p := s.project(project); p != nil {
		return valuesOf(p.deletions.list, nil)
	}
	return nil
}

// PendingDeletions returns the deletions of a project that are not erased yet. Its cost grows with their number.
func (s *Snapshot) PendingDeletions(project int64) []*Deletion {
	p := s.project(project)
	if p == nil {
		return nil
	}
	var pending []*Deletion
	for each := p.deletions.list.Iterator(); !each.Done(); {
		_, d, _ := each.Next()
		if !d.ErasedAt.IsZero() {
			break
		}
		pending = append(pending, d)
	}
	return pending
}

// deletions removes the records of deletions that were erased before the time of the purge.
func (u *purge) deletions() {
	for _, d := range valuesOf(u.p.deletions.byID, func(d *Deletion) bool { return u.due(d.ErasedAt) }) {
		u.remove(d)
		u.out.Deletions++
	}
}
