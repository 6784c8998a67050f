// Package registry keeps who may ask what: projects, keys, endpoints with their versions, insight variables, saved insights,
// dashboards, property definitions, group types and the names of cohorts.
//
//	requests ─▶ Snapshot (memory, immutable)      no lock, no I/O, no allocation
//	writes   ─▶ Registry ─▶ Store (one transaction) ─▶ next Snapshot
//	other processes' writes ─▶ Store.Revision, asked every second ─▶ next Snapshot
//	the activity log, views of insights ─▶ Store: they grow, and no query depends on them
//
// A Store only persists; what is allowed is decided here. Mistakes of the caller are *FieldError, in the words of
// contract api.md; ErrNotFound says that the thing to change is not there; any other error is an outage.
package registry
