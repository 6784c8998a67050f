package querylog_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/clickhousetest"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/internal/eventually"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/querylog"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

var engine *embedded.Engine

func TestMain(m *testing.M) {
	clickhousetest.Main(m, func(e *embedded.Engine, _ *clickhouse.Client) { engine = e })
}

// process is a server, as far as the log is concerned.
type process struct {
	log    *querylog.Log
	runs   *runlog.Logs
	shards *warehouse.Shards
	wh     *warehouse.Warehouse // the main shard
	logs   *observer.ObservedLogs
}

// start starts a process on a database of the engine.
func start(t *testing.T, dsn string) *process {
	t.Helper()
	return startOn(t, warehouse.ShardsConfig{Main: clickhouse.Config{DSN: dsn}, Of: func(int64) string { return "" }})
}

// startOn starts a process on several shards.
func startOn(t *testing.T, config warehouse.ShardsConfig) *process {
	t.Helper()
	config.Logger = zap.NewNop()
	shards, err := warehouse.OpenShards(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, wh := range shards.All() {
		_, _ = wh.Prepare(t.Context()) // a shard that is away is so for the whole test
	}
	core, logs := observer.New(zap.InfoLevel)
	p := &process{runs: runlog.New(time.Now()), shards: shards, wh: shards.Main(), logs: logs}
	p.log = querylog.New(querylog.Config{Shards: shards, Runs: p.runs, Logger: zap.New(core)})
	t.Cleanup(func() {
		if err := shards.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// enter takes a place where there are no others.
func enter(project int64) querylog.Enter {
	places := admission.New(admission.Limits{Places: 1, Project: 1, Queue: 1})
	return func(ctx context.Context) (*admission.Place, func(), error) {
		at, err := places.Enter(ctx, admission.Request{Project: project})
		if err != nil {
			return nil, nil, err
		}
		return at, at.Leave, nil
	}
}

func (p *process) queries(t *testing.T, project int64, name string) []*querylog.Query {
	t.Helper()
	found, err := p.log.Queries(t.Context(), enter(project), project, name, time.Now().Add(-time.Hour), 100)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (p *process) sync(t *testing.T, project int64) {
	t.Helper()
	if err := p.log.Sync(t.Context(), project); err != nil {
		t.Fatal(err)
	}
}

func query(project int64, name string) *querylog.Query {
	end := time.Now().UTC().Truncate(time.Microsecond)
	return &querylog.Query{
		ID: uuid.New(), Project: project, Name: name, Text: "select 'it''s'", Label: "label", Kind: "HogQLQuery", Endpoint: "sales", Version: 3, Key: "k1",
		Customer: `{"customer":"acme"}`, User: 4, Personal: true, Start: end.Add(-time.Second), End: end, Rows: 5, Bytes: 600, Failed: true, Code: 159,
		Exception: "TIMEOUT_EXCEEDED",
	}
}

// TestQueriesAreOfAllProcesses: one process reads what another wrote, unchanged, and each project only its own.
func TestQueriesAreOfAllProcesses(t *testing.T) {
	t.Parallel()
	one, other := start(t, engine.DSN()), start(t, engine.DSN())
	mine, strange := clickhousetest.Project(), clickhousetest.Project()
	want := query(mine, "named")
	one.log.Add(want)
	one.log.Add(query(strange, "named"))
	one.log.Add(query(mine, "another"))
	one.sync(t, mine)
	if diff := cmp.Diff([]*querylog.Query{want}, other.queries(t, mine, "named")); diff != "" {
		t.Errorf("queries (-want +got):\n%s", diff)
	}
	if got := other.queries(t, mine, "named' OR 1=1 OR ''='"); len(got) != 0 {
		t.Errorf("a name with a quote finds %d queries", len(got))
	}
	for _, p := range []*process{one, other} {
		if err := p.log.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestNewestQueries: of more queries than are wanted, the newest are read, oldest first.
func TestNewestQueries(t *testing.T) {
	t.Parallel()
	p, project := start(t, engine.DSN()), clickhousetest.Project()
	var want []*querylog.Query
	for i := range 3 {
		q := query(project, "often")
		q.Start = q.Start.Add(time.Duration(i) * time.Millisecond)
		p.log.Add(q)
		want = append(want, q)
	}
	p.sync(t, project)
	found, err := p.log.Queries(t.Context(), enter(project), project, "often", time.Now().Add(-time.Hour), 2)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want[1:], found); diff != "" {
		t.Errorf("queries (-want +got):\n%s", diff)
	}
	if err := p.log.Close(); err != nil {
		t.Error(err)
	}
}

// TestCloseWritesTheRest: the next process finds what was waiting when a process ended.
func TestCloseWritesTheRest(t *testing.T) {
	t.Parallel()
	project := clickhousetest.Project()
	one := start(t, engine.DSN())
	one.log.Add(query(project, "last"))
	one.runs.Of(project, "e").Add(runlog.Run{At: time.Now(), Version: 1, Status: 200, Cache: cache.Hit, Key: "k"})
	if err := one.log.Close(); err != nil {
		t.Fatal(err)
	}
	other := start(t, engine.DSN())
	if got := other.queries(t, project, "last"); len(got) != 1 {
		t.Errorf("%d queries are there, want 1", len(got))
	}
	runs, err := other.log.ListRuns(t.Context(), enter(project), project, "e", nil, querylog.Filter{})
	if err != nil || len(runs) != 1 || runs[0].Cache != cache.Hit {
		t.Errorf("runs %+v, %v", runs, err)
	}
	used, since, ok, err := other.log.Usage(t.Context(), enter(project), project, []string{"e"}, true, time.Now())
	if err != nil || !ok || used["e"].Day.Calls() != 1 || used["e"].Day.Cached != 1 || since.IsZero() {
		t.Errorf("usage of %d runs since %s, %t, %v", used["e"].Day.Calls(), since, ok, err)
	}
	if err := other.log.Close(); err != nil {
		t.Error(err)
	}
}

// TestRunsAreListedOnce: a run that is both in memory and written is listed once; runs of other processes are listed too, newest first.
func TestRunsAreListedOnce(t *testing.T) {
	t.Parallel()
	project := clickhousetest.Project()
	one, other := start(t, engine.DSN()), start(t, engine.DSN())
	began := time.Now().Add(-time.Minute).UTC().Truncate(time.Microsecond)
	code := "query_timeout"
	var want []runlog.Run
	add := func(p *process, n int) {
		r := runlog.Run{
			At: began.Add(time.Duration(n) * time.Second), Took: time.Duration(n) * time.Millisecond, Execution: uuid.New(), Version: n, Rows: -1, Status: 200,
			Cache: cache.Stale, Key: fmt.Sprint("key", n), Customer: `{"customer":1}`,
		}
		if n%2 == 0 {
			r.Status, r.Code, r.Cache = 504, &code, cache.Miss
		}
		p.runs.Of(project, "e").Add(r)
		want = append([]runlog.Run{r}, want...)
	}
	add(one, 1)
	add(other, 2)
	add(one, 3)
	for _, p := range []*process{one, other} {
		p.sync(t, project)
		p.sync(t, project)
	}
	add(one, 4) // not written yet
	log, _ := one.runs.Find("e")
	list := func(f querylog.Filter) []runlog.Run {
		t.Helper()
		got, err := one.log.ListRuns(t.Context(), enter(project), project, "e", log, f)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if diff := cmp.Diff(want, list(querylog.Filter{}), cmpopts.IgnoreFields(runlog.Run{}, "Number")); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	late, err := other.log.ListRuns(t.Context(), enter(project), project, "e", nil, querylog.Filter{
		After: began.Add(time.Second), Before: began.Add(3 * time.Second), Execution: want[2].Execution,
	})
	if err != nil || len(late) != 1 || late[0].Version != 2 {
		t.Errorf("filtered: %+v, %v", late, err)
	}
	for _, tt := range []struct {
		statuses []querylog.Statuses
		want     []int // versions
	}{
		{[]querylog.Statuses{{From: 500, Before: 600}}, []int{4, 2}},
		{[]querylog.Statuses{{From: 400, Before: 500}, {Before: 400}}, []int{3, 1}},
		{[]querylog.Statuses{}, nil},
	} {
		var got []int
		for _, r := range list(querylog.Filter{Statuses: tt.statuses}) {
			got = append(got, r.Version)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("runs with the statuses %v (-want +got):\n%s", tt.statuses, diff)
		}
	}
	strange, err := other.log.ListRuns(t.Context(), enter(project+1_000_000), project+1_000_000, "e", nil, querylog.Filter{})
	if err != nil || len(strange) != 0 {
		t.Errorf("another project sees %d runs, %v", len(strange), err)
	}
	for _, p := range []*process{one, other} {
		if err := p.log.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestUsageCountsEachRunOnce, whether it is counted in memory, waiting or written, and counts versions, keys and customers separately.
func TestUsageCountsEachRunOnce(t *testing.T) {
	t.Parallel()
	project := clickhousetest.Project()
	one, other := start(t, engine.DSN()), start(t, engine.DSN())
	add := func(p *process, runs, version, status int, key, customer string) {
		for range runs {
			p.runs.Of(project, "e").Add(runlog.Run{
				At: time.Now(), Took: time.Millisecond, Version: version, Status: status, Cache: cache.Hit, Key: key, Customer: customer,
			})
		}
	}
	check := func(want string) {
		t.Helper()
		used, _, ok, err := other.log.Usage(t.Context(), enter(project), project, []string{"e", "f"}, true, time.Now())
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		u := used["e"]
		var b strings.Builder
		fmt.Fprintf(&b, "calls %d %d cached %d errors %d limited %d;", u.Hour.Calls(), u.Day.Calls(), u.Day.Cached, u.Day.Errors(), u.Day.RateLimited)
		for _, v := range u.Versions {
			fmt.Fprintf(&b, " v%d %d", v.Version, v.Day.Calls())
		}
		for _, k := range append(u.Keys, u.Customers...) {
			fmt.Fprintf(&b, " %s %d", k.Name, k.Day.Calls())
		}
		if b.String() != want {
			t.Errorf("usage is %s, want %s", b.String(), want)
		}
		if n := used["f"].Day.Calls(); n != 0 {
			t.Errorf("an endpoint without runs has %d", n)
		}
		days, ok, err := other.log.Days(t.Context(), enter(project), project, []string{"e", "f"}, time.Now())
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		allow := cmp.AllowUnexported(runlog.Counts{})
		if diff := cmp.Diff(&u.Day.Counts, days["e"], allow); diff != "" {
			t.Errorf("the day (-Usage +Days):\n%s", diff)
		}
		if diff := cmp.Diff(new(runlog.Counts), days["f"], allow); diff != "" {
			t.Errorf("the day of an endpoint without runs (-want +got):\n%s", diff)
		}
	}
	check("calls 0 0 cached 0 errors 0 limited 0;")
	add(other, 300, 1, 200, "a", "")
	check("calls 300 300 cached 300 errors 0 limited 0; v1 300 a 300")
	add(one, 20, 2, 200, "b", `{"customer":1}`)
	add(one, 2, 2, 500, "b", `{"customer":1}`)
	add(one, 3, 0, 429, "b", `{"customer":1}`)
	if err := one.log.Close(); err != nil { // also writes the counts
		t.Fatal(err)
	}
	add(other, 1, 1, 400, "a", "")
	const all = `calls 326 326 cached 320 errors 3 limited 3; v2 22 v1 301 a 301 b 25 {"customer":1} 25`
	check(all)
	other.sync(t, project) // the counts gathered for the answer are written, and not counted twice
	check(all)
	if err := other.log.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestUsageTellsTheMostUsedApart: the customers of an endpoint with most runs are listed separately, whether the runs are written or not. Runs of
// other customers count for the endpoint.
func TestUsageTellsTheMostUsedApart(t *testing.T) {
	t.Parallel()
	project := clickhousetest.Project()
	p := start(t, engine.DSN())
	add := func(endpoint string, customer, runs, status int) {
		for range runs {
			p.runs.Of(project, endpoint).Add(runlog.Run{
				At: time.Now(), Version: 1, Status: status, Cache: cache.Hit, Key: "k", Customer: fmt.Sprintf("c%03d", customer),
			})
		}
	}
	for customer := range 150 {
		add("e", customer, 2, 200)
		add("f", customer+150, 1, 200)
	}
	if err := p.log.Close(); err != nil { // also writes the counts
		t.Fatal(err)
	}
	p.log = querylog.New(querylog.Config{Shards: p.shards, Runs: p.runs, Logger: zap.NewNop()})
	add("e", 120, 1, 400) // the most, adding written and waiting runs
	add("e", 149, 1, 429)
	used, _, ok, err := p.log.Usage(t.Context(), enter(project), project, []string{"e", "f"}, true, time.Now())
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	want := []string{"c120 3", "c149 3"}
	for customer := range 98 {
		want = append(want, fmt.Sprintf("c%03d 2", customer))
	}
	var got []string
	for _, c := range used["e"].Customers {
		got = append(got, fmt.Sprint(c.Name, " ", c.Day.Calls()))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("customers (-want +got):\n%s", diff)
	}
	e, f := used["e"], used["f"]
	if e.Day.Calls() != 302 || f.Day.Calls() != 150 || len(f.Customers) != 100 || len(e.Keys) != 1 || e.Keys[0].Day.Calls() != 302 {
		t.Errorf("%d and %d runs, %d customers of the other endpoint, keys %d", e.Day.Calls(), f.Day.Calls(), len(f.Customers), len(e.Keys))
	}
	if err := p.log.Close(); err != nil {
		t.Error(err)
	}
}

// TestWhatIsWrittenLaterIsNotLost: rows wait while ClickHouse is unavailable, and are written once.
func TestWhatIsWrittenLaterIsNotLost(t *testing.T) {
	t.Parallel()
	project := clickhousetest.Project()
	dsn, away := between(t, engine.DSN(), func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
	p := start(t, dsn)
	p.log.Add(query(project, "before"))
	p.sync(t, project)
	away.Store(true)
	p.log.Add(query(project, "during"))
	if err := p.log.Sync(t.Context(), project); err == nil {
		t.Error("writing to a ClickHouse that is away succeeds")
	}
	p.log.Add(query(project, "during"))
	away.Store(false)
	eventually.Is(t, "rows are written again", func() bool { return p.log.Sync(t.Context(), project) == nil })
	if err := p.wh.Ping(t.Context()); err != nil { // notices that the outage is over
		t.Fatal(err)
	}
	if got := p.queries(t, project, "during"); len(got) != 2 {
		t.Errorf("%d queries are there, want 2", len(got))
	}
	if n := p.logs.FilterMessage("the log of queries and runs is not written yet; trying again").Len(); n != 1 {
		t.Errorf("the outage was logged %d times", n)
	}
	if err := p.log.Close(); err != nil {
		t.Error(err)
	}
}

// TestReadOnlyUser: a user without write permission causes one warning. What is in memory is listed, and what others wrote.
func TestReadOnlyUser(t *testing.T) {
	t.Parallel()
	project := clickhousetest.Project()
	writer := start(t, engine.DSN())
	writer.log.Add(query(project, "x"))
	writer.runs.Of(project, "e").Add(runlog.Run{At: time.Now(), Version: 1, Status: 200, Key: "k"})
	if err := writer.log.Close(); err != nil {
		t.Fatal(err)
	}
	dsn, forbidden := between(t, engine.DSN(), func(w http.ResponseWriter, r *http.Request) bool {
		if isInsert(r) {
			refuse(w)
		}
		return isInsert(r)
	})
	forbidden.Store(true)
	p := start(t, dsn)
	for range 3 {
		p.log.Add(query(project, "x"))
		p.sync(t, project)
	}
	p.runs.Of(project, "e").Add(runlog.Run{At: time.Now(), Version: 1, Status: 200, Key: "k"})
	log, _ := p.runs.Find("e")
	if runs, err := p.log.ListRuns(t.Context(), enter(project), project, "e", log, querylog.Filter{}); err != nil || len(runs) != 2 {
		t.Errorf("runs %v, %v", runs, err)
	}
	if got := p.queries(t, project, "x"); len(got) != 1 {
		t.Errorf("%d queries are there, want 1", len(got))
	}
	if used, _, ok, err := p.log.Usage(t.Context(), enter(project), project, []string{"e"}, true, time.Now()); !ok || err != nil || used["e"].Day.Calls() != 2 {
		t.Errorf("usage of %d runs, %t, %v", used["e"].Day.Calls(), ok, err)
	}
	if n := p.logs.Len(); n != 1 {
		t.Errorf("it logs %v", p.logs.All())
	}
	if err := p.log.Close(); err != nil {
		t.Error(err)
	}
}

// TestForeignTable: a table of the same name that belongs to another product is neither written nor read.
func TestForeignTable(t *testing.T) {
	t.Parallel()
	dsn := ownDatabase(t, "querylog_readonly")
	conn := embeddedtest.Connect(t, engine.DSN())
	for _, sql := range []string{"DROP TABLE IF EXISTS querylog_readonly.query_log", "CREATE TABLE querylog_readonly.query_log (team_id Int64) ENGINE = MergeTree ORDER BY team_id"} {
		if err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	p := start(t, dsn)
	project := clickhousetest.Project()
	for range 3 {
		p.log.Add(query(project, "x"))
		p.sync(t, project)
	}
	p.runs.Of(project, "e").Add(runlog.Run{At: time.Now(), Version: 1, Status: 200, Key: "k"})
	log, _ := p.runs.Find("e")
	if runs, err := p.log.ListRuns(t.Context(), enter(project), project, "e", log, querylog.Filter{}); err != nil || len(runs) != 1 {
		t.Errorf("runs %v, %v", runs, err)
	}
	if _, _, ok, err := p.log.Usage(t.Context(), enter(project), project, []string{"e"}, true, time.Now()); ok || err != nil {
		t.Errorf("usage %t, %v", ok, err)
	}
	if n := p.logs.Len(); n != 1 {
		t.Errorf("it logs %v", p.logs.All())
	}
	if written, dropped := p.log.Stats(); written != 0 || dropped < 3 {
		t.Errorf("%d rows are written, %d dropped", written, dropped)
	}
	if err := p.log.Close(); err != nil {
		t.Error(err)
	}
}

// TestWaitingIsBounded: while ClickHouse is unavailable, rows wait up to a limit, and the rest is counted as dropped.
func TestWaitingIsBounded(t *testing.T) {
	t.Parallel()
	p := start(t, "http://127.0.0.1:1/default")
	const many = 40_000
	for range many {
		p.log.Add(query(1, "x"))
	}
	_, dropped := p.log.Stats()
	if dropped < many-2*16_384 || dropped >= many {
		t.Errorf("%d of %d rows are dropped", dropped, many)
	}
	if n := p.logs.FilterMessageSnippet("some are dropped").Len(); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
	if err := p.log.Close(); err != nil {
		t.Error(err)
	}
}

// TestDeletedProject: waiting rows of a deleted project are not written.
func TestDeletedProject(t *testing.T) {
	t.Parallel()
	p := start(t, engine.DSN())
	gone, stays := clickhousetest.Project(), clickhousetest.Project()
	p.log.Add(query(gone, "x"))
	p.log.Add(query(stays, "x"))
	p.runs.Of(gone, "e").Add(runlog.Run{At: time.Now(), Version: 1, Status: 200, Key: "k"})
	p.log.Forget(gone)
	if err := p.log.Close(); err != nil {
		t.Fatal(err)
	}
	other := start(t, engine.DSN())
	if got, kept := len(other.queries(t, gone, "x")), len(other.queries(t, stays, "x")); got != 0 || kept != 1 {
		t.Errorf("%d queries of a deleted project are written, and %d of another one", got, kept)
	}
	runs, err := other.log.ListRuns(t.Context(), enter(gone), gone, "e", nil, querylog.Filter{})
	if err != nil || len(runs) != 0 {
		t.Errorf("%d of its runs, %v", len(runs), err)
	}
	if err := other.log.Close(); err != nil {
		t.Error(err)
	}
}

// TestRestoredProject: a project that was deleted and came back from a backup has a log again.
func TestRestoredProject(t *testing.T) {
	t.Parallel()
	p := start(t, engine.DSN())
	project := clickhousetest.Project()
	p.log.Forget(project)
	p.log.Add(query(project, "before"))
	p.sync(t, project)
	p.log.Restored(project)
	p.log.Add(query(project, "after"))
	p.sync(t, project)
	if before, after := len(p.queries(t, project, "before")), len(p.queries(t, project, "after")); before != 0 || after != 1 {
		t.Errorf("%d queries are there of before the restore, and %d of after it", before, after)
	}
	if err := p.log.Close(); err != nil {
		t.Error(err)
	}
}

// TestNilLog: a server without a log has nothing to write and nothing to read.
func TestNilLog(t *testing.T) {
	t.Parallel()
	var l *querylog.Log
	l.Add(query(1, "x"))
	l.Forget(1)
	l.Restored(1)
	if err := l.Sync(t.Context(), 1); err != nil {
		t.Error(err)
	}
	if runs, err := l.ListRuns(t.Context(), enter(1), 1, "e", nil, querylog.Filter{}); len(runs) != 0 || err != nil {
		t.Errorf("runs %v, %v", runs, err)
	}
}

// between returns the DSN of a proxy in front of the engine. While it is on, answer may answer instead of the engine.
func between(t *testing.T, dsn string, answer func(http.ResponseWriter, *http.Request) bool) (through string, on *atomic.Bool) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	on = new(atomic.Bool)
	behind := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: u.Host})
	behind.Transport = ownTransport(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !on.Load() || !answer(w, r) {
			behind.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	u.Host = strings.TrimPrefix(server.URL, "http://")
	return u.String(), on
}

// ownTransport has connections of its own: closing any httptest.Server closes the connections that all share.
func ownTransport(t *testing.T) *http.Transport {
	t.Helper()
	own := new(http.Transport)
	t.Cleanup(own.CloseIdleConnections)
	return own
}

func isInsert(r *http.Request) bool { return strings.HasPrefix(r.URL.Query().Get("query"), "INSERT") }

// refuse answers that the user may not do that.
func refuse(w http.ResponseWriter) {
	w.Header().Set("X-ClickHouse-Exception-Code", "497")
	http.Error(w, "Code: 497. DB::Exception: reader: Not enough privileges. (ACCESS_DENIED)", http.StatusForbidden)
}

func hostOf(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// ownDatabase creates a database on the engine, and returns its DSN.
func ownDatabase(t *testing.T, name string) string {
	t.Helper()
	conn := embeddedtest.Connect(t, engine.DSN())
	for _, sql := range []string{"DROP DATABASE IF EXISTS " + name, "CREATE DATABASE " + name} {
		if err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	dsn, err := url.Parse(engine.DSN())
	if err != nil {
		t.Fatal(err)
	}
	dsn.Path = "/" + name
	return dsn.String()
}

// TestOldRowsAreNotShown: rows older than the retention are in no answer, even if ClickHouse has not removed them yet, and neither are runs in memory
// of that age.
func TestOldRowsAreNotShown(t *testing.T) {
	t.Parallel()
	const database = "querylog_old"
	dsn := ownDatabase(t, database)
	p := start(t, dsn)
	conn := embeddedtest.Connect(t, engine.DSN())
	for _, table := range []string{"query_log", "run_log"} {
		if err := conn.Exec(t.Context(), "ALTER TABLE "+database+"."+table+" REMOVE TTL"); err != nil {
			t.Fatal(err)
		}
	}
	project := clickhousetest.Project()
	limit := time.Now().Add(-physical.LogDays * 24 * time.Hour)
	for _, at := range []time.Time{limit.Add(-time.Hour), limit.Add(65 * time.Minute)} {
		q := query(project, "x")
		q.Start, q.End = at, at
		p.log.Add(q)
		p.runs.Of(project, fmt.Sprint(project)).Add(runlog.Run{At: at, Version: 1, Status: 200, Key: "k"})
	}
	log, _ := p.runs.Find(fmt.Sprint(project))
	p.close(t)
	equal(t, "ClickHouse has", stored(t, database, project), "2 queries, 2 runs, 2 counted")

	p = start(t, dsn)
	found, err := p.log.Queries(t.Context(), enter(project), project, "x", time.Time{}, 100)
	if err != nil || len(found) != 1 || found[0].End.Before(limit) {
		t.Errorf("the queries %v are found, %v", found, err)
	}
	for name, memory := range map[string]*runlog.Log{"another process": nil, "the process": log} {
		runs, err := p.log.ListRuns(t.Context(), enter(project), project, fmt.Sprint(project), memory, querylog.Filter{})
		if err != nil || len(runs) != 1 || runs[0].At.Before(limit) {
			t.Errorf("%s lists the runs %v, %v", name, runs, err)
		}
	}
	_, since, ok, err := p.log.Usage(t.Context(), enter(project), project, []string{fmt.Sprint(project)}, false, time.Now())
	if err != nil || !ok || since.Before(limit) {
		t.Errorf("runs are counted since %s, %t, %v", since, ok, err)
	}
	p.close(t)
}
