package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// unknownType is the type of a column that ClickHouse did not describe.
const unknownType = "unknown"

// EndpointUpdate is a change of an endpoint; nil fields stay. Description, freshness, columns, times and optional breakdowns belong to a version: the named
// one, else the current one, which is new if the query differs.
type EndpointUpdate struct {
	Version   int             // the version to change; 0: the endpoint and its current version
	Query     json.RawMessage // makes a new version if it differs from the current one's
	SameQuery func(current json.RawMessage) bool
	// Draft keeps a new version from becoming the current one. If the newest version is a draft with the same query, no version is made, and the other fields that
	// belong to a version go to that draft.
	Draft              bool
	Check              VersionCheck // asked before a new version becomes the current one; may be nil
	Description        *string
	FreshnessSeconds   *int
	Active             *bool // of the version if one is named, else of the endpoint
	Tags               *[]string
	RateLimit          *Rate // the zero Rate for the server's default
	Columns            []Column
	DeprecatedAt       *time.Time // the zero time removes it
	SunsetAt           *time.Time // likewise; not before DeprecatedAt
	OptionalBreakdowns *[]string
	// HasBreakdown reports whether the query has a breakdown. A new version keeps those optional breakdowns of the current version that it has; nil: none.
	HasBreakdown func(name string) bool
	// Table says whether the version is materialized. A draft is only if Table says so; a version or an endpoint that is switched off is not.
	Table TableUpdate
	By    string // id of the key that asks, which is CreatedBy of a new version
}

// VersionCheck examines a change of the current version before it is made. Its error refuses the change, and is returned as it is. It runs inside the write
// transaction, perhaps more than once, so it must not call the registry.
type VersionCheck func(from, to *Version) error

// UpdateEndpoint changes an endpoint (contract: api.md, sections 5.2 and 5.3). SameQuery decides whether the current query means the same as the given one;
// without it they are compared as JSON values. Mistakes are *FieldError; an unknown endpoint is ErrNotFound.
func (r *Registry) UpdateEndpoint(ctx context.Context, project int64, name string, u EndpointUpdate, now time.Time) (*Endpoint, error) {
	if err := u.validate(); err != nil {
		return nil, err
	}
	var e Endpoint
	err := r.write(ctx, project, func(t *tx) (err error) {
		e, err = t.updateEndpoint(name, u, moment(now))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("updating endpoint %q: %w", name, err)
	}
	return &e, nil
}

func (t *tx) updateEndpoint(name string, u EndpointUpdate, at time.Time) (Endpoint, error) {
	e, err := t.endpoint(name)
	if err != nil {
		return e, err
	}
	if u.Version != 0 && e.Version(u.Version) == nil {
		return e, unknownVersion(u.Version)
	}
	return e, u.apply(t, &e, at)
}

func unknownVersion(number int) *FieldError {
	return invalid("version", "Version %d not found", number)
}

func (u EndpointUpdate) validate() error {
	if u.Query != nil && u.Version != 0 {
		return invalid("query", "Cannot change query when targeting a specific version. Query changes create a new version.")
	}
	if u.Draft && u.Query == nil {
		return invalid("draft", "A draft needs a query.")
	}
	if u.Version < 0 {
		return unknownVersion(u.Version)
	}
	if u.Query != nil {
		if err := validateQuery(u.Query); err != nil {
			return err
		}
	}
	if u.Tags != nil {
		if err := validateTags(*u.Tags, MaxSmallRecord); err != nil {
			return err
		}
	}
	if u.OptionalBreakdowns != nil {
		size := listBytes(*u.OptionalBreakdowns)
		if err := checkSize("optional_breakdown_properties", "The list of optional breakdowns", size, MaxRecord); err != nil {
			return err
		}
	}
	if u.FreshnessSeconds != nil {
		return inRange("data_freshness_seconds", *u.FreshnessSeconds, MinFreshness, MaxFreshness)
	}
	return nil
}

// apply changes e, and puts it.
func (u EndpointUpdate) apply(t *tx, e *Endpoint, at time.Time) error {
	v, renewed := u.target(e, at)
	before := e.Current().Table
	if !renewed {
		before = v.Table
	} else if u.Draft {
		before = nil
	}
	if renewed {
		if err := checkSize("query", "This version of the endpoint", len(v.Query), MaxRecord); err != nil {
			return err
		}
	}
	if renewed && !u.Draft {
		if u.Check != nil {
			if err := u.Check(e.Current(), &v); err != nil {
				return err
			}
		}
		e.CurrentVersion, v.PublishedAt = v.Number, at
	}
	changed := u.change(&v)
	if err := validateEnd(v.DeprecatedAt, v.SunsetAt); err != nil {
		return err
	}
	if u.Active != nil && u.Version == 0 {
		e.Active = *u.Active
	}
	if u.Tags != nil {
		e.Tags = PlainTags(*u.Tags)
	}
	set(&e.RateLimit, u.RateLimit)
	e.UpdatedAt = at
	if v.Table = u.Table.of(before, renewed, at); !v.Active {
		v.Table = nil
	}
	if renewed || changed {
		v.UpdatedAt = at
	}
	var put []int
	switch {
	case renewed:
		e.Versions = append(slices.Clip(e.Versions), v)
		put = append(put, v.Number)
	case changed || v.Table != e.Versions[v.Number-1].Table:
		e.Versions[v.Number-1] = v
		put = append(put, v.Number)
	}
	if !e.Active {
		put = versionsWith(put, e.withoutTables()...)
	}
	return t.putEndpoint(*e, put...)
}

// target returns the version that the update changes, and whether it is a new one.
func (u EndpointUpdate) target(e *Endpoint, at time.Time) (v Version, renewed bool) {
	v = *e.Version(u.Version)
	if u.Draft {
		if newest := e.Versions[len(e.Versions)-1]; newest.Draft() && u.sameQuery(newest.Query) {
			return newest, false
		}
	} else if u.Query == nil || u.sameQuery(v.Query) {
		return v, false
	}
	return Version{
		ID:                 newID(),
		Number:             len(e.Versions) + 1,
		Query:              compact(u.Query),
		Description:        v.Description,
		FreshnessSeconds:   v.FreshnessSeconds,
		Active:             true,
		Columns:            slices.Clone(u.Columns),
		CreatedAt:          at,
		CreatedBy:          u.By,
		OptionalBreakdowns: u.kept(v.OptionalBreakdowns),
	}, true
}

// kept returns the optional breakdowns that a new version takes over.
func (u EndpointUpdate) kept(names []string) []string {
	if u.HasBreakdown == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !u.HasBreakdown(name) })
}

// withTypes returns columns with the known types of columns of the same query where they have none.
func withTypes(columns, known []Column) []Column {
	out := slices.Clone(columns)
	if len(known) != len(out) {
		return out
	}
	for i := range out {
		if c := &out[i]; c.ClickHouse == "" && c.Type == unknownType && known[i].Name == c.Name {
			*c = known[i]
		}
	}
	return out
}

// change changes the fields that belong to a version, and reports whether any is given.
func (u EndpointUpdate) change(v *Version) bool {
	set(&v.Description, u.Description)
	set(&v.FreshnessSeconds, u.FreshnessSeconds)
	if u.DeprecatedAt != nil {
		v.DeprecatedAt = moment(*u.DeprecatedAt)
	}
	if u.SunsetAt != nil {
		v.SunsetAt = moment(*u.SunsetAt)
	}
	if u.OptionalBreakdowns != nil {
		v.OptionalBreakdowns = once(*u.OptionalBreakdowns)
	}
	if u.Columns != nil {
		v.Columns = withTypes(u.Columns, v.Columns)
	}
	if u.Version != 0 {
		set(&v.Active, u.Active)
	}
	return u.Description != nil || u.FreshnessSeconds != nil || u.DeprecatedAt != nil || u.SunsetAt != nil || u.OptionalBreakdowns != nil ||
		u.Columns != nil || u.Active != nil && u.Version != 0
}

// set sets a value if one is given.
func set[T any](value, given *T) {
	if given != nil {
		*value = *given
	}
}

func (u EndpointUpdate) sameQuery(current json.RawMessage) bool {
	if u.SameQuery != nil {
		return u.SameQuery(current)
	}
	a, errA := DecodeJSON(current)
	b, errB := DecodeJSON(u.Query)
	return errA == nil && errB == nil && reflect.DeepEqual(a, b)
}

// Promote makes a version the current one: a draft, or an earlier current version (a rollback). If it is the current one already, nothing is written. check may
// be nil. An unknown or inactive version is a *FieldError; an unknown endpoint is ErrNotFound.
func (r *Registry) Promote(ctx context.Context, project int64, name string, version int, check VersionCheck, now time.Time) (*Endpoint, error) {
	var e Endpoint
	err := r.write(ctx, project, func(t *tx) (err error) {
		if e, err = t.endpoint(name); err != nil {
			return err
		}
		v := e.Version(version)
		switch {
		case version == 0 || v == nil:
			return unknownVersion(version)
		case !v.Active:
			return invalid("version", "Version %d is inactive and cannot become the current one.", version)
		case version == e.CurrentVersion:
			return nil
		}
		if check != nil {
			if err := check(e.Current(), v); err != nil {
				return err
			}
		}
		at := moment(now)
		e.CurrentVersion, e.UpdatedAt, v.PublishedAt, v.UpdatedAt = version, at, at, at
		return t.putEndpoint(e, version)
	})
	if err != nil {
		return nil, fmt.Errorf("promoting version %d of endpoint %q: %w", version, name, err)
	}
	return &e, nil
}
