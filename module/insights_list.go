package module

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// insightRow is an insight on its way into a list.
type insightRow struct {
	*registry.Insight
	viewed time.Time // the last time that anybody looked at it; zero: never
	match  string    // exact or similar; empty when nothing is searched for
	score  float64   // how well it matches
}

// resultsAtOnce is how many insights of one list are computed at the same time.
const resultsAtOnce = 4

// listInsights answers GET insights/: contract section 4.2.
func (rq *request) listInsights() error {
	cut := rq.findInsights
	if rq.plainInsights() {
		cut = rq.insightPage
	}
	part, out, err := cut()
	if err != nil {
		return err
	}
	if rq.isSet("basic") {
		for _, row := range part {
			basic := rq.basicInsight(row.Insight)
			row.complete(&basic.insightHead)
			if !out.Add(jsontext.Append(nil, basic)) {
				break
			}
		}
	} else if err := rq.addInsights(out, part); err != nil {
		return err
	}
	rq.writeList(out)
	return nil
}

// plainInsights reports whether the list is of all insights in the order in which the registry keeps them.
func (rq *request) plainInsights() bool {
	given := rq.r.URL.Query()
	for name := range given {
		if insightFilters[name] != nil {
			return false
		}
	}
	return given.Get("search") == "" && (given.Get("order") == "" || given.Get("order") == "order")
}

// insightPage returns a page of all insights. It takes the same time however many there are.
func (rq *request) insightPage() ([]insightRow, *api.List, error) {
	limit, offset, err := rq.input().PageParams()
	if err != nil {
		return nil, nil, err
	}
	page, total := rq.Snapshot.InsightPage(rq.Project.ID, offset, limit)
	ids := make([]int64, len(page))
	for i, insight := range page {
		ids[i] = insight.ID
	}
	views, err := rq.rt.registry.ViewsOf(rq.r.Context(), rq.Project.ID, ids)
	if err != nil {
		return nil, nil, err
	}
	return insightRows(page, views), api.NewList(total, limit, offset), nil
}

// findInsights returns a page of the insights that the query string asks for, in its order.
func (rq *request) findInsights() ([]insightRow, *api.List, error) {
	views, err := rq.rt.registry.Views(rq.r.Context(), rq.Project.ID, time.Time{})
	if err != nil {
		return nil, nil, err
	}
	rows, err := rq.filterInsights(insightRows(rq.Snapshot.Insights(rq.Project.ID), views))
	if err != nil {
		return nil, nil, err
	}
	if rows, err = rq.searchInsights(rows); err != nil {
		return nil, nil, err
	}
	if err := rq.sortInsights(rows); err != nil {
		return nil, nil, err
	}
	return api.CutPage(rq.input(), rows)
}

// complete puts in what an insight has in lists alone.
func (row insightRow) complete(head *insightHead) {
	head.LastViewedAt, head.SearchMatchType = api.OrNil(row.viewed), api.OrNull(row.match)
}

// addInsights adds insights with their results, in the mode that the request names, to a list. Those for which it has no room are not
// computed, but for the few that are on their way when it is full.
func (rq *request) addInsights(to *api.List, rows []insightRow) error {
	params, err := rq.insightParams()
	if err != nil {
		return err
	}
	out := make([]json.RawMessage, len(rows))
	var size atomic.Int64
	err = rq.sideBySide(len(rows), func(own *request, i int) error {
		if size.Load() > api.MaxListBytes {
			return nil
		}
		s := own.shown(rows[i].Insight)
		res, err := own.result(s, params.several())
		if err != nil {
			return err
		}
		out[i] = own.appendInsight(nil, s, res, rows[i].complete)
		size.Add(int64(len(out[i])))
		return nil
	})
	if err != nil {
		return err
	}
	for _, record := range out {
		if record == nil || !to.Add(record) {
			break
		}
	}
	return nil
}

// sideBySide calls do for each of n insights, some at the same time, each with a request of its own. What they say in headers,
// such as what is left of a limit, stands in the answer as the last of them said it.
func (rq *request) sideBySide(n int, do func(own *request, i int) error) error {
	var all errgroup.Group
	all.SetLimit(resultsAtOnce)
	var mu sync.Mutex // of the answer's headers
	for i := range n {
		all.Go(func() error {
			own, said := *rq, headersOnly{}
			own.w = said
			err := do(&own, i)
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(rq.w.Header(), said.Header())
			return err
		})
	}
	return all.Wait()
}

// headersOnly takes the headers of what is a part of an answer.
type headersOnly http.Header

// Header returns the headers.
func (h headersOnly) Header() http.Header { return http.Header(h) }

// Write passes over a body.
func (headersOnly) Write(body []byte) (int, error) { return len(body), nil }

// WriteHeader passes over a status.
func (headersOnly) WriteHeader(int) {}

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

// insightOrders compare two insights by a field. Times and texts that are not there come last, as in the peer's database;
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

// sortInsights puts rows in the order that the request names: without one by relevance when something is searched for, else
// by the field order. Those that are equal stand by number.
func (rq *request) sortInsights(rows []insightRow) error {
	given := rq.r.URL.Query().Get("order")
	name, descending := strings.CutPrefix(cmp.Or(given, "order"), "-")
	compare := insightOrders[name]
	switch {
	case given == "" && rq.r.URL.Query().Get("search") != "":
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
				if user := rq.UserNumber(key); user != 0 {
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
