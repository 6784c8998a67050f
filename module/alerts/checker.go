package alerts

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/module/backoff"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

const (
	// lookEvery is how often to look for alerts that are due, and for messages.
	lookEvery = time.Second
	// defaultSettle is how long an alert that was changed waits for its check, so that one follows several changes.
	defaultSettle = 10 * time.Second
	// maxChecks is how many checks run at once on a server, and maxChecksOfProject how many of them are of one project.
	maxChecks          = 3
	maxChecksOfProject = 2
	// maxSending and maxSendingOfProject are the same for messages that are being sent.
	maxSending          = 8
	maxSendingOfProject = 2
)

// Config is what a Checker works with.
type Config struct {
	Registry *registry.Registry
	// Executor gets the numbers of insights.
	Executor *execution.Executor
	Logger   *zap.Logger
	// Webhook is where messages go of alerts that name no webhook of their own; zero for nowhere.
	Webhook registry.AlertWebhook
	// PrivateWebhooks lets alerts name webhooks at addresses that are not public. The operator's own may be at any.
	PrivateWebhooks bool
	// Settle is how long an alert that was changed waits for its check. Default: ten seconds.
	Settle time.Duration
}

// Checker checks alerts and sends messages in the background. What is to be done is in the registry, so that nothing is forgotten when a
// server dies.
type Checker struct {
	Config

	every   time.Duration // how often to look for what is due
	holder  string        // the name under which it takes locks
	metrics *metrics
	numbers func(context.Context, *registry.Snapshot, *registry.Alert, *Rule, time.Time) ([]Series, error)
	public  http.RoundTripper // sends to webhooks that alerts name
	own     http.RoundTripper // sends to that of the operator

	open context.Context // ends with Close
	end  context.CancelFunc
	done sync.WaitGroup

	checks, sending *desk
}

// New returns a checker, which begins to look for what is due.
func New(config Config) *Checker {
	c := newChecker(config)
	c.begin()
	return c
}

func newChecker(config Config) *Checker {
	config.Settle = cmp.Or(config.Settle, defaultSettle)
	c := &Checker{
		Config: config, every: lookEvery, holder: uuid.NewString(), metrics: newMetrics(),
		public: newTransport(config.PrivateWebhooks), own: newTransport(true),
	}
	c.numbers = c.ask
	c.open, c.end = context.WithCancel(context.Background())
	c.checks, c.sending = newDesk(maxChecks, maxChecksOfProject, c.dueChecks, c.check), newDesk(maxSending, maxSendingOfProject, c.dueMessages, c.send)
	return c
}

func (c *Checker) begin() {
	c.done.Go(func() { c.serve(c.checks) })
	c.done.Go(func() { c.serve(c.sending) })
}

// Close stops what runs. It is done again later, by this server or another one.
func (c *Checker) Close() error {
	c.end()
	c.done.Wait()
	return nil
}

// Look has the checker look for what is due at once.
func (c *Checker) Look() {
	c.checks.wake()
	c.sending.wake()
}

// job names an alert, and when something was to be done about it.
type job struct {
	name
	due time.Time
}

// name names an alert.
type name struct {
	project int64
	alert   string
}

// desk hands out the work of one kind: so many jobs at once, of which so many are of one project, and one of an alert.
type desk struct {
	places     chan struct{}
	perProject int
	find       func(*registry.Snapshot, int64, time.Time) []job // those of a project that are due
	do         func(name)
	woken      chan struct{}
	pauses     backoff.Pauses[name] // of those that an outage has ended

	mu      sync.Mutex
	running map[name]bool
	busy    map[int64]int // places by project
}

func newDesk(places, perProject int, find func(*registry.Snapshot, int64, time.Time) []job, do func(name)) *desk {
	return &desk{
		places: make(chan struct{}, places), perProject: perProject, find: find, do: do, woken: make(chan struct{}, 1), running: map[name]bool{}, busy: map[int64]int{},
	}
}

func (d *desk) wake() {
	select {
	case d.woken <- struct{}{}:
	default: // it is to look already
	}
}

// serve has the work of a desk done until the checker is closed.
func (c *Checker) serve(d *desk) {
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	for {
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
			c.done.Go(func() {
				d.do(j.name)
				d.leave(j.name)
				<-d.places
			})
		}
		select {
		case <-c.open.Done():
			return
		case <-d.woken:
		case <-tick.C:
		}
	}
}

// longestRound bounds what is handed out before the next look, so that a project that begins to wait then is soon served.
const longestRound = 100

// round is what is due, in the order in which it is done: projects take turns, and of each what is due for the longest time comes first.
func (d *desk) round(snap *registry.Snapshot, now time.Time) []job {
	type ranked struct {
		job
		rank int
	}
	var all []ranked
	for _, p := range snap.Projects() {
		found := d.find(snap, p.ID, now)
		slices.SortStableFunc(found, func(a, b job) int { return a.due.Compare(b.due) })
		for rank, j := range found[:min(len(found), longestRound)] {
			all = append(all, ranked{j, rank})
		}
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return cmp.Or(cmp.Compare(a.rank, b.rank), a.due.Compare(b.due)) })
	out := make([]job, min(len(all), longestRound))
	for i := range out {
		out[i] = all[i].job
	}
	return out
}

// enter notes that a job runs, unless it does already or its project has its share.
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
