package querylog

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
)

func countedOf(endpoint string, from time.Time, customer string) runlog.Counted {
	return runlog.Counted{
		Who: runlog.Who{Version: 1, Key: "k", Customer: customer}, Project: 1, Endpoint: endpoint, From: from.Unix(), Outcome: runlog.Answered,
	}
}

// TestCountsAreBounded: while ClickHouse is away, counts wait up to a limit and for a day. What is more is dropped, and counted.
func TestCountsAreBounded(t *testing.T) {
	t.Parallel()
	l := prepare(Config{Runs: runlog.New(time.Now()), Logger: zap.NewNop()})
	now := time.Now()
	for i := range maxWaiting + 100 {
		l.count(countedOf("e", now, fmt.Sprint(i)), 2)
	}
	if got, rest := len(l.waiting.counts), l.waiting.counts[runlog.Counted{
		Who: runlog.Who{Version: 1}, Project: 1, Endpoint: "e", From: now.Unix(), Outcome: runlog.Answered,
	}]; got != maxWaiting+1 || rest != 200 {
		t.Errorf("there are %d counts, and %d runs of further customers", got, rest)
	}
	const endpoints = 2 * maxCounts
	for i := range endpoints {
		l.count(countedOf(fmt.Sprint(i), now, "c"), 1)
	}
	if _, dropped := l.Stats(); len(l.waiting.counts) != maxCounts || dropped != endpoints-(maxCounts-maxWaiting-1) {
		t.Errorf("%d counts wait, and %d are dropped", len(l.waiting.counts), dropped)
	}
	refused := newBatch()
	for i := range maxCounts {
		refused.counts[countedOf(fmt.Sprint("refused", i), now, "c")] = 1
	}
	l.writing = refused
	if err := l.ended(refused, errNoTables); err != nil || len(l.waiting.counts) != maxCounts {
		t.Errorf("%d counts wait after a batch was refused, %v", len(l.waiting.counts), err)
	}
}

// TestOldCountsAreDropped whether ClickHouse refuses the rows or is away.
func TestOldCountsAreDropped(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"refused": errNoTables, "away": &clickhouse.Error{}} {
		l := prepare(Config{Runs: runlog.New(time.Now()), Logger: zap.NewNop()})
		l.count(countedOf("old", time.Now().Add(-countsWait-time.Hour), "c"), 1)
		l.count(countedOf("new", time.Now(), "c"), 1)
		l.next(true)
		if len(l.writing.counts) != 2 {
			t.Errorf("%s: %d counts are written, want 2", name, len(l.writing.counts))
		}
		_ = l.ended(l.writing, err)
		l.count(countedOf("old", time.Now().Add(-countsWait-time.Hour), "c"), 1)
		l.count(countedOf("new", time.Now(), "c"), 1)
		l.gather(true)
		if got := len(l.waiting.counts); got != 1 {
			t.Errorf("%s: %d counts wait, want 1", name, got)
		}
	}
}

// TestGatherTakesAll: what is gathered in parts is whole.
func TestGatherTakesAll(t *testing.T) {
	t.Parallel()
	runs := runlog.New(time.Now())
	l := prepare(Config{Runs: runs, Logger: zap.NewNop()})
	const endpoints = 600
	for i := range endpoints {
		runs.Of(1, fmt.Sprint(i)).Add(runlog.Run{At: time.Now(), Version: 1, Status: 200, Key: "k"})
	}
	l.gather(true)
	if got, counts := len(l.waiting.runs), len(l.waiting.counts); got != endpoints || counts != endpoints {
		t.Errorf("%d runs and %d counts are gathered, want %d", got, counts, endpoints)
	}
}

// TestBatchesNameTheirProjects, so that who removes one finds what is still being written of it.
func TestBatchesNameTheirProjects(t *testing.T) {
	t.Parallel()
	all := func(int64) bool { return true }
	odd := func(project int64) bool { return project%2 == 1 }
	queries := &batch{queries: []*Query{{Project: 3}, {Project: 1}, {Project: 3}, {Project: 2}}}
	if got := queryBatch(queries, "t", all).Projects; !slices.Equal(got, []int64{1, 2, 3}) {
		t.Errorf("queries are of the projects %v, want 1, 2 and 3", got)
	}
	some := queryBatch(queries, "t", odd)
	if got := some.Projects; !slices.Equal(got, []int64{1, 3}) {
		t.Errorf("queries of the other shard are of the projects %v, want 1 and 3", got)
	}
	for row := range some.Rows {
		if row[0] == int64(2) {
			t.Error("a query of project 2 is written to the other shard")
		}
	}
	runs := runlog.New(time.Now())
	b := newBatch()
	runs.Of(5, "e").Add(runlog.Run{At: time.Now(), Status: 200})
	runs.Of(4, "f").Add(runlog.Run{At: time.Now(), Status: 200})
	runs.Take(1, func(r runlog.Taken) { b.runs = append(b.runs, r) })
	b.counts[runlog.Counted{Project: 2}], b.counts[runlog.Counted{Project: 5}] = 1, 1
	if got := runBatch(b, uuid.Nil, "t", all).Projects; !slices.Equal(got, []int64{2, 4, 5}) {
		t.Errorf("runs and counts are of the projects %v, want 2, 4 and 5", got)
	}
	some = runBatch(b, uuid.Nil, "t", odd)
	if got := some.Projects; !slices.Equal(got, []int64{5}) {
		t.Errorf("runs and counts of the other shard are of the projects %v, want 5", got)
	}
	rows := 0
	for row := range some.Rows {
		if rows++; row[0] != int64(5) {
			t.Errorf("a row of project %v is written to the other shard", row[0])
		}
	}
	if rows != 2 {
		t.Errorf("%d rows are written to the other shard, want 2", rows)
	}
}
