package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Removal is a project that was deleted, with what became of its data. It stays, so that nobody has to ask what the number was.
type Removal struct {
	Project int64 `json:"-"`
	// Records is how many records the project had, by kind.
	Records map[Kind]int `json:"records"`
	// Shard is where its rows were, as in [Project].
	Shard string `json:"shard,omitempty"`

	RequestedAt time.Time `json:"requested_at"`
	// RemovedAt is from when on ClickHouse gave no row of the project, and ErasedAt from when on nothing of it was on the disk; zero until
	// then.
	RemovedAt time.Time `json:"removed_at,omitzero"`
	ErasedAt  time.Time `json:"erased_at,omitzero"`
	// Checked says that it was looked for rows once more, when all that was under way had ended.
	Checked bool `json:"checked,omitempty"`
}

// removalHistory is what became of the records of removals. The step changes nothing. It is there for versions that know of no shards: they
// would look for the rows on the main one, note that nothing is left, and drop the field.
var removalHistory = []upgrade{unchanged}

func readRemoval(rec *Record) (entity, error) {
	project, err := number(rec)
	if err != nil {
		return nil, err
	}
	r := &Removal{Project: project}
	return r, decode(rec, r)
}

func (m *Removal) name() recordName { return recordName{kind: kindRemoval, id: digits(m.Project)} }
func (m *Removal) unique() []string { return nil }
func (m *Removal) size() int        { return 0 }
func (m *Removal) checkSize() error { return nil }

func (m *Removal) put(d *draft, _ *projectState) (Stored, error) {
	next := maps.Clone(d.next.removals)
	if next == nil {
		next = map[int64]*Removal{}
	}
	next[m.Project] = m
	d.next.removals = next
	return Stored{}, nil
}

func (m *Removal) remove(d *draft, _ *projectState) Stored {
	d.next.removals = maps.Clone(d.next.removals)
	delete(d.next.removals, m.Project)
	return Stored{}
}

// Removal returns what is known of a project that was deleted; nil for none.
func (s *Snapshot) Removal(project int64) *Removal { return s.removals[project] }

// ShardOf is the name of the shard of a project, also of one that was deleted; see [Project].
func (s *Snapshot) ShardOf(project int64) string {
	if p := s.Project(project); p != nil {
		return p.Shard
	}
	if gone := s.removals[project]; gone != nil {
		return gone.Shard
	}
	return ""
}

// Removals are the projects that were deleted, by number.
func (s *Snapshot) Removals() []*Removal {
	return slices.SortedFunc(maps.Values(s.removals), func(a, b *Removal) int { return int(a.Project - b.Project) })
}

// DeleteProject deletes a project with all of its records, in one write: its keys and tokens are worth nothing from then on. Its number is
// not given again. The name has to be that of the project, else nothing changes and the error is a *FieldError. An unknown project is
// ErrNotFound.
func (r *Registry) DeleteProject(ctx context.Context, id int64, name string, now time.Time) (*Removal, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for tries := 1; ; tries++ {
		removal, err := r.deleteProject(ctx, id, name, now)
		if err == nil {
			return removal, nil
		}
		if !errors.Is(err, ErrStale) || tries == writeTries {
			return nil, fmt.Errorf("deleting project %d: %w", id, err)
		}
	}
}

// deleteProject tries it once. The caller holds mu.
func (r *Registry) deleteProject(ctx context.Context, id int64, name string, now time.Time) (*Removal, error) {
	if r.closed {
		return nil, ErrClosed
	}
	if _, err := r.catchUp(ctx); err != nil {
		return nil, err
	}
	snap := r.Snapshot()
	switch p := snap.Project(id); {
	case p == nil:
		return nil, ErrNotFound
	case p.Name != name:
		return nil, invalid("confirm", "The name of project %d is another one.", id)
	}
	all, err := r.store.Load(ctx, 0)
	if err != nil {
		return nil, err
	}
	removal := &Removal{Project: id, Records: map[Kind]int{}, Shard: snap.Project(id).Shard, RequestedAt: moment(now)}
	write := &Write{Expect: []Expectation{{Project: id, Revision: snap.Revision}}, Forget: []Forgotten{forgetUsesIn(id)}}
	for _, rec := range all.Records {
		if rec.Project != id || rec.Data == nil {
			continue
		}
		removal.Records[rec.Kind]++
		write.Put = append(write.Put, Record{Project: id, Kind: rec.Kind, ID: rec.ID})
	}
	write.Put = append(write.Put, kinds[ranks[kindRemoval]].record(removal))
	if _, err := r.store.Write(ctx, write); err != nil {
		return nil, err
	}
	return removal, r.reload(ctx)
}

// NoteRemoval changes what is known of a project that was deleted.
func (r *Registry) NoteRemoval(ctx context.Context, project int64, change func(*Removal)) error {
	err := r.write(ctx, 0, func(t *tx) error {
		before := t.next.Removal(project)
		if before == nil {
			return ErrNotFound
		}
		next := *before
		change(&next)
		next.RemovedAt, next.ErasedAt = moment(next.RemovedAt), moment(next.ErasedAt)
		return t.put(&next)
	})
	if err != nil {
		return fmt.Errorf("noting what became of project %d: %w", project, err)
	}
	return nil
}

// ForgetProject has the store forget the logs of a project that was deleted, and the names of its records. A store that can't keeps
// these names, as it does with all that is removed, until it forgets them by itself.
func (r *Registry) ForgetProject(ctx context.Context, project int64) error {
	// Another process may have written some after the project was deleted.
	if _, err := r.store.Write(ctx, &Write{Forget: []Forgotten{forgetUsesIn(project)}}); err != nil {
		return fmt.Errorf("forgetting the uses in project %d: %w", project, err)
	}
	s, ok := r.store.(interface {
		ForgetProject(ctx context.Context, project int64) error
	})
	if !ok {
		return nil
	}
	return s.ForgetProject(ctx, project)
}
