package endpoints

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// usageRecord is how an endpoint was used, in JSON.
type usageRecord struct {
	ID             string     `json:"id"`
	Name           string     `json:"name"`
	IsActive       bool       `json:"is_active"`
	LastExecutedAt *time.Time `json:"last_executed_at"`
	Since          time.Time  `json:"since"` // from when on runs are counted
	Hour           window     `json:"hour"`
	Day            window     `json:"day"`

	Versions []versionUsage `json:"versions,omitzero"` // of one endpoint alone
}

// versionUsage is how a version was used.
type versionUsage struct {
	Version        int        `json:"version"`
	IsCurrent      bool       `json:"is_current"`
	LastExecutedAt *time.Time `json:"last_executed_at"`
	Hour           window     `json:"hour"`
	Day            window     `json:"day"`
}

// window is the runs of an hour or a day. Without any, there are no times.
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

// series is the runs of each step of a window, oldest first.
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

// ratio is the share of part in all; nil without any.
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

// usageOf is how an endpoint was used.
func (s *Runs) usageOf(c *api.Caller, e *registry.Endpoint) usageRecord {
	log, since := s.Logs.Find(e.ID)
	used := log.Windows(c.Start)
	return usageRecord{
		ID: e.ID, Name: e.Name, IsActive: e.Active, LastExecutedAt: api.OrNil(c.Snapshot.LastExecuted(e, 0)), Since: since,
		Hour: withSeries(&used.Hour), Day: withSeries(&used.Day),
	}
}

// getUsage answers GET endpoints/:name/usage/.
func (s *Runs) getUsage(_ context.Context, c api.Caller, in api.Input) (api.Response, error) {
	e, err := find(&c, in.At.Name)
	if err != nil {
		return api.Response{}, err
	}
	record := s.usageOf(&c, e)
	record.Versions = []versionUsage{}
	log, _ := s.Logs.Find(e.ID)
	for _, v := range log.Usage(c.Start).Versions {
		record.Versions = append(record.Versions, versionUsage{
			Version: v.Version, IsCurrent: v.Version == e.CurrentVersion, LastExecutedAt: api.OrNil(v.Last), Hour: windowOf(&v.Hour), Day: windowOf(&v.Day),
		})
	}
	return api.JSON(http.StatusOK, record), nil
}

// listUsage answers GET endpoint_usage/. It does not stand below endpoints/, where an endpoint may have any name.
func (s *Runs) listUsage(_ context.Context, c api.Caller, in api.Input) (api.Response, error) {
	found := searchEndpoints(in, c.Snapshot.Endpoints(c.Project.ID))
	if names := in.URL.Query().Get("names"); names != "" {
		wanted := strings.Split(names, ",")
		found = slices.DeleteFunc(found, func(e *registry.Endpoint) bool { return !slices.Contains(wanted, e.Name) })
	}
	if err := s.orderByUsage(&c, in, found); err != nil {
		return api.Response{}, err
	}
	return api.PageBy(in, found, func(e *registry.Endpoint) usageRecord { return s.usageOf(&c, e) })
}

// usageOrders are what endpoints can be ordered by: their runs of the last day.
var usageOrders = map[string]func(n *runlog.Counts) int64{
	"calls":        func(n *runlog.Counts) int64 { return n.Calls() },
	"errors":       func(n *runlog.Counts) int64 { return n.Errors() },
	"rate_limited": func(n *runlog.Counts) int64 { return n.RateLimited },
	"p95_ms":       func(n *runlog.Counts) int64 { took, _ := n.Quantile(.95); return int64(took) },
}

// orderByUsage puts endpoints into the order that the parameter ordering names. Those that are equal stay as they are.
func (s *Runs) orderByUsage(c *api.Caller, in api.Input, found []*registry.Endpoint) error {
	given := in.URL.Query().Get("ordering")
	name, descending := strings.CutPrefix(given, "-")
	var compare func(a, b *registry.Endpoint) int
	switch by := usageOrders[name]; {
	case given == "":
		return nil
	case by != nil:
		keys := make(map[*registry.Endpoint]int64, len(found))
		for _, e := range found {
			log, _ := s.Logs.Find(e.ID)
			n := log.Day(c.Start)
			keys[e] = by(&n)
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
