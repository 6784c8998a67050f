package insights

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// tileRoutes returns the routes of single tiles: contract clients.md section 5.
func (s *Dashboards) tileRoutes() []api.Route {
	const read, write = "dashboard:read", "dashboard:write"
	return []api.Route{
		{Method: http.MethodGet, Pattern: "dashboards/widget_catalog", Scope: read, Handler: widgetCatalog},
		{Method: http.MethodPost, Pattern: "dashboards/:name/create_text_tile", Scope: write, Handler: s.createText},
		{Method: http.MethodPost, Pattern: "dashboards/:name/update_text_tile", Scope: write, Handler: s.updateText},
		{Method: http.MethodPost, Pattern: "dashboards/:name/delete_tile", Scope: write, Handler: s.deleteTile},
		{Method: http.MethodPost, Pattern: "dashboards/:name/copy_tile", Scope: write, Handler: s.copyTile},
		{Method: http.MethodPost, Pattern: "dashboards/:name/move_tile", Scope: write, Handler: s.moveTile},
		{Method: http.MethodPatch, Pattern: "dashboards/:name/move_tile", Scope: write, Handler: s.moveTile},
	}
}

// widgetCatalog answers GET dashboards/widget_catalog/: dashboards have no widgets.
func widgetCatalog(context.Context, *api.Caller, *api.Input) (*api.Response, error) {
	return api.JSON(http.StatusOK, map[string]any{"results": []struct{}{}}), nil
}

// tileFields reads the body of a request about tiles of the dashboard named in the path.
func tileFields(c *api.Caller, in *api.Input) (*registry.Dashboard, *api.Fields, error) {
	d, err := findDashboard(c, in)
	if err != nil {
		return nil, nil, err
	}
	r, err := readFields(in)
	return d, r, err
}

func (s *Dashboards) createText(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	d, r, err := tileFields(c, in)
	if err != nil {
		return nil, err
	}
	need(r, "body")
	fields := textFields(r)
	if r.Err != nil {
		return nil, r.Err
	}
	t, err := s.Registry.AddText(ctx, c.Project.ID, d.ID, fields, c.Key.ID, c.Start)
	if err != nil {
		return nil, err
	}
	return s.answerText(c, http.StatusCreated, t)
}

func (s *Dashboards) updateText(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	d, r, err := tileFields(c, in)
	if err != nil {
		return nil, err
	}
	tile, fields := number(r, "tile_id"), textFields(r)
	if r.Err != nil {
		return nil, r.Err
	}
	t, err := s.Registry.ChangeText(ctx, c.Project.ID, d.ID, tile, fields, c.Key.ID, c.Start)
	if err != nil {
		return nil, err
	}
	return s.answerText(c, http.StatusOK, t)
}

// answerText answers with the current state of a text tile.
func (s *Dashboards) answerText(c *api.Caller, status int, t *registry.Tile) (*api.Response, error) {
	c = c.Now(s.Registry)
	record, insight := recordTile(c, t).split()
	return api.Raw(status, appendTile(nil, jsontext.Append(nil, record), insight)), nil
}

func (s *Dashboards) deleteTile(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	d, r, err := tileFields(c, in)
	if err != nil {
		return nil, err
	}
	tile := number(r, "tile_id")
	if r.Err != nil {
		return nil, r.Err
	}
	if err := s.Registry.DeleteTile(ctx, c.Project.ID, d.ID, tile, c.Start); err != nil {
		return nil, err
	}
	return api.NoContent(), nil
}

// copyTile copies a tile of another dashboard to the one named in the path, and answers with the latter.
func (s *Dashboards) copyTile(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	d, r, err := tileFields(c, in)
	if err != nil {
		return nil, err
	}
	from, tile := number(r, "fromDashboardId"), number(r, "tileId")
	switch {
	case r.Err != nil:
		return nil, r.Err
	case from == d.ID:
		return nil, api.Invalid("", "invalid_input", "Destination must be a different dashboard than the source.")
	}
	params, err := readParams(c, in)
	if err != nil {
		return nil, err
	}
	copied, err := s.Registry.CopyTile(ctx, c.Project.ID, from, tile, d.ID)
	if err != nil {
		return nil, err
	}
	return s.answer(ctx, c, in, params.afterWrite(), http.StatusOK, copied)
}

// moveTile moves a tile of the dashboard named in the path to another one, and answers with the dashboard that it left. Clients of 2025 call the other one
// toDashboard.
func (s *Dashboards) moveTile(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	d, r, err := tileFields(c, in)
	if err != nil {
		return nil, err
	}
	const newName, oldName = "to_dashboard", "toDashboard"
	name := newName
	if _, old := r.All[oldName]; old && r.All[newName] == nil {
		name = oldName
	}
	to, tile := number(r, name), movedTile(r)
	if r.Err != nil {
		return nil, r.Err
	}
	params, err := readParams(c, in)
	if err != nil {
		return nil, err
	}
	left, err := s.Registry.MoveTile(ctx, c.Project.ID, d.ID, tile, to)
	if err != nil {
		return nil, err
	}
	return s.answer(ctx, c, in, params.afterWrite(), http.StatusOK, left)
}

// movedTile reads the id of a tile, which is a member of an object: clients of 2025 send the whole tile.
func movedTile(r *api.Fields) int64 {
	need(r, "tile")
	tile := members(r, "tile")
	id := number(tile, "id")
	r.Err = tile.Err
	return id
}

// textFields reads the fields of a text tile. As in PostHog, it trims the spaces at the ends of the body.
func textFields(r *api.Fields) registry.TileFields {
	f := registry.TileFields{Color: api.Change[*string](r, "color"), Layouts: layouts(r)}
	body := api.Change[string](r, "body")
	if !body.Given {
		return f
	}
	text := strings.TrimSpace(body.Value)
	if text == "" {
		r.Fail("body", "blank", "This field may not be blank.")
	}
	f.Text = registry.To(&text)
	return f
}

// layouts reads the positions of a tile in the grids for PostHog's two screen widths, and ignores everything else.
func layouts(r *api.Fields) registry.Field[json.RawMessage] {
	if _, given := r.All["layouts"]; !given {
		return registry.Field[json.RawMessage]{}
	}
	all := members(r, "layouts")
	out := make(map[string]map[string]int64)
	for _, width := range []string{"sm", "xs"} {
		if _, given := all.All[width]; !given {
			continue
		}
		at := members(all, width)
		out[width] = make(map[string]int64)
		for _, name := range []string{"x", "y", "w", "h"} {
			if n := api.Change[int64](at, name); n.Given {
				out[width][name] = n.Value
			}
		}
		all.Err = at.Err
	}
	r.Err = all.Err
	return registry.To[json.RawMessage](jsontext.Append(nil, out))
}

// members reads the members of an object that must not be null.
func members(r *api.Fields, name string) *api.Fields {
	inner := &api.Fields{Prefix: r.Prefix + name + "__", Err: r.Err}
	raw, ok := r.Take(name, false)
	if ok && (json.Unmarshal(raw, &inner.All) != nil || inner.All == nil) {
		r.Fail(name, "invalid_input", "Invalid data. Expected a dictionary, but got %s.", api.PythonType(raw))
	}
	inner.Err = r.Err
	return inner
}

// need refuses a missing field.
func need(r *api.Fields, name string) {
	if _, given := r.All[name]; !given {
		r.Fail(name, "required", "This field is required.")
	}
}

// number reads a required number.
func number(r *api.Fields, name string) int64 {
	need(r, name)
	return api.Change[int64](r, name).Value
}
