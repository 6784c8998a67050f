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
	BreakdownColor json.RawMessage `json:"breakdown_color"`     // colours of breakdown values, for clients that draw it
	ColorTheme     *int            `json:"color_theme"`
	Tags           []string        `json:"tags"`
	Duplicate      bool            `json:"duplicate,omitempty"` // it was made from another dashboard
	CreatedAt      time.Time       `json:"created_at"`
	CreatedBy      string          `json:"created_by"` // id of a key
	Tiles          []Tile          `json:"-"`          // by number, including deleted ones
}

// Tile is one insight or one text on a dashboard.
type Tile struct {
	ID        int64           `json:"id"`
	Project   int64           `json:"-"`
	Dashboard int64           `json:"dashboard"`
	Insight   int64           `json:"insight,omitempty"` // 0 for a text
	Text      *Text           `json:"text,omitempty"`    // nil for an insight
	Layouts   json.RawMessage `json:"layouts"`           // an object: place and size by width of the screen
	Color     *string         `json:"color"`
	// ShowDescription reports whether to show the insight's description; nil leaves that to the client.
	ShowDescription *bool           `json:"show_description"`
	FilterOverrides json.RawMessage `json:"filter_overrides"` // an object: filters in place of the dashboard's
	Deleted         bool            `json:"deleted"`
	DeletedAt       time.Time       `json:"deleted_at,omitzero"` // zero: it is not deleted
	Restored        bool            `json:"restored,omitempty"`  // it was deleted before
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

func (d *Dashboard) checkSize() error {
	if d.Deleted { // what was too large before there was a limit can still be deleted
		return nil
	}
	return d.checkNew()
}

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

func readTile(rec *Record) (entity, error) {
	t := &Tile{Project: rec.Project}
	if n, err := fmt.Sscanf(rec.ID, "%d/%d", &t.Dashboard, &t.ID); n != 2 {
		return nil, fmt.Errorf("%q does not name a tile: %w", rec.ID, err)
	}
	return t, decode(rec, t)
}

func (t *Tile) name() recordName {
	return recordName{t.Project, KindTile, digits(t.Dashboard) + "/" + digits(t.ID)}
}

func (t *Tile) unique() []string {
	if t.Insight == 0 {
		return nil
	}
	return []string{digits(t.Dashboard) + " " + digits(t.Insight)} // a dashboard has an insight only once
}

func (t *Tile) size() int {
	size := len(t.Layouts) + len(t.FilterOverrides) + textBytes(t.Color)
	if t.Text != nil {
		size += textBytes(t.Text.Body)
	}
	return size
}

func (t *Tile) checkSize() error {
	if t.Deleted { // what was too large before there was a limit can still be deleted
		return nil
	}
	return t.checkNew()
}

// checkNew reports that the tile is too large, deleted or not.
func (t *Tile) checkNew() error {
	return checkSize("tiles", "This tile", t.size(), MaxSmallRecord)
}

func (t *Tile) put(in *draft, p *projectState) (Stored, error) {
	d := in.ownTiles(p, t.Project, t.Dashboard)
	if d == nil {
		return Stored{}, nil // purged
	}
	at, there := slices.BinarySearchFunc(d.Tiles, t.ID, func(t Tile, id int64) int { return cmp.Compare(t.ID, id) })
	was := Stored{}
	if there {
		was = Stored{1, int64(d.Tiles[at].size())}
		p.show(&d.Tiles[at], false)
		d.Tiles[at] = *t
	} else {
		d.Tiles = slices.Insert(d.Tiles, at, *t)
		p.place(t, true)
	}
	p.show(t, !d.Deleted)
	return was, nil
}

func (t *Tile) remove(in *draft, p *projectState) Stored {
	d := in.ownTiles(p, t.Project, t.Dashboard)
	if d == nil {
		return Stored{}
	}
	at, there := slices.BinarySearchFunc(d.Tiles, t.ID, func(t Tile, id int64) int { return cmp.Compare(t.ID, id) })
	if !there {
		return Stored{}
	}
	was := Stored{1, int64(d.Tiles[at].size())}
	p.show(&d.Tiles[at], false)
	p.place(&d.Tiles[at], false)
	d.Tiles = slices.Delete(d.Tiles, at, at+1)
	return was
}

// ownTiles returns a dashboard whose tiles are the draft's own; nil if there is no such dashboard.
func (d *draft) ownTiles(p *projectState, project, id int64) *Dashboard {
	own := d.own[project].tiles
	if board := own[id]; board != nil {
		return board
	}
	before := p.dashboards.get(id)
	if before == nil {
		return nil
	}
	next := *before
	next.Tiles = slices.Clone(before.Tiles)
	own[id] = &next
	p.dashboards.put(&next)
	return &next
}

// show records that an insight is on a dashboard that is not deleted, or that it no longer is.
func (p *projectState) show(t *Tile, on bool) {
	if t.Insight == 0 || t.Deleted {
		return
	}
	before, _ := p.tiles.Get(t.Insight)
	tiles := slices.DeleteFunc(slices.Clone(before), func(other *Tile) bool { return other.ID == t.ID })
	if on {
		shown := *t
		at, _ := slices.BinarySearchFunc(tiles, t.ID, func(t *Tile, id int64) int { return cmp.Compare(t.ID, id) })
		tiles = slices.Insert(tiles, at, &shown)
	}
	if len(tiles) == 0 {
		p.tiles = p.tiles.Delete(t.Insight)
		return
	}
	p.tiles = p.tiles.Set(t.Insight, tiles)
}

// place records that an insight or a text has a tile on a dashboard, deleted or not, or that it no longer does.
func (p *projectState) place(t *Tile, on bool) {
	shown := t.contents()
	if shown == 0 {
		return
	}
	before, _ := p.placed.Get(shown)
	boards := slices.DeleteFunc(slices.Clone(before), func(id int64) bool { return id == t.Dashboard })
	if on {
		boards = append(boards, t.Dashboard)
	}
	if len(boards) == 0 {
		p.placed = p.placed.Delete(shown)
		return
	}
	p.placed = p.placed.Set(shown, boards)
}

// tilesWith returns the tiles that show an insight or a text, including deleted tiles and tiles on deleted dashboards.
func (p *projectState) tilesWith(contents int64) []Tile {
	boards, _ := p.placed.Get(contents)
	var tiles []Tile
	for _, id := range boards {
		for _, t := range p.dashboards.get(id).Tiles {
			if t.contents() == contents {
				tiles = append(tiles, t)
			}
		}
	}
	return tiles
}

// Text is what a tile without an insight shows.
type Text struct {
	ID             int64     `json:"id,omitempty"` // number of the tile that it was written for; 0: its own tile
	Body           *string   `json:"body"`         // Markdown, at most 4000 characters; nil for none
	CreatedBy      string    `json:"created_by"`
	LastModifiedBy string    `json:"last_modified_by"` // id of a key, as CreatedBy; empty while nobody has changed the text
	LastModifiedAt time.Time `json:"last_modified_at"`
}

// delete sets whether the tile is deleted, and since when.
func (t *Tile) delete(deleted bool, at time.Time) {
	t.DeletedAt = since(t.DeletedAt, deleted, at)
	t.Restored = t.Restored || t.Deleted
	t.Deleted = deleted
}

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

func newTile(project, dashboard, insight int64) Tile {
	empty := json.RawMessage(`{}`)
	return Tile{Project: project, Dashboard: dashboard, Insight: insight, Layouts: empty, FilterOverrides: empty}
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
	// From is the dashboard that a new one is made from, with its tiles, variables and colours, and with its filters unless Filters are given; 0 for none. With
	// CopyContents, the tiles show copies of its insights and texts instead of the same ones.
	From         int64
	CopyContents bool
	// Duplicate names tiles of the dashboard by ID. Each is added to it once more with a copy of what it shows, at its Layouts.
	Duplicate []TileFields
}

// TileFields holds the fields of a tile that are to be set.
type TileFields struct {
	ID              int64          // 0: a new tile, or the one that Insight has on the dashboard
	Insight         int64          // of a new tile
	Text            Field[*string] // the body of a text; a new tile with one shows it
	Layouts         Field[json.RawMessage]
	Color           Field[*string]
	ShowDescription Field[*bool]
	FilterOverrides Field[json.RawMessage]
	Deleted         Field[bool]
}

// The most characters of a tile's colour and of its text, and the most bytes of its layouts. PostHog's clients send two widths with some ten numbers each.
const (
	maxTileColor = 400
	maxTileText  = 4000
	maxLayouts   = 4 << 10
)

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

func (f *TileFields) validate(list string, at int) error {
	field := fmt.Sprintf("%s.%d.", list, at)
	if err := f.validateLayouts(field + "layouts"); err != nil {
		return err
	}
	switch {
	case f.FilterOverrides.Given && !isObject(f.FilterOverrides.Value):
		return invalid(field+"filters_overrides", "Filters must be a dictionary")
	case f.Color.Value != nil && utf8.RuneCountInString(*f.Color.Value) > maxTileColor:
		return tooLong(field+"color", maxTileColor)
	case f.Text.Value != nil && utf8.RuneCountInString(*f.Text.Value) > maxTileText:
		return tooLong(field+"text.body", maxTileText)
	}
	return nil
}

func (f *TileFields) validateLayouts(field string) error {
	switch {
	case !f.Layouts.Given:
		return nil
	case !isObject(f.Layouts.Value):
		return invalid(field, "Layouts must be a dictionary")
	}
	return checkSize(field, "The layout of a tile", len(compact(f.Layouts.Value)), maxLayouts)
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

// put changes a tile of a dashboard, or adds one; at is its position in the request.
func (f *TileFields) put(t *tx, p *projectState, dashboard int64, at int, by author) error {
	d := p.dashboards.get(dashboard)
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
	tile := newTile(d.Project, d.ID, f.Insight)
	if found >= 0 {
		tile = d.Tiles[found]
	}
	if f.Text.Given {
		tile.Text = tile.Text.changed(f.Text.Value, by)
	}
	if on := f.Deleted.Given && !f.Deleted.Value || found < 0 || f.ID == 0; on && tile.Text == nil {
		if t.next.Insight(d.Project, tile.Insight) == nil {
			return &FieldError{
				Field: field + ".insight", Code: CodeNoObject, Message: fmt.Sprintf("Invalid pk \"%d\" - object does not exist.", tile.Insight),
			}
		}
		tile.delete(false, by.at)
	}
	tile.delete(f.Deleted.or(tile.Deleted), by.at)
	f.apply(&tile)
	switch {
	case found < 0:
		_, err := t.addTile(p, tile)
		return err
	case !f.Text.Given:
		return t.put(&tile)
	}
	if err := t.put(&tile); err != nil {
		return err
	}
	return t.putText(p, &tile)
}

// addTile adds a tile to a dashboard that has room for it, and returns its number.
func (t *tx) addTile(p *projectState, tile Tile) (int64, error) {
	if err := tile.checkNew(); err != nil {
		return 0, err
	}
	if err := p.checkRoom(tile.Dashboard); err != nil {
		return 0, err
	}
	tile.ID = t.number(KindTile)
	return tile.ID, t.put(&tile)
}

// checkRoom returns an error if a dashboard can have no more tiles.
func (p *projectState) checkRoom(dashboard int64) error {
	if n := len(p.dashboards.get(dashboard).Tiles); n >= MaxTiles {
		return limitReached("Dashboard %d has %d tiles, which is the most it can have. Delete some; deleted ones count until they are purged, "+
			"30 days later or by `caddy analytics project purge`.", dashboard, n)
	}
	return nil
}

// changed returns the text with another body. A nil text does not exist yet.
func (t *Text) changed(body *string, by author) *Text {
	if t == nil {
		return &Text{Body: body, CreatedBy: by.key, LastModifiedAt: by.at}
	}
	return &Text{ID: t.ID, Body: body, CreatedBy: t.CreatedBy, LastModifiedBy: by.key, LastModifiedAt: by.at}
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
