package module

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// insightHead is what every form of a saved insight on the wire has: contract section 4.3.
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
	SearchMatchType *string         `json:"search_match_type"`
}

// tilePlace is where an insight stands on a dashboard.
type tilePlace struct {
	ID          int64 `json:"id"`
	DashboardID int64 `json:"dashboard_id"`
	Deleted     bool  `json:"deleted"`
}

// basicInsight is an insight without its result. The last two members belong to an older cache of the peer; nothing sets them.
type basicInsight struct {
	insightHead
	LastRefresh *time.Time `json:"last_refresh"`
	Refreshing  *bool      `json:"refreshing"`
}

// fullInsight is an insight, without the members of its result, which appendInsight adds.
type fullInsight struct {
	insightHead
	Order                     *int       `json:"order"`
	Deleted                   bool       `json:"deleted"`
	LastModifiedBy            *api.User  `json:"last_modified_by"`
	IsSample                  bool       `json:"is_sample"`
	EffectiveRestrictionLevel int        `json:"effective_restriction_level"`
	EffectivePrivilegeLevel   int        `json:"effective_privilege_level"`
	Alerts                    []struct{} `json:"alerts"`
	*insightOnDashboard
}

// insightOnDashboard is what an insight has beyond the rest when it is asked for as a part of a dashboard.
type insightOnDashboard struct {
	Color   *string         `json:"color"`
	Layouts json.RawMessage `json:"layouts"`
}

// The levels of access of the peer: everyone in a project may edit, and a key may edit what its scopes let it write.
const (
	anyoneMayEdit = 21
	mayView       = 21
	mayEdit       = 37
)

// access is what the caller may do with a kind of thing, in the peer's words and number.
func (rq *request) access(object string) (level string, privilege int) {
	if rq.Key.Allows(object + ":write") {
		return "editor", mayEdit
	}
	return "viewer", mayView
}

func (rq *request) insightHead(i *registry.Insight) insightHead {
	head := insightHead{
		ID: i.ID, ShortID: i.ShortID, Name: i.Name, DerivedName: i.DerivedName, Filters: i.Filters, Query: i.Query, Dashboards: []int64{},
		DashboardTiles: []tilePlace{}, Description: i.Description, Saved: i.Saved, Tags: i.Tags, UpdatedAt: i.UpdatedAt,
		CreatedBy: rq.User(i.CreatedBy), CreatedAt: i.CreatedAt, LastModifiedAt: i.LastModifiedAt, Favorited: i.Favorited,
	}
	if i.Query != nil {
		head.Filters = json.RawMessage(`{}`)
	}
	head.UserAccessLevel, _ = rq.access("insight")
	for _, t := range rq.Snapshot.TilesOf(i.Project, i.ID) {
		head.Dashboards = append(head.Dashboards, t.Dashboard)
		head.DashboardTiles = append(head.DashboardTiles, tilePlace{ID: t.ID, DashboardID: t.Dashboard})
	}
	slices.Sort(head.Dashboards)
	return head
}

func (rq *request) basicInsight(i *registry.Insight) basicInsight {
	return basicInsight{insightHead: rq.insightHead(i)}
}

func (rq *request) fullInsight(i *registry.Insight) fullInsight {
	full := fullInsight{
		insightHead: rq.insightHead(i), Order: i.Order, Deleted: i.Deleted, LastModifiedBy: rq.User(i.LastModifiedBy),
		EffectiveRestrictionLevel: anyoneMayEdit, Alerts: []struct{}{},
	}
	_, full.EffectivePrivilegeLevel = rq.access("insight")
	return full
}

// insight finds the insight that the address names, by its number or its short id, among those that are not deleted.
func (rq *request) insight() (*registry.Insight, error) {
	if i := rq.anyInsight(rq.at.Name, func(i *registry.Insight) bool { return !i.Deleted }); i != nil {
		return i, nil
	}
	return nil, api.NotFound("Not found.")
}

// anyInsight finds an insight for which a condition holds. A number may be a short id too.
func (rq *request) anyInsight(name string, which func(*registry.Insight) bool) *registry.Insight {
	if id, ok := parseNumber(name); ok {
		if i := rq.Snapshot.AnyInsight(rq.Project.ID, id); i != nil && which(i) {
			return i
		}
	}
	if i := rq.Snapshot.AnyInsightByShortID(rq.Project.ID, name); i != nil && which(i) {
		return i
	}
	return nil
}

// parseNumber reads the decimal digits of a number.
func parseNumber(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && text[0] >= '0' && text[0] <= '9'
}

func (rq *request) getInsight() error {
	i, err := rq.insight()
	if err != nil {
		return err
	}
	if rq.isSet("basic") {
		rq.reply(http.StatusOK, rq.basicInsight(i))
		return nil
	}
	return rq.writeInsight(http.StatusOK, i)
}

func (rq *request) createInsight() error {
	fields, err := rq.readInsight(true)
	if err != nil {
		return err
	}
	if err := rq.mayShow(nil, fields); err != nil {
		return err
	}
	i, err := rq.rt.registry.CreateInsight(rq.r.Context(), rq.Project.ID, fields, rq.Key.ID, rq.Start)
	if err != nil {
		return err
	}
	return rq.writeInsight(http.StatusCreated, i)
}

// updateInsight answers PUT and PATCH: as no field is required, both change what they are given. Only a PATCH that restores
// a deleted insight can address it.
func (rq *request) updateInsight() error {
	i := rq.anyInsight(rq.at.Name, func(*registry.Insight) bool { return true })
	if i == nil {
		return api.NotFound("Not found.")
	}
	fields, err := rq.readInsight(false)
	if err != nil {
		return err
	}
	if err := rq.mayShow(i, fields); err != nil {
		return err
	}
	return rq.changeInsight(i, fields, rq.r.Method == http.MethodPatch, func(i *registry.Insight) error {
		return rq.writeInsight(http.StatusOK, i)
	})
}

// deleteInsight answers DELETE: the insight can be restored by a PATCH.
func (rq *request) deleteInsight() error {
	i, err := rq.insight()
	if err != nil {
		return err
	}
	return rq.changeInsight(i, registry.InsightFields{Deleted: registry.To(true)}, false, func(*registry.Insight) error {
		rq.replyNothing()
		return nil
	})
}

func (rq *request) changeInsight(i *registry.Insight, f registry.InsightFields, restore bool, show func(*registry.Insight) error) error {
	updated, err := rq.rt.registry.UpdateInsight(rq.r.Context(), rq.Project.ID, i.ID, f, restore, rq.Key.ID, rq.Start)
	if err != nil {
		return err
	}
	return show(updated)
}

// isSet reports whether a parameter of the query string is one of the words that stand for true.
func (rq *request) isSet(name string) bool { return api.IsTrue(rq.r.URL.Query().Get(name)) }
