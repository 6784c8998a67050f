package module

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	wire "github.com/caddy-analytics/caddy-analytics/ingest/capture"
	"github.com/caddy-analytics/caddy-analytics/ingest/delivery"
	"github.com/caddy-analytics/caddy-analytics/ingest/journal"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/module/api/capture"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// capturing is what events come in by. There is one for each data folder, whatever the config: while a reload changes the connection to
// ClickHouse, events still wait in the same journal.
type capturing struct {
	journal  *journal.Journal
	delivery *delivery.Delivery
	counters *capture.Counters
	memory   *capture.Memory
	limiters sync.Map // token → *limiter
}

// openCapture takes a share of what events come in by.
func (a *App) openCapture() (*capturing, error) {
	return keep(a, "capture "+a.DataDir, func() (*capturing, func() error, error) {
		logger := a.logger.Named("capture")
		j, err := journal.Open(filepath.Join(a.DataDir, "capture"), journal.Options{MaxBytes: int64(a.Capture.Buffer), Logger: logger})
		if err != nil {
			return nil, nil, fmt.Errorf("opening the log of captured events: %w", err)
		}
		c := &capturing{
			journal: j, delivery: delivery.New(j, logger), counters: capture.NewCounters(), memory: capture.NewMemory(capture.DefaultMemory),
		}
		return c, func() error { return errors.Join(c.delivery.Close(), j.Close()) }, nil
	})
}

// newCapture makes the routes that SDKs send to.
func (a *App) newCapture(rt *runtime) *capture.Capture {
	c := rt.capturing
	out := &capture.Capture{
		Project: func(token string) (int64, bool) { return rt.registry.Snapshot().ProjectOfCaptureToken(token) },
		Append: func(ctx context.Context, e capture.Entry) error {
			err := c.journal.Append(ctx, journal.Entry{Project: e.Project, Arrived: e.Arrived, Events: e.Events, Data: e.Data})
			if errors.Is(err, journal.ErrFull) {
				return capture.ErrFull
			}
			return err
		},
		ClientIP: clientIP, Logger: a.logger.Named("capture"), Counters: c.counters, Memory: c.memory,
		MaxBody: int64(a.Capture.MaxBatchSize), Limits: wire.Limits{Event: int(a.Capture.MaxEventSize)},
	}
	if a.Capture.Rate.Queries > 0 {
		out.Limit = func(token string, events int, now time.Time) time.Duration {
			return c.limit(a.Capture.Rate, token, events, now)
		}
	}
	return out
}

// deliver makes ClickHouse as a runtime has it the target of captured events.
func (*App) deliver(rt *runtime) (release func() error) {
	stop := rt.capturing.delivery.Use(deliverTo{rt})
	return func() error {
		stop()
		return nil
	}
}

// clientIP is the address of the client, which Caddy takes from a header where it trusts the proxy.
func clientIP(r *http.Request) string {
	ip, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	return ip
}

// limiter is what events a token may send.
type limiter struct {
	rate Rate
	*rate.Limiter
}

// limit takes events from what a token may send. It returns after what time to try again; 0 if they may come. A request with more events
// than the rate has in a period counts as a whole period, since it could never come otherwise.
func (c *capturing) limit(most Rate, token string, events int, now time.Time) time.Duration {
	found, _ := c.limiters.Load(token)
	l, _ := found.(*limiter)
	if l == nil || l.rate != most {
		l = &limiter{most, rate.NewLimiter(rate.Limit(float64(most.Queries)/most.Per.Seconds()), most.Queries)}
		c.limiters.Store(token, l)
	}
	taken := l.ReserveN(now, min(events, l.Burst()))
	if wait := taken.DelayFrom(now); wait > 0 {
		taken.CancelAt(now)
		return wait
	}
	return 0
}

// deliverTo is where captured events go while a config is the running one.
type deliverTo struct{ *runtime }

// Deliver implements delivery.Target.
func (rt deliverTo) Deliver(ctx context.Context, project int64, records []record.Record) (ingest.Report, error) {
	snap := rt.registry.Snapshot()
	if snap.Project(project) == nil {
		return ingest.Report{}, &delivery.RefusedError{Reason: fmt.Errorf("project %d: %w", project, registry.ErrNotFound)}
	}
	if _, err := rt.Warehouse.Layout(ctx); err != nil {
		return ingest.Report{}, err
	}
	report, err := rt.Warehouse.Deliver(ctx, rt.ingestOptions(snap, project), records)
	learnErr := rt.learn(ctx, project, &report)
	if full, ok := errors.AsType[*registry.FieldError](learnErr); ok { // to try again would keep all events waiting
		rt.logger.Warn("types of captured properties are not recorded", zap.Int64("project", project), zap.String("reason", full.Message))
		learnErr = nil
	}
	return report, errors.Join(err, learnErr)
}

// ingestOptions are those of records that come in now, whose types are learned.
func (rt *runtime) ingestOptions(snap *registry.Snapshot, project int64) ingest.Options {
	static, computed := cohortIDs(snap, project)
	return ingest.Options{
		Project: project, LearnTypes: true, Now: time.Now(), KnownTypes: knownTypes(snap, project), MaxTypes: registry.MaxProperties,
		GroupTypes: groupTypes(snap, project), KeepGroupTypes: rt.keepGroupTypes(project), Cohorts: static, Computed: computed,
	}
}
