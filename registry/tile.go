package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

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
	ShowDescription *bool `json:"show_description"`
	// Transparent reports whether to draw the tile without a background; nil leaves that to the client.
	Transparent     *bool           `json:"transparent_background,omitempty"`
	FilterOverrides json.RawMessage `json:"filter_overrides"` // an object: filters in place of the dashboard's
	Deleted         bool            `json:"deleted"`
	DeletedAt       time.Time       `json:"deleted_at,omitzero"` // zero: it is not deleted
	Restored        bool            `json:"restored,omitempty"`  // it was deleted before
}

// Text is what a tile without an insight shows.
type Text struct {
	ID             int64     `json:"id,omitempty"` // number of the tile that it was written for; 0: its own tile
	Body           *string   `json:"body"`         // Markdown, at most 4000 characters; nil for none
	CreatedBy      string    `json:"created_by"`
	LastModifiedBy string    `json:"last_modified_by"` // id of a key, as CreatedBy; empty while nobody has changed the text
	LastModifiedAt time.Time `json:"last_modified_at"`
}

// TileFields holds the fields of a tile that are to be set.
type TileFields struct {
	ID              int64          // 0: a new tile, or the one that Insight has on the dashboard
	Insight         int64          // of a new tile
	Text            Field[*string] // the body of a text; a new tile with one shows it
	Layouts         Field[json.RawMessage]
	Color           Field[*string]
	ShowDescription Field[*bool]
	Transparent     Field[*bool]
	FilterOverrides Field[json.RawMessage]
	Deleted         Field[bool]
}

// The most characters of a tile's color and of its text, and the most bytes of its layouts. PostHog's clients send two widths with some ten numbers each.
const (
	maxTileColor = 400
	maxTileText  = 4000
	maxLayouts   = 4 << 10
)

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

func (t *Tile) checkSize() error { return checkUndeleted(t.Deleted, t.checkNew) }

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

// delete sets whether the tile is deleted, and since when.
func (t *Tile) delete(deleted bool, at time.Time) {
	t.DeletedAt = since(t.DeletedAt, deleted, at)
	t.Restored = t.Restored || t.Deleted
	t.Deleted = deleted
}

func newTile(project, dashboard, insight int64) Tile {
	empty := json.RawMessage(`{}`)
	return Tile{Project: project, Dashboard: dashboard, Insight: insight, Layouts: empty, FilterOverrides: empty}
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

// put changes a tile of a dashboard, or adds one; at is its position in the request. As in PostHog, a number that no tile has is that of a tile that somebody else
// removed meanwhile: a text with it becomes a new tile, and anything else is left out.
func (f *TileFields) put(t *tx, p *projectState, dashboard int64, at int, by author) error {
	d := p.dashboards.get(dashboard)
	found := slices.IndexFunc(d.Tiles, func(t Tile) bool {
		return f.ID != 0 && t.ID == f.ID || f.ID == 0 && f.Insight != 0 && t.Insight == f.Insight
	})
	field := fmt.Sprintf("tiles.%d", at)
	switch {
	case found < 0 && f.ID != 0 && !f.Text.Given:
		return nil
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

// contents identifies what a tile shows, which can be on several dashboards, once on each: the number of the insight, or the number of the text, made negative.
func (t *Tile) contents() int64 {
	if t.Text != nil {
		return -t.TextID()
	}
	return t.Insight
}

// TextID returns the number of the text of a tile: the number of the tile that it was written for.
func (t *Tile) TextID() int64 {
	if t.Text.ID != 0 {
		return t.Text.ID
	}
	return t.ID
}

// AddText puts a new text on a dashboard, and returns its tile. A dashboard that does not exist or is deleted is ErrNotFound; mistakes are *FieldError.
func (r *Registry) AddText(ctx context.Context, project, dashboard int64, f TileFields, by string, now time.Time) (*Tile, error) {
	if err := f.validateText(); err != nil {
		return nil, err
	}
	at := moment(now)
	var added Tile
	err := r.write(ctx, project, func(t *tx) error {
		p, _, err := t.board(dashboard)
		if err != nil {
			return err
		}
		added = newTile(project, dashboard, 0)
		added.Text = added.Text.changed(f.Text.Value, author{by, at})
		f.apply(&added)
		if err := added.checkNew(); err != nil {
			return err
		}
		added.ID, err = t.addTile(p, added)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("adding a text to dashboard %d: %w", dashboard, err)
	}
	return &added, nil
}

// ChangeText changes the given fields of a text tile; a text that is on several dashboards changes on all of them. A tile that does not exist or is deleted is
// ErrNotFound; a tile that shows an insight, and other mistakes, are *FieldError.
func (r *Registry) ChangeText(ctx context.Context, project, dashboard, tile int64, f TileFields, by string, now time.Time) (*Tile, error) {
	if err := f.validateText(); err != nil {
		return nil, err
	}
	var changed Tile
	err := r.write(ctx, project, func(t *tx) error {
		p, d, err := t.board(dashboard)
		if err != nil {
			return err
		}
		before := d.tile(tile)
		switch {
		case before == nil:
			return ErrNotFound
		case before.Text == nil:
			return invalid("", "Tile is not a text tile.")
		}
		changed = *before
		f.apply(&changed)
		changed.Text = changed.Text.changed(f.Text.or(changed.Text.Body), author{by, moment(now)})
		if err := t.put(&changed); err != nil {
			return err
		}
		return t.putText(p, &changed)
	})
	if err != nil {
		return nil, fmt.Errorf("changing the text of tile %d: %w", tile, err)
	}
	return &changed, nil
}

// DeleteTile takes a tile off a dashboard, and moves those below it up. What the tile showed stays. A tile that does not exist or is deleted is ErrNotFound.
func (r *Registry) DeleteTile(ctx context.Context, project, dashboard, tile int64, now time.Time) error {
	err := r.write(ctx, project, func(t *tx) error {
		_, d, err := t.board(dashboard)
		if err != nil {
			return err
		}
		before := d.tile(tile)
		if before == nil {
			return ErrNotFound
		}
		gone := *before
		gone.delete(true, moment(now))
		if err := t.put(&gone); err != nil {
			return err
		}
		left := slices.DeleteFunc(slices.Clone(t.next.Dashboard(project, dashboard).Tiles), func(other Tile) bool { return other.Deleted })
		layouts := closeGaps(left)
		for _, moved := range left {
			if layouts[moved.ID] == nil {
				continue
			}
			moved.Layouts = layouts[moved.ID]
			if err := t.put(&moved); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("deleting tile %d: %w", tile, err)
	}
	return nil
}

// CopyTile puts what a tile of one dashboard shows on another one, in the same place and color, and returns the other dashboard. A dashboard or tile that does
// not exist or is deleted is ErrNotFound; what is already on the other dashboard is a *FieldError.
func (r *Registry) CopyTile(ctx context.Context, project, from, tile, to int64) (*Dashboard, error) {
	var copied Dashboard
	err := r.write(ctx, project, func(t *tx) error {
		p, _, err := t.board(to)
		if err != nil {
			return err
		}
		_, source, err := t.board(from)
		if err != nil {
			return err
		}
		shown := source.tile(tile)
		if shown == nil || !t.next.shows(shown) {
			return ErrNotFound
		}
		if err := t.copyTile(p, shown, to); err != nil {
			return err
		}
		copied = *t.next.Dashboard(project, to)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("copying tile %d to dashboard %d: %w", tile, to, err)
	}
	return &copied, nil
}

// MoveTile moves a tile to another dashboard, where it keeps its number, and returns the dashboard that it left. A dashboard or tile that does not exist or is
// deleted is ErrNotFound; what is already on the other dashboard is a *FieldError.
func (r *Registry) MoveTile(ctx context.Context, project, from, tile, to int64) (*Dashboard, error) {
	var left Dashboard
	err := r.write(ctx, project, func(t *tx) error {
		p, source, err := t.board(from)
		if err != nil {
			return err
		}
		shown := source.tile(tile)
		if shown == nil {
			return ErrNotFound
		}
		if _, _, err := t.board(to); err != nil {
			return err
		}
		moved := *shown
		if from != to {
			moved.Dashboard = to
			if err := t.moveTile(p, shown, &moved); err != nil {
				return err
			}
		}
		left = *t.next.Dashboard(project, from)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("moving tile %d to dashboard %d: %w", tile, to, err)
	}
	return &left, nil
}

// moveTile puts moved in place of was. An older, deleted tile with the same contents on the other dashboard is removed for good.
func (t *tx) moveTile(p *projectState, was, moved *Tile) error {
	older := p.tileOf(moved.Dashboard, was.contents())
	switch {
	case older != nil && !older.Deleted:
		return invalid("", "Invalid request data for moving tile.")
	case older != nil:
		gone := *older
		t.remove(&gone)
	}
	if err := p.checkRoom(moved.Dashboard); err != nil {
		return err
	}
	gone := *was
	t.remove(&gone)
	return t.put(moved)
}

// copyTile puts what a tile shows on another dashboard. An older, deleted tile with the same contents there is reused.
func (t *tx) copyTile(p *projectState, from *Tile, to int64) error {
	next := *from
	next.Dashboard = to
	older := p.tileOf(to, from.contents())
	switch {
	case older != nil && !older.Deleted && from.Text != nil:
		return invalid("", "This text card is already on the destination dashboard.")
	case older != nil && !older.Deleted:
		return invalid("", "This insight is already on the destination dashboard.")
	case older != nil:
		next.ID, next.Restored = older.ID, true
		next.Text = from.textOn(older.ID)
		return t.put(&next)
	}
	next.Restored = false
	next.Text = from.textOn(0)
	_, err := t.addTile(p, next)
	return err
}

// textOn returns the text of a tile in the form for the tile with another number; nil if the tile shows an insight.
func (t *Tile) textOn(other int64) *Text {
	if t.Text == nil {
		return nil
	}
	text := *t.Text
	if text.ID = t.TextID(); text.ID == other {
		text.ID = 0
	}
	return &text
}

// putText gives the text of a tile to all other tiles that show it, including deleted ones.
func (t *tx) putText(p *projectState, from *Tile) error {
	for _, other := range p.tilesWith(from.contents()) {
		if other.ID == from.ID {
			continue
		}
		other.Text = from.textOn(other.ID)
		if err := t.put(&other); err != nil {
			return err
		}
	}
	return nil
}

// board returns a dashboard of the write's project, and the project. A dashboard that does not exist or is deleted is ErrNotFound.
func (t *tx) board(id int64) (*projectState, *Dashboard, error) {
	p, err := t.state()
	if err != nil {
		return nil, nil, err
	}
	d := p.dashboards.get(id)
	if d == nil || d.Deleted {
		return nil, nil, ErrNotFound
	}
	return p, d, nil
}

// tile returns a tile that is not deleted; nil if there is none.
func (d *Dashboard) tile(id int64) *Tile {
	if at := slices.IndexFunc(d.Tiles, func(t Tile) bool { return t.ID == id && !t.Deleted }); at >= 0 {
		return &d.Tiles[at]
	}
	return nil
}

// shows reports whether the tile has something to show: its insight may be deleted.
func (s *Snapshot) shows(t *Tile) bool {
	return t.Text != nil || s.Insight(t.Project, t.Insight) != nil
}

// tileOf returns the tile of an insight or text on a dashboard, deleted or not; nil if there is none.
func (p *projectState) tileOf(dashboard, contents int64) *Tile {
	d := p.dashboards.get(dashboard)
	if at := slices.IndexFunc(d.Tiles, func(t Tile) bool { return t.contents() == contents }); at >= 0 {
		return &d.Tiles[at]
	}
	return nil
}

// validateText refuses fields that a text tile can't have.
func (f *TileFields) validateText() error {
	if err := f.validateLayouts("layouts"); err != nil {
		return err
	}
	switch {
	case f.Color.Value != nil && utf8.RuneCountInString(*f.Color.Value) > maxTileColor:
		return &FieldError{Field: "color", Code: CodeTooLong, Message: fmt.Sprintf("Color cannot exceed %d characters", maxTileColor)}
	case f.Text.Value != nil && utf8.RuneCountInString(*f.Text.Value) > maxTileText:
		return &FieldError{Field: "body", Code: CodeTooLong, Message: fmt.Sprintf("Text body cannot exceed %d characters", maxTileText)}
	}
	return nil
}

// apply writes the given fields about how a tile is drawn into it.
func (f *TileFields) apply(t *Tile) {
	t.Color, t.ShowDescription, t.Transparent = f.Color.or(t.Color), f.ShowDescription.or(t.ShowDescription), f.Transparent.or(t.Transparent)
	if f.Layouts.Given {
		t.Layouts = compact(f.Layouts.Value)
	}
	if f.FilterOverrides.Given {
		t.FilterOverrides = compact(f.FilterOverrides.Value)
	}
}
