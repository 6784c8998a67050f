package alerts

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/module/background"
	"github.com/caddy-analytics/caddy-analytics/module/backoff"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/rescue"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

const (
	// pollInterval is how often to look for alerts and messages that are due.
	pollInterval = time.Second
	// defaultSettle is how long a changed alert waits for its check, so that one check follows several changes.
	defaultSettle = 10 * time.Second
	// maxChecks is how many checks run at a time on a server, and maxChecksOfProject how many of them for one project.
	maxChecks          = 3
	maxChecksOfProject = 2
	// maxSending and maxSendingOfProject are the same for messages being sent.
	maxSending          = 8
	maxSendingOfProject = 2
)

// Config configures a Checker.
type Config struct {
	Registry *registry.Registry
	// Executor gets the numbers of insights.
	Executor *execution.Executor
	Logger   *zap.Logger
	// Webhook is where the messages of alerts without a webhook of their own go; zero for nowhere.
	Webhook registry.AlertWebhook
	// PrivateWebhooks lets alerts name webhooks at addresses that are not public. The operator's own webhook may have any address.
	PrivateWebhooks bool
	// Settle is how long a changed alert waits for its check. Default: ten seconds.
	Settle time.Duration
}

// Checker checks alerts and sends messages in the background. The registry holds what is to be done, so that nothing is forgotten when a server dies.
type Checker struct {
	Config

	every   time.Duration // how often to look for work that is due
	metrics *metrics
	worker  *background.Worker
	open    context.Context // ends with Close
	numbers func(context.Context, *registry.Snapshot, *registry.Alert, *Rule, time.Time) ([]Series, error)
	public  http.RoundTripper // sends to webhooks that alerts name
	own     http.RoundTripper // sends to the operator's webhook

	checks, sending *desk
	ahead           background.Ahead[name] // for times of checks
}

// New returns a Checker, which begins to look for work that is due.
func New(config Config) *Checker {
	c := newChecker(config)
	c.begin()
	return c
}

func newChecker(config Config) *Checker {
	config.Settle = cmp.Or(config.Settle, defaultSettle)
	w := background.New(config.Registry, config.Logger)
	c := &Checker{
		Config: config, every: pollInterval, metrics: newMetrics(), worker: w, open: w.Context(),
		public: newTransport(config.PrivateWebhooks), own: newTransport(true),
	}
	c.numbers = c.ask
	c.checks, c.sending = newDesk(maxChecks, maxChecksOfProject, c.dueChecks, c.check), newDesk(maxSending, maxSendingOfProject, c.dueMessages, c.send)
	return c
}

func (c *Checker) begin() {
	for _, d := range []*desk{c.checks, c.sending} {
		c.worker.Look(c.every, d.bell, func() { c.serve(d) })
	}
}

// Close stops running work. It is done again later, by this server or another.
func (c *Checker) Close() error { return c.worker.Close() }

// Look makes the checker look for due work at once.
func (c *Checker) Look() {
	c.checks.bell.Ring()
	c.sending.bell.Ring()
}

// job names an alert, and when work on it was due.
type job struct {
	name
	due time.Time
}

// name names an alert.
type name struct {
	project int64
	alert   string
}

func (n name) fields() []zap.Field {
	return []zap.Field{zap.Int64("project", n.project), zap.String("alert", n.alert)}
}

// desk hands out the work of one kind. It limits how many jobs run at a time in total and per project, and runs one at a time per alert.
type desk struct {
	places     chan struct{}
	perProject int
	find       func(*registry.Snapshot, int64, time.Time) []job // returns the due jobs of a project
	do         func(name) bool                                  // reports false if another server may be doing it
	bell       background.Bell
	pauses     backoff.Pauses[name] // for jobs that an outage has ended

	mu      sync.Mutex
	running map[name]bool
	busy    map[int64]int // places by project
}

func newDesk(places, perProject int, find func(*registry.Snapshot, int64, time.Time) []job, do func(name) bool) *desk {
	return &desk{
		places: make(chan struct{}, places), perProject: perProject, find: find, do: do, bell: background.NewBell(), running: map[name]bool{}, busy: map[int64]int{},
	}
}

// serve begins the work of a desk that is due.
func (c *Checker) serve(d *desk) {
	snap := c.Registry.Snapshot()
	d.pauses.Keep(func(n name) bool { return snap.Alert(n.project, n.alert) != nil })
	for _, j := range d.round(snap, time.Now()) {
		select {
		case d.places <- struct{}{}:
		case <-c.open.Done():
			return
		}
		if !d.enter(j.name) {
			<-d.places
			continue
		}
		c.worker.Go(func() {
			mine := true
			if err := rescue.Do(c.Logger, func() error { mine = d.do(j.name); return nil }, j.fields()...); err != nil {
				d.pauses.Failed(j.name, time.Now())
			}
			d.leave(j.name)
			<-d.places
			if mine { // another job of the project may wait
				d.bell.Ring()
			}
		})
	}
}

// maxRound bounds how many jobs are handed out before the next look, so that a project whose jobs become due in between is served soon.
const maxRound = 100

// round returns the due jobs in the order in which they are done: projects take turns, and within a project the job that is due for longest comes first.
func (d *desk) round(snap *registry.Snapshot, now time.Time) []job {
	type ranked struct {
		job
		rank int
	}
	var all []ranked
	for _, p := range snap.Projects() {
		found := d.find(snap, p.ID, now)
		slices.SortStableFunc(found, func(a, b job) int { return a.due.Compare(b.due) })
		for rank, j := range found[:min(len(found), maxRound)] {
			all = append(all, ranked{j, rank})
		}
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return cmp.Or(cmp.Compare(a.rank, b.rank), a.due.Compare(b.due)) })
	out := make([]job, min(len(all), maxRound))
	for i := range out {
		out[i] = all[i].job
	}
	return out
}

// enter records that a job runs. It reports false if the job is already running or its project has its share.
func (d *desk) enter(n name) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running[n] || d.busy[n.project] >= d.perProject {
		return false
	}
	d.running[n] = true
	d.busy[n.project]++
	return true
}

func (d *desk) leave(n name) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.running, n)
	if d.busy[n.project]--; d.busy[n.project] == 0 {
		delete(d.busy, n.project)
	}
}
