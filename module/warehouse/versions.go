package warehouse

import (
	"context"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Versions are the versions of all data at the end of a process, from which the next one can continue. They can be encoded.
type Versions struct {
	// Marks change when the tables of the embedded engine are written to. They are empty for a ClickHouse that others write to, whose data each probe
	// looks at afresh.
	Marks string

	Last, All, Others uint64
	Projects          map[int64]ProjectVersions
}

// ProjectVersions are the versions of one project's data.
type ProjectVersions struct {
	First                        uint64
	Events, Overrides, Creations []Epoch
	Tables                       map[string]uint64
}

// Versions returns the versions of all data, after the last write of this process. ok is false while the outcome of a change is in doubt.
func (w *Warehouse) Versions(ctx context.Context) (v *Versions, ok bool, err error) {
	if v = w.changes.save(); v == nil {
		return nil, false, nil
	}
	v.Marks, err = w.marks(ctx)
	return v, err == nil, err
}

// Resume continues with the versions of an earlier process, before the first write of this one. It reports false if there was such a write, or if the
// data have changed since: then earlier versions are unknown.
func (w *Warehouse) Resume(ctx context.Context, v *Versions) (bool, error) {
	marks, err := w.marks(ctx)
	if err != nil || marks != v.Marks {
		return false, err
	}
	return w.changes.resume(v), nil
}

// marks returns the marks of the tables; empty if others write to them.
func (w *Warehouse) marks(ctx context.Context) (string, error) {
	if !w.ingest.Alone {
		return "", nil
	}
	return w.client.Marks(ctx, physical.WithoutLogs())
}

// save returns all versions; nil while a change of all projects is in progress or in doubt. Projects that have such a change are treated like those
// without a history.
func (c *changes) save() *Versions {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) > 0 {
		return nil
	}
	v := &Versions{All: c.all, Others: c.others, Projects: make(map[int64]ProjectVersions, len(c.projects))}
	for project, h := range c.projects {
		if len(h.open) > 0 {
			v.Others = c.next() // greater than all that it has had
			continue
		}
		v.Projects[project] = ProjectVersions{First: h.first, Events: h.events, Overrides: h.overrides, Creations: h.creations, Tables: h.tables} // immutable
	}
	v.Last = c.last
	return v
}

// resume takes over versions. It reports false if anything has changed before.
func (c *changes) resume(v *Versions) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.projects)+len(c.open) > 0 || c.all != c.others || c.last != c.all {
		return false
	}
	c.last, c.all, c.others = max(c.last, v.Last), v.All, v.Others
	for project, one := range v.Projects {
		c.projects[project] = &history{first: one.First, events: one.Events, overrides: one.Overrides, creations: one.Creations, tables: one.Tables}
	}
	return true
}
