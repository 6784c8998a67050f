package insights

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// runRecord is the result of one insight of a dashboard.
type runRecord struct {
	ID      int64           `json:"id"`
	Order   int             `json:"order"`
	Insight json.RawMessage `json:"-"` // see appendTiles
	Error   *tileError      `json:"error,omitempty"`
}

func (r runRecord) split() (record any, insight json.RawMessage) { return r, r.Insight }

// run answers GET dashboards/:id/run_insights/: the insights with their results in the mode of the parameter refresh. With output_format=optimized, the
// default, a result is a text table of at most max_result_chars. tile_ids selects the tiles to run.
func (s *Dashboards) run(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	d, err := findDashboard(c, in)
	if err != nil {
		return nil, err
	}
	params, err := readParams(c, in)
	if err != nil {
		return nil, err
	}
	form := in.URL.Query().Get("output_format")
	switch form {
	case "", "optimized":
		most, err := readTableLimit(in)
		if err != nil {
			return nil, err
		}
		params.text, params.tables = true, &tables{most: most}
	case "json":
	default:
		return nil, api.Invalid("output_format", "invalid_choice", "%q is not a valid choice.", form)
	}
	if params.only, err = tileIDs(in); err != nil {
		return nil, err
	}
	for _, id := range params.only {
		if !slices.ContainsFunc(d.Tiles, func(t registry.Tile) bool { return t.ID == id && !t.Deleted && t.Text == nil }) {
			return nil, api.Invalid("tile_ids", "invalid_input", "The dashboard has no insight on a tile %d.", id)
		}
	}
	tiles, quotas, err := s.tiles(ctx, c, in, d, params)
	if err != nil {
		return &api.Response{Quotas: quotas}, err
	}
	results := make([]runRecord, 0, len(tiles))
	for _, t := range tiles {
		if t.Insight != nil {
			results = append(results, runRecord{ID: t.ID, Order: *t.Order, Insight: t.Insight, Error: t.Error})
		}
	}
	return api.Raw(http.StatusOK, appendTiles([]byte("{}"), "results", results, runRecord.split)).With(quotas), nil
}

// tileIDs reads tile_ids, numbers separated by commas; nil if there are none.
func tileIDs(in *api.Input) ([]int64, error) {
	var ids []int64
	for part := range strings.SplitSeq(in.URL.Query().Get("tile_ids"), ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		id, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			return nil, api.Invalid("tile_ids", "invalid_input", "tile_ids must be a comma-separated list of integers.")
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// The grid of a dashboard on a large screen, and the default size of tiles there.
const (
	gridColumns = 12
	tileWidth   = 6
	tileHeight  = 5
)

// preserve is the layout in which tiles keep their sizes.
const preserve = "preserve"

// tilesPerRow are the layouts that give all tiles of a row the same size.
var tilesPerRow = map[string]int{"full_width": 1, "two_column": 2, "three_column": 3}

// reorder answers POST dashboards/:id/reorder_tiles/: it places the tiles of tile_order in the grid again, in that order. Other tiles stay where they are.
func (s *Dashboards) reorder(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	d, err := findDashboard(c, in)
	if err != nil {
		return nil, err
	}
	r, err := readFields(in)
	if err != nil {
		return nil, err
	}
	order := items[int64](r, "tile_order").Value
	layout := preserve
	r.Read("layout", &layout)
	switch {
	case r.Err != nil:
		return nil, r.Err
	case len(order) == 0:
		return nil, api.Invalid("tile_order", "invalid_input", "The numbers of the tiles are required, in their new order.")
	case layout != preserve && tilesPerRow[layout] == 0:
		return nil, api.Invalid("layout", "invalid_choice", "%q is not a valid choice.", layout)
	}
	tiles, err := inOrder(d, order)
	if err != nil {
		return nil, err
	}
	change, g := registry.DashboardFields{}, grid{layout: layout}
	for _, t := range tiles {
		layouts, err := g.add(t.Layouts)
		if err != nil {
			return nil, err
		}
		change.Tiles = append(change.Tiles, registry.TileFields{ID: t.ID, Layouts: registry.To(layouts)})
	}
	return s.change(ctx, c, in, d.ID, change)
}

// inOrder returns the tiles of a dashboard with these numbers.
func inOrder(d *registry.Dashboard, order []int64) ([]registry.Tile, error) {
	seen := make(map[int64]bool, len(order))
	for _, id := range order {
		if seen[id] {
			return nil, api.Invalid("tile_order", "invalid_input", "The tile %d is named twice.", id)
		}
		seen[id] = true
	}
	var tiles []registry.Tile
	for _, id := range order {
		i := slices.IndexFunc(d.Tiles, func(t registry.Tile) bool { return t.ID == id && !t.Deleted })
		if i < 0 {
			return nil, api.NotFound(fmt.Sprintf("The dashboard has no tile %d.", id))
		}
		tiles = append(tiles, d.Tiles[i])
	}
	return tiles, nil
}

// grid places tiles: on a large screen each where it can be highest, and then leftmost, and on a small one below one another.
type grid struct {
	layout string
	ends   [gridColumns]int // the first free row by column
	end    int              // the first free row on a small screen
}

// maxTileRows is the height of the tallest tile: rows of many tiles can be added.
const maxTileRows = 1 << 20

// add places the next tile, and returns its layouts. It keeps other widths of the screen, and other members.
func (g *grid) add(raw json.RawMessage) (json.RawMessage, error) {
	layouts := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &layouts); err != nil {
		return nil, fmt.Errorf("reading layouts: %w", err)
	}
	w, h := sizeOf(layouts["sm"])
	if perRow := tilesPerRow[g.layout]; perRow > 0 {
		w, h = gridColumns/perRow, tileHeight
	}
	x, y := 0, maxTileRows*registry.MaxTiles
	for at := range gridColumns - w + 1 {
		if row := slices.Max(g.ends[at : at+w]); row < y {
			x, y = at, row
		}
	}
	for at := x; at < x+w; at++ {
		g.ends[at] = y + h
	}
	layouts["sm"] = withPlace(layouts["sm"], map[string]any{"x": x, "y": y, "w": w, "h": h})
	layouts["xs"] = withPlace(layouts["xs"], map[string]any{"x": 0, "y": g.end, "w": 1, "h": h})
	g.end += h
	return jsontext.Append(nil, layouts), nil
}

// sizeOf returns the size of a tile in a layout. What is no integer above 0 has its default.
func sizeOf(layout json.RawMessage) (w, h int) {
	var size struct{ W, H int }
	_ = json.Unmarshal(layout, &size) // an invalid value from a client is replaced
	if size.W <= 0 {
		size.W = tileWidth
	}
	if size.H <= 0 {
		size.H = tileHeight
	}
	return min(size.W, gridColumns), min(size.H, maxTileRows)
}

// withPlace returns a layout with another place and size.
func withPlace(layout json.RawMessage, place map[string]any) json.RawMessage {
	members := map[string]any{}
	_ = json.Unmarshal(layout, &members) // an invalid value from a client is replaced
	if members == nil {
		members = map[string]any{}
	}
	maps.Copy(members, place)
	return jsontext.Append(nil, members)
}
