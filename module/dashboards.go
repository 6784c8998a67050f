package module

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddy-analytics/caddy-analytics/internal/trigram"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// dashboardRecord is a dashboard as lists show it. Nobody's visits are kept, and nothing is shared or restricted, so the
// members about that always are the same.
type dashboardRecord struct {
	ID                        int64      `json:"id"`
	Name                      *string    `json:"name"`
	Description               string     `json:"description"`
	Pinned                    bool       `json:"pinned"`
	CreatedAt                 time.Time  `json:"created_at"`
	CreatedBy                 *api.User  `json:"created_by"`
	LastAccessedAt            *time.Time `json:"last_accessed_at"`
	LastViewedAt              *time.Time `json:"last_viewed_at"`
	IsShared                  bool       `json:"is_shared"`
	Deleted                   bool       `json:"deleted"`
	CreationMode              string     `json:"creation_mode"`
	Tags                      []string   `json:"tags"`
	RestrictionLevel          int        `json:"restriction_level"`
	EffectiveRestrictionLevel int        `json:"effective_restriction_level"`
	EffectivePrivilegeLevel   int        `json:"effective_privilege_level"`
	UserAccessLevel           string     `json:"user_access_level"`
	AccessControlVersion      string     `json:"access_control_version"`
	LastRefresh               *time.Time `json:"last_refresh"`
	TeamID                    int64      `json:"team_id"`
	SearchMatchType           *string    `json:"search_match_type,omitempty"`
}

// fullDashboard is a dashboard with what is on it.
type fullDashboard struct {
	dashboardRecord
	Filters            json.RawMessage `json:"filters"`
	Variables          json.RawMessage `json:"variables"`
	PersistedFilters   json.RawMessage `json:"persisted_filters"`
	PersistedVariables json.RawMessage `json:"persisted_variables"`
	BreakdownColors    json.RawMessage `json:"breakdown_colors"`
	DataColorThemeID   *int            `json:"data_color_theme_id"`
	QuickFilterIDs     []string        `json:"quick_filter_ids"`
	Tiles              []tileRecord    `json:"tiles"`
}

// tileRecord is one insight on a dashboard, with its result, or one text.
type tileRecord struct {
	ID                    int64           `json:"id"`
	Order                 int             `json:"order"`
	Insight               json.RawMessage `json:"insight"`
	Text                  *textRecord     `json:"text"`
	ButtonTile            json.RawMessage `json:"button_tile"`
	Layouts               json.RawMessage `json:"layouts"`
	Color                 *string         `json:"color"`
	ShowDescription       *bool           `json:"show_description"`
	TransparentBackground *bool           `json:"transparent_background"`
	FiltersOverrides      json.RawMessage `json:"filters_overrides"`
	LastRefresh           *time.Time      `json:"last_refresh"`
	IsCached              bool            `json:"is_cached"`
}

// textRecord is the text of a tile. It goes by the number of its tile.
type textRecord struct {
	ID             int64     `json:"id"`
	Body           *string   `json:"body"`
	CreatedBy      *api.User `json:"created_by"`
	LastModifiedAt time.Time `json:"last_modified_at"`
	LastModifiedBy *api.User `json:"last_modified_by"`
	Team           int64     `json:"team"`
}

func (rq *request) recordText(t *registry.Tile) *textRecord {
	return &textRecord{
		ID: t.ID, Body: t.Text.Body, CreatedBy: rq.User(t.Text.CreatedBy), LastModifiedAt: t.Text.LastModifiedAt,
		LastModifiedBy: rq.User(t.Text.LastModifiedBy), Team: t.Project,
	}
}

func (rq *request) recordDashboard(d *registry.Dashboard) dashboardRecord {
	record := dashboardRecord{
		ID: d.ID, Name: d.Name, Description: d.Description, Pinned: d.Pinned, CreatedAt: d.CreatedAt, CreatedBy: rq.User(d.CreatedBy),
		Deleted: d.Deleted, CreationMode: "default", Tags: d.Tags, RestrictionLevel: anyoneMayEdit, EffectiveRestrictionLevel: anyoneMayEdit,
		AccessControlVersion: "v2", TeamID: d.Project,
	}
	record.UserAccessLevel, record.EffectivePrivilegeLevel = rq.access("dashboard")
	return record
}

// writeDashboard answers with a dashboard and its insights; their results come in the mode that the request names.
func (rq *request) writeDashboard(status int, d *registry.Dashboard) error {
	params, err := rq.insightParams()
	if err != nil {
		return err
	}
	rq.Snapshot = rq.rt.registry.Snapshot() // after a write: with what it changed
	out := fullDashboard{
		dashboardRecord: rq.recordDashboard(d), PersistedFilters: orNullObject(d.Filters), PersistedVariables: orNullObject(d.Variables),
		BreakdownColors: d.BreakdownColor, DataColorThemeID: d.ColorTheme, QuickFilterIDs: []string{},
	}
	if out.Filters, err = merge(d.Filters, params.over.Filters); err != nil {
		return err
	}
	if out.Variables, err = merge(d.Variables, params.over.Variables); err != nil {
		return err
	}
	out.Filters, out.Variables = orEmptyObject(out.Filters), orEmptyObject(out.Variables)
	if out.Tiles, err = rq.recordTiles(d, params); err != nil {
		return err
	}
	rq.reply(status, out)
	return nil
}

func orEmptyObject(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage(`{}`)
	}
	return raw
}

func orNullObject(raw json.RawMessage) json.RawMessage {
	if isEmptyObject(raw) {
		return nil
	}
	return raw
}

// maxDashboardBytes is what the insights of a dashboard take at most: once they take more, the others are shown without their results.
const maxDashboardBytes = 64 << 20

// recordTiles gives the tiles of a dashboard in the order in which they stand there.
func (rq *request) recordTiles(d *registry.Dashboard, params insightParams) ([]tileRecord, error) {
	tiles := make([]registry.Tile, 0, len(d.Tiles))
	for _, t := range d.Tiles {
		if !t.Deleted && (t.Text != nil || rq.Snapshot.Insight(d.Project, t.Insight) != nil) {
			tiles = append(tiles, t)
		}
	}
	slices.SortStableFunc(tiles, func(a, b registry.Tile) int {
		ax, ay := placeOf(&a)
		bx, by := placeOf(&b)
		return cmp.Or(cmp.Compare(ay, by), cmp.Compare(ax, bx))
	})
	out := make([]tileRecord, len(tiles))
	level, _ := rq.access("insight")
	readable := rq.Key.Allows("insight:read")
	params = params.several()
	var size atomic.Int64
	err := rq.sideBySide(len(tiles), func(own *request, i int) error {
		t := &tiles[i]
		out[i] = tileRecord{
			ID: t.ID, Order: i, Layouts: t.Layouts, Color: t.Color, ShowDescription: t.ShowDescription, FiltersOverrides: t.FilterOverrides,
		}
		if t.Text != nil {
			out[i].Text = own.recordText(t)
			return nil
		}
		s := shownInsight{own.Snapshot.Insight(d.Project, t.Insight), t, d}
		if !readable { // as the peer shows what the caller has no access to
			out[i].Insight = jsontext.Append(nil, map[string]any{"id": s.ID, "short_id": s.ShortID, "user_access_level": level})
			return nil
		}
		asked := params
		asked.full = size.Load() > maxDashboardBytes
		res, err := own.result(s, asked)
		if err != nil {
			return err
		}
		if entry := res.Answer.Entry; entry != nil {
			out[i].LastRefresh, out[i].IsCached = &entry.ComputedAt, res.Answer.Status.Cached()
		}
		out[i].Insight = own.appendInsight(nil, s, res, nil)
		size.Add(int64(len(out[i].Insight)))
		return nil
	})
	return out, err
}

// placeOf is where a tile stands on a small screen; one without a place follows the others.
func placeOf(t *registry.Tile) (x, y float64) {
	const behind = 100
	var layouts struct {
		SM struct {
			X *float64 `json:"x"`
			Y *float64 `json:"y"`
		} `json:"sm"`
	}
	_ = json.Unmarshal(t.Layouts, &layouts) // what is no place is none
	x, y = behind, behind
	if layouts.SM.X != nil {
		x = *layouts.SM.X
	}
	if layouts.SM.Y != nil {
		y = *layouts.SM.Y
	}
	return x, y
}

// listDashboards answers GET dashboards/: those that are pinned first, then by name.
func (rq *request) listDashboards() error {
	given := rq.r.URL.Query()
	term := trigram.New(given.Get("search"))
	records := []dashboardRecord{}
	for _, d := range rq.Snapshot.Dashboards(rq.Project.ID) {
		record := rq.recordDashboard(d)
		if tags := given["tags"]; len(tags) > 0 && !slices.ContainsFunc(d.Tags, func(tag string) bool { return slices.Contains(tags, tag) }) {
			continue
		}
		if pinned := given.Get("pinned"); pinned != "" && api.IsTrue(pinned) != d.Pinned {
			continue
		}
		if search := strings.TrimSpace(given.Get("search")); search != "" {
			match := "exact"
			switch name := api.Deref(d.Name); {
			case trigram.Contains(search, append([]string{name, d.Description}, d.Tags...)...):
			case term.Similarity(name) >= nameSimilarity, term.Similarity(d.Description) >= descriptionSimilarity:
				match = "similar"
			default:
				continue
			}
			record.SearchMatchType = &match
		}
		records = append(records, record)
	}
	slices.SortStableFunc(records, func(a, b dashboardRecord) int {
		return cmp.Or(strings.Compare(api.Deref(a.SearchMatchType), api.Deref(b.SearchMatchType)), compareBools(b.Pinned, a.Pinned), nullsLast(a.Name, b.Name))
	})
	return writePage(rq, records)
}

// dashboard finds the dashboard that the address names.
func (rq *request) dashboard() (*registry.Dashboard, error) {
	if id, ok := parseNumber(rq.at.Name); ok {
		if d := rq.Snapshot.Dashboard(rq.Project.ID, id); d != nil {
			return d, nil
		}
	}
	return nil, api.NotFound("Not found.")
}

func (rq *request) getDashboard() error {
	d, err := rq.dashboard()
	if err != nil {
		return err
	}
	return rq.writeDashboard(http.StatusOK, d)
}

func (rq *request) createDashboard() error {
	fields, err := rq.readDashboard()
	if err != nil {
		return err
	}
	d, err := rq.rt.registry.CreateDashboard(rq.r.Context(), rq.Project.ID, fields, rq.Key.ID, rq.Start)
	if err != nil {
		return err
	}
	return rq.writeDashboard(http.StatusCreated, d)
}

// updateDashboard answers PUT and PATCH. Only a request that restores a deleted dashboard can address it.
func (rq *request) updateDashboard() error {
	id, ok := parseNumber(rq.at.Name)
	if !ok {
		return api.NotFound("Not found.")
	}
	fields, err := rq.readDashboard()
	if err != nil {
		return err
	}
	d, err := rq.rt.registry.UpdateDashboard(rq.r.Context(), rq.Project.ID, id, fields, rq.Key.ID, rq.Start)
	if err != nil {
		return err
	}
	return rq.writeDashboard(http.StatusOK, d)
}

// deleteDashboard answers DELETE: the dashboard can be restored by a PATCH. Its insights stay.
func (rq *request) deleteDashboard() error {
	d, err := rq.dashboard()
	if err != nil {
		return err
	}
	fields := registry.DashboardFields{Deleted: registry.To(true)}
	if _, err := rq.rt.registry.UpdateDashboard(rq.r.Context(), rq.Project.ID, d.ID, fields, rq.Key.ID, rq.Start); err != nil {
		return err
	}
	rq.replyNothing()
	return nil
}
