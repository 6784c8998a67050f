// Package registry keeps what the server serves and to whom: projects, keys and capture tokens; endpoints with their versions, and insight variables;
// saved insights, dashboards, alerts and annotations; actions, and cohorts with their filters and the versions of their members; definitions of
// events, properties and group types; and deletions of people. The members of cohorts are in ClickHouse.
//
//	requests ─▶ Snapshot (memory, immutable)      no lock, no I/O, no allocation
//	writes   ─▶ tx (the snapshot, and what it puts) ─▶ Store.Write, if nothing came in between ─▶ next Snapshot
//	other processes' writes ─▶ Store.Watch, and Store.Revision every half second ─▶ Store.Load of what changed ─▶ next Snapshot
//	the activity log, views of insights ─▶ logs of the Store: they grow, and no query depends on them
//
// A Store keeps records of JSON and does not interpret them. An entity is one file here, with its fields, its checks and its
// place in the snapshot, and one row in kinds; what is allowed is decided here. Mistakes of the caller are *FieldError, in the words of
// contract api.md; ErrNotFound means that the thing to change does not exist; any other error is an outage.
package registry
