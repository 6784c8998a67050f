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

// gates is a target in which projects are held or fail.
type gates struct {
	target

	mu    sync.Mutex
	held  map[int64]chan struct{}
	fails map[int64]bool
	tries map[int64]int
}

func (g *gates) Deliver(ctx context.Context, project int64, records []record.Record) (ingest.Report, error) {
	g.mu.Lock()
	if g.tries == nil {
		g.tries = map[int64]int{}
	}
	g.tries[project]++
	held, fails := g.held[project], g.fails[project]
	g.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
			return ingest.Report{}, context.Cause(ctx)
		}
	}
	if fails {
		return ingest.Report{}, fmt.Errorf("it fails%s", strings.Repeat(" for a reason of its own", int(max(0, project-100)/10)))
	}
	return g.target.Deliver(ctx, project, records)
}

func (g *gates) hold(projects ...int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held = map[int64]chan struct{}{}
	for _, project := range projects {
		g.held[project] = make(chan struct{})
	}
}

func (g *gates) release(project int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.held[project])
	delete(g.held, project)
}

func (g *gates) fail(projects ...int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fails = map[int64]bool{}
	for _, project := range projects {
		g.fails[project] = true
	}
}

func (g *gates) triesOf(project int64) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.tries[project]
}

// line is a journal with its delivery, as one process has them.
type line struct {
	t   *testing.T
	dir string
	*journal.Journal
	*delivery.Delivery

	sent map[int64][]string
}

func openLine(t *testing.T, dir string) *line {
	t.Helper()
	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &line{t: t, dir: dir, Journal: j, Delivery: delivery.New(j, zap.NewNop()), sent: map[int64][]string{}}
}

func (l *line) close() {
	l.t.Helper()
	if err := errors.Join(l.Delivery.Close(), l.Journal.Close()); err != nil {
		l.t.Errorf("Close() = %v", err)
	}
}

// kill opens what a killed process would have left on the disk.
func (l *line) kill() *line {
	l.t.Helper()
	synctest.Wait() // nothing is being written
	dir := filepath.Join(l.t.TempDir(), "capture")
	if err := os.CopyFS(dir, os.DirFS(l.dir)); err != nil {
		l.t.Fatal(err)
	}
	l.close()
	next := openLine(l.t, dir)
	next.sent = l.sent
	return next
}

// send sends an event of each project.
func (l *line) send(projects ...int64) {
	l.t.Helper()
	for _, project := range projects {
		name := fmt.Sprintf("%d of %d", len(l.sent[project]), project)
		add(l.t, l.Journal, project, name)
		l.sent[project] = append(l.sent[project], name)
	}
}

// expect checks that the first events of projects are delivered, and no more: a number for each, all of the others.
func (l *line) expect(g *gates, first map[int64]int) {
	l.t.Helper()
	want := map[int64][]string{}
	for project, names := range l.sent {
		if n, some := first[project]; some {
			names = names[:n]
		}
		if len(names) > 0 {
			want[project] = names
		}
	}
	if diff := cmp.Diff(want, g.delivered()); diff != "" {
		l.t.Errorf("delivered (-want +got):\n%s", diff)
	}
}

// TestHeldProject: while a project is held, the events of the others arrive, batch after batch. After that its own do, in their order, and nothing is delivered
// twice: neither then nor when the process is killed in between.
func TestHeldProject(t *testing.T) {
	for name, end := range map[string]func(l *line, g *gates) *line{
		"it is released": func(l *line, g *gates) *line {
			g.release(1)
			return l
		},
		"killed": func(l *line, g *gates) *line {
			next := l.kill()
			g.hold()
			next.Use(g)
			return next
		},
		"closed": func(l *line, g *gates) *line {
			l.close()
			next := openLine(l.t, l.dir)
			next.sent = l.sent
			g.hold()
			next.Use(g)
			return next
		},
		"another target": func(l *line, g *gates) *line {
			g.hold()
			l.Use(struct{ delivery.Target }{g})
			return l
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, g := openLine(t, filepath.Join(t.TempDir(), "capture")), new(gates)
				defer func() { l.close() }()
				l.send(1, 2)
				l.Use(g)
				time.Sleep(time.Second)
				l.expect(g, nil)

				g.hold(1)
				for n := range 10 {
					l.send(2, 1, 3)
					if n == 0 {
						time.Sleep(4 * time.Second) // for which its first event holds up the others
					}
					time.Sleep(2 * time.Second)
					l.expect(g, map[int64]int{1: 1})
				}
				if s, w := l.Stats(), l.Waiting(2); s.Events != 10 || w.Events != 0 || l.Waiting(1).Events != 10 {
					t.Errorf("there wait %+v, of project 2 %+v, of project 1 %+v", s, w, l.Waiting(1))
				}
				if s := l.Status(); s.Lag != 24*time.Second || s.Failing != "" || s.Delivered != 22 {
					t.Errorf("the status is %+v", s)
				}
				if l.StatusOf(2).Lag != 0 || l.StatusOf(1).Lag != 24*time.Second {
					t.Errorf("the status of project 2 is %+v, of project 1 %+v", l.StatusOf(2), l.StatusOf(1))
				}
				l = end(l, g)
				time.Sleep(10 * time.Second)
				l.expect(g, nil)
				if s := l.Stats(); s.Entries != 0 || l.Status().Lag != 0 {
					t.Errorf("in the end there wait %+v: %+v", s, l.Status())
				}
				l.send(1, 2, 3)
				time.Sleep(time.Second)
				l.expect(g, nil)
				if p := l.Progress(); len(p.Behind) != 0 {
					t.Errorf("in the end the progress is %+v", p)
				}
			})
		})
	}
}

// TestBehindCatchesUp: a project that was held and goes on sending soon is no longer behind.
func TestBehindCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g := openLine(t, filepath.Join(t.TempDir(), "capture")), new(gates)
		defer l.close()
		g.hold(1)
		l.Use(g)
		for range 50 {
			l.send(1, 2)
			time.Sleep(100 * time.Millisecond)
		}
		g.release(1)
		for range 50 {
			l.send(1, 2)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Second)
		l.expect(g, nil)
		if p := l.Progress(); len(p.Behind) != 0 {
			t.Errorf("the progress is %+v", p)
		}
	})
}

// slow is a target that takes longer for each project from 20 on.
type slow struct{ target }

func (s *slow) Deliver(ctx context.Context, project int64, records []record.Record) (ingest.Report, error) {
	time.Sleep(time.Duration(max(0, project-20)) * 700 * time.Millisecond)
	return s.target.Deliver(ctx, project, records)
}

// TestSlowProjects: however many projects are slow and catch up at one time or another, another one is delivered soon.
func TestSlowProjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := openLine(t, filepath.Join(t.TempDir(), "capture")), new(slow)
		defer l.close()
		l.Use(s)
		for range 100 {
			l.send(0)
			for project := range int64(20) {
				l.send(21 + project)
			}
			time.Sleep(time.Second) // for project 0 has an event each second
			s.mu.Lock()
			late := len(l.sent[0]) - len(s.got[0])
			s.mu.Unlock()
			if late > 5 {
				t.Fatalf("%d events of project 0 are waiting", late)
			}
		}
		time.Sleep(3 * time.Minute)
		if diff := cmp.Diff(l.sent, s.delivered()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}

// TestSlowLargeProjects: projects that are slow and have much to catch up with leave memory for the events of others.
func TestSlowLargeProjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := openLine(t, filepath.Join(t.TempDir(), "capture")), new(slow)
		defer l.close()
		l.Use(s)
		for n := range 10 {
			for project := range int64(4) {
				addText(t, l.Journal, 35+project, large(fmt.Sprint(n), 12<<20), 1)
			}
		}
		for second := range 120 {
			l.send(0)
			time.Sleep(time.Second)
			s.mu.Lock()
			late := len(l.sent[0]) - len(s.got[0])
			s.mu.Unlock()
			if second > 60 && late > 5 { // the first of the large ones take 13 seconds each
				t.Fatalf("%d events of project 0 are waiting", late)
			}
		}
	})
}

// failing is a slow target for projects from 20 on, whose events it never takes.
type failing struct{ target }

func (f *failing) Deliver(ctx context.Context, project int64, records []record.Record) (ingest.Report, error) {
	if project >= 20 {
		time.Sleep(time.Minute)
		return ingest.Report{}, errors.New("it took too long")
	}
	return f.target.Deliver(ctx, project, records)
}

// TestFailingLargeProjects: projects that have much to catch up with, and whose tries take long and fail, leave memory for the events of others.
func TestFailingLargeProjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := openLine(t, filepath.Join(t.TempDir(), "capture")), new(failing)
		defer l.close()
		l.Use(f)
		for n := range 4 {
			for project := range int64(6) {
				addText(t, l.Journal, 20+project, large(fmt.Sprint(n), 12<<20), 1)
			}
		}
		for second := range 600 {
			l.send(0)
			time.Sleep(time.Second)
			f.mu.Lock()
			late := len(l.sent[0]) - len(f.got[0])
			f.mu.Unlock()
			if second > 180 && late > 5 { // the first try of each is read with the front
				t.Fatalf("after %d s, %d events of project 0 are waiting", second, late)
			}
		}
	})
}

// TestFailingProject: a project whose delivery fails is tried again with growing pauses, and does not slow down the others. The status says why it fails.
func TestFailingProject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g := openLine(t, filepath.Join(t.TempDir(), "capture")), new(gates)
		defer l.close()
		g.fail(1)
		l.Use(g)
		for range 120 {
			l.send(1, 2)
			time.Sleep(time.Second)
			l.expect(g, map[int64]int{1: 0})
			if t.Failed() {
				return
			}
		}
		if s := l.Status(); s.Failing != "project 1: it fails" {
			t.Errorf("the status is %+v", s)
		}
		if tries := g.triesOf(1); tries < 10 || tries > 14 { // five within 15 s, and then one every 15 s
			t.Errorf("it was tried %d times", tries)
		}
		g.fail()
		time.Sleep(time.Minute)
		l.expect(g, nil)
		if s := l.Status(); s.Failing != "" || s.Lag != 0 {
			t.Errorf("in the end the status is %+v", s)
		}
	})
}

// TestProgressCannotBeWritten: while the file of what is behind can't be written, as on a full disk, events go on, and delivered ones free their space.
func TestProgressCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g := openLine(t, filepath.Join(t.TempDir(), "capture")), new(gates)
		defer l.close()
		inTheWay := filepath.Join(l.dir, "behind.tmp")
		if err := os.Mkdir(inTheWay, 0o700); err != nil {
			t.Fatal(err)
		}
		g.hold(1)
		l.Use(g)
		l.send(2, 1)
		for range 30 {
			l.send(2, 3)
			time.Sleep(5 * time.Second)
			l.expect(g, map[int64]int{1: 0})
			if t.Failed() {
				return
			}
		}
		if s := l.Status(); !strings.Contains(s.Failing, "behind.tmp") {
			t.Errorf("the status is %+v", s)
		}
		if p := l.Progress(); p.Behind[1] != 1 {
			t.Errorf("the progress is %+v", p)
		}
		if err := os.Remove(inTheWay); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		if s := l.Status(); s.Failing != "" {
			t.Errorf("in the end the status is %+v", s)
		}
		g.release(1)
		time.Sleep(5 * time.Second)
		l.expect(g, nil)
	})
}

// TestNotedAtTheEnd: what was delivered when the process ends is not delivered again by the next one.
func TestNotedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g := openLine(t, filepath.Join(t.TempDir(), "capture")), new(gates)
		defer func() { l.close() }()
		g.hold(1)
		l.send(1, 2, 3)
		l.Use(g)
		time.Sleep(time.Second) // the next batch still waits, and nothing is noted
		l.close()
		next := openLine(t, l.dir)
		next.sent, l = l.sent, next
		if p := l.Progress(); p.Last != 3 || p.Behind[1] != 0 || len(p.Behind) != 1 {
			t.Errorf("the progress is %+v", p)
		}
		g.hold()
		l.Use(g)
		time.Sleep(5 * time.Second)
		l.expect(g, nil)
	})
}

// TestReasons: the status names a reason once, however many projects it has, and not more than ten.
func TestReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g := openLine(t, filepath.Join(t.TempDir(), "capture")), new(gates)
		defer l.close()
		var projects []int64
		for project := range int64(150) {
			projects = append(projects, 100+project)
		}
		g.fail(projects...)
		l.send(projects...)
		l.Use(g)
		time.Sleep(time.Minute)
		lines := strings.Split(l.Status().Failing, "\n")
		if len(lines) != 11 || lines[10] != "and 5 other reasons" {
			t.Fatalf("the status has %q", lines)
		}
		if lines[0] != "it fails" {
			t.Errorf("the status has %q", lines)
		}
		g.fail()
		time.Sleep(time.Minute)
		if s := l.Status(); s.Failing != "" {
			t.Errorf("in the end the status is %+v", s)
		}
		l.expect(g, nil)
	})
}

// TestClickHouseIsAway: while all projects fail, hardly anything more is read. Then everything is delivered, in order and once.
func TestClickHouseIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g := openLine(t, filepath.Join(t.TempDir(), "capture")), new(gates)
		defer l.close()
		g.fail(1, 2, 3, 4)
		l.send(1, 2, 3)
		l.Use(g)
		time.Sleep(time.Second)
		l.send(4, 1, 2)
		time.Sleep(10 * time.Second)
		if tries := g.triesOf(4); tries != 0 {
			t.Errorf("after 11 s project 4 was tried %d times", tries)
		}
		time.Sleep(10 * time.Second)
		if tries := g.triesOf(4); tries == 0 {
			t.Error("after 21 s project 4 was not tried")
		}
		if p := l.Progress(); p.Last != 0 {
			t.Errorf("the progress is %+v", p)
		}
		g.fail()
		time.Sleep(time.Minute)
		l.expect(g, nil)
		if s := l.Stats(); s.Entries != 0 {
			t.Errorf("in the end there wait %+v", s)
		}
	})
}

// large returns an event of more than a size.
func large(name string, size int) string {
	return `{"event":"` + name + `","distinct_id":"u","timestamp":"2026-01-01T00:00:00Z","uuid":"0190f3c2-aaaa-7abc-8def-000000000001","properties":{"a":"` +
		strings.Repeat("a", size) + `"}}` + "\n"
}

// TestLargeEntry: an entry that is larger than all that may wait in memory holds up its project only.
func TestLargeEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g := openLine(t, filepath.Join(t.TempDir(), "capture")), new(gates)
		defer l.close()
		g.hold(1)
		l.Use(g)
		addText(t, l.Journal, 1, large("large", 49<<20), 1)
		time.Sleep(5 * time.Second)
		add(t, l.Journal, 2, "small")
		time.Sleep(5 * time.Second)
		if diff := cmp.Diff(map[int64][]string{2: {"small"}}, g.delivered()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		g.release(1)
		time.Sleep(5 * time.Second)
		if diff := cmp.Diff(map[int64][]string{1: {"large"}, 2: {"small"}}, g.delivered()); diff != "" {
			t.Errorf("in the end delivered (-want +got):\n%s", diff)
		}
	})
}

// TestFailingParts: what failed takes no memory from others until it is tried again, and is delivered in order and once.
func TestFailingParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g := openLine(t, filepath.Join(t.TempDir(), "capture")), new(gates)
		defer l.close()
		g.fail(1, 2, 3, 4)
		l.Use(g)
		want := map[int64][]string{5: {"small", "small"}}
		for project := int64(1); project <= 4; project++ {
			addText(t, l.Journal, project, large("large", 16<<20), 1)
			add(t, l.Journal, project, "after it")
			want[project] = []string{"large", "after it"}
		}
		for range want[5] {
			add(t, l.Journal, 5, "small")
			time.Sleep(20 * time.Second)
		}
		if diff := cmp.Diff(map[int64][]string{5: want[5]}, g.delivered()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		g.fail()
		time.Sleep(time.Minute)
		if diff := cmp.Diff(want, g.delivered()); diff != "" {
			t.Errorf("in the end delivered (-want +got):\n%s", diff)
		}
		if s := l.Stats(); s.Entries != 0 {
			t.Errorf("in the end there wait %+v", s)
		}
	})
}

// TestBehindIsBounded: when the parts of projects that are held take much memory, nothing more is read until one is delivered.
func TestBehindIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g := openLine(t, filepath.Join(t.TempDir(), "capture")), new(gates)
		defer l.close()
		g.hold(1, 2, 3, 4)
		l.Use(g)
		for project := range int64(4) {
			addText(t, l.Journal, 1+project, large(fmt.Sprint(project), 13<<20), 1)
		}
		time.Sleep(time.Minute)
		add(t, l.Journal, 5, "small")
		time.Sleep(10 * time.Minute)
		if got := g.delivered(); len(got) != 0 {
			t.Errorf("%v are delivered", got)
		}
		g.release(2)
		time.Sleep(time.Minute)
		if diff := cmp.Diff(map[int64][]string{2: {"1"}, 5: {"small"}}, g.delivered()); diff != "" {
			t.Errorf("delivered after a release (-want +got):\n%s", diff)
		}
	})
}

// TestAnyTrouble has projects held and failing, targets replaced and processes closed and killed at random. Everything is delivered in its order, and nothing
// twice, except what was being delivered when a process ended.
func TestAnyTrouble(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 5))
				some := func() (some []int64) {
					for project := range int64(6) {
						if random.IntN(3) == 0 {
							some = append(some, 1+project)
						}
					}
					return some
				}
				l, g := openLine(t, filepath.Join(t.TempDir(), "capture")), new(gates)
				defer func() { l.close() }()
				l.Use(g)
				ends := seed%2 == 0
				for range 60 {
					l.send(some()...)
					switch random.IntN(8) {
					case 0:
						g.mu.Lock()
						for _, held := range g.held {
							close(held)
						}
						g.mu.Unlock()
						g.hold(some()...)
					case 1:
						g.fail(some()...)
					case 2:
						l.Use(struct{ delivery.Target }{g})
					case 3:
						if ends {
							l = l.kill()
							l.Use(g)
						}
					}
					time.Sleep(time.Duration(random.IntN(5000)) * time.Millisecond)
				}
				g.fail()
				for _, held := range g.held {
					close(held)
				}
				g.hold()
				time.Sleep(time.Minute)
				if s, p := l.Stats(), l.Progress(); s.Entries != 0 || len(p.Behind) != 0 || l.Status().Failing != "" {
					t.Errorf("in the end there wait %+v with the progress %+v: %+v", s, p, l.Status())
				}
				for project, got := range g.delivered() {
					var once []string
					for _, name := range got {
						if !slices.Contains(once, name) {
							once = append(once, name)
						}
					}
					if !ends {
						once = got
					}
					if diff := cmp.Diff(l.sent[project], once); diff != "" {
						t.Errorf("delivered of project %d (-want +got):\n%s", project, diff)
					}
				}
			})
		})
	}
}
