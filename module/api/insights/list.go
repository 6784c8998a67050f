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

	"github.com/caddy-analytics/caddy-analytics/internal/panics"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// insightRow is an insight with what the list adds to it.
type insightRow struct {
	*registry.Insight
	viewed time.Time // when it was last viewed; zero if never or unknown
	match  string    // exact or similar; empty without a search
	score  float64   // how well it matches
}

// resultsAtOnce is how many insights of a list are computed at a time.
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
	if api.IsTrue(in.URL.Query().Get("basic")) {
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

// isPlain reports whether the list contains all insights in the order of the registry.
func isPlain(in *api.Input) bool {
	given := in.URL.Query()
	for name := range given {
		if filters[name] != nil {
			return false
		}
	}
	return given.Get("search") == "" && (given.Get("order") == "" || given.Get("order") == "order")
}

// plain returns a page of all insights. The time it takes does not depend on their number.
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

// needsViews reports whether the list is filtered or sorted by when insights were last viewed.
func needsViews(in *api.Input) bool {
	given := in.URL.Query()
	return given.Has("last_viewed_date_from") || given.Has("last_viewed_date_to") || strings.TrimPrefix(given.Get("order"), "-") == "last_viewed_at"
}

// views returns the views of a project's insights. While the registry's store is unavailable, it returns none, or an error if they are needed.
func (s *Insights) views(ctx context.Context, project int64, needed bool) ([]registry.View, error) {
	read := func(ctx context.Context) ([]registry.View, error) { return s.Registry.Views(ctx, project, time.Time{}) }
	if needed {
		return read(ctx)
	}
	views, _, err := api.Inessential(ctx, read)
	return views, err
}

// sorted returns a page of the insights that the query string selects, in its order.
func (s *Insights) sorted(ctx context.Context, c *api.Caller, in *api.Input) ([]insightRow, *api.List, error) {
	views, err := s.views(ctx, c.Project.ID, needsViews(in))
	if err != nil {
		return nil, nil, err
	}
	rows, err := applyFilters(ctx, c, in, insightRows(c.Snapshot.Insights(c.Project.ID), views))
	if err != nil {
		return nil, nil, err
	}
	if rows, err = search(ctx, in, rows); err != nil {
		return nil, nil, err
	}
	if err := sortRows(c, in, rows); err != nil {
		return nil, nil, err
	}
	return api.CutPage(in, rows)
}

// complete fills in the fields that an insight has in lists only.
func (row insightRow) complete(head *insightHead) {
	head.LastViewedAt, head.SearchMatchType = api.OrNil(row.viewed), api.OrNull(row.match)
}

// addTo adds insights to a list, with their results in the request's mode. Once the list is full, it computes no more insights except for the few in
// progress.
func (s *Results) addTo(ctx context.Context, c *api.Caller, in *api.Input, to *api.List, rows []insightRow) (execution.Quotas, error) {
	params, err := readParams(c, in)
	if err != nil {
		return nil, err
	}
	out, lent := make([]json.RawMessage, len(rows)), api.Parts{Loan: in.Memory}
	var size atomic.Int64
	quotas, err := forEachConcurrently(ctx, len(rows), func(ctx context.Context, i int) (execution.Quotas, error) {
		if size.Load() > api.MaxListBytes {
			return nil, nil
		}
		one := shownIn(c, in, rows[i].Insight)
		res, err := s.result(ctx, c, in, one, params.several())
		if err == nil && res.Answer.Entry != nil {
			err = lent.Add(ctx, res.Answer.Entry.Size())
		}
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

// forEachConcurrently calls do for each of n insights, several at a time. After the first error, or a panic, which counts as one, it ends the calls in
// progress and makes no others. It returns the quotas of the last call.
func forEachConcurrently(ctx context.Context, n int, do func(ctx context.Context, i int) (execution.Quotas, error)) (execution.Quotas, error) {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(resultsAtOnce)
	var mu sync.Mutex // of last
	var last execution.Quotas
	for i := range n {
		all.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return panics.Try(func() error {
				quotas, err := do(ctx, i)
				if quotas != nil {
					mu.Lock()
					defer mu.Unlock()
					last = quotas
				}
				return err
			})
		})
	}
	err := all.Wait()
	return last, err
}

// insightRows returns rows with the time of each insight's last view.
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

// insightOrders compare two insights by a field. Missing times and texts come last, as in PostHog's database; for last_viewed_at they come first.
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
	"favorited":        func(a, b *insightRow) int { return api.CompareBools(a.Favorited, b.Favorited) },
	"saved":            func(a, b *insightRow) int { return api.CompareBools(a.Saved, b.Saved) },
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

// sortRows sorts rows as requested. The default is by relevance for a search, else by the field order. Equal rows keep their order, which is by number.
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
