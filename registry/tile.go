package registry

import (
	"context"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

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

// CopyTile puts what a tile of one dashboard shows on another one, in the same place and colour, and returns the other dashboard. A dashboard or tile that does
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
	t.Color, t.ShowDescription = f.Color.or(t.Color), f.ShowDescription.or(t.ShowDescription)
	if f.Layouts.Given {
		t.Layouts = compact(f.Layouts.Value)
	}
	if f.FilterOverrides.Given {
		t.FilterOverrides = compact(f.FilterOverrides.Value)
	}
}
