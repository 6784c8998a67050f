package module

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/time/rate"

	wire "github.com/caddy-analytics/caddy-analytics/ingest/capture"
	"github.com/caddy-analytics/caddy-analytics/ingest/delivery"
	"github.com/caddy-analytics/caddy-analytics/ingest/journal"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/internal/pause"
	"github.com/caddy-analytics/caddy-analytics/module/api/capture"
)

// capturing is what takes in events. There is one for each data folder, whatever the config: when a reload changes the connection to ClickHouse,
// events still wait in the same journals.
type capturing struct {
	logs     *delivery.Logs
	counters *capture.Counters
	memory   *capture.Memory
	limiters sync.Map // token → *limiter
	rereads  rereads
}

// openCapture takes a share of what takes in events.
func (a *App) openCapture(key string) (*capturing, error) {
	return keep(a, key, func() (*capturing, func() error, error) {
		logger := a.logger.Named("capture")
		logs, err := delivery.OpenLogs(filepath.Join(a.DataDir, "capture"), int64(a.Capture.Buffer), logger)
		if err != nil {
			return nil, nil, fmt.Errorf("opening the log of captured events: %w", err)
		}
		c := &capturing{logs: logs, counters: capture.NewCounters(), memory: capture.NewMemory(capture.DefaultMemory)}
		return c, logs.Close, nil
	})
}

// newCapture returns the routes that SDKs send to.
func (a *App) newCapture(rt *runtime) *capture.Capture {
	c := rt.capturing
	out := &capture.Capture{
		Project: func(ctx context.Context, token string) (int64, bool, error) {
			return projectOfToken(ctx, rt.registry, &c.rereads, token)
		},
		Append: func(ctx context.Context, e capture.Entry) error {
			shard := rt.registry.Snapshot().ShardOf(e.Project)
			err := c.logs.Append(ctx, shard, journal.Entry{Project: e.Project, Arrived: e.Arrived, Events: e.Events, Data: e.Data})
			if errors.Is(err, journal.ErrFull) {
				return capture.ErrFull
			}
			return err
		},
		ClientIP: clientIP, Logger: a.logger.Named("capture"), Counters: c.counters, Memory: c.memory,
		MaxBody: int64(a.Capture.MaxBatchSize), Limits: wire.Limits{Event: int(a.Capture.MaxEventSize)},
	}
	if a.Capture.Rate.Queries > 0 {
		out.Limit = func(token string, events int, now time.Time) (func(), time.Duration) {
			return c.limit(a.Capture.Rate, token, events, now)
		}
	}
	return out
}

// deliver makes a runtime's ClickHouse the target of captured events.
func (*App) deliver(rt *runtime) (release func() error) {
	stop := rt.capturing.logs.Use(rt.intake)
	return func() error {
		stop()
		return nil
	}
}

// limiter bounds the events of a token.
type limiter struct {
	*rate.Limiter

	rate Rate

	mu     sync.Mutex // held while a request takes all of its events
	latest time.Time  // of all requests
}

// limit counts events against the rate of a token. It returns after how long to try again; 0 if they may come in, and then giveBack, for events that were not
// kept. A request with more events than the rate has per period is accepted if a whole period is unused, since it could never be accepted otherwise. The rest
// counts against the following periods.
func (c *capturing) limit(most Rate, token string, events int, now time.Time) (giveBack func(), wait time.Duration) {
	for {
		found, known := c.limiters.Load(token)
		if l, _ := found.(*limiter); known && l.rate == most {
			if wait = l.take(events, now); wait > 0 {
				return nil, wait
			}
			return func() { l.giveBack(events) }, 0
		}
		fresh := &limiter{rate: most, Limiter: rate.NewLimiter(rate.Limit(float64(most.Queries)/most.Per.Seconds()), most.Queries)}
		if known {
			c.limiters.CompareAndSwap(token, found, fresh)
		} else {
			c.limiters.LoadOrStore(token, fresh)
		}
	}
}

// take takes events, possibly more than a period has. now is when their request began, which may be before that of a request that has taken some: the
// limiter would give out the time in between again.
func (l *limiter) take(events int, now time.Time) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Before(l.latest) {
		now = l.latest
	}
	l.latest = now
	period := l.Burst()
	taken := l.ReserveN(now, min(events, period))
	if wait := taken.DelayFrom(now); wait > 0 {
		taken.CancelAt(now)
		return wait
	}
	for left := events - period; left > 0; left -= period {
		l.ReserveN(now, min(left, period))
	}
	return 0
}

// giveBack gives back what take has taken. Reserving fewer than no events does that: canceling a reservation has no effect once its time has come.
func (l *limiter) giveBack(events int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ReserveN(l.latest, -events)
}

// eraseProjects waits until the events captured so far for a shard are off the disk, and removes set-aside events of deleted projects.
func (c *capturing) eraseProjects(ctx context.Context, shard string, gone func(project int64) bool) error {
	return c.eraseLines(ctx, shard, func(project int64, _ []byte) bool { return gone(project) })
}

// deliveredPollInterval is how often to check whether captured events are delivered.
const deliveredPollInterval = 100 * time.Millisecond

// erase waits until the events captured so far for a shard are delivered and off the disk, and removes set-aside events for which gone returns true.
func (c *capturing) erase(ctx context.Context, shard string, gone func(project int64, distinctID string) bool) error {
	var parser record.Parser
	return c.eraseLines(ctx, shard, func(project int64, line []byte) bool {
		r, err := parser.Parse(line)
		return err == nil && gone(project, r.DistinctID)
	})
}

func (c *capturing) eraseLines(ctx context.Context, shard string, gone func(project int64, line []byte) bool) error {
	one := c.logs.Of(shard)
	if one == nil { // nothing was ever captured for it
		return nil
	}
	for upTo := one.Journal.Rotate(); !one.Journal.Gone(upTo); {
		if pause.For(ctx, deliveredPollInterval) != nil {
			return ctx.Err()
		}
	}
	return one.Journal.EraseAside(ctx, gone)
}
