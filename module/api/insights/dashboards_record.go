package insights

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// dashboardRecord is a dashboard in a list. Views are not recorded, and nothing is shared or restricted, so the members for that are constant.
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
}

// foundDashboard is a dashboard in a list, with how a search found it; nil without a search.
type foundDashboard struct {
	dashboardRecord
	SearchMatchType *string `json:"search_match_type"`
}

// fullDashboard is a dashboard with its tiles.
type fullDashboard struct {
	dashboardRecord
	Filters            json.RawMessage `json:"filters"`
	Variables          json.RawMessage `json:"variables"`
	PersistedFilters   json.RawMessage `json:"persisted_filters"`
	PersistedVariables json.RawMessage `json:"persisted_variables"`
	BreakdownColors    json.RawMessage `json:"breakdown_colors"`
	DataColorThemeID   *int            `json:"data_color_theme_id"`
	QuickFilterIDs     []string        `json:"quick_filter_ids"`
	Tiles              []tileRecord    `json:"-"` // see appendTiles
}

// tileRecord is a tile with an insight and its result, or with a text.
type tileRecord struct {
	ID                    int64           `json:"id"`
	Order                 *int            `json:"order"` // nil for a tile on its own
	Insight               json.RawMessage `json:"-"`     // see appendTiles
	Text                  *textRecord     `json:"text"`
	ButtonTile            json.RawMessage `json:"button_tile"`
	Widget                json.RawMessage `json:"widget"`
	Layouts               json.RawMessage `json:"layouts"`
	Color                 *string         `json:"color"`
	ShowDescription       *bool           `json:"show_description"`
	TransparentBackground *bool           `json:"transparent_background"`
	FiltersOverrides      json.RawMessage `json:"filters_overrides"`
	LastRefresh           *time.Time      `json:"last_refresh"`
	IsCached              bool            `json:"is_cached"`
	Error                 *tileError      `json:"error,omitempty"`
}

func (t tileRecord) split() (record any, insight json.RawMessage) { return t, t.Insight }

// appendTiles adds a member with a list of tiles to a JSON object. It copies each insight once, into memory of the right size: encoding them as a part of the
// tiles would take several times their size. split returns a tile without its insight, and the insight.
func appendTiles[T any](object []byte, name string, tiles []T, split func(T) (any, json.RawMessage)) []byte {
	records := make([][]byte, len(tiles))
	size := len(object) + len(name) + len(`,"":[]`)
	for i, t := range tiles {
		record, insight := split(t)
		records[i] = jsontext.Append(nil, record)
		size += len(records[i]) + len(`,"insight":null,`) + len(insight)
	}
	dst := slices.Grow(object[:len(object)-1:len(object)-1], size)
	if len(object) > len("{}") {
		dst = append(dst, ',')
	}
	dst = append(append(append(dst, '"'), name...), `":[`...)
	for i, t := range tiles {
		if i > 0 {
			dst = append(dst, ',')
		}
		_, insight := split(t)
		dst = appendTile(dst, records[i], insight)
	}
	return append(dst, ']', '}')
}

// appendTile appends a tile: its record, which is JSON, with its insight; nil for none.
func appendTile(dst, record []byte, insight json.RawMessage) []byte {
	dst = append(dst, record[:len(record)-1]...)
	dst = append(dst, `,"insight":`...)
	if insight == nil {
		return append(dst, "null}"...)
	}
	return append(append(dst, insight...), '}')
}

// tileError is a mistake in the query of a tile's insight. Type is the name that PostHog uses for all mistakes.
type tileError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// textRecord is the text of a tile. Its id is that of the tile that it was written for.
type textRecord struct {
	ID             int64     `json:"id"`
	Body           *string   `json:"body"`
	CreatedBy      *api.User `json:"created_by"`
	LastModifiedAt time.Time `json:"last_modified_at"`
	LastModifiedBy *api.User `json:"last_modified_by"`
	Team           int64     `json:"team"`
}

// recordTile returns a tile without its insight.
func recordTile(c *api.Caller, t *registry.Tile) tileRecord {
	record := tileRecord{
		ID: t.ID, Layouts: t.Layouts, Color: t.Color, ShowDescription: t.ShowDescription, TransparentBackground: t.Transparent,
		FiltersOverrides: t.FilterOverrides,
	}
	if t.Text != nil {
		record.Text = &textRecord{
			ID: t.TextID(), Body: t.Text.Body, CreatedBy: c.User(t.Text.CreatedBy), LastModifiedAt: t.Text.LastModifiedAt,
			LastModifiedBy: c.User(t.Text.LastModifiedBy), Team: t.Project,
		}
	}
	return record
}

func recordDashboard(c *api.Caller, d *registry.Dashboard) dashboardRecord {
	record := dashboardRecord{
		ID: d.ID, Name: d.Name, Description: d.Description, Pinned: d.Pinned, CreatedAt: d.CreatedAt, CreatedBy: c.User(d.CreatedBy),
		Deleted: d.Deleted, CreationMode: creationMode(d), Tags: d.Tags, RestrictionLevel: anyoneMayEdit, EffectiveRestrictionLevel: anyoneMayEdit,
		AccessControlVersion: "v2", TeamID: d.Project,
	}
	record.UserAccessLevel, record.EffectivePrivilegeLevel = access(c, "dashboard")
	return record
}

// creationMode returns how a dashboard was created. PostHog also has template and unlisted.
func creationMode(d *registry.Dashboard) string {
	if d.Duplicate {
		return "duplicate"
	}
	return "default"
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
