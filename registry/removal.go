package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"
)

// Removal is a project that was deleted, with the state of its data. It is kept, so that nobody has to ask what the number was.
type Removal struct {
	Project int64 `json:"-"`
	// Records is how many records the project had, by kind.
	Records map[Kind]int `json:"records"`
	// Shard is the shard of its rows, as in [Project].
	Shard string `json:"shard,omitempty"`

	RequestedAt time.Time `json:"requested_at"`
	// RemovedAt is when ClickHouse no longer returned any row of the project, and ErasedAt when nothing of it was on the disk any more; zero until then.
	RemovedAt time.Time `json:"removed_at,omitzero"`
	ErasedAt  time.Time `json:"erased_at,omitzero"`
	// Checked says that its rows were looked for once more, after everything in progress had ended.
	Checked bool `json:"checked,omitempty"`
}

// removalHistory is the history of removal records. The step changes nothing. It keeps out versions that know no shards: they would look for the rows on the
// main one, note that nothing is left, and drop the field.
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
	d.ownRemovals()[m.Project] = m
	return Stored{}, nil
}

func (m *Removal) remove(d *draft, _ *projectState) Stored {
	delete(d.ownRemovals(), m.Project)
	return Stored{}
}

// Removal returns what is known about a deleted project; nil for none.
func (s *Snapshot) Removal(project int64) *Removal { return s.removals[project] }

// ShardOf returns the name of the shard of a project, even of a deleted one; see [Project].
func (s *Snapshot) ShardOf(project int64) string {
	if p := s.Project(project); p != nil {
		return p.Shard
	}
	if gone := s.removals[project]; gone != nil {
		return gone.Shard
	}
	return ""
}

// Removals returns the deleted projects, by number.
func (s *Snapshot) Removals() []*Removal {
	return slices.SortedFunc(maps.Values(s.removals), func(a, b *Removal) int { return int(a.Project - b.Project) })
}

// DeleteProject deletes a project with all of its records, in one write: its keys and tokens stop working. Its number is not reused. The name must be the
// project's, else nothing changes and the error is a *FieldError. An unknown project is ErrNotFound.
func (r *Registry) DeleteProject(ctx context.Context, id int64, name string, now time.Time) (*Removal, error) {
	removal, err := r.deleteProject(ctx, id, name, now)
	if err != nil {
		return nil, fmt.Errorf("deleting project %d: %w", id, err)
	}
	return removal, nil
}

func (r *Registry) deleteProject(ctx context.Context, id int64, name string, now time.Time) (*Removal, error) {
	if err := r.Refresh(ctx); err != nil {
		return nil, err
	}
	if _, err := deletable(r.Snapshot(), id, name); err != nil {
		return nil, err
	}
	// The store has records that no snapshot shows. Other writes go on while all are read.
	records := projectRecords{project: id}
	if err := records.read(ctx, r.store); err != nil {
		return nil, err
	}
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	defer r.next()
	for tries := 1; ; tries++ {
		removal, err := r.tryDeletion(ctx, &records, name, now)
		if !errors.Is(err, ErrStale) || tries == writeTries {
			return removal, err
		}
	}
}

// deletable returns the project with a number, if it has the name.
func deletable(snap *Snapshot, id int64, name string) (*Project, error) {
	switch p := snap.Project(id); {
	case p == nil:
		return nil, ErrNotFound
	case p.Name != name:
		return nil, invalid("confirm", "Project %d has another name.", id)
	default:
		return p, nil
	}
}

// projectRecords are the names of all records that a project has at a revision of the store.
type projectRecords struct {
	project  int64
	revision uint64
	mark     int64 // of revision
	names    map[recordName]struct{}
}

// read brings the names up to date with the store.
func (p *projectRecords) read(ctx context.Context, s Store) error {
	changes, err := s.Load(ctx, p.revision)
	if err == nil && !changes.Whole && changes.SinceMark != p.mark { // the store was set back since
		changes, err = s.Load(ctx, 0)
	}
	if err != nil {
		return err
	}
	if changes.Whole {
		p.names = make(map[recordName]struct{})
	}
	for _, rec := range changes.Records {
		name := recordName{rec.Project, rec.Kind, rec.ID}
		switch {
		case rec.Project != p.project:
		case rec.Data == nil:
			delete(p.names, name)
		default:
			p.names[name] = struct{}{}
		}
	}
	p.revision, p.mark = changes.Revision, changes.Mark
	return nil
}

// tryDeletion tries once to delete a project. The caller has the turn.
func (r *Registry) tryDeletion(ctx context.Context, records *projectRecords, name string, now time.Time) (*Removal, error) {
	if _, err := r.catchUp(ctx); err != nil {
		return nil, err
	}
	snap, id := r.Snapshot(), records.project
	p, err := deletable(snap, id, name)
	if err != nil {
		return nil, err
	}
	if err := records.read(ctx, r.store); err != nil {
		return nil, err
	}
	removal := &Removal{Project: id, Records: map[Kind]int{}, Shard: p.Shard, RequestedAt: moment(now)}
	write := &Write{Expect: []Expectation{{Project: id, Revision: snap.Revision, Mark: snap.mark}}, Forget: []Forgotten{forgetUsesIn(id)}}
	for name := range records.names {
		removal.Records[name.kind]++
		write.Put = append(write.Put, Record{Project: id, Kind: name.kind, ID: name.id})
	}
	write.Put = append(write.Put, kinds[ranks[kindRemoval]].record(removal))
	revision, err := r.store.Write(ctx, write)
	if err != nil {
		return nil, err
	}
	// It has happened, whether or not the store can be read now.
	d := newDraft(snap)
	for project, err := range d.load(write.Put) {
		r.log.Error("leaving out a project", zap.Int64("project", project), zap.Error(err))
	}
	r.show(ctx, d, snap, revision, write.Mark)
	return removal, nil
}

// NoteRemoval changes what is known about a deleted project.
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

// ForgetProject makes the store forget the logs of a deleted project, and the names of its records. A store that can't do that keeps the names, like those of
// all removed records, until it forgets them by itself.
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
