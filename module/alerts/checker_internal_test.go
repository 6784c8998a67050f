package alerts

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/internal/eventually"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
	_ "github.com/caddy-analytics/caddy-analytics/registry/sqlite"
)

// world is a registry with a project and a trend, with the insight's numbers and what the webhook received.
type world struct {
	*testing.T

	dir      string
	registry *registry.Registry
	insight  int64

	mu      sync.Mutex
	number  float64
	failure error // of the insight
	status  int   // that the webhook answers
	asked   int
	got     []*http.Request
	bodies  []string
	// every is how often checkers look, and settle how long a changed alert waits; zero for the defaults.
	every, settle time.Duration
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, dir: t.TempDir(), status: http.StatusOK}
	w.registry = w.openRegistry()
	if _, err := w.registry.CreateProject(t.Context(), registry.NewProject{Name: "Shop", Timezone: "Europe/Berlin"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	i, err := w.registry.CreateInsight(t.Context(), 1, registry.InsightFields{
		Name: registry.To(new("Views")), Query: registry.To(json.RawMessage(`{"kind":"TrendsQuery","series":[{"kind":"EventsNode"}]}`)),
	}, "key", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	w.insight = i.ID
	return w
}

func (w *world) openStore() registry.Store {
	w.Helper()
	store, err := registry.OpenStore(w.Context(), "sqlite:"+filepath.Join(w.dir, "registry.db"), w.dir)
	if err != nil {
		w.Fatal(err)
	}
	return store
}

func (w *world) openRegistry() *registry.Registry {
	w.Helper()
	return w.openOn(w.openStore())
}

func (w *world) openOn(store registry.Store) *registry.Registry {
	w.Helper()
	r, err := registry.Open(w.Context(), store, registry.Options{Poll: time.Hour})
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// checker returns a checker on a registry that looks for due work.
func (w *world) checker(r *registry.Registry) *Checker {
	c := w.idle(r)
	c.begin()
	return c
}

// idle returns a checker on a registry that only does what it is told. Its numbers and its webhook are the world's.
func (w *world) idle(r *registry.Registry) *Checker {
	c := newChecker(Config{Registry: r, Executor: new(execution.Executor), Logger: zap.NewNop(), Settle: w.settle, Webhook: registry.AlertWebhook{URL: "https://operator.example/", Secret: "0123456789abcdef"}})
	c.numbers = func(context.Context, *registry.Snapshot, *registry.Alert, *Rule, time.Time) ([]Series, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.asked++
		if w.failure != nil {
			return nil, w.failure
		}
		return []Series{{Label: "a", Current: new(w.number), Before: new(0.0)}}, nil
	}
	c.own = transport(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.got, w.bodies = append(w.got, r), append(w.bodies, string(body))
		if w.status == 0 {
			return nil, errors.New("connection refused")
		}
		return &http.Response{StatusCode: w.status, Body: io.NopCloser(bytes.NewReader(nil))}, nil
	})
	c.public, c.every = c.own, cmp.Or(w.every, c.every)
	return c
}

// alert adds an alert that fires above ten.
func (w *world) alert(change func(*registry.AlertFields)) *registry.Alert {
	w.Helper()
	f := registry.AlertFields{
		Insight: registry.To(w.insight), Name: registry.To("Too many"), Interval: registry.To(registry.AlertHourly),
		Condition: registry.To(json.RawMessage(`{"type":"absolute_value"}`)), Config: registry.To(json.RawMessage(`{"type":"TrendsAlertConfig","series_index":0}`)),
		Threshold: registry.To(json.RawMessage(`{"type":"absolute","bounds":{"upper":10}}`)),
	}
	if change != nil {
		change(&f)
	}
	a, err := w.registry.CreateAlert(w.Context(), 1, f, "key", time.Now())
	if err != nil {
		w.Fatal(err)
	}
	return a
}

// now returns the alert as stored.
func (w *world) now(a *registry.Alert) *registry.Alert {
	w.Helper()
	if err := w.registry.Refresh(w.Context()); err != nil {
		w.Fatal(err)
	}
	return w.registry.Snapshot().Alert(1, a.ID)
}

// checks returns the states of an alert's checks, newest first, with a mark for those that were sent.
func (w *world) checks(a *registry.Alert) string {
	w.Helper()
	all, err := w.registry.AlertChecks(w.Context(), 1, a.ID, time.Time{})
	if err != nil {
		w.Fatal(err)
	}
	var out []string
	for _, c := range all {
		out = append(out, string(c.State)+map[bool]string{true: "!"}[c.Notified])
	}
	return strings.Join(out, ", ")
}

func (w *world) set(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

// inWorld runs a test with simulated time.
func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer func() {
			if err := w.registry.Close(); err != nil {
				t.Error(err)
			}
		}()
		test(w)
	})
}

func closed(t *testing.T, c *Checker) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestSchedule: an alert is checked soon after a change, and then when it is due; each check that fires is sent.
func TestSchedule(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.checker(w.registry)
		defer closed(t, c)
		a := w.alert(nil)
		time.Sleep(9 * time.Second)
		if got := w.checks(a); got != "" {
			t.Errorf("checked too early: %s", got)
		}
		time.Sleep(3 * time.Second)
		if got := w.checks(a); got != "Not firing" {
			t.Errorf("after 12 seconds: %s", got)
		}
		w.set(func() { w.number = 11 })
		time.Sleep(59 * time.Minute)
		if w.asked != 1 {
			t.Errorf("asked %d times within an hour", w.asked)
		}
		time.Sleep(2 * time.Minute)
		if got := w.checks(a); got != "Firing!, Not firing" || w.now(a).State != registry.AlertFiring || *w.now(a).LastValue != 11 || w.now(a).LastNotifiedAt.IsZero() {
			t.Errorf("after an hour: %s, %+v", got, w.now(a))
		}
		time.Sleep(time.Hour)
		w.set(func() { w.number = 3 })
		time.Sleep(time.Hour)
		if got := w.checks(a); got != "Not firing, Firing!, Firing!, Not firing" || len(w.got) != 2 {
			t.Errorf("after three hours: %s, %d messages", got, len(w.got))
		}
		w.message(a)
	})
}

// message compares the first message.
func (w *world) message(a *registry.Alert) {
	w.Helper()
	r := w.got[0]
	seconds, err := strconv.ParseInt(r.Header.Get("Webhook-Timestamp"), 10, 64)
	if err != nil {
		w.Fatal(err)
	}
	if want := sign("0123456789abcdef", r.Header.Get("Webhook-Id"), time.Unix(seconds, 0), []byte(w.bodies[0])); r.Header.Get("Webhook-Signature") != want {
		w.Error("the signature is wrong")
	}
	var m message
	if err := json.Unmarshal([]byte(w.bodies[0]), &m); err != nil {
		w.Fatal(err)
	}
	i := w.registry.Snapshot().Insight(1, w.insight)
	if m.Type != "alert.firing" || m.Data.Alert != (namedText{a.ID, "Too many"}) || m.Data.Project != (namedNumber{1, "Shop"}) ||
		m.Data.Insight != (messageInsight{i.ID, i.ShortID, "Views"}) || *m.Data.Check.Value != 11 || m.Data.Check.State != registry.AlertFiring || m.Data.Error != nil ||
		*m.Data.Breach != "The insight value (a) for previous day (11) is more than upper threshold (10)" || *m.Data.Rule.Upper != 10 {
		w.Errorf("%s", w.bodies[0])
	}
}

// TestNotChecked: disabled and snoozed alerts are not checked; nor are others on weekends and in quiet hours, if they ask for that.
func TestNotChecked(t *testing.T) {
	inWorld(t, func(w *world) { // time begins on a Saturday
		c := w.checker(w.registry)
		defer closed(t, c)
		disabled := w.alert(func(f *registry.AlertFields) { f.Enabled = registry.To(false) })
		snoozed := w.alert(func(f *registry.AlertFields) { f.SnoozedUntil = registry.To(time.Now().Add(90 * time.Minute)) })
		rests := w.alert(func(f *registry.AlertFields) { f.SkipWeekend = registry.To(new(true)) })
		quiet := w.alert(func(f *registry.AlertFields) {
			f.QuietHours = registry.To([]registry.QuietHours{{Start: 0, End: 3 * 60}})
		})
		time.Sleep(time.Minute)
		if w.asked > 0 || w.now(snoozed).State != registry.AlertSnoozed {
			t.Errorf("asked %d times", w.asked)
		}
		if got, want := w.now(quiet).NextCheckAt, time.Date(2000, 1, 1, 2, 0, 0, 0, time.UTC); !got.Equal(want) { // three o'clock in Berlin
			t.Errorf("quiet until %v", got)
		}
		time.Sleep(91 * time.Minute)
		if got := w.now(snoozed); w.checks(snoozed) != "Not firing, Snoozed" || !got.SnoozedUntil.IsZero() || got.State != registry.AlertNotFiring {
			t.Errorf("awake: %s, %+v", w.checks(snoozed), got)
		}
		time.Sleep(30 * time.Minute)
		if got := w.checks(quiet); got != "Not firing" {
			t.Errorf("after quiet hours: %s", got)
		}
		if got := w.checks(disabled) + w.checks(rests); got != "" {
			t.Errorf("checked: %s", got)
		}
	})
}

// TestLongMessages: a message is no longer than it may be, even if each text in it is as long as can be.
func TestLongMessages(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("\x01", 100_000) // six bytes each in JSON
	a := w.alert(func(f *registry.AlertFields) { f.Name = registry.To(long[:255]) })
	if _, err := w.registry.UpdateInsight(t.Context(), 1, w.insight, registry.InsightFields{Name: registry.To(new(long[:400]))}, false, "key", time.Now()); err != nil {
		t.Fatal(err)
	}
	r, err := ReadRule(a, queryOf(w.registry.Snapshot(), a))
	if err != nil {
		t.Fatal(err)
	}
	found := r.Evaluate([]Series{{Label: long, Current: new(11.0)}})
	for _, check := range []registry.AlertCheck{{State: registry.AlertFiring, Value: found.Value}, {State: registry.AlertErrored, Error: long}} {
		body := messageOf(w.registry.Snapshot(), a, r, check, found.Breach)
		if len(body) > registry.MaxDeliveryBody || !json.Valid(body) {
			t.Errorf("%s: a message of %d bytes", check.State, len(body))
		}
	}
	if err := w.registry.Close(); err != nil {
		t.Error(err)
	}
}

func TestIsWeekend(t *testing.T) {
	zone := time.FixedZone("", 3600)
	for hour, want := range map[int]bool{-2: false, -1: true, 0: true, 46: true, 47: false} {
		if got := isWeekend(time.Date(2000, 1, 1, hour, 0, 0, 0, time.UTC), zone); got != want {
			t.Errorf("%d hours after the start of a Saturday in UTC: %t", hour, got)
		}
	}
}

// TestErrors: what is wrong with an insight is reported once; an outage is not reported, and the check is tried again.
func TestErrors(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.checker(w.registry)
		defer closed(t, c)
		a := w.alert(nil)
		w.set(func() { w.failure = fmt.Errorf("asking: %w", &clickhouse.Error{Kind: clickhouse.Unavailable}) })
		time.Sleep(5 * time.Minute)
		if got := w.checks(a); got != "" || w.asked < 5 || w.asked > 15 {
			t.Errorf("in an outage: %q, asked %d times", got, w.asked)
		}
		w.set(func() { w.failure = errors.New("secret words of the server") })
		time.Sleep(3 * time.Hour)
		if got := w.checks(a); got != "Errored, Errored, Errored!" || len(w.got) != 1 || !strings.Contains(w.bodies[0], `"type":"alert.errored"`) {
			t.Errorf("with a broken insight: %s, %q", got, w.bodies)
		}
		if strings.Contains(w.bodies[0], "secret") {
			t.Errorf("an error of the server was sent: %s", w.bodies[0])
		}
		w.set(func() { w.failure = nil })
		if _, err := w.registry.UpdateInsight(w.Context(), 1, w.insight, registry.InsightFields{
			Query: registry.To(json.RawMessage(`{"kind":"TrendsQuery","series":[{"kind":"EventsNode"}],"trendsFilter":{"display":"BoldNumber"}}`)),
		}, false, "key", time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if got := w.checks(a); got != "Not firing, Errored, Errored, Errored!" {
			t.Errorf("mended: %s", got)
		}
		if _, err := w.registry.UpdateAlert(w.Context(), 1, a.ID, registry.AlertFields{Config: registry.To(json.RawMessage(`{"type":"TrendsAlertConfig","series_index":7}`))}, time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := w.now(a); got.Enabled || got.State != registry.AlertErrored {
			t.Errorf("an alert that can't be checked: %+v", got)
		}
	})
}

// TestTooExpensive: an insight that takes too long or too much memory is not tried again before the next check.
func TestTooExpensive(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.checker(w.registry)
		defer closed(t, c)
		a := w.alert(nil)
		w.set(func() {
			w.failure = fmt.Errorf("asking: %w", &clickhouse.Error{Kind: clickhouse.Timeout, Message: "It took too long."})
		})
		time.Sleep(50 * time.Minute)
		if got := w.checks(a); got != "Errored!" || w.asked != 1 || !strings.Contains(w.bodies[0], "It took too long.") {
			t.Errorf("too long: %q, asked %d times, %q", got, w.asked, w.bodies)
		}
		w.set(func() { w.failure = &clickhouse.Error{Kind: clickhouse.Memory} })
		time.Sleep(time.Hour)
		w.set(func() { w.failure = nil })
		time.Sleep(time.Hour)
		if got := w.checks(a); got != "Not firing, Errored, Errored!" || w.asked != 3 {
			t.Errorf("after too much memory, and nothing: %q, asked %d times", got, w.asked)
		}
	})
}

// TestTooExpensiveDaily: what takes too long may be a matter of that hour, so a daily alert does not wait for the next day, and tells of it once.
func TestTooExpensiveDaily(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.checker(w.registry)
		defer closed(t, c)
		a := w.alert(func(f *registry.AlertFields) { f.Interval = registry.To(registry.AlertDaily) })
		w.set(func() { w.failure = &clickhouse.Error{Kind: clickhouse.Timeout, Message: "It took too long."} })
		time.Sleep(150 * time.Minute)
		if got := w.checks(a); got != "Errored, Errored, Errored!" || w.asked != 3 || len(w.bodies) != 1 {
			t.Errorf("%q, asked %d times, %d messages", got, w.asked, len(w.bodies))
		}
	})
}

// TestRetries: a message is sent until it is delivered, over restarts and with the same id.
func TestRetries(t *testing.T) {
	inWorld(t, func(w *world) {
		w.number, w.status = 11, 0
		c := w.checker(w.registry)
		a := w.alert(func(f *registry.AlertFields) { f.Interval = registry.To(registry.AlertDaily) })
		time.Sleep(time.Minute)
		closed(t, c)
		tries := len(w.got)
		waits := w.now(a)
		if tries < 4 || tries > 6 || w.checks(a) != "Firing" || len(waits.Deliveries) != 1 || waits.Deliveries[0].LastError != "connection refused" || !waits.LastNotifiedAt.IsZero() {
			t.Errorf("%d tries, %+v", tries, waits)
		}
		time.Sleep(10 * time.Minute)
		w.set(func() { w.status = http.StatusNoContent })
		c = w.checker(w.registry)
		time.Sleep(5 * time.Second)
		closed(t, c)
		if got := w.now(a); w.checks(a) != "Firing!" || len(got.Deliveries) != 0 || got.LastNotifiedAt.IsZero() || len(w.got) != tries+1 {
			t.Errorf("%s, %+v", w.checks(a), got)
		}
		for i, r := range w.got {
			if r.Header.Get("Webhook-Id") != w.got[0].Header.Get("Webhook-Id") || w.bodies[i] != w.bodies[0] {
				t.Errorf("try %d is another message", i)
			}
		}
	})
}

// TestOwnWebhook: an alert's own webhook replaces the operator's, with its own secret or none.
func TestOwnWebhook(t *testing.T) {
	inWorld(t, func(w *world) {
		w.number = 11
		c := w.checker(w.registry)
		defer closed(t, c)
		w.alert(func(f *registry.AlertFields) { f.WebhookURL = registry.To("https://own.example/x") })
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if len(w.got) != 1 || w.got[0].URL.String() != "https://own.example/x" || w.got[0].Header.Get("Webhook-Signature") != "" {
			t.Fatalf("%+v", w.got)
		}
	})
}

// TestTwoServers: servers that share a registry check an alert once, and send its message once. It runs in real time, because locks wait for each
// other in ways that simulated time does not support.
func TestTwoServers(t *testing.T) {
	w := newWorld(t)
	w.number = 11
	other := w.openRegistry()
	w.every, w.settle = time.Millisecond, time.Millisecond
	servers := []*Checker{w.checker(w.registry), w.checker(other)}
	var all []*registry.Alert
	for range 20 {
		all = append(all, w.alert(nil))
	}
	for _, a := range all {
		eventually.Is(t, "the alert fires", func() bool { return w.checks(a) == "Firing!" })
	}
	for _, c := range servers {
		closed(t, c)
	}
	if w.asked != len(all) || len(w.got) != len(all) {
		t.Errorf("%d checks and %d messages, want %d each", w.asked, len(w.got), len(all))
	}
	for _, r := range []*registry.Registry{w.registry, other} {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestLateServer: a server whose snapshot is older than another server's work does not repeat it.
func TestLateServer(t *testing.T) {
	w := newWorld(t)
	w.number, w.settle = 11, time.Nanosecond
	a := w.alert(nil)
	other := w.openRegistry()
	first, late := w.idle(w.registry), w.idle(other)
	n := name{1, a.ID}
	for _, do := range []func(*Checker){func(c *Checker) { c.check(n) }, func(c *Checker) { c.send(n) }} {
		do(first)
		do(late)
	}
	if got := w.checks(a); got != "Firing!" || w.asked != 1 || len(w.got) != 1 {
		t.Errorf("%s, asked %d times, sent %d times", got, w.asked, len(w.got))
	}
	for _, closeIt := range []func() error{first.Close, late.Close, w.registry.Close, other.Close} {
		if err := closeIt(); err != nil {
			t.Error(err)
		}
	}
}

// slowLocks is a store that takes long to say whether a lock is free.
type slowLocks struct {
	registry.Store

	wait time.Duration
}

func (s slowLocks) Lock(ctx context.Context, name, holder string) (others bool, release func(), err error) {
	if err := s.think(ctx); err != nil {
		return false, nil, err
	}
	return s.Store.Lock(ctx, name, holder)
}

func (s slowLocks) TryLock(ctx context.Context, name, holder string) (others bool, release func(), err error) {
	if err := s.think(ctx); err != nil {
		return false, nil, err
	}
	return s.Store.TryLock(ctx, name, holder)
}

func (s slowLocks) think(ctx context.Context) error {
	select {
	case <-time.After(s.wait):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// TestSlowLocks: a slow registry delays checks and messages. One that does not answer is an outage, unlike a lock that another server has.
func TestSlowLocks(t *testing.T) {
	inWorld(t, func(w *world) {
		w.number = 11
		a := w.alert(nil)
		n := name{1, a.ID}
		time.Sleep(time.Minute)
		for _, tt := range []struct {
			wait   time.Duration
			paused bool
			checks string
		}{{time.Minute, true, ""}, {3 * time.Second, false, "Firing!"}} {
			r := w.openOn(slowLocks{w.openStore(), tt.wait})
			c := w.idle(r)
			for kind, d := range []*desk{c.checks, c.sending} {
				if d.do(n); d.pauses.Holds(n, time.Now()) != tt.paused {
					t.Errorf("with a wait of %v: work of kind %d pauses: %t, want %t", tt.wait, kind, !tt.paused, tt.paused)
				}
			}
			var counted dto.Metric
			if err := c.metrics.checks.WithLabelValues(postponed).Write(&counted); err != nil || counted.GetCounter().GetValue() > 0 != tt.paused {
				t.Errorf("with a wait of %v: %v checks are postponed: %v", tt.wait, counted.GetCounter().GetValue(), err)
			}
			if got := w.checks(a); got != tt.checks {
				t.Errorf("with a wait of %v: %q, want %q", tt.wait, got, tt.checks)
			}
			for _, closeIt := range []func() error{c.Close, r.Close} {
				if err := closeIt(); err != nil {
					t.Error(err)
				}
			}
		}
		other := w.openStore()
		_, release, err := other.Lock(w.Context(), "alert-check-"+a.ID[len(a.ID)-2:], "other")
		if err != nil {
			t.Fatal(err)
		}
		c := w.idle(w.registry)
		time.Sleep(2 * time.Hour)
		c.check(n)
		if c.checks.pauses.Holds(n, time.Now()) || w.checks(a) != "Firing!" {
			t.Errorf("while another server checks: %s", w.checks(a))
		}
		release()
		for _, closeIt := range []func() error{c.Close, other.Close} {
			if err := closeIt(); err != nil {
				t.Error(err)
			}
		}
	})
}

// countedTries is a store that counts how often a lock is tried.
type countedTries struct {
	registry.Store

	name  string
	tries *atomic.Int64
}

func (s countedTries) TryLock(ctx context.Context, name, holder string) (others bool, release func(), err error) {
	if name == s.name {
		s.tries.Add(1)
	}
	return s.Store.TryLock(ctx, name, holder)
}

// TestManyOfAProject: when a check of a project ends, its next one begins, without waiting for the next look. One that another server may be making is tried
// again at most once for each check that ends.
func TestManyOfAProject(t *testing.T) {
	inWorld(t, func(w *world) {
		const many = 30
		var all []*registry.Alert
		for range many {
			all = append(all, w.alert(nil))
		}
		lockOf := func(a *registry.Alert) string { return "alert-check-" + a.ID[len(a.ID)-2:] }
		held := lockOf(all[0])
		other := w.openStore()
		_, release, err := other.Lock(w.Context(), held, "other")
		if err != nil {
			t.Fatal(err)
		}
		var tries atomic.Int64
		r := w.openOn(countedTries{w.openStore(), held, &tries})
		c := w.checker(r)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		for i, a := range all {
			want := "Not firing"
			if lockOf(a) == held {
				want = ""
			}
			if got := w.checks(a); got != want {
				t.Errorf("alert %d: %q, want %q", i, got, want)
			}
		}
		if n := tries.Load(); n == 0 || n > 2*many {
			t.Errorf("the lock of another server was tried %d times", n)
		}
		release()
		time.Sleep(2 * time.Second)
		if got := w.checks(all[0]); got != "Not firing" {
			t.Errorf("after the other server's check: %q", got)
		}
		closed(t, c)
		for _, closeIt := range []func() error{r.Close, other.Close} {
			if err := closeIt(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestRound: projects take turns, and within a project the alert that has waited longest comes first.
func TestRound(t *testing.T) {
	d := newDesk(2, 1, nil, nil)
	if !d.enter(name{1, "a"}) || d.enter(name{1, "b"}) || !d.enter(name{2, "c"}) || d.enter(name{2, "c"}) {
		t.Error("a project got more than its share")
	}
	d.leave(name{1, "a"})
	if !d.enter(name{1, "b"}) {
		t.Error("a place was not given back")
	}
}

// TestPausesApart: an outage that keeps an alert's messages from being sent does not keep the alert from being checked, and vice versa. Deleted
// alerts have no pauses.
func TestPausesApart(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.idle(w.registry)
		a := w.alert(nil)
		n := name{1, a.ID}
		time.Sleep(11 * time.Second)
		due := func() int { return len(c.checks.round(w.registry.Snapshot(), time.Now())) }
		c.sending.pauses.Failed(n, time.Now())
		if due() != 1 {
			t.Error("it is not checked after a message that could not be sent")
		}
		c.checks.pauses.Failed(n, time.Now())
		if due() != 0 {
			t.Error("it is checked again at once after a check that could not be made")
		}
		gone := name{1, "gone"}
		for range 5 {
			c.checks.pauses.Failed(gone, time.Now())
		}
		c.begin()
		defer closed(t, c)
		time.Sleep(2 * time.Second)
		if c.checks.pauses.Holds(gone, time.Now()) {
			t.Error("what is gone has a pause")
		}
	})
}

// TestPanics: a check that panics is one that failed, and other work that panics is put off; the checker goes on.
func TestPanics(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.idle(w.registry)
		c.numbers = func(context.Context, *registry.Snapshot, *registry.Alert, *Rule, time.Time) ([]Series, error) {
			panic("numbers")
		}
		var tries atomic.Int64
		c.sending.do = func(name) bool { tries.Add(1); panic("sending") }
		c.begin()
		defer closed(t, c)
		a := w.alert(nil)
		time.Sleep(20 * time.Second)
		if got := w.checks(a); got != "Errored" {
			t.Errorf("the checks are %s", got)
		}
		if n := tries.Load(); n < 2 || n > 5 {
			t.Errorf("tried to send %d times", n)
		}
	})
}

// TestDueAhead: an alert whose next check is further away than it can be, because a clock was ahead, is checked after its interval, at most a day. One that is
// as far away as it can be stays.
func TestDueAhead(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const settle = time.Second
	for _, tt := range []struct {
		name  string
		alert registry.Alert
		want  time.Duration // until it is due
	}{
		{"every two minutes", registry.Alert{Interval: registry.AlertRealTime, NextCheckAt: now.Add(2 * time.Minute)}, 2 * time.Minute},
		{"every two minutes, ahead", registry.Alert{Interval: registry.AlertRealTime, NextCheckAt: now.Add(time.Hour)}, 2 * time.Minute},
		{"hourly, after quiet hours", registry.Alert{Interval: registry.AlertHourly, QuietHours: []registry.QuietHours{{}}, NextCheckAt: now.Add(9 * time.Hour)}, 9 * time.Hour},
		{"monthly", registry.Alert{Interval: registry.AlertMonthly, NextCheckAt: now.Add(32 * day)}, 32 * day},
		{"monthly, ahead", registry.Alert{Interval: registry.AlertMonthly, NextCheckAt: now.Add(365 * day)}, day},
		{"changed", registry.Alert{Interval: registry.AlertDaily, ChangedAt: now}, settle},
		{"changed, ahead", registry.Alert{Interval: registry.AlertDaily, ChangedAt: now.Add(365 * day)}, settle},
	} {
		c := &Checker{Config: Config{Settle: settle}}
		tt.alert.Enabled = true
		for after, want := range map[time.Duration]bool{0: false, tt.want - 1: false, tt.want: true} {
			_, _ = c.due(&tt.alert, now) // when it is first seen
			if _, got := c.due(&tt.alert, now.Add(after)); got != want {
				t.Errorf("%s: after %s it is due: %t", tt.name, after, got)
			}
		}
	}
}
