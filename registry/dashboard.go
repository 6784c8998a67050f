package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// Dashboard is a named list of insights.
type Dashboard struct {
	ID             int64           `json:"id"` // from 1, unique over all projects
	Project        int64           `json:"-"`
	Name           *string         `json:"name"`
	Description    string          `json:"description"`
	Pinned         bool            `json:"pinned"`
	Deleted        bool            `json:"deleted"`             // its tiles stay as they are, and come back with it
	DeletedAt      time.Time       `json:"deleted_at,omitzero"` // zero: it is not deleted
	Filters        json.RawMessage `json:"filters"`             // an object: filters that are applied to its insights
	Variables      json.RawMessage `json:"variables"`           // an object: values of insight variables, by id
	BreakdownColor json.RawMessage `json:"breakdown_color"`     // colors of breakdown values, for clients that draw it
	ColorTheme     *int            `json:"color_theme"`
	Tags           []string        `json:"tags"`
	Duplicate      bool            `json:"duplicate,omitempty"` // it was made from another dashboard
	CreatedAt      time.Time       `json:"created_at"`
	CreatedBy      string          `json:"created_by"` // id of a key
	Tiles          []Tile          `json:"-"`          // by number, including deleted ones
}

func readDashboard(rec *Record) (entity, error) {
	id, err := number(rec)
	if err != nil {
		return nil, err
	}
	d := &Dashboard{ID: id, Project: rec.Project}
	return d, decode(rec, d)
}

func (d *Dashboard) name() recordName { return recordName{d.Project, KindDashboard, digits(d.ID)} }
func (d *Dashboard) unique() []string { return nil }

func (d *Dashboard) size() int {
	return len(d.Filters) + len(d.Variables) + len(d.BreakdownColor) + len(d.Description) + textBytes(d.Name) + listBytes(d.Tags)
}

func (d *Dashboard) checkSize() error { return checkUndeleted(d.Deleted, d.checkNew) }

// checkNew reports that the dashboard is too large, deleted or not.
func (d *Dashboard) checkNew() error {
	return checkSize("filters", "This dashboard", d.size(), MaxRecord)
}

// put shows the dashboard with the tiles that the draft has of it.
func (d *Dashboard) put(in *draft, p *projectState) (Stored, error) {
	next := *d
	next.Tiles = nil
	if before := p.dashboards.get(d.ID); before != nil {
		next.Tiles = before.Tiles
		if before.Deleted != d.Deleted {
			for i := range next.Tiles {
				p.show(&next.Tiles[i], !d.Deleted)
			}
		}
		if own := in.own[d.Project].tiles; own[d.ID] != nil {
			own[d.ID] = &next
		}
	}
	return p.dashboards.put(&next), nil
}

func (d *Dashboard) remove(in *draft, p *projectState) Stored {
	before := p.dashboards.get(d.ID)
	if before == nil {
		return Stored{}
	}
	if !before.Deleted {
		for i := range before.Tiles {
			p.show(&before.Tiles[i], false)
		}
	}
	for i := range before.Tiles {
		p.place(&before.Tiles[i], false)
	}
	delete(in.own[d.Project].tiles, d.ID)
	return p.dashboards.remove(d.ID)
}

func (d *Dashboard) key() int64                   { return d.ID }
func (d *Dashboard) code() string                 { return "" }
func (d *Dashboard) listed() bool                 { return !d.Deleted }
func (d *Dashboard) compare(other *Dashboard) int { return cmp.Compare(d.ID, other.ID) }

// since returns the time of a deletion: at, unless it was deleted before.
func since(before time.Time, deleted bool, at time.Time) time.Time {
	switch {
	case !deleted:
		return time.Time{}
	case before.IsZero():
		return at
	}
	return before
}

// DashboardFields holds the fields of a dashboard that are to be set. A field that is not given stays as it is, or takes its default in a new dashboard.
type DashboardFields struct {
	Name           Field[*string] // at most 400 characters
	Description    Field[string]
	Pinned         Field[bool]
	Deleted        Field[bool]
	DeleteInsights bool                   // with Deleted: also delete the insights that are on no other dashboard
	KeepInsights   bool                   // the change must not delete or restore insights: ErrInsights if it would
	Filters        Field[json.RawMessage] // a JSON object
	Variables      Field[json.RawMessage] // a JSON object
	BreakdownColor Field[json.RawMessage] // any JSON
	ColorTheme     Field[*int]
	Tags           Field[[]string]
	Tiles          []TileFields
	// From is the dashboard that a new one is made from, with its tiles, variables and colors, and with its filters unless Filters are given; 0 for none. With
	// CopyContents, the tiles show copies of its insights and texts instead of the same ones.
	From         int64
	CopyContents bool
	// Duplicate names tiles of the dashboard by ID. Each is added to it once more with a copy of what it shows, at its Layouts.
	Duplicate []TileFields
}

// CreateDashboard adds a dashboard. Mistakes are *FieldError; an unknown project is ErrNotFound.
func (r *Registry) CreateDashboard(ctx context.Context, project int64, f DashboardFields, by string, now time.Time) (*Dashboard, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	at := moment(now)
	empty := Dashboard{
		Project: project, Filters: json.RawMessage(`{}`), Variables: json.RawMessage(`{}`), BreakdownColor: json.RawMessage(`[]`),
		Tags: []string{}, CreatedAt: at, CreatedBy: by,
	}
	f.apply(&empty, at)
	var created Dashboard
	err := r.write(ctx, project, func(t *tx) error {
		p, err := t.state()
		if err != nil {
			return err
		}
		created = empty
		source, err := f.source(p, &created)
		if err != nil {
			return err
		}
		created.ID = t.number(KindDashboard)
		if err := created.checkNew(); err != nil {
			return err
		}
		for i := range f.Tiles { // of other dashboards
			f.Tiles[i].ID = 0
		}
		if err := f.put(t, p, &created, author{by, at}); err != nil {
			return err
		}
		if err := t.fill(p, created.ID, source, f.CopyContents, author{by, at}); err != nil {
			return err
		}
		created = *t.next.AnyDashboard(project, created.ID)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("creating a dashboard: %w", err)
	}
	return &created, nil
}

// ErrInsights says that a change of a dashboard would delete or restore insights too.
var ErrInsights = errors.New("the change would delete or restore insights")

// UpdateDashboard changes the given fields of a dashboard, as it is stored at that moment. A deleted one can only be restored, with the insights that are on
// it; anything else is ErrNotFound. Mistakes are *FieldError.
func (r *Registry) UpdateDashboard(ctx context.Context, project, id int64, f DashboardFields, by string, now time.Time) (*Dashboard, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	at := moment(now)
	var updated Dashboard
	err := r.write(ctx, project, func(t *tx) error {
		before := t.next.AnyDashboard(project, id)
		if before == nil || before.Deleted && (!f.Deleted.Given || f.Deleted.Value) {
			return ErrNotFound
		}
		p := t.draft.project(project)
		updated = *before
		f.apply(&updated, at)
		if err := f.put(t, p, &updated, author{by, at}); err != nil {
			return err
		}
		updated = *t.next.AnyDashboard(project, id)
		if before.Deleted != updated.Deleted && (f.DeleteInsights || before.Deleted) {
			return t.deleteAlong(p, &updated, f.KeepInsights, by, at)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("updating dashboard %d: %w", id, err)
	}
	return &updated, nil
}

// put puts a dashboard, and the tiles that the fields give.
func (f *DashboardFields) put(t *tx, p *projectState, d *Dashboard, by author) error {
	if err := t.put(d); err != nil {
		return err
	}
	for i := range f.Tiles {
		if err := f.Tiles[i].put(t, p, d.ID, i, by); err != nil {
			return err
		}
	}
	return f.duplicate(t, p, d.ID, by)
}

// deleteAlong deletes or restores the insights of a dashboard that are on no other one, along with the dashboard. With keep, it refuses to.
func (t *tx) deleteAlong(p *projectState, d *Dashboard, keep bool, by string, at time.Time) error {
	for _, tile := range d.Tiles {
		if tile.Deleted || tile.Insight == 0 {
			continue
		}
		before := t.next.AnyInsight(d.Project, tile.Insight)
		if before == nil || before.Deleted == d.Deleted || d.Deleted && len(p.dashboardsOf(tile.Insight)) > 0 { // d itself no longer counts
			continue
		}
		if keep {
			return ErrInsights
		}
		after := *before
		after.Deleted, after.UpdatedAt = d.Deleted, at
		if err := t.put(&after); err != nil {
			return err
		}
		t.logInsight(insightActivity(before, &after), &after, insightChanges(before, &after), by, at)
	}
	return nil
}

func (f *DashboardFields) validate() error {
	if f.Name.Value != nil && utf8.RuneCountInString(*f.Name.Value) > maxInsightText {
		return tooLong("name", maxInsightText)
	}
	for _, object := range []struct {
		name, words string
		given       Field[json.RawMessage]
	}{{"filters", "Filters must be a dictionary", f.Filters}, {"variables", "Variables must be a dictionary", f.Variables}} {
		if object.given.Given && !isObject(object.given.Value) {
			return invalid(object.name, "%s", object.words)
		}
	}
	if f.BreakdownColor.Given && !json.Valid(f.BreakdownColor.Value) {
		return invalid("breakdown_colors", "Value must be valid JSON.")
	}
	switch {
	case len(f.Tiles) > MaxTiles:
		return tooMany("tiles", MaxTiles)
	case len(f.Duplicate) > MaxTiles:
		return tooMany("duplicate_tiles", MaxTiles)
	}
	for i := range f.Tiles {
		if err := f.Tiles[i].validate("tiles", i); err != nil {
			return err
		}
	}
	for i := range f.Duplicate {
		if err := f.Duplicate[i].validate("duplicate_tiles", i); err != nil {
			return err
		}
	}
	return validateTags(f.Tags.Value, MaxRecord)
}

func (f *DashboardFields) apply(d *Dashboard, at time.Time) {
	d.Name, d.Description, d.Pinned = f.Name.or(d.Name), f.Description.or(d.Description), f.Pinned.or(d.Pinned)
	d.Deleted, d.ColorTheme = f.Deleted.or(d.Deleted), f.ColorTheme.or(d.ColorTheme)
	d.DeletedAt = since(d.DeletedAt, d.Deleted, at)
	if f.Filters.Given {
		d.Filters = compact(f.Filters.Value)
	}
	if f.Variables.Given {
		d.Variables = compact(f.Variables.Value)
	}
	if f.BreakdownColor.Given {
		d.BreakdownColor = compact(f.BreakdownColor.Value)
	}
	if f.Tags.Given {
		d.Tags = PlainTags(f.Tags.Value)
	}
}

// author is the key that changes something, and when.
type author struct {
	key string
	at  time.Time
}

// checkDashboard returns an error if an insight can't be put on a dashboard.
func (p *projectState) checkDashboard(id int64) error {
	if d := p.dashboards.get(id); d == nil || d.Deleted {
		return &FieldError{Field: "dashboards", Code: CodeNoObject, Message: fmt.Sprintf("Invalid pk \"%d\" - object does not exist.", id)}
	}
	return nil
}

// dashboardsOf returns the dashboards that an insight is on, by number.
func (p *projectState) dashboardsOf(insight int64) []Dashboard {
	tiles, _ := p.tiles.Get(insight)
	var on []Dashboard
	for _, t := range tiles {
		if d := p.dashboards.get(t.Dashboard); d != nil {
			on = append(on, *d)
		}
	}
	slices.SortFunc(on, func(a, b Dashboard) int { return cmp.Compare(a.ID, b.ID) })
	return on
}
