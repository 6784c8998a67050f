package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/delivery"
	"github.com/caddy-analytics/caddy-analytics/ingest/journal"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// shardsTarget has the projects from 100 on in a shard that may be away. Project 199 can't be delivered to.
type shardsTarget struct {
	target

	mu    sync.Mutex
	away  bool
	hangs bool // it does not even say no
}

func (g *shardsTarget) set(away, hangs bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.away, g.hangs = away, hangs
}

func (g *shardsTarget) Deliver(ctx context.Context, project int64, records []record.Record) (ingest.Report, error) {
	g.mu.Lock()
	away, hangs := g.away, g.hangs
	g.mu.Unlock()
	switch {
	case project == 199:
		return ingest.Report{}, &delivery.RefusedError{Reason: errors.New("there is no project 199")}
	case project >= 100 && hangs:
		<-ctx.Done()
		return ingest.Report{}, context.Cause(ctx)
	case project >= 100 && away:
		return ingest.Report{}, errors.New("the shard is away")
	}
	return g.target.Deliver(ctx, project, records)
}

func openLogs(t *testing.T, dir string, maxBytes int64) *delivery.Logs {
	t.Helper()
	l, err := delivery.OpenLogs(dir, maxBytes, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func closeLogs(t *testing.T, l *delivery.Logs) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
}

// send appends an event of a project; those from 100 on are on the shard east.
func send(t *testing.T, l *delivery.Logs, project int64, name string) error {
	t.Helper()
	shard := ""
	if project >= 100 {
		shard = "east"
	}
	line := fmt.Sprintf(`{"event":%q,"distinct_id":"u","timestamp":"2026-01-01T00:00:00Z","uuid":"0190f3c2-aaaa-7abc-8def-000000000001"}`+"\n", name)
	return l.Append(t.Context(), shard, journal.Entry{Project: project, Arrived: time.Now(), Events: 1, Data: []byte(line)})
}

// TestShardsWaitAlone: while a shard is away, or does not answer at all, events of the others are delivered, round after round, and also
// after the process was killed. When it is back all of its events are there, in their order and once.
func TestShardsWaitAlone(t *testing.T) {
	for name, hangs := range map[string]bool{"away": false, "hangs": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "capture")
				g := new(shardsTarget)
				g.set(true, hangs)
				l := openLogs(t, dir, 1<<20)
				release := l.Use(g)
				want := map[int64][]string{}
				round := func(n int) {
					t.Helper()
					for _, project := range []int64{101, 1, 102, 2} {
						name := fmt.Sprintf("%d of %d", n, project)
						if err := send(t, l, project, name); err != nil {
							t.Fatal(err)
						}
						want[project] = append(want[project], name)
					}
					time.Sleep(time.Minute)
					if diff := cmp.Diff(map[int64][]string{1: want[1], 2: want[2]}, g.delivered()); diff != "" {
						t.Fatalf("delivered after round %d (-want +got):\n%s", n, diff)
					}
				}
				for n := range 5 {
					round(n)
				}
				if w := l.Waiting(101); w.Events != 5 || l.Waiting(1).Events != 0 || l.Stats().Events != 10 || l.Of("").Journal.Stats().Events != 0 {
					t.Errorf("of project 101 wait %+v, in all %+v", w, l.Stats())
				}
				if s := l.Status(); s.Delivered != 10 || s.Lag != 5*time.Minute || !hangs && s.Failing != "shard east: the shard is away" {
					t.Errorf("the status is %+v", s)
				}
				if s := l.StatusOf(2); s.Delivered != 5 || s.Lag != 0 {
					t.Errorf("the status of project 2 is %+v", s)
				}

				killed := filepath.Join(t.TempDir(), "capture") // as the disk is at this moment
				if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
					t.Fatal(err)
				}
				release()
				closeLogs(t, l)
				l = openLogs(t, killed, 1<<20)
				defer func() { closeLogs(t, l) }()
				l.Use(g)
				round(5)

				g.set(false, false)
				l.Use(struct{ delivery.Target }{g}) // what hangs is given up, as by a reload
				time.Sleep(time.Minute)
				check(t, &g.target, want)
				if s := l.Stats(); s.Entries != 0 || l.Status().Failing != "" || l.Status().Lag != 0 {
					t.Errorf("in the end there are %+v, %+v", s, l.Status())
				}
			})
		})
	}
}

// TestUseWaitsForReplaced: Use waits until the target that it replaces is no longer in use, and its release for the target that is released. Neither waits for
// the target that is used from then on, which may not answer.
func TestUseWaitsForReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openLogs(t, filepath.Join(t.TempDir(), "capture"), 1<<20)
		defer closeLogs(t, l)
		for _, project := range []int64{1, 101} { // each is in a log of its own, with its delivery
			if err := send(t, l, project, "event"); err != nil {
				t.Fatal(err)
			}
		}
		first, second := new(busyTarget), new(busyTarget)
		releaseFirst := l.Use(first)
		time.Sleep(time.Hour)
		if got := first.uses.Load(); got != 2 {
			t.Errorf("the first target is used %d times at once, want 2", got)
		}
		releaseSecond := l.Use(second) // project 101 takes a minute to give up, and project 1 goes on
		if one, two := first.uses.Load(), second.uses.Load(); one != 0 || two == 0 {
			t.Errorf("after the second took its place the targets are used %d and %d times at once, want 0 and some", one, two)
		}
		time.Sleep(time.Hour)
		releaseSecond()
		if one, two := first.uses.Load(), second.uses.Load(); one == 0 || two != 0 {
			t.Errorf("after the second was released the targets are used %d and %d times at once, want some and 0", one, two)
		}
		time.Sleep(time.Hour)
		releaseFirst()
		if got := first.uses.Load(); got != 0 {
			t.Errorf("in the end the first target is used %d times at once", got)
		}
	})
}

// busyTarget never answers. It counts how often it is in use. For projects from 100 on it takes a minute to give up.
type busyTarget struct{ uses atomic.Int64 }

func (b *busyTarget) Deliver(ctx context.Context, project int64, _ []record.Record) (ingest.Report, error) {
	b.uses.Add(1)
	defer b.uses.Add(-1)
	<-ctx.Done()
	if project >= 100 {
		time.Sleep(time.Minute)
	}
	return ingest.Report{}, context.Cause(ctx)
}

// TestOutageIsReportedOnce: a shard that is away fails the delivery of each project in a batch; the status says why once.
func TestOutageIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openLogs(t, filepath.Join(t.TempDir(), "capture"), 1<<20)
		defer closeLogs(t, l)
		for project := range int64(5) {
			if err := send(t, l, 101+project, "one"); err != nil {
				t.Fatal(err)
			}
		}
		g := new(shardsTarget)
		g.set(true, false)
		l.Use(g)
		time.Sleep(time.Minute)
		if got, want := l.Status().Failing, "shard east: the shard is away"; got != want {
			t.Errorf("the status says %q, want %q", got, want)
		}
	})
}

// TestShardsFillAlone: the log of a shard that is away gets full, and those of the others do not.
func TestShardsFillAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openLogs(t, filepath.Join(t.TempDir(), "capture"), 128<<10)
		defer closeLogs(t, l)
		g := new(shardsTarget)
		g.set(true, false)
		l.Use(g)
		random := rand.New(rand.NewPCG(1, 2))
		for n := range 100 {
			name := make([]byte, 4<<10) // of which the log keeps most
			for i := range name {
				name[i] = byte('a' + random.IntN(26))
			}
			if err := send(t, l, 1, string(name)); err != nil {
				t.Fatalf("event %d of the main shard: %v", n, err)
			}
			if err := send(t, l, 101, string(name)); err != nil && !errors.Is(err, journal.ErrFull) || err == nil && n == 99 {
				t.Fatalf("event %d of the shard east: %v", n, err)
			}
			time.Sleep(time.Second)
		}
		if s := l.Of("east").Journal.Stats(); s.Bytes > s.MaxBytes || l.Stats().MaxBytes != 256<<10 {
			t.Errorf("the log has %+v, all together %+v", s, l.Stats())
		}
		l.SetMaxBytes(1 << 20)
		if err := send(t, l, 101, "more"); err != nil {
			t.Errorf("with more room an event is refused: %v", err)
		}
		if err := l.Append(t.Context(), "west", journal.Entry{Project: 300, Data: []byte("{}")}); err != nil || l.Of("west").Journal.Stats().MaxBytes != 1<<20 {
			t.Errorf("the first event of a shard: %v, %+v", err, l.Of("west").Journal.Stats())
		}
	})
}

// TestShardSetsAside: what can't be delivered is set aside beside the log of its shard.
func TestShardSetsAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openLogs(t, filepath.Join(t.TempDir(), "capture"), 1<<20)
		defer closeLogs(t, l)
		l.Use(new(shardsTarget))
		for _, project := range []int64{199, 101} {
			if err := send(t, l, project, "event"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		files, err := os.ReadDir(l.Of("east").Journal.AsideDir())
		if err != nil {
			t.Fatal(err)
		}
		aside := slices.IndexFunc(files, func(f os.DirEntry) bool { return strings.HasPrefix(f.Name(), "project-199-") }) >= 0
		if s := l.Stats(); !aside || s.Aside != 1 || s.Entries != 0 || l.Of("").Journal.Stats().Aside != 0 || l.StatusOf(199).SetAside != 1 || l.StatusOf(101).Delivered != 1 {
			t.Errorf("the folder has %v, and the logs %+v", files, s)
		}
		l.Forget(199)
		if s := l.StatusOf(199); s.SetAside != 0 {
			t.Errorf("of a project that is forgotten there is %+v", s)
		}
	})
}

// TestShardNames: a name that would be a folder elsewhere has no log.
func TestShardNames(t *testing.T) {
	dir := t.TempDir()
	l := openLogs(t, filepath.Join(dir, "capture"), 1<<20)
	for _, name := range []string{"..", "../..", "a/b", "."} {
		if err := l.Append(t.Context(), name, journal.Entry{Project: 1, Data: []byte("{}")}); err == nil || l.Of(name) != nil {
			t.Errorf("the shard %q has a log", name)
		}
	}
	closeLogs(t, l)
	if err := l.Append(t.Context(), "east", journal.Entry{Project: 1, Data: []byte("{}")}); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("after Close() an event is taken: %v", err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("beside the folder there are %v: %v", files, err)
	}
}
