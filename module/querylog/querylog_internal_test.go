package querylog

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
)

func countedOf(endpoint string, from time.Time, customer string) runlog.Counted {
	return runlog.Counted{
		Who: runlog.Who{Version: 1, Key: "k", Customer: customer}, Project: 1, Endpoint: endpoint, From: from.Unix(), Outcome: runlog.Answered,
	}
}

// away returns a log that nobody writes, over shards that are away. It puts projects on the shards of their names, all others on the main one.
func away(t *testing.T, on map[int64]string, shards ...string) *Log {
	t.Helper()
	const dsn = "clickhouse://127.0.0.1:1"
	others := map[string]string{}
	for _, name := range shards {
		others[name] = dsn
	}
	all, err := warehouse.OpenShards(warehouse.ShardsConfig{
		Main: clickhouse.Config{DSN: dsn}, Others: others, Of: func(project int64) string { return on[project] }, Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := all.Close(); err != nil {
			t.Error(err)
		}
	})
	return prepare(Config{Shards: all, Runs: runlog.New(time.Now()), Logger: zap.NewNop()})
}

// TestCountsAreBounded: while ClickHouse is unavailable, counts wait up to a limit and for a day. What exceeds that is dropped and counted.
func TestCountsAreBounded(t *testing.T) {
	t.Parallel()
	l := away(t, nil)
	q := l.of(1)
	now := time.Now()
	for i := range maxWaiting + 100 {
		q.count(countedOf("e", now, fmt.Sprint(i)), 2)
	}
	if got, rest := len(q.waiting.counts), q.waiting.counts[runlog.Counted{
		Who: runlog.Who{Version: 1}, Project: 1, Endpoint: "e", From: now.Unix(), Outcome: runlog.Answered,
	}]; got != maxWaiting+1 || rest != 200 {
		t.Errorf("there are %d counts, and %d runs of further customers", got, rest)
	}
	q.next() // rows being written take room too
	const endpoints = 2 * maxCounts
	for i := range endpoints {
		q.count(countedOf(fmt.Sprint(i), now, "c"), 1)
	}
	if _, dropped := l.Stats(); len(q.writing.counts)+len(q.waiting.counts) != maxCounts || dropped != endpoints-(maxCounts-maxWaiting-1) {
		t.Errorf("%d counts are written and %d wait, and %d are dropped", len(q.writing.counts), len(q.waiting.counts), dropped)
	}
	if err := q.ended(q.writing, errNoTables); err != nil || len(q.writing.counts) != maxWaiting+1 {
		t.Errorf("%d counts are left of a batch that was refused, %v", len(q.writing.counts), err)
	}
}

// TestShardsShareTheRoom: a shard that is away takes no room that others need, and all together take no more than one would.
func TestShardsShareTheRoom(t *testing.T) {
	t.Parallel()
	l := away(t, map[int64]string{2: "east", 3: "west"}, "east", "west")
	const own = maxWaiting / 2 / 3
	wants := map[int64]int{1: maxWaiting - 2*own, 2: own, 3: own}
	for project := range int64(3) {
		project++
		q := l.of(project)
		for range maxWaiting + 1 {
			l.Add(&Query{Project: project})
			q.addRun(runlog.Taken{Project: project})
		}
		if got, want := len(q.waiting.queries), wants[project]; got != want {
			t.Errorf("%d queries of project %d wait, want %d", got, project, want)
		}
		if got, want := len(q.waiting.runs), wants[project]; got != want {
			t.Errorf("%d runs of project %d wait, want %d", got, project, want)
		}
	}
	texts := away(t, map[int64]string{2: "east"}, "east")
	for _, size := range []int{maxTexts/4*3 + 1, maxTexts / 4 * 3, 1} {
		texts.Add(&Query{Project: 1, Text: strings.Repeat("x", size)})
	}
	for range 2 {
		texts.Add(&Query{Project: 2, Text: strings.Repeat("x", maxTexts/4)})
	}
	if one, other := len(texts.of(1).waiting.queries), len(texts.of(2).waiting.queries); one != 1 || other != 1 {
		t.Errorf("%d and %d texts wait, want one of each shard", one, other)
	}
}

// TestOldCountsAreDropped whether ClickHouse refuses the rows or is away.
func TestOldCountsAreDropped(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"refused": errNoTables, "away": &clickhouse.Error{}} {
		l := away(t, nil)
		q := l.of(1)
		q.count(countedOf("old", time.Now().Add(-countsWait-time.Hour), "c"), 1)
		q.count(countedOf("new", time.Now(), "c"), 1)
		q.next()
		if len(q.writing.counts) != 2 {
			t.Errorf("%s: %d counts are written, want 2", name, len(q.writing.counts))
		}
		_ = q.ended(q.writing, err)
		q.count(countedOf("old", time.Now().Add(-countsWait-time.Hour), "c"), 1)
		q.count(countedOf("new", time.Now(), "c"), 1)
		l.gather(true)
		if got := len(q.waiting.counts); got != 1 {
			t.Errorf("%s: %d counts wait, want 1", name, got)
		}
		q.offUntil = time.Time{}
		if b, fresh := q.next(); fresh || len(b.counts) != 1 {
			t.Errorf("%s: %d counts are written again, want 1", name, len(b.counts))
		}
		if _, dropped := l.Stats(); dropped != 2 {
			t.Errorf("%s: %d counts are dropped, want 2", name, dropped)
		}
	}
}

// TestGatherTakesAll: gathering in parts loses nothing.
func TestGatherTakesAll(t *testing.T) {
	t.Parallel()
	l := away(t, nil)
	const endpoints = 600
	for i := range endpoints {
		l.Runs.Of(1, fmt.Sprint(i)).Add(runlog.Run{At: time.Now(), Version: 1, Status: 200, Key: "k"})
	}
	l.gather(true)
	if got, counts := len(l.of(1).waiting.runs), len(l.of(1).waiting.counts); got != endpoints || counts != endpoints {
		t.Errorf("%d runs and %d counts are gathered, want %d", got, counts, endpoints)
	}
}

// TestBatchesNameTheirProjects, so that removing a project finds what is still being written of it.
func TestBatchesNameTheirProjects(t *testing.T) {
	t.Parallel()
	queries := &batch{queries: []*Query{{Project: 3}, {Project: 1}, {Project: 3}, {Project: 2}}}
	if got := queryBatch(queries, "t").Projects; !slices.Equal(got, []int64{1, 2, 3}) {
		t.Errorf("queries are of the projects %v, want 1, 2 and 3", got)
	}
	runs := runlog.New(time.Now())
	b := newBatch()
	runs.Of(5, "e").Add(runlog.Run{At: time.Now(), Status: 200})
	runs.Of(4, "f").Add(runlog.Run{At: time.Now(), Status: 200})
	runs.Take(1, func(r runlog.Taken) { b.runs = append(b.runs, r) })
	b.counts[runlog.Counted{Project: 2}], b.counts[runlog.Counted{Project: 5}] = 1, 1
	if got := runBatch(b, uuid.Nil, "t").Projects; !slices.Equal(got, []int64{2, 4, 5}) {
		t.Errorf("runs and counts are of the projects %v, want 2, 4 and 5", got)
	}
}
