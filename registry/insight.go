package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Insight is a saved query (contract: api.md, section 4.3).
type Insight struct {
	ID          int64  // from 1, over all projects
	ShortID     string // 8 letters and digits, with a letter among them; unique in its project
	Project     int64
	Name        *string // nil: none was given
	DerivedName *string
	Description *string
	Query       json.RawMessage // nil: none
	// NeedsQueryScope says that a key without query:read saved the query. It then runs for keys that have that scope alone.
	NeedsQueryScope bool
	Filters         json.RawMessage // an object of the peer's older form; kept, never run
	Order           *int
	Deleted         bool
	Favorited       bool
	Saved           bool
	Tags            []string
	CreatedAt       time.Time
	UpdatedAt       time.Time
	// LastModifiedAt moves when the name, the description or the filters are written.
	LastModifiedAt time.Time
	CreatedBy      string // id of a key
	LastModifiedBy string // id of a key
}

// Title is what an insight is called in its activity log: its name, else its derived name, else nothing.
func (i *Insight) Title() string {
	for _, name := range []*string{i.Name, i.DerivedName} {
		if name != nil && *name != "" {
			return *name
		}
	}
	return ""
}

// Field is one field of an update: a value, or nothing said of it.
type Field[T any] struct {
	Value T
	Given bool
}

// To is a field that is to become v.
func To[T any](v T) Field[T] { return Field[T]{Value: v, Given: true} }

// or is the field's value, what it was before when none is given.
func (f Field[T]) or(before T) T {
	if f.Given {
		return f.Value
	}
	return before
}

// InsightFields says what of an insight is to be; what is not given stays, or is the default of a new one.
type InsightFields struct {
	Name, DerivedName, Description Field[*string]         // at most 400 characters
	Query                          Field[json.RawMessage] // nil, or a JSON object that the caller has checked
	NoQueryScope                   bool                   // who gives the query has no scope query:read
	Filters                        Field[json.RawMessage] // a JSON object
	Order                          Field[*int]
	Deleted                        Field[bool]
	Favorited                      Field[bool]
	Saved                          Field[bool] // true unless given, in an update too
	Tags                           Field[[]string]
	Dashboards                     Field[[]int64] // the numbers of those that it is on
}

const (
	maxInsightText = 400
	shortIDLength  = 8
	// shortIDTries is how often another short id is made when one is taken.
	shortIDTries = 8
)

// CreateInsight adds an insight, and a view of it by its author. Mistakes are *FieldError; an unknown project is ErrNotFound.
func (r *Registry) CreateInsight(ctx context.Context, project int64, f InsightFields, by string, now time.Time) (*Insight, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	at := moment(now)
	created := Insight{
		Project: project, Filters: json.RawMessage(`{}`), Saved: true, Tags: []string{},
		CreatedAt: at, LastModifiedAt: at, CreatedBy: by, LastModifiedBy: by,
	}
	f.apply(&created, at)
	for tries := 1; ; tries++ {
		created.ShortID = newShortID()
		err := r.insertInsight(ctx, &created, &f, at)
		if taken, ok := errors.AsType[*ConflictError](err); ok && taken.Field == ConflictShortID && tries < shortIDTries {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("creating an insight: %w", err)
		}
		return &created, nil
	}
}

// insertInsight adds an insight under its short id, which may be taken.
func (r *Registry) insertInsight(ctx context.Context, i *Insight, f *InsightFields, at time.Time) error {
	var changed []Dashboard
	return r.write(ctx, i.Project, func(tx Tx) (err error) {
		if _, err := tx.Project(ctx, i.Project); err != nil {
			return fmt.Errorf("project %d: %w", i.Project, err)
		}
		if i.ID, err = tx.InsertInsight(ctx, *i); err != nil {
			return err
		}
		if err := tx.RecordViews(ctx, i.Project, i.CreatedBy, []int64{i.ID}, at); err != nil {
			return err
		}
		if changed, err = f.place(ctx, tx, i, at); err != nil {
			return err
		}
		return logInsight(ctx, tx, ActivityCreated, i, nil, i.CreatedBy, at)
	}, func(d *draft) { d.putInsight(*i); d.putDashboards(changed) })
}

// newShortID returns 8 random letters and digits. One of digits alone could be taken for a number, so there is none.
func newShortID() string {
	for {
		text := randomText(2 * shortIDLength) // many more characters than are needed, so that the last ones are evenly spread
		text = text[max(0, len(text)-shortIDLength):]
		if len(text) == shortIDLength && strings.ContainsFunc(text, func(c rune) bool { return c > '9' }) {
			return text
		}
	}
}

// UpdateInsight changes what f gives of an insight, as it is stored at that moment: the last write wins. One that is deleted
// can only be restored, which is ErrNotFound unless restore allows it. Mistakes are *FieldError; an unknown insight is
// ErrNotFound.
func (r *Registry) UpdateInsight(ctx context.Context, project, id int64, f InsightFields, restore bool, by string, now time.Time) (*Insight, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	at := moment(now)
	var updated Insight
	var changed []Dashboard
	err := r.write(ctx, project, func(tx Tx) error {
		before, err := tx.Insight(ctx, project, id)
		if err != nil {
			return err
		}
		if before.Deleted && (!restore || !f.Deleted.Given || f.Deleted.Value) {
			return ErrNotFound
		}
		updated = before
		f.apply(&updated, at)
		if f.Name.Given || f.Description.Given || f.Filters.Given {
			updated.LastModifiedAt, updated.LastModifiedBy = at, by
		}
		if err := tx.UpdateInsight(ctx, updated); err != nil {
			return err
		}
		onBefore, err := dashboardsOf(ctx, tx, project, id)
		if err != nil {
			return err
		}
		if changed, err = f.place(ctx, tx, &updated, at); err != nil {
			return err
		}
		changes := insightChanges(&before, &updated)
		if len(changed) > 0 && !updated.Deleted {
			onAfter, err := dashboardsOf(ctx, tx, project, id)
			if err != nil {
				return err
			}
			changes = append(changes, changeOf(ScopeInsight, "dashboards", names(onBefore), names(onAfter)))
		}
		return logInsight(ctx, tx, insightActivity(&before, &updated), &updated, changes, by, at)
	}, func(d *draft) { d.putInsight(updated); d.putDashboards(changed) })
	if err != nil {
		return nil, fmt.Errorf("updating insight %d: %w", id, err)
	}
	return &updated, nil
}

// RecordViews says that insights were looked at with a key. Those that the project does not have, or that are deleted, are
// left out.
func (r *Registry) RecordViews(ctx context.Context, project int64, viewer string, insights []int64, now time.Time) error {
	snap := r.Snapshot()
	there := make([]int64, 0, len(insights))
	for _, id := range insights {
		if snap.Insight(project, id) != nil && !slices.Contains(there, id) {
			there = append(there, id)
		}
	}
	if len(there) == 0 {
		return nil
	}
	err := r.write(ctx, project, func(tx Tx) error {
		return tx.RecordViews(ctx, project, viewer, there, moment(now))
	}, func(*draft) {})
	if err != nil {
		return fmt.Errorf("recording views of insights: %w", err)
	}
	return nil
}

func (f *InsightFields) validate() error {
	for _, text := range []struct {
		name  string
		given Field[*string]
	}{{"name", f.Name}, {"derived_name", f.DerivedName}, {"description", f.Description}} {
		if v := text.given.Value; v != nil && utf8.RuneCountInString(*v) > maxInsightText {
			return tooLong(text.name, maxInsightText)
		}
	}
	if f.Query.Value != nil {
		if err := validateQuery(f.Query.Value); err != nil {
			return err
		}
	}
	if f.Filters.Given && !isObject(f.Filters.Value) {
		return invalid("filters", "Filters must be a JSON object.")
	}
	return validateTags(f.Tags.Value)
}

// SameQuery reports whether a query that is given is, byte for byte but for spaces, the one that is stored. Either may be nil.
func SameQuery(stored, given json.RawMessage) bool {
	return (stored == nil) == (given == nil) && (given == nil || bytes.Equal(stored, compact(given)))
}

// isObject tells whether raw is one JSON object.
func isObject(raw json.RawMessage) bool {
	text := bytes.TrimSpace(raw)
	return len(text) > 0 && text[0] == '{' && json.Valid(text)
}

// apply writes the fields into an insight.
func (f *InsightFields) apply(i *Insight, at time.Time) {
	i.Name, i.DerivedName, i.Description = f.Name.or(i.Name), f.DerivedName.or(i.DerivedName), f.Description.or(i.Description)
	if f.Query.Given {
		var next json.RawMessage
		if f.Query.Value != nil {
			next = compact(f.Query.Value)
		}
		if !f.NoQueryScope || !SameQuery(i.Query, next) { // to send back what is there changes nothing
			i.NeedsQueryScope = f.NoQueryScope && next != nil
		}
		i.Query = next
	}
	if f.Filters.Given {
		i.Filters = compact(f.Filters.Value)
	}
	i.Order, i.Deleted, i.Favorited = f.Order.or(i.Order), f.Deleted.or(i.Deleted), f.Favorited.or(i.Favorited)
	i.Saved = f.Saved.or(true)
	if f.Tags.Given {
		i.Tags = once(f.Tags.Value)
	}
	i.UpdatedAt = at
}

// place puts the insight on the dashboards that the fields name, and takes it off all others; a deleted one is taken off
// all. It returns the dashboards that changed.
func (f *InsightFields) place(ctx context.Context, tx Tx, i *Insight, at time.Time) ([]Dashboard, error) {
	wanted := f.Dashboards.Value
	switch {
	case f.Deleted.Given && i.Deleted:
		wanted = nil
	case !f.Dashboards.Given:
		return nil, nil
	}
	tiles, err := tx.TilesOf(ctx, i.Project, i.ID)
	if err != nil {
		return nil, err
	}
	touched := make(map[int64]bool)
	for _, t := range tiles {
		on := slices.Contains(wanted, t.Dashboard)
		if on == !t.Deleted {
			continue
		}
		if on { // an older tile is used again
			if err := checkDashboard(ctx, tx, i.Project, t.Dashboard); err != nil {
				return nil, err
			}
		}
		t.delete(!on, at)
		if err := tx.UpdateTile(ctx, t); err != nil {
			return nil, err
		}
		touched[t.Dashboard] = true
	}
	for _, id := range wanted {
		if slices.ContainsFunc(tiles, func(t Tile) bool { return t.Dashboard == id }) || touched[id] {
			continue
		}
		if err := checkDashboard(ctx, tx, i.Project, id); err != nil {
			return nil, err
		}
		if _, err := tx.InsertTile(ctx, newTile(i.Project, id, i.ID)); err != nil {
			return nil, err
		}
		touched[id] = true
	}
	return reread(ctx, tx, i.Project, touched)
}
