package registry

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/benbjohnson/immutable"
)

// draft is the next snapshot in the making. What does not change stays shared with the one before.
type draft struct {
	next      *Snapshot
	own       map[int64]*ownParts
	sequences bool // next.sequences is the draft's own
	removals  bool // and next.removals
}

// ownParts are the parts of a project that the draft has copied already.
type ownParts struct {
	versions map[string]*endpointEntry // endpoints whose versions are the draft's own, by id
	tiles    map[int64]*Dashboard      // dashboards whose tiles are the draft's own
}

func newDraft(from *Snapshot) *draft {
	next := *from
	if next.projects == nil {
		next.projects, next.keys = immutable.NewMap[int64, *projectState](projectHasher{}), immutable.NewMap[[32]byte, *keyEntry](hashHasher{})
		next.endpoints = immutable.NewMap[endpointKey, *endpointEntry](endpointHasher{})
		next.captureTokens = immutable.NewMap[string, int64](textHasher{})
	}
	return &draft{next: &next, own: make(map[int64]*ownParts)}
}

// project returns the draft's own state of a project, nil if there is no such project.
func (d *draft) project(id int64) *projectState {
	p := d.next.project(id)
	if p == nil || d.own[id] != nil {
		return p
	}
	copied := *p
	d.add(id, &copied)
	return &copied
}

// add makes p the draft's own state of a project.
func (d *draft) add(id int64, p *projectState) {
	d.own[id] = &ownParts{versions: make(map[string]*endpointEntry), tiles: make(map[int64]*Dashboard)}
	d.next.projects = d.next.projects.Set(id, p)
}

func (d *draft) ownSequences() map[Kind]int64 {
	if !d.sequences {
		d.sequences = true
		d.next.sequences = maps.Clone(d.next.sequences)
		if d.next.sequences == nil {
			d.next.sequences = make(map[Kind]int64)
		}
	}
	return d.next.sequences
}

// ownRemovals returns the removals of the draft, which are copied once: a registry may have thousands.
func (d *draft) ownRemovals() map[int64]*Removal {
	if !d.removals {
		d.removals = true
		d.next.removals = maps.Clone(d.next.removals)
		if d.next.removals == nil {
			d.next.removals = make(map[int64]*Removal)
		}
	}
	return d.next.removals
}

// keepNumbers keeps numbers that were used before the store was set back from being used again: what has these numbers elsewhere, such as rows in ClickHouse, was
// not set back.
func (d *draft) keepNumbers(before *Snapshot) {
	for kind, last := range before.sequences {
		d.reserve(kind, last)
	}
	for _, p := range before.Projects() {
		if now := d.next.project(p.ID); now != nil {
			if last := before.project(p.ID).lastCohort(); last > now.lastCohort() {
				d.reserve(KindCohort, last)
			}
		}
	}
}

// reserve keeps the numbers of a kind up to last from being used for new ones. Numbers that are reserved stay so.
func (d *draft) reserve(kind Kind, last int64) {
	if last > d.next.sequences[kind] {
		d.ownSequences()[kind] = last
	}
}

// put shows an entity in place of the one with the same name. It ignores entities of a project that does not exist.
func (d *draft) put(e entity) error {
	name := e.name()
	p := d.project(name.project)
	if p == nil && name.project != 0 {
		if name.kind != KindProject {
			return nil
		}
		p = newProjectState()
		d.add(name.project, p)
	}
	was, err := e.put(d, p)
	if err != nil || p == nil {
		return err
	}
	p.usage.count(name.kind, was, Stored{1, int64(e.size())})
	return nil
}

// remove takes out the entity with the name of e.
func (d *draft) remove(e entity) {
	name := e.name()
	p := d.project(name.project)
	if p == nil && name.project != 0 {
		return
	}
	was := e.remove(d, p)
	if p != nil {
		p.usage.count(name.kind, was, Stored{})
	}
}

// load shows the records that a store returned. It returns the projects that can't be used, and leaves them out.
func (d *draft) load(records []Record) map[int64]error {
	broken := make(map[int64]error)
	slices.SortStableFunc(records, func(a, b Record) int { return cmp.Compare(turn(&a), turn(&b)) })
	for i := range records {
		rec := &records[i]
		rank, known := ranks[rec.Kind]
		if !known || broken[rec.Project] != nil {
			continue
		}
		e, err := kinds[rank].entity(rec)
		switch {
		case err != nil:
		case rec.Data == nil:
			d.remove(e)
		default:
			err = d.put(e)
		}
		if err != nil {
			broken[rec.Project] = err
			d.leaveOut(rec.Project)
		}
	}
	for id := range d.own {
		if err := d.next.project(id).check(d.own[id]); err != nil {
			broken[id] = err
			d.leaveOut(id)
		}
	}
	d.next.broken = maps.Clone(d.next.broken)
	for id := range broken {
		if d.next.broken == nil {
			d.next.broken = make(map[int64]bool)
		}
		d.next.broken[id] = true
	}
	return broken
}

// turn orders the records to load: removed ones come first, parts before what they are parts of; then come the others, in the opposite order. A kind that only
// a newer version of the program knows can come at any time.
func turn(rec *Record) int {
	if rec.Data == nil {
		return -1 - ranks[rec.Kind]
	}
	return ranks[rec.Kind]
}

// leaveOut takes a project out, with its keys and its endpoints.
func (d *draft) leaveOut(id int64) {
	if p := d.next.project(id); p != nil {
		for _, e := range valuesOf(p.keys.byID, nil) {
			d.next.keys = d.next.keys.Delete(e.Hash)
		}
		for _, e := range valuesOf(p.endpoints.list, nil) {
			d.next.endpoints = d.next.endpoints.Delete(endpointKey{id, e.Name})
		}
		for _, c := range p.captureTokens {
			d.next.captureTokens = d.next.captureTokens.Delete(c.Token)
		}
		d.next.projects = d.next.projects.Delete(id)
	}
	delete(d.own, id)
}

// check returns an error if a project can't be used.
func (p *projectState) check(own *ownParts) error {
	for _, e := range own.versions {
		if e.CurrentVersion < 1 || e.CurrentVersion > len(e.Versions) {
			return fmt.Errorf("endpoint %s is at version %d and has %d", e.ID, e.CurrentVersion, len(e.Versions))
		}
		for i := range e.Versions {
			if e.Versions[i].Number != i+1 {
				return fmt.Errorf("endpoint %s lacks version %d", e.ID, i+1)
			}
		}
	}
	return nil
}

// finish returns the snapshot; the draft can't be used again.
func (d *draft) finish(revision uint64) *Snapshot {
	d.next.Revision = revision
	for id := range d.own {
		if p := d.next.project(id); p != nil {
			p.serial = serials.Add(1)
		}
	}
	return d.next
}
