package insights

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// insightRow is an insight on its way into a list.
type insightRow struct {
	*registry.Insight
	viewed time.Time // the last time that anybody looked at it; zero: never, or it is not known
	match  string    // exact or similar; empty when nothing is searched for
	score  float64   // how well it matches
}

// resultsAtOnce is how many insights of one list are computed at the same time.
const resultsAtOnce = 4

// list answers GET insights/: contract api.md section 4.2.
func (s *Insights) list(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	cut := s.sorted
	if isPlain(in) {
		cut = s.plain
	}
	part, out, err := cut(ctx, c, in)
	if err != nil {
		return nil, err
	}
	var quotas execution.Quotas
	if isSet(in, "basic") {
		for _, row := range part {
			basic := basicOf(c, row.Insight)
			row.complete(&basic.insightHead)
			if !out.Add(jsontext.Append(nil, basic)) {
				break
			}
		}
	} else if quotas, err = s.Results.addTo(ctx, c, in, out, part); err != nil {
		return &api.Response{Quotas: quotas}, err
	}
	return out.Response(in).With(quotas), nil
}

// isPlain reports whether the list is of all insights in the order in which the registry keeps them.
func isPlain(in *api.Input) bool {
	given := in.URL.Query()
	for name := range given {
		if filters[name] != nil {
			return false
		}
	}
	return given.Get("search") == "" && (given.Get("order") == "" || given.Get("order") == "order")
}

// plain returns a page of all insights. It takes the same time however many there are.
func (s *Insights) plain(ctx context.Context, c *api.Caller, in *api.Input) ([]insightRow, *api.List, error) {
	limit, offset, err := in.PageParams()
	if err != nil {
		return nil, nil, err
	}
	page, total := c.Snapshot.InsightPage(c.Project.ID, offset, limit)
	ids := make([]int64, len(page))
	for i, insight := range page {
		ids[i] = insight.ID
	}
	views, _, err := api.Inessential(ctx, func(ctx context.Context) ([]registry.View, error) { return s.Registry.ViewsOf(ctx, c.Project.ID, ids) })
	if err != nil {
		return nil, nil, err
	}
	return insightRows(page, views), api.NewList(total, limit, offset), nil
}

// needsViews reports whether a list is chosen or sorted by when insights were viewed last.
func needsViews(in *api.Input) bool {
	given := in.URL.Query()
	return given.Has("last_viewed_date_from") || given.Has("last_viewed_date_to") || strings.TrimPrefix(given.Get("order"), "-") == "last_viewed_at"
}

// views are those of a project's insights. Unless a list needs them, there are none while the registry's store is away.
func (s *Insights) views(ctx context.Context, project int64, needed bool) ([]registry.View, error) {
	read := func(ctx context.Context) ([]registry.View, error) { return s.Registry.Views(ctx, project, time.Time{}) }
	if needed {
		return read(ctx)
	}
	views, _, err := api.Inessential(ctx, read)
	return views, err
}

// sorted returns a page of the insights that the query string asks for, in its order.
func (s *Insights) sorted(ctx context.Context, c *api.Caller, in *api.Input) ([]insightRow, *api.List, error) {
	views, err := s.views(ctx, c.Project.ID, needsViews(in))
	if err != nil {
		return nil, nil, err
	}
	rows, err := applyFilters(c, in, insightRows(c.Snapshot.Insights(c.Project.ID), views))
	if err != nil {
		return nil, nil, err
	}
	if rows, err = search(in, rows); err != nil {
		return nil, nil, err
	}
	if err := sortRows(c, in, rows); err != nil {
		return nil, nil, err
	}
	return api.CutPage(in, rows)
}

// complete puts in what an insight has in lists alone.
func (row insightRow) complete(head *insightHead) {
	head.LastViewedAt, head.SearchMatchType = api.OrNil(row.viewed), api.OrNull(row.match)
}

// addTo adds insights with their results, in the mode that the request names, to a list. Those for which it has no room are not
// computed, except for the few that have begun when it is full.
func (s *Results) addTo(ctx context.Context, c *api.Caller, in *api.Input, to *api.List, rows []insightRow) (execution.Quotas, error) {
	params, err := readParams(c, in)
	if err != nil {
		return nil, err
	}
	out := make([]json.RawMessage, len(rows))
	var size atomic.Int64
	quotas, err := sideBySide(len(rows), func(i int) (execution.Quotas, error) {
		if size.Load() > api.MaxListBytes {
			return nil, nil
		}
		one := shownIn(c, in, rows[i].Insight)
		res, err := s.result(ctx, c, in, one, params.several())
		if err == nil {
			out[i] = s.append(nil, c, one, res, rows[i].complete)
			size.Add(int64(len(out[i])))
		}
		return res.Quotas, err
	})
	if err != nil {
		return quotas, err
	}
	for _, record := range out {
		if record == nil || !to.Add(record) {
			break
		}
	}
	return quotas, nil
}

// sideBySide calls do for each of n insights, some at the same time. It returns the quotas that the last of them had.
func sideBySide(n int, do func(i int) (execution.Quotas, error)) (execution.Quotas, error) {
	var all errgroup.Group
	all.SetLimit(resultsAtOnce)
	var mu sync.Mutex // of last
	var last execution.Quotas
	for i := range n {
		all.Go(func() error {
			quotas, err := do(i)
			if quotas != nil {
				mu.Lock()
				defer mu.Unlock()
				last = quotas
			}
			return err
		})
	}
	err := all.Wait()
	return last, err
}

// insightRows are insights with the time of their last view.
func insightRows(all []*registry.Insight, views []registry.View) []insightRow {
	viewed := make(map[int64]time.Time, len(views))
	for _, v := range views { // newest first
		if _, later := viewed[v.Insight]; !later {
			viewed[v.Insight] = v.At
		}
	}
	rows := make([]insightRow, len(all))
	for i, insight := range all {
		rows[i] = insightRow{Insight: insight, viewed: viewed[insight.ID]}
	}
	return rows
}

// insightOrders compare two insights by a field. Times and texts that are not there come last, as in PostHog's database;
// for last_viewed_at they come first.
var insightOrders = map[string]func(a, b *insightRow) int{
	"id":               func(a, b *insightRow) int { return cmp.Compare(a.ID, b.ID) },
	"short_id":         func(a, b *insightRow) int { return strings.Compare(a.ShortID, b.ShortID) },
	"name":             func(a, b *insightRow) int { return nullsLast(a.Name, b.Name) },
	"derived_name":     func(a, b *insightRow) int { return nullsLast(a.DerivedName, b.DerivedName) },
	"description":      func(a, b *insightRow) int { return nullsLast(a.Description, b.Description) },
	"order":            func(a, b *insightRow) int { return nullsLast(a.Order, b.Order) },
	"created_at":       func(a, b *insightRow) int { return a.CreatedAt.Compare(b.CreatedAt) },
	"updated_at":       func(a, b *insightRow) int { return a.UpdatedAt.Compare(b.UpdatedAt) },
	"last_modified_at": func(a, b *insightRow) int { return a.LastModifiedAt.Compare(b.LastModifiedAt) },
	"last_viewed_at":   func(a, b *insightRow) int { return a.viewed.Compare(b.viewed) },
	"favorited":        func(a, b *insightRow) int { return compareBools(a.Favorited, b.Favorited) },
	"saved":            func(a, b *insightRow) int { return compareBools(a.Saved, b.Saved) },
}

func nullsLast[T cmp.Ordered](a, b *T) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return cmp.Compare(*a, *b)
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// sortRows puts rows in the order that the request names: without one by relevance when something is searched for, else by the field
// order. Those that are equal keep their order, which is by number.
func sortRows(c *api.Caller, in *api.Input, rows []insightRow) error {
	given := in.URL.Query().Get("order")
	name, descending := strings.CutPrefix(cmp.Or(given, "order"), "-")
	compare := insightOrders[name]
	switch {
	case given == "" && in.URL.Query().Get("search") != "":
		compare = func(a, b *insightRow) int {
			return cmp.Or(cmp.Compare(a.match, b.match), cmp.Compare(b.score, a.score))
		} // exact is before similar
	case name == "created_by", name == "last_modified_by":
		compare = func(a, b *insightRow) int {
			by := func(row *insightRow) *int64 {
				key := row.CreatedBy
				if name == "last_modified_by" {
					key = row.LastModifiedBy
				}
				if user := c.UserNumber(key); user != 0 {
					return &user
				}
				return nil
			}
			return nullsLast(by(a), by(b))
		}
	case compare == nil:
		return api.Invalid("order", "invalid_input", "Cannot order insights by %q.", given)
	}
	slices.SortStableFunc(rows, func(a, b insightRow) int {
		if descending {
			return compare(&b, &a)
		}
		return compare(&a, &b)
	})
	return nil
}
