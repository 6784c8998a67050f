// Package references finds what in a project uses an action or a cohort: insights, dashboards, endpoints, cohorts, actions, and the filters against test
// accounts.
package references

import (
	"sync"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Type is the type of an object that uses an action or a cohort.
type Type string

// The types, in the order in which references are listed.
const (
	Insight      Type = "insight"
	Dashboard    Type = "dashboard"
	Endpoint     Type = "endpoint"
	Cohort       Type = "cohort"
	Action       Type = "action"
	TestAccounts Type = "test_account_filters"
)

// Reference is an object whose own definition uses an action or a cohort. Indirect uses are not listed: an insight with an action whose steps filter by a
// cohort uses the action, and the action uses the cohort.
type Reference struct {
	Type      Type
	ID        int64   // of all but endpoints; of the project for TestAccounts
	UUID      string  // of an endpoint
	Name      *string // nil for none
	Versions  []int   // the versions of an endpoint that use it and can run
	CreatedAt time.Time
	CreatedBy string // id of a key
}

// Uses holds the references to all actions and cohorts of a project. It is immutable.
type Uses struct{ actions, cohorts map[int64][]Reference }

// OfAction returns the references to an action.
func (u *Uses) OfAction(id int64) []Reference { return u.actions[id] }

// OfCohort returns the references to a cohort.
func (u *Uses) OfCohort(id int64) []Reference { return u.cohorts[id] }

// Index finds references. It caches what it has read, so that a write costs only reading again what was written. The zero value is ready to use. It is safe
// for concurrent use.
type Index struct{ projects sync.Map } // project id → *known

// Of returns the references of a project in a snapshot.
func (x *Index) Of(snap *registry.Snapshot, project int64) *Uses {
	k := x.known(project)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.update(snap, project)
	return k.found
}

// Forget drops what is known about a deleted project.
func (x *Index) Forget(project int64) { x.projects.Delete(project) }

func (x *Index) known(project int64) *known {
	entry, ok := x.projects.Load(project)
	if !ok {
		entry, _ = x.projects.LoadOrStore(project, new(known))
	}
	k, _ := entry.(*known)
	return k
}

// known is what the index knows about a project.
type known struct {
	mu     sync.Mutex
	serial uint64 // of the project's state that found describes
	found  *Uses
	reader *reader
}

// update finds the references in a snapshot, unless it has them already.
func (k *known) update(snap *registry.Snapshot, project int64) {
	if serial := snap.Serial(project); k.found == nil || k.serial != serial {
		k.reader = k.reader.next(snap, project)
		k.serial, k.found = serial, find(snap, project, k.reader)
	}
}
