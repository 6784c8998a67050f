package execution_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/internal/eventually"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/cohorts"
	"github.com/caddy-analytics/caddy-analytics/module/deletions"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse/warehousetest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// settledWorld is a server with two projects whose answers are put together from pieces and, for comparison, computed in one piece.
type settledWorld struct {
	t        testing.TB
	reg      *registry.Registry
	wh       *warehouse.Warehouse
	deleter  *deletions.Deleter
	members  *cohorts.Calculator
	places   *admission.Scheduler
	stitches *execution.Executor
	whole    *execution.Executor
	renews   *execution.Executor // with a cache of its own
	asked    int

	project, other int64

	kept, computed int // buckets of all answers
	renewed        int // answers
	counts         map[string]int
}

// newSettledWorld starts a settledWorld. Without alone, others may write to its ClickHouse, and a probe finds out what has changed.
func newSettledWorld(tb testing.TB, alone bool) *settledWorld {
	tb.Helper()
	reg, wh := warehousetest.Open(tb, tb.TempDir(), clickhouse.Config{DSN: engine.DSN(), Embedded: alone})
	caches := make([]*cache.Cache, 2)
	for n := range caches {
		var err error
		if caches[n], err = cache.New(cache.Config{MaxBytes: 64 << 20, Stale: time.Hour}); err != nil {
			tb.Fatal(err)
		}
	}
	w := &settledWorld{t: tb, reg: reg, wh: wh, places: admission.New(admission.Limits{Places: 8, Project: 4, Queue: 32}), counts: map[string]int{}}
	shards := warehouse.Only(wh)
	executor := func(results *cache.Cache) *execution.Executor {
		return &execution.Executor{
			Compiler: &execution.Compiler{Shards: shards}, Settings: execution.Settings{QueryFresh: time.Hour},
			Cache: results, Places: w.places, Runs: execution.NewRuns(), Metrics: execution.NewMetrics(),
			Names: new(execution.Sightings), Limits: execution.NewLimiter(registry.Rate{Queries: 1 << 30, Per: time.Minute}),
			Retain: func() (func(), bool) { return func() {}, true },
			Reports: execution.Reports{
				Run: func(cache.Key, error) {}, Pieces: func(_ *execution.Query, err error) { tb.Errorf("pieces: %v", err) },
			},
		}
	}
	w.members = cohorts.New(cohorts.Config{Registry: reg, Logger: zap.NewNop(), Compiler: &execution.Compiler{Shards: shards}, Shards: shards, Places: w.places})
	w.stitches, w.whole, w.renews = executor(caches[0]), executor(caches[0]), executor(caches[1])
	w.stitches.Cohorts, w.whole.Cohorts, w.renews.Cohorts, w.whole.WholeOnly = w.members, w.members, w.members, true
	w.deleter = deletions.New(deletions.Config{
		Registry: reg, Shards: warehouse.Only(wh), Logger: zap.NewNop(), Options: w.options, Recount: func(context.Context, int64, []int64) error { return nil },
		Forget: func(project int64, before time.Time) {
			for _, results := range caches {
				results.Erase(project, before)
			}
		},
	})
	tb.Cleanup(func() {
		for _, results := range caches {
			results.Close()
		}
		for _, closeIt := range []func() error{w.deleter.Close, w.members.Close} {
			if err := closeIt(); err != nil {
				tb.Error(err)
			}
		}
	})
	w.other = warehousetest.Projects(tb, reg, &projects, 2)
	w.project = w.other - 1
	return w
}

func (w *settledWorld) options(project int64) ingest.Options {
	return ingest.Options{
		Project: project, Now: time.Now(), Captured: true,
		EventsFrom: w.reg.Snapshot().Schema(project).EventsFrom(time.Now()),
		Deletions:  func() ingest.Deletions { return deletions.DeletionsOf(w.reg.Snapshot(), project) },
	}
}

// capture delivers lines of events.
func (w *settledWorld) capture(project int64, lines ...map[string]any) {
	var records []record.Record
	for _, line := range lines {
		line["uuid"] = uuid.NewString()
		raw, err := json.Marshal(line)
		if err != nil {
			w.t.Error(err)
			return
		}
		var parser record.Parser // each has memory of its own
		one, err := parser.Parse(raw)
		if err != nil {
			w.t.Error(err)
			return
		}
		one.Arrived = time.Now()
		records = append(records, one)
	}
	if _, err := w.wh.Deliver(w.t.Context(), w.options(project), records); err != nil {
		w.t.Error(err)
	}
}

// calculate computes the members of a cohort.
func (w *settledWorld) calculate(project, cohort int64) {
	w.members.Calculate(project, cohort)
	eventually.Is(w.t, "the cohort is calculated", func() bool { return !w.reg.Snapshot().Cohort(project, cohort).Calculating() })
}

// ask computes an answer and returns what is shown of it.
func (w *settledWorld) ask(e *execution.Executor, c execution.Caller, raw string) (string, *execution.Details) {
	w.t.Helper()
	node, err := compiler.Parse([]byte(raw))
	if err != nil {
		w.t.Fatalf("%s: %v", raw, err)
	}
	w.asked++
	q := &execution.Query{
		Node: node, Text: node.Text(), Rows: compiler.QueryRoute,
		Key: cache.KeyParts{Project: c.Project.ID, Query: raw, Extra: strconv.Itoa(w.asked)}.Key(), // never found in the cache
	}
	got, err := e.Answer(w.t.Context(), &c, q, &execution.Freshness{Fresh: time.Hour})
	if err != nil {
		w.t.Fatalf("%s: %v", raw, err)
	}
	return shown(got.Answer)
}

// shown returns what is shown of an answer.
func shown(got cache.Answer) (string, *execution.Details) {
	done, _ := got.Entry.Meta.(*execution.Details)
	var out bytes.Buffer
	if a := done.Insight; a != nil {
		for _, part := range [][]byte{a.Results, a.Head, a.More, a.Error, a.Dates} {
			out.Write(part)
		}
	} else {
		out.Write(got.Entry.Result.AppendRows(done.Head, 0, -1))
	}
	fmt.Fprintf(&out, "%s %s", done.HogQL, done.Warnings)
	return out.String(), done
}

// renew requests an answer that is always stale: it is computed unless it is found to be unchanged.
func (w *settledWorld) renew(c execution.Caller, raw string) (string, *execution.Details) {
	w.t.Helper()
	node, err := compiler.Parse([]byte(raw))
	if err != nil {
		w.t.Fatalf("%s: %v", raw, err)
	}
	q := &execution.Query{Node: node, Text: node.Text(), Rows: compiler.QueryRoute, Key: cache.KeyParts{
		Project: c.Project.ID, Query: raw, Extra: w.renews.Mark(c.Snapshot, c.Project.ID, node), Zone: c.Project.Timezone,
	}.Key()}
	fresh := w.renews.FreshnessOf(node, execution.RefreshBlocking)
	fresh.Fresh = time.Nanosecond
	got, err := w.renews.Refresh(w.t.Context(), &c, q, &fresh, execution.Origin{}, nil)
	if err != nil {
		w.t.Fatalf("%s: %v", raw, err)
	}
	return shown(got.Answer)
}

func (w *settledWorld) caller(project int64) execution.Caller {
	snap := w.reg.Snapshot()
	return execution.Caller{Project: snap.Project(project), Snapshot: snap, Start: time.Now()}
}

// same compares an answer that is put together or renewed with one computed in one piece.
func (w *settledWorld) same(project int64, raw, when string, ask func(execution.Caller, string) (string, *execution.Details)) {
	w.t.Helper()
	c := w.caller(project)
	for tries := 0; ; tries++ {
		c.Start = time.Now()
		began := c.Start.Truncate(time.Second)
		got, done := ask(c, raw)
		want, _ := w.ask(w.whole, c, raw)
		if got != want && tries < 3 && !time.Now().Truncate(time.Second).Equal(began) {
			continue // the ranges that end now change in the next second
		}
		if got != want {
			at := 0
			for at < min(len(got), len(want)) && got[at] == want[at] {
				at++
			}
			at = max(at-200, 0)
			w.t.Fatalf("%s, project %d: %s\n%d of %d buckets computed, renewed: %t; from byte %d on\n got %s\nwant %s", when, project, raw, done.Buckets.Computed, done.Buckets.All, done.Renewal != nil, at, got[at:], want[at:])
		}
		if done.Renewal != nil {
			w.renewed++
			w.counts[when+", renewed"]++
		}
		w.computed += done.Buckets.Computed
		w.kept += done.Buckets.All - done.Buckets.Computed
		if done.Buckets.All > 0 && done.Buckets.Computed < done.Buckets.All {
			w.counts[when]++
		}
		return
	}
}

// queries returns the queries to ask, for a computed cohort, a static one, and an action.
func settledQueries(computed, static, action int64) []string {
	series := func(more string) string { return `{"kind":"EventsNode","event":"a"` + more + `}` }
	trend := func(interval, from, series, more string) string {
		return `{"kind":"TrendsQuery","interval":"` + interval + `","dateRange":{"date_from":"` + from + `"},"series":[` + series + `]` + more + `}`
	}
	filter := func(body string) string { return `,"properties":[` + body + `]` }
	return []string{
		trend("day", "-30d", series(""), ""),
		trend("day", "-10d", series(""), ""),
		trend("day", "-30d", series(`,"math":"dau"`), ""),
		trend("week", "-60d", series(`,"math":"dau"`), ""),
		trend("hour", "-40h", series(`,"math":"sum","math_property":"n"`), ""),
		trend("month", "-3m", series(`,"math":"avg","math_property":"n"`)+","+series(`,"math":"dau"`), `,"trendsFilter":{"formula":"A/B"}`),
		trend("day", "-14d", series(`,"math":"dau"`), `,"compareFilter":{"compare":true}`),
		trend("day", "-20d", series(filter(`{"key":"plan","type":"person","value":["pro"],"operator":"exact"}`)), ""),
		trend("day", "-20d", series(""), `,"filterTestAccounts":true`),
		trend("day", "-20d", series(filter(fmt.Sprintf(`{"key":"id","type":"cohort","value":%d}`, computed))), ""),
		trend("day", "-20d", series(filter(fmt.Sprintf(`{"key":"id","type":"cohort","value":%d}`, static))), ""),
		trend("day", "-20d", fmt.Sprintf(`{"kind":"ActionsNode","id":%d}`, action), ""),
		trend("day", "-20d", series(""), `,"breakdownFilter":{"breakdown":"k","breakdown_type":"event"}`),
		`{"kind":"LifecycleQuery","interval":"day","dateRange":{"date_from":"-20d"},"series":[` + series("") + `]}`,
		`{"kind":"LifecycleQuery","interval":"month","dateRange":{"date_from":"-3m"},"series":[` + series("") + `]}`,
		`{"kind":"StickinessQuery","interval":"day","dateRange":{"date_from":"-20d"},"series":[` + series("") + `]}`,
		`{"kind":"HogQLQuery","query":"select toStartOfQuarter(timestamp) as quarter, count() from events where timestamp >= today() - interval 400 day group by quarter order by quarter"}`,
		`{"kind":"HogQLQuery","query":"select toStartOfDay(timestamp) as day, count(), uniq(person_id), sum(toFloat(properties.n)) from events where event = 'a' and timestamp >= today() - interval 20 day group by day order by day"}`,
		`{"kind":"HogQLQuery","query":"select toStartOfWeek(timestamp) as week, properties.k as k, count() from events where timestamp > now() - interval 60 day group by week, k having count() > 1 order by week desc, k limit 20"}`,
	}
}

// renewedQueries are further ones that have no buckets.
func renewedQueries(cohort, action int64) []string {
	const a, b = `{"kind":"EventsNode","event":"a"}`, `{"kind":"EventsNode","event":"b"}`
	insight := func(kind, from, more string) string {
		return `{"kind":"` + kind + `","dateRange":{"date_from":"` + from + `"}` + more + `}`
	}
	sql := func(text string) string { return `{"kind":"HogQLQuery","query":"` + text + `"}` }
	people := func(source string) string {
		return `{"kind":"ActorsQuery","select":["id","properties.plan"],"source":` + source + `}`
	}
	trend := insight("TrendsQuery", "-20d", `,"series":[{"kind":"EventsNode","event":"a","math":"weekly_active"}]`)
	funnel := `,"series":[` + a + "," + b + `]`
	return []string{
		trend,
		insight("TrendsQuery", "-20d", `,"series":[{"kind":"EventsNode","event":"a","math":"first_time_for_user"}]`),
		insight("TrendsQuery", "-20d", `,"series":[`+a+`],"breakdownFilter":{"breakdown":"plan","breakdown_type":"person"},"trendsFilter":{"display":"ActionsTable"}`),
		insight("TrendsQuery", "-20d", fmt.Sprintf(`,"series":[%s],"breakdownFilter":{"breakdown":[%d,"all"],"breakdown_type":"cohort"}`, a, cohort)),
		insight("TrendsQuery", "all", `,"interval":"month","series":[`+a+`]`),
		insight("FunnelsQuery", "-20d", funnel),
		insight("FunnelsQuery", "-20d", funnel+`,"funnelsFilter":{"funnelOrderType":"unordered"},"breakdownFilter":{"breakdown":"plan","breakdown_type":"person"}`),
		insight("FunnelsQuery", "-20d", funnel+`,"interval":"day","funnelsFilter":{"funnelVizType":"trends"}`),
		insight("RetentionQuery", "-7d", `,"retentionFilter":{"period":"Day","totalIntervals":7}`),
		insight("RetentionQuery", "-7d", fmt.Sprintf(`,"retentionFilter":{"period":"Day","totalIntervals":7,"retentionType":"retention_first_time","targetEntity":{"type":"actions","id":%d}}`, action)),
		insight("PathsQuery", "-20d", `,"pathsFilter":{"includeEventTypes":["custom_event"]}`),
		insight("StickinessQuery", "-20d", `,"series":[{"kind":"EventsNode","event":"a","math":"total"}]`),
		people(`{"kind":"InsightActorsQuery","source":` + insight("LifecycleQuery", "-10d", `,"series":[`+a+`]`) + `,"status":"new"}`),
		people(`{"kind":"FunnelsActorsQuery","funnelStep":2,"source":` + insight("FunnelsQuery", "-20d", funnel) + `}`),
		`{"kind":"ActorsQuery","select":["person","created_at"],"search":"u1","orderBy":["created_at","id"]}`,
		`{"kind":"EventsQuery","select":["uuid","person.properties.plan","timestamp"],"event":"a","after":"2026-01-01","before":"2036-01-01","orderBy":["timestamp","uuid"]}`,
		sql("select count(), countIf(properties.plan = 'pro') from persons"),
		sql("select person.properties.plan, count(), uniq(person_id) from events group by 1 order by 1"),
		sql("select distinct_id, person_id from person_distinct_ids order by 1"),
		sql(fmt.Sprintf("select count() from events where person_id in cohort %d", cohort)),
		sql("select id, created_at from persons order by id"),
	}
}

// TestSettledPast: answers put together from kept and computed buckets are byte for byte those computed in one piece, whatever happened to the data,
// the project and its definitions in between.
func TestSettledPast(t *testing.T) {
	w := newSettledWorld(t, true)
	w.shake(t, settledQueries, func(c execution.Caller, raw string) (string, *execution.Details) { return w.ask(w.stitches, c, raw) })
	if w.kept < w.computed/4 {
		t.Errorf("only %d buckets were kept, and %d computed", w.kept, w.computed)
	}
}

// TestSettledPastOfOthers is TestSettledPast where a probe finds out what has changed.
func TestSettledPastOfOthers(t *testing.T) {
	w := newSettledWorld(t, false)
	w.shake(t, settledQueries, func(c execution.Caller, raw string) (string, *execution.Details) { return w.ask(w.stitches, c, raw) })
	if w.kept == 0 {
		t.Error("no buckets were kept")
	}
}

// TestRenewedAnswers: stale answers renewed without a query equal computed ones, whatever happened in between.
func TestRenewedAnswers(t *testing.T) {
	w := newSettledWorld(t, true)
	w.shake(t, func(computed, static, action int64) []string {
		return append(settledQueries(computed, static, action), renewedQueries(computed, action)...)
	}, w.renew)
	if w.renewed < 10 {
		t.Errorf("only %d answers were renewed", w.renewed)
	}
}

// shake compares answers with those computed in one piece, while what they depend on changes at random.
func (w *settledWorld) shake(
	t *testing.T, queries func(computed, static, action int64) []string, ask func(execution.Caller, string) (string, *execution.Details),
) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	ctx := t.Context()
	project, other := w.project, w.other
	static := true
	actions, computed, fixed := map[int64]int64{}, map[int64]int64{}, map[int64]int64{}
	steps := func(event string) registry.Field[[]registry.ActionStep] {
		return registry.To([]registry.ActionStep{{Event: &event}})
	}
	filters := func(plan string) registry.Field[json.RawMessage] {
		return registry.To(json.RawMessage(`{"properties":{"type":"AND","values":[{"type":"AND","values":[{"key":"plan","type":"person","value":["` + plan + `"],"operator":"exact"}]}]}}`))
	}
	for _, p := range []int64{project, other} {
		name := "action"
		a, err := w.reg.CreateAction(ctx, p, registry.ActionFields{Name: registry.To(&name), Steps: steps("a")}, "", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		c, err := w.reg.CreateCohort(ctx, registry.NewCohort{Project: p, CohortFields: registry.CohortFields{Filters: filters("pro")}}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		s, err := w.reg.CreateCohort(ctx, registry.NewCohort{Project: p, CohortFields: registry.CohortFields{Static: registry.To(static)}}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		actions[p], computed[p], fixed[p] = a.ID, c.ID, s.ID
		w.calculate(p, c.ID)
	}
	known := 12
	person := func() string { return "u" + strconv.Itoa(r.IntN(known)) }
	event := func(within time.Duration) map[string]any {
		at := time.Now().Add(-time.Duration(r.Int64N(int64(within))))
		e := map[string]any{
			"event": []string{"a", "a", "b"}[r.IntN(3)], "distinct_id": person(), "timestamp": at.UTC().Format(time.RFC3339Nano),
			"properties": map[string]any{"n": r.IntN(100), "k": []string{"x", "y", "z"}[r.IntN(3)]},
		}
		if r.IntN(4) == 0 {
			e["properties"].(map[string]any)["$set"] = map[string]any{"plan": []string{"pro", "free"}[r.IntN(2)], "email": person() + "@test.example"}
		}
		if r.IntN(6) == 0 {
			e["properties"].(map[string]any)["$process_person_profile"] = false
		}
		return e
	}
	const day = 24 * time.Hour
	events := func(n int, within time.Duration) (lines []map[string]any) {
		for range n {
			lines = append(lines, event(within))
		}
		return lines
	}
	for _, p := range []int64{project, other} {
		w.capture(p, events(400, 70*day)...)
	}
	merge := func(p int64) {
		w.capture(p, map[string]any{
			"event": "$merge_dangerously", "distinct_id": person(), "timestamp": time.Now().UTC().Format(time.RFC3339Nano), "properties": map[string]any{"alias": person()},
		})
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	change := func(c registry.ProjectChange) {
		_, err := w.reg.UpdateProject(ctx, project, c)
		must(err)
	}
	list := queries(computed[project], fixed[project], actions[project])
	does := []struct {
		name string
		do   func()
	}{
		{"nothing", func() {}},
		{"nothing of its own", func() { w.capture(other, events(3, 30*day)...) }},
		{"an event now", func() { w.capture(project, events(1, time.Minute)...) }},
		{"late events", func() { w.capture(project, events(1+r.IntN(3), 60*day)...) }},
		{"somebody new", func() {
			known++
			e := event(5 * day)
			e["distinct_id"] = "u" + strconv.Itoa(known-1)
			w.capture(project, e)
		}},
		{"an event of tomorrow", func() {
			w.capture(project, map[string]any{"event": "a", "distinct_id": person(), "timestamp": time.Now().Add(20 * time.Hour).UTC().Format(time.RFC3339Nano)})
		}},
		{"a merge", func() { merge(project) }},
		{"a person's property", func() {
			w.capture(project, map[string]any{"event": "$set", "distinct_id": person(), "timestamp": time.Now().UTC().Format(time.RFC3339Nano), "properties": map[string]any{"$set": map[string]any{"plan": []string{"pro", "free"}[r.IntN(2)]}}})
		}},
		{"a deletion", func() {
			_, err := w.deleter.Delete(ctx, deletions.Request{Project: project, Who: ingest.Named{DistinctIDs: []string{person()}}, Events: r.IntN(2) == 0})
			must(err)
		}},
		{"a zone", func() {
			zone := []string{"UTC", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia"}[r.IntN(5)]
			change(registry.ProjectChange{Timezone: &zone})
		}},
		{"a week", func() {
			start := r.IntN(2)
			change(registry.ProjectChange{WeekStart: &start})
		}},
		{"test accounts", func() {
			filters := []string{"", `[{"key":"email","type":"person","value":"u1@","operator":"not_icontains"}]`, `[{"key":"n","type":"event","value":50,"operator":"gt"}]`}[r.IntN(3)]
			change(registry.ProjectChange{TestAccountFilters: &filters})
		}},
		{"retention", func() {
			days := []int{0, 0, 15, 29}[r.IntN(4)]
			change(registry.ProjectChange{Retention: &days})
			if from := w.reg.Snapshot().Schema(project).EventsFrom(time.Now()); !from.IsZero() {
				_, err := w.wh.DropOutdated(ctx, []clickhouse.Kept{{Project: project, From: from}})
				must(err)
			}
		}},
		{"an action", func() {
			_, err := w.reg.UpdateAction(ctx, project, actions[project], registry.ActionFields{Steps: steps([]string{"a", "b"}[r.IntN(2)])}, time.Now())
			must(err)
		}},
		{"a cohort", func() {
			_, err := w.reg.UpdateCohort(ctx, project, computed[project], registry.CohortFields{Filters: filters([]string{"pro", "free"}[r.IntN(2)])}, time.Now())
			must(err)
			w.calculate(project, computed[project])
		}},
		{"members", func() {
			place, err := w.places.Enter(ctx, admission.Request{Project: project})
			must(err)
			defer place.Leave()
			must(w.wh.AddMembers(ctx, place, project, fixed[project], clickhouse.ByDistinctID, []string{person()}))
		}},
		{"writes at the same time", func() {
			var all sync.WaitGroup
			var batches [][]map[string]any
			for range 4 {
				batches = append(batches, events(2, 40*day))
			}
			all.Go(func() {
				for _, lines := range batches {
					w.capture(project, lines...)
				}
			})
			for range 6 {
				w.ask(w.stitches, w.caller(project), list[r.IntN(len(list))])
			}
			all.Wait()
		}},
	}
	count := 50
	if testing.Short() {
		count = 20
	}
	for step := range count {
		did := does[r.IntN(len(does))]
		if step%3 == 0 {
			did = does[r.IntN(9)] // frequent events more often
		}
		asked := make([]string, 3)
		for n := range asked {
			asked[n] = list[r.IntN(len(list))]
			ask(w.caller(project), asked[n])
		}
		did.do()
		for _, raw := range asked {
			w.same(project, raw, "after "+did.name, ask)
		}
		if step%10 == 0 {
			others := queries(computed[other], fixed[other], actions[other])
			w.same(other, others[r.IntN(len(others))], "of the other project", ask)
		}
	}
	t.Logf("%d buckets computed, %d kept; answers with kept buckets, and renewed: %v", w.computed, w.kept, w.counts)
}

// TestNewPeopleLeaveBuckets: a new person changes the buckets of a lifecycle that contain the new events, and the next one; a changed property of a
// person changes none.
func TestNewPeopleLeaveBuckets(t *testing.T) {
	w := newSettledWorld(t, true)
	const raw = `{"kind":"LifecycleQuery","interval":"day","dateRange":{"date_from":"2026-03-01","date_to":"2026-03-09"},"series":[{"kind":"EventsNode","event":"a"}]}`
	capture := func(person, date string, properties map[string]any) {
		w.capture(w.project, map[string]any{"event": "a", "distinct_id": person, "timestamp": date + "T12:00:00Z", "properties": properties})
	}
	capture("ann", "2026-03-02", nil)
	for _, step := range []struct {
		name     string
		do       func()
		computed int
	}{
		{"the first time", func() {}, 10},
		{"nothing", func() {}, 0},
		{"somebody new", func() { capture("bob", "2026-03-05", nil) }, 2},
		{"a person's property", func() { capture("ann", "2026-02-01", map[string]any{"$set": map[string]any{"plan": "pro"}}) }, 0},
		{"somebody new without events in the range", func() { capture("cid", "2026-02-01", nil) }, 0},
		{"somebody who was there before", func() {
			capture("dan", "2026-03-08", nil)
			capture("dan", "2026-03-02", map[string]any{"$process_person_profile": false})
		}, 4},
	} {
		step.do()
		got, done := w.ask(w.stitches, w.caller(w.project), raw)
		if want, _ := w.ask(w.whole, w.caller(w.project), raw); got != want {
			t.Errorf("%s: got %s, want %s", step.name, got, want)
		}
		if want := (execution.Buckets{Computed: step.computed, All: 10}); done.Buckets != want {
			t.Errorf("%s: %+v, want %+v", step.name, done.Buckets, want)
		}
	}
}

// TestPiecesAreFenced: pieces are never shared between projects, nor between keys with different fixed values, even if their queries look the same.
func TestPiecesAreFenced(t *testing.T) {
	w := newSettledWorld(t, true)
	const raw = `{"kind":"TrendsQuery","interval":"day","dateRange":{"date_from":"2026-03-01","date_to":"2026-03-05"},"series":[{"kind":"EventsNode","event":"a"}]}`
	key := func(fixed string) *registry.Key { return &registry.Key{ID: "key " + fixed, Fixed: fixed} }
	ours, theirs := w.caller(w.project), w.caller(w.other)
	fixed, otherwise := ours, ours
	ours.Key, theirs.Key, fixed.Key, otherwise.Key = key(""), key(""), key(`{"customer":1}`), key(`{"customer":2}`)
	for _, tt := range []struct {
		name   string
		caller execution.Caller
		want   execution.Buckets
	}{
		{"the first", ours, execution.Buckets{Computed: 5, All: 5}},
		{"the same again", ours, execution.Buckets{All: 5}},
		{"another project", theirs, execution.Buckets{Computed: 5, All: 5}},
		{"a key with fixed values", fixed, execution.Buckets{Computed: 5, All: 5}},
		{"a key with others", otherwise, execution.Buckets{Computed: 5, All: 5}},
		{"the fixed values again", fixed, execution.Buckets{All: 5}},
	} {
		if _, done := w.ask(w.stitches, tt.caller, raw); done.Buckets != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, done.Buckets, tt.want)
		}
	}
}
