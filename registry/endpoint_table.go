package registry

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// Table is the table in ClickHouse of a materialized version: it holds the result of the version's query, and is filled anew from time to time. Each fill makes
// a table of its own, which then replaces the one before. A Table is never changed, only replaced.
type Table struct {
	// ID is a UUID that stays the same while the version is materialized.
	ID string `json:"id"`
	// Buckets are the bucket lengths of columns with ranges, where they are not the default: column to length.
	Buckets map[string]string `json:"buckets,omitempty"`
	// Fill is the number of the fill that runs read; 0 for none.
	Fill int64 `json:"fill,omitempty"`
	// AsOf is when that fill began: the table may lack what came later.
	AsOf time.Time `json:"as_of,omitzero"`
	// Took is how long that fill took.
	Took time.Duration `json:"took,omitempty"`
	// Rows is how many rows that fill has.
	Rows int64 `json:"rows,omitempty"`
	// Of identifies the settings of a project, and the form of the table, that a fill depends on.
	Of string `json:"of,omitempty"`
	// Pending is the number of the fill that is awaited, or under way if Running is set; 0 for none.
	Pending int64 `json:"pending,omitempty"`
	Running bool  `json:"running,omitempty"`
	// Errors counts the failed fills since the last successful one, LastError says what was wrong with the last one, and LastErrorAt when that was.
	Errors      int       `json:"errors,omitempty"`
	LastError   string    `json:"last_error,omitempty"`
	LastErrorAt time.Time `json:"last_error_at,omitzero"`
}

// size returns the approximate size of its texts in bytes.
func (t *Table) size() int {
	if t == nil {
		return 0
	}
	size := len(t.LastError)
	for column, length := range t.Buckets {
		size += len(column) + len(length)
	}
	return size
}

// TableUpdate says whether to materialize a version.
type TableUpdate struct {
	// On says whether; nil: unchanged, and a new version is like the current one.
	On *bool
	// Buckets are as in Table; nil: unchanged, and a new version takes those of the current one.
	Buckets map[string]string
	// Impossible says that the query of the update can't be materialized: a new version is not, even if the current one is.
	Impossible bool
}

// of returns the table of a version after the update. before is its table so far or, for a new version, that of the current one.
func (u TableUpdate) of(before *Table, renewed bool, at time.Time) *Table {
	wanted := before != nil && (!renewed || !u.Impossible)
	if u.On != nil {
		wanted = *u.On
	}
	switch {
	case !wanted:
		return nil
	case before == nil || renewed:
		t := &Table{ID: newID(), Buckets: u.Buckets, Pending: nextFill(0, at)}
		if before != nil && t.Buckets == nil {
			t.Buckets = before.Buckets
		}
		return t
	case u.Buckets == nil || maps.Equal(u.Buckets, before.Buckets):
		return before
	}
	return &Table{ID: before.ID, Buckets: u.Buckets, Pending: nextFill(before.last(), at)}
}

// last returns the greatest known number of a fill.
func (t *Table) last() int64 { return max(t.Fill, t.Pending) }

// nextFill returns the number of a new fill. Numbers follow the clock, so that none is reused, even if a version was not materialized for a while.
func nextFill(last int64, at time.Time) int64 { return max(last+1, at.UnixMilli()) }

// refill makes runs stop reading the table, and asks for another fill, in place of one that is under way.
func (t *Table) refill(now time.Time) {
	t.Pending, t.Running = nextFill(t.last(), now), false
	t.Fill, t.Rows = 0, 0
}

// errNoTable says that a version has no table, or that its fill is another one.
var errNoTable = errors.New("the version is not materialized")

// BeginFill starts a new fill of the table of a version, and returns the table. A version that is not materialized, or whose endpoint is deleted, is
// ErrNotFound.
func (r *Registry) BeginFill(ctx context.Context, project int64, endpoint string, version int, now time.Time) (*Table, error) {
	return r.changeTable(ctx, project, endpoint, version, func(t *Table) error {
		t.Pending, t.Running = nextFill(t.last(), now), true
		return nil
	})
}

// SwapFill makes runs read a complete fill, and reports whether they do. They do not if the version is no longer materialized, or waits for another fill. done
// has what is known about the fill: AsOf, Took, Rows and Of.
func (r *Registry) SwapFill(ctx context.Context, project int64, endpoint string, version int, fill int64, done Table) (bool, error) {
	return r.settleFill(ctx, project, endpoint, version, fill, func(t *Table) {
		t.Fill, t.AsOf, t.Took, t.Rows, t.Of = fill, moment(done.AsOf), done.Took, done.Rows, done.Of
		t.Errors, t.LastError, t.LastErrorAt = 0, "", time.Time{}
	})
}

// FailFill records that a fill failed, and reports whether the version waited for it. Runs go on reading what they read before. The message is shown to users;
// it is cut to 1000 bytes.
func (r *Registry) FailFill(ctx context.Context, project int64, endpoint string, version int, fill int64, message string, now time.Time) (bool, error) {
	return r.settleFill(ctx, project, endpoint, version, fill, func(t *Table) {
		t.Errors++
		t.LastError, t.LastErrorAt = shortened(message), moment(now)
	})
}

// LoseFill records that the table of a fill is gone: if runs read that fill, they stop, and the version waits for another.
func (r *Registry) LoseFill(ctx context.Context, project int64, endpoint string, version int, fill int64, now time.Time) error {
	_, err := r.changeTable(ctx, project, endpoint, version, func(t *Table) error {
		if fill == 0 || t.Fill != fill {
			return errNoTable
		}
		t.refill(now)
		return nil
	})
	if errors.Is(err, errNoTable) || errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

func (r *Registry) settleFill(ctx context.Context, project int64, endpoint string, version int, fill int64, settle func(*Table)) (bool, error) {
	_, err := r.changeTable(ctx, project, endpoint, version, func(t *Table) error {
		if fill == 0 || t.Pending != fill {
			return errNoTable
		}
		t.Pending, t.Running = 0, false
		settle(t)
		return nil
	})
	if errors.Is(err, errNoTable) || errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// changeTable changes the table of a version. endpoint is an id.
func (r *Registry) changeTable(ctx context.Context, project int64, endpoint string, version int, change func(*Table) error) (*Table, error) {
	var changed *Table
	err := r.write(ctx, project, func(t *tx) error {
		p, err := t.state()
		if err != nil {
			return err
		}
		e := p.endpoints.get(endpoint)
		if e == nil || !e.deleted.IsZero() || e.Version(version) == nil || e.Version(version).Table == nil {
			return ErrNotFound
		}
		v := *e.Version(version)
		table := *v.Table
		if err := change(&table); err != nil {
			return err
		}
		v.Table, changed = &table, &table
		return t.put(&versionRecord{Version: v, project: project, endpoint: endpoint})
	})
	if err != nil {
		return nil, err
	}
	return changed, nil
}

// withoutTables removes the tables of all versions of an endpoint, and returns the numbers of the versions that had one.
func (e *Endpoint) withoutTables() (changed []int) {
	for i := range e.Versions {
		if v := &e.Versions[i]; v.Table != nil {
			v.Table, changed = nil, append(changed, v.Number)
		}
	}
	return changed
}

// Materialized is a version that is materialized.
type Materialized struct {
	*Endpoint
	*Version
}

// Materialized returns the versions of a project that are materialized.
func (s *Snapshot) Materialized(project int64) []Materialized {
	var all []Materialized
	for _, e := range s.Endpoints(project) {
		for i := range e.Versions {
			if e.Versions[i].Table != nil {
				all = append(all, Materialized{e, &e.Versions[i]})
			}
		}
	}
	return all
}

// KnowsEndpoint reports whether a project has, or had, an endpoint with an id. Endpoints that were deleted long ago are forgotten: see [Registry.Purge].
func (s *Snapshot) KnowsEndpoint(project int64, id string) bool {
	p := s.project(project)
	return p != nil && p.endpoints.get(id) != nil
}

// versionsWith returns the numbers in order, each once.
func versionsWith(numbers []int, more ...int) []int {
	all := append(slices.Clone(numbers), more...)
	slices.Sort(all)
	return slices.Compact(all)
}
