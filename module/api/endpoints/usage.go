package endpoints

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/module/querylog"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// usageRecord is the usage of an endpoint in JSON.
type usageRecord struct {
	ID             string     `json:"id"`
	Name           string     `json:"name"`
	IsActive       bool       `json:"is_active"`
	LastExecutedAt *time.Time `json:"last_executed_at"`
	Since          time.Time  `json:"since"` // when counting began
	Hour           window     `json:"hour"`
	Day            window     `json:"day"`

	// For a single endpoint only. Keys and customers need a log in ClickHouse: at most 100 of each, those with the most runs of the day first.
	Versions  []versionUsage  `json:"versions,omitzero"`
	Keys      []keyUsage      `json:"keys,omitzero"`
	Customers []customerUsage `json:"customers,omitzero"`
}

// keyUsage is the usage of an endpoint by a key.
type keyUsage struct {
	ID    string  `json:"id"`
	Label *string `json:"label"` // null for a deleted key
	Hour  window  `json:"hour"`
	Day   window  `json:"day"`
}

// customerUsage is the usage of an endpoint by the keys and tokens that fix the same variables.
type customerUsage struct {
	Variables json.RawMessage `json:"variables"`
	Hour      window          `json:"hour"`
	Day       window          `json:"day"`
}

// versionUsage is the usage of a version.
type versionUsage struct {
	Version        int        `json:"version"`
	IsCurrent      bool       `json:"is_current"`
	LastExecutedAt *time.Time `json:"last_executed_at"`
	Hour           window     `json:"hour"`
	Day            window     `json:"day"`
}

// window counts the runs of an hour or a day. Without runs, the ratio and the durations are null.
type window struct {
	From          time.Time `json:"from"`
	To            time.Time `json:"to"`
	Calls         int64     `json:"calls"`
	Answered      int64     `json:"answered"`
	Cached        int64     `json:"cached"`
	CacheHitRatio *float64  `json:"cache_hit_ratio"`
	P50           *float64  `json:"p50_ms"`
	P95           *float64  `json:"p95_ms"`
	Errors        int64     `json:"errors"`
	ClientErrors  int64     `json:"client_errors"`
	ServerErrors  int64     `json:"server_errors"`
	RateLimited   int64     `json:"rate_limited"`
	Series        *series   `json:"series,omitempty"`
}

// series counts the runs of each step of a window, oldest first.
type series struct {
	StepSeconds int        `json:"step_seconds"`
	Calls       []int64    `json:"calls"`
	Cached      []int64    `json:"cached"`
	Errors      []int64    `json:"errors"`
	RateLimited []int64    `json:"rate_limited"`
	P95         []*float64 `json:"p95_ms"`
}

func windowOf(w *runlog.Window) window {
	return window{
		From: w.From, To: w.To, Calls: w.Calls(), Answered: w.Answered, Cached: w.Cached, CacheHitRatio: ratio(w.Cached, w.Answered),
		P50: milliseconds(&w.Counts, .5), P95: milliseconds(&w.Counts, .95),
		Errors: w.Errors(), ClientErrors: w.ClientErrors, ServerErrors: w.ServerErrors, RateLimited: w.RateLimited,
	}
}

func withSeries(w *runlog.Window) window {
	out, steps := windowOf(w), &series{StepSeconds: int(w.Step / time.Second)}
	for i := range w.Steps {
		n := &w.Steps[i]
		steps.Calls, steps.Cached, steps.Errors = append(steps.Calls, n.Calls()), append(steps.Cached, n.Cached), append(steps.Errors, n.Errors())
		steps.RateLimited, steps.P95 = append(steps.RateLimited, n.RateLimited), append(steps.P95, milliseconds(n, .95))
	}
	out.Series = steps
	return out
}

// ratio returns part/all; nil if all is 0.
func ratio(part, all int64) *float64 {
	if all == 0 {
		return nil
	}
	return new(math.Round(1000*float64(part)/float64(all)) / 1000)
}

func milliseconds(n *runlog.Counts, q float64) *float64 {
	took, ok := n.Quantile(q)
	if !ok {
		return nil
	}
	return new(float64(took.Microseconds()) / 1000)
}

// usageFor returns the usage of an endpoint, and when counting its runs began.
type usageFor func(*registry.Endpoint) (used *querylog.Usage, since time.Time)

// used returns the usage of endpoints of a project: on all servers if ClickHouse has a log, else on this one. If whole, it also breaks it down by
// key and customer.
func (s *Runs) used(ctx context.Context, c *api.Caller, endpoints []*registry.Endpoint, whole bool) usageFor {
	all, first, ok, err := s.Executor.Log.Usage(ctx, s.Executor.EnterLog(c.Project.ID), c.Project.ID, idsOf(endpoints), whole, c.Start)
	if err != nil {
		s.unread(c, err)
	}
	return func(e *registry.Endpoint) (*querylog.Usage, time.Time) {
		log, since := s.Logs.Find(e.ID)
		if ok {
			if !first.IsZero() && first.Before(since) {
				since = first
			}
			return all[e.ID], since
		}
		if !whole {
			return &querylog.Usage{Usage: runlog.Usage{Windows: log.Windows(c.Start)}}, since
		}
		return &querylog.Usage{Usage: log.Usage(c.Start)}, since
	}
}

// days returns the counts of endpoints of a project in the last day: on all servers if ClickHouse has a log, else on this one.
func (s *Runs) days(ctx context.Context, c *api.Caller, endpoints []*registry.Endpoint) func(*registry.Endpoint) *runlog.Counts {
	all, ok, err := s.Executor.Log.Days(ctx, s.Executor.EnterLog(c.Project.ID), c.Project.ID, idsOf(endpoints), c.Start)
	if err != nil {
		s.unread(c, err)
	}
	return func(e *registry.Endpoint) *runlog.Counts {
		if ok {
			return all[e.ID]
		}
		log, _ := s.Logs.Find(e.ID)
		return new(log.Day(c.Start))
	}
}

func idsOf(endpoints []*registry.Endpoint) []string {
	ids := make([]string, len(endpoints))
	for i, e := range endpoints {
		ids[i] = e.ID
	}
	return ids
}

// usageOf returns the record of an endpoint's usage.
func usageOf(c *api.Caller, e *registry.Endpoint, used *querylog.Usage, since time.Time) usageRecord {
	return usageRecord{
		ID: e.ID, Name: e.Name, IsActive: e.Active, LastExecutedAt: api.OrNil(c.Snapshot.LastExecuted(e, 0)), Since: since,
		Hour: withSeries(&used.Hour), Day: withSeries(&used.Day),
	}
}

// getUsage answers GET endpoints/:name/usage/.
func (s *Runs) getUsage(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	e, err := find(c, in.At.Name)
	if err != nil {
		return nil, err
	}
	used, since := s.used(ctx, c, []*registry.Endpoint{e}, true)(e)
	record := usageOf(c, e, used, since)
	record.Versions, record.Keys, record.Customers = []versionUsage{}, []keyUsage{}, []customerUsage{}
	for i := range used.Versions {
		v := &used.Versions[i]
		record.Versions = append(record.Versions, versionUsage{
			Version: v.Version, IsCurrent: v.Version == e.CurrentVersion, LastExecutedAt: api.OrNil(lastOf(c, e, v)), Hour: windowOf(&v.Hour), Day: windowOf(&v.Day),
		})
	}
	for i := range used.Keys {
		k := &used.Keys[i]
		one := keyUsage{ID: k.Name, Hour: windowOf(&k.Hour), Day: windowOf(&k.Day)}
		if key := c.Snapshot.KeyByID(c.Project.ID, k.Name); key != nil {
			one.Label = &key.Label
		}
		record.Keys = append(record.Keys, one)
	}
	for i := range used.Customers {
		one := &used.Customers[i]
		record.Customers = append(record.Customers, customerUsage{Variables: json.RawMessage(one.Name), Hour: windowOf(&one.Hour), Day: windowOf(&one.Day)})
	}
	return api.JSON(http.StatusOK, record), nil
}

// lastOf returns when a version last ran. If runs are counted in steps of five minutes, the registry is more precise.
func lastOf(c *api.Caller, e *registry.Endpoint, v *runlog.VersionUsage) time.Time {
	if at := c.Snapshot.LastExecuted(e, v.Version); at.After(v.Last) {
		return at
	}
	return v.Last
}

// listUsage answers GET endpoint_usage/. It is not below endpoints/ because an endpoint there can have any name.
func (s *Runs) listUsage(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	found, err := searchEndpoints(in, c.Snapshot.Endpoints(c.Project.ID))
	if err != nil {
		return nil, err
	}
	if names := in.URL.Query().Get("names"); names != "" {
		if strings.Count(names, ",") >= maxNames {
			return nil, errNames
		}
		wanted := make(map[string]bool)
		for name := range strings.SplitSeq(names, ",") {
			wanted[name] = true
		}
		found = slices.DeleteFunc(found, func(e *registry.Endpoint) bool { return !wanted[e.Name] })
	}
	if err := s.orderByUsage(ctx, c, in, found); err != nil {
		return nil, err
	}
	shown, page, err := api.CutPage(in, found)
	if err != nil {
		return nil, err
	}
	shown = shown[:min(len(shown), usagesShown)]
	used := s.used(ctx, c, shown, false)
	for _, e := range shown {
		of, since := used(e)
		if !page.Add(jsontext.Append(nil, usageOf(c, e, of, since))) {
			break
		}
	}
	return page.Response(in), nil
}

// usagesShown is how many endpoints a page of usage has at most: each takes about 16 KB while the page is made.
const usagesShown = 500

// usageOrders are the values by which endpoints can be ordered, from their runs of the last day.
var usageOrders = map[string]func(n *runlog.Counts) int64{
	"calls":        func(n *runlog.Counts) int64 { return n.Calls() },
	"errors":       func(n *runlog.Counts) int64 { return n.Errors() },
	"rate_limited": func(n *runlog.Counts) int64 { return n.RateLimited },
	"p95_ms":       func(n *runlog.Counts) int64 { took, _ := n.Quantile(.95); return int64(took) },
}

// orderByUsage sorts endpoints by the parameter ordering. Equal ones keep their order.
func (s *Runs) orderByUsage(ctx context.Context, c *api.Caller, in *api.Input, found []*registry.Endpoint) error {
	given := in.URL.Query().Get("ordering")
	name, descending := strings.CutPrefix(given, "-")
	var compare func(a, b *registry.Endpoint) int
	switch by := usageOrders[name]; {
	case given == "":
		return nil
	case by != nil:
		keys := make(map[*registry.Endpoint]int64, len(found))
		day := s.days(ctx, c, found)
		for _, e := range found {
			keys[e] = by(day(e))
		}
		compare = func(a, b *registry.Endpoint) int { return cmp.Compare(keys[a], keys[b]) }
	case name == "name":
		compare = func(a, b *registry.Endpoint) int { return strings.Compare(a.Name, b.Name) }
	case name == "last_executed_at":
		compare = func(a, b *registry.Endpoint) int {
			return c.Snapshot.LastExecuted(a, 0).Compare(c.Snapshot.LastExecuted(b, 0))
		}
	default:
		return api.Invalid("ordering", "invalid_choice", "%q is not a valid choice.", given)
	}
	slices.SortStableFunc(found, func(a, b *registry.Endpoint) int {
		if descending {
			return compare(b, a)
		}
		return compare(a, b)
	})
	return nil
}
