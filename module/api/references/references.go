// Package references finds what of a project uses an action or a cohort: insights, dashboards, endpoints, cohorts, actions, and the
// filters against test accounts.
package references

import (
	"sync"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Type is the type of what uses an action or a cohort.
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

// Reference is one thing that uses an action or a cohort in its own definition. What uses it through something else is not listed: an
// insight of an action whose steps ask for a cohort uses the action, and the action uses the cohort.
type Reference struct {
	Type      Type
	ID        int64   // of all but endpoints; of the project for TestAccounts
	UUID      string  // of an endpoint
	Name      *string // nil for none
	Versions  []int   // those of an endpoint that do and can be run
	CreatedAt time.Time
	CreatedBy string // id of a key
}

// Uses are the references to all actions and cohorts of a project. They never change.
type Uses struct{ actions, cohorts map[int64][]Reference }

// OfAction returns what uses an action.
func (u *Uses) OfAction(id int64) []Reference { return u.actions[id] }

// OfCohort returns what uses a cohort.
func (u *Uses) OfCohort(id int64) []Reference { return u.cohorts[id] }

// Index finds references, and remembers what it has read: a write costs reading again what was written. The zero value is ready. It is
// safe for concurrent use.
type Index struct{ projects sync.Map } // project id → *known

// Of returns the references of a project as a snapshot shows it.
func (x *Index) Of(snap *registry.Snapshot, project int64) *Uses {
	k := x.known(project)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.update(snap, project)
	return k.found
}

func (x *Index) known(project int64) *known {
	entry, ok := x.projects.Load(project)
	if !ok {
		entry, _ = x.projects.LoadOrStore(project, new(known))
	}
	k, _ := entry.(*known)
	return k
}

// known is what is known of a project.
type known struct {
	mu     sync.Mutex
	serial uint64 // of the project's state that found shows
	found  *Uses
	reader *reader
}

// update finds the references of a snapshot, unless it did so before.
func (k *known) update(snap *registry.Snapshot, project int64) {
	if serial := snap.Serial(project); k.found == nil || k.serial != serial {
		k.reader = k.reader.next(snap, project)
		k.serial, k.found = serial, find(snap, project, k.reader)
	}
}
