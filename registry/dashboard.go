package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"
)

// Dashboard is a named list of insights.
type Dashboard struct {
	ID             int64 // from 1, over all projects
	Project        int64
	Name           *string
	Description    string
	Pinned         bool
	Deleted        bool            // its tiles stay as they are, and come back with it
	DeletedAt      time.Time       // zero: it is not deleted
	Filters        json.RawMessage // an object: filters that are put over its insights
	Variables      json.RawMessage // an object: values of insight variables, by id
	BreakdownColor json.RawMessage // colours of breakdown values, for those who draw it
	ColorTheme     *int
	Tags           []string
	CreatedAt      time.Time
	CreatedBy      string // id of a key
	Tiles          []Tile // by number, those that are deleted too
}

// Tile is one insight or one text on a dashboard.
type Tile struct {
	ID        int64
	Project   int64
	Dashboard int64
	Insight   int64           // 0 for a text
	Text      *Text           // nil for an insight
	Layouts   json.RawMessage // an object: place and size by width of the screen
	Color     *string
	// ShowDescription tells whether to show the insight's description; nil leaves it to who draws it.
	ShowDescription *bool
	FilterOverrides json.RawMessage // an object: filters in place of the dashboard's
	Deleted         bool
	DeletedAt       time.Time // zero: it is not deleted
}

// Text is what a tile without an insight shows.
type Text struct {
	Body           *string   `json:"body"` // Markdown, at most 4000 characters; nil for none
	CreatedBy      string    `json:"created_by"`
	LastModifiedBy string    `json:"last_modified_by"` // id of a key, as CreatedBy; empty while nobody has changed the text
	LastModifiedAt time.Time `json:"last_modified_at"`
}

// delete sets whether the tile is deleted, and since when.
func (t *Tile) delete(deleted bool, at time.Time) {
	t.DeletedAt = since(t.DeletedAt, deleted, at)
	t.Deleted = deleted
}

// since is from when on something is deleted: from at, unless it was before.
func since(before time.Time, deleted bool, at time.Time) time.Time {
	switch {
	case !deleted:
		return time.Time{}
	case before.IsZero():
		return at
	}
	return before
}

func newTile(project, dashboard, insight int64) Tile {
	empty := json.RawMessage(`{}`)
	return Tile{Project: project, Dashboard: dashboard, Insight: insight, Layouts: empty, FilterOverrides: empty}
}

// DashboardFields says what of a dashboard is to be; what is not given stays, or is the default of a new one.
type DashboardFields struct {
	Name           Field[*string] // at most 400 characters
	Description    Field[string]
	Pinned         Field[bool]
	Deleted        Field[bool]
	DeleteInsights bool                   // with Deleted: also the insights that are on no other dashboard
	Filters        Field[json.RawMessage] // a JSON object
	Variables      Field[json.RawMessage] // a JSON object
	BreakdownColor Field[json.RawMessage] // any JSON
	ColorTheme     Field[*int]
	Tags           Field[[]string]
	Tiles          []TileFields
}

// TileFields says what of a tile is to be.
type TileFields struct {
	ID              int64          // 0: a new tile, or the one that Insight has on the dashboard
	Insight         int64          // of a new tile
	Text            Field[*string] // the body of a text; a new tile that is given one shows it
	Layouts         Field[json.RawMessage]
	Color           Field[*string]
	ShowDescription Field[*bool]
	FilterOverrides Field[json.RawMessage]
	Deleted         Field[bool]
}

// The most characters of a tile's colour and of its text.
const (
	maxTileColor = 400
	maxTileText  = 4000
)

// CreateDashboard adds a dashboard. Mistakes are *FieldError; an unknown project is ErrNotFound.
func (r *Registry) CreateDashboard(ctx context.Context, project int64, f DashboardFields, by string, now time.Time) (*Dashboard, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	at := moment(now)
	created := Dashboard{
		Project: project, Filters: json.RawMessage(`{}`), Variables: json.RawMessage(`{}`), BreakdownColor: json.RawMessage(`[]`),
		Tags: []string{}, CreatedAt: at, CreatedBy: by,
	}
	f.apply(&created, at)
	err := r.write(ctx, project, func(tx Tx) (err error) {
		if _, err := tx.Project(ctx, project); err != nil {
			return fmt.Errorf("project %d: %w", project, err)
		}
		if created.ID, err = tx.InsertDashboard(ctx, created); err != nil {
			return err
		}
		created.Tiles = nil
		for i := range f.Tiles {
			if err := f.Tiles[i].put(ctx, tx, &created, i, author{by, at}); err != nil {
				return err
			}
		}
		created, err = tx.Dashboard(ctx, project, created.ID)
		return err
	}, func(d *draft) { d.putDashboards([]Dashboard{created}) })
	if err != nil {
		return nil, fmt.Errorf("creating a dashboard: %w", err)
	}
	return &created, nil
}

// UpdateDashboard changes what f gives of a dashboard, as it is stored at that moment. One that is deleted can only be
// restored, with the insights that are on it; anything else is ErrNotFound. Mistakes are *FieldError.
func (r *Registry) UpdateDashboard(ctx context.Context, project, id int64, f DashboardFields, by string, now time.Time) (*Dashboard, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	at := moment(now)
	var updated Dashboard
	var insights []Insight
	err := r.write(ctx, project, func(tx Tx) error {
		before, err := tx.Dashboard(ctx, project, id)
		if err != nil {
			return err
		}
		if before.Deleted && (!f.Deleted.Given || f.Deleted.Value) {
			return ErrNotFound
		}
		updated = before
		f.apply(&updated, at)
		if err := tx.UpdateDashboard(ctx, updated); err != nil {
			return err
		}
		for i := range f.Tiles {
			if err := f.Tiles[i].put(ctx, tx, &updated, i, author{by, at}); err != nil {
				return err
			}
		}
		insights = nil
		if before.Deleted != updated.Deleted && (f.DeleteInsights || before.Deleted) {
			if insights, err = deleteAlong(ctx, tx, &updated, by, at); err != nil {
				return err
			}
		}
		updated, err = tx.Dashboard(ctx, project, id)
		return err
	}, func(d *draft) {
		for _, i := range insights {
			d.putInsight(i)
		}
		d.putDashboards([]Dashboard{updated})
	})
	if err != nil {
		return nil, fmt.Errorf("updating dashboard %d: %w", id, err)
	}
	return &updated, nil
}

// deleteAlong deletes or restores the insights of a dashboard that are on no other one, as the dashboard itself was.
func deleteAlong(ctx context.Context, tx Tx, d *Dashboard, by string, at time.Time) ([]Insight, error) {
	var changed []Insight
	for _, t := range d.Tiles {
		if t.Deleted || t.Insight == 0 {
			continue
		}
		before, err := tx.Insight(ctx, d.Project, t.Insight)
		if err != nil {
			return nil, err
		}
		if before.Deleted == d.Deleted {
			continue
		}
		on, err := dashboardsOf(ctx, tx, d.Project, t.Insight)
		if err != nil {
			return nil, err
		}
		if d.Deleted && len(on) > 0 { // d itself counts no more
			continue
		}
		after := before
		after.Deleted, after.UpdatedAt = d.Deleted, at
		if err := tx.UpdateInsight(ctx, after); err != nil {
			return nil, err
		}
		if err := logInsight(ctx, tx, insightActivity(&before, &after), &after, insightChanges(&before, &after), by, at); err != nil {
			return nil, err
		}
		changed = append(changed, after)
	}
	return changed, nil
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
	for i := range f.Tiles {
		if err := f.Tiles[i].validate(i); err != nil {
			return err
		}
	}
	return validateTags(f.Tags.Value)
}

func (f *TileFields) validate(at int) error {
	switch {
	case f.Layouts.Given && !isObject(f.Layouts.Value):
		return invalid(fmt.Sprintf("tiles.%d.layouts", at), "Layouts must be a dictionary")
	case f.FilterOverrides.Given && !isObject(f.FilterOverrides.Value):
		return invalid(fmt.Sprintf("tiles.%d.filters_overrides", at), "Filters must be a dictionary")
	case f.Color.Value != nil && utf8.RuneCountInString(*f.Color.Value) > maxTileColor:
		return tooLong(fmt.Sprintf("tiles.%d.color", at), maxTileColor)
	case f.Text.Value != nil && utf8.RuneCountInString(*f.Text.Value) > maxTileText:
		return tooLong(fmt.Sprintf("tiles.%d.text.body", at), maxTileText)
	}
	return nil
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
		d.Tags = once(f.Tags.Value)
	}
}

// author is who changes something, and when.
type author struct {
	key string
	at  time.Time
}

// put changes a tile of d, or adds one; at is its place in the request.
func (f *TileFields) put(ctx context.Context, tx Tx, d *Dashboard, at int, by author) error {
	found := slices.IndexFunc(d.Tiles, func(t Tile) bool {
		return f.ID != 0 && t.ID == f.ID || f.ID == 0 && f.Insight != 0 && t.Insight == f.Insight
	})
	field := fmt.Sprintf("tiles.%d", at)
	switch {
	case found < 0 && f.ID != 0:
		return &FieldError{Field: field + ".id", Code: CodeNoObject, Message: fmt.Sprintf("Invalid pk \"%d\" - object does not exist.", f.ID)}
	case found < 0 && f.Insight == 0 && !f.Text.Given:
		return &FieldError{Field: field + ".insight", Code: CodeRequired, Message: "This field is required."}
	case f.Text.Given && (f.Insight != 0 || found >= 0 && d.Tiles[found].Insight != 0):
		return invalid(field+".text", "A tile shows an insight or a text, not both.")
	}
	t := newTile(d.Project, d.ID, f.Insight)
	if found >= 0 {
		t = d.Tiles[found]
	}
	if f.Text.Given {
		t.Text = t.Text.changed(f.Text.Value, by)
	}
	if on := f.Deleted.Given && !f.Deleted.Value || found < 0 || f.ID == 0; on && t.Text == nil {
		if i, err := tx.Insight(ctx, d.Project, t.Insight); errors.Is(err, ErrNotFound) || err == nil && i.Deleted {
			return &FieldError{
				Field: field + ".insight", Code: CodeNoObject, Message: fmt.Sprintf("Invalid pk \"%d\" - object does not exist.", t.Insight),
			}
		} else if err != nil {
			return err
		}
		t.delete(false, by.at)
	}
	t.delete(f.Deleted.or(t.Deleted), by.at)
	t.Color, t.ShowDescription = f.Color.or(t.Color), f.ShowDescription.or(t.ShowDescription)
	if f.Layouts.Given {
		t.Layouts = compact(f.Layouts.Value)
	}
	if f.FilterOverrides.Given {
		t.FilterOverrides = compact(f.FilterOverrides.Value)
	}
	if found >= 0 {
		d.Tiles[found] = t
		return tx.UpdateTile(ctx, t)
	}
	id, err := tx.InsertTile(ctx, t)
	t.ID = id
	d.Tiles = append(d.Tiles, t)
	return err
}

// changed gives the text with another body; nil stands for a text that is not there yet.
func (t *Text) changed(body *string, by author) *Text {
	if t == nil {
		return &Text{Body: body, CreatedBy: by.key, LastModifiedAt: by.at}
	}
	return &Text{Body: body, CreatedBy: t.CreatedBy, LastModifiedBy: by.key, LastModifiedAt: by.at}
}

// checkDashboard tells whether an insight can be put on a dashboard.
func checkDashboard(ctx context.Context, tx Tx, project, id int64) error {
	d, err := tx.Dashboard(ctx, project, id)
	if errors.Is(err, ErrNotFound) || err == nil && d.Deleted {
		return &FieldError{Field: "dashboards", Code: CodeNoObject, Message: fmt.Sprintf("Invalid pk \"%d\" - object does not exist.", id)}
	}
	return err
}

// dashboardsOf returns the dashboards that an insight is on, by number.
func dashboardsOf(ctx context.Context, tx Tx, project, insight int64) ([]Dashboard, error) {
	tiles, err := tx.TilesOf(ctx, project, insight)
	if err != nil {
		return nil, err
	}
	var on []Dashboard
	for _, t := range tiles {
		if t.Deleted {
			continue
		}
		d, err := tx.Dashboard(ctx, project, t.Dashboard)
		if err != nil {
			return nil, err
		}
		if !d.Deleted {
			on = append(on, d)
		}
	}
	slices.SortFunc(on, func(a, b Dashboard) int { return cmp.Compare(a.ID, b.ID) })
	return on, nil
}

// reread returns dashboards as they are now, by number.
func reread(ctx context.Context, tx Tx, project int64, ids map[int64]bool) ([]Dashboard, error) {
	var all []Dashboard
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		d, err := tx.Dashboard(ctx, project, id)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}
