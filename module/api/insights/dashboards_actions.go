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

// place is the position and size of a tile in the grid. Other members of its layout are kept.
type place struct{ x, y, w, h int }

// reorder answers POST dashboards/:id/reorder_tiles/: it places the tiles in the grid again, row by row, in the order of tile_order. Tiles that are not in
// it come last.
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
	var layout string
	r.Read("layout", &layout)
	switch {
	case r.Err != nil:
		return nil, r.Err
	case len(order) == 0:
		return nil, api.Invalid("tile_order", "invalid_input", "The numbers of the tiles are required, in their new order.")
	}
	if !slices.Contains([]string{"", "preserve", "two_column", "full_width"}, layout) {
		return nil, api.Invalid("layout", "invalid_choice", "%q is not a valid choice.", layout)
	}
	tiles, err := inOrder(d, order)
	if err != nil {
		return nil, err
	}
	change := registry.DashboardFields{}
	at := place{}
	for _, t := range tiles {
		layouts, err := placed(t.Layouts, layout, &at)
		if err != nil {
			return nil, err
		}
		change.Tiles = append(change.Tiles, registry.TileFields{ID: t.ID, Layouts: registry.To(layouts)})
	}
	return s.change(ctx, c, in, d.ID, change)
}

// inOrder returns the tiles of a dashboard that are not deleted, those in order first.
func inOrder(d *registry.Dashboard, order []int64) ([]registry.Tile, error) {
	rest := slices.DeleteFunc(slices.Clone(d.Tiles), func(t registry.Tile) bool { return t.Deleted })
	var tiles []registry.Tile
	seen := make(map[int64]bool, len(order))
	for _, id := range order {
		if seen[id] {
			return nil, api.Invalid("tile_order", "invalid_input", "The tile %d is named twice.", id)
		}
		seen[id] = true
	}
	for _, id := range order {
		i := slices.IndexFunc(rest, func(t registry.Tile) bool { return t.ID == id })
		if i < 0 {
			return nil, api.NotFound(fmt.Sprintf("The dashboard has no tile %d.", id))
		}
		tiles = append(tiles, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	return append(tiles, rest...), nil
}

// placed returns the layouts of a tile that follows the one at the place at, and advances at.
func placed(raw json.RawMessage, layout string, at *place) (json.RawMessage, error) {
	layouts := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &layouts); err != nil {
		return nil, fmt.Errorf("reading layouts: %w", err)
	}
	members := map[string]any{}
	size := struct {
		W int `json:"w"`
		H int `json:"h"`
	}{}
	if sm, ok := layouts["sm"]; ok { // an invalid value from a client is replaced
		_ = json.Unmarshal(sm, &members)
		_ = json.Unmarshal(sm, &size)
	}
	switch {
	case layout == "full_width":
		size.W, size.H = gridColumns, tileHeight
	case layout == "two_column" || size.W <= 0 || size.H <= 0:
		size.W, size.H = tileWidth, tileHeight
	}
	size.W = min(size.W, gridColumns)
	if at.x+at.w+size.W > gridColumns {
		at.x, at.y, at.w, at.h = 0, at.y+at.h, 0, 0
	}
	at.x += at.w
	at.w, at.h = size.W, max(at.h, size.H)
	if members == nil {
		members = map[string]any{}
	}
	maps.Copy(members, map[string]any{"x": at.x, "y": at.y, "w": size.W, "h": size.H})
	layouts["sm"] = jsontext.Append(nil, members)
	return jsontext.Append(nil, layouts), nil
}
