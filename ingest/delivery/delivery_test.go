package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/delivery"
	"github.com/caddy-analytics/caddy-analytics/ingest/journal"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/internal/eventually"
)

// target notes what is delivered. It fails as often as it is told, refuses events of bad names and project 13, and panics for project 14.
type target struct {
	mu       sync.Mutex
	failures int
	got      map[int64][]string // names of events by project
}

func (g *target) Deliver(_ context.Context, project int64, records []record.Record) (report ingest.Report, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failures > 0 {
		g.failures--
		return report, errors.New("ClickHouse is unavailable")
	}
	if project == 13 {
		return report, &delivery.RefusedError{Reason: errors.New("there is no project 13")}
	}
	if project == 14 {
		panic("a defect")
	}
	for _, r := range records {
		if r.Event == "bad" || r.Event == "worse" || r.Event == "worst" {
			report.BadLines = append(report.BadLines, ingest.BadLine{Line: r.Line, Reason: "ClickHouse rejected the row's data"})
			continue
		}
		if g.got == nil {
			g.got = map[int64][]string{}
		}
		g.got[project] = append(g.got[project], r.Event)
		report.Events++
	}
	return report, nil
}

func (g *target) delivered() map[int64][]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := map[int64][]string{}
	for project, names := range g.got {
		out[project] = append([]string(nil), names...)
	}
	return out
}

func openJournal(t *testing.T, dir string) *journal.Journal {
	t.Helper()
	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return j
}

func start(t *testing.T, j *journal.Journal) *delivery.Delivery {
	t.Helper()
	d := delivery.New(j, zap.NewNop())
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return d
}

// add appends events of a project as one entry.
func add(t *testing.T, j *journal.Journal, project int64, names ...string) {
	t.Helper()
	var lines strings.Builder
	for _, name := range names {
		fmt.Fprintf(&lines, `{"event":%q,"distinct_id":"u","timestamp":"2026-01-01T00:00:00Z","uuid":"0190f3c2-aaaa-7abc-8def-000000000001"}`+"\n", name)
	}
	addText(t, j, project, lines.String(), len(names))
}

func addText(t *testing.T, j *journal.Journal, project int64, text string, events int) {
	t.Helper()
	if err := j.Append(t.Context(), journal.Entry{Project: project, Arrived: time.Now(), Events: events, Data: []byte(text)}); err != nil {
		t.Fatal(err)
	}
}

// awaitEmpty waits until nothing is left in a journal.
func awaitEmpty(t *testing.T, j *journal.Journal) {
	t.Helper()
	eventually.Is(t, "everything is delivered", func() bool { return j.Stats().Entries == 0 })
}

func check(t *testing.T, g *target, want map[int64][]string) {
	t.Helper()
	if diff := cmp.Diff(want, g.delivered()); diff != "" {
		t.Errorf("delivered (-want +got):\n%s", diff)
	}
}

func TestDeliversInOrder(t *testing.T) {
	j := openJournal(t, t.TempDir())
	add(t, j, 1, "a", "b")
	add(t, j, 2, "x")
	add(t, j, 1, "c")
	d := start(t, j)
	g := new(target)
	d.Use(g)
	awaitEmpty(t, j)
	add(t, j, 1, "d")
	awaitEmpty(t, j)
	check(t, g, map[int64][]string{1: {"a", "b", "c", "d"}, 2: {"x"}})
	if s := d.Status(); s.Delivered != 5 || s.SetAside != 0 || s.Lag != 0 || s.Failing != "" {
		t.Errorf("the status is %+v", s)
	}
	for project, want := range map[int64]int64{1: 4, 2: 1, 3: 0} {
		if s := d.StatusOf(project); s.Delivered != want || s.SetAside != 0 || s.Lag != 0 {
			t.Errorf("the status of project %d is %+v", project, s)
		}
	}
}

func TestTriesAgain(t *testing.T) {
	j := openJournal(t, t.TempDir())
	add(t, j, 1, "a")
	add(t, j, 2, "b")
	d := start(t, j)
	g := &target{failures: 3} // both projects, and then one of them
	d.Use(g)
	for began := time.Now(); d.Status().Failing == ""; time.Sleep(time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatal("the status does not tell of the failure")
		}
	}
	if j.Stats().Entries != 2 {
		t.Errorf("undelivered entries are forgotten: %+v", j.Stats())
	}
	awaitEmpty(t, j)
	check(t, g, map[int64][]string{1: {"a"}, 2: {"b"}})
	eventually.Is(t, "the status fails no more", func() bool { return d.Status().Failing == "" })
}

func TestSetsAside(t *testing.T) {
	dir := t.TempDir()
	j := openJournal(t, dir)
	add(t, j, 1, "a", "bad", "b", "worse")
	add(t, j, 1, "worst")
	add(t, j, 13, "lost", "too")
	add(t, j, 14, "fatal")
	addText(t, j, 1, "no JSON\n", 1)
	add(t, j, 1, "c")
	d := start(t, j)
	g := new(target)
	d.Use(g)
	awaitEmpty(t, j)
	check(t, g, map[int64][]string{1: {"a", "b", "c"}})
	if s := d.Status(); s.SetAside != 7 || d.StatusOf(1).SetAside != 4 || d.StatusOf(13).SetAside != 2 {
		t.Errorf("the status is %+v, of project 1 %+v, of project 13 %+v", s, d.StatusOf(1), d.StatusOf(13))
	}
	files, err := filepath.Glob(filepath.Join(dir, "aside", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(raw)
	}
	for part, times := range map[string]int{
		`"bad"`: 1, `"worse"`: 1, `"worst"`: 1, `"lost"`: 1, `"too"`: 1, "no JSON": 1, "ClickHouse rejected the row's data": 2, "there is no project 13": 1,
		`"fatal"`: 1, "a defect": 1, "delivery_test.go": 1,
	} {
		if got := strings.Count(all.String(), part); got != times {
			t.Errorf("%q is set aside %d times, want %d, in %q:\n%s", part, got, times, files, all.String())
		}
	}
}

// TestLargeEntries delivers entries with more events than are held at once. A failure in the middle does not deliver them from the start.
func TestLargeEntries(t *testing.T) {
	dir := t.TempDir()
	j := openJournal(t, dir)
	names := make([]string, 25_000)
	for n := range names {
		names[n] = fmt.Sprint("e", n)
	}
	names[100], names[12_345], names[24_999] = "bad", "worse", "worst"
	add(t, j, 1, "first")
	add(t, j, 1, names...)
	add(t, j, 1, "bad", "last")
	d := start(t, j)
	g := &sized{away: 2}
	d.Use(g)
	awaitEmpty(t, j)
	if diff := cmp.Diff([]int{10_000, -10_000, 10_000, 5003}, g.sizes); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
	want := slices.Concat([]string{"first"}, names, []string{"last"})
	want = slices.DeleteFunc(want, func(name string) bool { return name == "bad" || name == "worse" || name == "worst" })
	if diff := cmp.Diff(want, g.delivered()[1]); diff != "" {
		t.Errorf("delivered (-want +got):\n%s", diff)
	}
	if s := d.Status(); s.Delivered != int64(len(want)) || s.SetAside != 4 {
		t.Errorf("the status is %+v", s)
	}
	files, err := filepath.Glob(filepath.Join(dir, "aside", "*.ndjson"))
	if err != nil || len(files) != 2 {
		t.Fatalf("set aside: %v, %v", files, err)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil || strings.Count(string(raw), "\n") != 3 || !strings.Contains(string(raw), `"bad"`) || !strings.Contains(string(raw), `"worst"`) {
		t.Errorf("the bad ones: %s, %v", raw, err)
	}
}

// TestLargeEntryIsDamaged sets an entry aside as a whole although its end is all that can't be read.
func TestLargeEntryIsDamaged(t *testing.T) {
	dir := t.TempDir()
	j := openJournal(t, dir)
	const line = `{"event":"e","distinct_id":"u","timestamp":"2026-01-01T00:00:00Z","uuid":"0190f3c2-aaaa-7abc-8def-000000000001"}` + "\n"
	addText(t, j, 1, strings.Repeat(line, 10_500)+"no JSON\n", 10_501)
	add(t, j, 1, "next")
	d := start(t, j)
	g := new(sized)
	d.Use(g)
	awaitEmpty(t, j)
	if diff := cmp.Diff([]int{10_000, 1}, g.sizes); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
	if s := d.Status(); s.SetAside != 10_501 {
		t.Errorf("the status is %+v", s)
	}
	reasons, err := filepath.Glob(filepath.Join(dir, "aside", "*.reason.txt"))
	if err != nil || len(reasons) != 1 {
		t.Fatalf("reasons: %v, %v", reasons, err)
	}
	if raw, err := os.ReadFile(reasons[0]); err != nil || !strings.HasPrefix(string(raw), "reading event 10501 of the request: ") {
		t.Errorf("the reason: %s, %v", raw, err)
	}
}

// sized is a target that notes how much it is given, and is away once: at a delivery counted from 1, whose size it notes as negative.
type sized struct {
	target

	away  int
	sizes []int
}

func (s *sized) Deliver(ctx context.Context, project int64, records []record.Record) (ingest.Report, error) {
	if s.sizes = append(s.sizes, len(records)); len(s.sizes) == s.away {
		s.sizes[s.away-1] *= -1
		s.failures = 1
	}
	return s.target.Deliver(ctx, project, records)
}

// TestTargets changes the target during deliveries: nothing is lost, and an old target is not used after Use or release has returned.
func TestTargets(t *testing.T) {
	j := openJournal(t, t.TempDir())
	d := start(t, j)
	first, second := new(target), new(target)
	releaseFirst := d.Use(first)
	add(t, j, 1, "a")
	awaitEmpty(t, j)
	releaseSecond := d.Use(second)
	add(t, j, 1, "b")
	awaitEmpty(t, j)
	releaseFirst()
	add(t, j, 1, "c")
	awaitEmpty(t, j)
	check(t, first, map[int64][]string{1: {"a"}})
	check(t, second, map[int64][]string{1: {"b", "c"}})
	releaseSecond()
	releaseSecond()
	add(t, j, 1, "d")
	if j.Stats().Entries != 1 {
		t.Errorf("something is delivered to nobody: %+v", j.Stats())
	}
	third := &target{failures: 1}
	d.Use(third)
	fourth := new(target)
	d.Use(fourth)()
	awaitEmpty(t, j)
	all := slices.Concat(third.delivered()[1], fourth.delivered()[1])
	if diff := cmp.Diff([]string{"d"}, all); diff != "" {
		t.Errorf("delivered (-want +got):\n%s", diff)
	}
}

func TestGoesOnAfterARestart(t *testing.T) {
	dir := t.TempDir()
	j := openJournal(t, dir)
	d := start(t, j)
	g := &target{failures: 1 << 30}
	d.Use(g)
	add(t, j, 1, "a")
	if err := errors.Join(d.Close(), j.Close()); err != nil {
		t.Fatal(err)
	}
	j = openJournal(t, dir)
	add(t, j, 1, "b")
	g = new(target)
	start(t, j).Use(g)
	awaitEmpty(t, j)
	check(t, g, map[int64][]string{1: {"a", "b"}})
}
