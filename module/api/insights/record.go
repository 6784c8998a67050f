package insights

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// insightHead holds the fields of all forms of a saved insight in JSON: contract api.md section 4.3.
type insightHead struct {
	ID              int64           `json:"id"`
	ShortID         string          `json:"short_id"`
	Name            *string         `json:"name"`
	DerivedName     *string         `json:"derived_name"`
	Filters         json.RawMessage `json:"filters"`
	Query           json.RawMessage `json:"query"`
	Dashboards      []int64         `json:"dashboards"`
	DashboardTiles  []tilePlace     `json:"dashboard_tiles"`
	Description     *string         `json:"description"`
	Saved           bool            `json:"saved"`
	Tags            []string        `json:"tags"`
	UpdatedAt       time.Time       `json:"updated_at"`
	CreatedBy       *api.User       `json:"created_by"`
	CreatedAt       time.Time       `json:"created_at"`
	LastModifiedAt  time.Time       `json:"last_modified_at"`
	Favorited       bool            `json:"favorited"`
	UserAccessLevel string          `json:"user_access_level"`
	LastViewedAt    *time.Time      `json:"last_viewed_at"`
	SearchMatchType *string         `json:"search_match_type"` // nil except in lists with a search
}

// tilePlace is the tile of an insight on a dashboard.
type tilePlace struct {
	ID          int64 `json:"id"`
	DashboardID int64 `json:"dashboard_id"`
	Deleted     *bool `json:"deleted"` // nil until it was deleted and restored, as in PostHog
}

// basicInsight is an insight without its result. The last two fields belong to an older cache of PostHog; nothing sets them.
type basicInsight struct {
	insightHead
	LastRefresh *time.Time `json:"last_refresh"`
	Refreshing  *bool      `json:"refreshing"`
}

// fullInsight is an insight without the members of its result, which Results adds.
type fullInsight struct {
	insightHead
	Order                     *int      `json:"order"`
	Deleted                   bool      `json:"deleted"`
	LastModifiedBy            *api.User `json:"last_modified_by"`
	IsSample                  bool      `json:"is_sample"`
	EffectiveRestrictionLevel int       `json:"effective_restriction_level"`
	EffectivePrivilegeLevel   int       `json:"effective_privilege_level"`
	Alerts                    []any     `json:"alerts"`
	*insightOnDashboard
}

// insightOnDashboard holds the additional fields of an insight requested as a part of a dashboard.
type insightOnDashboard struct {
	Color   *string         `json:"color"`
	Layouts json.RawMessage `json:"layouts"`
}

// PostHog's levels of access: everyone in a project may edit, and a key may edit what its scopes let it write.
const (
	anyoneMayEdit = 21
	mayView       = 21
	mayEdit       = 37
)

// access returns what the caller may do with a kind of object, as PostHog's level and number.
func access(c *api.Caller, object string) (level string, privilege int) {
	if c.Key.Allows(object + ":write") {
		return "editor", mayEdit
	}
	return "viewer", mayView
}

func headOf(c *api.Caller, i *registry.Insight) insightHead {
	head := insightHead{
		ID: i.ID, ShortID: i.ShortID, Name: i.Name, DerivedName: i.DerivedName, Filters: i.Filters, Query: i.Query, Dashboards: []int64{},
		DashboardTiles: []tilePlace{}, Description: i.Description, Saved: i.Saved, Tags: i.Tags, UpdatedAt: i.UpdatedAt,
		CreatedBy: c.User(i.CreatedBy), CreatedAt: i.CreatedAt, LastModifiedAt: i.LastModifiedAt, Favorited: i.Favorited,
	}
	if i.Query != nil {
		head.Filters = json.RawMessage(`{}`)
	}
	head.UserAccessLevel, _ = access(c, "insight")
	for _, t := range c.Snapshot.TilesOf(i.Project, i.ID) {
		head.Dashboards = append(head.Dashboards, t.Dashboard)
		place := tilePlace{ID: t.ID, DashboardID: t.Dashboard}
		if t.Restored {
			place.Deleted = new(false)
		}
		head.DashboardTiles = append(head.DashboardTiles, place)
	}
	slices.Sort(head.Dashboards)
	return head
}

func basicOf(c *api.Caller, i *registry.Insight) basicInsight {
	return basicInsight{insightHead: headOf(c, i)}
}

// Basic returns an insight without its result, for the responses of other routes.
func Basic(c *api.Caller, i *registry.Insight) any { return basicOf(c, i) }

func fullOf(c *api.Caller, i *registry.Insight) fullInsight {
	full := fullInsight{
		insightHead: headOf(c, i), Order: i.Order, Deleted: i.Deleted, LastModifiedBy: c.User(i.LastModifiedBy),
		EffectiveRestrictionLevel: anyoneMayEdit,
	}
	_, full.EffectivePrivilegeLevel = access(c, "insight")
	return full
}
