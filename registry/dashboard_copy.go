package registry

import (
	"fmt"
	"unicode/utf8"
)

// source returns the dashboard that a new one is made from, nil for none, and gives the new one what its fields do not set.
func (f *DashboardFields) source(p *projectState, created *Dashboard) (*Dashboard, error) {
	if f.From == 0 {
		return nil, nil
	}
	from := p.dashboards.get(f.From)
	if from == nil || from.Deleted {
		return nil, invalid("use_dashboard", "Invalid value provided")
	}
	created.Duplicate = true
	if string(created.Filters) == "{}" {
		created.Filters = from.Filters
	}
	if string(from.Variables) != "{}" {
		created.Variables = from.Variables
	}
	if colors := string(from.BreakdownColor); colors != "[]" && colors != "{}" && colors != "null" {
		created.BreakdownColor = from.BreakdownColor
	}
	if from.ColorTheme != nil {
		created.ColorTheme = from.ColorTheme
	}
	return from, nil
}

// fill puts the content of a dashboard on another one, which is new.
func (t *tx) fill(p *projectState, to int64, from *Dashboard, copies bool, by author) error {
	if from == nil {
		return nil
	}
	for i := range from.Tiles {
		tile := &from.Tiles[i]
		if tile.Deleted || !t.next.shows(tile) {
			continue
		}
		if older := p.tileOf(to, tile.contents()); older != nil && !copies { // the request itself put it there
			continue
		}
		put := t.copyTile
		if copies {
			put = func(p *projectState, from *Tile, to int64) error { return t.duplicateTile(p, from, to, by) }
		}
		if err := put(p, tile, to); err != nil {
			return err
		}
	}
	return nil
}

// duplicate adds tiles of a dashboard to it once more.
func (f *DashboardFields) duplicate(t *tx, p *projectState, dashboard int64, by author) error {
	for i := range f.Duplicate {
		tile := p.dashboards.get(dashboard).tile(f.Duplicate[i].ID)
		if tile == nil || !t.next.shows(tile) {
			return &FieldError{
				Field: fmt.Sprintf("duplicate_tiles.%d.id", i), Code: CodeNoObject,
				Message: fmt.Sprintf("Invalid pk \"%d\" - object does not exist.", f.Duplicate[i].ID),
			}
		}
		at := *tile
		at.Layouts = newTile(0, 0, 0).Layouts
		f.Duplicate[i].apply(&at)
		if err := t.duplicateTile(p, &at, dashboard, by); err != nil {
			return err
		}
	}
	return nil
}

// duplicateTile puts a copy of what a tile shows on a dashboard.
func (t *tx) duplicateTile(p *projectState, from *Tile, to int64, by author) error {
	next := *from
	next.Dashboard, next.Restored = to, false
	if from.Text != nil {
		next.Text = (*Text)(nil).changed(from.Text.Body, by)
	} else {
		copied, err := t.copyInsight(p, t.next.Insight(from.Project, from.Insight), by)
		if err != nil {
			return err
		}
		next.Insight = copied.ID
	}
	_, err := t.addTile(p, next)
	return err
}

// copySuffix ends the names of copies, as in PostHog.
const copySuffix = " (Copy)"

// copyInsight adds a copy of an insight, which is on no dashboard yet.
func (t *tx) copyInsight(p *projectState, from *Insight, by author) (*Insight, error) {
	next := *from
	if from.Name != nil && *from.Name != "" {
		next.Name = new(firstCharacters(*from.Name, maxInsightText-utf8.RuneCountInString(copySuffix)) + copySuffix)
	}
	next.CreatedAt, next.UpdatedAt, next.LastModifiedAt = by.at, by.at, by.at
	next.CreatedBy, next.LastModifiedBy = by.key, by.key
	next.ID, next.ShortID = t.number(KindInsight), newShortID(p)
	if err := t.put(&next); err != nil {
		return nil, err
	}
	t.view(&next, by.key, by.at)
	t.logInsight(ActivityCreated, &next, nil, by.key, by.at)
	return &next, nil
}

// firstCharacters cuts a text to a number of characters.
func firstCharacters(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most])
	}
	return text
}
