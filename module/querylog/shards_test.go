package querylog_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/clickhousetest"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
)

// tenants are projects on the main shard, on the shard east, and on one that the config does not name.
type tenants struct{ main, east, lost int64 }

// startSharded starts a process on two shards, which are databases of the engine; east has a DSN of its own.
func startSharded(t *testing.T, east string) (*process, tenants) {
	t.Helper()
	of := tenants{clickhousetest.Project(), clickhousetest.Project(), clickhousetest.Project()}
	return startOn(t, warehouse.ShardsConfig{
		Main: clickhouse.Config{DSN: engine.DSN()}, Others: map[string]string{"east": east},
		Of: func(project int64) string { return map[int64]string{of.east: "east", of.lost: "west"}[project] },
	}), of
}

// ran counts runs of the endpoint of a project, whose id is its project's.
func (p *process) ran(project int64, runs int) {
	for range runs {
		p.runs.Of(project, fmt.Sprint(project)).Add(runlog.Run{
			At: time.Now(), Took: time.Millisecond, Execution: uuid.New(), Version: 1, Status: http.StatusOK, Cache: cache.Hit, Key: "k", Customer: `{"customer":1}`,
		})
	}
}

// used returns how often a project's endpoint was run in total, and by a key and a customer.
func (p *process) used(t *testing.T, project int64) string {
	t.Helper()
	id := fmt.Sprint(project)
	used, _, ok, err := p.log.Usage(t.Context(), enter(project), project, []string{id}, true, time.Now())
	if err != nil || !ok {
		return fmt.Sprint("unknown: ", err)
	}
	u := used[id]
	if len(u.Keys) != 1 || len(u.Customers) != 1 {
		return fmt.Sprintf("%d runs, %d keys, %d customers", u.Day.Calls(), len(u.Keys), len(u.Customers))
	}
	return fmt.Sprintf("%d runs, %d, %d", u.Day.Calls(), u.Keys[0].Day.Calls(), u.Customers[0].Day.Calls())
}

// stored returns how many queries, runs and counted runs of a project a database of the engine has.
func stored(t *testing.T, database string, project int64) string {
	t.Helper()
	var queries, runs, counted int64
	err := embeddedtest.Connect(t, engine.DSN()).QueryRow(t.Context(), fmt.Sprintf("SELECT (SELECT toInt64(count()) FROM %[1]s.query_log WHERE team_id = %[2]d), "+
		"toInt64(countIf(entry = 'run')), toInt64(sumIf(calls, outcome = 'answered')) FROM %[1]s.run_log WHERE team_id = %[2]d", database, project)).Scan(&queries, &runs, &counted)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d queries, %d runs, %d counted", queries, runs, counted)
}

func (p *process) close(t *testing.T) {
	t.Helper()
	if err := p.log.Close(); err != nil {
		t.Error(err)
	}
}

func equal(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

// TestRowsAreOnTheirShard: a project's rows are written to its shard and read there. Nothing is written for a project whose shard the config does not
// name, and everything for all others.
func TestRowsAreOnTheirShard(t *testing.T) {
	t.Parallel()
	p, of := startSharded(t, ownDatabase(t, "querylog_east"))
	for n, project := range []int64{of.lost, of.main, of.east} {
		for range n + 1 {
			p.log.Add(query(project, "named"))
		}
		p.ran(project, 10*(n+1))
	}
	for _, project := range []int64{of.lost, of.main, of.east} {
		p.sync(t, project)
	}
	for n, project := range []int64{of.main, of.east} {
		if got := len(p.queries(t, project, "named")); got != n+2 {
			t.Errorf("project %d has %d queries, want %d", project, got, n+2)
		}
		runs := 10 * (n + 2)
		equal(t, "usage", p.used(t, project), fmt.Sprintf("%d runs, %[1]d, %[1]d", runs))
	}
	if _, _, ok, err := p.log.Usage(t.Context(), enter(of.lost), of.lost, []string{"e"}, true, time.Now()); ok || err != nil {
		t.Errorf("the usage of a project on no shard is known: %t, %v", ok, err)
	}
	p.close(t)
	const main, east = embedded.Database, "querylog_east"
	for _, tt := range []struct {
		database string
		project  int64
		want     string
	}{
		{main, of.main, "2 queries, 20 runs, 20 counted"},
		{east, of.main, "0 queries, 0 runs, 0 counted"},
		{main, of.east, "0 queries, 0 runs, 0 counted"},
		{east, of.east, "3 queries, 30 runs, 30 counted"},
		{main, of.lost, "0 queries, 0 runs, 0 counted"},
		{east, of.lost, "0 queries, 0 runs, 0 counted"},
	} {
		equal(t, fmt.Sprintf("project %d in %s", tt.project, tt.database), stored(t, tt.database, tt.project), tt.want)
	}
	if _, dropped := p.log.Stats(); dropped < 12 { // a query, ten runs, and their counts
		t.Errorf("%d rows are dropped, want those of the project on no shard", dropped)
	}
	if n := p.logs.Len(); n != 0 {
		t.Errorf("it logs %v", p.logs.All())
	}
}

// TestShardThatRefuses: a shard that refuses the rows does not hold up the others. Each run is counted once, on either shard, before and after the
// rows are accepted.
func TestShardThatRefuses(t *testing.T) {
	t.Parallel()
	dsn, refuses := between(t, ownDatabase(t, "querylog_refuses"), func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Query().Get("query"), "INSERT INTO run_log") {
			return false
		}
		refuse(w)
		return true
	})
	refuses.Store(true)
	p, of := startSharded(t, dsn)
	write := func() {
		t.Helper()
		for _, project := range []int64{of.main, of.east} {
			if err := p.log.WriteCounts(project); err != nil {
				t.Fatal(err)
			}
		}
	}
	both := func(when string, runs int) {
		t.Helper()
		for name, project := range map[string]int64{"main": of.main, "east": of.east} {
			equal(t, when+" on "+name, p.used(t, project), fmt.Sprintf("%d runs, %[1]d, %[1]d", runs))
		}
	}
	more := func() {
		for _, project := range []int64{of.main, of.east} {
			p.log.Add(query(project, "x"))
			p.ran(project, 5)
		}
	}
	more()
	write()
	both("when it was refused", 5)
	more()
	write()
	both("while nothing is written", 10)
	equal(t, "main", stored(t, embedded.Database, of.main), "2 queries, 10 runs, 10 counted")
	equal(t, "east", stored(t, "querylog_refuses", of.east), "1 queries, 0 runs, 0 counted")
	if _, dropped := p.log.Stats(); dropped != 11 { // the runs, and the query made while nothing was written
		t.Errorf("%d rows are dropped, want 11", dropped)
	}
	refuses.Store(false)
	p.log.TryAgain(of.east)
	write()
	more()
	write()
	both("when it takes them again", 15)
	p.close(t)
	equal(t, "main", stored(t, embedded.Database, of.main), "3 queries, 15 runs, 15 counted")
	equal(t, "east", stored(t, "querylog_refuses", of.east), "2 queries, 5 runs, 15 counted")
	var messages []string
	for _, entry := range p.logs.All() {
		messages = append(messages, fmt.Sprint(entry.ContextMap()["shard"], ": ", entry.Message))
	}
	equal(t, "the log", strings.Join(messages, "\n"), "east: the log of queries and runs can't be written; it is kept only in memory and is lost when the process exits\n"+
		"east: the log of queries and runs is written again")
}

// TestRefusedAfterAll: counts that ClickHouse may or may not have, and then refuses, are shown and written once.
func TestRefusedAfterAll(t *testing.T) {
	t.Parallel()
	var refuses atomic.Bool
	own := ownDatabase(t, "querylog_breaks")
	behind := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: hostOf(t, own)})
	behind.Transport = ownTransport(t)
	dsn, fails := between(t, own, func(w http.ResponseWriter, r *http.Request) bool {
		if !isInsert(r) {
			return false
		}
		if !refuses.Load() { // it has the rows, but the answer is lost
			behind.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		refuse(w)
		return true
	})
	fails.Store(true)
	p := start(t, dsn)
	project := clickhousetest.Project()
	p.ran(project, 5)
	if err := p.log.WriteCounts(project); err == nil {
		t.Error("writing succeeds though no answer came")
	}
	refuses.Store(true)
	back := func() {
		t.Helper()
		if err := p.wh.Ping(t.Context()); err != nil { // notices that the outage is over
			t.Fatal(err)
		}
		if err := p.log.WriteCounts(project); err != nil {
			t.Fatal(err)
		}
	}
	back()
	equal(t, "refused", p.used(t, project), "5 runs, 5, 5")
	equal(t, "refused", stored(t, "querylog_breaks", project), "0 queries, 5 runs, 5 counted")
	fails.Store(false)
	p.log.TryAgain(project)
	back()
	equal(t, "taken", p.used(t, project), "5 runs, 5, 5")
	p.close(t)
	equal(t, "taken", stored(t, "querylog_breaks", project), "0 queries, 5 runs, 5 counted")
}

// TestShardThatHangs holds up nobody else: a project of another shard finds its rows meanwhile.
func TestShardThatHangs(t *testing.T) {
	t.Parallel()
	arrived, goOn := make(chan struct{}, 1), make(chan struct{})
	dsn, hangs := between(t, ownDatabase(t, "querylog_hangs"), func(_ http.ResponseWriter, r *http.Request) bool {
		if isInsert(r) {
			select {
			case arrived <- struct{}{}:
			default:
			}
			<-goOn
		}
		return false
	})
	release := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(release)
	hangs.Store(true)
	p, of := startSharded(t, dsn)
	p.log.Add(query(of.east, "x"))
	written := make(chan error, 1)
	go func() { written <- p.log.Sync(t.Context(), of.east) }()
	<-arrived
	p.log.Add(query(of.main, "x"))
	p.ran(of.main, 3)
	p.sync(t, of.main)
	if got := len(p.queries(t, of.main, "x")); got != 1 {
		t.Errorf("%d queries are there, want 1", got)
	}
	equal(t, "usage", p.used(t, of.main), "3 runs, 3, 3")
	release()
	if err := <-written; err != nil {
		t.Error(err)
	}
	if got := len(p.queries(t, of.east, "x")); got != 1 {
		t.Errorf("%d queries are on the shard that hung, want 1", got)
	}
	p.close(t)
}
