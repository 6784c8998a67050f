package insights

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// activityRecord is one entry of an activity log in JSON.
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

// activityPage is the envelope of an activity log: contract api.md, section 4.1.
type activityPage struct {
	Results    []json.RawMessage `json:"results"` // each an activityRecord
	Next       *string           `json:"next"`
	Previous   *string           `json:"previous"`
	TotalCount int               `json:"total_count"`
}

// The page sizes of an activity log.
const (
	activityLimit    = 10
	maxActivityLimit = 1000
	// activityPart is how many entries are read at once: each can take more than a megabyte.
	activityPart = 20
)

// Activity handles the routes of who changed and who viewed insights.
type Activity struct {
	Registry *registry.Registry
	Executor *execution.Executor // to cancel runs
}

// Routes returns the routes of activity.
func (s *Activity) Routes() []api.Route {
	const scope = "insight:read"
	return []api.Route{
		{Method: http.MethodGet, Pattern: "insights/activity", Scope: scope, Handler: s.all},
		{Method: http.MethodGet, Pattern: "insights/:name/activity", Scope: scope, Handler: s.ofOne},
		{Method: http.MethodPost, Pattern: "insights/viewed", Scope: scope, Handler: s.view},
		{Method: http.MethodGet, Pattern: "insights/my_last_viewed", Scope: scope, Handler: s.lastViewed},
		{Method: http.MethodGet, Pattern: "insights/trending", Scope: scope, Handler: s.trending},
		{Method: http.MethodPost, Pattern: "insights/cancel", Scope: scope, Handler: s.cancel},
	}
}

// all answers GET insights/activity/.
func (s *Activity) all(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	return s.log(ctx, c, in, "")
}

// ofOne answers GET insights/{id}/activity/.
func (s *Activity) ofOne(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	i, err := find(c, in)
	if err != nil {
		return nil, err
	}
	return s.log(ctx, c, in, strconv.FormatInt(i.ID, 10))
}

// log answers with a page of the log of an insight, or of all insights if item is empty.
func (s *Activity) log(ctx context.Context, c *api.Caller, in *api.Input, item string) (*api.Response, error) {
	limit, err := pageParam(in, "limit", activityLimit, maxActivityLimit)
	if err != nil {
		return nil, err
	}
	number, err := pageParam(in, "page", 1, 1<<31)
	if err != nil {
		return nil, err
	}
	page := registry.ActivityPage{Scope: registry.ScopeInsight, Item: item, Offset: (number - 1) * limit}
	out, lent := activityPage{Results: []json.RawMessage{}}, api.Parts{Loan: in.Memory}
	for {
		page.Limit = min(activityPart, limit-len(out.Results))
		entries, total, err := s.Registry.Activities(ctx, c.Project.ID, page)
		if err != nil {
			return nil, err
		}
		for i := range entries {
			record := jsontext.Append(nil, recordActivity(c, &entries[i]))
			if err := lent.Add(ctx, 2*int64(len(record))); err != nil { // once here, and once in the response
				return nil, err
			}
			out.Results = append(out.Results, record)
		}
		out.TotalCount = total
		if page.Offset += len(entries); len(entries) < page.Limit || len(out.Results) == limit {
			break
		}
	}
	out.Next, out.Previous = in.NumberedPages(number, (out.TotalCount+limit-1)/limit)
	return api.JSON(http.StatusOK, out), nil
}

func recordActivity(c *api.Caller, a *registry.Activity) activityRecord {
	return activityRecord{
		ID: a.ID, User: c.User(a.By), Activity: a.Activity, Scope: a.Scope, ItemID: a.Item, CreatedAt: a.At,
		Detail: activityDetail{Name: a.Name, ShortID: a.ShortID, Changes: a.Changes},
	}
}

// countParam reads a number from the query string. A number above most counts as most. ok is false if it is less than least or invalid.
func countParam(in *api.Input, name string, byDefault, least, most int) (n int, ok bool) {
	text := in.URL.Query().Get(name)
	if text == "" {
		return byDefault, true
	}
	n, err := strconv.Atoi(text)
	return min(n, most), err == nil && n >= least
}

// pageParam reads a page number or a page size.
func pageParam(in *api.Input, name string, byDefault, most int) (int, error) {
	n, ok := countParam(in, name, byDefault, 1, most)
	if !ok {
		return 0, api.Invalid(name, "invalid_input", "A valid integer greater than 0 is required.")
	}
	return n, nil
}

// maxViewed is the most insights that one request can report as viewed: contract api.md, section 8.
const maxViewed = 2500

// view answers POST insights/viewed/.
func (s *Activity) view(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	r, err := readFields(in)
	if err != nil {
		return nil, err
	}
	ids := items[int64](r, "insight_ids")
	switch {
	case r.Err != nil:
		return nil, r.Err
	case !ids.Given:
		return nil, api.Invalid("insight_ids", "required", "This field is required.")
	case len(ids.Value) == 0:
		return nil, api.Invalid("insight_ids", "empty", "This list may not be empty.")
	case len(ids.Value) > maxViewed:
		return nil, api.Invalid("insight_ids", "max_length", "Ensure this field has no more than %d elements.", maxViewed)
	}
	if err := s.Registry.RecordViews(ctx, c.Project.ID, c.Key.ID, ids.Value, c.Start); err != nil {
		return nil, err
	}
	return &api.Response{Status: http.StatusCreated}, nil
}

const (
	maxLastViewed = 5   // how many insights my_last_viewed returns
	viewsPart     = 100 // how many views it reads at once
)

// lastViewed answers GET insights/my_last_viewed/.
func (s *Activity) lastViewed(ctx context.Context, c *api.Caller, _ *api.Input) (*api.Response, error) {
	seen := []basicInsight{}
	for offset := 0; ; offset += viewsPart {
		views, err := s.Registry.ViewsBy(ctx, c.Project.ID, c.Key.ID, viewsPart, offset)
		if err != nil {
			return nil, err
		}
		for _, v := range views {
			i := c.Snapshot.Insight(c.Project.ID, v.Insight)
			if i == nil { // deleted
				continue
			}
			basic := basicOf(c, i)
			basic.LastViewedAt = &v.At
			if seen = append(seen, basic); len(seen) == maxLastViewed {
				return api.JSON(http.StatusOK, seen), nil
			}
		}
		if len(views) < viewsPart {
			return api.JSON(http.StatusOK, seen), nil
		}
	}
}

// trendingInsight is an insight with its recent viewers.
type trendingInsight struct {
	basicInsight
	ViewCount      int         `json:"view_count"`
	Viewers        []*api.User `json:"viewers"`
	LastModifiedBy *api.User   `json:"last_modified_by"`
}

// viewed is how often an insight was viewed.
type viewed struct {
	insight *registry.Insight
	count   int
	last    time.Time
	viewers []*api.User // the latest ones
}

func (v *viewed) record(c *api.Caller) trendingInsight {
	basic := basicOf(c, v.insight)
	basic.LastViewedAt = &v.last
	return trendingInsight{
		basicInsight: basic, ViewCount: v.count, Viewers: append([]*api.User{}, v.viewers...), LastModifiedBy: c.User(v.insight.LastModifiedBy),
	}
}

// The limits and defaults of trending.
const (
	trendingDays     = 7
	trendingLimit    = 10
	maxTrendingLimit = 100
	maxTrendingDays  = 100_000
	shownViewers     = 3
)

// trending answers GET insights/trending/: the insights by their number of recent viewers.
func (s *Activity) trending(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	days, dated := countParam(in, "days", trendingDays, 0, maxTrendingDays)
	limit, limited := countParam(in, "limit", trendingLimit, 0, maxTrendingLimit)
	if !dated || !limited {
		return nil, api.Invalid("", "invalid_input", "days and limit must be valid integers")
	}
	views, err := s.Registry.Views(ctx, c.Project.ID, c.Start.AddDate(0, 0, -days))
	if err != nil {
		return nil, err
	}
	found := map[int64]*viewed{}
	for _, v := range views { // newest first
		one := found[v.Insight]
		if one == nil {
			i := c.Snapshot.Insight(c.Project.ID, v.Insight)
			if i == nil {
				continue
			}
			one = &viewed{insight: i, last: v.At}
			found[v.Insight] = one
		}
		one.count++
		if viewer := c.User(v.Viewer); viewer != nil && len(one.viewers) < shownViewers {
			one.viewers = append(one.viewers, viewer)
		}
	}
	ranked := slices.AppendSeq(make([]*viewed, 0, len(found)), maps.Values(found))
	slices.SortFunc(ranked, func(a, b *viewed) int {
		return cmp.Or(cmp.Compare(b.count, a.count), b.insight.LastModifiedAt.Compare(a.insight.LastModifiedAt), cmp.Compare(a.insight.ID, b.insight.ID))
	})
	out := &api.List{}
	for _, one := range ranked[:min(limit, len(ranked))] {
		if !out.Add(jsontext.Append(nil, one.record(c))) {
			break
		}
	}
	out.Count = len(out.Records)
	return out.Response(in), nil
}

// cancel answers POST insights/cancel/, the older way to cancel a query by the id that its caller chose.
func (s *Activity) cancel(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	fields, err := in.ReadObject()
	if err != nil {
		return nil, err
	}
	var id string
	if raw, ok := fields["client_query_id"]; !ok || json.Unmarshal(raw, &id) != nil || id == "" {
		return nil, api.Invalid("client_query_id", "required", "Field is required.")
	}
	if found, all := s.Executor.CancelEverywhere(ctx, &c.Caller, execution.PeerPoll{ID: id, Insights: true}); !all && !found.Any() {
		return nil, api.ErrRunUnknown
	}
	return &api.Response{Status: http.StatusCreated}, nil
}
