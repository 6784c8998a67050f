package registry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Insight is a saved query (contract: api.md, section 4.3).
type Insight struct {
	ID          int64           `json:"id"`       // from 1, unique over all projects
	ShortID     string          `json:"short_id"` // 8 letters and digits, with a letter among them; unique in its project
	Project     int64           `json:"-"`
	Name        *string         `json:"name"` // nil if none was given
	DerivedName *string         `json:"derived_name"`
	Description *string         `json:"description"`
	Query       json.RawMessage `json:"query,omitempty"` // nil for none
	// NeedsQueryScope says that a key without query:read saved the query. It then runs only for keys that have that scope.
	NeedsQueryScope bool            `json:"needs_query_scope"`
	Filters         json.RawMessage `json:"filters"` // an object of PostHog's older form; kept, but never run
	Order           *int            `json:"order"`
	Deleted         bool            `json:"deleted"`
	Favorited       bool            `json:"favorited"`
	Saved           bool            `json:"saved"`
	Tags            []string        `json:"tags"`
	CreatedAt       time.Time       `json:"created_at"`
	UpdatedAt       time.Time       `json:"updated_at"`
	// LastModifiedAt changes when the name, the description or the filters are written.
	LastModifiedAt time.Time `json:"last_modified_at"`
	CreatedBy      string    `json:"created_by"`       // id of a key
	LastModifiedBy string    `json:"last_modified_by"` // id of a key
}

func readInsight(rec *Record) (entity, error) {
	id, err := number(rec)
	if err != nil {
		return nil, err
	}
	i := &Insight{ID: id, Project: rec.Project}
	return i, decode(rec, i)
}

func (i *Insight) name() recordName { return recordName{i.Project, KindInsight, digits(i.ID)} }
func (i *Insight) unique() []string { return []string{within(i.Project, i.ShortID)} }

func (i *Insight) size() int {
	return len(i.Query) + len(i.Filters) + textBytes(i.Name, i.DerivedName, i.Description) + listBytes(i.Tags)
}

func (i *Insight) checkSize() error { return checkUndeleted(i.Deleted, i.checkNew) }

// checkNew reports that the insight is too large, deleted or not.
func (i *Insight) checkNew() error {
	return checkSize("query", "This insight", i.size(), MaxRecord)
}

func (i *Insight) key() int64   { return i.ID }
func (i *Insight) code() string { return i.ShortID }
func (i *Insight) listed() bool { return !i.Deleted }

// compare puts those that have an order first.
func (i *Insight) compare(other *Insight) int {
	switch {
	case i.Order != nil && other.Order != nil:
		return cmp.Or(cmp.Compare(*i.Order, *other.Order), cmp.Compare(i.ID, other.ID))
	case i.Order != nil:
		return -1
	case other.Order != nil:
		return 1
	}
	return cmp.Compare(i.ID, other.ID)
}

func (i *Insight) put(_ *draft, p *projectState) (Stored, error) { return p.insights.put(i), nil }
func (i *Insight) remove(_ *draft, p *projectState) Stored       { return p.insights.remove(i.ID) }

// Title returns the name of an insight in its activity log: its name, else its derived name, else nothing.
func (i *Insight) Title() string {
	for _, name := range []*string{i.Name, i.DerivedName} {
		if name != nil && *name != "" {
			return *name
		}
	}
	return ""
}

// Field is one field of an update, which may be given or not.
type Field[T any] struct {
	Value T
	Given bool
}

// To returns a field that is given as v.
func To[T any](v T) Field[T] { return Field[T]{Value: v, Given: true} }

// or returns the value of the field, or before if it is not given.
func (f Field[T]) or(before T) T {
	if f.Given {
		return f.Value
	}
	return before
}

// InsightFields holds the fields of an insight that are to be set. A field that is not given stays as it is, or takes its default in a new insight.
type InsightFields struct {
	Name, DerivedName, Description Field[*string]         // at most 400 characters
	Query                          Field[json.RawMessage] // nil, or a JSON object that the caller has checked
	NoQueryScope                   bool                   // the key that gives the query lacks the scope query:read
	Filters                        Field[json.RawMessage] // a JSON object
	Order                          Field[*int]
	Deleted                        Field[bool]
	Favorited                      Field[bool]
	Saved                          Field[bool] // true unless given, even in an update
	Tags                           Field[[]string]
	Dashboards                     Field[[]int64] // numbers of the dashboards that it is on
}

const (
	maxInsightText = 400
	shortIDLength  = 8
	maxPlaces      = DefaultRecords // dashboards that one request may name for an insight
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
	err := r.write(ctx, project, func(t *tx) error {
		p, err := t.state()
		if err != nil {
			return err
		}
		i := created
		i.ID, i.ShortID = t.number(KindInsight), newShortID(p)
		if err := i.checkNew(); err != nil {
			return err
		}
		if err := t.put(&i); err != nil {
			return err
		}
		t.view(&i, by, at)
		if err := f.place(t, p, &i, at); err != nil {
			return err
		}
		t.logInsight(ActivityCreated, &i, nil, by, at)
		created = i
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("creating an insight: %w", err)
	}
	return &created, nil
}

// newShortID returns 8 random letters and digits that no insight of the project has. One of them is a letter, so that it can't be taken for a number.
func newShortID(p *projectState) string {
	for {
		text := randomText(2 * shortIDLength) // more characters than are needed, so that the last ones are evenly distributed
		text = text[max(0, len(text)-shortIDLength):]
		if p.insights.coded(text) == nil && len(text) == shortIDLength && strings.ContainsFunc(text, func(c rune) bool { return c > '9' }) {
			return text
		}
	}
}

// UpdateInsight changes the given fields of an insight, as it is stored at that moment: the last write wins. A deleted one can only be restored, and only if
// restore allows it; anything else is ErrNotFound. Its alerts are removed if they can't watch its new query. Mistakes are *FieldError; an unknown insight is
// ErrNotFound.
func (r *Registry) UpdateInsight(ctx context.Context, project, id int64, f InsightFields, restore bool, by string, now time.Time) (*Insight, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	at := moment(now)
	var updated Insight
	err := r.write(ctx, project, func(t *tx) error {
		p := t.draft.project(project)
		before := t.next.AnyInsight(project, id)
		if before == nil || before.Deleted && (!restore || !f.Deleted.Given || f.Deleted.Value) {
			return ErrNotFound
		}
		updated = *before
		f.apply(&updated, at)
		if f.Query.Given && HasAlerts(before.Query) && !HasAlerts(updated.Query) {
			t.removeAlertsOf(p, id)
		}
		if f.Name.Given || f.Description.Given || f.Filters.Given {
			updated.LastModifiedAt, updated.LastModifiedBy = at, by
		}
		i := updated
		if err := t.put(&i); err != nil {
			return err
		}
		onBefore, puts := p.dashboardsOf(id), len(t.puts)
		if err := f.place(t, p, &i, at); err != nil {
			return err
		}
		changes := insightChanges(before, &i)
		if len(t.puts) > puts && !i.Deleted {
			changes = append(changes, changeOf(ScopeInsight, "dashboards", names(onBefore), names(p.dashboardsOf(id))))
		}
		t.logInsight(insightActivity(before, &i), &i, changes, by, at)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("updating insight %d: %w", id, err)
	}
	return &updated, nil
}

// RecordViews records that insights were viewed with a key. Insights that are deleted, or that the project does not have, are left out.
func (r *Registry) RecordViews(ctx context.Context, project int64, viewer string, insights []int64, now time.Time) error {
	err := r.write(ctx, 0, func(t *tx) error {
		for _, id := range insights {
			if i := t.next.Insight(project, id); i != nil {
				t.view(i, viewer, moment(now))
			}
		}
		return nil
	})
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
	if len(f.Dashboards.Value) > maxPlaces {
		return tooMany("dashboards", maxPlaces)
	}
	return validateTags(f.Tags.Value, MaxRecord)
}

// SameQuery reports whether a given query is the stored one, byte for byte except for spaces. Either may be nil.
func SameQuery(stored, given json.RawMessage) bool {
	return (stored == nil) == (given == nil) && (given == nil || bytes.Equal(stored, compact(given)))
}

// isObject reports whether raw is one JSON object.
func isObject(raw json.RawMessage) bool {
	text := bytes.TrimSpace(raw)
	return len(text) > 0 && text[0] == '{' && json.Valid(text)
}

// isArray reports whether raw is one JSON array.
func isArray(raw json.RawMessage) bool {
	text := bytes.TrimSpace(raw)
	return len(text) > 0 && text[0] == '[' && json.Valid(text)
}

// apply writes the fields into an insight.
func (f *InsightFields) apply(i *Insight, at time.Time) {
	i.Name, i.DerivedName, i.Description = f.Name.or(i.Name), f.DerivedName.or(i.DerivedName), f.Description.or(i.Description)
	if f.Query.Given {
		var next json.RawMessage
		if f.Query.Value != nil {
			next = compact(f.Query.Value)
		}
		if !f.NoQueryScope || !SameQuery(i.Query, next) { // sending back what is stored changes nothing
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
		i.Tags = PlainTags(f.Tags.Value)
	}
	i.UpdatedAt = at
}

// place puts the insight on the dashboards that the fields name, and takes it off all others; a deleted one is taken off all. A deleted dashboard can't be named,
// and keeps its tiles, so that it is restored with them.
func (f *InsightFields) place(t *tx, p *projectState, i *Insight, at time.Time) error {
	wanted, gone := f.Dashboards.Value, f.Deleted.Given && i.Deleted
	switch {
	case gone:
		wanted = nil
	case !f.Dashboards.Given:
		return nil
	}
	want, placed := make(map[int64]bool, len(wanted)), make(map[int64]bool)
	for _, id := range wanted {
		if err := p.checkDashboard(id); err != nil {
			return err
		}
		want[id] = true
	}
	for _, tile := range p.tilesWith(i.ID) {
		placed[tile.Dashboard] = true
		on := want[tile.Dashboard] // an older tile is reused
		if on == !tile.Deleted || !gone && p.dashboards.get(tile.Dashboard).Deleted {
			continue
		}
		tile.delete(!on, at)
		if err := t.put(&tile); err != nil {
			return err
		}
	}
	for _, id := range wanted {
		if placed[id] {
			continue
		}
		placed[id] = true
		if _, err := t.addTile(p, newTile(i.Project, id, i.ID)); err != nil {
			return err
		}
	}
	return nil
}
