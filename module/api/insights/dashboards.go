package insights

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/caddy-analytics/caddy-analytics/internal/trigram"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Dashboards handles the routes of dashboards.
type Dashboards struct {
	Results  *Results
	Registry *registry.Registry
}

// Routes returns the routes of dashboards.
func (s *Dashboards) Routes() []api.Route {
	const read, write = "dashboard:read", "dashboard:write"
	return append(s.tileRoutes(), []api.Route{
		{Method: http.MethodGet, Pattern: "dashboards", Scope: read, Handler: s.list},
		{Method: http.MethodPost, Pattern: "dashboards", Scope: write, Handler: s.create},
		{Method: http.MethodGet, Pattern: "dashboards/:name", Scope: read, Handler: s.get},
		{Method: http.MethodPut, Pattern: "dashboards/:name", Scope: write, Handler: s.update},
		{Method: http.MethodPatch, Pattern: "dashboards/:name", Scope: write, Handler: s.update},
		{Method: http.MethodDelete, Pattern: "dashboards/:name", Scope: write, Handler: s.remove},
		{Method: http.MethodGet, Pattern: "dashboards/:name/run_insights", Scope: read, Handler: s.run},
		{Method: http.MethodPost, Pattern: "dashboards/:name/reorder_tiles", Scope: write, Handler: s.reorder},
	}...)
}

// answer answers with a dashboard and its insights, with their results in the request's mode.
func (s *Dashboards) answer(
	ctx context.Context, c *api.Caller, in *api.Input, params resultParams, status int, d *registry.Dashboard,
) (*api.Response, error) {
	var err error
	c = c.Now(s.Registry)
	if d = c.Snapshot.AnyDashboard(c.Project.ID, d.ID); d == nil { // what is remembered for a snapshot is of the dashboard in it
		return nil, api.NotFound("Not found.")
	}
	out := fullDashboard{
		dashboardRecord: recordDashboard(c, d), PersistedFilters: orNullObject(d.Filters), PersistedVariables: orNullObject(d.Variables),
		BreakdownColors: shownColors(d.BreakdownColor), DataColorThemeID: d.ColorTheme, QuickFilterIDs: []string{},
	}
	if out.Filters, err = merge(d.Filters, params.over.Filters); err != nil {
		return nil, err
	}
	if out.Variables, err = merge(currentOverrides(c, d.Variables, false), currentOverrides(c, params.over.Variables, false)); err != nil {
		return nil, err
	}
	out.Filters, out.Variables = orEmptyObject(out.Filters), orEmptyObject(out.Variables)
	var quotas execution.Quotas
	if out.Tiles, quotas, err = s.tiles(ctx, c, in, d, params); err != nil {
		return &api.Response{Quotas: quotas}, err
	}
	return api.Raw(status, appendTiles(jsontext.Append(nil, out), "tiles", out.Tiles, tileRecord.split)).With(quotas), nil
}

// maxDashboardBytes limits the insights of a dashboard: those that would take more bytes are returned without results.
const maxDashboardBytes = 64 << 20

// room is what the results of a dashboard take of maxDashboardBytes.
type room struct{ used atomic.Int64 }

// isFull reports whether there is no room for a further result, however small.
func (r *room) isFull() bool { return r.used.Load() >= maxDashboardBytes }

// reserve takes the bytes of a result before it is rendered, and reports whether they fit. The first result does, whatever its size.
func (r *room) reserve(n int64) bool {
	used := r.used.Add(n)
	if used <= maxDashboardBytes || used == n {
		return true
	}
	r.used.Add(-n)
	return false
}

// settle replaces the bytes reserved for a result by those that it takes.
func (r *room) settle(reserved int64, taken int) { r.used.Add(int64(taken) - reserved) }

// tiles returns the tiles of a dashboard in display order, with the results of their insights. A mistake in the query of an insight is reported in its
// tile.
func (s *Dashboards) tiles(ctx context.Context, c *api.Caller, in *api.Input, d *registry.Dashboard, params resultParams) ([]tileRecord, execution.Quotas, error) {
	tiles := make([]registry.Tile, 0, len(d.Tiles))
	for _, t := range d.Tiles {
		if !t.Deleted && (t.Text != nil || c.Snapshot.Insight(d.Project, t.Insight) != nil) {
			tiles = append(tiles, t)
		}
	}
	slices.SortStableFunc(tiles, func(a, b registry.Tile) int {
		ax, ay := placeOf(&a)
		bx, by := placeOf(&b)
		return cmp.Or(cmp.Compare(ay, by), cmp.Compare(ax, bx))
	})
	out := make([]tileRecord, len(tiles))
	level, _ := access(c, "insight")
	readable := c.Key.Allows("insight:read")
	params = params.several()
	var space room
	lent := api.Parts{Loan: in.Memory}
	wanted := func(i int) bool {
		return tiles[i].Text == nil && (params.only == nil || slices.Contains(params.only, tiles[i].ID))
	}
	insights := make([]shownInsight, len(tiles))
	if params.tables != nil {
		params.tables.tiles = make([]*table, len(tiles))
	}
	quotas, err := forEachConcurrently(ctx, len(tiles), func(ctx context.Context, i int) (execution.Quotas, error) {
		t := &tiles[i]
		out[i] = recordTile(c, t)
		out[i].Order = &i
		if !wanted(i) {
			return nil, nil
		}
		one := shownInsight{c.Snapshot.Insight(d.Project, t.Insight), t, d}
		if !readable { // like PostHog for an object without access
			out[i].Insight = jsontext.Append(nil, map[string]any{"id": one.ID, "short_id": one.ShortID, "user_access_level": level})
			return nil, nil
		}
		insights[i] = one
		if err := lent.Add(ctx, 2*int64(len(one.Query)+len(one.Filters))); err != nil { // once in the tile, and once in the response
			return nil, err
		}
		if params.tables != nil && !params.tables.hasRoom(i) {
			return nil, nil
		}
		asked := params
		asked.full = space.isFull()
		res, err := s.Results.result(ctx, c, in, one, asked)
		if res, err = asked.shown(ctx, res, err); err != nil {
			return res.Quotas, err
		}
		if res.mistake != nil {
			out[i].Error = &tileError{Type: "ValidationError", Message: res.failure}
		}
		if entry := res.Answer.Entry; entry != nil {
			out[i].LastRefresh, out[i].IsCached = &entry.ComputedAt, res.Answer.Status.Cached()
		}
		var reserved int64
		if entry := res.Answer.Entry; entry != nil {
			if reserved = entry.Size(); !space.reserve(reserved) {
				res = insightResult{plan: res.plan, query: res.query, Result: execution.Result{Quotas: res.Quotas}, failure: errTooMuchAtOnce}
				reserved, out[i].LastRefresh, out[i].IsCached = 0, nil, false
			}
			if err := lent.Add(ctx, 2*reserved); err != nil {
				return res.Quotas, err
			}
		}
		if params.tables != nil {
			shown := &table{one, res, s.Results.tableOf(c, res)}
			params.tables.put(i, shown)
			space.settle(reserved, len(shown.text))
			return res.Quotas, nil
		}
		out[i].Insight = s.Results.append(nil, c, one, res, nil)
		space.settle(reserved, len(out[i].Insight))
		return res.Quotas, nil
	})
	if err == nil && params.tables != nil && readable {
		params.tables.show(out, insights, wanted, func(one *table) []byte {
			return s.Results.append(nil, c, one.shownInsight, one.insightResult, nil)
		})
	}
	return out, quotas, err
}

// placeOf returns the position of a tile on a small screen; a tile without one comes after the others.
func placeOf(t *registry.Tile) (x, y float64) {
	const last = 100
	var layouts struct {
		SM struct {
			X *float64 `json:"x"`
			Y *float64 `json:"y"`
		} `json:"sm"`
	}
	_ = json.Unmarshal(t.Layouts, &layouts) // an invalid position counts as none
	x, y = last, last
	if layouts.SM.X != nil {
		x = *layouts.SM.X
	}
	if layouts.SM.Y != nil {
		y = *layouts.SM.Y
	}
	return x, y
}

// generatedName begins the names of the dashboards that PostHog creates for feature flags.
const generatedName = "Generated Dashboard"

// list answers GET dashboards/: pinned dashboards first, then by name.
func (s *Dashboards) list(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	given := in.URL.Query()
	search, err := api.SearchText(in)
	if err != nil {
		return nil, err
	}
	term, tagged := trigram.New(search), registry.HasTag(given["tags"])
	type row struct {
		*registry.Dashboard

		match *string // how a search found it
	}
	var found []row
	for _, d := range c.Snapshot.Dashboards(c.Project.ID) {
		if ctx.Err() != nil { // long descriptions take a while
			return nil, fmt.Errorf("searching dashboards: %w", context.Cause(ctx))
		}
		one := row{Dashboard: d}
		if len(given["tags"]) > 0 && !tagged(d.Tags) {
			continue
		}
		if pinned := given.Get("pinned"); pinned != "" && api.IsTrue(pinned) != d.Pinned {
			continue
		}
		if mode := given.Get("creation_mode"); mode != "" && mode != creationMode(d) {
			continue
		}
		if api.IsTrue(given.Get("exclude_generated")) && strings.HasPrefix(api.Deref(d.Name), generatedName) {
			continue
		}
		if search != "" {
			match := "exact"
			switch name := api.Deref(d.Name); {
			case trigram.Contains(search, append([]string{name, d.Description}, d.Tags...)...):
			case term.Similarity(name) >= api.NameSimilarity, term.Similarity(d.Description) >= descriptionSimilarity:
				match = "similar"
			default:
				continue
			}
			one.match = &match
		}
		found = append(found, one)
	}
	slices.SortStableFunc(found, func(a, b row) int {
		return cmp.Or(strings.Compare(api.Deref(a.match), api.Deref(b.match)), api.CompareBools(b.Pinned, a.Pinned), nullsLast(a.Name, b.Name))
	})
	return api.PageBy(in, found, func(one row) foundDashboard {
		return foundDashboard{recordDashboard(c, one.Dashboard), one.match}
	})
}

// findDashboard finds the dashboard named in the path.
func findDashboard(c *api.Caller, in *api.Input) (*registry.Dashboard, error) {
	if id, ok := parseNumber(in.At.Name); ok {
		if d := c.Snapshot.Dashboard(c.Project.ID, id); d != nil {
			return d, nil
		}
	}
	return nil, api.NotFound("Not found.")
}

func (s *Dashboards) get(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	d, err := findDashboard(c, in)
	if err != nil {
		return nil, err
	}
	params, err := readParams(c, in)
	if err != nil {
		return nil, err
	}
	return s.answer(ctx, c, in, params, http.StatusOK, d)
}

func (s *Dashboards) create(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	params, err := readParams(c, in)
	if err != nil {
		return nil, err
	}
	fields, err := readDashboard(c, in, true)
	if err != nil {
		return nil, err
	}
	d, err := s.Registry.CreateDashboard(ctx, c.Project.ID, fields, c.Key.ID, c.Start)
	if err != nil {
		return nil, err
	}
	return s.answer(ctx, c, in, params.afterWrite(), http.StatusCreated, d)
}

// update answers PUT and PATCH. A deleted dashboard is found only by a request that restores it.
func (s *Dashboards) update(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	id, ok := parseNumber(in.At.Name)
	if !ok {
		return nil, api.NotFound("Not found.")
	}
	fields, err := readDashboard(c, in, false)
	if err != nil {
		return nil, err
	}
	return s.change(ctx, c, in, id, fields)
}

// change changes a dashboard and answers with its new state.
func (s *Dashboards) change(ctx context.Context, c *api.Caller, in *api.Input, id int64, fields registry.DashboardFields) (*api.Response, error) {
	params, err := readParams(c, in)
	if err != nil {
		return nil, err
	}
	d, err := s.Registry.UpdateDashboard(ctx, c.Project.ID, id, fields, c.Key.ID, c.Start)
	switch {
	case errors.Is(err, registry.ErrInsights):
		return nil, api.MissingScope("insight:write")
	case err != nil:
		return nil, err
	}
	return s.answer(ctx, c, in, params.afterWrite(), http.StatusOK, d)
}

// remove answers DELETE. A PATCH can restore the dashboard. Its insights are kept.
func (s *Dashboards) remove(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	d, err := findDashboard(c, in)
	if err != nil {
		return nil, err
	}
	fields := registry.DashboardFields{Deleted: registry.To(true)}
	if _, err := s.Registry.UpdateDashboard(ctx, c.Project.ID, d.ID, fields, c.Key.ID, c.Start); err != nil {
		return nil, err
	}
	return api.NoContent(), nil
}
