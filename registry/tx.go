package registry

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"
)

// tx is a write in the making. It reads the snapshot and what it has put itself; the store accepts it only if nothing that it depends on was written in
// between.
type tx struct {
	*draft

	project int64 // must be unchanged since, and is held to its limits; 0 for none
	before  Usage
	write   Write
	changed map[recordName]int // positions in puts
	puts    []change
}

// change is an entity that is put or removed.
type change struct {
	entity
	removed bool
}

func newTx(from *Snapshot, project int64) *tx {
	t := &tx{draft: newDraft(from), project: project, changed: make(map[recordName]int)}
	if p := from.project(project); p != nil {
		t.before = p.usage
	}
	if project != 0 {
		t.expect(project)
	}
	return t
}

// expect makes the write depend on all of a project.
func (t *tx) expect(project int64) {
	t.write.Expect = append(t.write.Expect, Expectation{Project: project, Revision: t.next.Revision, Mark: t.next.mark})
}

// state returns the state of the project. If there is no such project, the error is ErrNotFound.
func (t *tx) state() (*projectState, error) {
	if p := t.draft.project(t.project); p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("project %d: %w", t.project, ErrNotFound)
}

// put adds or changes an entity. One that is too large is a *FieldError.
func (t *tx) put(e entity) error {
	if err := e.checkSize(); err != nil {
		return err
	}
	if err := t.draft.put(e); err != nil {
		panic("BUG: what was just checked can't be used: " + err.Error())
	}
	t.note(e, false)
	return nil
}

// remove removes an entity for good.
func (t *tx) remove(e entity) {
	t.draft.remove(e)
	t.note(e, true)
}

func (t *tx) note(e entity, removed bool) {
	name := e.name()
	if at, ok := t.changed[name]; ok {
		t.puts[at] = change{e, removed}
		return
	}
	t.changed[name] = len(t.puts)
	t.puts = append(t.puts, change{e, removed})
	if name.project != t.project || t.project == 0 {
		t.write.Expect = append(t.write.Expect, Expectation{Project: name.project, Kind: name.kind, ID: name.id, One: true, Revision: t.next.Revision, Mark: t.next.mark})
	}
}

// number returns the next number of a kind, over all projects.
func (t *tx) number(kind Kind) int64 {
	n := t.next.sequences[kind] + 1
	_ = t.put(&sequence{kind, n}) // it has no size to check
	return n
}

// empty reports whether there is nothing to write.
func (t *tx) empty() bool { return len(t.puts)+len(t.write.Append)+len(t.write.Forget) == 0 }

// finished returns what the store is to write.
func (t *tx) finished() *Write {
	t.write.Put = make([]Record, len(t.puts))
	for i, c := range t.puts {
		name := c.name()
		if t.write.Put[i] = (Record{Project: name.project, Kind: name.kind, ID: name.id}); !c.removed {
			t.write.Put[i] = kinds[ranks[name.kind]].record(c.entity)
		}
	}
	return &t.write
}

// writeTries is how often a write is tried while others come first: each time, another write has succeeded.
const writeTries = 1000

// write persists what do does to a project, and then shows it. Nothing is shown that isn't persisted. The project is held to its limits; 0 means a write that
// adds nothing to any project. do may run more than once: its errors count only if it has seen the latest snapshot.
func (r *Registry) write(ctx context.Context, project int64, do func(*tx) error) error {
	if err := r.wait(ctx); err != nil {
		return err
	}
	defer r.next()
	for tries := 1; ; tries++ {
		now := r.Snapshot()
		t := newTx(now, project)
		err := do(t)
		if err == nil {
			err = r.limits.Load().check(t)
		}
		if err == nil && !t.empty() {
			var revision uint64
			w := t.finished()
			if revision, err = r.store.Write(ctx, w); err == nil {
				r.show(ctx, t.draft, now, revision, w.Mark)
				return nil
			}
			if _, taken := errors.AsType[*ConflictError](err); !taken && !errors.Is(err, ErrStale) {
				return err
			}
		}
		switch later, behind := r.catchUp(ctx); {
		case behind != nil:
			return behind
		case !later || tries == writeTries:
			return err
		}
	}
}

// show shows what was written on top of the snapshot now.
func (r *Registry) show(ctx context.Context, d *draft, now *Snapshot, revision uint64, mark int64) {
	switch revision {
	case 0: // only logs
		return
	case now.Revision + 1:
		d.next.mark = mark
		r.snapshot.Store(d.finish(revision))
		return
	}
	// Others wrote in between. Our own change must show at once, even if theirs can't be read.
	r.snapshot.Store(d.finish(now.Revision))
	if err := r.reload(ctx); err != nil {
		r.log.Warn("reading what another process wrote; trying again with the next poll", zap.Error(err))
	}
}
