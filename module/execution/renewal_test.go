package execution_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/clickhousetest"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/internal/eventually"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse/warehousetest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

var engine *embedded.Engine

func TestMain(m *testing.M) {
	clickhousetest.Main(m, func(e *embedded.Engine, _ *clickhouse.Client) { engine = e })
}

// server executes queries of a project of its own.
type server struct {
	*execution.Executor
	registry *registry.Registry
	project  *registry.Project
}

var projects atomic.Int64

// start prepares a server on the engine, which nobody else writes to.
func start(t *testing.T) *server {
	t.Helper()
	return startWith(t, clickhouse.Config{})
}

// startWith is start with limits of a config.
func startWith(t *testing.T, config clickhouse.Config) *server {
	t.Helper()
	config.DSN, config.Embedded = engine.DSN(), true
	reg, wh := warehousetest.Open(t, t.TempDir(), config)
	results, err := cache.New(cache.Config{MaxBytes: 16 << 20, Stale: time.Hour, IsOutage: execution.StaleIsBetter})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{registry: reg, Executor: &execution.Executor{
		Compiler: &execution.Compiler{Shards: warehouse.Only(wh)}, Settings: execution.Settings{QueryFresh: 5 * time.Minute},
		Cache: results, Runs: execution.NewRuns(), Metrics: execution.NewMetrics(),
		Names: new(execution.Sightings), Limits: execution.NewLimiter(registry.Rate{Queries: 10_000, Per: time.Minute}),
		Places: admission.New(admission.Limits{Places: 8, Project: 4, Queue: 100}),
		Retain: func() (func(), bool) { return func() {}, true }, Reports: execution.Reports{Run: func(cache.Key, error) {}},
	}}
	id := warehousetest.Projects(t, reg, &projects, 1)
	s.project = reg.Snapshot().Project(id)
	t.Cleanup(func() {
		results.Close()
		if err := s.Runs.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *server) options() ingest.Options {
	return ingest.Options{Project: s.project.ID, Now: time.Now()}
}

// load imports lines.
func (s *server) load(t *testing.T, lines ...string) {
	t.Helper()
	report, err := s.Shards.Main().Import(t.Context(), s.Places, s.options(), ingesttest.Lines(lines...))
	if err != nil || report.Bad > 0 {
		t.Fatal(err, report)
	}
}

// event is a line with a new event.
func event(name, person, at string) string {
	return fmt.Sprintf(`{"event":%q,"distinct_id":%q,"timestamp":%q,"uuid":%q}`, name, person, at, uuid.NewString())
}

// capture delivers events.
func (s *server) capture(ctx context.Context, lines ...string) error {
	var records []record.Record
	for _, line := range lines {
		var parser record.Parser
		r, err := parser.Parse([]byte(line))
		if err != nil {
			return err
		}
		r.Arrived = time.Now()
		records = append(records, r)
	}
	_, err := s.Shards.Main().Deliver(ctx, s.options(), records)
	return err
}

// query is a query of the project, as the query route asks it.
func (s *server) query(t *testing.T, text string) *execution.Query {
	t.Helper()
	node, err := compiler.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &execution.Query{Node: node, Text: node.Text(), Rows: compiler.QueryRoute, Key: cache.KeyParts{
		Project: s.project.ID, Query: string(node.Canonical()), Extra: s.Mark(s.registry.Snapshot(), s.project.ID, node),
	}.Key()}
}

// ask asks a query at a time after now.
func (s *server) ask(ctx context.Context, q *execution.Query, mode execution.RefreshMode, later time.Duration) (cache.Answer, error) {
	caller := &execution.Caller{Project: s.project, Snapshot: s.registry.Snapshot(), Start: time.Now().Add(later)}
	fresh := s.FreshnessOf(q.Node, mode)
	got, err := s.Refresh(ctx, caller, q, &fresh, execution.Origin{}, nil)
	return got.Answer, err
}

const stale = 100 * time.Hour // later than any answer of the tests is fresh

// count is a query that shows how many events there are.
const count = `{"kind":"HogQLQuery","query":"select count() from events"}`

// queries returns how many queries of a project ran on ClickHouse.
func (s *server) queries() int { return len(s.Runs.Queries.Rows(s.project.ID, time.Now())) }

// rows is an answer as text.
func rows(got cache.Answer) string {
	if done, _ := got.Entry.Meta.(*execution.Details); done.Insight != nil {
		return string(done.Insight.Results)
	}
	return string(got.Entry.Result.AppendRows(nil, 0, -1))
}

// TestRenewed: a stale answer is renewed without a query while there are no new data, and computed again after one event.
func TestRenewed(t *testing.T) {
	s := start(t)
	s.load(t, event("a", "ann", "2024-03-04T10:00:00Z"), event("a", "bob", "2024-03-05T10:00:00Z"), event("b", "ann", "2024-03-05T11:00:00Z"))
	const dates = `"dateRange":{"date_from":"2024-03-01"}`
	for name, query := range map[string]string{
		"HogQL":      count,
		"values":     `{"kind":"HogQLQuery","query":"select event, count() from events where distinct_id = {p} group by event order by event","values":{"p":"ann"}}`,
		"trends":     `{"kind":"TrendsQuery","series":[{"event":"a"}],"interval":"month",` + dates + `}`,
		"breakdown":  `{"kind":"TrendsQuery","series":[{"event":"a","math":"dau"}],"interval":"month","breakdownFilter":{"breakdown":"$browser"},` + dates + `}`,
		"lifecycle":  `{"kind":"LifecycleQuery","series":[{"event":"a"}],"interval":"month",` + dates + `}`,
		"stickiness": `{"kind":"StickinessQuery","series":[{"event":"a"}],"interval":"month",` + dates + `}`,
		"funnel":     `{"kind":"FunnelsQuery","series":[{"event":"a"},{"event":"b"}],"interval":"month",` + dates + `}`,
		"retention":  `{"kind":"RetentionQuery","retentionFilter":{"period":"Month","totalIntervals":4}}`,
		"persons":    `{"kind":"HogQLQuery","query":"select count() from persons"}`,
	} {
		t.Run(name, func(t *testing.T) {
			q := s.query(t, query)
			ask := func(mode execution.RefreshMode, want cache.Status, queries int) cache.Answer {
				t.Helper()
				before := s.queries()
				got, err := s.ask(t.Context(), q, mode, stale)
				if err != nil {
					t.Fatal(err)
				}
				if got.Status != want || s.queries()-before != queries {
					t.Fatalf("%s asks %d queries for an answer that is %s, want %d and %s", mode, s.queries()-before, got.Status, queries, want)
				}
				return got
			}
			first := ask(execution.RefreshBlocking, cache.Miss, 1)
			again := ask(execution.RefreshBlocking, cache.Renewed, 0)
			third := ask(execution.RefreshBlocking, cache.Renewed, 0)
			if rows(first) != rows(again) || rows(first) != rows(third) {
				t.Errorf("the rows change from %s to %s and %s", rows(first), rows(again), rows(third))
			}
			if !again.Entry.ComputedAt.After(first.Entry.ComputedAt) || !third.Entry.ComputedAt.After(again.Entry.ComputedAt) || first.Entry.Renewed || !again.Entry.Renewed {
				t.Error("the age of the rows does not begin anew")
			}
			ask(execution.RefreshForceBlocking, cache.Refreshed, 1)
			if err := s.capture(t.Context(), event("a", "new"+uuid.NewString(), "2024-03-06T10:00:00Z")); err != nil {
				t.Fatal(err)
			}
			if after := ask(execution.RefreshBlocking, cache.Miss, 1); rows(after) == rows(first) && !slices.Contains([]string{"values", "funnel", "retention"}, name) {
				t.Errorf("after an event the rows are %s as before", rows(after))
			}
			ask(execution.RefreshBlocking, cache.Renewed, 0)
		})
	}
	if n := s.counted(t, "caddy_analytics_renewals_total"); n != 27 {
		t.Errorf("%v renewals are counted, want 27", n)
	}
}

// counted is the sum of the counters of a name.
func (s *server) counted(t *testing.T, name string) (sum float64) {
	t.Helper()
	found := make(chan prometheus.Metric, 10_000)
	s.Metrics.Collect(found)
	close(found)
	for one := range found {
		var now dto.Metric
		if err := one.Write(&now); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(one.Desc().String(), `"`+name+`"`) {
			sum += now.GetCounter().GetValue()
		}
	}
	return sum
}

// TestNotRenewed: rows that may change while the data stay the same are computed, and so are those of a ClickHouse about which nothing is known.
func TestNotRenewed(t *testing.T) {
	s := start(t)
	other := *s.query(t, count)
	other.Held = &execution.Held{Rows: func(string) ([][]any, error) { return nil, nil }, Readable: func(string) bool { return true }}
	for name, q := range map[string]*execution.Query{
		"now":    s.query(t, `{"kind":"HogQLQuery","query":"select count() from events where timestamp < now()"}`),
		"random": s.query(t, `{"kind":"HogQLQuery","query":"select rand() % 2 from events"}`),
		"held":   &other,
		"hidden": s.query(t, `{"kind":"FunnelsQuery","series":[{"event":"a"},{"event":"b"}],"dateRange":{"date_from":"2024-03-01"},"interval":"month",`+
			`"funnelsFilter":{"funnelVizType":"trends","hideIncompleteConversionWindowPeriods":true}}`),
	} {
		for n := range 2 {
			before := s.queries()
			if got, err := s.ask(t.Context(), q, execution.RefreshBlocking, stale); err != nil || got.Status != cache.Miss || s.queries() != before+1 {
				t.Errorf("%s, answer %d: %v, %v, %d queries", name, n, got.Status, err, s.queries()-before)
			}
		}
	}
}

// TestRenewedInBackground: a stale answer that is served while it is refreshed is renewed too, and so is that of a background run; cursors still find
// the rows in their places.
func TestRenewedInBackground(t *testing.T) {
	s := start(t)
	s.load(t, event("a", "ann", "2024-03-04T10:00:00Z"))
	q := s.query(t, count)
	first, err := s.ask(t.Context(), q, execution.RefreshBlocking, 0)
	if err != nil {
		t.Fatal(err)
	}
	eventually.Is(t, "the answer is in the cache", func() bool { _, stored := s.Cache.Get(q.Key, cache.Policy{Fresh: time.Hour}); return stored })
	ref := s.Cache.Refer(q.Key, first.Entry)
	renewed := func(since time.Time) func() bool {
		return func() bool {
			got, ok := s.Peek(q, &execution.Freshness{}, time.Now())
			return ok && got.Entry.Renewed && got.Entry.ComputedAt.After(since)
		}
	}
	caller := &execution.Caller{Project: s.project, Snapshot: s.registry.Snapshot(), Start: time.Now().Add(10 * time.Minute)}
	eventually.Is(t, "a refresh has begun", func() bool { // the computation of the first answer may not have ended: no refresh starts before that
		got, err := s.Answer(t.Context(), caller, q, &execution.Freshness{Fresh: 5 * time.Minute, Refs: true})
		if err != nil || got.Answer.Status != cache.Stale {
			t.Fatal(got.Answer.Status, err)
		}
		return s.Cache.Stats().Refreshes > 0
	})
	eventually.Is(t, "the answer is renewed", renewed(first.Entry.ComputedAt))
	second, _ := s.Peek(q, &execution.Freshness{}, time.Now())
	s.QueryFresh = time.Nanosecond
	if _, err := s.ask(t.Context(), q, execution.RefreshAsync, 0); err != nil {
		t.Fatal(err)
	}
	eventually.Is(t, "the answer is renewed again", renewed(second.Entry.ComputedAt))
	if s.queries() != 1 {
		t.Errorf("%d queries ran", s.queries())
	}
	if pinned, err := s.Pinned(q, &execution.Freshness{}, ref, time.Now()); err != nil || pinned.Entry != first.Entry {
		t.Errorf("the rows of a cursor are gone: %v", err)
	}
}

// TestRenewalCostsNothing: an answer is renewed even if the project has no place left and the key's rate is spent.
func TestRenewalCostsNothing(t *testing.T) {
	s := start(t)
	q := s.query(t, count)
	if _, err := s.ask(t.Context(), q, execution.RefreshBlocking, 0); err != nil {
		t.Fatal(err)
	}
	s.Places = admission.New(admission.Limits{Places: 1, Project: 1})
	if _, err := s.Places.Enter(t.Context(), admission.Request{Project: s.project.ID}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.ask(t.Context(), q, execution.RefreshBlocking, stale); err != nil || got.Status != cache.Renewed {
		t.Errorf("%v, %v", got.Status, err)
	}
}

// TestNoStaleAnswerIsFresh: an answer requested after an event was delivered includes the event, whatever is renewed meanwhile.
func TestNoStaleAnswerIsFresh(t *testing.T) {
	s := start(t)
	q := s.query(t, count)
	var delivered atomic.Int64
	var renewals atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for ctx.Err() == nil {
				least := delivered.Load()
				got, err := s.ask(ctx, q, execution.RefreshBlocking, stale)
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				if got.Status == cache.Renewed {
					renewals.Add(1)
				}
				if n, err := strconv.ParseInt(strings.Trim(rows(got), "[]"), 10, 64); got.Status != cache.Coalesced && (err != nil || n < least) {
					t.Errorf("%d events were delivered, and an answer that is %s has %s", least, got.Status, rows(got))
					return
				}
			}
		})
	}
	for range 40 {
		if err := s.capture(ctx, event("a", "ann", "2024-03-04T10:00:00Z")); err != nil {
			t.Fatal(err)
		}
		delivered.Add(1)
		before := renewals.Load()
		wait := 50 * time.Millisecond
		if before == 0 { // there must be one, however slow the machine is
			wait = time.Minute
		}
		for end := time.Now().Add(wait); renewals.Load() == before && time.Now().Before(end) && ctx.Err() == nil; {
			time.Sleep(time.Millisecond) // so that some answers are renewed
		}
	}
	stop()
	wg.Wait()
	if renewals.Load() == 0 {
		t.Error("no answer was renewed")
	}
}
