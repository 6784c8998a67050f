package module

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// activityRecord is one entry of an activity log on the wire.
type activityRecord struct {
	ID              string         `json:"id"`
	User            *api.User      `json:"user"`
	Activity        string         `json:"activity"`
	Scope           string         `json:"scope"`
	ItemID          string         `json:"item_id"`
	Detail          activityDetail `json:"detail"`
	CreatedAt       time.Time      `json:"created_at"`
	Unread          bool           `json:"unread"`
	IsSystem        bool           `json:"is_system"`
	WasImpersonated bool           `json:"was_impersonated"`
}

type activityDetail struct {
	Name    string                 `json:"name"`
	ShortID string                 `json:"short_id"`
	Type    *string                `json:"type"`
	Changes []registry.FieldChange `json:"changes"`
}

// activityPage is the envelope of an activity log: contract section 4.1.
type activityPage struct {
	Results    []activityRecord `json:"results"`
	Next       *string          `json:"next"`
	Previous   *string          `json:"previous"`
	TotalCount int              `json:"total_count"`
}

// The pages of an activity log.
const (
	activityLimit    = 10
	maxActivityLimit = 1000
)

// allActivity answers GET insights/activity/.
func (rq *request) allActivity() error { return rq.writeActivity("") }

// insightActivity answers GET insights/{id}/activity/.
func (rq *request) insightActivity() error {
	i, err := rq.insight()
	if err != nil {
		return err
	}
	return rq.writeActivity(strconv.FormatInt(i.ID, 10))
}

func (rq *request) writeActivity(item string) error {
	limit, err := rq.pageParam("limit", activityLimit, maxActivityLimit)
	if err != nil {
		return err
	}
	number, err := rq.pageParam("page", 1, 1<<31)
	if err != nil {
		return err
	}
	entries, total, err := rq.rt.registry.Activities(rq.r.Context(), rq.Project.ID, registry.ActivityPage{
		Scope: registry.ScopeInsight, Item: item, Limit: limit, Offset: (number - 1) * limit,
	})
	if err != nil {
		return err
	}
	out := activityPage{Results: []activityRecord{}, TotalCount: total}
	for _, a := range entries {
		out.Results = append(out.Results, activityRecord{
			ID: a.ID, User: rq.User(a.By), Activity: a.Activity, Scope: a.Scope, ItemID: a.Item, CreatedAt: a.At,
			Detail: activityDetail{Name: a.Name, ShortID: a.ShortID, Changes: a.Changes},
		})
	}
	out.Next, out.Previous = rq.input().NumberedPages(number, (total+limit-1)/limit)
	rq.reply(http.StatusOK, out)
	return nil
}

// countParam reads a number of least or more from the query string. One above most counts as most; ok is false for anything else.
func (rq *request) countParam(name string, byDefault, least, most int) (n int, ok bool) {
	text := rq.r.URL.Query().Get(name)
	if text == "" {
		return byDefault, true
	}
	n, err := strconv.Atoi(text)
	return min(n, most), err == nil && n >= least
}

// pageParam reads a number of a page or of its entries.
func (rq *request) pageParam(name string, byDefault, most int) (int, error) {
	n, ok := rq.countParam(name, byDefault, 1, most)
	if !ok {
		return 0, api.Invalid(name, "invalid_input", "A valid integer greater than 0 is required.")
	}
	return n, nil
}

// maxViewed is the most insights that one request says it has seen: contract section 8.
const maxViewed = 2500

// viewedInsights answers POST insights/viewed/.
func (rq *request) viewedInsights() error {
	fields, err := rq.readObject()
	if err != nil {
		return err
	}
	r := fieldReader{fields: fields}
	ids := r.integers("insight_ids")
	switch {
	case r.err != nil:
		return r.err
	case !ids.Given:
		return api.Invalid("insight_ids", "required", "This field is required.")
	case len(ids.Value) == 0:
		return api.Invalid("insight_ids", "empty", "This list may not be empty.")
	case len(ids.Value) > maxViewed:
		return api.Invalid("insight_ids", "max_length", "Ensure this field has no more than %d elements.", maxViewed)
	}
	if err := rq.rt.registry.RecordViews(rq.r.Context(), rq.Project.ID, rq.Key.ID, ids.Value, rq.Start); err != nil {
		return err
	}
	rq.write(api.Response{Status: http.StatusCreated})
	return nil
}

// lastViewed is how many insights my_last_viewed gives.
const lastViewed = 5

// myLastViewed answers GET insights/my_last_viewed/.
func (rq *request) myLastViewed() error {
	views, err := rq.rt.registry.Views(rq.r.Context(), rq.Project.ID, time.Time{})
	if err != nil {
		return err
	}
	seen := []basicInsight{}
	for _, v := range views {
		i := rq.Snapshot.Insight(rq.Project.ID, v.Insight)
		if v.Viewer != rq.Key.ID || i == nil {
			continue
		}
		basic := rq.basicInsight(i)
		basic.LastViewedAt = &v.At
		if seen = append(seen, basic); len(seen) == lastViewed {
			break
		}
	}
	rq.reply(http.StatusOK, seen)
	return nil
}

// trendingInsight is an insight with those who looked at it lately.
type trendingInsight struct {
	basicInsight
	ViewCount      int         `json:"view_count"`
	Viewers        []*api.User `json:"viewers"`
	LastModifiedBy *api.User   `json:"last_modified_by"`
}

// What trending takes and gives.
const (
	trendingDays     = 7
	trendingLimit    = 10
	maxTrendingLimit = 100
	maxTrendingDays  = 100_000
	shownViewers     = 3
)

// trending answers GET insights/trending/: the insights by how many looked at them lately.
func (rq *request) trending() error {
	days, dated := rq.countParam("days", trendingDays, 0, maxTrendingDays)
	limit, limited := rq.countParam("limit", trendingLimit, 0, maxTrendingLimit)
	if !dated || !limited {
		return api.Invalid("", "invalid_input", "days and limit must be valid integers")
	}
	views, err := rq.rt.registry.Views(rq.r.Context(), rq.Project.ID, rq.Start.AddDate(0, 0, -days))
	if err != nil {
		return err
	}
	found := map[int64]*trendingInsight{}
	for _, v := range views { // newest first
		i := rq.Snapshot.Insight(rq.Project.ID, v.Insight)
		if i == nil {
			continue
		}
		t := found[i.ID]
		if t == nil {
			t = &trendingInsight{basicInsight: rq.basicInsight(i), Viewers: []*api.User{}, LastModifiedBy: rq.User(i.LastModifiedBy)}
			t.LastViewedAt = &v.At
			found[i.ID] = t
		}
		t.ViewCount++
		if viewer := rq.User(v.Viewer); viewer != nil && len(t.Viewers) < shownViewers {
			t.Viewers = append(t.Viewers, viewer)
		}
	}
	ranked := slices.AppendSeq(make([]*trendingInsight, 0, len(found)), maps.Values(found))
	slices.SortFunc(ranked, func(a, b *trendingInsight) int {
		return cmp.Or(cmp.Compare(b.ViewCount, a.ViewCount), b.LastModifiedAt.Compare(a.LastModifiedAt), cmp.Compare(a.ID, b.ID))
	})
	out := &api.List{}
	for _, t := range ranked[:min(limit, len(ranked))] {
		if !out.Add(jsontext.Append(nil, t)) {
			break
		}
	}
	out.Count = len(out.Records)
	rq.writeList(out)
	return nil
}

// cancelInsight answers POST insights/cancel/, the older way to cancel a query by the id that its caller gave it.
func (rq *request) cancelInsight() error {
	fields, err := rq.readObject()
	if err != nil {
		return err
	}
	var id string
	if raw, ok := fields["client_query_id"]; !ok || json.Unmarshal(raw, &id) != nil || id == "" {
		return api.Invalid("client_query_id", "required", "Field is required.")
	}
	rq.rt.Runs.Cancel(rq.Project.ID, id, false)
	rq.write(api.Response{Status: http.StatusCreated})
	return nil
}
