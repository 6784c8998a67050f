package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

const dashboardColumns = `id, project_id, name, description, pinned, deleted, filters, variables, breakdown_color, color_theme, tags,
	created_at, created_by, deleted_at`

func scanDashboard(row scanner) (d registry.Dashboard, err error) {
	var filters, variables, colors string
	var tags sql.NullString
	var created, deleted sql.NullInt64
	if err := row.Scan(&d.ID, &d.Project, &d.Name, &d.Description, &d.Pinned, &d.Deleted, &filters, &variables, &colors, &d.ColorTheme,
		&tags, &created, &d.CreatedBy, &deleted); err != nil {
		return d, err
	}
	d.Filters, d.Variables, d.BreakdownColor = json.RawMessage(filters), json.RawMessage(variables), json.RawMessage(colors)
	d.CreatedAt, d.DeletedAt = fromTime(created), fromTime(deleted)
	d.Tags, err = fromJSON[string](tags)
	return d, err
}

// Dashboard returns a dashboard with its tiles, deleted ones too.
func (t *tx) Dashboard(ctx context.Context, project, id int64) (registry.Dashboard, error) {
	d, err := scanDashboard(t.sql.QueryRowContext(ctx, `SELECT `+dashboardColumns+` FROM dashboards WHERE project_id = ? AND id = ?`, project, id))
	if err != nil {
		return d, told(err, "reading a dashboard")
	}
	d.Tiles, err = t.tiles(ctx, selectTiles+`dashboard_id = ? ORDER BY id`, id)
	return d, err
}

// InsertDashboard adds a dashboard.
func (t *tx) InsertDashboard(ctx context.Context, d registry.Dashboard) (int64, error) {
	tags, err := toJSON(d.Tags)
	if err != nil {
		return 0, err
	}
	return t.insert(ctx, d.Project, "adding a dashboard",
		`INSERT INTO dashboards (project_id, name, description, pinned, deleted, filters, variables, breakdown_color, color_theme, tags, created_at, created_by,
			deleted_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		d.Project, d.Name, d.Description, d.Pinned, d.Deleted, string(d.Filters), string(d.Variables), string(d.BreakdownColor), d.ColorTheme,
		tags, toTime(d.CreatedAt), d.CreatedBy, toTime(d.DeletedAt))
}

// UpdateDashboard replaces what of a dashboard can change.
func (t *tx) UpdateDashboard(ctx context.Context, d registry.Dashboard) error {
	tags, err := toJSON(d.Tags)
	if err != nil {
		return err
	}
	return t.exec(ctx, d.Project, "changing a dashboard",
		`UPDATE dashboards SET name = ?, description = ?, pinned = ?, deleted = ?, filters = ?, variables = ?, breakdown_color = ?, color_theme = ?, tags = ?,
			deleted_at = ?
		WHERE id = ? AND project_id = ?`,
		d.Name, d.Description, d.Pinned, d.Deleted, string(d.Filters), string(d.Variables), string(d.BreakdownColor), d.ColorTheme, tags,
		toTime(d.DeletedAt), d.ID, d.Project)
}

const tileColumns = `id, project_id, dashboard_id, insight_id, text, layouts, color, show_description, filter_overrides, deleted, deleted_at`

func scanTile(row scanner) (tile registry.Tile, err error) {
	var layouts, overrides string
	var insight sql.NullInt64
	var text sql.NullString
	var deleted sql.NullInt64
	if err := row.Scan(&tile.ID, &tile.Project, &tile.Dashboard, &insight, &text, &layouts, &tile.Color, &tile.ShowDescription, &overrides,
		&tile.Deleted, &deleted); err != nil {
		return tile, err
	}
	tile.DeletedAt = fromTime(deleted)
	tile.Insight, tile.Layouts, tile.FilterOverrides = insight.Int64, json.RawMessage(layouts), json.RawMessage(overrides)
	if text.Valid {
		if err := json.Unmarshal([]byte(text.String), &tile.Text); err != nil {
			return tile, fmt.Errorf("reading a text: %w", err)
		}
	}
	return tile, nil
}

// shownBy is what the columns insight_id and text of a tile hold.
func shownBy(tile *registry.Tile) (insight sql.NullInt64, text sql.NullString, err error) {
	if tile.Text == nil {
		return sql.NullInt64{Int64: tile.Insight, Valid: true}, text, nil
	}
	raw, err := json.Marshal(tile.Text)
	if err != nil {
		return insight, text, fmt.Errorf("writing a text: %w", err)
	}
	return insight, orNull(raw), nil
}

const selectTiles = `SELECT ` + tileColumns + ` FROM dashboard_tiles WHERE `

// tiles returns the tiles that a query selects.
func (t *tx) tiles(ctx context.Context, query string, args ...any) ([]registry.Tile, error) {
	const doing = "reading the tiles of a dashboard"
	rows, err := t.sql.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, told(err, doing)
	}
	defer func() { _ = rows.Close() }() // what went wrong is in rows.Err
	var tiles []registry.Tile
	for rows.Next() {
		tile, err := scanTile(rows)
		if err != nil {
			return nil, told(err, doing)
		}
		tiles = append(tiles, tile)
	}
	return tiles, told(rows.Err(), doing)
}

// TilesOf returns the tiles of an insight.
func (t *tx) TilesOf(ctx context.Context, project, insight int64) ([]registry.Tile, error) {
	return t.tiles(ctx, selectTiles+`project_id = ? AND insight_id = ? ORDER BY id`, project, insight)
}

// InsertTile adds a tile.
func (t *tx) InsertTile(ctx context.Context, tile registry.Tile) (int64, error) {
	insight, text, err := shownBy(&tile)
	if err != nil {
		return 0, err
	}
	return t.insert(ctx, tile.Project, "adding a tile to a dashboard",
		`INSERT INTO dashboard_tiles (project_id, dashboard_id, insight_id, text, layouts, color, show_description, filter_overrides, deleted, deleted_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		tile.Project, tile.Dashboard, insight, text, string(tile.Layouts), tile.Color, tile.ShowDescription, string(tile.FilterOverrides), tile.Deleted,
		toTime(tile.DeletedAt))
}

// UpdateTile replaces what of a tile can change.
func (t *tx) UpdateTile(ctx context.Context, tile registry.Tile) error {
	_, text, err := shownBy(&tile)
	if err != nil {
		return err
	}
	return t.exec(ctx, tile.Project, "changing a tile of a dashboard",
		`UPDATE dashboard_tiles SET text = ?, layouts = ?, color = ?, show_description = ?, filter_overrides = ?, deleted = ?, deleted_at = ?
		WHERE id = ? AND project_id = ?`,
		text, string(tile.Layouts), tile.Color, tile.ShowDescription, string(tile.FilterOverrides), tile.Deleted, toTime(tile.DeletedAt),
		tile.ID, tile.Project)
}
