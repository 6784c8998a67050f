// Package cohorts computes the members of cohorts with queries that run inside ClickHouse. They run on demand and on a schedule, one at a time per
// cohort across all servers that share a registry. The package knows neither HTTP nor Caddy.
package cohorts

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/internal/panics"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/background"
	"github.com/caddy-analytics/caddy-analytics/module/backoff"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/rescue"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// calculations share the places of a server with queries.
var calculations = admission.Class{Most: 3}

const (
	// defaultKeep is how long a replaced version stays: longer than a query waits for its turn and runs, and longer than a calculation that reads the
	// version.
	defaultKeep = 2 * time.Hour
	// pollInterval is how often to look for cohorts that wait for a calculation: another server may have requested that, or may have died.
	pollInterval = time.Second
	// scheduleEvery is how often to look for cohorts whose members are too old, and for versions that nobody reads any more.
	scheduleEvery = time.Minute
)

// Config configures a Calculator.
type Config struct {
	Registry *registry.Registry
	Compiler *execution.Compiler
	Shards   *warehouse.Shards
	Places   *admission.Scheduler
	Logger   *zap.Logger
	// InUse reports whether something saved uses a cohort: an insight, an endpoint, another cohort. Nil: nothing does.
	InUse func(snap *registry.Snapshot, project, cohort int64) bool
	// Keep is how long a replaced version stays. Default: two hours.
	Keep time.Duration
}

// Calculator computes the members of cohorts in the background. The registry holds what is to be computed, so that nothing is forgotten when a server
// dies. Its methods are safe for concurrent use.
type Calculator struct {
	Config

	metrics *metrics
	worker  *background.Worker
	open    context.Context // ends with Close
	bell    background.Bell

	mu         sync.Mutex
	inProgress map[name]*calculation
	used       map[name]time.Time // when a query last used a cohort
	versions   map[name]*versions

	ahead    background.Ahead[name] // for times of calculations
	failed   background.Ahead[name] // for times of failures
	pauses   backoff.Pauses[name]   // for calculations that an outage has ended
	cleaning *background.PerShard
}

// name names a cohort.
type name struct{ project, cohort int64 }

func (n name) fields() []zap.Field {
	return []zap.Field{zap.Int64("project", n.project), zap.Int64("cohort", n.cohort)}
}

// New returns a Calculator, which begins to look for what is to be computed.
func New(config Config) *Calculator {
	config.Keep = cmp.Or(config.Keep, defaultKeep)
	w := background.New(config.Registry, config.Logger)
	c := &Calculator{
		Config: config, metrics: newMetrics(), worker: w, open: w.Context(), bell: background.NewBell(), cleaning: w.PerShard(),
		inProgress: map[name]*calculation{}, used: map[name]time.Time{}, versions: map[name]*versions{},
	}
	w.Look(pollInterval, c.bell, c.look)
	w.Every(min(scheduleEvery, c.Keep), c.follow)
	return c
}

// Close stops the running calculations. In the registry, their cohorts still wait for them.
func (c *Calculator) Close() error { return c.worker.Close() }

// Calculate starts the calculation that a cohort waits for. It returns at once.
func (c *Calculator) Calculate(project, cohort int64) {
	c.pauses.End(name{project, cohort})
	c.bell.Ring()
}

// maxBegun is how many calculations of a project run or wait for a place before look begins no more. When one ends, it begins the next. Those that wait for
// another calculation or another server do not count, and one that somebody waits for begins at once.
const maxBegun = 10

// look begins the calculations that cohorts wait for. In a project, those computed longest ago come first.
func (c *Calculator) look() {
	snap := c.Registry.Snapshot()
	c.pauses.Keep(func(n name) bool { return snap.Cohort(n.project, n.cohort) != nil })
	begun := c.begun()
	for _, p := range snap.Projects() {
		var due []*registry.Cohort
		for _, known := range snap.Cohorts(p.ID) {
			if n := (name{p.ID, known.ID}); known.Calculating() && !c.pauses.Holds(n, time.Now()) && !c.isInProgress(n) {
				due = append(due, known)
			}
		}
		slices.SortStableFunc(due, func(a, b *registry.Cohort) int { return a.LastCalculation.Compare(b.LastCalculation) })
		for _, known := range due[:min(len(due), max(0, maxBegun-begun[p.ID]))] {
			c.begin(name{p.ID, known.ID})
		}
	}
}

// begun returns how many calculations of each project run or wait for a place.
func (c *Calculator) begun() map[int64]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := map[int64]int{}
	for n, one := range c.inProgress {
		if one.below == nil && !one.elsewhere {
			of[n.project]++
		}
	}
	return of
}

func (c *Calculator) isInProgress(n name) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inProgress[n] != nil
}

// calculation is one that is running or waiting for its turn.
type calculation struct {
	awaited chan struct{} // closed once somebody waits for it
	await   sync.Once
	ended   chan struct{}
	err     error // set before ended is closed: why it could not be determined whether the members can be computed

	// Calculator.mu guards these.
	below     *calculation // the calculation that it waits for
	elsewhere bool         // another server computes the cohort
}

// begin begins a calculation, unless there is one. It returns nil if the calculator is closed.
func (c *Calculator) begin(n name) *calculation {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one := c.inProgress[n]; one != nil {
		return one
	}
	one := &calculation{awaited: make(chan struct{}), ended: make(chan struct{})}
	begun := c.worker.Go(func() {
		one.err = rescue.Do(c.Logger, func() error { return c.computeInTurn(n, one) }, n.fields()...)
		if _, panicked := errors.AsType[*panics.Error](one.err); panicked {
			one.err = c.postponed(n, one.err)
		}
		c.mu.Lock()
		delete(c.inProgress, n)
		c.mu.Unlock()
		close(one.ended)
		c.bell.Ring() // the cohort may have been changed in the meantime
	})
	if !begun {
		return nil
	}
	c.inProgress[n] = one
	return one
}
